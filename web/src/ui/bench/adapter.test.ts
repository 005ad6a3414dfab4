// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { softwareName } from '../../lib/software';
import { findAdapter, judgeAdapter } from './adapter';

describe('softwareName', () => {
  it('knows the software renderers by name', () => {
    expect(softwareName({ vendor: 'google', architecture: 'swiftshader' })).toBe('SwiftShader');
    expect(softwareName({ description: 'llvmpipe (LLVM 17, 256 bits)' })).toBe('llvmpipe');
    expect(softwareName({ device: 'lavapipe' })).toBe('lavapipe');
    expect(softwareName({ description: 'Microsoft Basic Render Driver' })).toBe('WARP');
    expect(softwareName({ vendor: 'microsoft', architecture: 'warp' })).toBe('WARP');
  });
  it('believes the flag when there is no name', () => {
    expect(softwareName({ isFallbackAdapter: true })).toBe('a fallback adapter');
  });
  it('lets real adapters through', () => {
    for (const facts of [
      { vendor: 'apple', architecture: 'metal-3', isFallbackAdapter: false },
      { vendor: 'nvidia', architecture: 'lovelace', description: 'NVIDIA GeForce RTX 4090' },
      { vendor: 'intel', architecture: 'gen-12lp' },
      { vendor: 'amd', architecture: 'rdna-3' },
      { vendor: 'qualcomm', architecture: 'adreno-7xx' },
    ])
      expect(softwareName(facts)).toBe('');
  });
});

describe('judgeAdapter', () => {
  it('says which of the three it is', () => {
    expect(judgeAdapter(null).state).toBe('none');
    expect(judgeAdapter({ vendor: 'apple', architecture: 'metal-3' })).toMatchObject({
      state: 'hardware',
      name: 'apple metal-3',
    });
    const software = judgeAdapter({ vendor: 'google', architecture: 'swiftshader' });
    expect(software.state).toBe('software');
    expect(software.note).toContain('SwiftShader');
    expect(software.note).toContain('not timed');
  });
});

it('finds none where there is no WebGPU', async () => {
  expect((await findAdapter()).state).toBe('none');
});
