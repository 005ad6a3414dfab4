// SPDX-License-Identifier: Apache-2.0
/**
 * settings.ts - everything that decides a run but the text: the model's size and how it learns.
 * One table, FIELDS, gives each number its bounds, words and key in a link; the form, the link and
 * the checks all go by it.
 */
import type { GptConfig, Schedule, TrainOptions } from '../../lib/types';
import {
  bareShape,
  configOf,
  FAMILIES,
  familyOf,
  paramCount,
  sameShape,
  type Shape,
  shapeOf,
  UNNAMED,
} from '../model/families';
import { defaultHeads, findSize, type Size, SIZES } from '../model/presets';

/** Options of training that the page leaves as the core has them. */
type Untouched = 'beta1' | 'beta2' | 'eps' | 'skipBadSteps' | 'keepBest' | 'rowTokens' | 'dropout' |
  'optimizer' | 'momentum';

/** What a fresh model reads and writes one by one. Other than bytes, its vocabulary is made of the
 *  text before it learns; a model from a file has its own. */
export type Tokens = 'bytes' | 'chars' | 'pieces';

const LEAST_PIECES = 257;
const MOST_PIECES = 65_536;

export interface Settings extends Omit<TrainOptions, Untouched>, Shape {
  tokens: Tokens;
  /** How many a vocabulary of pieces has. */
  pieces: number;
  /** A preset's name, or `custom`. */
  size: string;
  /** Steps between samples; 0: as often as it is worth reading. */
  sampleEvery: number;
}

export type NumberKey = Exclude<keyof Settings, 'size' | 'schedule' | 'family' | 'tokens'>;
export type FieldGroup = 'size' | 'tokens' | 'length' | 'rate' | 'check' | 'repeat';

export interface FieldInfo {
  key: NumberKey;
  label: string;
  help: string;
  min: number;
  max: number;
  whole: boolean;
  group: FieldGroup;
  /** Shown only by those who ask for more. */
  advanced?: boolean;
}

const whole = true;

export const FIELDS: readonly FieldInfo[] = [
  {
    key: 'layers',
    label: 'Layers',
    help: 'How often it thinks about a letter before it answers.',
    min: 1,
    max: 64,
    whole,
    group: 'size',
  },
  {
    key: 'width',
    label: 'Width',
    help: 'How many numbers stand for one letter. A multiple of the heads.',
    min: 8,
    max: 2048,
    whole,
    group: 'size',
  },
  {
    key: 'heads',
    label: 'Attention heads',
    help: 'How many places it can look at at once.',
    min: 1,
    max: 64,
    whole,
    group: 'size',
  },
  {
    key: 'ctx',
    label: 'Context',
    help: 'How many letters back it sees.',
    min: 8,
    max: 4096,
    whole,
    group: 'size',
  },
  {
    key: 'kvHeads',
    label: 'Heads of keys',
    help: 'Attention heads share keys and values; divides their number. 0: each has its own.',
    min: 0,
    max: 64,
    whole,
    group: 'size',
    advanced: true,
  },
  {
    key: 'headSize',
    label: 'Head size',
    help: 'Numbers that a head compares; an even one. 0: width by heads.',
    min: 0,
    max: 1024,
    whole,
    group: 'size',
    advanced: true,
  },
  {
    key: 'mlp',
    label: 'MLP width',
    help: 'Width of the part of a layer that works on each letter alone. 0: the family’s.',
    min: 0,
    max: 16384,
    whole,
    group: 'size',
    advanced: true,
  },
  {
    key: 'window',
    label: 'Window',
    help: 'How far most layers see; only Gemma 3 has it. 0: all layers see the whole context.',
    min: 0,
    max: 4096,
    whole,
    group: 'size',
    advanced: true,
  },
  {
    key: 'ropeBase',
    label: 'Rotary base',
    help: 'Slowest turn of the rotary positions. 0: the family’s.',
    min: 0,
    max: 1e9,
    whole: false,
    group: 'size',
    advanced: true,
  },

  {
    key: 'pieces',
    label: 'Pieces in the vocabulary',
    help: 'Of more pieces each is longer, and comes up less often.',
    min: LEAST_PIECES,
    max: MOST_PIECES,
    whole,
    group: 'tokens',
  },

  {
    key: 'steps',
    label: 'Steps',
    help: 'How many times it practises and is corrected.',
    min: 1,
    max: 10_000_000,
    whole,
    group: 'length',
  },
  {
    key: 'batch',
    label: 'Batch',
    help: 'Passages in each step. More is steadier, and slower.',
    min: 1,
    max: 1024,
    whole,
    group: 'length',
  },
  {
    key: 'accum',
    label: 'Accumulation',
    help: 'Batches summed before a correction: a larger batch in the same memory.',
    min: 1,
    max: 1024,
    whole,
    group: 'length',
    advanced: true,
  },

  {
    key: 'lr',
    label: 'Learning rate',
    help: 'How big each correction is. 3e-4 to 3e-3 is usual.',
    min: 1e-7,
    max: 1,
    whole: false,
    group: 'rate',
  },
  {
    key: 'warmup',
    label: 'Warm-up',
    help: 'Steps in which the rate rises from nothing.',
    min: 0,
    max: 1_000_000,
    whole,
    group: 'rate',
  },
  {
    key: 'minLrRatio',
    label: 'Lowest rate',
    help: 'Where the rate ends, as a share of the learning rate.',
    min: 0,
    max: 1,
    whole: false,
    group: 'rate',
    advanced: true,
  },
  {
    key: 'decayFraction',
    label: 'Decay',
    help: 'Last part of a run in which the rate falls. Only for "hold, then fall".',
    min: 0,
    max: 1,
    whole: false,
    group: 'rate',
    advanced: true,
  },
  {
    key: 'weightDecay',
    label: 'Weight decay',
    help: 'Pulls weights that are not needed towards zero.',
    min: 0,
    max: 10,
    whole: false,
    group: 'rate',
    advanced: true,
  },
  {
    key: 'clip',
    label: 'Clip',
    help: 'The largest gradient norm that is let through; 0 lets everything through.',
    min: 0,
    max: 1000,
    whole: false,
    group: 'rate',
    advanced: true,
  },

  {
    key: 'valFraction',
    label: 'Kept for checking',
    help: 'Share of the text, at its end, that is never trained on.',
    min: 0,
    max: 0.5,
    whole: false,
    group: 'check',
  },
  {
    key: 'evalEvery',
    label: 'Check every',
    help: 'Steps between checks; 0: only at the end.',
    min: 0,
    max: 10_000_000,
    whole,
    group: 'check',
  },
  {
    key: 'evalWindows',
    label: 'Passages per check',
    help: '0: all of them.',
    min: 0,
    max: 100_000,
    whole,
    group: 'check',
    advanced: true,
  },
  {
    key: 'patience',
    label: 'Patience',
    help: 'Stops after so many checks without a better one; 0: never.',
    min: 0,
    max: 10_000,
    whole,
    group: 'check',
    advanced: true,
  },
  {
    key: 'sampleEvery',
    label: 'Write a sample every',
    help: 'Steps; 0: some twelve times in the run.',
    min: 0,
    max: 10_000_000,
    whole,
    group: 'check',
  },

  {
    key: 'seed',
    label: 'Seed',
    help: 'The same seed, text and settings give the same run.',
    min: 0,
    max: Number.MAX_SAFE_INTEGER,
    whole,
    group: 'repeat',
  },
];

export const TOKENS: readonly { value: Tokens; label: string; about: string }[] = [
  { value: 'bytes', label: 'Bytes', about: 'It can read everything; a Chinese character is three.' },
  { value: 'chars', label: 'Characters', about: 'Those of the text alone. It suits every script.' },
  {
    value: 'pieces',
    label: 'Pieces of words',
    about: 'As large models do: it looks further back, but knows each piece less well.',
  },
];

export const SCHEDULES: readonly { value: Schedule; label: string }[] = [
  { value: 'cosine', label: 'Fall slowly (cosine)' },
  { value: 'wsd', label: 'Hold, then fall' },
  { value: 'constant', label: 'Constant' },
];

/**
 * A peak rate that suits a size: 3e-3 for the small ones (measured: the small preset ends at 1.88
 * on Shakespeare with it, and at 2.15 with the core's default of 3e-4), less as models grow.
 */
export function suitableRate(params: number): number {
  if (params < 6e5) return 3e-3;
  if (params < 2e6) return 2e-3;
  if (params < 2e7) return 1e-3;
  return params < 1e8 ? 6e-4 : 3e-4;
}

/** What changes with the length of a run. */
function paced(steps: number): Pick<Settings, 'warmup' | 'evalEvery'> {
  return {
    warmup: Math.min(100, Math.round(steps / 15)),
    evalEvery: Math.max(1, Math.min(100, Math.round(steps / 20))),
  };
}

export function settingsOfSize(s: Size): Settings {
  return {
    size: s.name,
    ...bareShape(s),
    tokens: 'bytes',
    pieces: 512,
    steps: s.steps,
    batch: s.batch,
    accum: 1,
    lr: suitableRate(paramCount(s)),
    minLrRatio: 0.1,
    schedule: 'cosine',
    decayFraction: 0.2,
    weightDecay: 0.1,
    clip: 1,
    seed: 42,
    valFraction: 0.1,
    evalWindows: 64,
    patience: 0,
    sampleEvery: 0,
    ...paced(s.steps),
  };
}

export function defaultSettings(): Settings {
  const small = findSize('small');
  if (!small) throw new Error('the table of sizes has lost its default');
  return settingsOfSize(small);
}

/** Another preset: what suits it is taken over, what is a matter of taste is kept. */
export function withSize(old: Settings, s: Size): Settings {
  const { seed, valFraction, clip, weightDecay, schedule, minLrRatio, decayFraction } = old;
  return {
    ...settingsOfSize(s),
    ...{ seed, valFraction, clip, weightDecay, schedule, minLrRatio, decayFraction },
    patience: old.patience,
    evalWindows: old.evalWindows,
    tokens: old.tokens,
    pieces: old.pieces,
  };
}

/** Settings of which some are given, as in a link: what is not follows from size and length. */
export function withGiven(old: Settings, given: Partial<Settings>): Settings {
  const shape = findSize(given.size ?? '');
  const base = shape ? withSize(old, shape) : old;
  return { ...base, ...(given.steps === undefined ? {} : paced(given.steps)), ...given };
}

/** One field changed by hand; the size becomes `custom` when it is no longer the preset's. */
export function withField(old: Settings, key: NumberKey, value: number): Settings {
  const next: Settings = { ...old, [key]: value };
  if (key === 'width' && value % next.heads !== 0) next.heads = defaultHeads(value);
  if (key !== 'kvHeads' && next.kvHeads > 0 && next.heads % next.kvHeads !== 0) next.kvHeads = 0;
  if (key === 'steps') next.warmup = Math.min(next.warmup, value);
  const shape = findSize(next.size);
  if (shape && !sameShape(shape, next)) next.size = 'custom';
  return next;
}

/** Another family with the same width and depth; what it decides by itself is left to it. */
export function withFamily(old: Settings, family: string): Settings {
  const free = { kvHeads: 0, headSize: 0, mlp: 0, window: 0, ropeBase: 0 };
  const next: Settings = { ...old, family, ...free };
  return { ...next, size: sizeNamed(next) };
}

/** The preset of that shape, or `custom`. */
function sizeNamed(s: Shape): string {
  return SIZES.find((size) => sameShape(size, s))?.name ?? 'custom';
}

/** As many characters as a text has, about, while they have not been counted. */
const CHARS_ABOUT = 96;

/** How many tokens the model will know. */
export function vocabOf(s: Settings): number {
  if (s.tokens === 'bytes') return 256;
  return s.tokens === 'chars' ? CHARS_ABOUT : s.pieces;
}

/** A tinygpt knows bytes alone; with a vocabulary the same model is a GPT-2. */
export function gptConfig(s: Settings): GptConfig {
  if (s.tokens === 'bytes') return configOf(s);
  const family = s.family === UNNAMED ? 'gpt2' : s.family;
  return { ...configOf({ ...s, family }), vocab: vocabOf(s) };
}

/** How many bytes of a text a token stands for, about: a small vocabulary has pieces of two. */
export function bytesPerToken(s: Settings): number {
  return s.tokens === 'pieces' ? 2 : 1;
}

/** The shape of a model that is there, as settings of the next run. */
export function withModel(old: Settings, c: GptConfig): Settings {
  const shape = shapeOf(c);
  return { ...old, ...shape, size: sizeNamed(shape), ...tokensOf(c.vocab, old.pieces) };
}

/** A vocabulary of pieces has all bytes and one piece at least; how many the model of a file knows is
 *  all that is told of it, so that one of many characters counts as pieces. */
function tokensOf(vocab: number, before: number): Pick<Settings, 'tokens' | 'pieces'> {
  if (vocab === 256) return { tokens: 'bytes', pieces: before };
  if (vocab < LEAST_PIECES) return { tokens: 'chars', pieces: before };
  return { tokens: 'pieces', pieces: Math.min(vocab, MOST_PIECES) };
}

/** Those of a run on a file's weights: rows of tokens are longer texts than rows of bytes. */
export function withBase(old: Settings, c: GptConfig): Settings {
  const s = withModel(old, c);
  return c.vocab === 256 ? s : { ...s, batch: Math.min(s.batch, 4) };
}

export function trainOptions(s: Settings): Partial<TrainOptions> {
  return {
    steps: s.steps,
    batch: s.batch,
    accum: s.accum,
    lr: s.lr,
    minLrRatio: s.minLrRatio,
    schedule: s.schedule,
    warmup: s.warmup,
    decayFraction: s.decayFraction,
    weightDecay: s.weightDecay,
    clip: s.clip,
    seed: s.seed,
    valFraction: s.valFraction,
    evalEvery: s.evalEvery,
    evalWindows: s.evalWindows,
    patience: s.patience,
    keepBest: true,
  };
}

/** The settings of a run that came from a file. */
export function settingsOfRun(c: GptConfig, o: TrainOptions): Settings {
  const base = defaultSettings();
  return {
    ...withModel(base, c),
    steps: o.steps,
    batch: o.batch,
    accum: o.accum,
    lr: o.lr,
    minLrRatio: o.minLrRatio,
    schedule: o.schedule,
    warmup: o.warmup,
    decayFraction: o.decayFraction,
    weightDecay: o.weightDecay,
    clip: o.clip,
    seed: o.seed,
    valFraction: o.valFraction,
    evalEvery: o.evalEvery,
    evalWindows: o.evalWindows,
    patience: o.patience,
  };
}

/** What is wrong with the settings as a whole, in plain words; '' if nothing is. */
export function settingsProblem(s: Settings): string {
  if (s.headSize === 0 && s.width % s.heads !== 0) {
    return `The width (${s.width}) has to be a multiple of the number of heads (${s.heads}).`;
  }
  if (s.kvHeads > 0 && s.heads % s.kvHeads !== 0) {
    return `The heads of keys (${s.kvHeads}) have to divide the number of heads (${s.heads}).`;
  }
  if (s.window > 0 && !familyOf(s.family).windows) {
    const have = FAMILIES.filter((f) => f.windows).map((f) => f.label);
    return `Layers with a window are a matter of other families: ${have.join(', ')}.`;
  }
  for (const f of FIELDS) {
    const value = s[f.key];
    if (!(value >= f.min && value <= f.max) || (f.whole && !Number.isInteger(value))) {
      return `${f.label}: ${value} is out of range.`;
    }
  }
  if (s.warmup > s.steps) {
    return `The warm-up (${s.warmup}) is longer than the run (${s.steps} steps).`;
  }
  return '';
}
