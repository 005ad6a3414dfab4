// SPDX-License-Identifier: Apache-2.0
/**
 * run.ts - the benchmark itself: training steps of one preset by several builds, in turns.
 *
 *     open all -> one step each (sizes the blocks) -> turn 0 (warm-up, not kept)
 *              -> turns 1..n: every build runs one block of the same number of steps -> close all
 *
 * All builds train the same model on the same text from the same seed and have done the same number
 * of steps whenever a turn ends, so their losses can be compared: that is the drift. Where all
 * modules together would need too much memory, each block opens its build and closes it again
 * (`apart`), which costs time but no memory.
 */
import type { BuildName, StepReport } from '../../lib/types';
import { turnOrder } from './stats';

/** What takes part: a build of the module, or the best one with the GPU. */
export type Entrant = BuildName | 'webgpu';

/** A build with a trainer on it. */
export interface Contestant {
  threads: number;
  steps(n: number, signal: AbortSignal): AsyncIterable<Pick<StepReport, 'ms' | 'loss'>>;
  close(): Promise<void>;
}

export type Opener = (build: Entrant) => Promise<Contestant>;

export interface BuildResult {
  build: Entrant;
  threads: number;
  /** Milliseconds of the very first step, which compiles shaders; NaN before. */
  firstMs: number;
  /** Milliseconds a step, one number a kept turn. */
  ms: number[];
  /** Loss of the last step. */
  loss: number;
  /** Why there are no numbers; '' when there are. */
  problem: string;
}

export interface PresetResult {
  preset: string;
  /** Steps of one block, and steps kept in all. */
  blockSteps: number;
  steps: number;
  rows: BuildResult[];
}

export interface BenchProgress {
  what: string;
  /** 0..1 */
  done: number;
  /** What is known so far; a fresh object each time. */
  result: PresetResult;
}

export interface BenchOptions {
  turns: number;
  apart: boolean;
  /** What a block of the slowest build should take. */
  blockMs?: number;
}

/** Steps of a block, so that the slowest build takes about targetMs for it. */
export function blockStepsFor(slowestMs: number, targetMs: number): number {
  if (!(slowestMs > 0)) return 1;
  return Math.min(50, Math.max(1, Math.round(targetMs / slowestMs)));
}

/** Relative difference of a loss from the scalar build's, or NaN when either is missing. */
export function drift(result: PresetResult, build: Entrant): number {
  const base = result.rows.find((r) => r.build === 'scalar' && !r.problem);
  const row = result.rows.find((r) => r.build === build && !r.problem);
  if (!base || !row) return NaN;
  return Math.abs(row.loss - base.loss) / Math.abs(base.loss);
}

interface Seat {
  row: BuildResult;
  open: Contestant | null;
}

function message(e: unknown): string {
  return e instanceof Error ? e.message : String(e);
}

async function close(seat: Seat): Promise<void> {
  const contestant = seat.open;
  seat.open = null;
  await contestant?.close();
}

/** Opens a seat's build unless it is open; a build that can't be opened leaves the race. */
async function ensureOpen(seat: Seat, opener: Opener): Promise<Contestant | null> {
  if (seat.row.problem) return null;
  try {
    seat.open ??= await opener(seat.row.build);
    seat.row.threads = seat.open.threads;
    return seat.open;
  } catch (e) {
    seat.row.problem = message(e);
    return null;
  }
}

/** Runs n steps; mean milliseconds of a step, or NaN when the build failed and left the race. */
async function block(seat: Seat, opener: Opener, n: number, signal: AbortSignal): Promise<number> {
  const contestant = await ensureOpen(seat, opener);
  signal.throwIfAborted();
  if (!contestant) return NaN;
  let ms = 0;
  let count = 0;
  try {
    for await (const report of contestant.steps(n, signal)) {
      ms += report.ms;
      count++;
      seat.row.loss = report.loss;
    }
  } catch (e) {
    signal.throwIfAborted();
    seat.row.problem = message(e);
    await close(seat);
    return NaN;
  }
  signal.throwIfAborted();
  if (count !== n) {
    seat.row.problem = `only ${count} of ${n} steps were done`;
    return NaN;
  }
  return ms / n;
}

/** Throws the signal's reason when it is cancelled; every build is closed in any case. */
export async function* runPreset(
  preset: string,
  builds: readonly Entrant[],
  opener: Opener,
  options: BenchOptions,
  signal: AbortSignal,
): AsyncGenerator<BenchProgress, PresetResult, undefined> {
  const seats = builds.map((build): Seat => ({
    row: { build, threads: 1, firstMs: NaN, ms: [], loss: NaN, problem: '' },
    open: null,
  }));
  const result: PresetResult = { preset, blockSteps: 1, steps: 0, rows: seats.map((s) => s.row) };
  const total = builds.length * (options.turns + 2);
  let blocks = 0;
  const progress = (what: string): BenchProgress => ({
    what,
    done: Math.min(1, blocks++ / total),
    result: { ...result, rows: result.rows.map((row) => ({ ...row, ms: [...row.ms] })) },
  });
  try {
    let slowest = 0;
    for (const seat of seats) {
      yield progress(`${preset}: first step, ${seat.row.build}`);
      let ms = (seat.row.firstMs = await block(seat, opener, 1, signal));
      // A GPU's first step tells nothing of the next ones; all do as many, for the drift.
      if (builds.includes('webgpu')) ms = await block(seat, opener, 1, signal);
      if (ms > slowest) slowest = ms;
      if (options.apart) await close(seat);
    }
    const n = (result.blockSteps = blockStepsFor(slowest, options.blockMs ?? 1000));
    for (let turn = 0; turn <= options.turns; turn++) {
      const kept = new Map<Seat, number>();
      for (const i of turnOrder(seats.length, turn)) {
        const seat = seats[i] as Seat;
        const label = turn === 0 ? 'warming up' : `turn ${turn} of ${options.turns}`;
        yield progress(`${preset}: ${label}, ${seat.row.build}`);
        // A module that was just opened runs one step to warm up before its block counts.
        if (options.apart) await block(seat, opener, 1, signal);
        kept.set(seat, await block(seat, opener, n, signal));
        if (options.apart) await close(seat);
      }
      if (turn === 0) continue;
      for (const [seat, ms] of kept) if (!seat.row.problem) seat.row.ms.push(ms);
      result.steps += n;
    }
    for (const seat of seats) if (seat.row.problem) seat.row.ms = [];
    return result;
  } finally {
    await Promise.all(seats.map(close));
  }
}
