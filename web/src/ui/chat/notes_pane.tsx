// SPDX-License-Identifier: Apache-2.0
/**
 * notes_pane.tsx - Search my notes: with a model that makes vectors of texts, the passages of one's
 * own files that are nearest to a question by what they mean.
 */
import { useEffect, useState } from 'preact/hooks';
import { count } from '../format';
import { Button } from '../parts/button';
import { Notice } from '../parts/notice';
import { P } from '../parts/term';
import { Wait } from '../parts/wait';
import { useStore } from '../store';
import { FileButton } from '../text/text_box';
import { models } from './models';
import { add, forgetNotes, notes, read, search, stopReading } from './notes_state';

/** How much there is, and how much of it can be found. */
function amount(read: number, all: number, files: number): string {
  if (all === 0) return '';
  const of = files === 1 ? 'one file' : `${count(files)} files`;
  if (read === all) return `${count(all)} ${all === 1 ? 'passage' : 'passages'} of ${of}`;
  return `${count(read)} of ${count(all)} passages of ${of} are read and can be found`;
}

export function NotesPane() {
  const { list, vectors, reading, asked, hits, problem } = useStore(notes);
  const model = useStore(models, (m) => m.opened);
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
        {list.length > 0 && !reading && <Button onClick={forgetNotes}>Forget them</Button>}
        {vectors.length < list.length && !reading && (
          <Button onClick={() => void read()}>Read the others</Button>
        )}
        <P class="quiet" role="status">
          {!reading && amount(vectors.length, list.length, files)}
        </P>
      </div>
      {reading && list.length > 0 && (
        <Wait
          words="Reading"
          share={vectors.length / list.length}
          onCancel={stopReading}
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
