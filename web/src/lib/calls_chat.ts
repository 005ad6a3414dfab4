// SPDX-License-Identifier: Apache-2.0
/**
 * calls_chat.ts - third-party model files, and the conversations with them.
 *
 * The conversation is encoded as a whole for each answer; what the cache holds of its beginning
 * stays there, but for the last token, whose logits are wanted.
 */
import { type Ptr, utf8 } from './abi.js';
import { tg_chat_flag, tg_chat_limit, tg_encode_flag, tg_role } from './abi.gen.js';
import { type Call, choose, Gathered, listening, offering, using } from './calling.js';
import { type Core, type Frame, SLICE_MS } from './core.js';
import { TinygptError } from './errors.js';
import type { Entry } from './registry.js';
import { Stops } from './stops.js';
import { Cancelled, type Task } from './tasks.js';
import type { AnswerOptions, AnswerPiece, AnswerStats, ModelFacts, Turn } from './types.js';

const ROLES: Record<Turn['role'], number> = {
  system: tg_role.TG_SYSTEM,
  user: tg_role.TG_USER,
  assistant: tg_role.TG_ASSISTANT,
};

/** What a session of ours knows besides of C's. */
interface Talk {
  /** '': the file's own. */
  template: string;
  /** The tokens in its cache. */
  fed: Int32Array;
}
const talks = new WeakMap<Entry, Talk>();

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
}

export const chatFacts: Call<'chatFacts'> = (core, task, file) => {
  const gathered = new Gathered(core);
  return core.framed(task, (frame) =>
    offering(core, file, 'model.gguf', (name) =>
      listening(core, gathered.take, async (user) => {
        const onText = core.c.tg_wasm_on_text();
        core.ok(core.c.tg_file_info(core.context, frame.string(name), true, onText, user));
        const head = JSON.parse(gathered.text()) as Partial<Head> & Head;
        if (!head.caches) {
          throw new TinygptError('FORMAT', `${name}: want a GGUF file, have another model file`);
        }
        return {
          name: head.name ?? '', family: head.family, params: head.params, layers: head.layers,
          vocab: head.vocab, ctx: head.ctx, fileBytes: head.bytes,
          weightBytes: head.weight_bytes, caches: head.caches,
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

/** Whoever opens a model hears of it at most so often. */
const TELL_MS = 100;

/** Emits what share has been read. The header is read twice, to tell what the file is. */
function telling(task: Task): (n: number, all: number) => void {
  let done = 0;
  let told = performance.now();
  return (n, all) => {
    done += n;
    if (performance.now() - told < TELL_MS) return;
    told = performance.now();
    task.emit(Math.min(1, done / all));
  };
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

function name(frame: Frame, talk: Talk): Ptr {
  return talk.template === '' ? 0 : frame.string(talk.template);
}

/** The conversation as ids, up to where the answer begins. One place is left for an answer. */
function encode(
  core: Core, frame: Frame, session: Entry, talk: Talk, turns: Turn[], noThinking: boolean,
): Int32Array {
  const { c, memory } = core;
  const size = memory.size('tg_turn');
  const list = frame.alloc(size * turns.length);
  turns.forEach(({ role, text }, i) => {
    const bytes = utf8(text);
    memory.write('tg_turn', list + i * size, {
      role: choose(ROLES, role, 'role'), text: frame.put(bytes), nBytes: bytes.length,
    });
  });
  const room = c.tg_session_capacity(session.at) - 1;
  const ids = frame.alloc(room * 4);
  const count = frame.alloc(8);
  core.ok(c.tg_tokenizer_chat(
    core.context, c.tg_model_tokenizer(session.model!.at), name(frame, talk), list, turns.length,
    noThinking ? tg_chat_flag.TG_NO_THINKING : 0, ids, room, count,
  ));
  return memory.copyInts(ids, memory.pointer(count));
}

/** The tokens that end an answer. */
function ends(core: Core, frame: Frame, tokenizer: Ptr, talk: Talk): Set<number> {
  const list = frame.alloc(tg_chat_limit.TG_ENDS_MAX * 4);
  const count = frame.alloc(8);
  core.ok(core.c.tg_tokenizer_ends(core.context, tokenizer, name(frame, talk), list, count));
  return new Set(core.memory.copyInts(list, core.memory.pointer(count)));
}

export const chatNew: Call<'chatNew'> = async (core, task, id, ctx, template) => {
  const model = core.registry.get('model', id);
  return core.framed(task, (frame) => {
    const { c } = core;
    const talk: Talk = { template, fed: new Int32Array(0) };
    /* The template's fault is told before there is anything to free. */
    ends(core, frame, c.tg_model_tokenizer(model.at), talk);
    const out = frame.alloc(8);
    core.ok(c.tg_session_new(core.context, model.at, ctx, out));
    const at = core.memory.pointer(out);
    const free = () => c.tg_session_free(at);
    const entry = core.registry.add('session', at, [model], free, model);
    talks.set(entry, talk);
    return { id: entry.id, capacity: c.tg_session_capacity(at) };
  });
};

/* ------------------------------------------------------------------------------------ answers */

/** How many tokens at their beginnings two lists share. */
function shared(a: Int32Array, b: Int32Array): number {
  const most = Math.min(a.length, b.length);
  let n = 0;
  while (n < most && a[n] === b[n]) n++;
  return n;
}

/** Feeds a session; stopped, it has what it had before. */
function feed(core: Core, task: Task, session: Entry, ids: Int32Array): Promise<number> {
  return core.framed(task, (frame) => {
    const at = frame.put(new Uint8Array(ids.slice().buffer));
    const shared = [session.model!.id];
    return core.job(task, frame, shared, 'tg_session_eval', session.at, at, ids.length);
  });
}

/** Holds for all draws, until the next answer says otherwise. */
function processLogits(core: Core, frame: Frame, session: Ptr, options: AnswerOptions): void {
  const { c, memory } = core;
  const { banned = [], bias = [] } = options;
  const texts = frame.alloc(8 * banned.length || 8);
  memory.setPointers(texts, banned.map((text) => frame.string(text)));
  core.ok(c.tg_session_set_banned(session, texts, banned.length));
  const size = memory.size('tg_logit_bias');
  const list = frame.alloc(size * bias.length || size);
  bias.forEach((one, i) => memory.write('tg_logit_bias', list + i * size, one));
  core.ok(c.tg_session_set_bias(session, list, bias.length));
}

/** One answer under way. */
class Writing {
  readonly stats: AnswerStats;
  readonly #talk: Talk;
  readonly #start = performance.now();
  #decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  #turned = performance.now();

  constructor(
    private readonly core: Core,
    private readonly task: Task,
    private readonly session: Entry,
    prompt: Int32Array,
    private readonly stops: Stops,
  ) {
    this.#talk = talks.get(session)!;
    const capacity = core.c.tg_session_capacity(session.at);
    this.stats = {
      promptTokens: prompt.length, reusedTokens: 0, newTokens: 0, promptMs: 0, firstTokenMs: 0,
      tokPerS: 0, context: 0, capacity, end: 'length',
    };
  }

  /** Brings the cache to the ids. */
  async read(ids: Int32Array): Promise<void> {
    const { core, task, session, stats } = this;
    const same = Math.min(shared(this.#talk.fed, ids), ids.length - 1);
    core.ok(core.c.tg_session_rewind(session.at, same));
    this.#talk.fed = ids.slice(0, same);
    await feed(core, task, session, ids.subarray(same));
    this.#talk.fed = ids;
    stats.reusedTokens = same;
    stats.context = ids.length;
    stats.promptMs = performance.now() - this.#start;
  }

  /** Draws until the answer ends, is long enough, or the context is full. */
  async write(frame: Frame, sample: Ptr, stop: Set<number>, tokens: number): Promise<void> {
    const { core, task, session, stats } = this;
    const fed: number[] = [];
    const id = frame.alloc(4);
    const length = frame.alloc(8);
    const before = this.#talk.fed;
    const begun = performance.now();
    try {
      while (stats.newTokens < tokens) {
        core.ok(core.c.tg_session_sample(session.at, sample, stats.newTokens, id));
        const token = core.memory.int32(id);
        if (stop.has(token)) {
          stats.end = 'end';
          return;
        }
        if (this.#emit(token, length)) {
          stats.end = 'end';
          return;
        }
        if (stats.context === stats.capacity) {
          stats.end = 'full';
          return;
        }
        await this.#turn();
        await feed(core, task, session, Int32Array.of(token));
        fed.push(token);
        stats.context++;
      }
    } finally {
      this.#talk.fed = Int32Array.of(...before, ...fed);
      const seconds = (performance.now() - begun) / 1000;
      stats.tokPerS = seconds > 0 ? stats.newTokens / seconds : 0;
    }
  }

  /** True: a text has come that ends the answer. */
  #emit(token: number, length: Ptr): boolean {
    const { core, session, stats } = this;
    const tokenizer = core.c.tg_model_tokenizer(session.model!.at);
    const at = core.c.tg_tokenizer_bytes(tokenizer, token, length);
    const bytes = core.memory.copy(at, core.memory.pointer(length));
    const { out, ended } = this.stops.take(this.#decoder.decode(bytes, { stream: true }));
    const ms = performance.now() - this.#start;
    if (stats.newTokens++ === 0) stats.firstTokenMs = ms;
    const piece = { id: token, text: out, ms, context: stats.context };
    this.task.emit(piece satisfies AnswerPiece);
    return ended;
  }

  /** What never became a character goes out as U+FFFD, and what was held back as it is. */
  flush(): void {
    const text = this.stops.rest(this.#decoder.decode());
    if (text === '') return;
    const ms = performance.now() - this.#start;
    this.task.emit({ id: -1, text, ms, context: this.stats.context } satisfies AnswerPiece);
  }

  /** A stop is seen between tokens, at least so often as between the slices of a long one. */
  async #turn(): Promise<void> {
    const { task, session } = this;
    if (session.freed) throw new Cancelled('the session was freed');
    if (performance.now() - this.#turned < SLICE_MS) return;
    await task.turn();
    this.#turned = performance.now();
  }
}

export const answer: Call<'answer'> = async (core, task, id, turns, options) => {
  const session = core.registry.get('session', id);
  const talk = talks.get(session);
  if (!talk) throw new TinygptError('ARG', 'session: want one of ChatModel.chat(), have another');
  const {
    tokens = Infinity, noThinking = false, banned, bias, stops = [], ...sampling
  } = options as AnswerOptions;
  const { c, memory } = core;
  return using([session], () =>
    core.framed(task, async (frame) => {
      await task.hold(id);
      const sample = frame.alloc(memory.size('tg_sample_options'));
      c.tg_sample_options_default(sample);
      memory.write('tg_sample_options', sample, sampling);
      processLogits(core, frame, session.at, { banned, bias });
      const ids = encode(core, frame, session, talk, turns, noThinking);
      const stop = ends(core, frame, c.tg_model_tokenizer(session.model!.at), talk);
      const writing = new Writing(core, task, session, ids, new Stops(stops));
      try {
        await writing.read(ids);
        await writing.write(frame, sample, stop, tokens);
      } catch (error) {
        if (!(error instanceof Cancelled)) throw error;
        writing.stats.end = 'stopped';
      }
      writing.flush();
      return writing.stats;
    }));
};
