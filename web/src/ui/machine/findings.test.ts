// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { EngineInfo } from '../../lib/types';
import { judgeAdapter } from '../bench/adapter';
import type { PageFacts } from './facts';
import { findings, type Finding } from './findings';

const info: EngineInfo = {
  version: '0.2.0',
  build: 'relaxed-mt',
  threads: 4,
  device: 'cpu',
  gpu: undefined,
  banner: '',
  notes: [],
  isolated: true,
  maxMemoryBytes: 2 ** 32,
  presets: [],
  families: [],
  levers: [],
};
const page: PageFacts = {
  secure: true,
  isolated: true,
  processors: 8,
  memoryGb: 8,
  sharedMemory: true,
  opfs: true,
  persisted: true,
  usedBytes: 1e6,
  quotaBytes: 1e11,
  locks: true,
  worker: 'controls',
  installed: false,
  installable: true,
  online: true,
  gpu: judgeAdapter(null),
  notifications: 'default',
};

function all(i: EngineInfo | null, p: PageFacts): Map<string, Finding> {
  return new Map(
    findings(i, p)
      .flatMap((g) => g.findings)
      .map((f) => [f.id, f]),
  );
}

describe('findings', () => {
  it('finds nothing to do on a good machine', () => {
    for (const f of all(info, page).values()) expect(['good', 'plain']).toContain(f.state);
  });

  it('always says something', () => {
    const poor: PageFacts = {
      ...page,
      secure: false,
      isolated: false,
      processors: null,
      opfs: false,
      persisted: null,
      quotaBytes: null,
      locks: false,
      worker: 'unsupported',
      online: false,
    };
    for (const p of [page, poor]) {
      for (const i of [info, { ...info, build: 'scalar' as const, threads: 1 }, null]) {
        for (const f of all(i, p).values()) {
          expect(f.value).not.toBe('');
          expect(f.advice).toMatch(/[.!]$/);
        }
      }
    }
  });

  it('tells what to do about each thing that is missing', () => {
    const scalar = all(
      { ...info, build: 'scalar', threads: 1 },
      { ...page, isolated: false, worker: 'none' },
    );
    expect(scalar.get('simd')?.state).toBe('less');
    expect(scalar.get('threads')?.advice).toContain('not isolated');
    expect(scalar.get('isolation')?.advice).toContain('tinygpt serve');
    expect(
      all(info, { ...page, isolated: false, worker: 'registered' }).get('isolation')?.action,
    ).toBe('reload');
    expect(
      all(info, { ...page, isolated: false, secure: false }).get('isolation')?.advice,
    ).toContain('127.0.0.1');
    expect(all(info, { ...page, persisted: false }).get('persisted')?.action).toBe('persist');
    expect(all(info, { ...page, quotaBytes: 5e8 }).get('quota')?.state).toBe('less');
    expect(all(info, { ...page, quotaBytes: null }).get('quota')?.value).toBe('not told');
    expect(all({ ...info, maxMemoryBytes: 2 ** 31 }, page).get('memory')?.state).toBe('less');
  });

  it('does not blame one processor', () => {
    const one = all({ ...info, build: 'relaxed', threads: 1 }, { ...page, processors: 1 });
    expect(one.get('threads')?.state).toBe('good');
  });

  it('promises nothing that a browser like Firefox has not', () => {
    const firefox = { ...page, installable: false, gpu: judgeAdapter(null, true) };
    const told = all(info, { ...firefox, persisted: false });
    expect(told.get('gpu')?.advice).toBe(
      'This browser has no WebGPU on this machine. The CPU computes.',
    );
    expect(told.get('offline')?.advice).toContain('installs no pages');
    expect(told.get('persisted')?.advice).not.toContain('install');
    expect(judgeAdapter(null).note).toContain('no graphics card');
  });

  it('says whether a GPU is used, and what software is', () => {
    const real = { ...page, gpu: judgeAdapter({ vendor: 'apple', architecture: 'metal-3' }) };
    expect(all(info, real).get('gpu')?.advice).toContain('Not in use');
    const soft = { ...page, gpu: judgeAdapter({ vendor: 'google', architecture: 'swiftshader' }) };
    expect(all(info, soft).get('gpu')?.advice).toContain('SwiftShader');
    const gpu = {
      adapter: 'SwiftShader',
      driver: '',
      api: 'page',
      library: 'browser',
      software: true,
      features: ['subgroups'],
      limits: { maxBufferSize: 2 ** 30 },
    };
    const used = all({ ...info, device: 'webgpu', gpu }, soft).get('gpu');
    expect(used?.value).toBe('SwiftShader');
    expect(used?.advice).toMatch(/In use.*subgroups.*maxBufferSize 1\.\d+ GB.*software/);
  });

  it('passes on the notes of the loader', () => {
    const noted = { ...info, build: 'simd' as const, notes: ['This browser has no relaxed SIMD.'] };
    expect(all(noted, page).get('build')?.advice).toContain('no relaxed SIMD');
  });
});
