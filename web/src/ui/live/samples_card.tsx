// SPDX-License-Identifier: Apache-2.0
/** samples_card.tsx - what the model writes as it learns, the newest first. */
import { Card } from '../parts/card';
import { Words } from '../parts/term';
import { count, readable } from '../format';
import type { Sample } from '../run/controller';
import { useRun } from '../state/run';

export function SamplesCard() {
  const samples = useRun((s) => s.samples);
  const writing = useRun((s) => s.writing);
  const shown = [...samples].reverse();
  return (
    <Card title="What it writes" aside="from nothing" class="live-writes">
      {!writing && shown.length === 0 && <p class="quiet">Its first words come in a moment.</p>}
      <ol class="live-samples" tabIndex={0} aria-label="Samples, the newest first">
        {writing && <Item key={`now-${writing.step}`} sample={writing} now />}
        {shown.map((s) => (
          <Item key={s.step} sample={s} />
        ))}
      </ol>
    </Card>
  );
}

function Item({ sample, now }: { sample: Sample; now?: boolean }) {
  return (
    <li class="live-sample">
      <p class="live-sample-step">
        <span>
          <Words>Step {count(sample.step)}</Words>
        </span>
        {now && <span class="tag tag-accent">writing</span>}
      </p>
      <p class="live-sample-text">{readable(sample.text)}</p>
    </li>
  );
}
