// SPDX-License-Identifier: Apache-2.0
/** address.test.ts - the page about a file becomes the file. */
import { expect, it } from 'vitest';
import { modelAddress } from './address';

it.each([
  ['https://huggingface.co/a/b/blob/main/m.gguf', 'https://huggingface.co/a/b/resolve/main/m.gguf'],
  ['huggingface.co/a/b/resolve/main/m.gguf', 'https://huggingface.co/a/b/resolve/main/m.gguf'],
  ['https://example.org/a/b/blob/m.gguf', 'https://example.org/a/b/blob/m.gguf'],
])('%s', (typed, address) => {
  expect(modelAddress(typed, true).href).toBe(address);
});
