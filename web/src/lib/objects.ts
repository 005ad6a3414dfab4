// SPDX-License-Identifier: Apache-2.0
/**
 * objects.ts - Text, Model, Session, Trainer and Tokenizer: names for objects that live in the
 * engine's worker.
 *
 * free() may be called at any time and any number of times. What still needs an object (a trainer
 * its text) keeps it alive in the worker; a freed object answers calls with `CLOSED`.
 */
import { TinygptError } from './errors.js';
import type { Link } from './link.js';
import type { Handle, ModelMade, TextMade, TrainerMade } from './protocol.js';
import type {
  CallOptions, Edit, FileKind, GenerateStats, HistoryPoint, ModelInfo, Piece, Probe, SampleOptions,
  StepReport, TrainOptions,
} from './types.js';

/** What all of them have: a number in the worker, and an end. */
export class Remote {
  #freed = false;

  protected constructor(
    protected readonly link: Link,
    private readonly what: string,
    private readonly id: Handle,
  ) {}

  /** @internal The number in the worker; an error once the object was freed. */
  get handle(): Handle {
    if (this.#freed) throw new TinygptError('CLOSED', `this ${this.what} was freed`);
    return this.id;
  }

  /** Gives the object's memory back, as soon as nothing else needs it. */
  free(): void {
    if (this.#freed) return;
    this.#freed = true;
    /* An engine that is gone has freed everything. */
    this.link.call('free', [this.id]).catch(() => {});
  }
}

/** A text to learn from. It stays where it is (a File on the disk) and is read in pieces. */
export class Text extends Remote {
  /** Its length. */
  readonly bytes: number;

  /** @internal */
  constructor(link: Link, made: TextMade) {
    super(link, 'text', made.id);
    this.bytes = made.bytes;
  }

  /** The SHA-256 of its bytes, as 64 hexadecimal digits. Reads all of it. */
  async sha256(options: CallOptions = {}): Promise<string> {
    return this.link.call('textSha256', [this.handle], options);
  }
}

/** Text to token ids and back, as one model does it. */
export class Tokenizer {
  readonly #model: Model;
  readonly #link: Link;
  readonly #pieces: ModelMade['pieces'];

  /** @internal */
  constructor(link: Link, model: Model, pieces: ModelMade['pieces']) {
    this.#link = link;
    this.#model = model;
    this.#pieces = pieces;
  }

  /** How many tokens there are; ids are 0 .. size - 1. */
  get size(): number {
    return this.#pieces.ends.length;
  }

  async encode(text: string): Promise<Int32Array> {
    return this.#link.call('modelTokenize', [this.#model.handle, text]);
  }

  /** Bytes that are no UTF-8 become U+FFFD. */
  async decode(ids: Iterable<number>): Promise<string> {
    const pieces = Array.from(ids, (id) => this.piece(id));
    const bytes = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
    let at = 0;
    for (const piece of pieces) {
      bytes.set(piece, at);
      at += piece.length;
    }
    return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);
  }

  /** The bytes that a token stands for. */
  piece(id: number): Uint8Array {
    const { bytes, ends } = this.#pieces;
    const end = ends[id];
    if (end === undefined) {
      throw new TinygptError('RANGE', `token: want an id of 0..${ends.length - 1}, have ${id}`);
    }
    return bytes.slice(id > 0 ? ends[id - 1] : 0, end);
  }
}

/** A configuration, weights, a tokenizer. */
export class Model extends Remote {
  readonly tokenizer: Tokenizer;

  /** @internal */
  constructor(link: Link, made: ModelMade) {
    super(link, 'model', made.id);
    this.tokenizer = new Tokenizer(link, this, made.pieces);
  }

  async info(): Promise<ModelInfo> {
    return this.link.call('modelInfo', [this.handle]);
  }

  /** A cache for generating; `ctx` tokens long, 0 or absent for the model's own length. */
  async session(ctx = 0): Promise<Session> {
    return new Session(this.link, await this.link.call('sessionNew', [this.handle, ctx]));
  }

  /**
   * Runs the model once over a prompt and keeps everything: attention of every head, and the logits
   * as if the model ended after each block.
   * @param edits what to silence, or to take from the donor's run
   * @param donor another prompt of the same number of tokens, for edits of kind `donor`
   */
  async probe(
    prompt: string | Int32Array, edits: Edit[] = [], donor?: string | Int32Array,
    options: CallOptions = {},
  ): Promise<Probe> {
    return this.link.call('modelProbe', [this.handle, prompt, edits, donor], options);
  }

  /** The model as a file; `run` is refused with `ARG`, since only a trainer has a run to save. */
  async save(kind: FileKind = 'v3', options: CallOptions = {}): Promise<Uint8Array> {
    return this.link.call('modelSave', [this.handle, kind], options);
  }
}

/** What generate() takes: how to choose tokens, how many, and when to stop. */
export type GenerateOptions = Partial<SampleOptions> & { tokens: number; signal?: AbortSignal };

/** A cache of what a model has read, in which it writes on. */
export class Session extends Remote {
  /** @internal */
  constructor(link: Link, id: Handle) {
    super(link, 'session', id);
  }

  /**
   * Continues a prompt. Pieces come as they are made. An abort, or leaving the loop, stops within
   * 100 ms and is no error; `stats` then tells of what was made until there.
   *
   *     const story = session.generate('Once', { tokens: 200, temperature: 0.7 });
   *     for await (const piece of story) process.stdout.write(piece.text);
   *     console.log((await story.stats).tokPerS);
   *
   * The work begins at once, whether or not anybody reads. One generation at a time in a session.
   */
  generate(
    prompt: string, options: GenerateOptions,
  ): AsyncIterable<Piece> & { stats: Promise<GenerateStats> } {
    const { tokens, signal, ...sample } = options;
    const stream = this.link.stream(
      'generate', [this.handle, prompt, tokens, sample], Number.MAX_SAFE_INTEGER, signal,
    );
    return {
      stats: stream.result,
      [Symbol.asyncIterator]: () => stream.items,
    };
  }
}

/** What steps() takes. */
export interface StepsOptions extends CallOptions {
  /**
   * How many finished steps the engine may be ahead of the loop, so that a busy page does not slow
   * it down; 0 makes it wait for the loop after every step. 16 if absent.
   */
  ahead?: number;
}

/** A run: a model in training on a text. */
export class Trainer extends Remote {
  /** The model in training. It can be used and saved between steps. */
  readonly model: Model;

  /** @internal `model` is the caller's own, or absent where the trainer opened one. */
  constructor(link: Link, made: TrainerMade, model?: Model) {
    super(link, 'trainer', made.id);
    if (model) this.model = model;
    else if (made.model) this.model = new Model(link, made.model);
    else throw new TinygptError('INTERNAL', 'a trainer came without a model');
  }

  /**
   * Trains n steps more, or to the end of the run if n is absent, and hands out a report a step.
   * An abort, or leaving the loop, stops within 100 ms and is no error: the step in progress is
   * kept in its unfinished state, and the next steps() goes on where it was. Steps that were
   * finished ahead of the loop are done (done() counts them, history() has them).
   */
  async *steps(n?: number, options: StepsOptions = {}): AsyncGenerator<StepReport, void, void> {
    const ahead = options.ahead ?? 16;
    const { items } = this.link.stream(
      'steps', [this.handle, n ?? Number.MAX_SAFE_INTEGER, ahead], ahead, options.signal,
    );
    yield* items;
  }

  /** Steps done so far, in the whole run. */
  async done(): Promise<number> {
    return this.link.call('trainerDone', [this.handle]);
  }

  /** The settings of the run, what was left out filled in. */
  async options(): Promise<TrainOptions> {
    return this.link.call('trainerOptions', [this.handle]);
  }

  /** Sets a new total number of steps: done() + N continues for N more. */
  async setSteps(total: number): Promise<void> {
    return this.link.call('trainerSetSteps', [this.handle, total]);
  }

  /** The curve so far, thinned to at most 4096 points. */
  async history(): Promise<HistoryPoint[]> {
    return this.link.call('trainerHistory', [this.handle]);
  }

  /** The mean loss over the validation part, or over the whole text if there is none. */
  async evaluate(options: CallOptions = {}): Promise<number> {
    return this.link.call('trainerEvaluate', [this.handle], options);
  }

  /** The whole run as a file (`run`, which openTrainer continues), or its model in a layout. */
  async save(kind: FileKind = 'run', options: CallOptions = {}): Promise<Uint8Array> {
    return this.link.call('trainerSave', [this.handle, kind], options);
  }

  /** The weights with the best validation loss so far; `ARG` if there are none yet. */
  async saveBest(options: CallOptions = {}): Promise<Uint8Array> {
    return this.link.call('trainerSaveBest', [this.handle], options);
  }
}
