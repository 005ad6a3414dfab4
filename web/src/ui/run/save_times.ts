// SPDX-License-Identifier: Apache-2.0
/**
 * save_times.ts - when a run is saved: at its start, after 1, 2, 5 and 10 seconds, and as often as
 * saving costs a twentieth of the time, at most once a second. So a small run loses a second of
 * training in the worst case, and a large one is not held up.
 */
const EARLY_MS = [1000, 2000, 5000, 10_000];
const LEAST_MS = 1000;
const SHARE = 20;

/** The time of the next save of a run that went on at `began`, `took` being what the last one took. */
export function nextSave(began: number, now: number, took: number): number {
  const byCost = now + Math.max(LEAST_MS, took * SHARE);
  const early = EARLY_MS.map((ms) => began + ms).find((at) => at > now);
  return early === undefined ? byCost : Math.min(early, byCost);
}
