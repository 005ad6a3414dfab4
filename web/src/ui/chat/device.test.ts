// SPDX-License-Identifier: Apache-2.0
/** device.test.ts - what is said of two speeds, and when a GPU is offered. */
import { describe, expect, it } from 'vitest';
import type { AdapterVerdict } from '../bench/adapter';
import { gain, isOffered } from './device';

describe('what a change of device would bring', () => {
  it('is said where both were measured, whoever is ahead', () => {
    expect(gain({ cpu: 31 })).toBe('');
    expect(gain({ cpu: 31, webgpu: 85 })).toMatch(/85 .* GPU, 31 .*the GPU writes 2\.7 times/);
    expect(gain({ cpu: 8.26, webgpu: 4 })).toMatch(/4\.0 .* 8\.3 .*the CPU writes 2\.1 times/);
    expect(gain({ cpu: 30, webgpu: 31 })).toMatch(/no difference/);
  });
});

describe('a GPU is offered', () => {
  const state = (kind: AdapterVerdict['state'], wanted: 'cpu' | 'webgpu' = 'cpu') =>
    ({ adapter: { name: '', state: kind, note: '' }, wanted, speeds: null });
  it('if it is one, or was chosen', () => {
    expect(isOffered(state('hardware'))).toBe(true);
    expect(isOffered(state('software'))).toBe(false);
    expect(isOffered(state('none'))).toBe(false);
    expect(isOffered(state('software', 'webgpu'))).toBe(true);
  });
});
