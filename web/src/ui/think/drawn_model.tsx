// SPDX-License-Identifier: Apache-2.0
/**
 * drawn_model.tsx - the model as a drawing, from the byte to the probabilities of the next one. Each
 * part can be opened: two sentences, and its numbers at the byte that is looked at. The cards below
 * show the same for the whole text.
 */
import { Fragment } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { Probe } from '../../lib/types';
import { capital } from '../format';
import { Button } from '../parts/button';
import { Card } from '../parts/card';
import { P, Term, Words } from '../parts/term';
import { markAt } from './characters';
import { nextAt } from './maths';
import { NextBytes, percentOf } from './next_bytes';
import { answers, looksOf, raised } from './parts_maths';
import { type Spelling, useSpelling } from './spelling';
import { Mark, Token } from './token';

type Part =
  | { kind: 'bytes' }
  | { kind: 'embedding' }
  | { kind: 'attention' | 'mlp'; layer: number }
  | { kind: 'answer' };

function partsOf(layers: number): Part[] {
  const inner = Array.from({ length: layers }, (_, layer): Part[] => [
    { kind: 'attention', layer },
    { kind: 'mlp', layer },
  ]);
  return [{ kind: 'bytes' }, { kind: 'embedding' }, ...inner.flat(), { kind: 'answer' }];
}

function nameOf(p: Part, unit: Unit): string {
  switch (p.kind) {
    case 'bytes':
      return `${capital(unit)}s`;
    case 'embedding':
      return 'Embedding';
    case 'attention':
      return 'Attention';
    case 'mlp':
      return 'MLP';
    case 'answer':
      return `Next ${unit}`;
  }
}

function titleOf(p: Part, unit: Unit): string {
  return 'layer' in p ? `Layer ${p.layer + 1}: ${nameOf(p, unit)}` : nameOf(p, unit);
}

type Unit = Spelling['unit'];

/** A part is looked at for so long while the drawing goes through all of them. */
const FLOW_MS = 1800;

export function DrawnModel({ probe, position }: { probe: Probe; position: number }) {
  const parts = partsOf(probe.layers);
  const { unit } = useSpelling();
  const [wanted, setChosen] = useState(parts.length - 1);
  const [flowing, setFlowing] = useState(false);
  const chosen = Math.min(wanted, parts.length - 1);
  useEffect(() => {
    if (!flowing) return;
    const timer = setTimeout(() => {
      if (chosen + 1 < parts.length) setChosen(chosen + 1);
      else setFlowing(false);
    }, FLOW_MS);
    return () => clearTimeout(timer);
  }, [flowing, chosen, parts.length]);
  const part = parts[chosen];
  return (
    <Card class="think-drawn" title="The model" aside="Choose a part to see its numbers.">
      <div class="think-parts" role="group" aria-label="The parts of the model, in their order">
        {parts.map((p, i) => (
          <Fragment key={i}>
            {i > 0 && <span class="think-wire" aria-hidden="true" />}
            <button
              type="button"
              class={`think-part think-part-${p.kind}`}
              aria-pressed={i === chosen}
              onClick={() => {
                setFlowing(false);
                setChosen(i);
              }}
            >
              {'layer' in p && <small>Layer {p.layer + 1} </small>}
              <span>{nameOf(p, unit)}</span>
            </button>
          </Fragment>
        ))}
      </div>
      <div class="row">
        <Button
          icon={flowing ? 'pause' : 'play'}
          onClick={() => {
            if (!flowing && chosen === parts.length - 1) setChosen(0);
            setFlowing(!flowing);
          }}
        >
          {flowing ? 'Stop' : 'Go through it'}
        </Button>
        <Button
          icon="arrow"
          disabled={chosen === parts.length - 1}
          onClick={() => setChosen(chosen + 1)}
        >
          Next part
        </Button>
      </div>
      {part && (
        <div class="think-opened">
          <h3>
            <Words>{titleOf(part, unit)}</Words>
          </h3>
          <Opened part={part} probe={probe} position={position} />
        </div>
      )}
    </Card>
  );
}

function Opened({ part, probe, position }: { part: Part; probe: Probe; position: number }) {
  switch (part.kind) {
    case 'bytes':
      return <Bytes probe={probe} position={position} />;
    case 'embedding':
      return <Embedding probe={probe} position={position} />;
    case 'attention':
      return <Attention probe={probe} position={position} layer={part.layer} />;
    case 'mlp':
      return <Layer probe={probe} position={position} layer={part.layer} />;
    case 'answer':
      return <Answer probe={probe} position={position} />;
  }
}

interface At {
  probe: Probe;
  position: number;
}

function Bytes({ probe, position }: At) {
  const { unit } = useSpelling();
  const from = Math.max(0, position - 11);
  const shown = Array.from(probe.tokens.subarray(from, position + 1));
  return (
    <>
      <P>
        The text comes in as numbers, a <Term name={unit} /> each. The model sees these, and their
        order; it has never heard of letters.
      </P>
      <ol class="think-numbers" aria-label={`The last ${unit}s up to the one that is looked at`}>
        {shown.map((id, i) => (
          <li key={i}>
            <Mark token={markAt(probe.tokens, from + i)} />
            <span class="number">{id}</span>
          </li>
        ))}
      </ol>
    </>
  );
}

function Embedding({ probe, position }: At) {
  const { unit } = useSpelling();
  return (
    <>
      <P>
        Each {unit} becomes a row of learnt numbers, its <Term name="embedding" />; another row for its
        place in the text is added. From this <Term name="stream" /> alone, before any{' '}
        <Term name="layer" />, the model would say:
      </P>
      <NextBytes
        label={`Next ${unit} by the embedding alone`}
        p={nextAt(probe, position, 0)}
        actual={-1}
        count={5}
      />
    </>
  );
}

function Attention({ probe, position, layer }: At & { layer: number }) {
  const { unit } = useSpelling();
  return (
    <>
      <P>
        <Term name="attention">Attention</Term> looks back from{' '}
        <Mark token={markAt(probe.tokens, position)} />: each <Term name="head" /> scores the {unit}s
        before by <Term name="query and key">q·k</Term>, and <Term name="softmax" /> makes shares of
        the scores. Scores are shown below the highest.
      </P>
      <div class="think-head-looks">
        {Array.from({ length: probe.heads }, (_, head) => (
          <table key={head} class="think-looks">
            <caption>Head {head + 1}</caption>
            <thead>
              <tr>
                <th scope="col">{unit}</th>
                <th scope="col">q·k</th>
                <th scope="col">share</th>
              </tr>
            </thead>
            <tbody>
              {looksOf(probe, layer, head, position, 4).map((l) => (
                <tr key={l.at}>
                  <td>
                    <Mark token={markAt(probe.tokens, l.at)} />{' '}
                    <span class="quiet">at {l.at + 1}</span>
                  </td>
                  <td>{l.score === 0 ? '0' : l.score.toFixed(2).replace('-', '−')}</td>
                  <td>{percentOf(l.weight)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        ))}
      </div>
    </>
  );
}

function Layer({ probe, position, layer }: At & { layer: number }) {
  const { unit } = useSpelling();
  const up = raised(probe, layer, position, 4);
  return (
    <>
      <P>
        The <Term name="MLP" /> works on what attention has brought together, and adds its result to
        the <Term name="stream" />. With that the <Term name="layer" /> is done. It has made likelier:
      </P>
      <ul class="think-raised">
        {up.map(({ id, p }) => (
          <li key={id}>
            <Token id={id} /> <span class="number">by {percentOf(p)}</span>
          </li>
        ))}
      </ul>
      <NextBytes
        label={`Next ${unit} after layer ${layer + 1}; the thin bar is before it`}
        p={nextAt(probe, position, layer + 1)}
        before={nextAt(probe, position, layer)}
        actual={-1}
        count={5}
      />
    </>
  );
}

function Answer({ probe, position }: At) {
  const { unit } = useSpelling();
  const [temperature, setTemperature] = useState(1);
  const rows = answers(probe, position, temperature, 8);
  return (
    <>
      <P>
        The <Term name="stream" /> is compared with every {unit}'s row, which gives a{' '}
        <Term name="logit" /> each. Divided by the <Term name="temperature" />, through{' '}
        <Term name="softmax" />, they become probabilities.
      </P>
      <label class="think-temperature">
        <span class="number">Temperature {temperature.toFixed(1)}</span>
        <input
          type="range"
          min={0.1}
          max={3}
          step={0.1}
          value={temperature}
          onInput={(e) => setTemperature(Number(e.currentTarget.value))}
        />
      </label>
      <ol class="think-bars" aria-label={`Likeliest next ${unit}s at this temperature`}>
        {rows.map(({ id, logit, p }) => (
          <li key={id} class="think-bar">
            <Token id={id} />
            <span class="think-bar-track">
              <span class="think-bar-fill" style={{ width: `${100 * p}%` }} />
            </span>
            <span class="think-bar-number">
              <span class="think-bar-was">logit {logit.toFixed(1).replace('-', '−')}</span>{' '}
              {percentOf(p)}
            </span>
          </li>
        ))}
      </ol>
    </>
  );
}
