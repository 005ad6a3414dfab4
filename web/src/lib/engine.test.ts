// SPDX-License-Identifier: Apache-2.0
/**
 * engine.test.ts - the classes as a page uses them: stopping, taking turns, freeing, files, and
 * what goes wrong.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Engine, TinygptError, type FileKind, type Trainer } from 'tinygpt';

import { computing, expectPromptStops, finish, RUN, start, type Run } from './testing/setup.js';

const program = resolve(import.meta.dirname, '../..', process.env['TG_BUILD'] ?? '../build', 'tinygpt');
let engine: Engine;
beforeAll(async () => {
  engine = await Engine.open({ build: 'simd', threads: 1 });
});
afterAll(() => engine.close());

/** The error of a call that must fail. */
async function failure(call: Promise<unknown>): Promise<TinygptError> {
  const error = await call.then(() => undefined, (reason: unknown) => reason);
  expect(error).toBeInstanceOf(TinygptError);
  return error as TinygptError;
}

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

async function read(pieces: AsyncIterable<{ text: string }>): Promise<string> {
  let text = '';
  for await (const piece of pieces) text += piece.text;
  return text;
}

/** Milliseconds of computing from the abort, so long after the work began, to the work's end. */
async function lateness(wait: number, work: (signal: AbortSignal) => Promise<void>) {
  const abort = new AbortController();
  let took = () => Infinity;
  setTimeout(() => {
    took = computing();
    abort.abort();
  }, wait);
  await work(abort.signal);
  return took();
}

describe('stopping', () => {
  // The larger one has the longer steps.
  const presets = process.env['TG_TEST_LONG'] ? ['huge', 'mega'] : ['mega'];
  it.each(presets)('%s stops within 100 ms and goes on', async (preset) => {
    const { trainer, model, text } = await start(engine, { steps: 100, batch: 4, seed: 1 }, preset);
    const train = async (signal: AbortSignal) => {
      for await (const _ of trainer.steps(undefined, { signal }));
    };
    await expectPromptStops((i) => lateness(150 + 60 * i, train));
    expect(await trainer.done()).toBeLessThan(100);
    expect((await trainer.model.info()).params).toBeGreaterThan(9e6);
    [trainer, model, text].forEach((object) => object.free());
  });

  it('writing stops within 100 ms, in the middle of a long prompt', async () => {
    const { config } = engine.info.presets.find(({ name }) => name === 'mega')!;
    const model = await engine.newModel(config);
    const session = await model.session();
    const write = async (signal: AbortSignal) => {
      const story = session.generate('x'.repeat(500), { tokens: 1e5, signal });
      expect(await read(story)).toBe('');
    };
    await expectPromptStops((i) => lateness(40 + 40 * i, write));
    model.free();
  });

  it('leaving the loop stops, too', async () => {
    const { trainer } = await start(engine);
    for await (const { step } of trainer.steps(undefined, { ahead: 0 })) if (step === 3) break;
    await sleep(50);
    expect(await trainer.done()).toBeLessThanOrEqual(4);
    expect((await finish(trainer)).hash).toHaveLength(16);
  });

  it('an aborted generation ends without an error and tells what it made', async () => {
    const { model } = await start(engine);
    const abort = new AbortController();
    const session = await model.session();
    const story = session.generate('Once', { tokens: 1e6, signal: abort.signal });
    let n = 0;
    for await (const _ of story) if (++n === 5) abort.abort();
    const { newTokens } = await story.stats;
    expect(newTokens).toBeGreaterThanOrEqual(5);
    expect(newTokens).toBeLessThan(1e6);
    expect(await read(session.generate('Once', { tokens: 3 }))).not.toBe('');
  });

  it('a call with an aborted signal rejects with its reason', async () => {
    const { trainer } = await start(engine);
    await expect(trainer.save('run', { signal: AbortSignal.abort('no') })).rejects.toBe('no');
    const abort = new AbortController();
    const check = engine.checkKernels(() => abort.abort('enough'), { signal: abort.signal });
    await expect(check).rejects.toBe('enough');
  });
});

describe('taking turns', () => {
  it('answers while a trainer steps, and the bits stay the same', async () => {
    const { trainer, model } = await start(engine);
    const running = finish(trainer);
    const session = await model.session();
    const stories: string[] = [];
    for (let i = 0; i < 3; i++) {
      stories.push(await read(session.generate('Once', { tokens: 20 })));
      expect((await model.info()).params).toBe(70464);
      expect((await trainer.save()).length).toBeGreaterThan(800_000);
      const probe = await model.probe('Once upon');
      expect(probe.tokens).toHaveLength(9);
    }
    const { hash } = await running;
    const alone = await start(engine);
    expect(hash).toBe((await finish(alone.trainer)).hash);
  });

  it('works ahead of a slow loop, but not further than it is told', async () => {
    const { trainer } = await start(engine);
    const steps = trainer.steps(undefined, { ahead: 3 });
    await steps.next();
    await sleep(700);
    expect(await trainer.done()).toBeLessThanOrEqual(5);
    await steps.next();
    const strict = await start(engine);
    const one = strict.trainer.steps(undefined, { ahead: 0 });
    for (let i = 1; i < 5; i++) {
      expect((await one.next()).value).toMatchObject({ step: i });
      await sleep(20);
      expect(await strict.trainer.done()).toBe(i);
    }
    await steps.return();
    await one.return();
  });

  it('trains two runs at once', async () => {
    const a = await start(engine);
    const b = await start(engine);
    const [first, second] = await Promise.all([finish(a.trainer), finish(b.trainer)]);
    expect(first.hash).toBe(second.hash);
  });
});

describe('a run', () => {
  it('has options, a history, an evaluation, a best model, and more steps on request', async () => {
    const { trainer } = await start(engine, { ...RUN, schedule: 'cosine', evalEvery: 10, seed: 7 });
    expect(await trainer.options()).toMatchObject({
      steps: 50, batch: 16, schedule: 'cosine', evalEvery: 10, seed: 7, keepBest: true, beta1: 0.9,
    });
    await finish(trainer);
    const history = await trainer.history();
    expect(history).toHaveLength(50);
    expect(history[49]!.valLoss).toBeCloseTo(await trainer.evaluate(), 12);
    const best = await engine.openModel(await trainer.saveBest());
    expect((await best.info()).step).toBeGreaterThan(0);
    await trainer.setSteps(55);
    const more: number[] = [];
    for await (const { step } of trainer.steps()) more.push(step);
    expect(more).toEqual([51, 52, 53, 54, 55]);
    for await (const _ of trainer.steps()) expect.fail('the run is over');
  });

  it('is written in every layout and read again', async () => {
    const { trainer, model } = await start(engine, { ...RUN, steps: 3 });
    await finish(trainer);
    const kinds: FileKind[] = ['run', 'v3', 'v2-f32', 'v2-f16', 'v2-int4', 'v1-f32', 'safetensors', 'gguf'];
    for (const kind of kinds) {
      const file = await trainer.save(kind);
      const again = await engine.openModel(file);
      expect((await again.info()).params).toBe(70464);
      if (kind !== 'run') expect((await model.save(kind)).length).toBeGreaterThan(0);
      again.free();
    }
    expect((await failure(model.save('run'))).code).toBe('ARG');
    const v2 = await engine.openModel(await trainer.save('v2-f32'));
    expect(await v2.info()).toMatchObject({ hasMoments: true, trains: true });
  });

  it('generates the same for the same seed, and something else for another', async () => {
    const { model, trainer } = await start(engine);
    await finish(trainer);
    const session = await model.session();
    const write = (seed: number) => read(session.generate('Once', { tokens: 60, seed }));
    const first = await write(1);
    expect(await write(1)).toBe(first);
    expect(await write(2)).not.toBe(first);
    const greedy = () => read(session.generate('Once', { tokens: 60, temperature: 0 }));
    expect(await greedy()).toBe(await greedy());
  });

  it('takes texts as strings, bytes and blobs', async () => {
    const bytes = await engine.stories(42, 60_000);
    const string = new TextDecoder().decode(bytes);
    const path = join(mkdtempSync(join(tmpdir(), 'tinygpt-')), 'text');
    writeFileSync(path, bytes);
    const sources = [string, bytes, new Blob([bytes as BlobPart]), pathToFileURL(path)];
    const sums = [];
    for (const source of sources) sums.push(await (await engine.text(source)).sha256());
    const digest = await crypto.subtle.digest('SHA-256', bytes as BufferSource);
    const want = Buffer.from(digest).toString('hex');
    expect(sums).toEqual([want, want, want, want]);
    rmSync(dirname(path), { recursive: true });
    const given = bytes.slice();
    expect((await engine.text(given, { transfer: true })).bytes).toBe(60_000);
    expect(given).toHaveLength(0);
  });

  it('is forecast', async () => {
    const { config } = engine.info.presets.find(({ name }) => name === 'small')!;
    const text = await engine.text(await engine.stories(1, 20_000));
    const forecast = await engine.forecast(config, { steps: 100, batch: 8 }, text);
    expect(forecast.params).toBe(366432);
    expect(forecast.trainBytes + forecast.valBytes).toBe(20_000);
    expect(forecast.msPerStep).toBeGreaterThan(0);
    expect(forecast.advice.every((line) => line.length > 10)).toBe(true);
  });
});

describe('a vocabulary', () => {
  const SHAPE = { family: 'gpt2', layers: 1, width: 16, heads: 2, ctx: 32, vocab: 0, mlp: 0 };

  it('is trained as the program trains it, goes along with a run, and stops within 100 ms', async () => {
    const bytes = await engine.stories(42, 100_000);
    const folder = mkdtempSync(join(tmpdir(), 'tinygpt-vocabulary-'));
    writeFileSync(join(folder, 'text.txt'), bytes);
    const text = await engine.text(bytes);
    for (const [kind, n] of [['bpe', 400], ['chars', 0]] as const) {
      const out = join(folder, `${kind}.json`);
      const vocab = n > 0 ? ['--vocab', String(n)] : [];
      execFileSync(program, [
        'tokenize', '--train', join(folder, 'text.txt'), '--kind', kind, ...vocab, '--out', out,
      ]);
      const made = await engine.trainVocabulary(text, kind, n);
      expect(Buffer.compare(made, readFileSync(out))).toBe(0);
      const model = await engine.newModel(SHAPE, 7, made);
      const ids = await model.tokenizer.encode('Once upon a time');
      expect(await model.tokenizer.decode(ids)).toBe('Once upon a time');
      if (n > 0) expect(model.tokenizer.size).toBe(n);
      const trainer = await engine.newTrainer(model, text, { steps: 2, batch: 2 });
      for await (const report of trainer.steps()) expect(report.bitsPerByte).toBeGreaterThan(0);
      const run = join(folder, `${kind}.tinygpt`);
      writeFileSync(run, await trainer.save());
      const shown = execFileSync(program, ['tokenize', run, 'Once upon a time', '--json']);
      expect((JSON.parse(shown.toString()) as { ids: number[] }).ids).toEqual([...ids]);
      trainer.free();
      model.free();
    }
    expect((await failure(engine.trainVocabulary(text, 'bpe', 300_000))).code).toBe('DATA');
    expect((await failure(engine.newModel({ ...SHAPE, family: 'tinygpt' }, 7, readFileSync(join(folder, 'bpe.json'))))).code).toBe('UNSUPPORTED');
    const large = await engine.text(await engine.stories(1, 1_000_000));
    await expectPromptStops(async () => lateness(20, async (signal) => {
      await expect(engine.trainVocabulary(large, 'bpe', 3_000, { signal })).rejects.toThrow(/abort/);
    }), 3);
    large.free();
    text.free();
    rmSync(folder, { recursive: true });
  });
});

/** The folder, the tokens and the losses are those of tools/oracle/finetune.py. */
describe('a third-party model of floats', () => {
  const golden = (name: string) => readFileSync(`../test/golden/lm/${name}`);
  const numbers = (name: string) => golden(name).toString().trim().split('\n').map(Number);
  const PROMPT = Int32Array.from({ length: 20 }, (_, i) => ((11 * i * i + 5 * i + 2) % 286) + 2);
  const largest = (values: number[]) => Math.max(...values.map(Math.abs));
  const OPTIONS = { steps: 20, batch: 4, rowTokens: 24, lr: 1e-3, evalEvery: 0, evalWindows: 0 };

  it.each(['llama', 'qwen3', 'gemma3', 'gpt2', 'phi3', 'granite'])('is trained on tokens: %s', async (family) => {
    const text = await engine.text((await engine.stories(42, 60_000)).slice(0, 12_000));
    const model = await engine.openModel(new Blob([golden(`tune_${family}.zip`)]));
    expect((await model.info()).config.vocab).toBe(288);
    expect(model.tokenizer.size).toBe(288);
    const trainer = await engine.newTrainer(model, text, OPTIONS);
    const want = numbers(`tune_${family}.txt`);
    let i = 0;
    for await (const { loss, bitsPerByte } of trainer.steps()) {
      expect(Math.abs(loss / want[i]! - 1)).toBeLessThan(1e-4);
      expect(bitsPerByte).toBeLessThan(loss / Math.LN2);
      i++;
    }
    expect(i).toBe(20);
    const ids = await model.tokenizer.encode('The bear who');
    const probe = await model.probe(ids);
    expect([probe.vocab, probe.tokens.length]).toEqual([288, ids.length]);
    const logits = (await model.probe(PROMPT)).lens.slice(-288);
    const wanted = numbers(`tune_${family}_logits.txt`);
    expect(largest(wanted.map((x, i) => x - logits[i]!))).toBeLessThan(1e-4 * largest(wanted));
    const reopened = await engine.openModel(await trainer.save('run'));
    expect((await reopened.probe(ids)).lens).toEqual(probe.lens);
    expect(await read((await reopened.session()).generate('The bear', { tokens: 8 }))).not.toBe('');
    [trainer, model, reopened, text].forEach((object) => object.free());
  });

  it('checks third-party files whole, and opens their floats, in slices that an abort ends', async () => {
    const file = golden('tune_llama.zip');
    expect(await engine.checkFile(file)).toContain('CRC-32 of members');
    const broken = Uint8Array.from(file);
    broken[broken.length >> 1]! ^= 1;
    expect((await failure(engine.checkFile(broken))).code).toMatch(/FORMAT|CHECKSUM/);
    const shares: number[] = [];
    const model = await engine.openModel(new Blob([file]), { onProgress: (s) => void shares.push(s) });
    expect((await model.info()).trains).toBe(true);
    for (const share of shares) expect(share).toBeLessThanOrEqual(1);
    model.free();
    const signal = AbortSignal.abort();
    await expect(engine.openModel(new Blob([file]), { signal })).rejects.toThrow(/abort/);
    await expect(engine.checkFile(new Blob([file]), { signal })).rejects.toThrow(/abort/);
  });

  it('is refused where it cannot be', async () => {
    const text = await engine.text(await engine.stories(42, 60_000));
    const model = await engine.openModel(golden('bert.zip'));
    expect((await failure(engine.newTrainer(model, text, OPTIONS))).code).toBe('UNSUPPORTED');
    [model, text].forEach((object) => object.free());
  });
});

describe('a tokenizer', () => {
  it('brings every text back', async () => {
    const { model } = await start(engine);
    const text = 'Grüße, 世界! \u{1f600}\n\0end';
    const ids = await model.tokenizer.encode(text);
    expect(ids).toHaveLength(new TextEncoder().encode(text).length);
    expect(await model.tokenizer.decode(ids)).toBe(text);
    expect(model.tokenizer.size).toBe(256);
    expect(model.tokenizer.piece(65)).toEqual(new Uint8Array([65]));
    expect(() => model.tokenizer.piece(256)).toThrow(TinygptError);
    expect(await model.tokenizer.encode('')).toHaveLength(0);
  });
});

describe('looking inside', () => {
  it('gives attention that sums to one and logits of every layer', async () => {
    const { model } = await start(engine);
    const probe = await model.probe('Once upon a time');
    const { layers, heads, vocab, attention, lens, tokens } = probe;
    const n = tokens.length;
    expect([layers, heads, vocab, n]).toEqual([2, 3, 256, 16]);
    for (let row = 0; row < layers * heads * n; row++) {
      const sum = attention.subarray(row * n, row * n + n).reduce((a, b) => a + b, 0);
      expect(sum).toBeCloseTo(1, 5);
    }
    expect(lens).toHaveLength((layers + 1) * n * vocab);
    const edit = { layer: 0, part: 'head', head: 1, kind: 'zero' } as const;
    const edited = await model.probe('Once upon a time', [edit]);
    expect(edited.lens).not.toEqual(lens);
    expect(edited.lens.subarray(0, n * vocab)).toEqual(lens.subarray(0, n * vocab));
    const patch = { layer: 1, part: 'block', kind: 'donor' } as const;
    const donor = await model.probe('Then they all ra', [], undefined);
    const patched = await model.probe('Once upon a time', [patch], 'Then they all ra');
    expect(patched.lens.subarray(2 * n * vocab)).toEqual(donor.lens.subarray(2 * n * vocab));
    expect((await failure(model.probe('Once', [patch], 'too long'))).code).toBe('SHAPE');
    expect((await failure(model.probe('Once', [{ ...edit, layer: 9 }]))).code).toBe('RANGE');
  });
});

describe('the engine', () => {
  it('describes itself', async () => {
    expect(engine.info.presets.map(({ name }) => name)).toContain('behemoth');
    expect(engine.info.banner).toContain('simd128');
    expect(engine.info.isolated).toBe(true);
    expect(engine.info.levers.length).toBeGreaterThan(3);
    expect(await engine.memoryBytes()).toBeGreaterThan(1e6);
  });

  it('checks its kernels and measures itself', async () => {
    const seen: string[] = [];
    const { passed, failed } = await engine.checkKernels(({ op }) => seen.push(op), {
      filter: 'layer_norm',
    });
    expect(failed).toBe(0);
    expect(passed).toBe(seen.length);
    expect(passed).toBeGreaterThan(3);
    expect(await engine.measurePeak()).toBeGreaterThan(0.5);
    expect(await engine.measureRead(1 << 22)).toBeGreaterThan(1e8);
  });

  it('lints', async () => {
    const codes = async (source: string | Uint8Array) =>
      (await engine.lint(await engine.text(source), 32, 0.1)).map(({ code }) => code);
    expect(await codes(new Uint8Array(5000))).toContain('nul');
    expect(await codes('a\r\nb\r\n'.repeat(1000))).toContain('crlf');
    expect(await codes('')).toContain('empty');
  });
});

describe('errors', () => {
  let run: Run;
  let file: Uint8Array;
  beforeAll(async () => {
    run = await start(engine, { ...RUN, steps: 2 });
    await finish(run.trainer);
    file = await run.trainer.save();
  });

  it('names the option that is wrong', async () => {
    const { model, text } = run;
    const trainer = (options: object) => failure(engine.newTrainer(model, text, options));
    expect((await trainer({ lr: -1 })).code).toBe('ARG');
    expect((await trainer({ batch: 1.5 })).message).toContain('batch');
    expect((await trainer({ batch: 1e12 })).message).toContain('batch');
    expect((await trainer({ seed: -1 })).message).toContain('seed');
    expect((await trainer({ schedule: 'sine' })).message).toContain('schedule');
    expect((await trainer({ stepps: 1 })).message).toContain('stepps');
    expect((await trainer({ lr: '1' })).message).toContain('lr');
    const config = { ...(await model.info()).config, heads: 5 };
    expect((await failure(engine.newModel(config))).code).toBe('RANGE');
    expect((await failure(engine.newModel({ ...config, heads: 3, width: NaN }))).code).toBe('ARG');
    expect((await failure(model.session(99))).code).toBe('ARG');
    expect((await failure(model.save('v9' as FileKind))).code).toBe('ARG');
  });

  it('refuses a text that is too short', async () => {
    const short = await engine.text('abc');
    const { code, message } = await failure(engine.newTrainer(run.model, short, RUN));
    expect(code).toBe('DATA');
    expect(message.length).toBeGreaterThan(20);
  });

  it('refuses another text than the one of the run', async () => {
    const other = await engine.text(await engine.stories(43, 60_000));
    expect((await failure(engine.openTrainer(file, other))).code).toMatch(/ARG|DATA|FORMAT/);
  });

  it('refuses what is no model', async () => {
    const page = new TextEncoder().encode('<!doctype html><title>404</title>'.repeat(50));
    for (const bytes of [page, new Uint8Array(0), new Uint8Array(100_000), new Uint8Array(3)]) {
      expect((await failure(engine.openModel(bytes))).code).toMatch(/FORMAT|CHECKSUM/);
      expect((await failure(engine.openTrainer(bytes, run.text))).code).toMatch(/FORMAT|CHECKSUM/);
      expect((await failure(engine.checkFile(bytes))).code).toMatch(/FORMAT|CHECKSUM/);
    }
    const nothing = 42 as unknown as Uint8Array;
    expect((await failure(engine.openModel(nothing))).code).toBe('ARG');
  });

  it('finds a flipped bit and a missing end anywhere in a run', async () => {
    const allowed = /FORMAT|CHECKSUM|RANGE|UNSUPPORTED|MEMORY|DATA|ARG|SHAPE/;
    const places = [...Array(64).keys()].map((i) => i * 3);
    for (let i = 1; i < 60; i++) places.push(Math.floor((file.length * i) / 60));
    places.push(file.length - 1, file.length - 33);
    for (const at of places) {
      const broken = file.slice();
      broken[at]! ^= 1 << (at % 8);
      expect((await failure(engine.checkFile(broken))).code, `bit at ${at}`).toMatch(allowed);
      const opened = await engine.openTrainer(broken, run.text).catch((error: unknown) => error);
      if (opened instanceof TinygptError) expect(opened.code).toMatch(allowed);
      else (opened as Trainer).free();
    }
    for (const at of places) {
      const cut = file.slice(0, at);
      expect((await failure(engine.openTrainer(cut, run.text))).code).toMatch(allowed);
    }
  });

  it('says so when a model does not fit into memory', async () => {
    const small = await Engine.open({ build: 'simd', maxMemoryBytes: 64 << 20 });
    const notes: string[] = [];
    small.onRebuilt = (reason) => notes.push(reason);
    expect(small.info.maxMemoryBytes).toBe(64 << 20);
    const { config } = small.info.presets.find(({ name }) => name === 'mega')!;
    expect((await failure(small.newModel(config))).code).toBe('MEMORY');
    const { trainer } = await start(small, { ...RUN, steps: 2 });
    expect((await finish(trainer)).hash).toHaveLength(16);
    await small.close();
    expect(notes).toEqual([]);
  });

  it('goes on after a loss that is no number', async () => {
    /* v1 has no checksums: its last weights become 3e38, whose squares are infinite. */
    const weights = (await run.model.save('v1-f32')).fill(0x7f, -4000);
    const model = await engine.openModel(weights);
    const trainer = await engine.newTrainer(model, run.text, RUN);
    for (let i = 0; i < 2; i++) {
      const { code, message } = await failure(finish(trainer));
      expect(code).toBe('NUMBER');
      expect(message.length).toBeGreaterThan(10);
    }
    expect(await trainer.done()).toBe(0);
    const options = { ...RUN, steps: 2, skipBadSteps: true };
    const skipping = await engine.newTrainer(model, run.text, options);
    for await (const report of skipping.steps()) {
      expect(report.skipped).toBe(true);
      expect(report.badTensor).not.toBe('');
    }
  });
});

describe('freeing', () => {
  it('may come twice, in any order, and ends the use of an object', async () => {
    const { text, model, trainer } = await start(engine, { ...RUN, steps: 4 });
    const session = await model.session();
    text.free();
    text.free();
    model.free();
    expect((await failure(text.sha256())).code).toBe('CLOSED');
    expect((await failure(model.info())).code).toBe('CLOSED');
    expect((await finish(trainer)).hash).toHaveLength(16);
    expect(await read(session.generate('Once', { tokens: 5 }))).not.toBe('');
    trainer.free();
    trainer.free();
    expect((await failure(trainer.done())).code).toBe('CLOSED');
    expect((await failure(finish(trainer))).code).toBe('CLOSED');
    session.free();
    session.free();
  });

  it('ends what is running on the object', async () => {
    const { trainer } = await start(engine, { ...RUN, steps: 100_000 });
    const running = finish(trainer);
    await sleep(100);
    trainer.free();
    expect((await failure(running)).code).toBe('CLOSED');
  });

  it('gives the memory back', async () => {
    const once = async () => {
      const { text, model, trainer } = await start(engine, { ...RUN, steps: 1 });
      await finish(trainer);
      const file = await trainer.save();
      const again = await engine.openTrainer(file, text);
      await finish(again);
      await model.probe('Once');
      [again, trainer, model, text].forEach((object) => object.free());
    };
    for (let i = 0; i < 3; i++) await once();
    const before = await engine.memoryBytes();
    for (let i = 0; i < 6; i++) await once();
    expect(await engine.memoryBytes()).toBe(before);
  });
});
