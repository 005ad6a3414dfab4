// SPDX-License-Identifier: Apache-2.0
/**
 * calls_write.ts - sessions, and the text that a model writes in them.
 */
import type { Ptr } from './abi.js';
import { utf8 } from './abi.js';
import { type Call, listening, using } from './calling.js';
import type { Core, Frame } from './core.js';
import { TinygptError } from './errors.js';
import { Cancelled, type Task } from './tasks.js';
import type { Piece } from './types.js';

export const sessionNew: Call<'sessionNew'> = async (core, task, id, ctx) => {
  const model = core.registry.get('model', id);
  return core.framed(task, (frame) => {
    const out = frame.alloc(8);
    core.ok(core.c.tg_session_new(core.context, model.at, ctx, out));
    const at = core.memory.pointer(out);
    const free = () => core.c.tg_session_free(at);
    return core.registry.add('session', at, [model], free, model).id;
  });
};

/** Hands out the tokens of a generation as they appear in the array that C fills. */
function follow(core: Core, task: Task, model: Ptr, frame: Frame, ids: Ptr, n: number): () => void {
  const { c, memory } = core;
  const tokenizer = c.tg_model_tokenizer(model);
  const length = frame.alloc(8);
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  const start = performance.now();
  let done = 0;
  memory.bytes(ids, n * 4).fill(0xff);
  return () => {
    for (; done < n; done++) {
      const id = memory.int32(ids + done * 4);
      if (id < 0) return;
      const piece = memory.copy(c.tg_tokenizer_bytes(tokenizer, id, length), memory.pointer(length));
      const text = decoder.decode(piece, { stream: done + 1 < n });
      task.emit({ id, text, ms: performance.now() - start } satisfies Piece);
    }
  };
}

export const generate: Call<'generate'> = async (core, task, id, prompt, tokens, options) => {
  const session = core.registry.get('session', id);
  const model = session.model!;
  const { c, memory } = core;
  if (!Number.isSafeInteger(tokens) || tokens < 0 || tokens >= 2 ** 28) {
    throw new TinygptError('ARG', `tokens: want a whole number below ${2 ** 28}, have ${tokens}`);
  }
  return using([session], () =>
    core.framed(task, async (frame) => {
      await task.hold(id);
      const bytes = utf8(prompt);
      const sample = core.defaults(frame, 'tg_sample_options');
      memory.write('tg_sample_options', sample, options);
      const what = core.defaults(frame, 'tg_generation');
      const stats = frame.alloc(memory.size('tg_generate_stats'));
      const ids = frame.alloc(Math.max(tokens, 1) * 4);
      const emit = follow(core, task, model.at, frame, ids, tokens);
      /* Asked after every token; it also looks whether the session was freed meanwhile. */
      const cancel = () => {
        emit();
        return task.cancelled || session.freed ? 1 : 0;
      };
      await listening(core, cancel, async (user) => {
        memory.write('tg_generation', what, {
          prompt: frame.put(bytes), promptBytes: bytes.length, sample, nTokens: tokens,
          cancel: c.tg_wasm_on_cancel(), user, newIds: ids,
        });
        try {
          await core.job(
            task, frame, [model.id], 'tg_session_continue', session.at, what, stats,
          );
        } catch (error) {
          if (!(error instanceof Cancelled)) throw error;
        }
      });
      emit();
      return memory.read('tg_generate_stats', stats);
    }));
};
