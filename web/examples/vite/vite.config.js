// SPDX-License-Identifier: Apache-2.0
// vite.config.js - workers are modules; the package's modules of WebAssembly are copied as they are.
import { readFileSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const wasm = join(dirname(createRequire(import.meta.url).resolve('tinygpt/package.json')), 'wasm');

export default {
  base: './',
  worker: { format: 'es' },
  optimizeDeps: { exclude: ['tinygpt'] },
  // What a host has to send for threads; `vite preview` and the development server do.
  server: { headers: { 'Cross-Origin-Opener-Policy': 'same-origin', 'Cross-Origin-Embedder-Policy': 'require-corp' } },
  plugins: [{
    name: 'tinygpt-wasm',
    generateBundle() {
      for (const name of readdirSync(wasm)) {
        const source = readFileSync(join(wasm, name));
        this.emitFile({ type: 'asset', fileName: `wasm/${name}`, source });
      }
    },
  }],
};
