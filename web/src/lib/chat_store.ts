// SPDX-License-Identifier: Apache-2.0
/**
 * chat_store.ts - a conversation as a store that views subscribe to: it loads a model, holds the
 * turns, and tells when something has changed. What useChat (react.ts) is made of.
 */
import type { ChatModel, ChatSession } from './chat.js';
import { Engine } from './engine.js';
import type { AnswerOptions, EngineOptions, ModelSource, SessionOptions, Turn } from './types.js';

export interface ChatStoreOptions extends SessionOptions {
  /** A file, or { stored: id }; in Node a file: URL. */
  model: ModelSource;
  /** What the model is told before everything else. */
  system?: string;
  template?: string;
  answer?: AnswerOptions;
  engine?: EngineOptions;
}

export interface ChatState {
  status: 'closed' | 'loading' | 'ready' | 'writing' | 'failed';
  /** What share of the model has been read. */
  progress: number;
  /** The last one grows while it is written. */
  turns: readonly Turn[];
  /** What the model thinks before it answers, where it does. */
  thinking: string;
  error: Error | null;
}

const CLOSED: ChatState = { status: 'closed', progress: 0, turns: [], thinking: '', error: null };

export class ChatStore {
  #state = CLOSED;
  readonly #listeners = new Set<() => void>();
  #opening: AbortController | undefined;
  #engine: Engine | undefined;
  #session: ChatSession | undefined;
  #answer: AbortController | undefined;

  constructor(private readonly options: ChatStoreOptions) {}

  /** The same object until something has changed. */
  readonly snapshot = (): ChatState => this.#state;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  #patch(change: Partial<ChatState>): void {
    this.#state = { ...this.#state, ...change };
    for (const listener of this.#listeners) listener();
  }

  /** Loads the model. An error is in the state, too. */
  readonly open = async (): Promise<void> => {
    if (this.#opening) return;
    const { signal } = (this.#opening = new AbortController());
    this.#patch({ status: 'loading', progress: 0, error: null });
    let engine: Engine | undefined;
    try {
      engine = await Engine.open(this.options.engine);
      signal.throwIfAborted();
      const model: ChatModel = await engine.openChatModel(this.options.model, {
        signal, onProgress: (progress) => this.#patch({ progress }),
      });
      const session = await model.chat(this.options);
      signal.throwIfAborted();
      this.#engine = engine;
      this.#session = session;
      this.#patch({ status: 'ready', progress: 1 });
    } catch (e) {
      await engine?.close();
      if (signal.aborted) return;
      this.#opening = undefined;
      this.#patch({ status: 'failed', error: e instanceof Error ? e : new Error(String(e)) });
    }
  };

  /** Gives the model's memory back; the turns stay. */
  readonly close = async (): Promise<void> => {
    this.#answer?.abort();
    this.#opening?.abort();
    const engine = this.#engine;
    this.#opening = this.#engine = this.#session = undefined;
    this.#patch({ status: 'closed', progress: 0 });
    await engine?.close();
  };

  /** Says a turn, and has it answered. One that fails is taken back, and the error is in the state. */
  readonly send = async (text: string): Promise<void> => {
    const session = this.#session;
    if (!session || this.#state.status !== 'ready') return;
    const before = this.#state.turns;
    const turns: Turn[] = [...before, { role: 'user', text }];
    const { signal } = (this.#answer = new AbortController());
    const { system, answer: options } = this.options;
    const told: Turn[] = system ? [{ role: 'system', text: system }, ...turns] : turns;
    this.#patch({ status: 'writing', turns, thinking: '', error: null });
    let said = '';
    try {
      for await (const piece of session.answer(told, { ...options, signal })) {
        if (piece.part === 'answer') said += piece.text;
        if (piece.part === 'thinking') this.#patch({ thinking: this.#state.thinking + piece.text });
        else this.#patch({ turns: [...turns, { role: 'assistant', text: said }] });
      }
      if (this.#session === session) this.#patch({ status: 'ready' });
    } catch (e) {
      if (this.#session !== session) return;
      const error = e instanceof Error ? e : new Error(String(e));
      this.#patch({ status: 'ready', turns: before, error });
    }
  };

  /** Ends the answer; what there is of it stays. */
  readonly stop = (): void => this.#answer?.abort();

  /** Begins anew. */
  readonly reset = (): void => {
    this.stop();
    this.#patch({ turns: [], thinking: '', error: null });
  };
}
