// SPDX-License-Identifier: Apache-2.0
/** talk_card.tsx - the conversation: turns, the answer as it is written, and what was measured. */
import { Fragment } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { AnswerStats } from '../../lib/types';
import { count, milliseconds } from '../format';
import { Button, IconButton } from '../parts/button';
import { Card } from '../parts/card';
import { Field } from '../parts/fields';
import { Notice } from '../parts/notice';
import { Bar, Stat } from '../parts/stat';
import { useStore } from '../store';
import { copyText } from './copy';
import { longerContext } from './forecast';
import { Markdown } from './markdown';
import { models, openLonger, openStored } from './models';
import { branch, editTurn, otherAnswer, regenerate, send, stop, talk, type } from './talk';
import { type SaidTurn, talkName } from './talk_doc';

const WHO: Record<SaidTurn['role'], string> = { user: 'You', assistant: 'Model' };

const ENDS: Record<AnswerStats['end'], string> = {
  end: 'Done.',
  length: 'Long enough.',
  full: 'The context is full: the answer ends here.',
  stopped: 'Stopped.',
};

function Said({ turn, at, writing }: { turn: SaidTurn; at: number; writing?: boolean }) {
  const [editing, setEditing] = useState(false);
  if (editing) return <Edit turn={turn} at={at} onDone={() => setEditing(false)} />;
  return (
    <li class={`chat-turn chat-${turn.role}`}>
      <p class="chat-who">{WHO[turn.role]}</p>
      <div class={turn.role === 'assistant' ? 'chat-text chat-md' : 'chat-text'}>
        {turn.role === 'assistant' ? <Markdown text={turn.text} /> : turn.text}
        {writing && <span class="caret" aria-hidden="true" />}
      </div>
      {!writing && <Tools turn={turn} at={at} onEdit={() => setEditing(true)} />}
    </li>
  );
}

function Tools({ turn, at, onEdit }: { turn: SaidTurn; at: number; onEdit: () => void }) {
  const busy = useStore(talk, (t) => t.writing !== null);
  const open = useStore(models, (m) => m.opened !== null);
  const others = turn.others?.length ?? 0;
  return (
    <div class="chat-tools">
      <IconButton icon="copy" label="Copy" onClick={() => void copyText(turn.text)} />
      {turn.role === 'user' && open && !busy && (
        <IconButton icon="pen" label="Edit this turn" onClick={onEdit} />
      )}
      {turn.role === 'assistant' && !busy && (
        <IconButton
          icon="link"
          label="A new conversation from here"
          onClick={() => branch(at)}
        />
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
        <Said turn={{ role: 'assistant', text: writing }} at={turns.length} writing />
      )}
    </ol>
  );
}

/** What stands above this line was not read for the last answer. */
function Dropped({ n }: { n: number }) {
  const longer = useStore(models, (m) => longerContext(m.chosen?.facts, m.opened?.capacity ?? 0));
  const busy = useStore(models, (m) => m.busy !== '');
  return (
    <li class="chat-dropped">
      <p class="quiet" role="status">
        {n === 1 ? 'The turn above does' : `The ${n} turns above do`} not fit into the context any
        more, and {n === 1 ? 'is' : 'are'} not read.
      </p>
      {longer > 0 && (
        <Button disabled={busy} onClick={() => void openLonger(longer)}>
          Load it with {count(longer)} tokens
        </Button>
      )}
    </li>
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
            onInput={(e) => type(e.currentTarget.value)}
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

/** Instead of the composer, while no model is open. */
function LoadAgain() {
  const model = useStore(talk, (t) => t.model);
  const { list, busy } = useStore(models);
  const here = list?.find((m) => m.whole && m.id === model?.stored);
  if (busy !== '') return null;
  return here ? (
    <div class="row">
      <Button kind="primary" icon="play" onClick={() => void openStored(here.id)}>
        Load {here.name}
      </Button>
    </div>
  ) : (
    <p class="quiet">Choose a model to go on{model ? `; ${model.name} answered last` : ''}.</p>
  );
}

export function TalkCard() {
  const opened = useStore(models, (m) => m.opened);
  const { name, draft, turns, writing, problem, model } = useStore(talk);
  if (!opened && turns.length === 0) return null;
  return (
    <Card
      title={turns.length > 0 ? talkName({ name, turns, draft }) : 'Conversation'}
      aside={opened?.name ?? model?.name ?? ''}
      class="chat-talking"
    >
      {(turns.length > 0 || writing !== null) && <Turns />}
      {problem !== '' && (
        <Notice kind="error">
          <p>{problem}</p>
        </Notice>
      )}
      {opened ? <Composer /> : <LoadAgain />}
      <Measured />
      {turns.at(-1)?.role === 'assistant' && writing === null && opened && (
        <div class="row">
          <Button icon="reset" onClick={() => void regenerate()}>
            Answer anew
          </Button>
        </div>
      )}
    </Card>
  );
}
