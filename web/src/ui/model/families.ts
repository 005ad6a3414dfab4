// SPDX-License-Identifier: Apache-2.0
/**
 * families.ts - what a family makes of the sizes that are left to it (0), and how many weights a
 * model of it has. The families themselves are the engine's, in families.gen.ts: the page needs
 * them before the engine has come, and to tell whether the model of a file has a preset's shape.
 */
import type { GptConfig } from '../../lib/types';
import { FAMILIES, type Family, type SizeName, UNNAMED } from './families.gen';

export { FAMILIES, UNNAMED };

/** The sizes of a model, as a person sets them; 0: the family's own. */
export interface Shape {
  family: string;
  layers: number;
  width: number;
  heads: number;
  ctx: number;
  kvHeads: number;
  headSize: number;
  mlp: number;
  window: number;
  ropeBase: number;
}

/** The family by its name; that of files which name none where it is not known. */
export function familyOf(name: string | undefined): Family {
  const named = (wanted: string | undefined) => FAMILIES.find((f) => f.name === wanted);
  const found = named(name) ?? named(UNNAMED);
  if (!found) throw new Error('families.gen.ts has no families');
  return found;
}

/** What a family makes of sizes that are left to it. */
function filled(s: Shape): Shape {
  const f = familyOf(s.family);
  const full = Math.ceil(Math.floor((8 * s.width) / 3) / 16) * 16;
  const gated = f.experts ? Math.ceil(full / 2 / 16) * 16 : full;
  return {
    ...s,
    kvHeads: s.kvHeads || s.heads,
    headSize: s.headSize || Math.floor(s.width / s.heads),
    mlp: s.mlp || (f.gated ? gated : 4 * s.width),
    ropeBase: s.ropeBase || f.ropeBase,
  };
}

/** The shape alone, of a value that has more. */
export function bareShape(s: Shape): Shape {
  const { family, layers, width, heads, ctx, kvHeads, headSize, mlp, window, ropeBase } = s;
  return { family, layers, width, heads, ctx, kvHeads, headSize, mlp, window, ropeBase };
}

export function sameShape(a: Shape, b: Shape): boolean {
  const [x, y] = [filled(a), filled(b)];
  return (Object.keys(bareShape(a)) as (keyof Shape)[]).every((key) => x[key] === y[key]);
}

/** The sizes of a model, with 0 wherever it has its family's own. */
export function shapeOf(c: GptConfig): Shape {
  const f = familyOf(c.family);
  const sizes = { layers: c.layers, width: c.width, heads: c.heads, ctx: c.ctx };
  const bare: Shape = {
    family: f.name,
    ...sizes,
    kvHeads: 0,
    headSize: 0,
    mlp: 0,
    window: c.window ?? 0,
    ropeBase: 0,
  };
  const own = filled(bare);
  const unlike = (value: number | undefined, usual: number) =>
    value === undefined || value === usual ? 0 : value;
  return {
    ...bare,
    kvHeads: unlike(c.kvHeads, own.kvHeads),
    headSize: unlike(c.headSize, own.headSize),
    mlp: unlike(c.mlp, own.mlp),
    ropeBase: f.learnedPositions ? 0 : unlike(c.ropeBase0, own.ropeBase),
  };
}

/** What the engine makes a model of. */
export function configOf(s: Shape): GptConfig {
  const { family, layers, width, heads, ctx } = s;
  const sizes = { layers, width, heads, ctx, vocab: 256 };
  if (family === UNNAMED) return { ...sizes, mlp: 4 * width };
  const { kvHeads, headSize, mlp, window, ropeBase } = s;
  return { ...sizes, family, kvHeads, headSize, mlp, window, ropeBase0: ropeBase };
}

/** Twice the width in heads of a size or of what divides it. Mamba2 has one group; delta nets have a
 *  head of keys, as large, for each of values. */
function statesOf(width: number, deltaNets: boolean) {
  const ssmInner = 2 * width;
  const usual = width < 512 ? 32 : 128;
  let head = deltaNets ? usual : 32;
  while (ssmInner % head) head--;
  const ssmHeads = ssmInner / head;
  const ssmConv = ssmInner + 2 * (deltaNets ? ssmInner : usual);
  return { ssmInner, ssmHeads, ssmConv, ssmIn: ssmInner + ssmConv + ssmHeads, deltaHead: head };
}

/** tg_param_count; the tokens are bytes if nothing else is said. */
export function paramCount(shape: Shape, vocab = 256): number {
  const s = filled(shape);
  const family = familyOf(s.family);
  const queries = s.heads * s.headSize;
  const keys = s.kvHeads * s.headSize;
  const size: Record<SizeName, number> = {
    one: 1,
    two: 2,
    width: s.width,
    mlp: s.mlp,
    gateUp: 2 * s.mlp,
    vocab,
    head: s.headSize,
    queries,
    keys,
    gatedQueries: 2 * queries,
    qkv: queries + 2 * keys,
    ctx: s.ctx,
    convIn: 3 * s.width,
    taps: family.taps,
    experts: family.experts,
    expertsMlp: family.experts * s.mlp,
    expertsWidth: family.experts * s.width,
    ...statesOf(s.width, family.deltaNets),
  };
  const attention = Math.ceil(s.layers / family.attentionEvery);
  const times = { model: 1, layers: s.layers, attention, other: s.layers - attention };
  return family.tensors.reduce((sum, t) => sum + t.count * times[t.of] * size[t.rows] * size[t.cols], 0);
}
