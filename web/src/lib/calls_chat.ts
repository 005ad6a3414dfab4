// SPDX-License-Identifier: Apache-2.0
/**
 * calls_chat.ts - third-party model files, and the conversations with them.
 *
 * The conversation is encoded as a whole for each answer; tg_session_continue keeps what the cache
 * holds of its beginning.
 */
import { type Ptr, utf8 } from './abi.js';
import {
  tg_ability, tg_chat_flag, tg_chat_limit, tg_encode_flag, tg_full, tg_kv_type,
  tg_role,
} from './abi.gen.js';
import { type Call, Gathered, listening, offering, telling, using } from './calling.js';
import { SAVED, takeSaved } from './calls_model.js';
import type { Core, Frame } from './core.js';
import { choose, TinygptError } from './errors.js';
import type { Entry } from './registry.js';
import { Cancelled } from './tasks.js';
import type {
  AnswerOptions, AnswerPart, AnswerPiece, AnswerStats, KeyType, ModelFacts, Turn,
} from './types.js';

const ROLES: Record<Turn['role'], number> = {
  system: tg_role.TG_SYSTEM,
  user: tg_role.TG_USER,
  assistant: tg_role.TG_ASSISTANT,
};

/** The chat templates of sessions; '': the file's own; null: none. */
const templatesOf = new WeakMap<Entry, string | null>();
/** By tg_answer_part. */
const ANSWER_PARTS: readonly AnswerPart[] = ['answer', 'thinking', 'tool call'];
/** By tg_end. */
const ENDS: readonly AnswerStats['end'][] = ['end', 'end', 'stopped', 'length', 'full'];

/* ------------------------------------------------------------------------------------- models */

/** The members of tg_file_info's JSON that are read. */
interface Head {
  name?: string;
  bytes: number;
  family: string;
  params: number;
  layers: number;
  vocab: number;
  ctx: number;
  weight_bytes: number;
  caches: { tokens: number; bytes: number }[];
  template?: unknown;
}

export const chatFacts: Call<'chatFacts'> = (core, task, file) => {
  const gathered = new Gathered(core);
  return core.framed(task, (frame) =>
    offering(core, file, 'model.gguf', (name) =>
      listening(core, gathered.take, async (user) => {
        const onText = core.c.tg_wasm_on_text();
        core.ok(core.c.tg_file_info(core.context, frame.string(name), true, onText, user));
        const head = JSON.parse(gathered.text()) as Head;
        return {
          name: head.name ?? '', family: head.family, params: head.params, layers: head.layers,
          vocab: head.vocab, ctx: head.ctx, fileBytes: head.bytes,
          weightBytes: head.weight_bytes, caches: head.caches,
          template: Boolean(head.template), templates: templates(core),
        } satisfies ModelFacts;
      })));
};

function templates(core: Core): string[] {
  const names: string[] = [];
  for (let i = 0; ; i++) {
    const at = core.c.tg_chat_template_at(i);
    if (at === 0) return names;
    names.push(core.memory.text(at));
  }
}

export const chatOpen: Call<'chatOpen'> = (core, task, file) =>
  core.framed(task, (frame) =>
    offering(core, file, 'model.gguf', async (name) => {
      const { c, memory } = core;
      task.check();
      const start = performance.now();
      const out = frame.alloc(8);
      await core.job(task, frame, [], 'tg_model_open', core.context, frame.string(name), out);
      const at = memory.pointer(out);
      const loadMs = performance.now() - start;
      const entry = core.registry.add('model', at, [], () => c.tg_model_free(at));
      const info = frame.alloc(memory.size('tg_model_info'));
      core.ok(c.tg_model_get_info(at, info));
      const { family, params, weightBytes, dtype, config } = memory.read('tg_model_info', info);
      const template = memory.text(c.tg_tokenizer_template(c.tg_model_tokenizer(at)));
      return {
        id: entry.id,
        info: {
          family, dtype, loadMs, template, templates: templates(core),
          writes: c.tg_model_can(at, tg_ability.TG_CAN_WRITE),
          params: Number(params), weightBytes: Number(weightBytes),
          ctx: config.ctx, vocab: config.vocab,
        },
      };
    }, telling(task)));

export const chatTokenize: Call<'chatTokenize'> = async (core, task, id, text, special) => {
  const model = core.registry.get('model', id);
  const { c, memory } = core;
  return core.framed(task, (frame) => {
    const tokenizer = c.tg_model_tokenizer(model.at);
    const bytes = utf8(text);
    const from = frame.put(bytes);
    const count = frame.alloc(8);
    const flags = special ? tg_encode_flag.TG_ENCODE_SPECIAL : 0;
    const encode = (at: Ptr, cap: number) =>
      c.tg_tokenizer_encode(core.context, tokenizer, from, bytes.length, flags, at, cap, count);
    core.ok(encode(0, 0));
    const n = memory.pointer(count);
    const at = frame.alloc(n * 4);
    core.ok(encode(at, n));
    const ids = memory.copyInts(at, n);
    const pieces = Array.from(ids, (token) => {
      const piece = c.tg_tokenizer_piece(tokenizer, token, count);
      return memory.utf8(piece, memory.pointer(count));
    });
    return { ids, pieces };
  });
};

/* -------------------------------------------------------------------------------------- turns */

function name(frame: Frame, template: string): Ptr {
  return template === '' ? 0 : frame.string(template);
}

/** The conversation as ids, up to where the answer begins. One place is left for an answer. */
function encode(
  core: Core, frame: Frame, talker: Talker, template: string, turns: Turn[], flags: number,
): { ids: Ptr; nIds: number } {
  const { c, memory } = core;
  const size = memory.size('tg_turn');
  const list = frame.alloc(size * turns.length);
  turns.forEach(({ role, text }, i) => {
    const bytes = utf8(text);
    memory.write('tg_turn', list + i * size, {
      role: choose(ROLES, role, 'role'), text: frame.put(bytes), nBytes: bytes.length,
    });
  });
  const room = c.tg_session_capacity(talker.at) - 1;
  const ids = frame.alloc(room * 4);
  const count = frame.alloc(8);
  core.ok(c.tg_tokenizer_chat(
    core.context, c.tg_model_tokenizer(talker.model.at), name(frame, template), list,
    turns.length, flags, ids, room, count,
  ));
  return { ids, nIds: memory.pointer(count) };
}

/** The tokens that end an answer. */
export function ends(
  core: Core, frame: Frame, tokenizer: Ptr, template: string,
): { ends: Ptr; nEnds: number } {
  const list = frame.alloc(tg_chat_limit.TG_ENDS_MAX * 4);
  const count = frame.alloc(8);
  core.ok(core.c.tg_tokenizer_ends(core.context, tokenizer, name(frame, template), list, count));
  return { ends: list, nEnds: core.memory.pointer(count) };
}

export const KEYS: Record<KeyType, number> = {
  f32: tg_kv_type.TG_KV_F32, f16: tg_kv_type.TG_KV_F16, int8: tg_kv_type.TG_KV_INT8,
};

export const chatNew: Call<'chatNew'> = async (core, task, id, ctx, keys, template) => {
  const model = core.registry.get('model', id);
  return core.framed(task, (frame) => {
    const { c } = core;
    /* The template's fault is told before there is anything to free. */
    if (template !== null) ends(core, frame, c.tg_model_tokenizer(model.at), template);
    const out = frame.alloc(8);
    const type = choose(KEYS, keys, 'keys');
    core.ok(c.tg_session_new_kv(core.context, model.at, ctx, type, out));
    const at = core.memory.pointer(out);
    const free = () => c.tg_session_free(at);
    const entry = core.registry.add('session', at, [model], free, model);
    templatesOf.set(entry, template);
    return { id: entry.id, capacity: c.tg_session_capacity(at) };
  });
};

/* ------------------------------------------------------------------------------------ answers */

/** Holds for all draws, until the next answer says otherwise. */
function processLogits(core: Core, frame: Frame, session: Ptr, options: AnswerOptions): void {
  const { c, memory } = core;
  const { banned = [], bias = [], stops = [] } = options;
  const texts = (list: readonly string[]): Ptr => {
    const at = frame.alloc(8 * list.length || 8);
    memory.setPointers(at, list.map((text) => frame.string(text)));
    return at;
  };
  core.ok(c.tg_session_set_banned(session, texts(banned), banned.length));
  /* Empty texts would end every answer before it begins, and do not count. */
  const wanted = stops.filter((text) => text !== '');
  core.ok(c.tg_session_set_stops(session, texts(wanted), wanted.length));
  const size = memory.size('tg_logit_bias');
  const list = frame.alloc(size * bias.length || size);
  bias.forEach((one, i) => memory.write('tg_logit_bias', list + i * size, one));
  core.ok(c.tg_session_set_bias(session, list, bias.length));
}

/** A session of the core that talks: one of its own, or a row of a batch. */
export interface Talker {
  at: Ptr;
  model: Entry;
  /** A name, a text in Jinja; '': the file's own; null: none. */
  template: string | null;
}

/** A conversation through its template, or a text as it is. */
function prompt(
  core: Core, frame: Frame, talker: Talker, what: string | Turn[], options: AnswerOptions,
): object {
  const { template } = talker;
  if (typeof what === 'string') {
    const bytes = utf8(what);
    return { prompt: frame.put(bytes), promptBytes: bytes.length };
  }
  if (template === null) {
    throw new TinygptError('ARG', 'session: want one of chat() for turns, have one of session()');
  }
  const flags = (options.noThinking ? tg_chat_flag.TG_NO_THINKING : 0) |
    (options.goOn ? tg_chat_flag.TG_CONTINUE : 0);
  return {
    ...encode(core, frame, talker, template, what, flags),
    ...ends(core, frame, core.c.tg_model_tokenizer(talker.model.at), template),
    parts: true, chatTemplate: name(frame, template),
  };
}

/** A tg_generation for an answer. `user` listens to its tokens, and is asked whether to stop. */
export function generation(
  core: Core, frame: Frame, talker: Talker, said: string | Turn[], options: AnswerOptions,
  user: number,
): Ptr {
  const {
    tokens = Infinity, noThinking: _, goOn: __, banned, bias, stops, ...sampling
  } = options;
  const { c, memory } = core;
  processLogits(core, frame, talker.at, { banned, bias, stops });
  const sample = core.defaults(frame, 'tg_sample_options');
  memory.write('tg_sample_options', sample, sampling);
  const what = core.defaults(frame, 'tg_generation');
  memory.write('tg_generation', what, {
    sample, ...prompt(core, frame, talker, said, options),
    nTokens: Math.min(tokens, 2 ** 31), full: tg_full.TG_FULL_STOP,
    token: c.tg_wasm_on_token(), cancel: c.tg_wasm_on_cancel(), user,
  });
  return what;
}

/** What a listener gets for a token of the core's. `start` is on performance.now()'s clock. */
export function pieceOf(core: Core, talker: Talker, at: Ptr, start: number): AnswerPiece {
  const { memory } = core;
  const { id, nBytes, part } = memory.read('tg_token', at);
  const text = memory.utf8(memory.pointer(memory.member('tg_token', at, 'text')), nBytes);
  return {
    id, text, part: ANSWER_PARTS[part] ?? 'answer', ms: performance.now() - start,
    context: core.c.tg_session_tokens(talker.at),
  };
}

export function statsOf(core: Core, talker: Talker, at: Ptr, stopped: boolean): AnswerStats {
  const { c } = core;
  const stats = core.memory.read('tg_generate_stats', at);
  return {
    promptTokens: stats.promptTokens, reusedTokens: stats.promptKept,
    newTokens: stats.newTokens, promptMs: stats.promptMs, firstTokenMs: stats.firstTokenMs,
    tokPerS: stats.tokPerS, context: c.tg_session_tokens(talker.at),
    capacity: c.tg_session_capacity(talker.at), end: stopped ? 'stopped' : ENDS[stats.end]!,
  };
}

export const answer: Call<'answer'> = async (core, task, id, said, options) => {
  const session = core.registry.get('session', id);
  const template = templatesOf.get(session);
  if (template === undefined) {
    throw new TinygptError('ARG', 'session: want one of ChatModel.chat(), have another');
  }
  const model = session.model!;
  const talker: Talker = { at: session.at, model, template };
  const start = performance.now();
  /* Both callbacks: of a token, which has an address, and whether to stop. */
  const listener = (at?: Ptr): number => {
    if (at === undefined) return task.cancelled || session.freed ? 1 : 0;
    task.emit(pieceOf(core, talker, at, start));
    return 0;
  };
  return using([session], () =>
    core.framed(task, (frame) => listening(core, listener, async (user) => {
      await task.hold(id);
      const what = generation(core, frame, talker, said, options, user);
      const out = frame.alloc(core.memory.size('tg_generate_stats'));
      let stopped = false;
      try {
        await core.job(task, frame, [model.id], 'tg_session_continue', session.at, what, out);
      } catch (error) {
        if (!(error instanceof Cancelled)) throw error;
        stopped = true;
      }
      return statsOf(core, talker, out, stopped);
    })));
};

/* -------------------------------------------------------------------- its file, and embeddings */

export const chatSave: Call<'chatSave'> = async (core, task, id, note) => {
  const session = core.registry.get('session', id);
  return using([session], () =>
    core.framed(task, async (frame) => {
      await task.hold(id);
      const at = frame.put(note);
      core.ok(core.c.tg_session_save(session.at, frame.string(SAVED), at, note.length));
      return takeSaved(core, task);
    }));
};

export const chatLoad: Call<'chatLoad'> = async (core, task, id, file) => {
  const session = core.registry.get('session', id);
  const note = new Gathered(core);
  return using([session], () =>
    core.framed(task, (frame) =>
      offering(core, file, 'session', (from) =>
        listening(core, note.take, async (user) => {
          await task.hold(id);
          const onText = core.c.tg_wasm_on_text();
          core.ok(core.c.tg_session_load(session.at, frame.string(from), onText, user));
          return note.bytes();
        }))));
};

export const embed: Call<'embed'> = async (core, task, id, texts, options) => {
  const model = core.registry.get('model', id);
  const { c, memory } = core;
  return using([model], () =>
    core.framed(task, async (frame) => {
      await task.hold(id);
      const how = core.defaults(frame, 'tg_embed_options');
      memory.write('tg_embed_options', how, { raw: options.raw ?? false, cut: options.cut ?? false });
      const out = frame.alloc(8);
      core.ok(c.tg_embedder_new(core.context, model.at, how, out));
      const embedder = memory.pointer(out);
      try {
        const width = c.tg_embedder_width(embedder);
        const size = memory.size('tg_embed_text');
        const list = frame.alloc(size * texts.length || size);
        texts.forEach((text, i) => {
          const bytes = utf8(text);
          memory.write('tg_embed_text', list + i * size, {
            text: frame.put(bytes), nBytes: bytes.length,
          });
        });
        const vectors = frame.alloc(4 * width * texts.length || 4);
        await core.job(
          task, frame, [], 'tg_embedder_run', embedder, list, texts.length, vectors,
        );
        return texts.map((_, i) => memory.copyFloats(vectors + 4 * width * i, width));
      } finally {
        if (task.alive) c.tg_embedder_free(embedder);
      }
    }));
};
