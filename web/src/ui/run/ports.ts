// SPDX-License-Identifier: Apache-2.0
/**
 * ports.ts - what the run controller needs from the engine and from the store, and nothing
 * more. The package's classes fit as they are; so does anything a test makes up.
 */
import type {
  FileKind,
  FileSource,
  GenerateStats,
  GptConfig,
  HistoryPoint,
  ModelInfo,
  Piece,
  SampleOptions,
  StepReport,
  TextSource,
  TrainOptions,
  VocabularyKind,
} from '../../lib/types';

export interface TextPort {
  readonly bytes: number;
  free(): void;
}

export interface SessionPort {
  generate(
    prompt: string,
    o: Partial<SampleOptions> & { tokens: number; signal?: AbortSignal },
  ): AsyncIterable<Piece> & { stats: Promise<GenerateStats> };
  free(): void;
}

export interface ModelPort {
  info(): Promise<ModelInfo>;
  session(ctx?: number): Promise<SessionPort>;
  free(): void;
}

export interface TrainerPort<M extends ModelPort> {
  readonly model: M;
  steps(n?: number, o?: { signal?: AbortSignal }): AsyncIterable<StepReport>;
  done(): Promise<number>;
  options(): Promise<TrainOptions>;
  setSteps(total: number): Promise<void>;
  history(): Promise<HistoryPoint[]>;
  save(kind?: FileKind): Promise<Uint8Array>;
  saveBest(): Promise<Uint8Array>;
  free(): void;
}

/** T is the engine's own kind of text: an engine takes only what it made. */
export interface EnginePort<M extends ModelPort, T extends TextPort> {
  text(source: TextSource): Promise<T>;
  newModel(c: GptConfig, seed?: number, vocabulary?: FileSource): Promise<M>;
  trainVocabulary(
    t: T,
    kind: VocabularyKind,
    tokens: number,
    o: { signal: AbortSignal },
  ): Promise<Uint8Array>;
  openModel(f: FileSource): Promise<M>;
  newTrainer(m: M, t: T, o?: Partial<TrainOptions>): Promise<TrainerPort<M>>;
  openTrainer(f: FileSource, t: T, steps?: number): Promise<TrainerPort<M>>;
}

/** Where runs survive the tab. Saving throws an error named QuotaError when there is no room. */
export interface RunStore {
  /** `text` is the id of the run's text, 0 while it is not kept. */
  saveRun(id: string, run: Uint8Array, meta: object, text: number): Promise<void>;
  keepText(text: Blob): Promise<number>;
  /** The weights that the run had at a step; false if there is no room to spare for them. */
  keepWeights(id: string, step: number, weights: Blob): Promise<boolean>;
  dropWeights(id: string, step: number): Promise<void>;
  /** null if they are not kept. */
  loadWeights(id: string, step: number): Promise<Blob | null>;
  /** The steps whose weights are kept, the first one first. */
  listWeights(id: string): Promise<number[]>;
}
