// SPDX-License-Identifier: Apache-2.0
/**
 * calls_model.ts - making, opening, describing and saving models, and looking into them.
 */
import { numbers, type Ptr, utf8 } from './abi.js';
import { tg_ability, tg_edit_kind, tg_encode_flag, tg_file_kind, tg_model_part } from './abi.gen.js';
import {
  type Call, config, Gathered, listening, offering, telling, using,
} from './calling.js';
import { type Core, type Frame, SLICE_MS } from './core.js';
import { choose, TinygptError } from './errors.js';
import type { ModelMade } from './protocol.js';
import type { Entry } from './registry.js';
import type { Task } from './tasks.js';
import type { Edit, FileKind } from './types.js';

export const FILE_KINDS: Record<Exclude<FileKind, 'run'>, number> = {
  v3: tg_file_kind.TG_FILE_V3,
  'v2-f32': tg_file_kind.TG_FILE_V2_F32,
  'v2-f16': tg_file_kind.TG_FILE_V2_F16,
  'v2-int4': tg_file_kind.TG_FILE_V2_INT4,
  'v1-f32': tg_file_kind.TG_FILE_V1_F32,
  safetensors: tg_file_kind.TG_FILE_SAFETENSORS,
  gguf: tg_file_kind.TG_FILE_GGUF,
};

/** The bytes of every token, so that decoding needs no call. */
export function pieces(core: Core, frame: Frame, model: Ptr): ModelMade['pieces'] {
  const length = frame.alloc(8);
  const all: Uint8Array[] = [];
  const tokenizer = core.c.tg_model_tokenizer(model);
  const count = core.c.tg_tokenizer_count(tokenizer);
  for (let id = 0; id < count; id++) {
    const at = core.c.tg_tokenizer_bytes(tokenizer, id, length);
    all.push(core.memory.copy(at, core.memory.pointer(length)));
  }
  const ends = new Int32Array(all.length);
  const bytes = new Uint8Array(all.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  all.forEach((piece, id) => {
    bytes.set(piece, at);
    at += piece.length;
    ends[id] = at;
  });
  return { bytes, ends };
}

function addModel(core: Core, frame: Frame, at: Ptr): ModelMade {
  const entry = core.registry.add('model', at, [], () => {
    dropProbes(core, entry);
    core.c.tg_model_free(at);
  });
  return { id: entry.id, pieces: pieces(core, frame, at) };
}

/** A vocabulary is a file that is opened for as long as the model is made of it. */
export const modelNew: Call<'modelNew'> = (core, task, value, seed, vocabulary) =>
  core.framed(task, async (frame) => {
    const { c, context, memory } = core;
    const out = frame.alloc(8);
    const at = config(core, frame, value);
    if (vocabulary === undefined) {
      await core.job(task, frame, [], 'tg_model_new', context, at, seed, out);
    } else {
      await offering(core, vocabulary, 'tokenizer.json', async (name) => {
        core.ok(c.tg_tokenizer_open(context, frame.string(name), out));
        const tokenizer = memory.pointer(out);
        try {
          await core.job(
            task, frame, [], 'tg_model_new_vocabulary', context, at, tokenizer, seed, out,
          );
        } finally {
          if (task.alive) c.tg_tokenizer_free(tokenizer);
        }
      });
    }
    return addModel(core, frame, memory.pointer(out));
  });

export const vocabularyTrain: Call<'vocabularyTrain'> = async (core, task, id, kind, tokens) => {
  const text = core.registry.get('text', id);
  const gathered = new Gathered(core);
  return using([text], () =>
    core.framed(task, (frame) => listening(core, gathered.take, async (user) => {
      await task.hold(id);
      const write = core.c.tg_wasm_on_text();
      const of = frame.string(kind);
      await core.job(task, frame, [], 'tg_tokenizer_train', text.at, of, tokens, write, user);
      return gathered.bytes();
    })));
};

/** A third party's whose weights are no floats, or that cannot be trained, keeps them as they are,
 *  for writing alone. The head of the file tells, before there is a weight to read. */
export const modelOpen: Call<'modelOpen'> = (core, task, file) =>
  core.framed(task, (frame) =>
    offering(core, file, 'model', async (name) => {
      task.check();
      const out = frame.alloc(8);
      const path = frame.string(name);
      const open = (how: 'tg_model_open_floats' | 'tg_model_open') =>
        core.job(task, frame, [], how, core.context, path, out);
      await open('tg_model_open_floats').catch((error: unknown) => {
        if (!(error instanceof TinygptError) || error.code !== 'UNSUPPORTED') throw error;
        return open('tg_model_open');
      });
      return addModel(core, frame, core.memory.pointer(out));
    }, telling(task)));

export const modelInfo: Call<'modelInfo'> = async (core, task, id) => {
  const model = core.registry.get('model', id);
  return core.framed(task, (frame) => {
    const at = frame.alloc(core.memory.size('tg_model_info'));
    core.ok(core.c.tg_model_get_info(model.at, at));
    const { usedPrev: _, ...info } = numbers(core.memory.read('tg_model_info', at));
    return { ...info, trains: core.c.tg_model_can(model.at, tg_ability.TG_CAN_TRAIN) };
  });
};

/** Ids of a text in the module's memory. */
function tokenize(core: Core, frame: Frame, model: Ptr, text: string): { at: Ptr; n: number } {
  const bytes = utf8(text);
  const from = frame.put(bytes);
  const count = frame.alloc(8);
  const encode = (at: Ptr, room: number): void => {
    core.ok(core.c.tg_tokenizer_encode(
      core.context, core.c.tg_model_tokenizer(model), from, bytes.length,
      tg_encode_flag.TG_ENCODE_ENDS, at, room, count,
    ));
  };
  encode(0, 0);
  const n = core.memory.pointer(count);
  const at = frame.alloc(n * 4);
  encode(at, n);
  return { at, n };
}

export const modelTokenize: Call<'modelTokenize'> = async (core, task, id, text) => {
  const model = core.registry.get('model', id);
  return core.framed(task, (frame) => {
    const { at, n } = tokenize(core, frame, model.at, text);
    return core.memory.copyInts(at, n);
  });
};

export const SAVED = 'saved';

/** The bytes of a save as one array. A large one is joined in slices, like all work. */
export async function takeSaved(core: Core, task: Task): Promise<Uint8Array<ArrayBuffer>> {
  const parts = core.host.takeSaved(SAVED);
  const whole = newBytes(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  let start = performance.now();
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
    if (performance.now() - start < SLICE_MS) continue;
    await task.turn();
    start = performance.now();
  }
  return whole;
}

function newBytes(bytes: number): Uint8Array<ArrayBuffer> {
  try {
    return new Uint8Array(bytes);
  } catch {
    throw new TinygptError('MEMORY', `save: want ${bytes} bytes, have no memory`);
  }
}

export async function saveModel(
  core: Core, task: Task, model: Entry, kind: FileKind,
): Promise<Uint8Array> {
  const value = choose(FILE_KINDS, kind, 'kind of file');
  const layout = kind === 'gguf' ? FILE_KINDS.v3 : value;
  const saved = await core.framed(task, async (frame) => {
    await core.job(task, frame, [], 'tg_model_save', model.at, frame.string(SAVED), layout);
    return takeSaved(core, task);
  });
  return layout === value ? saved : converted(core, task, saved, value);
}

/** A saved file in a layout that is made of files alone. */
export function converted(
  core: Core, task: Task, file: Uint8Array, kind: number,
): Promise<Uint8Array> {
  return core.framed(task, (frame) =>
    offering(core, file, 'run', async (name) => {
      const from = frame.string(name);
      const to = frame.string(SAVED);
      await core.job(task, frame, [], 'tg_model_convert', core.context, from, to, kind);
      return takeSaved(core, task);
    }));
}

export const modelSave: Call<'modelSave'> = async (core, task, id, kind) => {
  const model = core.registry.get('model', id);
  return using([model], async () => {
    await task.hold(id);
    return saveModel(core, task, model, kind);
  });
};

/* ------------------------------------------------------------------------------------ probing */

const PARTS: Record<Edit['part'], number> = {
  head: tg_model_part.TG_PART_HEAD,
  attention: tg_model_part.TG_PART_ATTENTION,
  mlp: tg_model_part.TG_PART_MLP,
  block: tg_model_part.TG_PART_BLOCK,
};

const EDITS: Record<Edit['kind'], number> = {
  zero: tg_edit_kind.TG_EDIT_ZERO,
  donor: tg_edit_kind.TG_EDIT_DONOR,
};

/** The probes of the last look into a model: a plan takes long to make, and pages look often. */
const probes = new WeakMap<Entry, { n: number; main: Ptr; donor: Ptr }>();

export function dropProbes(core: Core, model: Entry): void {
  const kept = probes.get(model);
  probes.delete(model);
  if (!kept) return;
  core.c.tg_probe_free(kept.main);
  core.c.tg_probe_free(kept.donor);
}

/** A probe for n tokens of each kind that is needed, made now or kept from the last time. */
function takeProbes(
  core: Core, frame: Frame, model: Entry, n: number, withDonor: boolean,
): { main: Ptr; donor: Ptr } {
  if (probes.get(model)?.n !== n) dropProbes(core, model);
  const kept = probes.get(model) ?? { n, main: 0, donor: 0 };
  probes.set(model, kept);
  const make = () => {
    const out = frame.alloc(8);
    core.ok(core.c.tg_probe_new(core.context, model.at, n, out));
    return core.memory.pointer(out);
  };
  kept.main ||= make();
  if (withDonor) kept.donor ||= make();
  return kept;
}

function writeEdits(core: Core, frame: Frame, edits: Edit[]): Ptr {
  if (edits.length === 0) return 0;
  const size = core.memory.size('tg_edit');
  const at = frame.alloc(size * edits.length);
  edits.forEach((edit, i) => {
    core.memory.write('tg_edit', at + i * size, {
      layer: edit.layer,
      head: edit.head ?? 0,
      position: edit.position ?? -1,
      part: choose(PARTS, edit.part, 'part'),
      kind: choose(EDITS, edit.kind, 'kind of edit'),
    });
  });
  return at;
}

export const modelProbe: Call<'modelProbe'> = async (core, task, id, prompt, edits, donor) => {
  const model = core.registry.get('model', id);
  const { c, memory } = core;
  return using([model], () =>
    core.framed(task, async (frame) => {
      const ids = (text: string | Int32Array) =>
        typeof text === 'string'
          ? tokenize(core, frame, model.at, text)
          : { at: frame.put(new Uint8Array(text.slice().buffer)), n: text.length };
      const tokens = ids(prompt);
      const given = donor === undefined ? undefined : ids(donor);
      if (given && given.n !== tokens.n) {
        throw new TinygptError(
          'SHAPE', `donor: want ${tokens.n} tokens, as the prompt has, have ${given.n}`,
        );
      }
      await task.hold(id);
      const probe = takeProbes(core, frame, model, tokens.n, given !== undefined);
      const at = writeEdits(core, frame, edits);
      const from = given ? probe.donor : 0;
      const run = (which: Ptr, ids: Ptr, ...rest: [Ptr, number, Ptr]) =>
        core.job(task, frame, [], 'tg_probe_run', which, ids, ...rest);
      if (given) await run(probe.donor, given.at, 0, 0, 0);
      await run(probe.main, tokens.at, at, edits.length, from);

      const info = frame.alloc(memory.size('tg_model_info'));
      core.ok(c.tg_model_get_info(model.at, info));
      const { layers, heads, vocab } = memory.read('tg_model_info', info).config;
      const { n } = tokens;
      const attention = new Float32Array(layers * heads * n * n);
      const lens = new Float32Array((layers + 1) * n * vocab);
      for (let l = 0; l < layers; l++) {
        for (let h = 0; h < heads; h++) {
          const one = c.tg_probe_attention(probe.main, l, h);
          if (one) attention.set(memory.copyFloats(one, n * n), (l * heads + h) * n * n);
        }
      }
      for (let l = 0; l <= layers; l++) {
        lens.set(memory.copyFloats(c.tg_probe_lens(probe.main, l), n * vocab), l * n * vocab);
      }
      return { tokens: memory.copyInts(tokens.at, n), layers, heads, vocab, attention, lens };
    }));
};
