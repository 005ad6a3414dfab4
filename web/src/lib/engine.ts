// SPDX-License-Identifier: Apache-2.0
/**
 * engine.ts - Engine: one worker with one instance of the core in it, and what can be made there.
 */
import { ChatModel } from './chat.js';
import { Link } from './link.js';
import { Model, Text, Trainer } from './objects.js';
import { folderAddress } from './platform.js';
import { type EngineEvent, wire } from './protocol.js';
import type {
  CallOptions, Check, EngineInfo, EngineOptions, FileSource, Forecast, GptConfig, LintFinding,
  ModelFacts, ModelSource, SourceOptions, TextSource, TrainOptions, VocabularyKind,
} from './types.js';

/** The buffers to move, if the caller gives his bytes away. */
function moved(source: TextSource | ModelSource, options: SourceOptions): Transferable[] {
  if (!options.transfer || !(source instanceof Uint8Array)) return [];
  return source.buffer instanceof ArrayBuffer ? [source.buffer] : [];
}

export class Engine {
  readonly #link: Link;
  /** What was loaded, and why nothing better. */
  readonly info: EngineInfo;

  /** The core's messages. */
  onLog?: (level: 'error' | 'warning' | 'info', text: string) => void;
  /**
   * The module trapped and was rebuilt: everything made before is gone and says so (`TRAP`), and
   * new objects can be made at once, from the last save for instance.
   */
  onRebuilt?: (reason: string) => void;
  /** A GPU was lost; `info` says what computes now. Runs go on from their copies, and say so in the
   *  log. */
  onDevice?: () => void;

  private constructor(link: Link, info: EngineInfo) {
    this.#link = link;
    this.info = info;
    link.onEvent = (event) => this.#tell(event);
    link.watch();
  }

  /** Starts a worker and loads the best build that works here. `UNSUPPORTED` says why none does. */
  static async open(options: EngineOptions = {}): Promise<Engine> {
    const link = new Link();
    try {
      const { wasmBase, ...rest } = options;
      const base = wasmBase === undefined ? {} : { wasmBase: folderAddress(wasmBase) };
      return new Engine(link, await link.call('open', [{ ...rest, ...base }, link.lock]));
    } catch (error) {
      await link.close();
      throw error;
    }
  }

  /** Ends the worker and with it all that was made in it. Calls still open are rejected. */
  async close(): Promise<void> {
    await this.#link.close();
  }

  /** Makes a text from a string, bytes, or a Blob or File that is read as needed. */
  async text(source: TextSource, options: SourceOptions = {}): Promise<Text> {
    const transfer = moved(source, options);
    const made = await this.#link.call('textNew', [wire(source)], { ...options, transfer });
    return new Text(this.#link, made);
  }

  /** What a model would stumble over in a text: an empty list if it is fine. */
  async lint(
    text: Text, ctx = 0, valFraction = 0, options: CallOptions = {},
  ): Promise<LintFinding[]> {
    return this.#link.call('lint', [text.handle, ctx, valFraction], options);
  }

  /** Small stories from a grammar: the same for the same seed, a longer text only extends. */
  async stories(seed: number, bytes: number): Promise<Uint8Array> {
    return this.#link.call('stories', [seed, bytes]);
  }

  /**
   * Trains a vocabulary on a text: a tokenizer.json, of the same bytes as `tinygpt tokenize --train`
   * writes. `tokens` 0, of chars alone: as many as the text has. `DATA`: the text gives fewer.
   */
  async trainVocabulary(
    text: Text, kind: VocabularyKind, tokens = 0, options: CallOptions = {},
  ): Promise<Uint8Array> {
    return this.#link.call('vocabularyTrain', [text.handle, kind, tokens], options);
  }

  /**
   * A model with fresh weights. Same seed (42 if absent), same weights, on every machine.
   * @param vocabulary what its tokens are, bytes if absent: a tokenizer.json, or a model's file.
   *   config.vocab 0 is as many as it has; the family tinygpt takes none
   */
  async newModel(config: GptConfig, seed = 42, vocabulary?: FileSource): Promise<Model> {
    const tokens = vocabulary === undefined ? undefined : wire(vocabulary);
    return new Model(this.#link, await this.#link.call('modelNew', [config, seed, tokens]));
  }

  /**
   * The model of a .tinygpt file, v1, v2 or v3, or of a third party (GGUF, or a zip file of a folder
   * of transformers). Where a third party's weights are floats, they become f32 in memory, 4 bytes
   * each, and can be trained and looked into; others write alone. An abort stops within 100 ms;
   * `onProgress` hears what share of the file has been read.
   */
  async openModel(
    file: ModelSource, options: SourceOptions & { onProgress?: (share: number) => void } = {},
  ): Promise<Model> {
    const { signal, onProgress: onItem } = options;
    const transfer = moved(file, options);
    const made = await this.#link.call('modelOpen', [wire(file)], { signal, transfer, onItem });
    return new Model(this.#link, made);
  }

  /** What a third-party model file (GGUF) is, and the memory that it would take. */
  async modelFacts(file: ModelSource, options: CallOptions = {}): Promise<ModelFacts> {
    return this.#link.call('chatFacts', [wire(file)], options);
  }

  /**
   * A model to talk with, out of a GGUF file. It is read in pieces, straight into the memory of the
   * module; `onProgress` hears what share of it has been read.
   */
  async openChatModel(
    file: ModelSource, options: SourceOptions & { onProgress?: (share: number) => void } = {},
  ): Promise<ChatModel> {
    const { signal, onProgress: onItem } = options;
    const transfer = moved(file, options);
    const made = await this.#link.call('chatOpen', [wire(file)], { signal, transfer, onItem });
    return new ChatModel(this.#link, made);
  }

  /** A new run. The model is trained in place; both it and the text are needed until its end. */
  async newTrainer(
    model: Model, text: Text, options: Partial<TrainOptions> = {},
  ): Promise<Trainer> {
    const made = await this.#link.call('trainerNew', [model.handle, text.handle, options]);
    return new Trainer(this.#link, made, model);
  }

  /**
   * Continues the very run that a file holds, on the text it was trained on.
   * @param steps a new total number of steps; the file's own if absent
   */
  async openTrainer(
    file: FileSource, text: Text, steps = 0, options: SourceOptions = {},
  ): Promise<Trainer> {
    const transfer = moved(file, options);
    const settings = { ...options, transfer };
    const made = await this.#link.call('trainerOpen', [wire(file), text.handle, steps], settings);
    return new Trainer(this.#link, made);
  }

  /** What a run would need and how long it would take, before anything is made for it. */
  async forecast(
    config: GptConfig, options: Partial<TrainOptions> = {}, text?: Text,
  ): Promise<Forecast> {
    return this.#link.call('forecast', [config, options, text ? text.handle : 0]);
  }

  /** The multiply-add ceiling of this build on all its threads, in GFLOP/s. */
  async measurePeak(): Promise<number> {
    return this.#link.call('measurePeak', []);
  }

  /**
   * What the GPU in use reaches: bytes a second in additions of large arrays, GFLOP/s in a large
   * product. Of one that is software there is an error instead: its times are the CPU's.
   */
  async measureGpu(): Promise<{ bytesPerSecond: number; gflops: number }> {
    return this.#link.call('measureGpu', []);
  }

  /** Reading bandwidth over a block of that many bytes, all threads, in bytes a second. */
  async measureRead(bytes: number): Promise<number> {
    return this.#link.call('measureRead', [bytes]);
  }

  /** Every kernel of this build against its reference. */
  async checkKernels(
    onCheck?: (check: Check) => void, options: CallOptions & { filter?: string } = {},
  ): Promise<{ passed: number; failed: number }> {
    const { items, result } = this.#link.stream(
      'checkKernels', [options.filter ?? ''], Number.MAX_SAFE_INTEGER, options.signal,
    );
    for await (const check of items) onCheck?.(check);
    options.signal?.throwIfAborted();
    return result;
  }

  /** Checks every checksum and range of a file and describes it, as lines of text. */
  async checkFile(file: FileSource, options: SourceOptions = {}): Promise<string> {
    const transfer = moved(file, options);
    return this.#link.call('checkFile', [wire(file)], { ...options, transfer });
  }

  /** What the module's memory has grown to. */
  async memoryBytes(): Promise<number> {
    return this.#link.call('memoryBytes', []);
  }

  /** What the core holds on the GPU; it is given back while nothing computes. */
  async gpuBytes(): Promise<number> {
    return this.#link.call('gpuBytes', []);
  }

  #tell(event: EngineEvent): void {
    if (event.kind === 'log') {
      this.onLog?.(event.level, event.text);
    } else if (event.kind === 'device') {
      const { device, gpu, banner } = event;
      Object.assign(this.info, { device, gpu, banner });
      this.onDevice?.();
    } else {
      this.onRebuilt?.(event.reason);
    }
  }
}
