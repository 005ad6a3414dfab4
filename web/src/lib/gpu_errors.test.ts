// SPDX-License-Identifier: Apache-2.0
/**
 * gpu_errors.test.ts - what the browser says of an error comes out as one, before any result does.
 * On Dawn's null backend, which validates, and computes nothing.
 */
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { create, globals } from 'webgpu';
import { Memory } from './abi';
import { Gpu, Gpus } from './gpu';
import type { GpuInfo } from './types';

const PENDING = 1;
const E_MEMORY = -2;
const E_DEVICE = -10;
const INFO = { adapter: 'null' } as GpuInfo;
const WGSL = `@group(0) @binding(0) var<uniform> a: vec4<u32>;
@group(0) @binding(1) var<uniform> b: vec4<u32>;
@group(0) @binding(2) var<storage, read_write> x: array<u32>;
@compute @workgroup_size(1) fn main() { x[0] = a.x + b.x; }`;
/** Where the structures of gpu.h lie that are handed over. */
const RANGES = 0, DISPATCH = 128, PIECE = 192, HOST = 256;

Object.assign(globalThis, globals);
/** One, which stays: the binding ends the process when it goes before its devices. */
const dawn = create(['backend=null']);
const memory = new Memory(new WebAssembly.Memory({ initial: 1 }), false);
const gpus: Gpu[] = [];
let device: GPUDevice;
let gpu: Gpu;
let uniform: number;
let x: number;

/** As C does: again, until there is an answer. */
async function answer(ask: () => number): Promise<number> {
  for (;;) {
    const status = ask();
    if (status !== PENDING) return status;
    await new Promise((resolve) => { setTimeout(resolve, 1); });
  }
}

function words(at: number, list: (number | bigint)[]): void {
  const view = new DataView(memory.memory.buffer);
  for (const word of list) {
    if (typeof word === 'bigint') view.setBigUint64(at, word, true);
    else view.setUint32(at, word, true);
    at += typeof word === 'bigint' ? 8 : 4;
  }
}

beforeEach(async () => {
  const adapter = await dawn.requestAdapter();
  device = await adapter!.requestDevice();
  gpu = new Gpu(device, INFO, memory, (promise) => promise, () => {});
  gpus.push(gpu);
  uniform = gpu.bufferNew('uniforms', 512, true);
  x = gpu.bufferNew('x', 256, false);
  const pipeline = gpu.pipelineNew('sums', WGSL, 'main', 1);
  words(RANGES, [uniform, 0, 0n, 16n, uniform, 0, 256n, 16n, x, 0, 0n, 256n]);
  const group = gpu.groupNew(pipeline, RANGES);
  expect(await answer(() => gpu.settle())).toBe(0);
  words(DISPATCH, [pipeline, group, 1, 1, 1]);
  words(PIECE, [x, 0, 0n, 16n, HOST, 0]);
});
afterAll(() => gpus.forEach((one) => one.close()));

/** A step and its result; what happens in between. */
async function step(meanwhile = () => {}): Promise<number> {
  memory.bytes(HOST, 16).fill(7);
  const submitted = gpu.submit(DISPATCH, 1);
  if (submitted !== 0) return submitted;
  const reading = gpu.readBegin(PIECE, 1);
  if (reading === 0) return E_DEVICE;
  meanwhile();
  return answer(() => gpu.readEnd(reading, PIECE, 1));
}

function errOutsideOfScopes(): void {
  device.createBuffer({ size: 4, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.STORAGE });
}

describe('an error of the GPU', () => {
  it('in the step itself leaves no result', async () => {
    expect(await step()).toBe(0);
    words(DISPATCH + 8, [65536]);
    expect(await step()).toBe(E_DEVICE);
    expect(gpu.message).toMatch(/^step: .*65536/s);
    expect([...memory.bytes(HOST, 16)]).toEqual(Array(16).fill(7));
    words(DISPATCH + 8, [1]);
    expect(await step()).toBe(0);
  });

  it('that no scope catches fails the step', async () => {
    for (const when of ['before', 'meanwhile']) {
      if (when === 'before') {
        errOutsideOfScopes();
        await device.queue.onSubmittedWorkDone();
      }
      expect(await step(when === 'meanwhile' ? errOutsideOfScopes : undefined), when).toBe(E_DEVICE);
      expect(gpu.message).toMatch(/MapRead/);
      expect(gpu.lost).toBe(false);
      expect(await step()).toBe(0);
    }
  });

  it('of memory says how much was wanted, and what to lower', async () => {
    gpu.bufferNew('workspace', 250_000_000, false);
    gpu.bufferNew('scratch', 250_000_000, false);
    gpu.bufferNew('weights', 250_000_000, false);
    expect(await answer(() => gpu.settle())).toBe(E_MEMORY);
    expect(gpu.message).toMatch(/buffer weights of 250000000 bytes.*lower the batch/s);
  });

  it('that ends the device fails all that comes after', async () => {
    expect(await step(() => device.destroy())).toBe(E_DEVICE);
    expect(gpu.message).toMatch(/the device was lost/);
    expect([...memory.bytes(HOST, 16)]).toEqual(Array(16).fill(7));
    expect(await step()).toBe(E_DEVICE);
    expect(gpu.settle()).toBe(E_DEVICE);
  });
});

describe('an adapter that is not there at once', () => {
  const open = async (answers: ('none' | 'refuses' | 'gives')[]) => {
    const asked: string[] = [];
    const gpus = new Gpus();
    gpus.memory = memory;
    const requestAdapter = async () => {
      const answer = answers[Math.min(asked.length, answers.length - 1)]!;
      asked.push(answer);
      if (answer === 'none') return null;
      const adapter = await dawn.requestAdapter();
      if (answer === 'refuses') {
        Object.defineProperty(adapter!, 'requestDevice', {
          value: () => Promise.reject(new Error('refused')),
        });
      }
      return adapter;
    };
    Object.defineProperty(navigator, 'gpu', { value: { requestAdapter }, configurable: true });
    await gpus.prepare();
    delete (navigator as { gpu?: unknown }).gpu;
    const imports = gpus.imports();
    const status = imports.gpu_open(RANGES);
    imports.gpu_message(0, HOST, 200);
    if (status === 0) imports.gpu_close(new DataView(memory.memory.buffer).getUint32(RANGES, true));
    return { status, asked: asked.length, message: memory.text(HOST) };
  };

  it('is asked for again, and so is one that gives no device', async () => {
    expect(await open(['none', 'refuses', 'gives'])).toMatchObject({ status: 0, asked: 3 });
  });

  it('is given up in the end, and the reason is told', async () => {
    expect(await open(['none'])).toMatchObject({
      status: E_DEVICE, asked: 3, message: expect.stringMatching(/want an adapter, have none/),
    });
  });
});
