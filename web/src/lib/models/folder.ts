// SPDX-License-Identifier: Apache-2.0
/**
 * folder.ts - a folder as transformers keeps a model (config.json, tokenizer.json, safetensors) as one
 * file, which the store keeps and the core opens: a zip file that packs nothing. Its parts stay on
 * the disk where they are; they are read once, for the checksums that a zip file has.
 *
 *     local header, name, bytes      one for each file      (APPNOTE.TXT 4.3.7)
 *     directory entry, name          one for each file      (4.3.12)
 *     end of the directory                                  (4.3.16)
 */
import { crc32 } from '../store/crc32.js';
import { StoreError } from './errors.js';

/** What a model is made of; other files of the folder (pictures, other formats) are left out. */
const PARTS = /^((1_Pooling|[23]_Dense)\/)?[\w.-]+\.(json|safetensors|jinja|model)$/;
const READ_BYTES = 4 << 20;
const MOST_BYTES = 0xffff_ffff;

interface Part {
  name: Uint8Array<ArrayBuffer>;
  file: File;
  crc: number;
  at: number;
}

/** A picked folder's files have paths that begin with its name. */
function nameOf(file: File): string {
  const path = file.webkitRelativePath ?? '';
  return path === '' ? file.name : path.slice(path.indexOf('/') + 1);
}

async function checksum(file: File, signal: AbortSignal | undefined): Promise<number> {
  let crc = 0;
  for (let at = 0; at < file.size; at += READ_BYTES) {
    signal?.throwIfAborted();
    crc = crc32(new Uint8Array(await file.slice(at, at + READ_BYTES).arrayBuffer()), crc);
  }
  return crc;
}

/** Numbers of 2 and 4 bytes, the lowest byte first: [bytes, value] each. */
function packed(...fields: [2 | 4, number][]): Uint8Array<ArrayBuffer> {
  const out = new DataView(new ArrayBuffer(fields.reduce((sum, [n]) => sum + n, 0)));
  let at = 0;
  for (const [bytes, value] of fields) {
    if (bytes === 2) out.setUint16(at, value, true);
    else out.setUint32(at, value, true);
    at += bytes;
  }
  return new Uint8Array(out.buffer);
}

/** What both headers of a file have in common: version, no flags, stored, no time, CRC, sizes. */
function described({ name, file, crc }: Part): [2 | 4, number][] {
  return [
    [2, 20], [2, 0], [2, 0], [2, 0], [2, 0x21], [4, crc], [4, file.size], [4, file.size],
    [2, name.length], [2, 0],
  ];
}

/** Is this folder a model's? */
export function isModelFolder(files: readonly File[]): boolean {
  const names = files.map(nameOf);
  return names.includes('config.json') && names.some((name) => name.endsWith('.safetensors'));
}

/** The model of a folder as one file, called as the folder. `WRONG`: it is no model's. */
export async function folderFile(
  files: readonly File[], options: { name?: string; signal?: AbortSignal } = {},
): Promise<File> {
  const folder = files[0]?.webkitRelativePath?.split('/')[0] || 'model';
  const { name = `${folder}.zip`, signal } = options;
  if (!isModelFolder(files)) {
    throw new StoreError(
      'WRONG', `${folder}: want a folder with config.json and .safetensors, have another one.`,
    );
  }
  const parts: Part[] = [];
  const content: BlobPart[] = [];
  let at = 0;
  for (const file of files.filter((one) => PARTS.test(nameOf(one)))) {
    const part = { name: new TextEncoder().encode(nameOf(file)), file, crc: await checksum(file, signal), at };
    const head = packed([4, 0x04034b50], ...described(part));
    content.push(head, part.name, file);
    at += head.length + part.name.length + file.size;
    parts.push(part);
  }
  if (at > MOST_BYTES) {
    throw new StoreError('WRONG', `${folder}: want less than 4 GiB in all, have ${at} bytes.`);
  }
  const begin = at;
  for (const part of parts) {
    const head = packed(
      [4, 0x02014b50], [2, 20], ...described(part), [2, 0], [2, 0], [2, 0], [4, 0], [4, part.at],
    );
    content.push(head, part.name);
    at += head.length + part.name.length;
  }
  const { length } = parts;
  content.push(packed(
    [4, 0x06054b50], [2, 0], [2, 0], [2, length], [2, length], [4, at - begin], [4, begin], [2, 0],
  ));
  const newest = Math.max(...files.map((file) => file.lastModified));
  return new File(content, name, { lastModified: newest });
}
