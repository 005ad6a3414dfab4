// SPDX-License-Identifier: Apache-2.0
/**
 * source.ts - where a model's bytes come from: a file that a person picked, or an address. Both can
 * be read from any byte on, so that a copy that was broken off goes on where it stopped.
 */
import { StoreError } from './errors.js';

/** A source from some byte on. */
export interface Opened {
  /** Where the pieces begin: what was asked for, or 0 where a host knows only whole files. */
  from: number;
  /** Up to where: all of it, or the end that was asked for; 0 if that is not known. */
  bytes: number;
  /** Differs when the source is another one than before; '' where nothing tells. */
  stamp: string;
  pieces: AsyncIterable<Uint8Array>;
  /** Nobody wants the rest of it. */
  drop(): void;
}

export interface Source {
  /** What it is called. */
  name: string;
  /** '' of a picked file. */
  address: string;
  /** The bytes from `from` on, up to `end` where that is told and the host can: else there are more. */
  open(from: number, signal: AbortSignal, end?: number): Promise<Opened>;
}

async function* piecesOf(
  stream: ReadableStream<Uint8Array>, broken: (why: string) => Error, signal: AbortSignal,
): AsyncGenerator<Uint8Array, void, void> {
  const reader = stream.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read().catch((e: unknown) => {
        signal.throwIfAborted();
        throw broken(e instanceof Error ? e.message : String(e));
      });
      if (done) return;
      yield value;
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

export function fileSource(file: File): Source {
  const broken = (why: string) =>
    new StoreError(
      'SOURCE',
      `${file.name} can no longer be read (${why}). If it was moved or changed, choose it again.`,
    );
  return {
    name: file.name,
    address: '',
    async open(from, signal) {
      const stream = file.slice(from).stream();
      return {
        from,
        bytes: file.size,
        stamp: `${file.size} ${file.lastModified}`,
        pieces: piecesOf(stream, broken, signal),
        drop: () => void stream.cancel().catch(() => {}),
      };
    },
  };
}

function nameOf(url: URL): string {
  const last = url.pathname.split('/').pop() ?? '';
  try {
    return decodeURIComponent(last) || url.hostname;
  } catch {
    return last;
  }
}

/** Such as a model whose licence has to be accepted there: the page has no account anywhere. */
const NOT_ALL =
  'does not give this file to everybody. If it gives it to you, download it there and open the file ' +
  'here';

const STATUSES: Record<number, string> = {
  401: NOT_ALL,
  403: NOT_ALL,
  404: 'has nothing at this address',
  410: 'has nothing at this address any more',
  429: 'asks for patience: try again in a minute',
};

/** A host need not tell a file's size and age: what is not told is not compared. */
function stampOf(answer: Response): string {
  return answer.headers.get('etag') ?? answer.headers.get('last-modified') ?? '';
}

export function addressSource(url: URL, get: typeof fetch = fetch): Source {
  const broken = (why: string) =>
    new StoreError(
      'SOURCE',
      `The connection to ${url.host} broke (${why}). What came so far is kept: asked for again, it ` +
        'goes on from there.',
    );
  return {
    name: nameOf(url),
    address: url.href,
    async open(from, signal, end) {
      const part = from > 0 || end !== undefined;
      const last = end === undefined ? '' : end - 1;
      const headers: Record<string, string> = part ? { Range: `bytes=${from}-${last}` } : {};
      let answer: Response;
      try {
        answer = await get(url, {
          headers, signal, mode: 'cors', credentials: 'omit', referrerPolicy: 'no-referrer',
        });
      } catch (e) {
        signal.throwIfAborted();
        /* The browser does not tell a page which of these it was. */
        const open = url.protocol === 'http:' ? ', or this page may read https addresses alone' : '';
        throw new StoreError(
          'SOURCE',
          `${url.host} could not be read. Either it cannot be reached, or it does not let other ` +
            `pages read its files (CORS)${open}. Download the file yourself and open it here.` +
            (e instanceof TypeError ? '' : ` (${String(e)})`),
        );
      }
      /* Asked for what lies behind the end: the copy is as long as the file, or longer. */
      if (answer.status === 416 && part) return this.open(0, signal);
      if (!answer.ok || !answer.body) {
        const words = STATUSES[answer.status] ?? 'refused';
        throw new StoreError('SOURCE', `${url.host} ${words} (${answer.status}).`);
      }
      const begins = answer.status === 206 ? from : 0;
      const length = Number(answer.headers.get('content-length') ?? 0);
      /* What is compressed on its way is shorter than the file. */
      const coded = answer.headers.get('content-encoding') ?? '';
      const { body } = answer;
      return {
        from: begins,
        bytes: length > 0 && coded === '' ? begins + length : 0,
        stamp: stampOf(answer),
        pieces: piecesOf(body, broken, signal),
        drop: () => void body.cancel().catch(() => {}),
      };
    },
  };
}
