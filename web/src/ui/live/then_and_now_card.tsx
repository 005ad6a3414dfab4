// SPDX-License-Identifier: Apache-2.0
/**
 * then_and_now_card.tsx - the same beginning, then and now: a slider over the steps whose weights are
 * kept, and a beginning that anybody can change.
 */
import { useEffect, useId, useState } from 'preact/hooks';
import { Card } from '../parts/card';
import { Field } from '../parts/fields';
import { Notice } from '../parts/notice';
import { P, Words } from '../parts/term';
import { count, readable } from '../format';
import { useRun } from '../state/run';
import { useStore } from '../store';
import { leaveThenAndNow, thenAndNow, writeThenAndNow, type Written } from './then_and_now';

/** A slider that is being drawn, and a word that is being typed, come to rest first. */
const REST_MS = 250;

export function ThenAndNowCard() {
  const run = useRun((s) => s.id);
  const steps = useRun((s) => s.keptSteps);
  const suggested = useRun((s) => s.prompt);
  const { then, now, writing, problem } = useStore(thenAndNow);
  const [chosen, setChosen] = useState<number | null>(null);
  const [typed, setTyped] = useState<string | null>(null);
  const id = useId();
  const prompt = typed ?? suggested;
  const newest = steps.at(-1) ?? null;
  const earlier = steps.slice(0, -1);
  // The one that was chosen may have made room for others.
  const at = chosen === null ? 0 : earlier.findLastIndex((s) => s <= chosen);
  const step = earlier[Math.max(0, at)] ?? null;
  useEffect(() => {
    const timer = setTimeout(() => void writeThenAndNow(step, newest, prompt), REST_MS);
    return () => clearTimeout(timer);
  }, [run, step, newest, prompt]);
  useEffect(() => leaveThenAndNow, [run]);
  return (
    <Card title="Then and now" aside={writing ? 'writing…' : 'the same beginning at both'}>
      {newest === null && (
        <P class="quiet">
          Weights are kept at some steps, so that you can come back to them. Of a model as large as
          this, or where the browser has little room left, none are.
        </P>
      )}
      {newest !== null && (
        <>
          <Field label="Beginning">
            {({ id: field }) => (
              <input
                id={field}
                class="input"
                type="text"
                maxLength={200}
                value={prompt}
                onInput={(e) => setTyped(e.currentTarget.value)}
              />
            )}
          </Field>
          {step !== null && (
            <div class="live-slider">
              <label for={id}>Then: step {count(step)}</label>
              <input
                id={id}
                type="range"
                min={0}
                max={Math.max(0, earlier.length - 1)}
                step={1}
                value={Math.max(0, at)}
                disabled={earlier.length < 2}
                aria-valuetext={`step ${count(step)}`}
                onInput={(e) => setChosen(earlier[Number(e.currentTarget.value)] ?? null)}
              />
            </div>
          )}
          <div class="live-then" aria-busy={writing}>
            {then && <Piece written={then} />}
            {now && <Piece written={now} />}
          </div>
          {problem !== '' && (
            <Notice kind="error">
              <P>{problem}</P>
            </Notice>
          )}
        </>
      )}
    </Card>
  );
}

function Piece({ written: { step, prompt, text } }: { written: Written }) {
  return (
    <div>
      <p class="live-sample-step">
        <span>
          <Words>Step {count(step)}</Words>
        </span>
      </p>
      <p class="live-sample-text">
        <span class="live-prompt">{prompt}</span>
        {readable(text)}
      </p>
    </div>
  );
}
