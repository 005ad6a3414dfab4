// SPDX-License-Identifier: Apache-2.0
/**
 * notes_state.ts - the notes that are searched, with the vectors of one model: read as files come,
 * stopped and gone on with, and read anew where another model is open. They are kept nowhere.
 */
import { plainError } from '../plain_error';
import { Store } from '../store';
import { containerOf, encodingOf, previewOf, SNIFF_BYTES } from '../text/sniff';
import { models, type Opened, vectorsOf } from './models';
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
export const notes = new Store<Notes>(NONE);

let stopped = false;

/** The vectors of the next passages, if the same model is open then; false at the end. */
async function readSome(opened: Opened): Promise<boolean> {
  const { list, vectors } = notes.get();
  const some = list.slice(vectors.length, vectors.length + AT_ONCE);
  if (some.length === 0) return false;
  const here = () => models.get().opened === opened;
  const made = await vectorsOf(some.map(({ text }) => text)).catch((e: unknown) => {
    if (here()) throw e;
    return [];
  });
  if (here()) notes.patch({ vectors: [...vectors, ...made] });
  return true;
}

/**
 * Makes the vectors that are lacking, which are all of them where another model is open than the one
 * that made those that are there. What was not read when it ends is still in the list.
 */
export async function read(): Promise<void> {
  if (notes.get().reading) return;
  stopped = false;
  notes.patch({ reading: true, problem: '' });
  let known: Opened | null = null;
  try {
    for (let more = true; more && !stopped;) {
      const { opened } = models.get();
      if (!opened) break;
      if (opened !== known) {
        const of = opened.key;
        if (notes.get().of !== of) notes.patch({ of, vectors: [], asked: '', hits: [] });
        known = opened;
      }
      more = await readSome(opened);
    }
  } catch (e) {
    notes.patch({ problem: plainError(e) });
  } finally {
    notes.patch({ reading: false });
  }
}

export function stopReading(): void {
  stopped = true;
}

export function forgetNotes(): void {
  notes.set(NONE);
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

export async function add(files: readonly File[]): Promise<void> {
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

export async function search(question: string): Promise<void> {
  try {
    const { of } = notes.get();
    const [vector] = await vectorsOf([question]);
    const { list, vectors, of: now } = notes.get();
    if (!vector || now !== of) return;
    const hits = nearestTo(vector, list, vectors, MOST_HITS);
    notes.patch({ asked: question, hits, problem: '' });
  } catch (e) {
    notes.patch({ problem: plainError(e) });
  }
}
