// SPDX-License-Identifier: Apache-2.0
/**
 * core.ts - the engine inside of the worker: one instance of the module, its context, its tasks.
 *
 * Every call is a task. Long ones are jobs of the core that are polled for some milliseconds at a
 * time, so that a stop or another call is seen soon. What a task holds while it works:
 *
 *     training        trainer + model    given back between slices, when the weights are steady
 *     saving, eval    trainer + model    from beginning to end: one moment of the run
 *     generating      session            from beginning to end; the model for each slice
 *     looking inside  model              from beginning to end
 *
 * When the module traps, every task and object is lost at that moment, and a new instance is made
 * from the compiled module. Calls that come meanwhile wait for it.
 */
import {
  errorCode, type Exports, type Memory, numbers, PENDING, type Ptr, type Trap, utf8,
} from './abi.js';
import { tg_optimizer, tg_schedule, VERSION } from './abi.gen.js';
import { choose, TinygptError } from './errors.js';
import type { EngineEvent, Handle } from './protocol.js';
import { threads } from './platform.js';
import { Registry } from './registry.js';
import { Task, turn } from './tasks.js';
import type {
  EngineInfo, EngineOptions, LeverInfo, Optimizer, Preset, Schedule, TrainOptions,
} from './types.js';
import {
  fetchCases, fetchStories, type Instance, instantiate, isolated, loadBest, type Loaded,
} from './wasm.js';

/** Structs that begin with their size, which `${name}_init` sets with the defaults. */
export type OptionStruct =
  | 'tg_context_options' | 'tg_train_options' | 'tg_sample_options' | 'tg_generation'
  | 'tg_embed_options';

/** How long a slice lasts. A stop is seen after one; a turn costs some microseconds. */
export const SLICE_MS = 20;

/** A GPU without work gives its memory back after so long. */
const REST_MS = 30_000;

const SCHEDULES: Record<Schedule, number> = {
  constant: tg_schedule.TG_CONSTANT,
  cosine: tg_schedule.TG_COSINE,
  wsd: tg_schedule.TG_WSD,
};
const OPTIMIZERS: Record<Optimizer, number> = {
  adamw: tg_optimizer.TG_ADAMW,
  muon: tg_optimizer.TG_MUON,
};

function nameOf<N extends string>(names: Record<N, number>, value: number, otherwise: N): N {
  return (Object.keys(names) as N[]).find((name) => names[name] === value) ?? otherwise;
}

/** Names of jobs: what the core offers in slices. */
export type JobName = {
  [K in keyof Exports]: K extends `${infer Name}_job` ? Name : never;
}[keyof Exports];
type JobArgs<J extends JobName> =
  Parameters<Exports[`${J}_job`]> extends [...infer A, Ptr] ? A : never;

/** Memory of the module that belongs to one call. */
export class Frame {
  readonly #pieces: [Ptr, number][] = [];

  constructor(private readonly c: Exports, private readonly memory: Memory) {}

  alloc(bytes: number): Ptr {
    const at = this.c.tg_wasm_alloc(bytes);
    if (at === 0) throw new TinygptError('MEMORY', `want ${bytes} bytes, have no memory`);
    this.#pieces.push([at, bytes]);
    this.memory.bytes(at, bytes).fill(0);
    return at;
  }

  put(bytes: Uint8Array): Ptr {
    const at = this.alloc(bytes.length);
    this.memory.bytes(at, bytes.length).set(bytes);
    return at;
  }

  /** Text with a zero behind it. */
  string(text: string): Ptr {
    return this.put(utf8(`${text}\0`));
  }

  free(): void {
    for (const [at, bytes] of this.#pieces) this.c.tg_wasm_free(at, bytes);
  }
}

export class Core {
  readonly registry = new Registry();
  readonly #tasks = new Set<Task>();
  readonly #locks = new Map<Handle, Task>();
  #loaded!: Loaded;
  #options: EngineOptions = {};
  #instance!: Instance;
  #context: Ptr = 0;
  #restTimer: ReturnType<typeof setTimeout> | undefined;
  /** What is left on a GPU that has given its memory back. */
  #restingBytes = 0;
  /** Why there is no GPU where one was asked for. */
  #gpuNote = '';
  /** The instance that has the grammar of stories. */
  #teller: Instance | undefined;
  /** The one that has the test cases of the ops. */
  #checker: Instance | undefined;
  /** Settles when the module can be called. */
  #ready: Promise<void> = Promise.resolve();

  constructor(private readonly emit: (event: EngineEvent) => void) {}

  get c(): Exports {
    return this.#instance.c;
  }

  get memory(): Memory {
    return this.#instance.memory;
  }

  get host(): Instance['host'] {
    return this.#instance.host;
  }

  get context(): Ptr {
    return this.#context;
  }

  /** Runs a call as a task: from its first use of the module to its end. */
  async perform<T>(task: Task, body: (task: Task) => Promise<T>): Promise<T> {
    await this.#ready;
    clearTimeout(this.#restTimer);
    this.#tasks.add(task);
    try {
      task.check();
      return await body(task);
    } finally {
      task.releaseAll();
      this.#tasks.delete(task);
      this.#restLater();
    }
  }

  /** A GPU's memory is not kept from others by a page that does nothing. */
  #restLater(): void {
    clearTimeout(this.#restTimer);
    if (this.#tasks.size > 0 || this.gpuBytes() === this.#restingBytes) return;
    const rest = () =>
      this.background((task) =>
        this.framed(task, async (frame) => {
          await this.job(task, frame, [], 'tg_context_rest', this.#context);
          this.#restingBytes = this.gpuBytes();
        }));
    this.#restTimer = setTimeout(rest, this.#options.gpu?.idleMs ?? REST_MS);
    if (threads) (this.#restTimer as unknown as NodeJS.Timeout).unref();
  }

  newTask(): Task {
    return new Task(this.#locks);
  }

  /** Work that nobody waits for. It ends with the module at the latest. */
  background(body: (task: Task) => Promise<void>): void {
    this.perform(this.newTask(), body).catch(() => {});
  }

  /** Gives a call its own memory, and frees it afterwards unless the module is gone. */
  async framed<T>(task: Task, body: (frame: Frame) => T | Promise<T>): Promise<T> {
    const frame = new Frame(this.c, this.memory);
    try {
      return await body(frame);
    } finally {
      if (task.alive) frame.free();
    }
  }

  /** Throws what a negative status means, with the core's own message. */
  ok(status: number): number {
    if (status >= 0) return status;
    const message = this.#context ? this.memory.text(this.c.tg_context_error(this.#context)) : '';
    throw new TinygptError(errorCode(status), message || this.memory.text(this.c.tg_status_text(status)));
  }

  /**
   * Runs a job of the core to its end and answers its status, which is no error. `shared` is held
   * for each slice alone.
   */
  async job<J extends JobName>(
    task: Task, frame: Frame, shared: Handle[], name: J, ...args: JobArgs<J>
  ): Promise<number> {
    const slot = frame.alloc(8);
    const start = this.c[`${name}_job`] as (...all: unknown[]) => number;
    await task.hold(...shared);
    this.ok(start(...args, slot));
    const job = this.memory.pointer(slot);
    try {
      for (;;) {
        const status = this.ok(this.c.tg_job_poll(job, SLICE_MS));
        if (status !== PENDING) return status;
        task.release(...shared);
        await task.turn(this.host.gpus.next());
        await task.hold(...shared);
      }
    } finally {
      if (task.alive) this.c.tg_job_free(job);
      task.release(...shared);
    }
  }

  /* ------------------------------------------------------------------------- beginning and end */

  async open(options: EngineOptions): Promise<EngineInfo> {
    this.#options = options;
    const notes = await loadBest(options, (loaded) => {
      this.#loaded = loaded;
      return this.#build();
    });
    const { c, memory } = this;
    const { build } = this.#loaded;
    return {
      version: memory.text(c.tg_version()),
      build,
      threads: c.tg_context_threads(this.#context),
      ...this.#device(),
      notes: this.#gpuNote ? [...notes, this.#gpuNote] : notes,
      isolated: isolated(),
      maxMemoryBytes: this.#instance.maxMemoryBytes,
      presets: this.#presets(),
      families: this.#families(),
      levers: this.#levers(),
    };
  }

  /** Hands the grammar of stories to the module that is in use, once. */
  async prepareStories(): Promise<void> {
    if (this.#teller === this.#instance) return;
    const text = await fetchStories(this.#options.wasmBase);
    if (this.#teller === this.#instance) return;
    this.#teller = this.#instance;
    // Memory that the module keeps; alloc has filled it with zeros, and the last one stays.
    const at = new Frame(this.c, this.memory).alloc(text.length + 1);
    this.memory.bytes(at, text.length).set(text);
    this.c.tg_wasm_stories_set(at);
  }

  /** Hands the ops' test cases to the module that is in use, once. */
  async prepareCases(): Promise<void> {
    if (this.#checker === this.#instance) return;
    const bytes = await fetchCases(this.#loaded.build, this.#options.wasmBase);
    const frame = new Frame(this.c, this.memory);
    try {
      this.ok(this.c.tg_wasm_cases_set(frame.put(bytes), bytes.length));
    } finally {
      frame.free();
    }
    this.#checker = this.#instance;
  }

  async close(): Promise<void> {
    this.#instance?.helpers.end();
    await this.#instance?.host.close();
  }

  /** Of the core's buffers on the GPU. */
  gpuBytes(): number {
    return this.host.gpus.current?.bytes ?? 0;
  }

  memoryBytes(): number {
    return this.memory.memory.buffer.byteLength;
  }

  /** A module that traps before it is ready would do so again: then there is no rebuilding. */
  async #build(): Promise<void> {
    const { maxMemoryBytes } = this.#options;
    this.#context = 0;
    let ready = false;
    const instance = await instantiate(this.#loaded, maxMemoryBytes, this.emit, (trap) => {
      if (ready) this.#trapped(trap);
    });
    this.#instance = instance;
    try {
      await this.#newContext();
    } catch (error) {
      instance.helpers.end();
      await instance.host.close();
      throw error;
    }
    ready = true;
    instance.host.gpus.changed = () => void this.#tellDevice(instance);
  }

  /** When C is done with what changed it. */
  async #tellDevice(instance: Instance): Promise<void> {
    await turn();
    if (instance !== this.#instance) return;
    this.emit({ kind: 'device', ...this.#device() });
  }

  #device(): Pick<EngineInfo, 'device' | 'gpu' | 'banner'> {
    const { current } = this.host.gpus;
    return {
      device: current ? 'webgpu' : 'cpu',
      gpu: current?.info,
      banner: this.memory.text(this.c.tg_context_banner(this.#context)),
    };
  }

  /** Without a GPU the CPU computes, and a note says why. */
  async #newContext(): Promise<void> {
    const { device = 'cpu', gpu = {} } = this.#options;
    const { c, memory, host } = this;
    const version = memory.text(c.tg_version());
    if (version !== VERSION) {
      throw new TinygptError(
        'UNSUPPORTED', `module: want version ${VERSION} of the core, have ${version}`,
      );
    }
    if (device === 'webgpu') {
      host.gpus.options = gpu;
      await host.gpus.prepare();
    }
    try {
      this.#openContext(device);
    } catch (error) {
      if (device !== 'webgpu' || !(error instanceof TinygptError)) throw error;
      if (error.code !== 'DEVICE' && error.code !== 'MEMORY') throw error;
      this.#gpuNote = `The GPU cannot be used, so the CPU computes: ${error.message}.`;
      this.emit({ kind: 'log', level: 'warning', text: this.#gpuNote });
      c.tg_context_free(this.#context);
      this.#openContext('cpu');
    }
  }

  #openContext(device: string): void {
    const { levers } = this.#options;
    const { c, memory } = this;
    const frame = new Frame(c, memory);
    const options = this.defaults(frame, 'tg_context_options');
    const slot = frame.alloc(8);
    memory.write('tg_context_options', options, {
      threads: this.#loaded.threads,
      device: frame.string(device),
      log: c.tg_wasm_on_log(),
      levers: levers === undefined ? 0 : frame.string(levers),
    });
    const status = c.tg_context_new(options, slot);
    this.#context = memory.pointer(slot);
    this.ok(status);
    frame.free();
  }

  /** Called from the very place where the module trapped. */
  #trapped(trap: Trap): void {
    const { host, helpers } = this.#instance;
    const first = host.assertion || helpers.failure() || trap.message;
    const error = new TinygptError(
      'TRAP', `the core stopped (${first}) and is being rebuilt; what was made before is gone`,
    );
    for (const task of this.#tasks) task.lose(error);
    this.#tasks.clear();
    this.#locks.clear();
    this.registry.lose();
    this.#ready = this.#rebuild(this.#instance, first);
    this.#ready.catch(() => {});
  }

  async #rebuild(old: Instance, reason: string): Promise<void> {
    /* A thread's last words are a message, which is read after this turn. */
    await turn();
    const { failure } = old.helpers;
    old.helpers.end();
    await old.host.close();
    await this.#build();
    this.emit({ kind: 'rebuilt', reason: failure() || reason });
  }

  #presets(): Preset[] {
    const { c, memory } = this;
    return Array.from({ length: c.tg_preset_count() }, (_, i) => {
      const at = c.tg_preset_at(i);
      const params = Number(c.tg_param_count(memory.member('tg_preset', at, 'config')));
      return { ...memory.read('tg_preset', at), params };
    });
  }

  #families(): string[] {
    const names: string[] = [];
    for (let i = 0; ; i++) {
      const at = this.c.tg_family_at(i);
      if (at === 0) return names;
      names.push(this.memory.text(at));
    }
  }

  #levers(): LeverInfo[] {
    const { c, memory } = this;
    return Array.from({ length: c.tg_lever_count() }, (_, i) => {
      const { name, doc, keepsBits, state } = memory.read('tg_lever_info', c.tg_lever_at(i));
      const frame = new Frame(c, memory);
      const on = c.tg_context_lever(this.#context, frame.string(name));
      frame.free();
      return { name, doc, on, keepsBits, state };
    });
  }

  /* ------------------------------------------------------------------------------------- options */

  /** A struct of options with its defaults, in the frame. */
  defaults(frame: Frame, name: OptionStruct): Ptr {
    const bytes = this.memory.size(name);
    const at = frame.alloc(bytes);
    this.c[`${name}_init`](at, bytes);
    return at;
  }

  writeTrainOptions(frame: Frame, options: Partial<TrainOptions>): Ptr {
    const { memory } = this;
    const at = this.defaults(frame, 'tg_train_options');
    const { schedule, optimizer, ...rest } = options;
    memory.write('tg_train_options', at, {
      ...rest,
      schedule: schedule === undefined ? undefined : choose(SCHEDULES, schedule, 'schedule'),
      optimizer: optimizer === undefined ? undefined : choose(OPTIMIZERS, optimizer, 'optimizer'),
    });
    return at;
  }

  readTrainOptions(at: Ptr): TrainOptions {
    const { structBytes: _, ...raw } = numbers(this.memory.read('tg_train_options', at));
    return {
      ...raw,
      schedule: nameOf(SCHEDULES, raw.schedule, 'constant'),
      optimizer: nameOf(OPTIMIZERS, raw.optimizer, 'adamw'),
    };
  }
}
