// SPDX-License-Identifier: Apache-2.0
/** compare_list.tsx - the other runs of the shelf, to lay their curves under the one that is open. */
import { P } from '../parts/term';
import { loss } from '../format';
import { useRun } from '../state/run';
import { compare, compared, shelf } from '../state/shelf';
import { useStore } from '../store';

export function CompareList() {
  const runs = useStore(shelf);
  const chosen = useStore(compared);
  const open = useRun((s) => s.id);
  const others = (runs ?? []).filter((r) => r.id !== open && r.meta.curve.steps.length > 1);
  if (others.length === 0) {
    return (
      <P class="quiet">
        Every run stays, under Your models. With a second one the curves can be laid side by side
        here.
      </P>
    );
  }
  return (
    <ul>
      {others.map((r) => (
        <li class="past-run" key={r.id}>
          <label class="check">
            <input
              type="checkbox"
              checked={chosen.includes(r.id)}
              onChange={(e) => compare(r.id, e.currentTarget.checked)}
            />
            <span>
              <strong>{r.name}</strong>
              <br />
              <span class="quiet">
                {r.meta.loss !== null && `loss ${loss(r.meta.loss)}`}
                {r.meta.val !== null && `, on new text ${loss(r.meta.val)}`}
                {r.meta.hash !== '' && `, curve ${r.meta.hash.slice(0, 8)}`}
              </span>
            </span>
          </label>
        </li>
      ))}
    </ul>
  );
}
