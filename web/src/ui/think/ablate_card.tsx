// SPDX-License-Identifier: Apache-2.0
/**
 * ablate_card.tsx - what each part is worth: silence it and see how much the loss on a text grows. A
 * chosen part is measured at once and then followed; all of them are measured on request.
 */
import { useEffect, useState } from 'preact/hooks';
import type { Model } from '../../lib/index';
import { whenEngine } from '../engine';
import { plainError } from '../plain_error';
import { Button } from '../parts/button';
import { Card } from '../parts/card';
import { Notice } from '../parts/notice';
import { Bar } from '../parts/stat';
import { P } from '../parts/term';
import {
  compare,
  editsOf,
  nameOf,
  rowOf,
  sweep,
  type AblationResult,
  type ProbeFn,
} from './ablate';
import { frozen } from './freeze';
import { GridTable, type CellPlace } from './grid_table';
import { nextAt } from './maths';
import { NextBytes } from './next_bytes';
import { useSpelling } from './spelling';
import { ASKED_FOR, Pace } from './pace';
import { isTraining } from './state';
import { useJob, useOnScreen, useWatched } from './watch';

/** +0.123, −0.004: what is added to the loss. */
export function signed(x: number, digits = 3): string {
  if (!Number.isFinite(x)) return '–';
  const text = Math.abs(x).toFixed(digits);
  return x < 0 && Number(text) !== 0 ? `−${text}` : `+${text}`;
}

interface Shape {
  model: Model;
  tokens: Int32Array;
  layers: number;
  heads: number;
  position: number;
  follow: boolean;
}

const key = (p: CellPlace) => `${p.row} ${p.col}`;

function columnName(col: number): string {
  return ['whole', 'attention', 'MLP'][col] ?? `head ${col - 2}`;
}

export function AblateCard({ model, tokens, layers, heads, position, follow }: Shape) {
  const { unit } = useSpelling();
  const [results, setResults] = useState<ReadonlyMap<string, AblationResult>>(new Map());
  const [origin, setOrigin] = useState('');
  const [chosen, setChosen] = useState<CellPlace | null>(null);
  const [body, onScreen] = useOnScreen<HTMLDivElement>();
  const job = useJob();
  const cells = layers * (3 + heads);
  const ablationAt = (p: CellPlace) => rowOf(p.row, heads)[p.col];
  const probe: ProbeFn = (prompt, edits) => model.probe(prompt, edits);

  useEffect(() => {
    job.cancel();
    setResults(new Map());
    setOrigin('');
    setChosen(null);
  }, [model, tokens, layers, heads]);

  const keep = (place: CellPlace, result: AblationResult) =>
    setResults((old) => new Map(old).set(key(place), result));

  const one = chosen && ablationAt(chosen);
  const seen = useWatched(
    one && onScreen
      ? async () => {
          const base = await probe(tokens);
          const changed = await probe(tokens, editsOf(one));
          const result = compare(one, base, changed, isTraining() ? await probe(tokens) : base);
          keep(chosen, result);
          return { base, changed, result };
        }
      : null,
    [model, tokens, chosen?.row, chosen?.col],
    follow,
  );

  const measureAll = () =>
    job.start(async (signal) => {
      setResults(new Map());
      const pace = new Pace(isTraining, ASKED_FOR);
      await frozen(await whenEngine(), model, isTraining(), async (still, step, isStill) => {
        setOrigin(isStill ? `All of step ${step}.` : 'The model went on learning meanwhile.');
        const onStill: ProbeFn = (prompt, edits) =>
          still.probe(prompt, edits, undefined, { signal });
        for await (const result of sweep(onStill, tokens, layers, heads, pace, signal)) {
          const { layer, part, head } = result.ablation;
          const col =
            part === 'head' ? 3 + (head ?? 0) : ['block', 'attention', 'mlp'].indexOf(part);
          keep({ row: layer, col }, result);
        }
      });
    });

  // The strongest effect sets the scale of the colours.
  let most = 0.05;
  for (const r of results.values()) most = Math.max(most, Math.abs(r.added));
  const error = job.error ?? seen.error;
  const actual = position + 1 < tokens.length ? (tokens[position + 1] as number) : -1;
  const now = seen.value;

  return (
    <Card
      class="think-card"
      title="Without a part"
      aside="How much the loss on this text grows when it is silenced."
    >
      <div ref={body} class="stack-tight">
        <GridTable
          class="think-ablate"
          label="Change of the loss without each part"
          rows={layers}
          cols={3 + heads}
          corner="layer"
          rowHead={(row) => row + 1}
          colHead={columnName}
          cell={(row, col) => {
            const result = results.get(key({ row, col }));
            return result ? signed(result.added, 2) : '·';
          }}
          cellName={(row, col) => {
            const ablation = ablationAt({ row, col });
            const result = results.get(key({ row, col }));
            return (
              `without ${ablation ? nameOf(ablation) : ''}: ` +
              (result ? `loss ${signed(result.added)}` : 'not measured yet')
            );
          }}
          cellClass={(row, col) => {
            const added = results.get(key({ row, col }))?.added ?? 0;
            return added < 0 ? 'think-heat think-better' : 'think-heat think-worse';
          }}
          cellStyle={(row, col) => {
            const added = results.get(key({ row, col }))?.added ?? 0;
            return { '--heat': Math.round((100 * Math.abs(added)) / most) };
          }}
          selected={chosen}
          onSelect={setChosen}
        />
        <div class="row">
          {job.running ? (
            <Button icon="stop" onClick={job.cancel}>
              Cancel
            </Button>
          ) : (
            <Button onClick={measureAll}>Measure all {cells} parts</Button>
          )}
          <span class="quiet">
            {job.running ? `${results.size} of ${cells}. ` : 'Or choose one in the table. '}
            {origin}
          </span>
        </div>
        {job.running && <Bar label="Parts measured" share={results.size / cells} />}
        {error !== null && <Notice kind="error">{plainError(error)}</Notice>}
        {now && (
          <div class="think-under">
            <h3>Without {nameOf(now.result.ablation)}</h3>
            <P class="number">
              Loss {now.result.baseLoss.toFixed(3)} →{' '}
              {(now.result.baseLoss + now.result.added).toFixed(3)}{' '}
              <b>({signed(now.result.added)})</b>. On average {(100 * now.result.shift).toFixed(0)}{' '}
              % of the probability moved to other {unit}s.
            </P>
            <h4>What comes after {unit} {position + 1} now</h4>
            <NextBytes
              label={`Next ${unit} without ${nameOf(now.result.ablation)}, with the share before`}
              p={nextAt(now.changed, position)}
              before={nextAt(now.base, position)}
              actual={actual}
              count={6}
            />
          </div>
        )}
      </div>
    </Card>
  );
}
