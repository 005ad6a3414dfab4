// SPDX-License-Identifier: Apache-2.0
/**
 * talk_pane.tsx - the conversation: turns, the answer as it is written, what is typed, and a line of
 * what was measured.
 */
import { Fragment } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { AnswerStats } from '../../lib/types';
import { count, milliseconds } from '../format';
import { Button, IconButton } from '../parts/button';
import { Field } from '../parts/fields';
import { Notice } from '../parts/notice';
import { P } from '../parts/term';
import { Wait } from '../parts/wait';
import { keys } from '../shortcuts';
import { useStore } from '../store';
import { copyText } from './copy';
import { longerContext } from './forecast';
import { Markdown } from './markdown';
import { drawer, openDrawer } from './drawer';
import { cancel, models, openLonger, openStored } from './models';
import { TextInstead } from './models_card';
import {
  branch,
  editTurn,
  goOn,
  otherAnswer,
  regenerate,
  send,
  stop,
  talk,
  type,
} from './talk';
import type { SaidTurn } from './talk_doc';

const WHO: Record<SaidTurn['role'], string> = { user: 'You', assistant: 'Model' };

const ENDS: Record<AnswerStats['end'], string> = {
  end: 'Done.',
  length: 'As long as an answer may be.',
  full: 'The context is full: the answer ends here.',
  stopped: 'Stopped.',
};

function Said({ turn, at, writing }: { turn: SaidTurn; at: number; writing?: boolean }) {
  const [editing, setEditing] = useState(false);
  if (editing) return <Edit turn={turn} at={at} onDone={() => setEditing(false)} />;
  const { role, text, thinking, calls } = turn;
  return (
    <li class={`chat-turn chat-${role}`}>
      <p class="chat-who">{WHO[role]}</p>
      {thinking && (
        <Folded summary={writing && !text ? 'Thinking…' : `Thought: ${words(thinking)}`}>
          {thinking}
        </Folded>
      )}
      <div class={role === 'assistant' ? 'chat-text chat-md' : 'chat-text'}>
        {role === 'assistant' ? <Markdown text={text} /> : text}
        {writing && <span class="caret" aria-hidden="true" />}
      </div>
      {calls && <Folded summary="Calls a tool">{calls}</Folded>}
      {!writing && <Tools turn={turn} at={at} onEdit={() => setEditing(true)} />}
    </li>
  );
}

function words(text: string): string {
  const n = text.trim().split(/\s+/).length;
  return n === 1 ? '1 word' : `${count(n)} words`;
}

/** What an answer has besides what it says: one click away. */
function Folded({ summary, children }: { summary: string; children: string }) {
  return (
    <details class="chat-folded">
      <summary>{summary}</summary>
      <p class="chat-text">{children}</p>
    </details>
  );
}

function Tools({ turn, at, onEdit }: { turn: SaidTurn; at: number; onEdit: () => void }) {
  const busy = useStore(talk, (t) => t.writing !== null);
  const last = useStore(talk, (t) => t.turns.length - 1 === at);
  const open = useStore(models, (m) => m.opened !== null);
  const others = turn.others?.length ?? 0;
  return (
    <div class="chat-tools">
      <IconButton icon="copy" label="Copy" onClick={() => void copyText(turn.text)} />
      {turn.role === 'user' && open && !busy && (
        <IconButton icon="pen" label="Edit this turn" onClick={onEdit} />
      )}
      {turn.role === 'assistant' && !busy && (
        <>
          {last && open && (
            <IconButton icon="reset" label="Answer anew" onClick={() => void regenerate()} />
          )}
          <IconButton icon="link" label="A new conversation from here" onClick={() => branch(at)} />
          {last && open && turn.cut && turn.text !== '' && (
            <Button icon="play" onClick={() => void goOn()}>
              Go on
            </Button>
          )}
        </>
      )}
      {others > 0 && !busy && (
        <Button kind="plain" onClick={() => otherAnswer(at)}>
          Other answer ({others + 1})
        </Button>
      )}
    </div>
  );
}

/** A turn of the person's, said otherwise; what followed it is kept as a conversation of its own. */
function Edit({ turn, at, onDone }: { turn: SaidTurn; at: number; onDone: () => void }) {
  const [text, setText] = useState(turn.text);
  return (
    <li class="chat-turn">
      <form
        class="stack-tight"
        onSubmit={(e) => {
          e.preventDefault();
          onDone();
          void editTurn(at, text);
        }}
      >
        <Field label="Say it otherwise" help="What followed is kept as a conversation of its own.">
          {({ id, describedBy }) => (
            <textarea
              id={id}
              class="input"
              rows={3}
              aria-describedby={describedBy}
              value={text}
              onInput={(e) => setText(e.currentTarget.value)}
            />
          )}
        </Field>
        <div class="row row-end">
          <Button onClick={onDone}>Leave it</Button>
          <Button kind="primary" submit disabled={text.trim() === ''}>
            Send it
          </Button>
        </div>
      </form>
    </li>
  );
}

/** The newest line stays in sight, unless a person has scrolled up. */
function Turns() {
  const { turns, writing, dropped } = useStore(talk);
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
        <Fragment key={i}>
          {i === dropped && dropped > 0 && <Dropped n={dropped} />}
          <Said turn={turn} at={i} />
        </Fragment>
      ))}
      {writing !== null && (
        <Said turn={{ role: 'assistant', ...writing }} at={turns.length} writing />
      )}
    </ol>
  );
}

/** What stands above this line was not read for the last answer. */
function Dropped({ n }: { n: number }) {
  const longer = useStore(models, (m) => longerContext(m.opened?.facts, m.opened?.capacity ?? 0));
  const busy = useStore(models, (m) => m.busy !== '');
  const writing = useStore(talk, (t) => t.writing !== null);
  return (
    <li class="chat-dropped">
      <P class="quiet" role="status">
        {n === 1 ? 'The turn above does' : `The ${n} turns above do`} not fit into the context any
        more, and {n === 1 ? 'is' : 'are'} not read.
      </P>
      {longer > 0 && (
        <Button disabled={busy || writing} onClick={() => void openLonger(longer)}>
          Load it with {count(longer)} tokens
        </Button>
      )}
    </li>
  );
}

/** One quiet line: how the last answer ended, how fast it came, and how full the context is. */
export function Measured() {
  const { stats, writing } = useStore(talk);
  const read = stats ? stats.promptTokens - stats.reusedTokens : 0;
  const facts = stats && writing === null
    ? [
        stats.newTokens > 1 ? `${stats.tokPerS.toFixed(1)} tokens a second` : '',
        `first after ${milliseconds(stats.firstTokenMs)} (${count(read)} read)`,
        `context ${count(stats.context)} of ${count(stats.capacity)}`,
      ].filter((fact) => fact !== '')
    : [];
  return (
    <div class="chat-measured">
      <P role="status">{writing !== null ? 'Writing…' : stats ? ENDS[stats.end] : ''}</P>
      <P class="number">{facts.join(' · ')}</P>
    </div>
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
      <textarea
        class="input chat-draft"
        rows={2}
        aria-label="Your turn"
        placeholder="Ask something"
        title="Enter sends, Shift + Enter begins a line, Escape stops."
        value={draft}
        onInput={(e) => type(e.currentTarget.value)}
        onKeyDown={keys('chat', { send: () => void send(), stop })}
      />
      {writing !== null ? (
        <Button icon="stop" onClick={stop}>
          Stop
        </Button>
      ) : (
        <Button kind="primary" icon="arrow" submit disabled={draft.trim() === ''}>
          Send
        </Button>
      )}
    </form>
  );
}

/** Instead of the composer, while no model is open. */
function LoadAgain() {
  const model = useStore(talk, (t) => t.model);
  const { list, busy } = useStore(models);
  const here = list?.find((m) => m.whole && m.id === model?.stored);
  if (busy !== '') {
    return (
      <div role="status">
        <Wait words={busy} onCancel={cancel} />
      </div>
    );
  }
  return (
    <div class="row">
      {here && (
        <Button kind="primary" icon="play" onClick={() => void openStored(here.id)}>
          Load {here.name}
        </Button>
      )}
      <Button icon="layers" onClick={() => openDrawer('models')}>
        {here ? 'Another model' : 'Choose a model to go on'}
      </Button>
    </div>
  );
}

export function TalkPane() {
  const opened = useStore(models, (m) => m.opened);
  const { turns, writing, problem } = useStore(talk);
  const trouble = useStore(models, (m) => m.problem);
  const shown = useStore(drawer, (d) => d.open === 'models') ? '' : trouble;
  return (
    <div class="chat-pane">
      {turns.length > 0 || writing !== null ? (
        <Turns />
      ) : (
        <P class="chat-empty muted">
          Say something. It stays on this machine: the model runs in this tab.
        </P>
      )}
      {(problem || shown) !== '' && (
        <Notice kind="error">
          <P>{problem || shown}</P>
          {problem === '' && <TextInstead />}
        </Notice>
      )}
      {opened ? <Composer /> : <LoadAgain />}
      <Measured />
    </div>
  );
}
