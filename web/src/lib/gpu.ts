// SPDX-License-Identifier: Apache-2.0
/**
 * gpu.ts - the page's WebGPU as the core's gpu.h sees it: small numbers instead of objects, and
 * nothing that waits. C asks again while the answer is PENDING; `next()` tells the worker when to
 * let it.
 *
 *     C        gpu_read_end -> PENDING                          gpu_read_end -> 0, bytes copied
 *     worker                   await gpus.next()  ..............
 *     browser                                     mapAsync done
 *
 * Every object is made between error scopes, whose answers come later: gpu_settle tells them,
 * before anything is computed with it. A submit has scopes, too, and the reading that follows it waits for
 * their answers: a step that failed leaves no result.
 */
import type { Imports, Memory, Ptr } from './abi.js';
import { utf8 } from './abi.js';
import { builtin, findGpu } from './platform.js';
import { softwareName } from './software.js';
import type { GpuInfo, GpuOptions } from './types.js';

type GpuImports = Pick<Imports, Extract<keyof Imports, `gpu_${string}`>>;

const OK = 0;
const PENDING = 1;
const E_MEMORY = -2;
const E_DEVICE = -10;
/** Waits between requests for an adapter: a GPU process that starts, or starts again, has none yet. */
const ASK_MS = [0, 300, 1200] as const;
/** How long after a failure a device may say that it is lost. */
const LOST_MS = 500;
/** TG_GPU_READINGS: one that nobody ends is dropped when so many newer ones have begun. */
const READINGS = 64;
/** Of the specification: GPUBufferUsage, GPUShaderStage, GPUMapMode. */
const USAGE = { MAP_READ: 1, COPY_SRC: 4, COPY_DST: 8, UNIFORM: 0x40, STORAGE: 0x80 } as const;
const COMPUTE = 4;
const READ = 1;
/** What a device is asked for, as far as the adapter has it. */
const FEATURES = ['shader-f16', 'subgroups', 'timestamp-query'] as const;
const LIMITS = [
  'maxBufferSize', 'maxStorageBufferBindingSize', 'maxComputeWorkgroupStorageSize',
  'maxComputeInvocationsPerWorkgroup', 'maxComputeWorkgroupSizeX', 'maxComputeWorkgroupSizeY',
] as const;

interface Failure {
  status: number;
  text: string;
}

function words(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Objects by number; a freed number is taken again. */
class Shelf<T> {
  readonly #items: (T | undefined)[] = [];

  put(item: T): number {
    let i = this.#items.indexOf(undefined);
    if (i < 0) i = this.#items.length;
    this.#items[i] = item;
    return i + 1;
  }

  get(number: number): T | undefined {
    return this.#items[number - 1];
  }

  take(number: number): T | undefined {
    const item = this.#items[number - 1];
    this.#items[number - 1] = undefined;
    return item;
  }
}

interface Pipeline {
  layout: GPUBindGroupLayout;
  nBindings: number;
  made: GPUComputePipeline | undefined;
}

/** A buffer to read through. It stays for later readings. */
interface Reading {
  number: number;
  buffer: GPUBuffer;
  bytes: number;
  state: 'free' | 'waiting' | 'there';
  failure: Failure | undefined;
}

/** One adapter and one device of it. */
export class Gpu {
  readonly info: GpuInfo;
  readonly #buffers = new Shelf<GPUBuffer>();
  readonly #pipelines = new Shelf<Pipeline>();
  readonly #groups = new Shelf<GPUBindGroup>();
  readonly #readings: Reading[] = [];
  #lastReading = 0;
  /** Scopes of objects whose answers are not there yet. */
  #open = 0;
  #failures: Failure[] = [];
  /** Answers that the next reading waits for. */
  #checks: Promise<Failure | undefined>[] = [];
  /** The work that gpu_wait waits for. */
  #idle: 'unknown' | 'waiting' | 'idle' = 'unknown';
  #closed = false;
  /** Of all buffers of the core. */
  bytes = 0;
  lost = false;
  message = '';

  constructor(
    private readonly device: GPUDevice, info: GpuInfo, private readonly memory: Memory,
    private readonly awaited: <T>(promise: Promise<T>) => Promise<T>, onLost: () => void,
  ) {
    this.info = info;
    device.addEventListener('uncapturederror', (event) => {
      const { error } = event as GPUUncapturedErrorEvent;
      this.#failures.push({ status: E_DEVICE, text: error.message });
    });
    void device.lost.then((reason) => {
      this.lost = true;
      this.message = `the device was lost: ${reason.message || reason.reason}`;
      if (!this.#closed) onLost();
    });
  }

  close(): void {
    this.#closed = true;
    this.device.destroy();
  }

  /** A lost device fails everything first, and says so afterwards: who failed waits for that. */
  async #failure(text: string): Promise<Failure> {
    const patience = new Promise((resolve) => { setTimeout(resolve, LOST_MS); });
    await Promise.race([this.device.lost, patience]);
    return { status: E_DEVICE, text };
  }

  /** Records an error that C then asks for. */
  fail({ status, text }: Failure): number {
    if (!this.lost) this.message = text;
    return this.lost ? E_DEVICE : status;
  }

  /** What went wrong since the last call. */
  #check(): number {
    if (this.lost) return E_DEVICE;
    const failure = this.#failures[0];
    this.#failures = [];
    return failure ? this.fail(failure) : OK;
  }

  /* ---------------------------------------------------------------------------------- objects */

  /** Runs `make` between scopes; what they say. */
  #scoped(what: string, make: () => void): Promise<Failure | undefined> {
    const { device } = this;
    device.pushErrorScope('validation');
    device.pushErrorScope('out-of-memory');
    make();
    const scopes = Promise.all([device.popErrorScope(), device.popErrorScope()]);
    return this.awaited(scopes).then(
      ([memory, validation]) => {
        if (memory) {
          const advice = 'lower the batch or take a smaller model';
          return { status: E_MEMORY, text: `no memory for ${what}: ${memory.message}: ${advice}` };
        }
        if (!validation) return undefined;
        return { status: E_DEVICE, text: `${what}: ${validation.message}` };
      },
      (error: unknown) => this.#failure(`${what}: ${words(error)}`),
    );
  }

  #settling(answer: Promise<Failure | undefined>): void {
    this.#open++;
    void answer.then((failure) => {
      this.#open--;
      if (failure) this.#failures.push(failure);
    });
  }

  settle(): number {
    if (this.lost) return E_DEVICE;
    return this.#open > 0 ? PENDING : this.#check();
  }

  bufferNew(label: string, bytes: number, uniform: boolean): number {
    const usage = (uniform ? USAGE.UNIFORM : USAGE.STORAGE) | USAGE.COPY_SRC | USAGE.COPY_DST;
    let number = 0;
    const what = `buffer ${label} of ${bytes} bytes`;
    this.#settling(this.#scoped(what, () => {
      try {
        number = this.#buffers.put(this.device.createBuffer({ label, size: bytes, usage }));
      } catch (error) {
        this.#failures.push({ status: E_MEMORY, text: `${what}: ${words(error)}` });
      }
    }));
    if (number === 0) this.#check();
    else this.bytes += bytes;
    return number;
  }

  bufferFree(number: number): void {
    const buffer = this.#buffers.take(number);
    this.bytes -= buffer?.size ?? 0;
    buffer?.destroy();
  }

  pipelineNew(label: string, wgsl: string, entry: string, nStorage: number): number {
    const { device } = this;
    let layout!: GPUBindGroupLayout;
    let made!: Promise<GPUComputePipeline>;
    const entries = Array.from({ length: 2 + nStorage }, (_, binding) => ({
      binding,
      visibility: COMPUTE,
      buffer: { type: binding < 2 ? 'uniform' : 'storage' } as const,
    }));
    this.#settling(this.#scoped(`pipeline ${label}`, () => {
      layout = device.createBindGroupLayout({ label, entries });
      const module = device.createShaderModule({ label, code: wgsl });
      const all = device.createPipelineLayout({ label, bindGroupLayouts: [layout] });
      made = device.createComputePipelineAsync({
        label, layout: all, compute: { module, entryPoint: entry },
      });
    }));
    const pipeline: Pipeline = { layout, nBindings: 2 + nStorage, made: undefined };
    this.#settling(this.awaited(made).then(
      (handle) => {
        pipeline.made = handle;
        return undefined;
      },
      (error: unknown) => this.#failure(`pipeline ${label}: ${words(error)}`),
    ));
    return this.#pipelines.put(pipeline);
  }

  groupNew(number: number, ranges: Ptr): number {
    const pipeline = this.#pipelines.get(number)!;
    const view = new DataView(this.memory.memory.buffer);
    const entries = Array.from({ length: pipeline.nBindings }, (_, binding) => {
      const at = ranges + 24 * binding;
      return {
        binding,
        resource: {
          buffer: this.#buffers.get(view.getUint32(at, true))!,
          offset: Number(view.getBigUint64(at + 8, true)),
          size: Math.ceil(Number(view.getBigUint64(at + 16, true)) / 4) * 4,
        },
      };
    });
    let group = 0;
    this.#settling(this.#scoped('bind group of a step', () => {
      group = this.#groups.put(this.device.createBindGroup({ layout: pipeline.layout, entries }));
    }));
    return group;
  }

  groupFree(number: number): void {
    this.#groups.take(number);
  }

  /* -------------------------------------------------------------------------------------- run */

  write(number: number, offset: number, bytes: Ptr, n: number): number {
    const failed = this.#check();
    if (failed) return failed;
    /* The browser takes shared memory as it is; Node's Dawn wants a copy of its own. */
    const { buffer } = this.memory.memory;
    const to = this.#buffers.get(number)!;
    if (COPIES) this.device.queue.writeBuffer(to, offset, this.memory.copy(bytes, n));
    else this.device.queue.writeBuffer(to, offset, buffer as ArrayBuffer, bytes, n);
    return OK;
  }

  submit(dispatches: Ptr, n: number): number {
    const failed = this.#check();
    if (failed) return failed;
    const view = new DataView(this.memory.memory.buffer);
    this.#checks.push(this.#scoped('step', () => {
      const encoder = this.device.createCommandEncoder();
      const pass = encoder.beginComputePass();
      let set = 0;
      for (let i = 0, at = dispatches; i < n; i++, at += 20) {
        const number = view.getUint32(at, true);
        if (number !== set) pass.setPipeline(this.#pipelines.get(number)!.made!);
        set = number;
        pass.setBindGroup(0, this.#groups.get(view.getUint32(at + 4, true))!);
        const [x, y, z] = [8, 12, 16].map((word) => view.getUint32(at + word, true));
        pass.dispatchWorkgroups(x!, y, z);
      }
      pass.end();
      this.device.queue.submit([encoder.finish()]);
    }));
    this.#idle = 'unknown';
    return OK;
  }

  /** Waits for all that was submitted. */
  wait(): number {
    if (this.lost || this.#idle === 'idle') return this.#check();
    if (this.#idle === 'unknown') {
      this.#idle = 'waiting';
      const over = () => {
        if (this.#idle === 'waiting') this.#idle = 'idle';
      };
      this.awaited(this.device.queue.onSubmittedWorkDone()).then(over, over);
    }
    return PENDING;
  }

  #pieces(at: Ptr, n: number): { buffer: GPUBuffer; offset: number; bytes: number; host: Ptr }[] {
    const view = new DataView(this.memory.memory.buffer);
    return Array.from({ length: n }, (_, i) => ({
      buffer: this.#buffers.get(view.getUint32(at + 32 * i, true))!,
      offset: Number(view.getBigUint64(at + 32 * i + 8, true)),
      bytes: Number(view.getBigUint64(at + 32 * i + 16, true)),
      host: this.memory.pointer(at + 32 * i + 24),
    }));
  }

  /** A free buffer that is large enough, or the oldest reading's when there are too many. */
  #staging(bytes: number): Reading {
    const free = this.#readings.find((r) => r.state === 'free' && r.bytes >= bytes);
    if (free) return free;
    const old = this.#readings.findIndex(
      (r) => r.state === 'free' || r.number <= this.#lastReading - READINGS,
    );
    if (old >= 0) this.#readings.splice(old, 1)[0]!.buffer.destroy();
    const usage = USAGE.MAP_READ | USAGE.COPY_DST;
    let buffer!: GPUBuffer;
    this.#checks.push(this.#scoped(`buffer to read ${bytes} bytes`, () => {
      buffer = this.device.createBuffer({ label: 'staging', size: bytes, usage });
    }));
    const reading: Reading = { number: 0, buffer, bytes, state: 'free', failure: undefined };
    this.#readings.push(reading);
    return reading;
  }

  readBegin(at: Ptr, n: number): number {
    if (this.#check()) return 0;
    const pieces = this.#pieces(at, n);
    const padded = pieces.map(({ bytes }) => Math.ceil(bytes / 4) * 4);
    const total = padded.reduce((sum, bytes) => sum + bytes, 0);
    const reading = this.#staging(total);
    this.#checks.push(this.#scoped('reading', () => {
      const encoder = this.device.createCommandEncoder();
      let to = 0;
      pieces.forEach(({ buffer, offset }, i) => {
        encoder.copyBufferToBuffer(buffer, offset, reading.buffer, to, padded[i]!);
        to += padded[i]!;
      });
      this.device.queue.submit([encoder.finish()]);
    }));
    const mapped = this.awaited(reading.buffer.mapAsync(READ, 0, total)).then(
      () => undefined,
      (error: unknown) => this.#failure(`reading ${total} bytes: ${words(error)}`),
    );
    const checks = this.#checks;
    this.#checks = [];
    const number = ++this.#lastReading;
    reading.number = number;
    reading.state = 'waiting';
    /* The first cause is the one to tell: a map fails for what happened before. */
    void this.awaited(Promise.all([...checks, mapped])).then((answers) => {
      if (reading.number !== number) return;
      reading.failure = answers.find((answer) => answer !== undefined);
      reading.state = 'there';
    });
    return number;
  }

  readEnd(number: number, at: Ptr, n: number): number {
    if (this.lost) return E_DEVICE;
    const reading = this.#readings.find((r) => r.number === number);
    if (!reading) return this.fail({ status: E_DEVICE, text: 'the reading was dropped' });
    if (reading.state === 'waiting') return PENDING;
    const { failure } = reading;
    if (failure) {
      this.#readings.splice(this.#readings.indexOf(reading), 1);
      reading.buffer.destroy();
      this.#failures = [];
      return this.fail(failure);
    }
    const pieces = this.#pieces(at, n);
    const total = pieces.reduce((sum, { bytes }) => sum + Math.ceil(bytes / 4) * 4, 0);
    const range = new Uint8Array(reading.buffer.getMappedRange(0, total));
    let from = 0;
    for (const { bytes, host } of pieces) {
      this.memory.bytes(host, bytes).set(range.subarray(from, from + bytes));
      from += Math.ceil(bytes / 4) * 4;
    }
    reading.buffer.unmap();
    reading.number = 0;
    reading.state = 'free';
    return this.#check();
  }
}

const COPIES = builtin('node:process') !== undefined;

/** The GPUs of one instance of the module. */
export class Gpus {
  /** Set when the instance exists. */
  memory!: Memory;
  options: GpuOptions = {};
  readonly #all = new Shelf<Gpu>();
  /** The one that C has now; for what people are shown. */
  current: Gpu | undefined;
  /** Told when it is another one, or none. */
  changed: (() => void) | undefined;
  #asking: Promise<void> | undefined;
  #ready: Gpu | undefined;
  #refusal = '';
  #waiting = 0;
  #stirred: Promise<void> | undefined;
  #stir: (() => void) | undefined;

  /** Settles when something has happened that C may wait for; undefined: it waits for nothing. */
  next(): Promise<void> | undefined {
    if (this.#waiting === 0) return undefined;
    this.#stirred ??= new Promise((resolve) => { this.#stir = resolve; });
    return this.#stirred;
  }

  readonly #awaited = <T>(promise: Promise<T>): Promise<T> => {
    this.#waiting++;
    const over = () => {
      this.#waiting--;
      this.#wake();
    };
    return promise.finally(over);
  };

  #wake(): void {
    this.#stir?.();
    this.#stir = this.#stirred = undefined;
  }

  /** Asks the browser; then gpu_open answers at once, the GPU or why there is none. */
  prepare(): Promise<void> {
    this.#asking ??= this.#awaited(this.#ask()).catch((error: unknown) => {
      this.#refusal = words(error);
    });
    return this.#asking;
  }

  async #ask(): Promise<void> {
    const { device, info } = await openDevice(this.options);
    this.#ready = new Gpu(device, info, this.memory, this.#awaited, () => this.#wake());
  }

  /** Ends all devices. The worker must not end before: see #end. */
  async close(): Promise<void> {
    await Promise.all([this.current, this.#ready].map((gpu) => this.#end(gpu)));
  }

  /** Node's binding ends the process where a device goes before its answers have come. */
  async #end(gpu: Gpu | undefined): Promise<void> {
    while (gpu && this.#waiting > 0) await this.next();
    gpu?.close();
  }

  #open(out: Ptr): number {
    void this.prepare();
    if (this.#refusal) {
      this.#asking = undefined;
      return E_DEVICE;
    }
    if (!this.#ready) return PENDING;
    this.current = this.#ready;
    this.#asking = this.#ready = undefined;
    this.changed?.();
    const number = this.#all.put(this.current);
    new DataView(this.memory.memory.buffer).setUint32(out, number, true);
    return OK;
  }

  #text(to: Ptr, room: number, text: string): void {
    const bytes = utf8(text).subarray(0, room - 1);
    const space = this.memory.bytes(to, bytes.length + 1);
    space.set(bytes);
    space[bytes.length] = 0;
  }

  imports(): GpuImports {
    const at = (gpu: number): Gpu => this.#all.get(gpu)!;
    const say = (text: Ptr): string => this.memory.text(text);
    return {
      gpu_open: (out) => this.#open(out),
      gpu_close: (gpu) => {
        const closed = this.#all.take(gpu);
        void this.#end(closed);
        if (this.current !== closed) return;
        this.current = undefined;
        this.changed?.();
      },
      gpu_text: (gpu, name, to, room) => {
        const facts: Record<string, unknown> = { ...at(gpu).info };
        this.#text(to, room, String(facts[say(name)] ?? ''));
      },
      gpu_number: (gpu, name) => {
        const wanted = say(name);
        if (wanted === 'lost') return at(gpu).lost ? 1 : 0;
        return Number(numbersOf(at(gpu).info)[wanted] ?? 0);
      },
      gpu_message: (gpu, to, room) => {
        this.#text(to, room, gpu ? at(gpu).message : this.#refusal);
        if (!gpu) this.#refusal = '';
      },
      gpu_settle: (gpu) => at(gpu).settle(),
      gpu_wait: (gpu) => at(gpu).wait(),
      gpu_buffer_new: (gpu, label, bytes, uniform) => at(gpu).bufferNew(say(label), bytes, uniform),
      gpu_buffer_free: (gpu, buffer) => at(gpu).bufferFree(buffer),
      gpu_write: (gpu, buffer, offset, bytes, n) => at(gpu).write(buffer, offset, bytes, n),
      gpu_read_begin: (gpu, pieces, n) => at(gpu).readBegin(pieces, n),
      gpu_read_end: (gpu, reading, pieces, n) => at(gpu).readEnd(reading, pieces, n),
      gpu_pipeline_new: (gpu, label, wgsl, entry, nStorage) =>
        at(gpu).pipelineNew(say(label), say(wgsl), say(entry), nStorage),
      gpu_group_new: (gpu, pipeline, ranges) => at(gpu).groupNew(pipeline, ranges),
      gpu_group_free: (gpu, group) => at(gpu).groupFree(group),
      gpu_submit: (gpu, dispatches, n) => at(gpu).submit(dispatches, n),
    };
  }
}

/** tg_gpu_info's numbers by their names in C. */
function numbersOf(info: GpuInfo): Record<string, number | boolean> {
  const { features, limits } = info;
  return {
    software: info.software,
    f16: features.includes('shader-f16'),
    subgroups: features.includes('subgroups'),
    timestamps: features.includes('timestamp-query'),
    max_buffer_bytes: limits['maxBufferSize'] ?? 0,
    max_binding_bytes: limits['maxStorageBufferBindingSize'] ?? 0,
    max_group_bytes: limits['maxComputeWorkgroupStorageSize'] ?? 0,
    max_group_threads: limits['maxComputeInvocationsPerWorkgroup'] ?? 0,
  };
}

/** A device of the best adapter, with all that it has; an error says what is missing. An adapter
 *  is asked for again if there is none yet, or if it gives no device: it gives one once. */
async function openDevice(options: GpuOptions): Promise<{ device: GPUDevice; info: GpuInfo }> {
  const { gpu, library } = await findGpu();
  let refusal: unknown;
  for (const ms of ASK_MS) {
    if (ms > 0) await new Promise((resolve) => { setTimeout(resolve, ms); });
    const adapter = await gpu.requestAdapter({ powerPreference: 'high-performance' });
    if (!adapter) continue;
    try {
      return await deviceOf(adapter, library, options);
    } catch (error) {
      refusal = error;
    }
  }
  throw refusal ?? new Error(
    'want an adapter, have none: the browser or its driver offers no GPU to this page (its ' +
      'settings may have hardware acceleration off)',
  );
}

async function deviceOf(
  adapter: GPUAdapter, library: string, options: GpuOptions,
): Promise<{ device: GPUDevice; info: GpuInfo }> {
  const features = FEATURES.filter(
    (name) => adapter.features.has(name) && !options.without?.includes(name),
  );
  const requiredLimits = Object.fromEntries(LIMITS.map((name) => [name, adapter.limits[name]]));
  const device = await adapter.requestDevice({
    label: 'tinygpt',
    requiredFeatures: features,
    requiredLimits: options.minimum ? {} : requiredLimits,
  });
  const { vendor, architecture, device: model, description } = adapter.info;
  const isFallbackAdapter = [adapter, adapter.info].some(
    (o) => (o as { isFallbackAdapter?: boolean }).isFallbackAdapter === true,
  );
  const facts = { vendor, architecture, device: model, description, isFallbackAdapter };
  const name = [...new Set([description, vendor, architecture, model])].filter(Boolean).join(' ');
  const info: GpuInfo = {
    adapter: name || 'unnamed',
    driver: '',
    api: library === 'browser' ? 'page' : 'Node',
    library,
    software: softwareName(facts) !== '',
    features: [...features],
    limits: Object.fromEntries(LIMITS.map((limit) => [limit, device.limits[limit]])),
  };
  return { device, info };
}
