// SPDX-License-Identifier: Apache-2.0
/** hub.test.ts - names, licences, sizes and hashes, from a server that answers as the public API. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CATALOGUE, hubModel, hubPlace, hubSha256, isHubName } from './hub';

const HASH = 'ab'.repeat(32);
let server: Server;
let hub: string;

beforeAll(async () => {
  server = createServer((request, response) => {
    if (request.url !== '/api/models/owner/small-GGUF?blobs=true') {
      response.writeHead(404).end('{"error":"Repository not found"}');
      return;
    }
    response.setHeader('Content-Type', 'application/json');
    response.end(JSON.stringify({
      id: 'owner/small-GGUF',
      tags: ['gguf', 'license:apache-2.0'],
      siblings: [
        { rfilename: 'README.md', size: 10 },
        { rfilename: 'small-Q8_0.gguf', size: 200, lfs: { sha256: HASH, size: 200 } },
        { rfilename: 'q4/small Q4.gguf', size: 100, lfs: { sha256: 'wrong', size: 100 } },
        { rfilename: 'small-00001-of-00002.gguf', size: 1 },
        { rfilename: 'mmproj-small.gguf', size: 1 },
      ],
    }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  hub = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => server.close());

describe('a model by its name', () => {
  it('has files in one piece, the smallest first, each with its size and hash', async () => {
    const { licence, files } = await hubModel(' owner/small-GGUF ', { hub });
    expect(licence).toBe('apache-2.0');
    expect(files).toEqual([
      {
        name: 'q4/small Q4.gguf', bytes: 100, sha256: '',
        address: `${hub}/owner/small-GGUF/resolve/main/q4/small%20Q4.gguf`,
      },
      {
        name: 'small-Q8_0.gguf', bytes: 200, sha256: HASH,
        address: `${hub}/owner/small-GGUF/resolve/main/small-Q8_0.gguf`,
      },
    ]);
    expect(await hubSha256(new URL(files[1]!.address), { hub })).toBe(HASH);
    expect(await hubSha256(new URL('http://localhost/x.gguf'), { hub })).toBe('');
  });

  it('says what is wrong', async () => {
    await expect(hubModel('owner/none', { hub })).rejects.toThrow(/no model of this name/);
    await expect(hubModel('no name', { hub })).rejects.toThrow(/owner\/model/);
    await expect(hubModel('a/b', { hub: 'http://127.0.0.1:9' })).rejects.toThrow(/reached/);
  });

  it('is told from an address', () => {
    expect(isHubName('Qwen/Qwen3-0.6B-GGUF')).toBe(true);
    expect(isHubName('https://example.org/a.gguf')).toBe(false);
    expect(hubPlace(new URL('https://huggingface.co/a/b/resolve/main/c%20d.gguf'))).toEqual({
      repo: 'a/b', file: 'c d.gguf',
    });
    expect(CATALOGUE.every(({ repo }) => isHubName(repo))).toBe(true);
  });
});
