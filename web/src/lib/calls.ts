/**
 * calls.ts - the calls of protocol.ts, one function each: arguments to C, a job or a call, results
 * out of the module's memory.
 */
import { numbers, PENDING, type Ptr, STOPPED, type Struct, utf8 } from './abi.js';
import { tg_edit_kind, tg_file_kind, tg_model_part } from './abi.gen.js';
import { type Core, type Frame, SLICE_MS } from './core.js';
import { TinygptError } from './errors.js';
import { openFile } from './host.js';
import type { Method, Methods, ModelMade } from './protocol.js';
import type { Entry } from './registry.js';
import { Cancelled, type Task } from './tasks.js';
import type {
  Check, Edit, FileKind, FileSource, GptConfig, LintFinding, Piece, StepReport, TextSource,
} from './types.js';

type Call<M extends Method> = (
  core: Core, task: Task, ...args: Parameters<Methods[M]>
) => Promise<ReturnType<Methods[M]>>;

const FILE_KINDS: Record<Exclude<FileKind, 'run'>, number> = {
  v3: tg_file_kind.TG_FILE_V3,
  'v2-f32': tg_file_kind.TG_FILE_V2_F32,
  'v2-f16': tg_file_kind.TG_FILE_V2_F16,
  'v2-int4': tg_file_kind.TG_FILE_V2_INT4,
  'v1-f32': tg_file_kind.TG_FILE_V1_F32,
  safetensors: tg_file_kind.TG_FILE_SAFETENSORS,
};

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

/** The value behind a name that a caller may have misspelt. */
function choose(table: Record<string, number>, name: string, what: string): number {
  const value = table[name];
  if (value !== undefined) return value;
  throw new TinygptError('ARG', `${what}: want one of ${Object.keys(table).join(', ')}, have ${name}`);
}

/** Works on objects of the registry: they stay while the body runs. */
async function using<T>(entries: Entry[], body: () => Promise<T>): Promise<T> {
  entries.forEach((entry) => entry.use());
  try {
    return await body();
  } finally {
    entries.forEach((entry) => entry.unuse());
  }
}

/** Listens to a callback of C for as long as the body runs. */
async function listening<T>(
  core: Core, listener: (...args: number[]) => number | void, body: (user: number) => Promise<T>,
): Promise<T> {
  const { host } = core;
  const user = host.listen(listener);
  try {
    return await body(user);
  } finally {
    host.unlisten(user);
  }
}

/** Gives C a file under a name for as long as the body runs. What C keeps open stays readable. */
async function offering<T>(
  core: Core, source: FileSource | TextSource, what: string, body: (name: string) => Promise<T>,
): Promise<T> {
  const { host } = core;
  const named = typeof File === 'function' && source instanceof File && source.name;
  const content = typeof source === 'string' ? utf8(source) : source;
  const name = host.offer(await openFile(content), named || what);
  try {
    return await body(name);
  } finally {
    host.withdraw(name);
  }
}

/** Gathers the text that C writes. */
class Gathered {
  readonly #parts: Uint8Array[] = [];

  constructor(private readonly core: Core) {}

  readonly take = (bytes: number, n: number): number => {
    this.#parts.push(this.core.memory.copy(bytes, n));
    return 0;
  };

  bytes(): Uint8Array<ArrayBuffer> {
    const whole = new Uint8Array(this.#parts.reduce((sum, part) => sum + part.length, 0));
    let at = 0;
    for (const part of this.#parts) {
      whole.set(part, at);
      at += part.length;
    }
    return whole;
  }

  text(): string {
    return new TextDecoder().decode(this.bytes());
  }
}

function config(core: Core, frame: Frame, value: GptConfig): Ptr {
  const at = frame.alloc(core.memory.size('tg_gpt_config'));
  core.memory.write('tg_gpt_config', at, value);
  return at;
}

/* ------------------------------------------------------------------------------------------ text */

const textNew: Call<'textNew'> = (core, task, source) =>
  core.framed(task, (frame) =>
    offering(core, source, 'text', async (name) => {
      task.check();
      const out = frame.alloc(8);
      core.ok(core.c.tg_text_open(core.context, frame.string(name), out));
      const at = core.memory.pointer(out);
      const entry = core.registry.add('text', at, [], () => core.c.tg_text_free(at));
      return { id: entry.id, bytes: Number(core.c.tg_text_bytes(at)) };
    }));

const textSha256: Call<'textSha256'> = async (core, task, id) => {
  const text = core.registry.get('text', id);
  return using([text], () =>
    core.framed(task, async (frame) => {
      await task.hold(id);
      const digest = frame.alloc(32);
      await core.job(task, frame, [], 'tg_text_sha256', text.at, digest);
      const bytes = core.memory.copy(digest, 32);
      return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
    }));
};

const lint: Call<'lint'> = async (core, task, id, ctx, valFraction) => {
  const text = core.registry.get('text', id);
  const levels = ['error', 'warning', 'remark'] as const;
  const findings: LintFinding[] = [];
  const take = (at: number) => {
    const found = core.memory.read('tg_lint', at);
    findings.push({ level: levels[found.level] ?? 'remark', code: found.code, text: found.text });
  };
  return using([text], () =>
    core.framed(task, (frame) =>
      listening(core, take, async (user) => {
        await task.hold(id);
        const report = core.c.tg_wasm_on_lint();
        await core.job(task, frame, [], 'tg_text_lint', text.at, ctx, valFraction, report, user);
        return findings;
      })));
};

const stories: Call<'stories'> = async (core, _task, seed, bytes) => {
  const gathered = new Gathered(core);
  return listening(core, gathered.take, async (user) => {
    core.ok(core.c.tg_stories(seed, bytes, core.c.tg_wasm_on_text(), user));
    return gathered.bytes();
  });
};

/* ----------------------------------------------------------------------------------------- model */

/** The bytes of every token, so that decoding needs no call. */
function pieces(core: Core, frame: Frame, model: Ptr): ModelMade['pieces'] {
  const length = frame.alloc(8);
  const all: Uint8Array[] = [];
  for (let id = 0; ; id++) {
    const at = core.c.tg_model_piece(model, id, length);
    if (at === 0) break;
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

const modelNew: Call<'modelNew'> = (core, task, value, seed) =>
  core.framed(task, async (frame) => {
    const out = frame.alloc(8);
    const at = config(core, frame, value);
    await core.job(task, frame, [], 'tg_model_new', core.context, at, seed, out);
    return addModel(core, frame, core.memory.pointer(out));
  });

const modelOpen: Call<'modelOpen'> = (core, task, file) =>
  core.framed(task, (frame) =>
    offering(core, file, 'model', async (name) => {
      task.check();
      const out = frame.alloc(8);
      await core.job(task, frame, [], 'tg_model_open', core.context, frame.string(name), out);
      return addModel(core, frame, core.memory.pointer(out));
    }));

const modelInfo: Call<'modelInfo'> = async (core, task, id) => {
  const model = core.registry.get('model', id);
  return core.framed(task, (frame) => {
    const at = frame.alloc(core.memory.size('tg_model_info'));
    core.ok(core.c.tg_model_get_info(model.at, at));
    const { usedPrev: _, ...info } = numbers(core.memory.read('tg_model_info', at));
    return info;
  });
};

/** Ids of a text in the module's memory. */
function tokenize(core: Core, frame: Frame, model: Ptr, text: string): { at: Ptr; n: number } {
  const bytes = utf8(text);
  const from = frame.put(bytes);
  const count = frame.alloc(8);
  core.ok(core.c.tg_model_tokenize(model, from, bytes.length, 0, 0, count));
  const n = core.memory.pointer(count);
  const at = frame.alloc(n * 4);
  core.ok(core.c.tg_model_tokenize(model, from, bytes.length, at, n, count));
  return { at, n };
}

const modelTokenize: Call<'modelTokenize'> = async (core, task, id, text) => {
  const model = core.registry.get('model', id);
  return core.framed(task, (frame) => {
    const { at, n } = tokenize(core, frame, model.at, text);
    return core.memory.copyInts(at, n);
  });
};

const SAVED = 'saved';

async function saveModel(core: Core, task: Task, model: Entry, kind: FileKind): Promise<Uint8Array> {
  const value = choose(FILE_KINDS, kind, 'kind of file');
  return core.framed(task, async (frame) => {
    const path = frame.string(SAVED);
    await core.job(task, frame, [], 'tg_model_save', model.at, path, value);
    return core.host.takeSaved(SAVED);
  });
}

const modelSave: Call<'modelSave'> = async (core, task, id, kind) => {
  const model = core.registry.get('model', id);
  return using([model], async () => {
    await task.hold(id);
    return saveModel(core, task, model, kind);
  });
};

/* ---------------------------------------------------------------------------------------- probing */

/** The probes of the last look into a model: a plan takes long to make, and pages look often. */
const probes = new WeakMap<Entry, { n: number; main: Ptr; donor: Ptr }>();

function dropProbes(core: Core, model: Entry): void {
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

const modelProbe: Call<'modelProbe'> = async (core, task, id, prompt, edits, donor) => {
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
      if (given) {
        core.ok(c.tg_probe_run(probe.donor, given.at, 0, 0, 0));
        await task.turn();
      }
      const at = writeEdits(core, frame, edits);
      const from = given ? probe.donor : 0;
      core.ok(c.tg_probe_run(probe.main, tokens.at, at, edits.length, from));

      const info = frame.alloc(memory.size('tg_model_info'));
      core.ok(c.tg_model_get_info(model.at, info));
      const { layers, heads, vocab } = memory.read('tg_model_info', info).config;
      const { n } = tokens;
      const attention = new Float32Array(layers * heads * n * n);
      const lens = new Float32Array((layers + 1) * n * vocab);
      for (let l = 0; l < layers; l++) {
        for (let h = 0; h < heads; h++) {
          const one = c.tg_probe_attention(probe.main, l, h);
          attention.set(memory.copyFloats(one, n * n), (l * heads + h) * n * n);
        }
      }
      for (let l = 0; l <= layers; l++) {
        lens.set(memory.copyFloats(c.tg_probe_lens(probe.main, l), n * vocab), l * n * vocab);
      }
      return { tokens: memory.copyInts(tokens.at, n), layers, heads, vocab, attention, lens };
    }));
};

/* ----------------------------------------------------------------------------------------- writing */

const sessionNew: Call<'sessionNew'> = async (core, task, id, ctx) => {
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
  const length = frame.alloc(8);
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  const start = performance.now();
  let done = 0;
  memory.bytes(ids, n * 4).fill(0xff);
  return () => {
    for (; done < n; done++) {
      const id = memory.int32(ids + done * 4);
      if (id < 0) return;
      const piece = memory.copy(c.tg_model_piece(model, id, length), memory.pointer(length));
      const text = decoder.decode(piece, { stream: done + 1 < n });
      task.emit({ id, text, ms: performance.now() - start } satisfies Piece);
    }
  };
}

const generate: Call<'generate'> = async (core, task, id, prompt, tokens, options) => {
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
      const sample = frame.alloc(memory.size('tg_sample_options'));
      c.tg_sample_options_default(sample);
      memory.write('tg_sample_options', sample, options);
      const stats = frame.alloc(memory.size('tg_generate_stats'));
      const ids = frame.alloc(Math.max(tokens, 1) * 4);
      const emit = follow(core, task, model.at, frame, ids, tokens);
      /* Asked after every token; it also looks whether the session was freed meanwhile. */
      const cancel = () => {
        emit();
        return task.cancelled || session.freed ? 1 : 0;
      };
      await listening(core, cancel, async (user) => {
        try {
          await core.job(
            task, frame, [model.id], 'tg_session_generate', session.at, frame.put(bytes),
            bytes.length, sample, tokens, 0, c.tg_wasm_on_cancel(), user, ids, stats,
          );
        } catch (error) {
          if (!(error instanceof Cancelled)) throw error;
        }
      });
      emit();
      return memory.read('tg_generate_stats', stats);
    }));
};

/* ---------------------------------------------------------------------------------------- training */

function addTrainer(core: Core, at: Ptr, needs: Entry[], model?: Entry): Entry {
  return core.registry.add('trainer', at, needs, () => core.c.tg_trainer_free(at), model);
}

const trainerNew: Call<'trainerNew'> = async (core, task, modelId, textId, options) => {
  const model = core.registry.get('model', modelId);
  const text = core.registry.get('text', textId);
  return using([model, text], () =>
    core.framed(task, async (frame) => {
      await task.hold(modelId, textId);
      const out = frame.alloc(8);
      const given = core.writeTrainOptions(frame, options);
      core.ok(core.c.tg_trainer_new(core.context, model.at, text.at, given, out));
      return { id: addTrainer(core, core.memory.pointer(out), [model, text], model).id };
    }));
};

const trainerOpen: Call<'trainerOpen'> = async (core, task, file, textId, steps) => {
  const text = core.registry.get('text', textId);
  return using([text], () =>
    core.framed(task, (frame) =>
      offering(core, file, 'run', async (name) => {
        await task.hold(textId);
        const out = frame.alloc(8);
        const path = frame.string(name);
        await core.job(
          task, frame, [], 'tg_trainer_open', core.context, path, text.at, steps, out,
        );
        const trainer = addTrainer(core, core.memory.pointer(out), [text]);
        const at = core.c.tg_trainer_model(trainer.at);
        const model = core.registry.add('model', at, [trainer], () => dropProbes(core, model));
        trainer.model = model;
        trainer.owned = model;
        return { id: trainer.id, model: { id: model.id, pieces: pieces(core, frame, at) } };
      })));
};

function report(raw: Struct<'tg_step_report'>): StepReport {
  const lossHash = raw.lossHash.toString(16).padStart(16, '0');
  return { ...numbers(raw), lossHash };
}

const steps: Call<'steps'> = async (core, task, id, n, ahead) => {
  const trainer = core.registry.get('trainer', id);
  const held = [id, trainer.model!.id];
  const { c, memory } = core;
  return using([trainer], () =>
    core.framed(task, async (frame) => {
      const out = frame.alloc(memory.size('tg_step_report'));
      try {
        for (let done = 0; done < n;) {
          await task.room(ahead);
          trainer.check();
          await task.hold(...held);
          const status = core.ok(c.tg_trainer_poll(trainer.at, SLICE_MS, out));
          if (c.tg_trainer_steady(trainer.at)) task.release(...held);
          if (status === STOPPED) return;
          if (status !== PENDING) {
            task.emit(report(memory.read('tg_step_report', out)));
            done++;
          }
          await task.turn();
        }
      } catch (error) {
        if (!(error instanceof Cancelled)) throw error;
      } finally {
        if (task.alive && !c.tg_trainer_steady(trainer.at)) finishUpdate(core, trainer);
      }
    }));
};

/** The weights of a stopped run must be those of one moment before anybody reads them. The caller
 *  that stopped it does not wait for that; whoever reads them does. */
function finishUpdate(core: Core, trainer: Entry): void {
  core.background((task) =>
    using([trainer], () =>
      core.framed(task, async (frame) => {
        const out = frame.alloc(core.memory.size('tg_step_report'));
        await task.hold(trainer.id, trainer.model!.id);
        while (!core.c.tg_trainer_steady(trainer.at)) {
          core.ok(core.c.tg_trainer_poll(trainer.at, SLICE_MS, out));
          await task.turn();
        }
      })));
}

/** A call on a trainer that has it and its model for itself from beginning to end. */
async function alone<T>(
  core: Core, task: Task, id: number, body: (trainer: Entry, frame: Frame) => Promise<T>,
): Promise<T> {
  const trainer = core.registry.get('trainer', id);
  return using([trainer], () =>
    core.framed(task, async (frame) => {
      await task.hold(id, trainer.model!.id);
      return body(trainer, frame);
    }));
}

const trainerDone: Call<'trainerDone'> = async (core, _task, id) =>
  Number(core.c.tg_trainer_steps_done(core.registry.get('trainer', id).at));

const trainerOptions: Call<'trainerOptions'> = async (core, task, id) => {
  const trainer = core.registry.get('trainer', id);
  return core.framed(task, (frame) => {
    const at = frame.alloc(core.memory.size('tg_train_options'));
    core.c.tg_trainer_options(trainer.at, at);
    return core.readTrainOptions(at);
  });
};

const trainerSetSteps: Call<'trainerSetSteps'> = (core, task, id, total) =>
  alone(core, task, id, async (trainer) => {
    core.ok(core.c.tg_trainer_set_steps(trainer.at, total));
  });

const trainerHistory: Call<'trainerHistory'> = async (core, task, id) => {
  const trainer = core.registry.get('trainer', id);
  return core.framed(task, (frame) => {
    const count = frame.alloc(8);
    const at = core.c.tg_trainer_history(trainer.at, count);
    const size = core.memory.size('tg_history_point');
    return Array.from({ length: core.memory.pointer(count) }, (_, i) =>
      numbers(core.memory.read('tg_history_point', at + i * size)));
  });
};

const trainerEvaluate: Call<'trainerEvaluate'> = (core, task, id) =>
  alone(core, task, id, async (trainer, frame) => {
    const loss = frame.alloc(8);
    await core.job(task, frame, [], 'tg_trainer_eval', trainer.at, loss);
    return core.memory.double(loss);
  });

/** The run as a file of the core's own layout. */
async function saveRun(core: Core, task: Task, frame: Frame, trainer: Entry): Promise<Uint8Array> {
  await core.job(task, frame, [], 'tg_trainer_save', trainer.at, frame.string(SAVED));
  return core.host.takeSaved(SAVED);
}

const trainerSave: Call<'trainerSave'> = (core, task, id, kind) =>
  alone(core, task, id, async (trainer, frame) => {
    if (kind === 'run') return saveRun(core, task, frame, trainer);
    if (kind !== 'v2-f32') return saveModel(core, task, trainer.model!, kind);
    /* The one other layout with room for moments: the run is converted, not the model saved. */
    const run = await saveRun(core, task, frame, trainer);
    return offering(core, run, 'run', async (name) => {
      const from = frame.string(name);
      const to = frame.string(SAVED);
      core.ok(core.c.tg_file_convert(core.context, from, to, FILE_KINDS[kind]));
      return core.host.takeSaved(SAVED);
    });
  });

const trainerSaveBest: Call<'trainerSaveBest'> = (core, task, id) =>
  alone(core, task, id, async (trainer, frame) => {
    await core.job(task, frame, [], 'tg_trainer_save_best', trainer.at, frame.string(SAVED));
    return core.host.takeSaved(SAVED);
  });

/* -------------------------------------------------------------------------------- the engine itself */

const forecast: Call<'forecast'> = async (core, task, value, options, textId) => {
  const text = textId === 0 ? undefined : core.registry.get('text', textId);
  return core.framed(task, (frame) => {
    const out = frame.alloc(core.memory.size('tg_forecast'));
    const at = config(core, frame, value);
    const given = core.writeTrainOptions(frame, options);
    core.ok(core.c.tg_forecast_run(core.context, at, text?.at ?? 0, given, out));
    const raw = numbers(core.memory.read('tg_forecast', out));
    return { ...raw, advice: raw.advice.split('\n').filter((line) => line !== '') };
  });
};

const measurePeak: Call<'measurePeak'> = (core, task) =>
  core.framed(task, async (frame) => {
    const out = frame.alloc(8);
    await core.job(task, frame, [], 'tg_measure_peak', core.context, out);
    return core.memory.double(out);
  });

const measureRead: Call<'measureRead'> = (core, task, bytes) =>
  core.framed(task, (frame) => {
    const out = frame.alloc(8);
    core.ok(core.c.tg_measure_read(core.context, bytes, out));
    return core.memory.double(out);
  });

const checkKernels: Call<'checkKernels'> = (core, task, filter) => {
  let passed = 0;
  const take = (at: number) => {
    const check: Check = core.memory.read('tg_check', at);
    if (check.passed) passed++;
    task.emit(check);
  };
  return core.framed(task, (frame) =>
    listening(core, take, async (user) => {
      const failed = frame.alloc(8);
      const part = filter === '' ? 0 : frame.string(filter);
      const report = core.c.tg_wasm_on_check();
      await core.job(
        task, frame, [], 'tg_check_kernels', core.context, part, report, user, failed,
      );
      return { passed, failed: core.memory.pointer(failed) };
    }));
};

const checkFile: Call<'checkFile'> = (core, task, file) => {
  const gathered = new Gathered(core);
  return core.framed(task, (frame) =>
    offering(core, file, 'file', (name) =>
      listening(core, gathered.take, async (user) => {
        const path = frame.string(name);
        await core.job(task, frame, [], 'tg_file_check', core.context, path);
        const onText = core.c.tg_wasm_on_text();
        core.ok(core.c.tg_file_info(core.context, path, false, onText, user));
        return gathered.text();
      })));
};

/** All calls but those that begin and end the engine, which the worker answers itself. */
export const CALLS: { [M in Exclude<Method, 'open' | 'close'>]: Call<M> } = {
  lint, stories, forecast, measurePeak, measureRead, checkKernels, checkFile,
  memoryBytes: async (core) => core.memoryBytes(),
  textNew, textSha256,
  modelNew, modelOpen, modelInfo, modelTokenize, modelSave, modelProbe,
  sessionNew, generate,
  trainerNew, trainerOpen, steps, trainerDone, trainerOptions, trainerSetSteps, trainerHistory,
  trainerEvaluate, trainerSave, trainerSaveBest,
  free: async (core, _task, id) => core.registry.free(id),
};
