// SPDX-License-Identifier: Apache-2.0
/**
 * families.gen.ts - the families that can be trained and the presets, as the engine has
 * them: made by tools/gen_docs.c (make gen) from src/model, and not to be edited.
 */

export type SizeName =
  | 'one'
  | 'width'
  | 'mlp'
  | 'vocab'
  | 'head'
  | 'queries'
  | 'keys'
  | 'qkv'
  | 'gateUp'
  | 'ctx'
  | 'two';

/** Tensors of one shape: of the model, or of each layer. */
export interface Tensors {
  count: number;
  rows: SizeName;
  cols: SizeName;
  layered: boolean;
}

export interface Family {
  name: string;
  label: string;
  /** Its layers may see a window alone. */
  windows: boolean;
  /** Else they are rotary, with ropeBase. */
  learnedPositions: boolean;
  /** The MLP multiplies with a gate. */
  gated: boolean;
  ropeBase: number;
  tensors: readonly Tensors[];
}

/** That of files which name none. */
export const UNNAMED = 'tinygpt';

export const FAMILIES: readonly Family[] = [
  {
    name: 'tinygpt',
    label: 'tinygpt (as GPT-2, bytes)',
    windows: false,
    learnedPositions: true,
    gated: false,
    ropeBase: 0,
    tensors: [
      { count: 2, rows: 'one', cols: 'width', layered: false },
      { count: 1, rows: 'vocab', cols: 'width', layered: false },
      { count: 1, rows: 'ctx', cols: 'width', layered: false },
      { count: 9, rows: 'one', cols: 'width', layered: true },
      { count: 1, rows: 'one', cols: 'mlp', layered: true },
      { count: 4, rows: 'width', cols: 'width', layered: true },
      { count: 1, rows: 'width', cols: 'mlp', layered: true },
      { count: 1, rows: 'mlp', cols: 'width', layered: true },
    ],
  },
  {
    name: 'gpt2',
    label: 'GPT-2',
    windows: false,
    learnedPositions: true,
    gated: false,
    ropeBase: 0,
    tensors: [
      { count: 2, rows: 'one', cols: 'width', layered: false },
      { count: 2, rows: 'vocab', cols: 'width', layered: false },
      { count: 1, rows: 'ctx', cols: 'width', layered: false },
      { count: 6, rows: 'one', cols: 'width', layered: true },
      { count: 1, rows: 'one', cols: 'mlp', layered: true },
      { count: 1, rows: 'one', cols: 'qkv', layered: true },
      { count: 1, rows: 'width', cols: 'mlp', layered: true },
      { count: 1, rows: 'width', cols: 'queries', layered: true },
      { count: 1, rows: 'mlp', cols: 'width', layered: true },
      { count: 1, rows: 'qkv', cols: 'width', layered: true },
    ],
  },
  {
    name: 'llama',
    label: 'Llama',
    windows: false,
    learnedPositions: false,
    gated: true,
    ropeBase: 10000,
    tensors: [
      { count: 1, rows: 'one', cols: 'width', layered: false },
      { count: 1, rows: 'vocab', cols: 'width', layered: false },
      { count: 2, rows: 'one', cols: 'width', layered: true },
      { count: 1, rows: 'width', cols: 'mlp', layered: true },
      { count: 1, rows: 'width', cols: 'queries', layered: true },
      { count: 2, rows: 'mlp', cols: 'width', layered: true },
      { count: 1, rows: 'queries', cols: 'width', layered: true },
      { count: 2, rows: 'keys', cols: 'width', layered: true },
    ],
  },
  {
    name: 'qwen2',
    label: 'Qwen 2',
    windows: false,
    learnedPositions: false,
    gated: true,
    ropeBase: 10000,
    tensors: [
      { count: 1, rows: 'one', cols: 'width', layered: false },
      { count: 1, rows: 'vocab', cols: 'width', layered: false },
      { count: 2, rows: 'one', cols: 'width', layered: true },
      { count: 1, rows: 'one', cols: 'queries', layered: true },
      { count: 2, rows: 'one', cols: 'keys', layered: true },
      { count: 1, rows: 'width', cols: 'mlp', layered: true },
      { count: 1, rows: 'width', cols: 'queries', layered: true },
      { count: 2, rows: 'mlp', cols: 'width', layered: true },
      { count: 1, rows: 'queries', cols: 'width', layered: true },
      { count: 2, rows: 'keys', cols: 'width', layered: true },
    ],
  },
  {
    name: 'qwen3',
    label: 'Qwen 3',
    windows: false,
    learnedPositions: false,
    gated: true,
    ropeBase: 10000,
    tensors: [
      { count: 1, rows: 'one', cols: 'width', layered: false },
      { count: 1, rows: 'vocab', cols: 'width', layered: false },
      { count: 2, rows: 'one', cols: 'width', layered: true },
      { count: 2, rows: 'one', cols: 'head', layered: true },
      { count: 1, rows: 'width', cols: 'mlp', layered: true },
      { count: 1, rows: 'width', cols: 'queries', layered: true },
      { count: 2, rows: 'mlp', cols: 'width', layered: true },
      { count: 1, rows: 'queries', cols: 'width', layered: true },
      { count: 2, rows: 'keys', cols: 'width', layered: true },
    ],
  },
  {
    name: 'gemma3',
    label: 'Gemma 3',
    windows: true,
    learnedPositions: false,
    gated: true,
    ropeBase: 1000000,
    tensors: [
      { count: 1, rows: 'one', cols: 'width', layered: false },
      { count: 1, rows: 'vocab', cols: 'width', layered: false },
      { count: 4, rows: 'one', cols: 'width', layered: true },
      { count: 2, rows: 'one', cols: 'head', layered: true },
      { count: 1, rows: 'width', cols: 'mlp', layered: true },
      { count: 1, rows: 'width', cols: 'queries', layered: true },
      { count: 2, rows: 'mlp', cols: 'width', layered: true },
      { count: 1, rows: 'queries', cols: 'width', layered: true },
      { count: 2, rows: 'keys', cols: 'width', layered: true },
    ],
  },
  {
    name: 'phi3',
    label: 'Phi 3',
    windows: true,
    learnedPositions: false,
    gated: true,
    ropeBase: 10000,
    tensors: [
      { count: 1, rows: 'one', cols: 'width', layered: false },
      { count: 2, rows: 'vocab', cols: 'width', layered: false },
      { count: 2, rows: 'one', cols: 'width', layered: true },
      { count: 1, rows: 'width', cols: 'mlp', layered: true },
      { count: 1, rows: 'width', cols: 'queries', layered: true },
      { count: 1, rows: 'qkv', cols: 'width', layered: true },
      { count: 1, rows: 'gateUp', cols: 'width', layered: true },
    ],
  },
];

export const PRESETS = [
  {
    name: 'tiny',
    family: 'tinygpt',
    layers: 2,
    width: 48,
    heads: 3,
    kvHeads: 0,
    ctx: 32,
    batch: 16,
    steps: 2000,
  },
  {
    name: 'small',
    family: 'tinygpt',
    layers: 3,
    width: 96,
    heads: 3,
    kvHeads: 0,
    ctx: 64,
    batch: 16,
    steps: 1500,
  },
  {
    name: 'medium',
    family: 'tinygpt',
    layers: 4,
    width: 128,
    heads: 4,
    kvHeads: 0,
    ctx: 96,
    batch: 16,
    steps: 1000,
  },
  {
    name: 'large',
    family: 'tinygpt',
    layers: 6,
    width: 192,
    heads: 6,
    kvHeads: 0,
    ctx: 128,
    batch: 12,
    steps: 600,
  },
  {
    name: 'xl',
    family: 'tinygpt',
    layers: 8,
    width: 256,
    heads: 8,
    kvHeads: 0,
    ctx: 128,
    batch: 8,
    steps: 400,
  },
  {
    name: 'huge',
    family: 'tinygpt',
    layers: 12,
    width: 256,
    heads: 8,
    kvHeads: 0,
    ctx: 256,
    batch: 8,
    steps: 1500,
  },
  {
    name: 'massive',
    family: 'tinygpt',
    layers: 14,
    width: 384,
    heads: 12,
    kvHeads: 0,
    ctx: 256,
    batch: 4,
    steps: 1000,
  },
  {
    name: 'mega',
    family: 'tinygpt',
    layers: 14,
    width: 384,
    heads: 12,
    kvHeads: 0,
    ctx: 512,
    batch: 2,
    steps: 800,
  },
  {
    name: 'behemoth',
    family: 'tinygpt',
    layers: 24,
    width: 1280,
    heads: 20,
    kvHeads: 0,
    ctx: 512,
    batch: 1,
    steps: 50,
  },
  {
    name: 'modern-small',
    family: 'qwen3',
    layers: 3,
    width: 96,
    heads: 4,
    kvHeads: 2,
    ctx: 64,
    batch: 16,
    steps: 1500,
  },
  {
    name: 'modern-medium',
    family: 'qwen3',
    layers: 4,
    width: 128,
    heads: 4,
    kvHeads: 2,
    ctx: 96,
    batch: 16,
    steps: 1000,
  },
  {
    name: 'modern-large',
    family: 'qwen3',
    layers: 6,
    width: 192,
    heads: 6,
    kvHeads: 2,
    ctx: 128,
    batch: 12,
    steps: 600,
  },
];
