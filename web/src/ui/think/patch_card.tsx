// SPDX-License-Identifier: Apache-2.0
/**
 * patch_card.tsx - activation patching: which activation carries what tells two prompts apart. The
 * method and its number are in patch.ts.
 */
import { useEffect, useState } from 'preact/hooks';
import type { Model } from '../../lib/index';
import { whenEngine } from '../engine';
import { plainError } from '../plain_error';
import { Button } from '../parts/button';
import { Card } from '../parts/card';
import { Choice, Field } from '../parts/fields';
import { Notice } from '../parts/notice';
import { Bar } from '../parts/stat';
import { P } from '../parts/term';
import { useStore } from '../store';
import type { ProbeFn } from './ablate';
import { frozen } from './freeze';
import { GridTable, type CellPlace } from './grid_table';
import { ASKED_FOR, Pace } from './pace';
import { answersOf, patchGrid, patchProblem, type Answers, type PatchPart } from './patch';
import { isTraining, thinkState } from './state';
import { useSpelling } from './spelling';
import { Token } from './token';
import { useJob } from './watch';

interface Grid {
  donor: Int32Array;
  recipient: Int32Array;
  answers: Answers;
  layers: number;
  cells: ReadonlyMap<string, number>;
  /** Of which step the model was. */
  when: string;
}

const key = (p: CellPlace) => `${p.row} ${p.col}`;

const PARTS: readonly { value: PatchPart; label: string }[] = [
  { value: 'block', label: 'Whole stream' },
  { value: 'attention', label: 'Attention' },
  { value: 'mlp', label: 'MLP' },
];

/** Without a sign for what rounds to 0. */
function wholePercent(share: number): string {
  const rounded = Math.round(100 * share);
  return rounded < 0 ? `−${-rounded}` : String(Math.abs(rounded));
}

/** A byte or token as it is drawn, and its name where the drawing does not say it. */
function Named({ id }: { id: number }) {
  const { kind, name } = useSpelling().visible(id);
  return (
    <>
      <Token id={id} />
      {kind !== 'plain' && <span aria-hidden="true"> ({name})</span>}
    </>
  );
}

function PatchGrid({ grid }: { grid: Grid }) {
  const [chosen, setChosen] = useState<CellPlace | null>(null);
  const { unit } = useSpelling();
  const { layers, recipient, donor, cells } = grid;
  const at = (p: CellPlace) => cells.get(key(p));
  const layerOf = (row: number) => layers - row;
  const words = (p: CellPlace) => {
    const value = at(p);
    return (
      `layer ${layerOf(p.row)}, ${unit} ${p.col + 1}: ` +
      (value === undefined
        ? 'not yet measured'
        : Number.isNaN(value)
          ? 'no difference to recover'
          : `${(100 * value).toFixed(0)} percent recovered`)
    );
  };
  return (
    <>
      <GridTable
        class="think-lens"
        label="Share of the difference that each activation recovers"
        rows={layers}
        cols={recipient.length}
        corner="layer"
        rowHead={layerOf}
        colHead={(t) => (
          <span class={donor[t] === recipient[t] ? 'think-pair' : 'think-pair think-differs'}>
            <Token id={donor[t] ?? 0} />
            {donor[t] !== recipient[t] && <Token id={recipient[t] ?? 0} />}
          </span>
        )}
        cell={(row, col) => {
          const value = at({ row, col });
          return value === undefined || Number.isNaN(value) ? '·' : wholePercent(value);
        }}
        cellName={(row, col) => words({ row, col })}
        cellClass={(row, col) =>
          (at({ row, col }) ?? 0) < 0 ? 'think-heat think-worse' : 'think-heat'
        }
        cellStyle={(row, col) => ({
          '--heat': Math.round(100 * Math.min(1, Math.abs(at({ row, col }) || 0))),
        })}
        selected={chosen}
        onSelect={setChosen}
      />
      <P class="quiet">
        Numbers are per cent of the way from the second prompt's answer to the first one's.
        {chosen ? ` Chosen: ${words(chosen)}.` : ''}
      </P>
    </>
  );
}

export function PatchCard({ model, ctx }: { model: Model; ctx: number }) {
  const { donor, recipient } = useStore(thinkState);
  const { unit } = useSpelling();
  const [part, setPart] = useState<PatchPart>('block');
  const [grid, setGrid] = useState<Grid | null>(null);
  const job = useJob();
  const [lengths, setLengths] = useState<readonly [Int32Array, Int32Array] | null>(null);

  useEffect(() => {
    job.cancel();
    setGrid(null);
  }, [model]);

  useEffect(() => {
    let late = false;
    Promise.all([model.tokenizer.encode(donor), model.tokenizer.encode(recipient)]).then(
      (both) => {
        if (!late) setLengths(both);
      },
      () => {
        if (!late) setLengths(null);
      },
    );
    return () => {
      late = true;
    };
  }, [model, donor, recipient]);

  const problem = lengths ? patchProblem(lengths[0], lengths[1], ctx) : '';
  const run = () =>
    lengths &&
    job.start(async (signal) => {
      const [from, to] = lengths;
      const pace = new Pace(isTraining, ASKED_FOR);
      await frozen(await whenEngine(), model, isTraining(), async (still, step, isStill) => {
        const probe: ProbeFn = (p, e, d) => still.probe(p, e, d, { signal });
        const a = await pace.run(() => probe(from), signal);
        const b = await pace.run(() => probe(to), signal);
        const { layers } = a;
        const answers = answersOf(a, b);
        const cells = new Map<string, number>();
        const show = () =>
          setGrid({
            donor: from,
            recipient: to,
            answers,
            layers,
            cells: new Map(cells),
            when: isStill
              ? `Step ${step}.`
              : `From step ${step} on: it went on learning meanwhile, which ` +
                'blurs the numbers. Pause it for clear ones.',
          });
        show();
        for await (const cell of patchGrid(probe, from, to, part, answers, layers, pace, signal)) {
          cells.set(key({ row: layers - 1 - cell.layer, col: cell.position }), cell.recovered);
          show();
        }
      });
    });

  const done = grid ? grid.cells.size / (grid.layers * grid.recipient.length) : 0;
  const prompt = (
    label: string,
    value: string,
    set: (text: string) => void,
    n: number | undefined,
  ) => (
    <Field label={label} help={n === undefined ? undefined : `${n} ${unit}s`}>
      {({ id, describedBy }) => (
        <input
          id={id}
          class="input think-prompt"
          type="text"
          autoComplete="off"
          spellcheck={false}
          aria-describedby={describedBy}
          value={value}
          onInput={(e) => set(e.currentTarget.value)}
        />
      )}
    </Field>
  );
  return (
    <Card
      class="think-card"
      title="Patch one prompt into another"
      aside="Which activation carries the difference?"
    >
      <P class="muted small">
        The model reads the second prompt, but one activation at a time is taken from its reading of
        the first. Where the prediction turns into the first prompt's, there the difference sits.
      </P>
      <div class="think-two">
        {prompt(
          'First prompt (donor)',
          donor,
          (text) => thinkState.patch({ donor: text }),
          lengths?.[0].length,
        )}
        {prompt(
          'Second prompt',
          recipient,
          (text) => thinkState.patch({ recipient: text }),
          lengths?.[1].length,
        )}
      </div>
      <div class="row spread">
        <Choice
          label="What is taken over"
          unlabelled
          value={part}
          options={PARTS}
          disabled={job.running}
          onChange={setPart}
        />
        {job.running ? (
          <Button icon="stop" onClick={job.cancel}>
            Cancel
          </Button>
        ) : (
          <Button kind="primary" disabled={!lengths || problem !== ''} onClick={run}>
            Patch
          </Button>
        )}
      </div>
      {problem !== '' && <Notice kind="info">{problem}</Notice>}
      {job.error !== null && <Notice kind="error">{plainError(job.error)}</Notice>}
      {job.running && <Bar label="Activations patched" share={done} />}
      {grid && (
        <>
          <P class="small number">
            The first prompt speaks for <Named id={grid.answers.donor} />, the second for{' '}
            <Named id={grid.answers.recipient} />. {grid.when}
          </P>
          <PatchGrid grid={grid} />
        </>
      )}
    </Card>
  );
}
