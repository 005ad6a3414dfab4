// SPDX-License-Identifier: Apache-2.0
/**
 * notes_pane.tsx - Search my notes: with a model that makes vectors of texts, the passages of one's
 * own files that are nearest to a question by what they mean. The files are read here, and kept
 * nowhere.
 */
import { useState } from 'preact/hooks';
import { count } from '../format';
import { Button } from '../parts/button';
import { Notice } from '../parts/notice';
import { P } from '../parts/term';
import { Wait } from '../parts/wait';
import { plainError } from '../plain_error';
import { Store, useStore } from '../store';
import { FileButton } from '../text/text_box';
import { vectorsOf } from './models';
import { type Hit, nearestTo, type Passage, passages } from './notes';

const MOST_HITS = 8;
/** So many texts go to the engine at once: between two of these a stop is heard. */
const AT_ONCE = 16;

interface Notes {
  list: readonly Passage[];
  vectors: readonly Float32Array[];
  /** How many passages wait for their vectors; 0: none. */
  waiting: number;
  hits: readonly Hit[];
  problem: string;
}

const NONE: Notes = { list: [], vectors: [], waiting: 0, hits: [], problem: '' };
const notes = new Store<Notes>(NONE);

let stopped = false;

async function add(files: readonly File[]): Promise<void> {
  stopped = false;
  try {
    for (const file of files) {
      const all = passages(file.name, await file.text());
      for (let at = 0; at < all.length && !stopped; at += AT_ONCE) {
        notes.patch({ waiting: all.length - at, problem: '' });
        const some = all.slice(at, at + AT_ONCE);
        const made = await vectorsOf(some.map(({ text }) => text));
        const { list, vectors } = notes.get();
        notes.patch({ list: [...list, ...some], vectors: [...vectors, ...made] });
      }
    }
  } catch (e) {
    notes.patch({ problem: plainError(e) });
  } finally {
    notes.patch({ waiting: 0 });
  }
}

async function search(question: string): Promise<void> {
  try {
    const [vector] = await vectorsOf([question]);
    const { list, vectors } = notes.get();
    if (vector) notes.patch({ hits: nearestTo(vector, list, vectors, MOST_HITS), problem: '' });
  } catch (e) {
    notes.patch({ problem: plainError(e) });
  }
}

export function NotesPane() {
  const { list, waiting, hits, problem } = useStore(notes);
  const [question, setQuestion] = useState('');
  const files = new Set(list.map(({ from }) => from)).size;
  return (
    <div class="chat-pane">
      <P class="muted small">
        Search my notes: this model does not write; it tells which texts mean the same. Take text
        files from this machine, and ask in words of your own.
      </P>
      <div class="row">
        <FileButton
          label="Add notes"
          accept=".txt,.md,.markdown,.csv,.html,text/*"
          onFiles={(picked) => void add(picked)}
        />
        {list.length > 0 && waiting === 0 && <Button onClick={() => notes.set(NONE)}>Forget them</Button>}
        <P class="quiet" role="status">
          {list.length > 0 &&
            `${count(list.length)} passages of ${files === 1 ? 'one file' : `${count(files)} files`}`}
        </P>
      </div>
      {waiting > 0 && (
        <Wait
          words="Reading"
          share={list.length / (list.length + waiting)}
          onCancel={() => (stopped = true)}
        />
      )}
      {problem !== '' && (
        <Notice kind="error">
          <P>{problem}</P>
        </Notice>
      )}
      <ol class="chat-turns" aria-label="What was found" tabIndex={0}>
        {hits.map(({ passage, near }, i) => (
          <li key={i} class="chat-hit">
            <p class="chat-who">
              {passage.from}, {Math.round(Math.max(near, 0) * 100)} of 100
            </p>
            <p class="chat-text">{passage.text}</p>
          </li>
        ))}
      </ol>
      <form
        class="chat-composer"
        onSubmit={(e) => {
          e.preventDefault();
          if (question.trim() !== '') void search(question);
        }}
      >
        <input
          class="input chat-draft"
          type="search"
          aria-label="Question"
          placeholder="What did I write about …"
          value={question}
          onInput={(e) => setQuestion(e.currentTarget.value)}
        />
        <Button kind="primary" icon="arrow" submit disabled={list.length === 0 || question.trim() === ''}>
          Search
        </Button>
      </form>
    </div>
  );
}
