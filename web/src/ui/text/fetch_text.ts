// SPDX-License-Identifier: Apache-2.0
/**
 * fetch_text.ts - a text from an address that a person typed. Everything that usually goes wrong
 * has a sentence: what happened, and what to do instead.
 */
import { bytes as size } from '../format';
import { looksLikeHtml } from './sniff';

/** A failure with a sentence for the page. */
export class FetchProblem extends Error {}

/** A person's idea of an address as one that can be fetched. */
export function cleanAddress(typed: string, pageIsSecure: boolean): URL {
  const text = typed.trim();
  if (text === '') throw new FetchProblem('Type an address, such as https://…/book.txt');
  let url: URL;
  try {
    url = new URL(/^[a-z][a-z0-9+.-]*:/i.test(text) ? text : `https://${text}`);
  } catch {
    throw new FetchProblem(`"${text.slice(0, 60)}" is not an address.`);
  }
  if (url.protocol === 'file:') {
    throw new FetchProblem('A page may not read files by their address. Use "Open files" instead.');
  }
  if (url.protocol !== 'https:' && url.protocol !== 'http:') {
    throw new FetchProblem(`Addresses start with https://, not with ${url.protocol}`);
  }
  const local = ['localhost', '127.0.0.1', '[::1]'].includes(url.hostname);
  if (url.protocol === 'http:' && pageIsSecure && !local) {
    throw new FetchProblem('This page only fetches over https. Try the address with https://');
  }
  // The page of a file on GitHub is HTML, and is not open to other sites; the file itself is.
  const github = /^\/([^/]+)\/([^/]+)\/blob\/(.+)$/.exec(url.pathname);
  if (url.hostname === 'github.com' && github) {
    return new URL(`https://raw.githubusercontent.com/${github[1]}/${github[2]}/${github[3]}`);
  }
  return url;
}

export interface FetchOptions {
  signal?: AbortSignal;
  onProgress?: (received: number, total: number) => void;
  /** For tests. */
  fetch?: typeof fetch;
}

export async function fetchText(url: URL, o: FetchOptions = {}): Promise<Blob> {
  const get = o.fetch ?? fetch;
  let answer: Response;
  try {
    answer = await get(url, {
      mode: 'cors',
      credentials: 'omit',
      referrerPolicy: 'no-referrer',
      signal: o.signal ?? null,
    });
  } catch (e) {
    if (o.signal?.aborted) throw new FetchProblem('Stopped.');
    // The browser does not tell a page which of these it was.
    throw new FetchProblem(
      `${url.host} could not be read. Either it cannot be reached, or it does not let other ` +
        'pages ' +
        'read its files (CORS). Download the text yourself and open it here: that always works.' +
        (e instanceof TypeError ? '' : ` (${String(e)})`),
    );
  }
  if (!answer.ok) throw new FetchProblem(statusSentence(url, answer.status));
  const blob = await receive(url, answer, o);
  if (blob.size === 0) throw new FetchProblem(`${url.host} answered with an empty text.`);
  const head = new Uint8Array(await blob.slice(0, 512).arrayBuffer());
  if (looksLikeHtml(head)) {
    throw new FetchProblem(
      `${url.host} answered with a web page (HTML), not with a text. Look there for a "raw", ` +
        '"plain text" or "download" link and use its address.',
    );
  }
  return blob;
}

function statusSentence(url: URL, status: number): string {
  if (status === 404 || status === 410) {
    return `${url.host} has nothing at this address (${status}). Is it typed correctly?`;
  }
  if (status === 401 || status === 403) {
    return `${url.host} does not give this text to everybody (${status}).`;
  }
  if (status === 429) return `${url.host} asks for patience (429). Try again in a minute.`;
  return status >= 500
    ? `${url.host} has a fault of its own (${status}). Try again later.`
    : `${url.host} refused with status ${status}.`;
}

/** Piece by piece, so that progress shows; the pieces become a Blob, which may lie on the disk. */
async function receive(url: URL, answer: Response, o: FetchOptions): Promise<Blob> {
  const total = Number(answer.headers.get('content-length') ?? 0);
  if (!answer.body) return answer.blob();
  const reader = answer.body.getReader();
  let blob = new Blob([]);
  let pieces: Uint8Array<ArrayBuffer>[] = [];
  let waiting = 0;
  let received = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (value) {
        pieces.push(value);
        waiting += value.length;
        received += value.length;
        o.onProgress?.(received, total);
      }
      if (done || waiting > 16e6) {
        blob = new Blob([blob, ...pieces]);
        pieces = [];
        waiting = 0;
      }
      if (done) return blob;
    }
  } catch {
    if (o.signal?.aborted) throw new FetchProblem('Stopped.');
    throw new FetchProblem(`The connection to ${url.host} broke after ${size(received)}.`);
  }
}
