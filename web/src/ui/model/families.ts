// SPDX-License-Identifier: Apache-2.0
/**
 * families.ts - the families that can be trained: what the page calls them, and what each makes of
 * the sizes that are left to it (0). The engine knows all of this; the page needs it before the
 * engine has come, and to tell whether the model of a file has a preset's shape. A test holds this
 * file against the engine, family by family.
 */
import type { GptConfig } from '../../lib/types';

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

export interface Family {
  name: string;
  label: string;
  /** A GPT learns its positions, has biases, and an MLP of two matrices; the others do not. */
  gpt: boolean;
  /** Norms of a layer that are as wide as the stream. */
  norms: number;
  /** Whether queries and keys have norms of their own, or biases. */
  keyNorms: boolean;
  keyBiases: boolean;
  windows: boolean;
  /** The embedding is the head, too. */
  tied: boolean;
  ropeBase: number;
}

const TINYGPT: Family = {
  name: 'tinygpt',
  label: 'tinygpt (as GPT-2, bytes)',
  gpt: true,
  norms: 4,
  keyNorms: false,
  keyBiases: false,
  windows: false,
  tied: true,
  ropeBase: 0,
};
const LLAMA: Family = {
  ...TINYGPT,
  name: 'llama',
  label: 'Llama',
  gpt: false,
  norms: 2,
  ropeBase: 1e4,
};

export const FAMILIES: readonly Family[] = [
  TINYGPT,
  { ...TINYGPT, name: 'gpt2', label: 'GPT-2', tied: false },
  LLAMA,
  { ...LLAMA, name: 'qwen2', label: 'Qwen 2', keyBiases: true },
  { ...LLAMA, name: 'qwen3', label: 'Qwen 3', keyNorms: true },
  {
    ...LLAMA,
    name: 'gemma3',
    label: 'Gemma 3',
    norms: 4,
    keyNorms: true,
    windows: true,
    ropeBase: 1e6,
  },
  { ...LLAMA, name: 'phi3', label: 'Phi 3', windows: true, tied: false },
];

/** The family by its name; the first one where a name is not known. */
export function familyOf(name: string | undefined): Family {
  return FAMILIES.find((f) => f.name === name) ?? TINYGPT;
}

/** What a family makes of sizes that are left to it. */
function filled(s: Shape): Shape {
  const f = familyOf(s.family);
  const gated = Math.ceil(Math.floor((8 * s.width) / 3) / 16) * 16;
  return {
    ...s,
    kvHeads: s.kvHeads || s.heads,
    headSize: s.headSize || Math.floor(s.width / s.heads),
    mlp: s.mlp || (f.gpt ? 4 * s.width : gated),
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
    ropeBase: f.gpt ? 0 : unlike(c.ropeBase0, own.ropeBase),
  };
}

/** What the engine makes a model of. */
export function configOf(s: Shape): GptConfig {
  const { family, layers, width, heads, ctx } = s;
  const sizes = { layers, width, heads, ctx, vocab: 256 };
  if (family === TINYGPT.name) return { ...sizes, mlp: 4 * width };
  const { kvHeads, headSize, mlp, window, ropeBase } = s;
  return { ...sizes, family, kvHeads, headSize, mlp, window, ropeBase0: ropeBase };
}

/** tg_param_count with 256 byte values. */
export function paramCount(shape: Shape): number {
  const s = filled(shape);
  const f = familyOf(s.family);
  const c = s.width;
  const queries = s.heads * s.headSize;
  const all = queries + 2 * s.kvHeads * s.headSize;
  const matrices = c * all + queries * c + (f.gpt ? 2 : 3) * c * s.mlp;
  // A norm of a GPT has a bias, too, which `norms` counts; its matrices have the other biases.
  const biases = f.gpt ? all + c + s.mlp + c : f.keyBiases ? all : 0;
  const layer = matrices + biases + f.norms * c + (f.keyNorms ? 2 * s.headSize : 0);
  const ends = (f.tied ? 256 : 512) * c;
  return ends + (f.gpt ? s.ctx * c + 2 * c : c) + s.layers * layer;
}
