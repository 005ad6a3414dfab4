// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { paint, parseRgb } from './heatmap';

describe('parseRgb', () => {
  it('reads what browsers compute', () => {
    expect(parseRgb('rgb(11, 107, 93)')).toEqual([11, 107, 93]);
    expect(parseRgb('rgba(11, 107, 93, 0.5)')).toEqual([11, 107, 93]);
    expect(parseRgb('color(srgb 0.2 0.4 1)')).toEqual([51, 102, 255]);
  });
});

describe('paint', () => {
  it('goes from the ground to the ink', () => {
    const pixels = paint([0, 1, 0.25, NaN, 7], [0, 0, 0], [200, 100, 50]);
    expect([...pixels.subarray(0, 4)]).toEqual([0, 0, 0, 255]);
    expect([...pixels.subarray(4, 8)]).toEqual([200, 100, 50, 255]);
    expect([...pixels.subarray(8, 12)]).toEqual([100, 50, 25, 255]);
    expect([...pixels.subarray(16, 20)]).toEqual([200, 100, 50, 255]);
  });
});
