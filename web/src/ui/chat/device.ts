// SPDX-License-Identifier: Apache-2.0
/**
 * device.ts - where Chat computes: what the browser offers, what a person chose, and how fast both
 * are with the model that is open.
 */
import type { ChatModel, Engine } from '../../lib/index';
import type { DeviceName, ModelSource } from '../../lib/types';
import { type AdapterVerdict, findAdapter } from '../bench/adapter';
import { Store } from '../store';

/** Tokens a second of each device. */
export type Speeds = Partial<Record<DeviceName, number>>;

export interface DeviceState {
  /** null: not asked yet. */
  adapter: AdapterVerdict | null;
  /** Where the next model is loaded. */
  wanted: DeviceName;
  /** Of the model that was measured last, by its name. */
  speeds: { model: string; of: Speeds } | null;
}

/** What the choice is kept under for the next visit. */
const KEY = 'tinygpt chat device';

/** Storage may be refused; then it is the CPU. */
function kept(): DeviceName {
  try {
    return localStorage.getItem(KEY) === 'webgpu' ? 'webgpu' : 'cpu';
  } catch {
    return 'cpu';
  }
}

export const device = new Store<DeviceState>({ adapter: null, wanted: kept(), speeds: null });

let asking: Promise<void> | null = null;

/** Asks the browser what it has, once. */
export function findDevice(): Promise<void> {
  asking ??= findAdapter().then((adapter) => device.patch({ adapter }));
  return asking;
}

export function wantDevice(wanted: DeviceName): void {
  try {
    localStorage.setItem(KEY, wanted);
  } catch {
    // It counts for this visit.
  }
  device.patch({ wanted });
}

/** The GPU is offered if it is one, and where it has been chosen already. */
export function isOffered({ adapter, wanted }: DeviceState): boolean {
  return adapter?.state === 'hardware' || wanted === 'webgpu';
}

/** The first tokens compile, and find out how much a submit may hold. */
const WARM_TOKENS = 8;
const TIMED_TOKENS = 24;

/** Tokens a second of a short text, by a session of its own. */
export async function decodeSpeed(model: ChatModel, signal: AbortSignal): Promise<number> {
  const session = await model.session({ ctx: Math.min(128, model.info.ctx) });
  try {
    let speed = 0;
    for (const tokens of [WARM_TOKENS, TIMED_TOKENS]) {
      const answer = session.complete('Once upon a time', { tokens, temperature: 0, signal });
      answer.stats.catch(() => {});
      for await (const _ of answer);
      signal.throwIfAborted();
      speed = (await answer.stats).tokPerS;
    }
    return speed;
  } finally {
    session.free();
  }
}

/** The same on another device, by an engine that is gone afterwards. What computes elsewhere than
 *  it was asked to is not timed. */
export async function otherSpeed(
  engine: Promise<Engine>, on: DeviceName, source: ModelSource, signal: AbortSignal,
  onProgress: (share: number) => void,
): Promise<number> {
  const other = await engine;
  try {
    if (other.info.device !== on) throw new Error(other.info.notes.at(-1));
    return await decodeSpeed(await other.openChatModel(source, { signal, onProgress }), signal);
  } finally {
    await other.close();
  }
}

/** One sentence of what a change would bring; '' if both are not known. */
export function gain(of: Speeds): string {
  const { cpu, webgpu } = of;
  if (!cpu || !webgpu) return '';
  const ratio = webgpu / cpu;
  const times = (n: number) => (n < 10 ? n.toFixed(1) : n.toFixed(0));
  const speeds = `${times(webgpu)} tokens a second on the GPU, ${times(cpu)} on the CPU`;
  if (ratio > 1.1) return `${speeds}: the GPU writes ${times(ratio)} times as fast.`;
  if (ratio < 0.9) return `${speeds}: the CPU writes ${times(1 / ratio)} times as fast.`;
  return `${speeds}: it makes no difference.`;
}
