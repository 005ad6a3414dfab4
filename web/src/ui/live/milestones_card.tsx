// SPDX-License-Identifier: Apache-2.0
/** milestones_card.tsx - what has been reached, in plain words. */
import { Card } from '../parts/card';
import { Words } from '../parts/term';
import { count } from '../format';
import { useRun } from '../state/run';

export function MilestonesCard() {
  const list = useRun((s) => s.milestones);
  return (
    <Card title="Milestones">
      {list.length === 0 && <p class="quiet">The first one comes within seconds.</p>}
      <ol class="live-milestones">
        {[...list].reverse().map((m) => (
          <li key={m.id}>
            <span class="live-milestone-step">Step {count(m.step)}</span>
            <span>
              <Words>{m.text}</Words>
            </span>
          </li>
        ))}
      </ol>
    </Card>
  );
}
