// SPDX-License-Identifier: Apache-2.0
/**
 * chat.test.ts - conversations with SmolLM2 in Node, from the file of tools/setup.sh: the native
 * program's answer, caches that are used again, stops, full contexts, files that are none.
 */
import { execFileSync } from 'node:child_process';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type Answer, type AnswerOptions, type BatchAnswer, type ChatModel, Engine, TinygptError, type Turn,
} from 'tinygpt';

import { computing, expectPromptStops } from './testing/setup.js';

const root = resolve(import.meta.dirname, '../../..');
const build = resolve(import.meta.dirname, '../..', process.env['TG_BUILD'] ?? '../build');
const path = resolve(root, '.cache/models/SmolLM2-135M-Instruct.Q4_1.gguf');
const ASK: Turn[] = [{ role: 'user', text: 'Why is the sky blue?' }];

let engine: Engine;
let model: ChatModel;
beforeAll(async () => {
  engine = await Engine.open({ build: 'simd-mt', threads: 2 });
  model = await engine.openChatModel(pathToFileURL(path));
});
afterAll(() => engine.close());

async function read(answer: Answer): Promise<string> {
  let text = '';
  for await (const piece of answer) text += piece.text;
  return text;
}

async function codeOf(call: Promise<unknown>): Promise<string> {
  const e = await call.then(() => undefined, (reason: unknown) => reason);
  expect(e).toBeInstanceOf(TinygptError);
  return (e as TinygptError).code;
}

/** The native program's greedy answer, by the kernels whose bits those of simd128 are. */
function native(tokens: number): string {
  const args = ['chat', path, '--temp', '0', '--tokens', String(tokens), '--isa', 'scalar'];
  const input = `${ASK[0]!.text}\n`;
  const out = execFileSync(resolve(build, 'tinygpt'), [...args, '--ctx', '512', '--json'], {
    input, encoding: 'utf8',
  });
  return (JSON.parse(out) as { text: string }).text;
}

describe('a third-party model file', () => {
  it('tells what it is and takes, before it is loaded', async () => {
    const facts = await engine.modelFacts(pathToFileURL(path));
    expect(facts).toMatchObject({ family: 'llama', layers: 30, ctx: 8192, vocab: 49152 });
    expect(facts.weightBytes).toBe(model.info.weightBytes);
    const cache = facts.caches.find(({ tokens }) => tokens === 2048)!.bytes;
    const before = await engine.memoryBytes();
    const session = await model.chat({ ctx: 2048 });
    await read(session.answer(ASK, { tokens: 1 }));
    const grown = (await engine.memoryBytes()) - before;
    expect(grown).toBeGreaterThan(0.9 * cache);
    expect(grown).toBeLessThan(cache + 48e6);
    session.free();
  });

  it('may be a run, which is told of by its own family and cache', async () => {
    const out = resolve(build, 'test/chat_run.tinygpt');
    const sizes = ['--layers', '2', '--width', '32', '--heads', '4', '--kv-heads', '2', '--ctx', '64'];
    execFileSync(resolve(build, 'tinygpt'), ['train', '--data', resolve(root, 'data/stories.txt'),
      '--family', 'llama', ...sizes, '--steps', '1', '--batch', '1', '--eval-windows', '1', '--quiet',
      '--sample-every', '0', '--force', '--out', out]);
    const facts = await engine.modelFacts(pathToFileURL(out));
    expect(facts).toMatchObject({ family: 'llama', layers: 2, ctx: 64, vocab: 256 });
    const [cache] = facts.caches; // keys and values of 2 layers and 2 heads of 8
    expect(cache).toMatchObject({ tokens: 64, bytes: 4 * 2 * 2 * 2 * 8 * 64 });
  });

  it('has a tokenizer, whose special tokens come from its text alone if asked for', async () => {
    const text = 'Hello <|im_end|> wörld';
    const plain = await model.tokenize(text);
    const special = await model.tokenize(text, true);
    expect(special.ids.length).toBeLessThan(plain.ids.length);
    expect(special.pieces).toContain('<|im_end|>');
    expect(plain.pieces).not.toContain('<|im_end|>');
    expect(model.info.template).toContain('<|im_start|>');
    expect(model.info.templates).toContain('chatml');
  });
});

describe('loading', () => {
  it('tells how far it is, and stops within 100 ms without keeping anything', async () => {
    // A small model can be there before the first 100 ms, after which a share is told.
    const large = pathToFileURL(resolve(root, '.cache/models/gemma-3-270m-q4_k_m.gguf'));
    const before = await engine.memoryBytes();
    await expectPromptStops(async () => {
      const abort = new AbortController();
      const loading = engine.openChatModel(large, { signal: abort.signal });
      const aborted = new Promise<() => number>((tell) => {
        setTimeout(() => {
          tell(computing());
          abort.abort();
        }, 30);
      });
      // A thread that gets no turn for so long that the model is there already stops nothing.
      const outcome = await loading.then((late) => late.free(), (error: unknown) => error);
      if (outcome === undefined) return Infinity;
      expect(String(outcome)).toMatch(/abort/);
      return (await aborted)();
    }, 3);
    const shares: number[] = [];
    const onProgress = (share: number) => void shares.push(share);
    let weightBytes = 0;
    for (let i = 0; i < 2; i++) {
      const whole = await engine.openChatModel(large, { onProgress });
      weightBytes = whole.info.weightBytes;
      whole.free();
    }
    expect(shares[0]).toBeGreaterThan(0);
    expect(shares[0]).toBeLessThan(1);
    expect((await engine.memoryBytes()) - before).toBeLessThan(1.5 * weightBytes);
  });

  it('keeps nothing of a model that was there when its loading was aborted', async () => {
    const before = await engine.memoryBytes();
    for (let i = 0; i < 3; i++) {
      const abort = new AbortController();
      // Aborted by the question whether it was, which is asked when the reply has come.
      Object.defineProperty(abort.signal, 'aborted', {
        get: () => { abort.abort(); return true; },
      });
      const loading = engine.openChatModel(pathToFileURL(path), { signal: abort.signal });
      await expect(loading).rejects.toThrow(/abort/);
    }
    expect((await engine.memoryBytes()) - before).toBeLessThan(1.5 * model.info.weightBytes);
  });
});

/** What the rows of a batch have written. */
async function readRows(answer: BatchAnswer, n: number): Promise<string[]> {
  const texts = Array.from({ length: n }, () => '');
  for await (const piece of answer) texts[piece.row] += piece.text;
  return texts;
}

describe('a batch', () => {
  it('has in each row what the row has alone, conversations and texts with options of their own', async () => {
    const said = [ASK, 'Once upon a time', 'The sea is'];
    const rows = [
      { tokens: 12, temperature: 0 }, { tokens: 9, seed: 3 }, { tokens: 5, temperature: 0 },
    ];
    const alone = await Promise.all(said.map(async (one, i) => {
      const session = await model.chat({ ctx: 256 });
      const text = await read(
        typeof one === 'string' ? session.complete(one, rows[i]) : session.answer(one, rows[i]),
      );
      session.free();
      return text;
    }));
    const batch = await model.batch(3, { ctx: 256 });
    expect(batch).toMatchObject({ rows: 3, capacity: 256 });
    const together = batch.answer(said, { rows });
    expect(await readRows(together, 3)).toEqual(alone);
    expect(await together.stats).toMatchObject(
      rows.map(({ tokens }) => ({ newTokens: tokens, end: 'length', reusedTokens: 0 })),
    );
    // A row goes on, and a copy has what was read of it.
    await batch.copy(1, 0);
    const again = batch.answer([ASK, ASK], { tokens: 12, temperature: 0 });
    expect(await readRows(again, 2)).toEqual([alone[0], alone[0]]);
    for (const { reusedTokens } of await again.stats) expect(reusedTokens).toBeGreaterThan(20);
    batch.free();
  });

  it('stops one row, or all within 100 ms, and goes on', async () => {
    const batch = await model.batch(2, { ctx: 1024, template: null });
    const bias = [{ id: (await model.tokenize('<|im_end|>', true)).ids[0]!, bias: -Infinity }];
    const answer = batch.answer(['One, two,', 'Red, blue,'], { tokens: 40, bias });
    let first = 0;
    let second = 0;
    for await (const { row } of answer) {
      if (row === 0 && ++first === 3) await batch.stop(0);
      if (row === 1) second++;
    }
    const [a, b] = await answer.stats;
    expect(a).toMatchObject({ end: 'stopped' });
    expect(a!.newTokens).toBeLessThan(40);
    expect(b).toMatchObject({ end: 'length', newTokens: 40 });
    expect(second).toBeGreaterThanOrEqual(40);
    await expectPromptStops(async () => {
      const abort = new AbortController();
      const all = batch.answer(['One, two,', 'Red, blue,'], { bias, signal: abort.signal });
      let since: (() => number) | undefined;
      for await (const _ of all) {
        since ??= computing();
        abort.abort();
      }
      expect(await all.stats).toMatchObject([{ end: 'stopped' }, { end: 'stopped' }]);
      return since!();
    });
    batch.free();
  });

  it('refuses what cannot be', async () => {
    expect(await codeOf(model.batch(65))).toBe('ARG');
    expect(await codeOf(model.batch(0))).toBe('ARG');
    const batch = await model.batch(2, { ctx: 64, template: null });
    expect(await codeOf(batch.answer([]).stats)).toBe('ARG');
    expect(await codeOf(batch.answer(['a', 'b', 'c']).stats)).toBe('ARG');
    expect(await codeOf(batch.answer(['a', ASK]).stats)).toBe('ARG');
    expect(await codeOf(batch.answer(['a', 'word '.repeat(80)], { tokens: 2 }).stats)).toBe('FULL');
    expect(await codeOf(batch.copy(0, 2))).toBe('ARG');
    expect(await codeOf(batch.stop(-1))).toBe('ARG');
    batch.free();
    expect(await codeOf(batch.copy(0, 1))).toBe('CLOSED');
  });
});

describe('a conversation', () => {
  it('has the native program\'s answer, and does not read again what it has read', async () => {
    const session = await model.chat({ ctx: 512 });
    const first = session.answer(ASK, { temperature: 0, tokens: 16 });
    const text = await read(first);
    expect(text).toBe(native(16));
    expect(await first.stats).toMatchObject({ newTokens: 16, reusedTokens: 0, end: 'length' });
    const turns: Turn[] = [
      ...ASK, { role: 'assistant', text }, { role: 'user', text: 'And the sea?' },
    ];
    const second = session.answer(turns, { temperature: 0, tokens: 8 });
    const following = await read(second);
    const { reusedTokens, promptTokens } = await second.stats;
    expect(reusedTokens).toBeGreaterThan((await first.stats).promptTokens);
    expect(reusedTokens).toBeLessThan(promptTokens);
    session.free();
    const fresh = await model.chat({ ctx: 512 });
    expect(await read(fresh.answer(turns, { temperature: 0, tokens: 8 }))).toBe(following);
    fresh.free();
  });

  it('stops within 100 ms, while it reads and while it writes, and goes on', async () => {
    const session = await model.chat({ ctx: 2048 });
    const long: Turn[] = [{ role: 'user', text: 'All of it, please. '.repeat(200) }];
    // An answer that never ends by itself.
    const endId = (await model.tokenize('<|im_end|>', true)).ids[0]!;
    const stop = async (turns: Turn[]) => {
      const abort = new AbortController();
      const answer = session.answer(turns, { signal: abort.signal, bias: [{ id: endId, bias: -1000 }] });
      // Between the slices of the prompt, or behind the first piece.
      if (turns === long) for (let i = 0; i < 3; i++) await engine.memoryBytes();
      else await answer[Symbol.asyncIterator]().next();
      const computed = computing();
      abort.abort();
      const { end } = await answer.stats;
      const took = computed();
      expect(end).toBe('stopped');
      return took;
    };
    for (const turns of [long, ASK]) await expectPromptStops(() => stop(turns), 3);
    const again = session.answer(ASK, { temperature: 0, tokens: 4 });
    expect(await read(again)).not.toBe('');
    expect((await again.stats).reusedTokens).toBeGreaterThan(0);
    session.free();
  });

  it('keeps to texts that are banned, ends at those that end it, and minds biases', async () => {
    const session = await model.chat({ ctx: 512 });
    const ask = (options: AnswerOptions) =>
      session.answer(ASK, { temperature: 0, tokens: 16, ...options });
    const text = await read(ask({}));
    const word = text.split(' ')[3]!;
    expect(await read(ask({ banned: [word] }))).not.toContain(word);
    const ended = ask({ stops: ['never there', word] });
    expect(await read(ended)).toBe(text.slice(0, text.indexOf(word)));
    expect((await ended.stats).end).toBe('end');
    const { ids } = await model.tokenize('blue');
    const bias = [{ id: ids[0]!, bias: 1000 }];
    expect(await read(ask({ bias, tokens: 3 }))).toBe('blueblueblue');
    expect(await read(ask({}))).toBe(text);
    expect(await codeOf(ask({ banned: ['x'.repeat(300)] }).stats)).toBe('ARG');
    session.free();
  });

  it('ends where the context is full, and refuses what does not fit', async () => {
    const session = await model.chat({ ctx: 48 });
    const answer = session.answer(ASK, { temperature: 0 });
    expect(await read(answer)).not.toBe('');
    expect(await answer.stats).toMatchObject({ end: 'full', context: 48, capacity: 48 });
    const long: Turn[] = [{ role: 'user', text: 'word '.repeat(100) }];
    expect(await codeOf(session.answer(long).stats)).toBe('FULL');
    expect(await read(session.answer(ASK, { tokens: 2 }))).not.toBe('');
    session.free();
  });
});

describe('a session besides', () => {
  it('goes on with a begun answer, to what it would have been', async () => {
    const session = await model.chat({ ctx: 512 });
    const whole = await read(session.answer(ASK, { temperature: 0, tokens: 16 }));
    const cut = await read(session.answer(ASK, { temperature: 0, tokens: 7 }));
    const begun: Turn[] = [...ASK, { role: 'assistant', text: cut }];
    const rest = session.answer(begun, { temperature: 0, tokens: 9, goOn: true });
    expect(cut + (await read(rest))).toBe(whole);
    expect((await rest.stats).reusedTokens).toBeGreaterThan(0);
    session.free();
  });

  it('continues a text without a template, and wants one for turns', async () => {
    const session = await model.session({ ctx: 128, keys: 'f16' });
    const text = await read(session.complete('Once upon a time', { temperature: 0, tokens: 12 }));
    expect(text).toMatch(/^[ ,]/);
    expect(await codeOf(session.answer(ASK).stats)).toBe('ARG');
    expect(await codeOf(model.session({ keys: 'f8' as never }))).toBe('ARG');
    session.free();
  });

  it('takes less memory with keys of other kinds', async () => {
    const grown = async (keys: 'f32' | 'int8') => {
      const before = await engine.memoryBytes();
      const session = await model.chat({ ctx: 8192, keys });
      expect(await read(session.answer(ASK, { temperature: 0, tokens: 4 }))).not.toBe('');
      const after = await engine.memoryBytes();
      session.free();
      return after - before;
    };
    // The smaller one first: what it gives back, the larger one takes.
    const small = await grown('int8');
    expect(await grown('f32')).toBeGreaterThan(small);
  });

  it('is kept in a file with a note, and goes on from it without reading anew', async () => {
    const session = await model.chat({ ctx: 256 });
    const text = await read(session.answer(ASK, { temperature: 0, tokens: 8 }));
    const file = await session.save(new TextEncoder().encode('a note'));
    session.free();
    const other = await model.chat({ ctx: 256 });
    expect(new TextDecoder().decode(await other.load(file))).toBe('a note');
    const again = other.answer(ASK, { temperature: 0, tokens: 8 });
    expect(await read(again)).toBe(text);
    const { reusedTokens, promptTokens } = await again.stats;
    expect(reusedTokens).toBe(promptTokens - 1);
    file[file.length - 9]! ^= 1;
    expect(await codeOf(other.load(file))).toMatch(/CHECKSUM|FORMAT/);
    other.free();
  });
});

describe('embeddings', () => {
  it('are vectors of length 1, near each other where texts are, one text or several', async () => {
    const texts = ['The cat sleeps.', 'A cat is asleep.', 'Stock prices fell sharply today.'];
    const [a, b, c] = await model.embed(texts);
    const dot = (x: Float32Array, y: Float32Array) => x.reduce((sum, v, i) => sum + v * y[i]!, 0);
    expect(dot(a!, a!)).toBeCloseTo(1, 5);
    expect(dot(a!, b!)).toBeGreaterThan(dot(a!, c!));
    expect((await model.embed([texts[1]!]))[0]).toEqual(b);
    const out = execFileSync(resolve(build, 'tinygpt'), [
      'embed', path, texts[0]!, '--isa', 'scalar', '--json',
    ], { encoding: 'utf8' });
    const native = (JSON.parse(out) as { vectors: number[][] }).vectors[0]!;
    expect(dot(a!, Float32Array.from(native))).toBeCloseTo(1, 5);
  });
});

describe('what is refused', () => {
  it('a file that is none, and one that is cut', async () => {
    const { readFileSync } = await import('node:fs');
    const head = new Uint8Array(readFileSync(path).subarray(0, 4 << 20));
    expect(await codeOf(engine.openChatModel(head))).toBe('FORMAT');
    expect(await codeOf(engine.modelFacts(new Uint8Array(1000)))).toMatch(/FORMAT|IO/);
    expect(await codeOf(engine.modelFacts({ stored: 'x' }))).toBe('IO');
  });

  it('options that are out of range, and templates that are none', async () => {
    expect(await codeOf(model.chat({ template: 'none' }))).toMatch(/ARG|UNSUPPORTED/);
    expect(await codeOf(model.chat({ ctx: 1e6 }))).toMatch(/ARG|RANGE/);
    const session = await model.chat({ ctx: 128 });
    expect(await codeOf(session.answer(ASK, { temperature: -1 }).stats)).toBe('ARG');
    expect(await codeOf(session.answer([]).stats)).toBe('ARG');
    session.free();
    expect(() => session.answer(ASK)).toThrow(/was freed/);
  });
});
