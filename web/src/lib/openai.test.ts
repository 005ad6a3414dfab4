// SPDX-License-Identifier: Apache-2.0
/** openai.test.ts - the shape of answers, of streams and of errors, over a model that is a double. */
import { describe, expect, it } from 'vitest';
import type { ChatModel } from './chat';
import { TinygptError } from './errors';
import { APIError, ChatClient, type ChatCompletionChunk } from './openai';
import type { AnswerPart, AnswerOptions, AnswerStats, Turn } from './types';

const STATS: AnswerStats = {
  promptTokens: 10, reusedTokens: 4, newTokens: 3, promptMs: 1, firstTokenMs: 1, tokPerS: 1,
  context: 13, capacity: 100, end: 'end',
};

/** Writes what it is given, and remembers what it was asked. */
function double(parts: [AnswerPart, string][], stats: Partial<AnswerStats> = {}, error?: Error) {
  const asked: { turns: Turn[]; options: AnswerOptions }[] = [];
  let running = 0;
  const answer = (turns: Turn[], options: AnswerOptions) => {
    asked.push({ turns, options });
    const pieces = async function* () {
      if (++running > 1) throw new Error('two answers at once');
      try {
        if (error) throw error;
        for (const [part, text] of parts) {
          await new Promise((resolve) => setTimeout(resolve));
          yield { id: 1, text, part, ms: 0, context: 0 };
        }
      } finally {
        running--;
      }
    };
    return Object.assign(pieces(), { stats: Promise.resolve({ ...STATS, ...stats }) });
  };
  const model = { info: { family: 'llama' }, chat: async () => ({ answer }) };
  return { client: new ChatClient(model as unknown as ChatModel, { name: 'double' }), asked };
}

const messages = [{ role: 'user' as const, content: 'Hi' }];

async function refused(call: Promise<unknown>): Promise<APIError> {
  const e = await call.then(() => undefined, (reason: unknown) => reason);
  expect(e).toBeInstanceOf(APIError);
  return e as APIError;
}

describe('chat.completions.create', () => {
  it('answers whole, with usage, thinking and why it ended', async () => {
    const { client, asked } = double([['thinking', 'Hm.'], ['answer', 'Hel'], ['answer', 'lo']]);
    const { choices, usage, object, model } = await client.chat.completions.create({
      messages: [{ role: 'developer', content: [{ type: 'text', text: 'Be brief.' }] }, ...messages],
      max_tokens: 7, stop: 'x', temperature: 0, top_p: 0.5, seed: 3, logit_bias: { 5: -1 },
    });
    expect({ object, model }).toEqual({ object: 'chat.completion', model: 'double' });
    expect(choices).toEqual([{
      index: 0, logprobs: null, finish_reason: 'stop',
      message: { role: 'assistant', content: 'Hello', refusal: null, reasoning_content: 'Hm.' },
    }]);
    expect(usage).toEqual({
      prompt_tokens: 10, completion_tokens: 3, total_tokens: 13,
      prompt_tokens_details: { cached_tokens: 4 },
    });
    expect(asked[0]!.turns[0]).toEqual({ role: 'system', text: 'Be brief.' });
    expect(asked[0]!.options).toMatchObject({
      tokens: 7, stops: ['x'], temperature: 0, topP: 0.5, seed: 3, bias: [{ id: 5, bias: -1 }],
    });
  });

  it('streams chunks, one request after the other', async () => {
    const { client } = double([['answer', 'a'], ['answer', 'b']], { end: 'length' });
    const read = async () => {
      const chunks: ChatCompletionChunk[] = [];
      const options = { messages, stream: true as const, stream_options: { include_usage: true } };
      for await (const chunk of await client.chat.completions.create(options)) chunks.push(chunk);
      return chunks;
    };
    const both = await Promise.all([read(), read()]);
    for (const chunks of both) {
      expect(chunks.map((c) => c.choices[0]!.delta)).toEqual([
        { role: 'assistant', content: '' }, { content: 'a' }, { content: 'b' }, {},
      ]);
      expect(chunks.at(-1)!.choices[0]!.finish_reason).toBe('length');
      expect(chunks.at(-1)!.usage?.total_tokens).toBe(13);
      expect(new Set(chunks.map((c) => c.id)).size).toBe(1);
    }
  });

  it('goes on with the next request when a loop is left', async () => {
    const { client } = double([['answer', 'a'], ['answer', 'b']]);
    for await (const _ of await client.chat.completions.create({ messages, stream: true })) break;
    const { choices } = await client.chat.completions.create({ messages });
    expect(choices[0]!.message.content).toBe('ab');
  });

  it('tells tool calls from words', async () => {
    const call = '{"name": "f", "arguments": {"x": 1}}';
    const { choices } = await double([['tool call', `${call}\n${call}`]]).client.chat.completions
      .create({ messages });
    expect(choices[0]!.finish_reason).toBe('tool_calls');
    expect(choices[0]!.message.content).toBeNull();
    expect(choices[0]!.message.tool_calls?.map((c) => c.function)).toEqual([
      { name: 'f', arguments: '{"x":1}' }, { name: 'f', arguments: '{"x":1}' },
    ]);
    const other = await double([['tool call', 'f(1)']]).client.chat.completions.create({ messages });
    expect(other.choices[0]!.message.content).toBe('f(1)');
  });

  it('refuses what it cannot do, by the name of the parameter', async () => {
    const { client } = double([]);
    const { create } = client.chat.completions;
    for (const [param, options] of [
      ['messages', { messages: [] }],
      ['messages[0].role', { messages: [{ role: 'tool', content: '' }] }],
      ['messages[0].content', { messages: [{ role: 'user', content: [{ type: 'image_url' }] }] }],
      ['n', { messages, n: 2 }],
      ['tools', { messages, tools: [{}] }],
      ['temperature', { messages, temperature: 3 }],
      ['response_format', { messages, response_format: { type: 'json_object' } }],
    ] as const) {
      const { status, error } = await refused(create(options as never));
      expect({ status, param: error.param }).toEqual({ status: 400, param });
      expect(error.type).toBe('invalid_request_error');
    }
  });

  it('has errors of the engine in the same shape, also of a stream that has not begun', async () => {
    const { client } = double([], {}, new TinygptError('FULL', 'too long'));
    const { status, code } = await refused(client.chat.completions.create({ messages, stream: true }));
    expect({ status, code }).toEqual({ status: 400, code: 'context_length_exceeded' });
    const dead = double([], {}, new TinygptError('TRAP', 'gone')).client;
    expect((await refused(dead.chat.completions.create({ messages }))).status).toBe(500);
  });
});
