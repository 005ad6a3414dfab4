// SPDX-License-Identifier: Apache-2.0
/**
 * protocol.ts - what the page's side (link.ts) and the worker's side (engine.worker.ts) say to each
 * other over comlink.
 *
 * Every call is a task with a number of the caller's choosing, by which it can be cancelled. A task
 * ends with a reply; some hand out items before (training steps, generated pieces, checks), which
 * the caller pulls. Objects are numbers that are never used twice.
 *
 *     page                               worker
 *     call(7, 'steps', [trainer, 100])   ... works on it
 *     pull(7, 0)                      <- { items: [step 1, step 2], done: false }
 *     pull(7, 2)                      <- { items: [step 3], done: false }       2 were used up
 *     cancel(7)                       <- reply of call 7, and pull(7) says done: true
 *
 * Errors travel inside replies, since comlink keeps an error's message and loses its code.
 */
import type {
  AnswerOptions, AnswerPiece, AnswerStats, BatchPiece, ChatInfo, Check, DeviceName, Edit, EmbedOptions,
  EngineInfo, EngineOptions, ErrorCode, FileKind, Forecast, GenerateStats, GptConfig, GpuInfo, HistoryPoint,
  KeyType, LintFinding, ModelFacts, ModelInfo, ModelSource, Piece, Probe, SampleOptions, StepReport, TextSource,
  Tokens, TrainOptions, Turn, VocabularyKind,
} from './types.js';

/** Content, the address of a file of Node (URL objects cannot be sent), or a stored model's id. */
export type Wire = string | Uint8Array | Blob | { address: string } | { stored: string };

export function wire(source: TextSource | ModelSource): Wire {
  return source instanceof URL ? { address: source.href } : source;
}

/** An object in the worker: a text, model, session or trainer. */
export type Handle = number;

export interface TextMade {
  id: Handle;
  bytes: number;
}

export interface ModelMade {
  id: Handle;
  /** The bytes of all tokens one after the other; token i is `bytes[ends[i - 1]..ends[i]]`. */
  pieces: { bytes: Uint8Array; ends: Int32Array };
}

export interface ChatMade {
  id: Handle;
  info: ChatInfo;
}

export interface TrainerMade {
  id: Handle;
  /** The model that the trainer owns, where it opened one. */
  model?: ModelMade;
}

/** The calls, each by name: its arguments and its result. */
export interface Methods {
  open(options: EngineOptions, lock: string): EngineInfo;
  close(): void;
  lint(text: Handle, ctx: number, valFraction: number): LintFinding[];
  stories(seed: number, bytes: number): Uint8Array;
  forecast(config: GptConfig, options: Partial<TrainOptions>, text: Handle): Forecast;
  measurePeak(): number;
  measureGpu(): { bytesPerSecond: number; gflops: number };
  measureRead(bytes: number): number;
  checkKernels(filter: string): { passed: number; failed: number };
  checkFile(file: Wire): string;
  memoryBytes(): number;
  gpuBytes(): number;

  textNew(source: Wire): TextMade;
  textSha256(text: Handle): string;

  /** A tokenizer.json. */
  vocabularyTrain(text: Handle, kind: VocabularyKind, tokens: number): Uint8Array;
  modelNew(config: GptConfig, seed: number, vocabulary?: Wire): ModelMade;
  modelOpen(file: Wire): ModelMade;
  modelInfo(model: Handle): ModelInfo;
  modelTokenize(model: Handle, text: string): Int32Array;
  modelSave(model: Handle, kind: FileKind): Uint8Array;
  modelProbe(
    model: Handle, prompt: string | Int32Array, edits: Edit[],
    donor: string | Int32Array | undefined,
  ): Probe;

  sessionNew(model: Handle, ctx: number): Handle;
  generate(
    session: Handle, prompt: string, tokens: number, options: Partial<SampleOptions>,
  ): GenerateStats;

  trainerNew(model: Handle, text: Handle, options: Partial<TrainOptions>): TrainerMade;
  trainerOpen(file: Wire, text: Handle, steps: number): TrainerMade;
  /** Items are step reports; works at most `ahead` of them ahead of the reader. */
  steps(trainer: Handle, n: number, ahead: number): void;
  trainerDone(trainer: Handle): number;
  trainerOptions(trainer: Handle): TrainOptions;
  trainerSetSteps(trainer: Handle, total: number): void;
  trainerHistory(trainer: Handle): HistoryPoint[];
  trainerEvaluate(trainer: Handle): number;
  trainerSave(trainer: Handle, kind: FileKind): Uint8Array;
  trainerSaveBest(trainer: Handle): Uint8Array;

  chatFacts(file: Wire): ModelFacts;
  chatOpen(file: Wire): ChatMade;
  chatTokenize(model: Handle, text: string, special: boolean): Tokens;
  /** A session of so many tokens; null: for texts alone, which need no template. */
  chatNew(
    model: Handle, ctx: number, keys: KeyType, template: string | null,
  ): { id: Handle; capacity: number };
  /** A text is continued, a conversation is answered. */
  answer(session: Handle, what: string | Turn[], options: AnswerOptions): AnswerStats;
  /** Several sessions that compute together; the rest as chatNew. */
  batchNew(
    model: Handle, rows: number, ctx: number, keys: KeyType, template: string | null,
  ): { id: Handle; capacity: number };
  /** Row i of the batch goes on with what[i], as `answer` does. */
  batchAnswer(batch: Handle, what: (string | Turn[])[], options: AnswerOptions[]): AnswerStats[];
  batchStop(batch: Handle, row: number): void;
  batchCopy(batch: Handle, to: number, from: number): void;
  chatSave(session: Handle, note: Uint8Array): Uint8Array;
  chatLoad(session: Handle, file: Wire): Uint8Array;
  embed(model: Handle, texts: string[], options: EmbedOptions): Float32Array[];

  free(object: Handle): void;
}
export type Method = keyof Methods;

/** What a task of each kind hands out before it ends. */
export interface Items {
  steps: StepReport;
  generate: Piece;
  answer: AnswerPiece;
  batchAnswer: BatchPiece;
  modelOpen: number;
  chatOpen: number;
  checkKernels: Check;
}

export type Reply<T> =
  | { ok: true; value: T }
  | { ok: false; code: ErrorCode; message: string };

export interface Pulled {
  items: unknown[];
  /** Nothing comes any more: the reply of the call says how it ended. */
  done: boolean;
}

/** What happens without being asked for. */
export type EngineEvent =
  | { kind: 'log'; level: 'error' | 'warning' | 'info'; text: string }
  | { kind: 'rebuilt'; reason: string }
  /** A GPU was lost, and this is what computes now. */
  | { kind: 'device'; device: DeviceName; gpu: GpuInfo | undefined; banner: string };

export interface WorkerApi {
  call<M extends Method>(
    task: number, method: M, args: Parameters<Methods[M]>,
  ): Promise<Reply<ReturnType<Methods[M]>>>;
  /** Waits for items of a task. `used` is how many the reader has taken so far in all. */
  pull(task: number, used: number): Promise<Pulled>;
  cancel(task: number): void;
  /** Waits until something happened. */
  events(): Promise<EngineEvent[]>;
}

/* ------------------------------------------------------------------------------------- threads */

/** What the engine's worker tells a thread of its own, once. */
export interface HelperOrder {
  module: WebAssembly.Module;
  memory: WebAssembly.Memory;
  wide: boolean;
  /** The address of its stack and storage, made by tg_wasm_thread_new. */
  thread: number;
}

/** What a thread says. */
export type HelperWord = { kind: 'ready' } | { kind: 'failed'; reason: string };
