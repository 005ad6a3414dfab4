// SPDX-License-Identifier: Apache-2.0
/** sparkline.ts - a curve as the points of an SVG polyline in a box of 100 by 40. */
export function sparkline(curve: { steps: readonly number[]; losses: readonly number[] }): string {
  const { steps, losses } = curve;
  const last = steps.at(-1) ?? 0;
  if (steps.length < 2 || last <= 0) return '';
  const [low, high] = [Math.min(...losses), Math.max(...losses)];
  const span = high > low ? high - low : 1;
  // The fall of the first steps would hide all that follows: steps are drawn by their root.
  return steps
    .map((step, i) => {
      const x = 100 * Math.sqrt(step / last);
      const y = 2 + (36 * (high - (losses[i] ?? low))) / span;
      return `${x.toFixed(1)},${y.toFixed(1)}`;
    })
    .join(' ');
}
