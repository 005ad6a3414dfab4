// SPDX-License-Identifier: Apache-2.0
/** text_pane.tsx - for models that were not taught to answer: a text, which they go on with. */
import { useRef } from 'preact/hooks';
import { Button } from '../parts/button';
import { Notice } from '../parts/notice';
import { P } from '../parts/term';
import { keys } from '../shortcuts';
import { useStore } from '../store';
import { continueText, stop, talk, type } from './talk';
import { Measured } from './talk_pane';

export function TextPane() {
  const { draft, writing, problem } = useStore(talk);
  const before = useRef<string | null>(null);
  const go = () => {
    before.current = draft;
    void continueText();
  };
  const taken = before.current;
  return (
    <div class="chat-pane">
      <P class="muted small">
        This model continues a text; it was not taught to answer. Begin one, and let it go on.
      </P>
      <textarea
        class="input chat-page"
        aria-label="Text"
        placeholder="Once upon a time"
        value={draft}
        readOnly={writing !== null}
        onInput={(e) => type(e.currentTarget.value)}
        onKeyDown={keys('write', { write: go, stop })}
      />
      {problem !== '' && (
        <Notice kind="error">
          <P>{problem}</P>
        </Notice>
      )}
      <div class="row row-end">
        {writing === null && taken !== null && taken !== draft && (
          <Button icon="reset" onClick={() => type(taken)}>
            Take it back
          </Button>
        )}
        {writing !== null ? (
          <Button icon="stop" onClick={stop}>
            Stop
          </Button>
        ) : (
          <Button kind="primary" icon="play" onClick={go}>
            Go on
          </Button>
        )}
      </div>
      <Measured />
    </div>
  );
}
