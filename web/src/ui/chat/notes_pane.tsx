// SPDX-License-Identifier: Apache-2.0
/**
 * notes_pane.tsx - Search my notes: with a model that makes vectors of texts, the passages of one's
 * own files that are nearest to a question by what they mean. The files are read here, and kept
 * nowhere.
 */
import { useEffect, useState } from 'preact/hooks';
import { count } from '../format';
import { Button } from '../parts/button';
import { Notice } from '../parts/notice';
import { P } from '../parts/term';
import { Wait } from '../parts/wait';
import { plainError } from '../plain_error';
import { Store, useStore } from '../store';
import { containerOf, encodingOf, previewOf, SNIFF_BYTES } from '../text/sniff';
import { FileButton } from '../text/text_box';
import { keyOf, models, vectorsOf } from './models';
import { type Hit, nearestTo, type Passage, passages } from './notes';

const MOST_HITS = 8;
/** So many texts go to the engine at once: between two of these a stop is heard. */
const AT_ONCE = 16;

interface Notes {
  list: readonly Passage[];
  /** Of the first passages; the others are still to be read. */
  vectors: readonly Float32Array[];
  /** The model that made them: no other one's can be compared with them. */
  of: string;
  reading: boolean;
  /** What was asked, and what is nearest to it. */
  asked: string;
  hits: readonly Hit[];
  problem: string;
}

const NONE: Notes = {
  list: [], vectors: [], of: '', reading: false, asked: '', hits: [], problem: '',
};
const notes = new Store<Notes>(NONE);

let stopped = false;

/** Makes the vectors that are lacking, which are all of them where another model is open now. */
async function read(): Promise<void> {
  const { opened } = models.get();
  if (!opened || notes.get().reading) return;
  const of = keyOf(opened);
  if (notes.get().of !== of) notes.patch({ of, vectors: [], asked: '', hits: [] });
  stopped = false;
  notes.patch({ reading: true, problem: '' });
  try {
    while (!stopped) {
      const { list, vectors } = notes.get();
      const some = list.slice(vectors.length, vectors.length + AT_ONCE);
      if (some.length === 0) break;
      const made = await vectorsOf(some.map(({ text }) => text));
      notes.patch({ vectors: [...vectors, ...made] });
    }
    const { list, vectors } = notes.get();
    notes.patch({ list: list.slice(0, vectors.length) });
  } catch (e) {
    notes.patch({ problem: plainError(e) });
  } finally {
    notes.patch({ reading: false });
  }
}

/** All of a file in whatever a text is encoded in; what is no text is refused. */
async function textOf(file: File): Promise<string> {
  const all = new Uint8Array(await file.arrayBuffer());
  const head = all.subarray(0, SNIFF_BYTES);
  const encoding = encodingOf(head);
  const what = containerOf(head) || (encoding === 'not a text' ? 'something else' : '');
  if (what !== '') throw new Error(`${file.name} is ${what}, not a plain text.`);
  return previewOf(all, encoding);
}

async function add(files: readonly File[]): Promise<void> {
  let problem = '';
  for (const file of files) {
    try {
      const more = passages(file.name, await textOf(file));
      notes.patch({ list: [...notes.get().list, ...more] });
    } catch (e) {
      problem = plainError(e);
    }
  }
  await read();
  if (problem !== '') notes.patch({ problem });
}

async function search(question: string): Promise<void> {
  try {
    const [vector] = await vectorsOf([question]);
    const { list, vectors } = notes.get();
    if (!vector) return;
    const hits = nearestTo(vector, list, vectors, MOST_HITS);
    notes.patch({ asked: question, hits, problem: '' });
  } catch (e) {
    notes.patch({ problem: plainError(e) });
  }
}

export function NotesPane() {
  const { list, vectors, reading, asked, hits, problem } = useStore(notes);
  const model = useStore(models, (m) => m.opened && keyOf(m.opened));
  const [question, setQuestion] = useState('');
  useEffect(() => void read(), [model]);
  const files = new Set(list.map(({ from }) => from)).size;
  return (
    <div class="chat-pane">
      <P class="muted small">
        This model does not write; it tells which texts mean the same. Take text files from this
        machine, and ask in words of your own. They are read here, and kept nowhere.
      </P>
      <div class="row">
        <FileButton
          label="Add notes"
          accept=".txt,.md,.markdown,.csv,.html,text/*"
          onFiles={(picked) => void add(picked)}
        />
        {list.length > 0 && !reading && <Button onClick={() => notes.set(NONE)}>Forget them</Button>}
        <P class="quiet" role="status">
          {vectors.length > 0 &&
            `${count(vectors.length)} passages of ${files === 1 ? 'one file' : `${count(files)} files`}`}
        </P>
      </div>
      {reading && list.length > 0 && (
        <Wait
          words="Reading"
          share={vectors.length / list.length}
          onCancel={() => (stopped = true)}
        />
      )}
      {problem !== '' && (
        <Notice kind="error">
          <P>{problem}</P>
        </Notice>
      )}
      <p class="quiet" role="status">
        {asked !== '' && `Nearest to “${asked}”`}
      </p>
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
        <Button kind="primary" icon="arrow" submit disabled={vectors.length === 0 || question.trim() === ''}>
          Search
        </Button>
      </form>
    </div>
  );
}
