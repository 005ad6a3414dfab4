// SPDX-License-Identifier: Apache-2.0
/**
 * curve.ts - the points of a run for drawing, in columns. A run may have millions of steps: when
 * MOST points are there, every second one goes, and from then on only every second step comes in.
 * Points with a validation are never dropped, and the newest is always there.
 */
import type { HistoryPoint, StepReport } from '../../lib/types';

export const MOST = 8192;

export class Curve {
  step: number[] = [];
  loss: number[] = [];
  /** The loss smoothed over some 2 % of the run: what is worth looking at. */
  smooth: number[] = [];
  val: (number | null)[] = [];
  lr: (number | null)[] = [];
  gradNorm: (number | null)[] = [];
  tokPerS: (number | null)[] = [];
  #stride = 1;
  #smooth = NaN;
  #seen = 0;
  /** Whether the newest point is only there because it is the newest. */
  #lastIsExtra = false;

  get length(): number {
    return this.step.length;
  }

  /** The smoothed loss after the newest step, NaN before the first. */
  get smoothed(): number {
    return this.#smooth;
  }

  /** A step that comes a second time, after a lost device, takes the place of what followed it. */
  add(r: StepReport): void {
    while (this.length > 0 && (this.step.at(-1) ?? 0) >= r.step) this.#drop();
    this.#average(r.loss);
    const val = Number.isFinite(r.valLoss) ? r.valLoss : null;
    this.#push(r.step, r.loss, val, r.lr, r.gradNorm, r.tokPerS);
  }

  /** The curve of a run that was opened from a file, which keeps losses only. */
  static of(history: readonly HistoryPoint[]): Curve {
    const c = new Curve();
    for (const h of history) c.addPoint(h);
    return c;
  }

  addPoint(h: HistoryPoint): void {
    this.#average(h.loss);
    this.#push(h.step, h.loss, Number.isFinite(h.valLoss) ? h.valLoss : null, null, null, null);
  }

  /** An exponential mean whose window grows with the run, so that the fast start is not smeared. */
  #average(loss: number): void {
    if (!Number.isFinite(loss)) return;
    this.#seen++;
    const window = Math.min(60, Math.max(1, this.#seen / 16));
    this.#smooth = Number.isNaN(this.#smooth)
      ? loss
      : this.#smooth + (loss - this.#smooth) / window;
  }

  #push(
    step: number,
    loss: number,
    val: number | null,
    lr: number | null,
    gradNorm: number | null,
    tokPerS: number | null,
  ): void {
    if (this.#lastIsExtra) for (const column of this.#columns()) column.pop();
    this.#lastIsExtra = val === null && step % this.#stride !== 0;
    this.step.push(step);
    this.loss.push(loss);
    this.smooth.push(this.#smooth);
    this.val.push(val);
    this.lr.push(lr);
    this.gradNorm.push(gradNorm);
    this.tokPerS.push(tokPerS);
    if (this.length > MOST) this.#thin();
  }

  #drop(): void {
    for (const column of this.#columns()) column.pop();
    this.#lastIsExtra = false;
    this.#smooth = this.smooth.at(-1) ?? NaN;
  }

  #columns(): (number | null)[][] {
    return [this.step, this.loss, this.smooth, this.val, this.lr, this.gradNorm, this.tokPerS];
  }

  #thin(): void {
    this.#stride *= 2;
    const last = this.length - 1;
    const keep = this.step.map(
      (step, i) => step % this.#stride === 0 || this.val[i] !== null || i === last,
    );
    const rest = <T>(column: T[]) => column.filter((_, i) => keep[i]);
    this.#lastIsExtra = this.val[last] === null && (this.step[last] ?? 0) % this.#stride !== 0;
    this.step = rest(this.step);
    this.loss = rest(this.loss);
    this.smooth = rest(this.smooth);
    this.val = rest(this.val);
    this.lr = rest(this.lr);
    this.gradNorm = rest(this.gradNorm);
    this.tokPerS = rest(this.tokPerS);
  }

  /** checks() if the newest point has one, else nothing: looking for news costs little then. */
  checksIfNew(): { step: number; loss: number }[] {
    return this.val.at(-1) == null ? [] : this.checks();
  }

  /** The validations alone. */
  checks(): { step: number; loss: number }[] {
    const found: { step: number; loss: number }[] = [];
    this.val.forEach((loss, i) => {
      const step = this.step[i];
      if (loss !== null && step !== undefined) found.push({ step, loss });
    });
    return found;
  }
}

/** Points of a curve that is laid beside others, or drawn small. */
const FEW = 200;

export function thin(curve: Curve): { steps: number[]; losses: number[] } {
  const steps: number[] = [];
  const losses: number[] = [];
  const by = Math.max(1, Math.ceil(curve.length / FEW));
  for (let i = 0; i < curve.length; i++) {
    if (i % by !== 0 && i !== curve.length - 1) continue;
    const step = curve.step[i];
    const loss = curve.smooth[i];
    if (step === undefined || loss === undefined || !Number.isFinite(loss)) continue;
    steps.push(step);
    losses.push(Math.round(loss * 1e4) / 1e4);
  }
  return { steps, losses };
}
