// SPDX-License-Identifier: Apache-2.0
/** talk_card.tsx - the conversation: turns, the answer as it is written, and what was measured. */
import { useEffect, useRef } from 'preact/hooks';
import type { AnswerStats, Turn } from '../../lib/types';
import { count, milliseconds } from '../format';
import { Button } from '../parts/button';
import { Card } from '../parts/card';
import { Field } from '../parts/fields';
import { Notice } from '../parts/notice';
import { Bar, Stat } from '../parts/stat';
import { useStore } from '../store';
import { models } from './models';
import { regenerate, reset, send, stop, talk } from './talk';

const WHO: Record<Turn['role'], string> = { user: 'You', assistant: 'Model', system: 'System' };

const ENDS: Record<AnswerStats['end'], string> = {
  end: 'Done.',
  length: 'Long enough.',
  full: 'The context is full: the answer ends here.',
  stopped: 'Stopped.',
};

function Said({ turn, writing }: { turn: Turn; writing?: boolean }) {
  return (
    <li class={`chat-turn chat-${turn.role}`}>
      <p class="chat-who">{WHO[turn.role]}</p>
      <div class="chat-text">
        {turn.text}
        {writing && <span class="caret" aria-hidden="true" />}
      </div>
    </li>
  );
}

/** The newest line stays in sight, unless a person has scrolled up. */
function Turns() {
  const { turns, writing } = useStore(talk);
  const list = useRef<HTMLOListElement>(null);
  const follows = useRef(true);
  useEffect(() => {
    const box = list.current;
    if (box && follows.current) box.scrollTop = box.scrollHeight;
  }, [turns, writing]);
  return (
    <ol
      ref={list}
      class="chat-turns"
      tabIndex={0}
      aria-label="Conversation"
      aria-busy={writing !== null}
      onScroll={(e) => {
        const box = e.currentTarget;
        follows.current = box.scrollHeight - box.scrollTop - box.clientHeight < 48;
      }}
    >
      {turns.map((turn, i) => (
        <Said key={i} turn={turn} />
      ))}
      {writing !== null && <Said turn={{ role: 'assistant', text: writing }} writing />}
    </ol>
  );
}

function Measured() {
  const { stats, writing } = useStore(talk);
  const read = stats ? stats.promptTokens - stats.reusedTokens : 0;
  const status = writing !== null ? 'Writing…' : stats ? ENDS[stats.end] : '';
  return (
    <>
      <p class="quiet" role="status">
        {status}
      </p>
      {stats && (
        <>
          <dl class="stats">
            <Stat
              name="Tokens a second"
              value={stats.newTokens > 1 ? stats.tokPerS.toFixed(1) : '–'}
            />
            <Stat
              name="First token after"
              value={milliseconds(stats.firstTokenMs)}
              note={read === 1 ? '1 token read' : `${count(read)} tokens read`}
            />
            <Stat
              name="Context"
              value={`${count(stats.context)} of ${count(stats.capacity)}`}
              note="tokens"
            />
          </dl>
          <Bar label="Context in use" share={stats.context / stats.capacity} />
        </>
      )}
    </>
  );
}

function Composer() {
  const { draft, writing } = useStore(talk);
  return (
    <form
      class="chat-composer"
      onSubmit={(e) => {
        e.preventDefault();
        void send();
      }}
    >
      <Field label="Your turn" help="Enter sends, Shift + Enter begins a line, Escape stops.">
        {({ id, describedBy }) => (
          <textarea
            id={id}
            class="input chat-draft"
            rows={3}
            aria-describedby={describedBy}
            value={draft}
            onInput={(e) => talk.patch({ draft: e.currentTarget.value })}
            onKeyDown={(e) => {
              if (e.key === 'Escape') stop();
              if (e.key !== 'Enter' || e.shiftKey || e.isComposing) return;
              e.preventDefault();
              void send();
            }}
          />
        )}
      </Field>
      <div class="row row-end">
        {writing !== null ? (
          <Button icon="stop" onClick={stop}>
            Stop
          </Button>
        ) : (
          <Button kind="primary" icon="arrow" submit disabled={draft.trim() === ''}>
            Send
          </Button>
        )}
      </div>
    </form>
  );
}

export function TalkCard() {
  const opened = useStore(models, (m) => m.opened);
  const { turns, writing, problem } = useStore(talk);
  if (!opened) return null;
  return (
    <Card title="Conversation" aside={opened.name}>
      {(turns.length > 0 || writing !== null) && <Turns />}
      {problem !== '' && (
        <Notice kind="error">
          <p>{problem}</p>
        </Notice>
      )}
      <Composer />
      <Measured />
      {turns.length > 0 && (
        <div class="row">
          {turns.at(-1)?.role === 'assistant' && writing === null && (
            <Button icon="reset" onClick={() => void regenerate()}>
              Answer anew
            </Button>
          )}
          <Button icon="close" onClick={reset}>
            New conversation
          </Button>
        </div>
      )}
    </Card>
  );
}
