// SPDX-License-Identifier: Apache-2.0
/**
 * pack.test.ts - the package as another project gets it: packed, installed into an empty folder,
 * type-checked against, and put to work.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const web = resolve(import.meta.dirname, '../..');
const program = resolve(web, process.env['TG_BUILD'] ?? '../build', 'tinygpt');
const folder = mkdtempSync(join(tmpdir(), 'tinygpt-pack-'));
const project = join(folder, 'project');

function sh(command: string, args: string[], cwd = project): string {
  return execFileSync(command, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}

interface Packed {
  filename: string;
  files: { path: string }[];
}
let packed: Packed;

beforeAll(() => {
  mkdirSync(project);
  const quiet = ['--json', '--loglevel=error'];
  const answer = sh('npm', ['pack', '--pack-destination', folder, ...quiet], web);
  [packed] = JSON.parse(answer) as [Packed];
  writeFileSync(join(project, 'package.json'), '{ "name": "consumer", "type": "module" }\n');
  const options = ['--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error'];
  sh('npm', ['install', ...options, `../${packed.filename}`]);
});
afterAll(() => rmSync(folder, { recursive: true }));

const CONSUMER = `
import { Engine, TinygptError, type StepReport } from 'tinygpt';

const engine: Engine = await Engine.open();
const text = await engine.text(await engine.stories(42, 30_000));
const tiny = engine.info.presets.find((preset) => preset.name === 'tiny');
if (!tiny) throw new Error('no preset');
const model = await engine.newModel(tiny.config);
const trainer = await engine.newTrainer(model, text, { steps: 20, lr: 2e-3 });
let last: StepReport | undefined;
for await (const report of trainer.steps()) last = report;
const session = await model.session();
let written = '';
const story = session.generate('Once', { tokens: 40, temperature: 0.5 });
for await (const piece of story) written += piece.text;
const stats = await story.stats;
let code = '';
try {
  await engine.openModel(new Uint8Array(10));
} catch (error) {
  if (error instanceof TinygptError) code = error.code;
}
console.log(JSON.stringify({
  step: last?.step, loss: last?.loss, letters: written.length, tokens: stats.newTokens, code,
}));
await engine.close();
`;

function withoutTypes(script: string): string {
  const types = /: (Engine|StepReport \| undefined)\b|, type StepReport/g;
  return script.replace(types, '');
}

describe('the package', () => {
  it('holds the library, the modules, a readme and a licence, and nothing else', () => {
    const paths = packed.files.map(({ path }) => path);
    expect(paths).toEqual(expect.arrayContaining([
      'lib/index.js', 'lib/index.d.ts', 'lib/engine.worker.js', 'lib/thread.worker.js',
      'bundle/tinygpt.js', 'bundle/engine.worker.js', 'examples/plain/main.js',
      'lib/openai.js', 'lib/react.d.ts', 'wasm/tinygpt-scalar.wasm', 'wasm/tinygpt-simd-mt-64.wasm', 'wasm/tinygpt-scalar.cases',
      'wasm/stories.txt',
      'README.md', 'LICENSE', 'package.json',
    ]));
    const built = /^(lib\/[\w./-]+\.(js|d\.ts)|bundle\/[\w.-]+\.js|examples\/.+|wasm\/tinygpt-[\w-]+\.(wasm|cases))$/;
    const others = ['README.md', 'LICENSE', 'package.json', 'wasm/stories.txt'];
    const other = paths.filter((path) => !built.test(path) && !others.includes(path));
    expect(other).toEqual([]);
    expect(paths.filter((path) => path.includes('.test.'))).toEqual([]);
  });

  it('trains and writes in Node, in a project of its own', () => {
    const script = withoutTypes(CONSUMER);
    writeFileSync(join(project, 'consumer.mjs'), script);
    const out = JSON.parse(sh('node', ['consumer.mjs'])) as Record<string, unknown>;
    expect(out).toMatchObject({ step: 20, tokens: 40, code: 'FORMAT' });
    expect(out['loss']).toBeGreaterThan(2);
    expect(out['loss']).toBeLessThan(5);
    expect(out['letters']).toBeGreaterThan(0);
  });

  it('runs the example for Node', () => {
    const model = join(project, 'own.tinygpt');
    const text = join(project, 'text.txt');
    writeFileSync(text, 'Once upon a time there was a fox. '.repeat(1000));
    sh(program, ['train', '--data', text, '--preset', 'tiny', '--steps', '1', '--out', model]);
    cpSync(join(web, 'examples/node/chat.mjs'), join(project, 'chat.mjs'));
    expect(sh('node', ['chat.mjs', model, 'Once']).length).toBeGreaterThan(1);
  });

  it('is one script and its workers without a bundler, also in Node', () => {
    const script = withoutTypes(CONSUMER.slice(0, CONSUMER.indexOf('const text')));
    const from = script.replace("from 'tinygpt'", "from './node_modules/tinygpt/bundle/tinygpt.js'");
    const end = 'console.log(engine.info.threads > 0); await engine.close();';
    writeFileSync(join(project, 'bundle.mjs'), `${from}\n${end}\n`);
    expect(sh('node', ['bundle.mjs']).trim()).toBe('true');
  });

  it('ends by itself when nobody waits for anything, closed or not', () => {
    const script = withoutTypes(CONSUMER.slice(0, CONSUMER.indexOf('const text')));
    writeFileSync(join(project, 'open.mjs'), `${script}\nconsole.log(engine.info.build);\n`);
    expect(sh('timeout', ['100', 'node', 'open.mjs'])).toMatch(/simd|relaxed|scalar/);
  });

  it.each(['Bundler', 'NodeNext'])('has types for a strict project, resolved as %s', (how) => {
    writeFileSync(join(project, 'consumer.ts'), CONSUMER);
    const module = how === 'NodeNext' ? how : 'ESNext';
    writeFileSync(join(project, 'tsconfig.json'), JSON.stringify({
      compilerOptions: {
        strict: true, noEmit: true, target: 'ES2022', lib: ['ES2023', 'DOM'], types: [],
        module, moduleResolution: how, exactOptionalPropertyTypes: true,
      },
      files: ['consumer.ts'],
    }));
    expect(sh(join(web, 'node_modules/.bin/tsc'), ['-p', '.'])).toBe('');
    const wrong = `${CONSUMER}\nconst wrong: string = engine.info;\n`;
    writeFileSync(join(project, 'consumer.ts'), wrong);
    expect(() => sh(join(web, 'node_modules/.bin/tsc'), ['-p', '.'])).toThrow();
  });
});
