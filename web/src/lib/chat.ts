// SPDX-License-Identifier: Apache-2.0
/**
 * chat.ts - ChatModel, ChatSession and Batch: a third-party model file, and conversations with it.
 *
 *     const engine = await Engine.open();
 *     const model = await engine.openChatModel(file);
 *     const session = await model.chat({ ctx: 4096 });
 *     const turns = [{ role: 'user', text: 'Why is the sky blue?' }] as const;
 *     for await (const piece of session.answer(turns)) show(piece.text);
 */
import type { Link } from './link.js';
import { Remote } from './objects.js';
import { type ChatMade, wire } from './protocol.js';
import type {
  AnswerOptions, AnswerPiece, AnswerStats, BatchPiece, CallOptions, ChatInfo, EmbedOptions, FileSource,
  SessionOptions, Tokens, Turn,
} from './types.js';

/** Pieces as they are made, and what there is to tell at the end. */
export type Answer = AsyncIterable<AnswerPiece> & { stats: Promise<AnswerStats> };

/** A conversation's cache: what both have in common is not read again. */
export class ChatSession extends Remote {
  /** The tokens that it can hold. */
  readonly capacity: number;

  /** @internal */
  constructor(link: Link, made: { id: number; capacity: number }) {
    super(link, 'session', made.id);
    this.capacity = made.capacity;
  }

  /**
   * Answers the last turn, which is the user's. The turns are the whole conversation each time; a
   * changed or shorter one is fine. An abort, or leaving the loop, stops within 100 ms and is no
   * error. `FULL`: the conversation does not fit into the context. One answer at a time.
   */
  answer(
    turns: readonly Turn[], options: AnswerOptions & { signal?: AbortSignal } = {},
  ): Answer {
    return this.#stream([...turns], options);
  }

  /** Continues a text, as models do that were not taught to answer. For the rest as answer(). */
  complete(text: string, options: AnswerOptions & { signal?: AbortSignal } = {}): Answer {
    return this.#stream(text, options);
  }

  #stream(what: string | Turn[], options: AnswerOptions & { signal?: AbortSignal }): Answer {
    const { signal, ...rest } = options;
    const stream = this.link.stream(
      'answer', [this.handle, what, rest], Number.MAX_SAFE_INTEGER, signal,
    );
    return { stats: stream.result, [Symbol.asyncIterator]: () => stream.items };
  }

  /** What the session holds as a file, with a note of the caller's: its texts, for instance. */
  async save(note: Uint8Array = new Uint8Array()): Promise<Uint8Array> {
    return this.link.call('chatSave', [this.handle, note]);
  }

  /** Takes what save() gave: the same model, the same keys and room for its tokens. The note. */
  async load(file: FileSource): Promise<Uint8Array> {
    return this.link.call('chatLoad', [this.handle, wire(file)]);
  }
}

/** What Batch.answer() takes: what all rows have, and what single ones have instead. */
export type BatchOptions = AnswerOptions & {
  signal?: AbortSignal;
  rows?: readonly AnswerOptions[];
};

/** Pieces of all rows as they are made, and what there is to tell of each row at the end. */
export type BatchAnswer = AsyncIterable<BatchPiece> & { stats: Promise<AnswerStats[]> };

/**
 * Several conversations that compute together: the weights, which a token waits for most, are read
 * once for all. Each row has, to the bit, what it would have alone.
 *
 *     const batch = await model.batch(3);
 *     for await (const piece of batch.answer(['Once', 'Then', 'Now'], { tokens: 50 })) {
 *       show(piece.row, piece.text);
 *     }
 */
export class Batch extends Remote {
  readonly rows: number;
  /** The tokens that each row can hold. */
  readonly capacity: number;

  /** @internal */
  constructor(link: Link, made: { id: number; capacity: number }, rows: number) {
    super(link, 'batch', made.id);
    this.rows = rows;
    this.capacity = made.capacity;
  }

  /**
   * Row i answers or continues what[i]: turns as ChatSession.answer() takes them, or a text as
   * complete() does. What a row has of it already is not read again. An abort, or leaving the loop,
   * stops all within 100 ms and is no error; stop() one of them. If something cannot be begun, or
   * goes wrong in a row, the call rejects. One call at a time.
   */
  answer(
    what: readonly (string | readonly Turn[])[], options: BatchOptions = {},
  ): BatchAnswer {
    const { signal, rows = [], ...rest } = options;
    const said = what.map((one) => (typeof one === 'string' ? one : [...one]));
    const each = what.map((_, i) => ({ ...rest, ...rows[i] }));
    const stream = this.link.stream(
      'batchAnswer', [this.handle, said, each], Number.MAX_SAFE_INTEGER, signal,
    );
    return { stats: stream.result, [Symbol.asyncIterator]: () => stream.items };
  }

  /** Ends one row's answer within 100 ms; the others go on. */
  async stop(row: number): Promise<void> {
    return this.link.call('batchStop', [this.handle, row]);
  }

  /** Row `to` becomes what row `from` is: what several texts begin with is computed once. */
  async copy(to: number, from: number): Promise<void> {
    return this.link.call('batchCopy', [this.handle, to, from]);
  }
}

export class ChatModel extends Remote {
  readonly info: ChatInfo;

  /** @internal */
  constructor(link: Link, made: ChatMade) {
    super(link, 'model', made.id);
    this.info = made.info;
  }

  /**
   * A conversation. `template` is one of info.templates or a text in Jinja, the file's own if
   * absent. `UNSUPPORTED`: there is none, or one with what is not known here.
   */
  async chat(options: SessionOptions & { template?: string } = {}): Promise<ChatSession> {
    return this.#session(options, options.template ?? '');
  }

  /** For complete() alone: wants no template, and finds no fault with the file's. */
  async session(options: SessionOptions = {}): Promise<ChatSession> {
    return this.#session(options, null);
  }

  /**
   * 1 to 64 conversations or texts at once. Their keys and values take memory as they grow.
   * `template` as of chat(); null: for texts alone.
   */
  async batch(
    rows: number, options: SessionOptions & { template?: string | null } = {},
  ): Promise<Batch> {
    const { ctx = Math.min(4096, this.info.ctx), keys = 'f32' } = options;
    const template = options.template === undefined ? '' : options.template;
    const made = await this.link.call('batchNew', [this.handle, rows, ctx, keys, template]);
    return new Batch(this.link, made, rows);
  }

  async #session(options: SessionOptions, template: string | null): Promise<ChatSession> {
    const { ctx = Math.min(4096, this.info.ctx), keys = 'f32' } = options;
    const made = await this.link.call('chatNew', [this.handle, ctx, keys, template]);
    return new ChatSession(this.link, made);
  }

  /**
   * Texts as vectors, whose dot products are cosines: of encoders (MiniLM, BERT), and of what
   * models that write text have at their end. A vector does not depend on the texts beside it.
   */
  async embed(
    texts: readonly string[], options: EmbedOptions & CallOptions = {},
  ): Promise<Float32Array[]> {
    const { signal, ...rest } = options;
    return this.link.call('embed', [this.handle, [...texts], rest], { signal });
  }

  /** `special`: special tokens that the text spells are taken as such. */
  async tokenize(text: string, special = false): Promise<Tokens> {
    return this.link.call('chatTokenize', [this.handle, text, special]);
  }
}
