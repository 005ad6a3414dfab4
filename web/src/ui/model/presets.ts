// SPDX-License-Identifier: Apache-2.0
/**
 * presets.ts - the presets of the engine (families.gen.ts), and what a beginner should know about
 * each in the page's words.
 */
import type { Shape } from './families';
import { PRESETS } from './families.gen';

export interface Size extends Shape {
  name: string;
  batch: number;
  steps: number;
  about: string;
}

const ABOUT: Record<string, string> = {
  tiny: 'To see that everything works. Learns letters and some words.',
  small: 'Learns words and the shape of a text.',
  medium: 'Learns some grammar.',
  large: 'The first one whose sentences hold.',
  xl: 'Longer sentences, a richer choice of words.',
  huge: 'Stories that stay on their subject.',
  massive: 'For long texts and long waits.',
  mega: 'Like massive, and looks back twice as far.',
  behemoth: 'Only to see what this machine can hold.',
  'modern-small': 'Small, built as today’s models are (Qwen 3).',
  'modern-medium': 'Medium, built as today’s models are.',
  'modern-large': 'Large, built as today’s models are.',
};

export const SIZES: readonly Size[] = PRESETS.map((p) => ({
  ...p,
  headSize: 0,
  mlp: 0,
  window: 0,
  ropeBase: 0,
  about: ABOUT[p.name] ?? '',
}));

export function findSize(name: string): Size | undefined {
  return SIZES.find((s) => s.name === name);
}

/** tg_default_heads: a head for each 32 of the width where it divides, else 3, else 1. */
export function defaultHeads(width: number): number {
  if (width % 32 === 0) return width / 32;
  return width % 3 === 0 ? 3 : 1;
}
