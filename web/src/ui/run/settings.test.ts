// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { findSize, SIZES } from '../model/presets';
import {
  defaultSettings,
  FIELDS,
  gptConfig,
  settingsOfRun,
  settingsOfSize,
  settingsProblem,
  trainOptions,
  withFamily,
  withField,
  withGiven,
  withSize,
} from './settings';

describe('settings', () => {
  it('suit every preset', () => {
    for (const size of SIZES) expect(settingsProblem(settingsOfSize(size)), size.name).toBe('');
  });

  it('turn into a custom size when the shape is changed, and keep what is taste', () => {
    const s = { ...defaultSettings(), seed: 7 };
    expect(withField(s, 'lr', 1e-3).size).toBe('small');
    const wide = withField(s, 'width', 100);
    expect(wide.size).toBe('custom');
    expect(wide.width % wide.heads).toBe(0);
    const large = findSize('large');
    if (!large) throw new Error('no large');
    expect(withSize(s, large)).toMatchObject({ seed: 7, size: 'large', steps: 600, batch: 12 });
  });

  it('never warm up for longer than they run', () => {
    expect(withField(defaultSettings(), 'steps', 10).warmup).toBe(10);
    expect(settingsProblem({ ...defaultSettings(), steps: 10, warmup: 11 })).toContain('warm-up');
  });

  it('that a link leaves out follow from those it has', () => {
    const s = withGiven({ ...defaultSettings(), seed: 7 }, { size: 'massive', steps: 5 });
    expect(s).toMatchObject({ size: 'massive', layers: 14, batch: 4, seed: 7, steps: 5 });
    expect(settingsProblem(s)).toBe('');
    expect(withGiven(s, { warmup: 3, steps: 50 })).toMatchObject({ warmup: 3, steps: 50 });
  });

  it('name what does not fit', () => {
    expect(settingsProblem({ ...defaultSettings(), heads: 5 })).toContain('multiple');
    expect(settingsProblem({ ...defaultSettings(), batch: 0 })).toContain('Batch');
    expect(settingsProblem({ ...defaultSettings(), steps: 1.5 })).toContain('Steps');
    expect(settingsProblem({ ...defaultSettings(), lr: NaN })).toContain('Learning rate');
  });

  it('come back from a run with the name of their size', () => {
    const s = { ...defaultSettings(), steps: 321, lr: 2e-3 };
    const all = { ...trainOptions(s), beta1: 0.9, beta2: 0.95, eps: 1e-8, skipBadSteps: false };
    const back = settingsOfRun(gptConfig(s), all as Parameters<typeof settingsOfRun>[1]);
    expect(back).toEqual(s);
  });

  it('come back from a run on characters or pieces with what it reads', () => {
    const all = trainOptions(defaultSettings()) as Parameters<typeof settingsOfRun>[1];
    const of = (vocab: number) => settingsOfRun({ ...gptConfig(defaultSettings()), vocab }, all);
    expect(of(256).tokens).toBe('bytes');
    expect(of(61).tokens).toBe('chars');
    expect(of(512)).toMatchObject({ tokens: 'pieces', pieces: 512 });
    expect(settingsProblem(of(262_144))).toBe('');
  });

  it('of another family come back, too, and keep it when the size is changed', () => {
    const modern = findSize('modern-small');
    if (!modern) throw new Error('no modern-small');
    const s = settingsOfSize(modern);
    const all = { ...trainOptions(s), beta1: 0.9, beta2: 0.95, eps: 1e-8, skipBadSteps: false };
    // As a model answers: with everything filled in.
    const config = { ...gptConfig(s), headSize: 24, mlp: 256, ropeBase0: 1e4 };
    const back = settingsOfRun(config, all as Parameters<typeof settingsOfRun>[1]);
    expect(back).toEqual(s);
    const other = withField(back, 'layers', 2);
    expect(other).toMatchObject({ size: 'custom', family: 'qwen3', kvHeads: 2 });
    expect(gptConfig(other)).toMatchObject({ family: 'qwen3', layers: 2, kvHeads: 2 });
    expect(withFamily(back, 'tinygpt')).toMatchObject({ size: 'custom', kvHeads: 0 });
    expect(withFamily(settingsOfSize(modern), 'qwen3').kvHeads).toBe(0);
    expect(withField(back, 'heads', 3).kvHeads).toBe(0);
    expect(settingsProblem({ ...back, kvHeads: 3 })).toContain('divide');
    expect(settingsProblem({ ...back, window: 8 })).toContain('Gemma');
  });

  it('have a field for every number', () => {
    const numbers = Object.entries(defaultSettings()).filter(([, v]) => typeof v === 'number');
    expect(new Set(FIELDS.map((f) => f.key))).toEqual(new Set(numbers.map(([key]) => key)));
  });
});
