// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { cleanAddress, FetchProblem, fetchText } from './fetch_text';

const URL_ = new URL('https://example.org/book.txt');

function answering(body: BodyInit | null, init: ResponseInit = {}): typeof fetch {
  return async () => new Response(body, init);
}

async function problem(f: typeof fetch): Promise<string> {
  try {
    await fetchText(URL_, { fetch: f });
  } catch (e) {
    expect(e).toBeInstanceOf(FetchProblem);
    return (e as Error).message;
  }
  return '';
}

describe('cleanAddress', () => {
  it('completes what people type', () => {
    expect(cleanAddress(' example.org/a.txt ', true).href).toBe('https://example.org/a.txt');
    expect(cleanAddress('http://localhost:80/a', true).protocol).toBe('http:');
    expect(cleanAddress('https://github.com/u/r/blob/main/d/a.txt', true).href).toBe(
      'https://raw.githubusercontent.com/u/r/main/d/a.txt',
    );
  });

  it('refuses what cannot work, with a way out', () => {
    expect(() => cleanAddress('', true)).toThrow('Type an address');
    expect(() => cleanAddress('file:///etc/passwd', true)).toThrow('Open files');
    expect(() => cleanAddress('javascript:alert(1)', true)).toThrow('https://');
    expect(() => cleanAddress('http://example.org', true)).toThrow('https');
    expect(() => cleanAddress('https://', true)).toThrow('not an address');
  });
});

describe('fetchText', () => {
  it('gives the bytes as they are', async () => {
    const told: number[] = [];
    const blob = await fetchText(URL_, {
      fetch: answering(Uint8Array.of(0xff, 10, 0)),
      onProgress: (n) => told.push(n),
    });
    expect(new Uint8Array(await blob.arrayBuffer())).toEqual(Uint8Array.of(0xff, 10, 0));
    expect(told.at(-1)).toBe(3);
  });

  it('has a sentence for every failure', async () => {
    expect(await problem(answering('gone', { status: 404 }))).toContain('nothing at this address');
    expect(await problem(answering('no', { status: 403 }))).toContain('403');
    expect(await problem(answering('', { status: 503 }))).toContain('fault of its own');
    expect(await problem(answering(''))).toContain('empty');
    expect(await problem(answering('<!doctype html><title>Log in</title>'))).toContain('web page');
    expect(await problem(async () => Promise.reject(new TypeError('Failed to fetch')))).toContain(
      'CORS',
    );
  });

  it('says that a connection broke, and after how much', async () => {
    let sent = false;
    const body = new ReadableStream({
      pull(c) {
        if (sent) c.error(new Error('reset'));
        else c.enqueue(new Uint8Array(2000));
        sent = true;
      },
    });
    expect(await problem(async () => new Response(body))).toContain('broke after 2 KB');
  });

  it('stops when asked to', async () => {
    const stop = new AbortController();
    stop.abort();
    const f: typeof fetch = async (_, init) => {
      init?.signal?.throwIfAborted();
      return new Response('text');
    };
    await expect(fetchText(URL_, { fetch: f, signal: stop.signal })).rejects.toThrow('Stopped');
  });
});
