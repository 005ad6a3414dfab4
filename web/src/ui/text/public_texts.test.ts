// SPDX-License-Identifier: Apache-2.0
/** public_texts.test.ts - titles and names, from a server that answers as the public interfaces do. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { dataset, titlesOf, wikipedia, WIKIPEDIA_LICENCE } from './public_texts';

let server: Server;
let host: string;
let asked: URL[] = [];

function answer(url: URL): [number, unknown] {
  const title = url.searchParams.get('titles');
  const offset = Number(url.searchParams.get('offset'));
  switch (url.pathname) {
    case '/w/api.php':
      return [200, {
        query: {
          pages: [
            title === 'fox'
              ? { pageid: 1, ns: 0, title: 'Fox', extract: 'Foxes are small.\n\n\n== Words ==\nVixen.' }
              : { ns: 0, title, missing: true },
          ],
        },
      }];
    case '/api/datasets/owner/tales':
    case '/api/datasets/owner/long':
      return [200, { id: 'owner/tales', tags: ['license:cdla-sharing-1.0'] }];
    case '/splits':
      return [200, {
        splits: [
          { dataset: 'owner/tales', config: 'default', split: 'test' },
          { dataset: 'owner/tales', config: 'default', split: 'train' },
        ],
      }];
    case '/rows':
      if (url.searchParams.get('dataset') === 'owner/long' && offset === 200) return [429, {}];
      return [200, {
        features: [
          { feature_idx: 0, name: 'id', type: { dtype: 'int64', _type: 'Value' } },
          { feature_idx: 1, name: 'title', type: { dtype: 'string', _type: 'Value' } },
          { feature_idx: 2, name: 'text', type: { dtype: 'string', _type: 'Value' } },
        ],
        rows: Array.from({ length: Math.max(0, Math.min(100, 250 - offset)) }, (_, i) => ({
          row_idx: offset + i, row: { id: i, title: 't', text: `Tale ${offset + i}.` },
          truncated_cells: url.searchParams.get('dataset') === 'owner/long' && i === 7 ? ['text'] : [],
        })),
        num_rows_total: 250,
      }];
    default:
      return [404, { error: 'not found' }];
  }
}

beforeAll(async () => {
  server = createServer((request, response) => {
    const url = new URL(request.url ?? '/', 'http://x');
    asked.push(url);
    const [status, body] = answer(url);
    response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  host = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => server.close());

describe('Wikipedia', () => {
  it('takes titles, of other languages, too', () => {
    expect(titlesOf(' Fox; de:Fuchs\nNew York; ')).toEqual([
      { language: 'en', title: 'Fox' },
      { language: 'de', title: 'Fuchs' },
      { language: 'en', title: 'New York' },
    ]);
  });

  it('gives articles as plain text, with their licence', async () => {
    const shares: number[] = [];
    const { name, text, licence } = await wikipedia('fox; fox', {
      host, onProgress: (s) => shares.push(s),
    });
    expect([name, licence, shares]).toEqual(['Fox and 1 more, Wikipedia', WIKIPEDIA_LICENCE, [0.5, 1]]);
    expect((await text.text()).match(/Foxes are small\./g)).toHaveLength(2);
    expect(asked[0]?.searchParams.get('origin')).toBe('*');
    await expect(wikipedia('no such', { host })).rejects.toThrow('has no article “no such”');
    await expect(wikipedia(' ; ', { host })).rejects.toThrow(/title/);
    await expect(wikipedia('fox', { host: 'http://127.0.0.1:9' })).rejects.toThrow(/reached/);
  });
});

describe('a data set of Hugging Face', () => {
  it('gives its rows up to a size, from its training part', async () => {
    asked = [];
    const all = await dataset('owner/tales', 1e6, { host });
    expect(all).toMatchObject({
      name: 'owner/tales, Hugging Face', licence: 'cdla-sharing-1.0', cut: '',
    });
    expect((await all.text.text()).trim().split('\n\n')).toHaveLength(250);
    const rows = asked.filter((u) => u.pathname === '/rows');
    expect(rows.map((u) => u.searchParams.get('offset'))).toEqual(['0', '100', '200']);
    expect(rows[0]?.searchParams.get('split')).toBe('train');
    const few = await dataset('https://huggingface.co/datasets/owner/tales/', 100, { host });
    expect(few.text.size).toBeGreaterThanOrEqual(100);
    expect(few.text.size).toBeLessThan(120);
  });

  it('keeps what came before a refusal, without texts of which the end is missing', async () => {
    const { text, cut } = await dataset('owner/long', 1e6, { host });
    const tales = (await text.text()).trim().split('\n\n');
    expect(tales).toHaveLength(198);
    expect(tales[7]).toBe('Tale 8.');
    expect(cut).toMatch(/429/);
  });

  it('says what is wrong, and stops', async () => {
    await expect(dataset('owner/none', 1, { host })).rejects.toThrow(/owner\/none/);
    await expect(dataset('no name at all', 1, { host })).rejects.toThrow(/owner\/name/);
    const stop = new AbortController();
    await expect(
      dataset('owner/tales', 1e6, {
        host, signal: stop.signal, onProgress: () => stop.abort(),
      }),
    ).rejects.toThrow('Stopped.');
  });
});
