// SPDX-License-Identifier: Apache-2.0
/**
 * then_and_now_card.tsx - one beginning out of the text, and what the model made of it at an earlier
 * step and at the newest one. The draws are the same at every step: what differs is what it learnt.
 */
import { useId, useState } from 'preact/hooks';
import { Card } from '../parts/card';
import { count } from '../format';
import { useRun } from '../state/run';
import type { Sample } from '../run/controller';
import { readable } from './samples_card';

export function ThenAndNowCard() {
  const samples = useRun((s) => s.samples);
  const prompt = useRun((s) => s.prompt);
  const had = samples.filter((s) => s.again !== undefined);
  const [chosen, setChosen] = useState<number | null>(null);
  const id = useId();
  const now = had.at(-1);
  const earlier = had.slice(0, -1);
  const at = Math.min(chosen ?? 0, earlier.length - 1);
  const then = earlier[at];
  return (
    <Card title="Then and now" aside="the same beginning at every step">
      {!now && <p class="quiet">Here it goes on from one beginning again and again.</p>}
      {now && (
        <div class="live-then">
          {then && <Piece sample={then} prompt={prompt} />}
          <Piece sample={now} prompt={prompt} />
        </div>
      )}
      {then && (
        <div class="live-slider">
          <label for={id}>Then: step {count(then.step)}</label>
          <input
            id={id}
            type="range"
            min={0}
            max={Math.max(0, earlier.length - 1)}
            step={1}
            value={at}
            disabled={earlier.length < 2}
            aria-valuetext={`step ${count(then.step)}`}
            onInput={(e) => setChosen(Number(e.currentTarget.value))}
          />
        </div>
      )}
    </Card>
  );
}

function Piece({ sample, prompt }: { sample: Sample; prompt: string }) {
  return (
    <div>
      <p class="live-sample-step">Step {count(sample.step)}</p>
      <p class="live-sample-text">
        <span class="live-prompt">{prompt}</span>
        {readable(sample.again ?? '')}
      </p>
    </div>
  );
}
