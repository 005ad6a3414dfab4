// SPDX-License-Identifier: Apache-2.0
/**
 * bundle.mjs - lib/ with all that it imports as modules that a browser loads as they are, in
 * bundle/: for plain pages, which have no bundler and whose workers have no import maps.
 *
 * Workers keep their names, since what starts them finds them beside itself by import.meta.url, and
 * the modules of WebAssembly in ../wasm/ from there, as in lib/.
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { rolldown } from 'rolldown';

const root = import.meta.dirname;
const lib = (name) => join(root, 'lib', `${name}.js`);
const outDir = join(root, 'bundle');

rmSync(outDir, { recursive: true, force: true });
const bundle = await rolldown({
  input: {
    tinygpt: lib('index'),
    models: lib('models/index'),
    openai: lib('openai'),
    'engine.worker': lib('engine.worker'),
    'thread.worker': lib('thread.worker'),
    'models.worker': lib('models/models.worker'),
  },
  // The package of Node's GPU is asked for at run time, where there is Node.
  external: ['webgpu'],
  platform: 'browser',
});
await bundle.write({
  dir: outDir,
  format: 'es',
  minify: true,
  entryFileNames: '[name].js',
  chunkFileNames: 'part-[hash].js',
});
await bundle.close();
