// SPDX-License-Identifier: Apache-2.0
/** ready_models.tsx - the models that came with the page, for views that have none yet: a click each. */
import { P } from '../parts/term';
import { Wait } from '../parts/wait';
import { cancelFiles, filesState } from '../state/files';
import { useStore } from '../store';
import { CARDS } from './cards';
import { openToPlay } from './open_card';

export default function ReadyModels() {
  const busy = useStore(filesState, (f) => f.busy);
  return (
    <div class="stack-tight">
      <P class="muted">Or take one that came with this page:</P>
      <div class="row" role="group" aria-label="Models that came with this page">
        {CARDS.map((card) => (
          <button
            key={card.name}
            type="button"
            class="chip"
            disabled={busy !== ''}
            onClick={() => void openToPlay(card)}
          >
            {card.title}
          </button>
        ))}
      </div>
      {busy !== '' && <Wait words={busy} onCancel={cancelFiles} />}
    </div>
  );
}
