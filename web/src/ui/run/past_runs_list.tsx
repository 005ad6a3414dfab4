// SPDX-License-Identifier: Apache-2.0
/** past_runs_list.tsx - earlier runs: which ones lie under the chart, and what they came to. */
import { IconButton } from '../parts/button';
import { loss } from '../format';
import { useStore } from '../store';
import { forgetRun, pastRuns, showRun } from './past_runs';

export function PastRunsList() {
  const runs = useStore(pastRuns);
  if (runs.length === 0) {
    return (
      <p class="quiet">
        When you start another run, the curve of this one stays here, to lay the two side by side.
      </p>
    );
  }
  return (
    <ul>
      {runs.map((r, i) => (
        <li class="past-run" key={r.id}>
          <label class="check">
            <input
              type="checkbox"
              checked={r.shown}
              onChange={(e) => showRun(r.id, e.currentTarget.checked)}
            />
            <span>
              <strong>Run {runs.length - i}</strong> {r.label}
              <br />
              <span class="quiet">
                {r.textName}, loss {loss(r.loss)}
                {r.val !== null && `, on new text ${loss(r.val)}`}
                {r.hash !== '' && `, curve ${r.hash.slice(0, 8)}`}
              </span>
            </span>
          </label>
          <IconButton
            icon="close"
            label={`Forget run ${runs.length - i}`}
            onClick={() => forgetRun(r.id)}
          />
        </li>
      ))}
    </ul>
  );
}
