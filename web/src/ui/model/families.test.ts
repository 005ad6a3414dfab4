// SPDX-License-Identifier: Apache-2.0
/** families.test.ts - the page's families are the engine's, and count and fill in as it does. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Engine } from 'tinygpt';
import { configOf, FAMILIES, familyOf, paramCount, sameShape, type Shape, shapeOf } from './families';
import { SIZES } from './presets';

let engine: Engine;
beforeAll(async () => {
  engine = await Engine.open({ build: 'simd', threads: 1 });
});
afterAll(() => engine.close());

function shape(family: string, other: Partial<Shape> = {}): Shape {
  const zeros = { kvHeads: 0, headSize: 0, mlp: 0, window: 0, ropeBase: 0 };
  return { family, layers: 2, width: 40, heads: 4, ctx: 16, ...zeros, ...other };
}

it('knows every family that can be trained, by its name', () => {
  expect(FAMILIES.map((f) => f.name)).toEqual(engine.info.families);
  expect(familyOf(undefined).name).toBe('tinygpt');
});

it.each(FAMILIES.map((f) => f.name))('%s: counts and fills in what the engine does', async (name) => {
  const windows = familyOf(name).windows;
  const bases = name === 'granitehybrid' ? {} : { ropeBase: 500 }; // its positions do not turn
  const wide: Partial<Shape> =
    name === 'tinygpt' || name === 'gpt2' ? {} : { kvHeads: 2, headSize: 12, mlp: 80, ...bases };
  for (const s of [shape(name), shape(name, { ...wide, ...(windows ? { window: 8 } : {}) })]) {
    const model = await engine.newModel(configOf(s), 1);
    const info = await model.info();
    model.free();
    expect(info.family).toBe(name);
    expect(paramCount(s), JSON.stringify(s)).toBe(info.params);
    expect(shapeOf(info.config)).toEqual(s);
  }
});

it.each(FAMILIES.map((f) => f.name))('%s: trains and writes', async (name) => {
  const text = await engine.text(await engine.stories(42, 20_000));
  const model = await engine.newModel(configOf(shape(name)), 1);
  const trainer = await engine.newTrainer(model, text, { steps: 12, batch: 4, lr: 3e-3 });
  const losses: number[] = [];
  for await (const { loss } of trainer.steps()) losses.push(loss);
  expect(losses).toHaveLength(12);
  expect(losses.at(-1)).toBeLessThan(losses[0] ?? 0);
  const session = await trainer.model.session();
  let written = 0;
  for await (const _ of session.generate('The', { tokens: 4 })) written++;
  expect(written).toBe(4);
  [session, trainer, model, text].forEach((object) => object.free());
});

it('has the presets of the engine', () => {
  expect(SIZES.map((s) => s.name)).toEqual(engine.info.presets.map((p) => p.name));
  for (const [i, preset] of engine.info.presets.entries()) {
    const size = SIZES[i];
    if (!size) throw new Error('too few sizes');
    expect(paramCount(size), size.name).toBe(preset.params);
    expect(sameShape(size, shapeOf(preset.config)), size.name).toBe(true);
    expect([size.batch, size.steps]).toEqual([preset.batch, preset.steps]);
  }
});

it('tells shapes apart by every size', () => {
  const s = shape('gemma3', { kvHeads: 2 });
  expect(sameShape(s, { ...s, headSize: 10, mlp: 112, ropeBase: 1e6 })).toBe(true);
  for (const key of Object.keys(s) as (keyof Shape)[]) {
    const other = key === 'family' ? 'llama' : 99;
    expect(sameShape(s, { ...s, [key]: other } as Shape), key).toBe(false);
  }
});
