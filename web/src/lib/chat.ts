// SPDX-License-Identifier: Apache-2.0
/**
 * chat.ts - ChatModel and ChatSession: a third-party model file, and conversations with it.
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
  AnswerOptions, AnswerPiece, AnswerStats, CallOptions, ChatInfo, EmbedOptions, FileSource,
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
