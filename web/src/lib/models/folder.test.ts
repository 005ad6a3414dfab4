// SPDX-License-Identifier: Apache-2.0
/** folder.test.ts - a folder of safetensors as one file, which the native program opens, too. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { folderFile, isModelFolder } from './folder';

const root = resolve(import.meta.dirname, '../../../..');
const build = resolve(import.meta.dirname, '../../..', process.env['TG_BUILD'] ?? '../build');
const folder = join(root, 'test/golden/lm/llama');

function picked(): File[] {
  return readdirSync(folder).map((name) => {
    const file = new File([readFileSync(join(folder, name))], name);
    Object.defineProperty(file, 'webkitRelativePath', { value: `small/${name}` });
    return file;
  });
}

describe('a folder of safetensors', () => {
  it('is one file that says the same of itself', async () => {
    const files = [...picked(), new File(['x'], 'picture.png')];
    Object.defineProperty(files.at(-1)!, 'webkitRelativePath', { value: 'small/picture.png' });
    const file = await folderFile(files);
    expect(file.name).toBe('small.zip');
    const home = mkdtempSync(join(tmpdir(), 'tinygpt-folder-'));
    try {
      const path = join(home, file.name);
      writeFileSync(path, new Uint8Array(await file.arrayBuffer()));
      const info = (of: string) => {
        const out = execFileSync(resolve(build, 'tinygpt'), ['info', of, '--json'], { encoding: 'utf8' });
        const { params, tensors } = JSON.parse(out) as { params: number; tensors: { offset: number }[] };
        return { params, tensors: tensors.map(({ offset: _, ...tensor }) => tensor) }; // which zips move
      };
      expect(info(path)).toEqual(info(folder));
    } finally {
      rmSync(home, { recursive: true });
    }
  });

  it('is refused if it is no model', async () => {
    expect(isModelFolder(picked())).toBe(true);
    await expect(folderFile([new File([], 'a.txt')])).rejects.toMatchObject({ code: 'WRONG' });
    const stopped = folderFile(picked(), { signal: AbortSignal.abort() });
    await expect(stopped).rejects.toThrow(/abort/i);
  });
});
