// SPDX-License-Identifier: Apache-2.0
/** talks_card.tsx - the conversations that are kept: a list to search, names, export and import. */
import { useState } from 'preact/hooks';
import { Button, IconButton } from '../parts/button';
import { Card } from '../parts/card';
import { Field } from '../parts/fields';
import { P } from '../parts/term';
import { Wait } from '../parts/wait';
import { saveAs } from '../state/files';
import { useWaiting } from '../state/waiting';
import { useStore } from '../store';
import { FileButton } from '../text/text_box';
import { exported, importTalks, openTalk, removeTalk, renameTalk, talk, talks } from './talk';
import { asJson, asMarkdown, matches, type TalkDoc, talkName } from './talk_doc';

/** Without this many a search is no help. */
const SEARCHED = 4;

export function TalksCard() {
  const list = useStore(talks);
  const [search, setSearch] = useState('');
  const [waiting, begin] = useWaiting();
  const shown = (list ?? []).filter((doc) => matches(doc, search));
  return (
    <Card title="Conversations" aside={list && list.length > 0 ? `${list.length} kept here` : ''}>
      <div class="row">
        <FileButton
          label="Import"
          disabled={waiting !== null}
          accept=".json,.md,.markdown,application/json,text/markdown"
          onFiles={(files) => begin('Importing', (signal) => importTalks(files, signal))}
        />
        {list !== null && list.length > 0 && (
          <Button icon="download" onClick={() => exportJson(list)}>
            Export all
          </Button>
        )}
      </div>
      {waiting && <Wait words={waiting.words} onCancel={waiting.cancel} />}
      {list !== null && list.length >= SEARCHED && (
        <Field label="Search">
          {({ id }) => (
            <input
              id={id}
              class="input"
              type="search"
              value={search}
              onInput={(e) => setSearch(e.currentTarget.value)}
            />
          )}
        </Field>
      )}
      {list === null && <P class="quiet">Looking for conversations…</P>}
      {list?.length === 0 && (
        <P class="quiet">What you and a model say stays here, through reloads and other models.</P>
      )}
      {search !== '' && shown.length === 0 && <P class="quiet">No conversation has these words.</P>}
      <ul class="chat-talks" aria-label="Conversations">
        {shown.map((doc) => (
          <Item key={doc.id} doc={doc} />
        ))}
      </ul>
    </Card>
  );
}

function exportJson(docs: readonly TalkDoc[]): void {
  saveAs(new Blob([asJson(docs)], { type: 'application/json' }), 'tinygpt-conversations.json');
  exported(docs);
}

function exportMarkdown(doc: TalkDoc): void {
  const name = talkName(doc).replace(/[^\p{L}\p{N}]+/gu, '-').slice(0, 40) || 'conversation';
  saveAs(new Blob([asMarkdown(doc)], { type: 'text/markdown' }), `${name}.md`);
  exported([doc]);
}

function Item({ doc }: { doc: TalkDoc }) {
  const open = useStore(talk, (t) => t.id === doc.id);
  const [naming, setNaming] = useState<string | null>(null);
  const name = talkName(doc);
  if (naming !== null) {
    return (
      <li>
        <form
          class="chat-address"
          onSubmit={(e) => {
            e.preventDefault();
            setNaming(null);
            void renameTalk(doc, naming);
          }}
        >
          <Field label="Name">
            {({ id }) => (
              <input
                id={id}
                class="input"
                type="text"
                value={naming}
                onInput={(e) => setNaming(e.currentTarget.value)}
              />
            )}
          </Field>
          <Button submit>Save</Button>
        </form>
      </li>
    );
  }
  return (
    <li>
      <button
        class={open ? 'chat-talk chat-talk-open' : 'chat-talk'}
        type="button"
        aria-current={open ? 'true' : undefined}
        onClick={() => openTalk(doc)}
      >
        <span>{name}</span>
        <span class="quiet">{when(doc.changed)}</span>
      </button>
      <div class="chat-talk-tools">
        <IconButton icon="pen" label={`Rename ${name}`} onClick={() => setNaming(name)} />
        <IconButton
          icon="download"
          label={`Export ${name} as Markdown`}
          onClick={() => exportMarkdown(doc)}
        />
        <IconButton icon="trash" label={`Delete ${name}`} onClick={() => void removeTalk(doc)} />
      </div>
    </li>
  );
}

function when(at: number): string {
  const date = new Date(at);
  const today = date.toDateString() === new Date().toDateString();
  return today
    ? date.toLocaleTimeString('en-GB', { timeStyle: 'short' })
    : date.toLocaleDateString('en-GB', { dateStyle: 'medium' });
}
