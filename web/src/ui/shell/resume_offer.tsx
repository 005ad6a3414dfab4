// SPDX-License-Identifier: Apache-2.0
/** resume_offer.tsx - what an earlier visit left behind, and what became of saving. */
import { Button } from '../parts/button';
import { Notice } from '../parts/notice';
import { P } from '../parts/term';
import { Wait } from '../parts/wait';
import { count } from '../format';
import { keeping } from '../state/keeping';
import { acceptOffer, offer } from '../state/run';
import { shelf } from '../state/shelf';
import { useWaiting } from '../state/waiting';
import { useStore } from '../store';

export function ResumeOffer() {
  const o = useStore(offer);
  const runs = useStore(shelf);
  const [waiting, begin] = useWaiting();
  const kept = useStore(keeping);
  if (kept.status === 'locked') {
    return (
      <div class="messages">
        <Notice kind="info">
          <P>
            tinygpt is open in another tab, which keeps what you make in this browser. You can train
            and chat here, too, but nothing of it is saved by itself: download it under Files.
          </P>
        </Notice>
      </div>
    );
  }
  // It may have got another name since, or have been deleted.
  const name = runs?.find(({ id }) => id === o?.run.id)?.name;
  if (!o || name === undefined) return null;
  const { meta } = o.run;
  return (
    <section class="messages" aria-label="A saved run">
      <Notice kind="good">
        <P>
          <strong>
            Continue your run at step {count(meta.step)} of {count(meta.total)}?
          </strong>{' '}
          <span>{name}</span>, saved {ago(meta.savedAt)}. It goes on exactly where it was.
        </P>
        <div class="row">
          <Button
            kind="primary"
            icon="play"
            disabled={waiting !== null}
            onClick={() => begin('Opening it', acceptOffer)}
          >
            Continue at step {count(meta.step)}
          </Button>
          <Button
            kind="plain"
            onClick={() => {
              waiting?.cancel();
              offer.set(null);
            }}
          >
            Later
          </Button>
        </div>
        {waiting && <Wait words={waiting.words} onCancel={waiting.cancel} />}
      </Notice>
    </section>
  );
}

function ago(at: number): string {
  const minutes = Math.round((Date.now() - at) / 60_000);
  if (minutes < 1) return 'just now';
  if (minutes < 60) return minutes === 1 ? 'a minute ago' : `${minutes} minutes ago`;
  return new Date(at).toLocaleString('en-GB', { dateStyle: 'medium', timeStyle: 'short' });
}
