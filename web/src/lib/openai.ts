// SPDX-License-Identifier: Apache-2.0
/**
 * openai.ts - a model in the shape that programs for OpenAI's API expect, without a server:
 *
 *     const client = new ChatClient(model, { name: 'SmolLM2' });
 *     const stream = await client.chat.completions.create({ messages, stream: true });
 *     for await (const chunk of stream) show(chunk.choices[0]?.delta.content ?? '');
 *
 * Names and meanings are those of the API's reference (platform.openai.com/docs/api-reference/chat).
 * What is asked for and cannot be done is an error, and never left out in silence.
 */
import type { ChatModel, ChatSession } from './chat.js';
import { TinygptError } from './errors.js';
import type { AnswerOptions, AnswerStats, SessionOptions, Turn } from './types.js';

export interface ChatMessage {
  role: 'system' | 'developer' | 'user' | 'assistant';
  content: string | readonly { type: 'text'; text: string }[];
}

export interface CreateOptions {
  messages: readonly ChatMessage[];
  /** Answers are this client's model's, whatever stands here. */
  model?: string;
  stream?: boolean | null;
  stream_options?: { include_usage?: boolean } | null;
  max_tokens?: number | null;
  max_completion_tokens?: number | null;
  stop?: string | readonly string[] | null;
  /** The same seed, messages and settings, the same answer. Another one each time if absent. */
  seed?: number | null;
  temperature?: number | null;
  top_p?: number | null;
  frequency_penalty?: number | null;
  presence_penalty?: number | null;
  /** By token id. */
  logit_bias?: Record<string, number> | null;
  n?: 1 | null;
}

export interface Usage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  /** Of the prompt, what was in the cache already. */
  prompt_tokens_details: { cached_tokens: number };
}

export type FinishReason = 'stop' | 'length' | 'tool_calls';

export interface ToolCall {
  id: string;
  type: 'function';
  function: { name: string; arguments: string };
}

export interface ChatCompletion {
  id: string;
  object: 'chat.completion';
  /** Seconds since 1970. */
  created: number;
  model: string;
  choices: {
    index: 0;
    message: {
      role: 'assistant';
      content: string | null;
      refusal: null;
      /** What the model thought before, where it does. */
      reasoning_content?: string;
      tool_calls?: ToolCall[];
    };
    logprobs: null;
    finish_reason: FinishReason;
  }[];
  usage: Usage;
}

export interface ChatCompletionChunk {
  id: string;
  object: 'chat.completion.chunk';
  created: number;
  model: string;
  choices: {
    index: 0;
    delta: {
      role?: 'assistant';
      content?: string;
      reasoning_content?: string;
      tool_calls?: (ToolCall & { index: number })[];
    };
    logprobs: null;
    finish_reason: FinishReason | null;
  }[];
  /** In the last chunk, where stream_options.include_usage asks for it. */
  usage?: Usage | null;
}

/** Chunks as they come. Leaving the loop, or abort() of the controller, ends the answer. */
export type ChatCompletionStream = AsyncIterable<ChatCompletionChunk> & {
  controller: AbortController;
};

/** An error with the members that the API's own have. */
export class APIError extends Error {
  override readonly name = 'APIError';
  readonly error: { message: string; type: string; param: string | null; code: string | null };

  constructor(
    readonly status: number,
    message: string,
    readonly type: string,
    readonly param: string | null = null,
    readonly code: string | null = null,
  ) {
    super(message);
    this.error = { message, type, param, code };
  }
}

function refuse(param: string, message: string): never {
  throw new APIError(400, `${param}: ${message}`, 'invalid_request_error', param);
}

/** What the API has and this cannot do; a value that asks for nothing is fine. */
const UNKNOWN: Record<string, (value: unknown) => boolean> = {
  n: (n) => n === 1,
  tools: (list) => Array.isArray(list) && list.length === 0,
  tool_choice: (choice) => choice === 'none',
  functions: () => false,
  logprobs: (yes) => yes === false,
  top_logprobs: (n) => n === 0,
  response_format: (format) => (format as { type?: unknown }).type === 'text',
  audio: () => false,
};

const ROLES = { system: 'system', developer: 'system', user: 'user', assistant: 'assistant' } as const;

function turnOf(message: ChatMessage, i: number): Turn {
  const at = `messages[${i}]`;
  const role = ROLES[message?.role];
  if (!role) refuse(`${at}.role`, `want one of ${Object.keys(ROLES).join(', ')}, have ${message?.role}`);
  const { content } = message;
  if (typeof content === 'string') return { role, text: content };
  if (!Array.isArray(content)) refuse(`${at}.content`, 'want a text, or parts of texts');
  const parts = content as { type: string; text?: unknown }[];
  const other = parts.find((part) => part.type !== 'text' || typeof part.text !== 'string');
  if (other) refuse(`${at}.content`, `want parts of type text, have ${other.type}`);
  return { role, text: parts.map((part) => part.text).join('') };
}

function number(options: CreateOptions, name: keyof CreateOptions, least: number, most: number) {
  const value = options[name] ?? undefined;
  if (value === undefined) return undefined;
  if (typeof value !== 'number' || !(value >= least && value <= most)) {
    refuse(name, `want a number of ${least}..${most}, have ${String(value)}`);
  }
  return value;
}

function answerOptions(options: CreateOptions): AnswerOptions {
  const tokens = number(options, 'max_completion_tokens', 1, Infinity)
    ?? number(options, 'max_tokens', 1, Infinity);
  const { stop, logit_bias: bias } = options;
  const stops = typeof stop === 'string' ? [stop] : [...(stop ?? [])];
  if (!stops.every((text) => typeof text === 'string')) refuse('stop', 'want a text, or a list of texts');
  return {
    ...(tokens === undefined ? {} : { tokens }),
    stops,
    seed: number(options, 'seed', 0, Number.MAX_SAFE_INTEGER) ?? Math.floor(Math.random() * 2 ** 32),
    temperature: number(options, 'temperature', 0, 2) ?? 1,
    topP: number(options, 'top_p', 0, 1) ?? 1,
    topK: 0,
    frequencyPenalty: number(options, 'frequency_penalty', -2, 2) ?? 0,
    presencePenalty: number(options, 'presence_penalty', -2, 2) ?? 0,
    bias: Object.entries(bias ?? {}).map(([id, value]) => ({ id: Number(id), bias: value })),
  };
}

function usageOf(stats: AnswerStats): Usage {
  return {
    prompt_tokens: stats.promptTokens,
    completion_tokens: stats.newTokens,
    total_tokens: stats.promptTokens + stats.newTokens,
    prompt_tokens_details: { cached_tokens: stats.reusedTokens },
  };
}

function asApiError(e: unknown): unknown {
  if (!(e instanceof TinygptError)) return e;
  if (e.code === 'FULL') {
    return new APIError(400, e.message, 'invalid_request_error', 'messages', 'context_length_exceeded');
  }
  const asked = e.code === 'ARG' || e.code === 'RANGE' || e.code === 'UNSUPPORTED';
  return asked
    ? new APIError(400, e.message, 'invalid_request_error')
    : new APIError(500, e.message, 'server_error', null, e.code.toLowerCase());
}

/** Calls as most models write them: JSON objects with a name and arguments; null: other words. */
function toolCalls(text: string, id: string): ToolCall[] | null {
  const calls: ToolCall[] = [];
  try {
    const trimmed = text.trim();
    const list = trimmed.startsWith('[') ? trimmed : `[${trimmed.replace(/\}\s*\{/g, '},{')}]`;
    const json = JSON.parse(list) as { name?: unknown; arguments?: unknown; parameters?: unknown }[];
    for (const call of json) {
      if (typeof call.name !== 'string') return null;
      const given = call.arguments ?? call.parameters ?? {};
      const values = typeof given === 'string' ? given : JSON.stringify(given);
      const made = { name: call.name, arguments: values };
      calls.push({ id: `${id}-${calls.length}`, type: 'function', function: made });
    }
  } catch {
    return null;
  }
  return calls;
}

function finish(stats: AnswerStats, called: boolean): FinishReason {
  if (called) return 'tool_calls';
  return stats.end === 'length' || stats.end === 'full' ? 'length' : 'stop';
}

/** One model, answering one request after the other. */
export class ChatClient {
  #session: Promise<ChatSession> | undefined;
  /** The request before: a session has one answer at a time. */
  #last: Promise<unknown> = Promise.resolve();
  readonly #name: string;

  constructor(
    private readonly model: ChatModel,
    private readonly options: SessionOptions & { template?: string; name?: string } = {},
  ) {
    this.#name = options.name ?? model.info.family;
  }

  readonly chat = {
    completions: { create: this.#create.bind(this) as Create },
  };

  async #create(
    options: CreateOptions, how: { signal?: AbortSignal } = {},
  ): Promise<ChatCompletion | ChatCompletionStream> {
    for (const [name, isNothing] of Object.entries(UNKNOWN)) {
      const value = (options as unknown as Record<string, unknown>)[name] ?? undefined;
      if (value !== undefined && !isNothing(value)) refuse(name, 'this cannot be done here');
    }
    if (!Array.isArray(options.messages) || options.messages.length === 0) {
      refuse('messages', 'want a list of messages, have none');
    }
    const turns = options.messages.map(turnOf);
    const controller = new AbortController();
    how.signal?.addEventListener('abort', () => controller.abort(how.signal?.reason));
    if (how.signal?.aborted) controller.abort(how.signal.reason);
    const asked = answerOptions(options);
    const usage = options.stream_options?.include_usage ?? false;
    const chunks = this.#chunks(turns, asked, controller, options.stream ? usage : true);
    if (!options.stream) return whole(chunks);
    /* What is wrong with the request rejects the call, and not the loop. */
    const first = await chunks.next();
    return Object.assign(startingWith(first, chunks), { controller });
  }

  async *#chunks(
    turns: Turn[], asked: AnswerOptions, controller: AbortController, withUsage: boolean,
  ): AsyncGenerator<ChatCompletionChunk, void, void> {
    const head = {
      id: `chatcmpl-${globalThis.crypto.randomUUID()}`,
      object: 'chat.completion.chunk' as const,
      created: Math.floor(Date.now() / 1000),
      model: this.#name,
    };
    type Delta = ChatCompletionChunk['choices'][number]['delta'];
    const chunk = (delta: Delta, reason: FinishReason | null = null): ChatCompletionChunk => ({
      ...head, choices: [{ index: 0, delta, logprobs: null, finish_reason: reason }],
    });
    const before = this.#last;
    let free = () => {};
    this.#last = new Promise<void>((resolve) => { free = resolve; });
    try {
      await before;
      const session = await (this.#session ??= this.#open());
      const answer = session.answer(turns, { ...asked, signal: controller.signal });
      answer.stats.catch(() => {});
      let calls = '';
      let begun = false;
      for await (const { text, part } of answer) {
        if (!begun) yield chunk({ role: 'assistant', content: '' });
        begun = true;
        if (text === '') continue;
        if (part === 'tool call') calls += text;
        else yield chunk(part === 'thinking' ? { reasoning_content: text } : { content: text });
      }
      const stats = await answer.stats;
      const list = calls === '' ? null : toolCalls(calls, head.id);
      if (calls !== '' && !list) yield chunk({ content: calls });
      if (list) yield chunk({ tool_calls: list.map((call, index) => ({ ...call, index })) });
      const last = chunk({}, finish(stats, list !== null));
      yield withUsage ? { ...last, usage: usageOf(stats) } : last;
    } catch (e) {
      throw asApiError(e);
    } finally {
      free();
    }
  }

  /** One that could not be made is tried anew by the next request. */
  async #open(): Promise<ChatSession> {
    try {
      return await this.model.chat(this.options);
    } catch (e) {
      this.#session = undefined;
      throw e;
    }
  }
}

interface Create {
  (options: CreateOptions & { stream: true }, how?: { signal?: AbortSignal }): Promise<ChatCompletionStream>;
  (options: CreateOptions & { stream?: false | null }, how?: { signal?: AbortSignal }): Promise<ChatCompletion>;
}

async function* startingWith<T>(
  first: IteratorResult<T, void>, rest: AsyncGenerator<T, void, void>,
): AsyncGenerator<T, void, void> {
  try {
    if (first.done) return;
    yield first.value;
    yield* rest;
  } finally {
    await rest.return();
  }
}

async function whole(chunks: AsyncIterable<ChatCompletionChunk>): Promise<ChatCompletion> {
  let content = '';
  let thinking = '';
  let calls: ToolCall[] | undefined;
  let last: ChatCompletionChunk | undefined;
  for await (const chunk of chunks) {
    const { delta } = chunk.choices[0]!;
    content += delta.content ?? '';
    thinking += delta.reasoning_content ?? '';
    calls = delta.tool_calls?.map(({ index: _, ...call }) => call) ?? calls;
    last = chunk;
  }
  const { id, created, model, usage, choices } = last!;
  const message = {
    role: 'assistant' as const,
    content: calls && content === '' ? null : content,
    refusal: null,
    ...(thinking === '' ? {} : { reasoning_content: thinking }),
    ...(calls ? { tool_calls: calls } : {}),
  };
  const reason = choices[0]!.finish_reason ?? 'stop';
  return {
    id, object: 'chat.completion', created, model, usage: usage!,
    choices: [{ index: 0, message, logprobs: null, finish_reason: reason }],
  };
}
