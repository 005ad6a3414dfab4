// SPDX-License-Identifier: Apache-2.0
/**
 * vite.config.ts - the playground: index.html and src/ui into dist/, beside it the modules in
 * dist/wasm. Every address is relative, so the folder works under any path of any static host.
 *
 *   TG_WASM_DIR   where the tinygpt-*.wasm lie; ../build/wasm, which `make wasm` fills
 *   TG_WEB_OUT    where the page goes; dist
 */
import { createHash } from 'node:crypto';
import { createReadStream, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, extname, join, resolve } from 'node:path';
import { brotliCompressSync, constants } from 'node:zlib';
import { preact } from '@preact/preset-vite';
import { defineConfig, type Plugin } from 'vite';
import { VitePWA } from 'vite-plugin-pwa';

const root = import.meta.dirname;
const outDir = resolve(root, process.env['TG_WEB_OUT'] ?? 'dist');
const wasmDir = resolve(root, process.env['TG_WASM_DIR'] ?? '../build/wasm');

const TYPES: Record<string, string> = {
  '.txt': 'text/plain', '.wasm': 'application/wasm', '.cases': 'application/octet-stream',
};

/** A module, its test cases, or the grammar of stories beside them. */
function isModule(name: string): boolean {
  return /^(tinygpt-[a-z0-9-]+\.(wasm|cases)|stories\.txt)$/.test(name);
}

const galleryDir = resolve(root, '../data/gallery');

/** The models that come with the page: fetched one by one, when they are wanted. */
function gallery(): Plugin {
  return {
    name: 'tinygpt-gallery',
    generateBundle() {
      for (const name of readdirSync(galleryDir).filter((n) => n.endsWith('.tinygpt'))) {
        const source = readFileSync(join(galleryDir, name));
        this.emitFile({ type: 'asset', fileName: `gallery/${name}`, source });
      }
    },
    configureServer(server) {
      server.middlewares.use((request, response, next) => {
        const name = basename((request.url ?? '').split('?')[0] ?? '');
        if (!/^[a-z]+\.tinygpt$/.test(name) || !existsSync(join(galleryDir, name))) return next();
        response.setHeader('Content-Type', 'application/octet-stream');
        createReadStream(join(galleryDir, name)).pipe(response);
      });
    },
  };
}

/** Copies the modules into the build, and serves them while developing. */
function modules(): Plugin {
  return {
    name: 'tinygpt-modules',
    generateBundle() {
      const names = existsSync(wasmDir) ? readdirSync(wasmDir).filter(isModule) : [];
      if (names.length === 0) this.error(`no tinygpt-*.wasm in ${wasmDir}: run "make wasm" first`);
      for (const name of names) {
        const source = readFileSync(join(wasmDir, name));
        this.emitFile({ type: 'asset', fileName: `wasm/${name}`, source });
      }
    },
    configureServer(server) {
      server.middlewares.use((request, response, next) => {
        const name = basename((request.url ?? '').split('?')[0] ?? '');
        if (!isModule(name) || !existsSync(join(wasmDir, name))) return next();
        response.setHeader('Content-Type', TYPES[extname(name)]!);
        createReadStream(join(wasmDir, name)).pipe(response);
      });
    },
  };
}

/**
 * What uPlot can do and the page does not: axes of dates, bars, steps and splines, a fifth of its
 * script. Its exports are properties of one function, so that a bundler keeps them all. Another
 * version may look otherwise: then this is an error and not a larger page.
 */
const UNUSED: [what: RegExp, instead: string][] = [
  [/let isTime = [^;]*;/g, 'const isTime = false;'],
  [/^const \[ time.*genTimeStuffs\(.*$/gm, ''],
  [/^\tconst (_tzDate|_fmtDate|_timeAxisSplits|_timeAxisVals|_timeSeriesVal) .*$/gm, ''],
  [/^\tuPlot\.(fmtDate|tzDate) .*$/gm, ''],
  [/^\t\(paths\.(stepped|bars|spline) .*$/gm, ''],
];

function lessOfUPlot(): Plugin {
  return {
    name: 'tinygpt-less-of-uplot',
    transform(code, id) {
      if (!/uPlot\.esm\.js/.test(id)) return null;
      for (const [what, instead] of UNUSED) {
        if (!code.match(what)) this.error(`uPlot has nothing like ${what}`);
        code = code.replace(what, instead);
      }
      return { code, map: null };
    },
  };
}

/** FILE.br beside each FILE of text, for hosts that send such; `tinygpt serve` does. */
function brotli(): Plugin {
  const pack = () => {
    for (const name of readdirSync(outDir, { recursive: true, encoding: 'utf8' })) {
      if (!/\.(html|js|css)$/.test(name)) continue;
      const bytes = readFileSync(join(outDir, name));
      const params = { [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length };
      writeFileSync(join(outDir, `${name}.br`), brotliCompressSync(bytes, { params }));
    }
  };
  // The service worker is written at the end, too, and before.
  return { name: 'tinygpt-brotli', closeBundle: { order: 'post', sequential: true, handler: pack } };
}

/** What `tinygpt serve` sends, too: without the first two there are no threads. */
const headers = {
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
  'Cross-Origin-Resource-Policy': 'same-origin',
};

/** src/sw.ts with the list of everything that was built. The page itself registers it. */
const serviceWorker = VitePWA({
  strategies: 'injectManifest',
  srcDir: 'src',
  filename: 'sw.ts',
  injectRegister: false,
  manifest: false,
  injectManifest: {
    rollupFormat: 'iife',
    globPatterns: ['**/*.{html,js,css,svg,png,webmanifest,wasm,cases,txt}'],
    maximumFileSizeToCacheInBytes: 16 * 2 ** 20,
    // A build of the core is fetched when it is wanted, and is known by its SHA-256.
    manifestTransforms: [
      (entries) => ({
        manifest: entries.map((entry) => {
          if (!/\.(wasm|cases)$/.test(entry.url)) return entry;
          const bytes = readFileSync(join(outDir, entry.url));
          return { ...entry, revision: createHash('sha256').update(bytes).digest('hex') };
        }),
      }),
    ],
  },
});

/**
 * What the first view takes comes in three scripts, each at once with all that it imports: a request
 * for each of their thirty small parts, one behind the other, costs more than their bytes do. Other
 * views import from them what they share.
 */
const FIRST = [
  { name: 'index', tags: ['$initial' as const], priority: 3 },
  { name: 'engine', test: /src\/lib\/index\.ts$/, priority: 2 },
  { name: 'start_view', test: /start\/start_view\.tsx$/, priority: 1 },
];

export default defineConfig({
  root,
  base: './',
  plugins: [preact(), modules(), gallery(), lessOfUPlot(), serviceWorker, brotli()],
  server: { headers },
  preview: { headers },
  worker: { format: 'es' },
  build: {
    outDir,
    emptyOutDir: true,
    target: 'es2022',
    // Inlined assets would be data: addresses, which the page's CSP does not allow.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: true,
    rolldownOptions: { output: { codeSplitting: { groups: FIRST } } },
  },
});
