// SPDX-License-Identifier: Apache-2.0
/**
 * types.ts - what the package gives and takes, as plain data: everything here crosses the border
 * between a page and the engine's worker, so it is made of numbers, strings, arrays and buffers.
 * The classes are in index.ts; the same structs in C, with their units, are in tinygpt.h.
 */

/** The modules, poorest first. `-mt` has threads on shared memory; `64` is a Memory64 build. */
export const BUILDS = [
  'scalar', 'simd', 'relaxed', 'scalar-mt', 'simd-mt', 'relaxed-mt', 'simd-mt-64',
] as const;
export type BuildName = (typeof BUILDS)[number];

export interface EngineOptions {
  /** A build by name, or the best that this browser can load (`auto`, without the 64-bit one). */
  build?: BuildName | 'auto';
  /** Threads, 1..64; 0 or absent: as many as the machine says, at most 8. */
  threads?: number;
  /** Folder of the `tinygpt-*.wasm` files and stories.txt; the package's own by default. */
  wasmBase?: string | URL;
  /** Switches levers off and on by name, as `--levers` does: `-flash_attention`. */
  levers?: string;
  /** Most bytes that the module's memory may grow to; 4 GiB (16 GiB for the 64-bit build). */
  maxMemoryBytes?: number;
  /** Where to compute; the CPU if absent. Where there is no GPU the CPU computes, and `notes` says
   *  why. In Node a GPU needs the package `webgpu`. */
  device?: DeviceName;
  /** What to leave out of a GPU, for tests. */
  gpu?: GpuOptions;
}

export type DeviceName = 'cpu' | 'webgpu';

export interface GpuOptions {
  /** The limits that every adapter has, and no more. */
  minimum?: boolean;
  /** Features not to be asked for: `subgroups`. */
  without?: string[];
  /** Milliseconds without work after which its memory is given back; 30,000. */
  idleMs?: number;
}

/** The adapter in use. */
export interface GpuInfo {
  adapter: string;
  driver: string;
  /** `page`, or `Node`. */
  api: string;
  library: string;
  /** It computes on the CPU: good for tests, never timed. */
  software: boolean;
  features: string[];
  limits: Record<string, number>;
}

/** What is in use, and why nothing better: a person can read every string. */
export interface EngineInfo {
  version: string;
  build: BuildName;
  threads: number;
  device: DeviceName;
  /** Of device `webgpu`. */
  gpu: GpuInfo | undefined;
  /** The core's own banner line. */
  banner: string;
  /** One sentence for each better path that was not taken. */
  notes: string[];
  /** Page or process can share memory between threads. */
  isolated: boolean;
  /** The maximum that the memory was granted. */
  maxMemoryBytes: number;
  presets: Preset[];
  /** Families whose models can be made and trained. */
  families: string[];
  levers: LeverInfo[];
}

export interface LeverInfo {
  name: string;
  doc: string;
  on: boolean;
  keepsBits: boolean;
  state: string;
}

/** tg_model_config: what a model is made of. What may be left out, or is 0, is the family's to
 *  choose; models tell all of it. */
export interface GptConfig {
  layers: number;
  width: number;
  heads: number;
  ctx: number;
  vocab: number;
  mlp: number;
  /** One of EngineInfo.families; the first if it is left out. */
  family?: string;
  /** Heads of keys and values; as many as of queries. */
  kvHeads?: number;
  headSize?: number;
  /** Positions that a layer with a window sees; Gemma 3 has such layers. */
  window?: number;
  ropeBase0?: number;
}

/** Kinds of vocabularies that can be trained: pieces over bytes, BERT's in lower case, characters. */
export type VocabularyKind = 'bpe' | 'wordpiece' | 'chars';

export interface Preset {
  name: string;
  config: GptConfig;
  batch: number;
  steps: number;
  doc: string;
  params: number;
}

export type Schedule = 'constant' | 'cosine' | 'wsd';
export type Optimizer = 'adamw' | 'muon';

/** tg_train_options; what is left out has the core's default. */
export interface TrainOptions {
  steps: number;
  batch: number;
  accum: number;
  lr: number;
  minLrRatio: number;
  schedule: Schedule;
  warmup: number;
  decayFraction: number;
  weightDecay: number;
  beta1: number;
  beta2: number;
  eps: number;
  clip: number;
  seed: number;
  valFraction: number;
  evalEvery: number;
  evalWindows: number;
  patience: number;
  skipBadSteps: boolean;
  keepBest: boolean;
  /** Tokens of a row, up to the model's context, which it is where tokens are bytes; of other
   *  vocabularies 512 at most, unless this says so. 0: as by default. */
  rowTokens: number;
  /** Share of activations left out at random in training; 0: none. */
  dropout: number;
  /** muon: matrices of layers by Muon, everything else by AdamW. */
  optimizer: Optimizer;
  /** Of Muon. */
  momentum: number;
}

/** tg_forecast. Bytes, milliseconds, seconds. */
export interface Forecast {
  params: number;
  memoryBytes: number;
  weightsBytes: number;
  momentsBytes: number;
  gradientsBytes: number;
  workspaceBytes: number;
  bestBytes: number;
  memoryAvailableBytes: number;
  saveBytes: number;
  diskBytes: number;
  flopPerStep: number;
  peakGflops: number;
  msPerStep: number;
  seconds: number;
  trainBytes: number;
  valBytes: number;
  bytesPerParam: number;
  epochs: number;
  /** Plain words, one sentence each. */
  advice: string[];
}

export interface LintFinding {
  level: 'error' | 'warning' | 'remark';
  code: string;
  text: string;
}

/** tg_step_report, `valLoss` NaN when no validation was due. */
export interface StepReport {
  step: number;
  loss: number;
  valLoss: number;
  valIsBest: boolean;
  lr: number;
  gradNorm: number;
  ms: number;
  tokPerS: number;
  shareOfPeak: number;
  /** 16 hexadecimal digits over the bits of all losses so far. */
  lossHash: string;
  skipped: boolean;
  earlyStop: boolean;
  badTensor: string;
  /** Of the losses; NaN where tokens are bytes, or there is no loss. */
  bitsPerByte: number;
  valBitsPerByte: number;
}

export interface HistoryPoint {
  step: number;
  loss: number;
  valLoss: number;
}

export interface ModelInfo {
  family: string;
  config: GptConfig;
  params: number;
  weightBytes: number;
  format: string;
  dtype: string;
  step: number;
  loss: number;
  valLoss: number;
  hasMoments: boolean;
  /** A trainer takes it, and it can be saved: its weights are not packed. */
  trains: boolean;
}

export interface SampleOptions {
  temperature: number;
  topK: number;
  topP: number;
  minP: number;
  repeatPenalty: number;
  repeatLast: number;
  seed: number;
}

/** One piece of generated text; the text may be empty while a character is not whole. */
export interface Piece {
  id: number;
  text: string;
  /** Milliseconds from the call to this piece. */
  ms: number;
}

export interface GenerateStats {
  promptTokens: number;
  promptDropped: number;
  newTokens: number;
  slides: number;
  promptMs: number;
  firstTokenMs: number;
  tokPerS: number;
}

/** The layouts that a model or run can be written in. `run` is v3 with moments and history. */
export type FileKind =
  | 'run' | 'v3' | 'v2-f32' | 'v2-f16' | 'v2-int4' | 'v1-f32' | 'safetensors' | 'gguf';

/** What to change while looking inside: a part is silenced, or taken from the donor's run. */
export interface Edit {
  layer: number;
  part: 'head' | 'attention' | 'mlp' | 'block';
  /** Of part `head`. */
  head?: number;
  /** One position, or every one when absent. */
  position?: number;
  kind: 'zero' | 'donor';
}

/** One run of the model over a text with everything kept, row-major. */
export interface Probe {
  /** The token ids, n of them. */
  tokens: Int32Array;
  layers: number;
  heads: number;
  vocab: number;
  /** [L, H, n, n]: row = who looks, column = at whom; rows sum to 1, to 0 in layers without heads. */
  attention: Float32Array;
  /** [L + 1, n, V]: logits as if the model ended after block l; the last is the model's own. */
  lens: Float32Array;
}

/* -------------------------------------------------------------------------------------- chat */

/** What a model file's head tells, without its weights. */
export interface ModelFacts {
  /** Its own name; '' if it has none. */
  name: string;
  family: string;
  params: number;
  layers: number;
  vocab: number;
  /** The longest conversation that it was made for, in tokens. */
  ctx: number;
  fileBytes: number;
  /** In memory. */
  weightBytes: number;
  /** What a conversation of so many tokens takes besides, at several lengths. */
  caches: { tokens: number; bytes: number }[];
  /** Is there a chat template in it? Else it continues texts, unless one is named. */
  template: boolean;
  /** Names of the templates that are built in. */
  templates: string[];
}

/** What is known once it is open. */
export interface ChatInfo {
  family: string;
  params: number;
  weightBytes: number;
  dtype: string;
  ctx: number;
  vocab: number;
  /** The text of the file's own chat template, in Jinja; '' if it has none. */
  template: string;
  /** Names of those that are built in. */
  templates: string[];
  /** False of an encoder, which has embed() alone. */
  writes: boolean;
  /** What reading and packing took. */
  loadMs: number;
}

/** What keys and values are kept in: f16 takes half the memory of f32, int8 about a quarter, and
 *  each reading costs their conversion. */
export type KeyType = 'f32' | 'f16' | 'int8';

export interface SessionOptions {
  /** The longest conversation, in tokens: 4096 or the model's own if absent. */
  ctx?: number;
  /** f32 if absent. */
  keys?: KeyType;
}

export interface EmbedOptions {
  /** Vectors are not made as long as 1. */
  raw?: boolean;
  /** Of a text that is too long the beginning counts; else it is an error, `FULL`. */
  cut?: boolean;
}

export interface Turn {
  role: 'system' | 'user' | 'assistant';
  text: string;
}

/** What answer() takes; what is left out has the core's default. */
export interface AnswerOptions extends Partial<SampleOptions> {
  typicalP?: number;
  frequencyPenalty?: number;
  presencePenalty?: number;
  /** An answer has at most so many tokens; as many as there is room for if absent. */
  tokens?: number;
  /** Answers at once, where the template can say so. */
  noThinking?: boolean;
  /** The last turn is the model's, and the answer goes on where it ends. */
  goOn?: boolean;
  /** Texts that are never written, however they may be cut into tokens: 64 of 256 bytes at most. */
  banned?: readonly string[];
  /** Texts that the answer ends at, and does not have. */
  stops?: readonly string[];
  /** Added to the logit of a token; -Infinity: never drawn. */
  bias?: readonly { id: number; bias: number }[];
}

/** What a piece is of: the answer, the thinking before it, or a tool that the model calls. */
export type AnswerPart = 'answer' | 'thinking' | 'tool call';

/** A piece of an answer; the text may be empty while a character is not whole. An id of -1: none,
 *  but text that was held back. */
export interface AnswerPiece extends Piece {
  part: AnswerPart;
  /** Tokens in the context so far. */
  context: number;
}

/** A piece of one of several answers. */
export interface BatchPiece extends AnswerPiece {
  /** Whose it is: the number of the text, from 0. */
  row: number;
}

export interface AnswerStats {
  /** Tokens of the whole conversation, and those of them that were in the cache already. */
  promptTokens: number;
  reusedTokens: number;
  newTokens: number;
  promptMs: number;
  firstTokenMs: number;
  tokPerS: number;
  /** Of `capacity` tokens. */
  context: number;
  capacity: number;
  /** The model or a text of `stops` ended it, it is long enough, the context is full, or it was
   *  stopped. */
  end: 'end' | 'length' | 'full' | 'stopped';
}

export interface Tokens {
  ids: Int32Array;
  /** As the vocabulary spells them. */
  pieces: string[];
}

/** A text: the text itself, its bytes, or what stays where it is and is read in pieces: a Blob or
 *  File, or in Node the `file:` address of a file. */
export type TextSource = string | Uint8Array | Blob | URL;
/** A model file. */
export type FileSource = Uint8Array | Blob | URL;
/** A model file, or one in the page's store of models, by its id. */
export type ModelSource = FileSource | { stored: string };

/** The status codes of tinygpt.h, without the prefix `TG_E_`. */
export type ErrorCode =
  | 'ARG' | 'MEMORY' | 'IO' | 'FORMAT' | 'CHECKSUM' | 'RANGE' | 'FULL' | 'SHAPE' | 'UNSUPPORTED'
  | 'DEVICE' | 'NUMBER' | 'DATA' | 'INTERNAL'
  /** The module trapped: it was rebuilt, and objects made before are gone. */
  | 'TRAP'
  /** The object was freed, its engine closed, or the engine's worker is gone. */
  | 'CLOSED';

/** A result of tg_check_kernels. */
export interface Check {
  op: string;
  what: string;
  error: number;
  tolerance: number;
  passed: boolean;
}

/** What every long call takes. A call that returns a promise rejects with the signal's reason; a
 *  loop (`for await`) ends without an error. */
export interface CallOptions {
  signal?: AbortSignal;
}

/** What calls that take bytes over a border accept besides. */
export interface SourceOptions extends CallOptions {
  /** Move a Uint8Array's whole buffer to the engine instead of copying it; the caller's view is
   *  empty afterwards. */
  transfer?: boolean;
}
