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
  | 'two'
  | 'convIn'
  | 'taps'
  | 'ssmIn'
  | 'ssmConv'
  | 'ssmInner'
  | 'ssmHeads';

/** Tensors of one shape: of the model, of each layer, or of layers of a kind. */
export interface Tensors {
  count: number;
  rows: SizeName;
  cols: SizeName;
  of: 'model' | 'layers' | 'attention' | 'other';
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
  /** So many layers make one of attention, as does the last. */
  attentionEvery: number;
  /** Of short convolutions. */
  taps: number;
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
    attentionEvery: 1,
    taps: 0,
    tensors: [
      { count: 2, rows: 'one', cols: 'width', of: 'model' },
      { count: 1, rows: 'vocab', cols: 'width', of: 'model' },
      { count: 1, rows: 'ctx', cols: 'width', of: 'model' },
      { count: 9, rows: 'one', cols: 'width', of: 'layers' },
      { count: 1, rows: 'one', cols: 'mlp', of: 'layers' },
      { count: 4, rows: 'width', cols: 'width', of: 'layers' },
      { count: 1, rows: 'width', cols: 'mlp', of: 'layers' },
      { count: 1, rows: 'mlp', cols: 'width', of: 'layers' },
    ],
  },
  {
    name: 'gpt2',
    label: 'GPT-2',
    windows: false,
    learnedPositions: true,
    gated: false,
    ropeBase: 0,
    attentionEvery: 1,
    taps: 0,
    tensors: [
      { count: 2, rows: 'one', cols: 'width', of: 'model' },
      { count: 2, rows: 'vocab', cols: 'width', of: 'model' },
      { count: 1, rows: 'ctx', cols: 'width', of: 'model' },
      { count: 6, rows: 'one', cols: 'width', of: 'layers' },
      { count: 1, rows: 'one', cols: 'mlp', of: 'layers' },
      { count: 1, rows: 'one', cols: 'qkv', of: 'layers' },
      { count: 1, rows: 'width', cols: 'mlp', of: 'layers' },
      { count: 1, rows: 'width', cols: 'queries', of: 'layers' },
      { count: 1, rows: 'mlp', cols: 'width', of: 'layers' },
      { count: 1, rows: 'qkv', cols: 'width', of: 'layers' },
    ],
  },
  {
    name: 'llama',
    label: 'Llama',
    windows: true,
    learnedPositions: false,
    gated: true,
    ropeBase: 10000,
    attentionEvery: 1,
    taps: 0,
    tensors: [
      { count: 1, rows: 'one', cols: 'width', of: 'model' },
      { count: 1, rows: 'vocab', cols: 'width', of: 'model' },
      { count: 2, rows: 'one', cols: 'width', of: 'layers' },
      { count: 1, rows: 'width', cols: 'mlp', of: 'layers' },
      { count: 1, rows: 'width', cols: 'queries', of: 'layers' },
      { count: 2, rows: 'mlp', cols: 'width', of: 'layers' },
      { count: 1, rows: 'queries', cols: 'width', of: 'layers' },
      { count: 2, rows: 'keys', cols: 'width', of: 'layers' },
    ],
  },
  {
    name: 'smollm3',
    label: 'SmolLM 3',
    windows: false,
    learnedPositions: false,
    gated: true,
    ropeBase: 10000,
    attentionEvery: 1,
    taps: 0,
    tensors: [
      { count: 1, rows: 'one', cols: 'width', of: 'model' },
      { count: 1, rows: 'vocab', cols: 'width', of: 'model' },
      { count: 2, rows: 'one', cols: 'width', of: 'layers' },
      { count: 1, rows: 'width', cols: 'mlp', of: 'layers' },
      { count: 1, rows: 'width', cols: 'queries', of: 'layers' },
      { count: 2, rows: 'mlp', cols: 'width', of: 'layers' },
      { count: 1, rows: 'queries', cols: 'width', of: 'layers' },
      { count: 2, rows: 'keys', cols: 'width', of: 'layers' },
    ],
  },
  {
    name: 'qwen2',
    label: 'Qwen 2',
    windows: false,
    learnedPositions: false,
    gated: true,
    ropeBase: 10000,
    attentionEvery: 1,
    taps: 0,
    tensors: [
      { count: 1, rows: 'one', cols: 'width', of: 'model' },
      { count: 1, rows: 'vocab', cols: 'width', of: 'model' },
      { count: 2, rows: 'one', cols: 'width', of: 'layers' },
      { count: 1, rows: 'one', cols: 'queries', of: 'layers' },
      { count: 2, rows: 'one', cols: 'keys', of: 'layers' },
      { count: 1, rows: 'width', cols: 'mlp', of: 'layers' },
      { count: 1, rows: 'width', cols: 'queries', of: 'layers' },
      { count: 2, rows: 'mlp', cols: 'width', of: 'layers' },
      { count: 1, rows: 'queries', cols: 'width', of: 'layers' },
      { count: 2, rows: 'keys', cols: 'width', of: 'layers' },
    ],
  },
  {
    name: 'qwen3',
    label: 'Qwen 3',
    windows: false,
    learnedPositions: false,
    gated: true,
    ropeBase: 10000,
    attentionEvery: 1,
    taps: 0,
    tensors: [
      { count: 1, rows: 'one', cols: 'width', of: 'model' },
      { count: 1, rows: 'vocab', cols: 'width', of: 'model' },
      { count: 2, rows: 'one', cols: 'width', of: 'layers' },
      { count: 2, rows: 'one', cols: 'head', of: 'layers' },
      { count: 1, rows: 'width', cols: 'mlp', of: 'layers' },
      { count: 1, rows: 'width', cols: 'queries', of: 'layers' },
      { count: 2, rows: 'mlp', cols: 'width', of: 'layers' },
      { count: 1, rows: 'queries', cols: 'width', of: 'layers' },
      { count: 2, rows: 'keys', cols: 'width', of: 'layers' },
    ],
  },
  {
    name: 'gemma2',
    label: 'Gemma 2',
    windows: true,
    learnedPositions: false,
    gated: true,
    ropeBase: 10000,
    attentionEvery: 1,
    taps: 0,
    tensors: [
      { count: 1, rows: 'one', cols: 'width', of: 'model' },
      { count: 1, rows: 'vocab', cols: 'width', of: 'model' },
      { count: 4, rows: 'one', cols: 'width', of: 'layers' },
      { count: 1, rows: 'width', cols: 'mlp', of: 'layers' },
      { count: 1, rows: 'width', cols: 'queries', of: 'layers' },
      { count: 2, rows: 'mlp', cols: 'width', of: 'layers' },
      { count: 1, rows: 'queries', cols: 'width', of: 'layers' },
      { count: 2, rows: 'keys', cols: 'width', of: 'layers' },
    ],
  },
  {
    name: 'gemma3',
    label: 'Gemma 3',
    windows: true,
    learnedPositions: false,
    gated: true,
    ropeBase: 1000000,
    attentionEvery: 1,
    taps: 0,
    tensors: [
      { count: 1, rows: 'one', cols: 'width', of: 'model' },
      { count: 1, rows: 'vocab', cols: 'width', of: 'model' },
      { count: 4, rows: 'one', cols: 'width', of: 'layers' },
      { count: 2, rows: 'one', cols: 'head', of: 'layers' },
      { count: 1, rows: 'width', cols: 'mlp', of: 'layers' },
      { count: 1, rows: 'width', cols: 'queries', of: 'layers' },
      { count: 2, rows: 'mlp', cols: 'width', of: 'layers' },
      { count: 1, rows: 'queries', cols: 'width', of: 'layers' },
      { count: 2, rows: 'keys', cols: 'width', of: 'layers' },
    ],
  },
  {
    name: 'olmo2',
    label: 'OLMo 2',
    windows: true,
    learnedPositions: false,
    gated: true,
    ropeBase: 500000,
    attentionEvery: 1,
    taps: 0,
    tensors: [
      { count: 1, rows: 'one', cols: 'width', of: 'model' },
      { count: 1, rows: 'vocab', cols: 'width', of: 'model' },
      { count: 2, rows: 'one', cols: 'width', of: 'layers' },
      { count: 1, rows: 'one', cols: 'queries', of: 'layers' },
      { count: 1, rows: 'one', cols: 'keys', of: 'layers' },
      { count: 1, rows: 'width', cols: 'mlp', of: 'layers' },
      { count: 1, rows: 'width', cols: 'queries', of: 'layers' },
      { count: 2, rows: 'mlp', cols: 'width', of: 'layers' },
      { count: 1, rows: 'queries', cols: 'width', of: 'layers' },
      { count: 2, rows: 'keys', cols: 'width', of: 'layers' },
    ],
  },
  {
    name: 'phi3',
    label: 'Phi 3',
    windows: true,
    learnedPositions: false,
    gated: true,
    ropeBase: 10000,
    attentionEvery: 1,
    taps: 0,
    tensors: [
      { count: 1, rows: 'one', cols: 'width', of: 'model' },
      { count: 2, rows: 'vocab', cols: 'width', of: 'model' },
      { count: 2, rows: 'one', cols: 'width', of: 'layers' },
      { count: 1, rows: 'width', cols: 'mlp', of: 'layers' },
      { count: 1, rows: 'width', cols: 'queries', of: 'layers' },
      { count: 1, rows: 'qkv', cols: 'width', of: 'layers' },
      { count: 1, rows: 'gateUp', cols: 'width', of: 'layers' },
    ],
  },
  {
    name: 'lfm2',
    label: 'LFM2',
    windows: false,
    learnedPositions: false,
    gated: true,
    ropeBase: 1000000,
    attentionEvery: 3,
    taps: 3,
    tensors: [
      { count: 1, rows: 'one', cols: 'width', of: 'model' },
      { count: 1, rows: 'vocab', cols: 'width', of: 'model' },
      { count: 2, rows: 'one', cols: 'width', of: 'layers' },
      { count: 1, rows: 'width', cols: 'mlp', of: 'layers' },
      { count: 2, rows: 'mlp', cols: 'width', of: 'layers' },
      { count: 2, rows: 'one', cols: 'head', of: 'attention' },
      { count: 1, rows: 'width', cols: 'queries', of: 'attention' },
      { count: 1, rows: 'queries', cols: 'width', of: 'attention' },
      { count: 2, rows: 'keys', cols: 'width', of: 'attention' },
      { count: 1, rows: 'width', cols: 'width', of: 'other' },
      { count: 1, rows: 'width', cols: 'taps', of: 'other' },
      { count: 1, rows: 'convIn', cols: 'width', of: 'other' },
    ],
  },
  {
    name: 'granitehybrid',
    label: 'Granite 4 H',
    windows: false,
    learnedPositions: false,
    gated: true,
    ropeBase: 10000,
    attentionEvery: 4,
    taps: 4,
    tensors: [
      { count: 1, rows: 'one', cols: 'width', of: 'model' },
      { count: 1, rows: 'vocab', cols: 'width', of: 'model' },
      { count: 2, rows: 'one', cols: 'width', of: 'layers' },
      { count: 1, rows: 'width', cols: 'mlp', of: 'layers' },
      { count: 2, rows: 'mlp', cols: 'width', of: 'layers' },
      { count: 1, rows: 'width', cols: 'queries', of: 'attention' },
      { count: 1, rows: 'queries', cols: 'width', of: 'attention' },
      { count: 2, rows: 'keys', cols: 'width', of: 'attention' },
      { count: 1, rows: 'one', cols: 'ssmConv', of: 'other' },
      { count: 1, rows: 'one', cols: 'ssmInner', of: 'other' },
      { count: 3, rows: 'one', cols: 'ssmHeads', of: 'other' },
      { count: 1, rows: 'width', cols: 'ssmInner', of: 'other' },
      { count: 1, rows: 'ssmIn', cols: 'width', of: 'other' },
      { count: 1, rows: 'ssmConv', cols: 'taps', of: 'other' },
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
