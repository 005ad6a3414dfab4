// SPDX-License-Identifier: Apache-2.0
/** tour.tsx - the stop of the tour that is shown, if there is one; Escape ends it. */
import { useEffect } from 'preact/hooks';
import { Button, IconButton } from '../parts/button';
import { goTo, STOPS, tourAt } from '../state/tour';
import { keys } from '../shortcuts';
import { useStore } from '../store';

export function Tour() {
  const stop = useStore(tourAt);
  useEffect(() => {
    if (stop === null) return;
    const leave = keys('tour', { leave: () => goTo(null) });
    window.addEventListener('keydown', leave);
    return () => window.removeEventListener('keydown', leave);
  }, [stop === null]);
  if (stop === null) return null;
  const last = stop === STOPS.length - 1;
  return (
    <section class="tour" aria-label="Tour">
      <p aria-live="polite">
        <b class="number">
          {stop + 1} of {STOPS.length}
        </b>{' '}
        {STOPS[stop]?.text}
      </p>
      <div class="row">
        {stop > 0 && <Button onClick={() => goTo(stop - 1)}>Back</Button>}
        <Button kind="primary" onClick={() => goTo(last ? null : stop + 1)}>
          {last ? 'Done' : 'Next'}
        </Button>
        <IconButton icon="close" label="End the tour" onClick={() => goTo(null)} />
      </div>
    </section>
  );
}
