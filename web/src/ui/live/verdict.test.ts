// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { Unit } from './words';
import { lateFall, verdict, type VerdictInput } from './verdict';

const BASE: VerdictInput = {
  size: 'small',
  vocab: 256,
  unit: 'character' as Unit,
  params: 366432,
  steps: 1500,
  total: 1500,
  trainBytes: 9e5,
  epochs: 1.7,
  loss: 1.6,
  checks: [],
};

function checks(...losses: number[]) {
  return losses.map((loss, i) => ({ step: (i + 1) * 100, loss }));
}

function judge(v: Partial<VerdictInput>): { title: string; first: string; all: string } {
  const got = verdict({ ...BASE, ...v });
  return { title: got.title, first: got.actions[0]?.do ?? '', all: got.reasons.join(' ') };
}

describe('verdict', () => {
  it('asks for more steps while the loss falls', () => {
    const got = judge({ checks: checks(3, 2.5, 2.2, 2, 1.9, 1.8, 1.7, 1.6) });
    expect(got.title).toBe('Still learning');
  });

  it('does not ask for more where there is nothing left to learn', () => {
    const got = judge({
      loss: 0.032,
      epochs: 50,
      checks: checks(3, 1, 0.5, 0.2, 0.1, 0.06, 0.04, 0.034),
    });
    expect(got.title).toBe('It knows the text by heart');
    expect(got.all).not.toMatch(/falling/);
    expect(got.all).toContain('Each character was seen about 50 times');
  });

  it('sees a run that learnt nothing', () => {
    expect(judge({ loss: 5.7 }).first).toBe('settings');
  });

  it('sees learning by heart, by the turn or by the gap', () => {
    expect(judge({ checks: checks(3, 2, 1.8, 1.9, 1.9, 1.9, 1.9) }).title).toContain('by heart');
    expect(judge({ loss: 1, checks: checks(3, 2, 1.7, 1.6), epochs: 12.3 }).all).toContain(
      '12 times',
    );
  });

  it('offers to go on where it was stopped', () => {
    const got = verdict({ ...BASE, steps: 300, loss: 2.6, checks: checks(3, 2.9, 2.8, 2.7) });
    expect(got.actions[0]).toEqual({ do: 'continue', steps: 0 });
  });

  it('proposes the next size when this one is full and the text is long', () => {
    const flat = checks(2, 1.9, 1.85, 1.84, 1.84, 1.84, 1.84, 1.84);
    const got = verdict({ ...BASE, trainBytes: 5e6, checks: flat });
    expect(got.actions).toContainEqual({ do: 'size', name: 'medium' });
    expect(verdict({ ...BASE, checks: flat }).actions.some((a) => a.do === 'size')).toBe(false);
    const custom = verdict({ ...BASE, size: 'custom', trainBytes: 5e6, checks: flat });
    expect(custom.actions.some((a) => a.do === 'size')).toBe(false);
  });

  it('does not call a size full that has hardly read', () => {
    const flat = checks(4, 3.2, 3.1, 3.09, 3.09, 3.09, 3.09, 3.09);
    const got = judge({ loss: 3.08, epochs: 0.03, trainBytes: 5e6, checks: flat });
    expect(got.title).toBe('Only a beginning');
    expect(got.all).toContain('3 % of the text');
    expect(got.all).not.toMatch(/hold no more/);
  });

  it('says of tokens only what is known of them', () => {
    const learnt = { vocab: 49152, unit: 'token' as Unit, epochs: NaN, loss: 7 };
    expect(judge(learnt).title).toBe('Done');
    expect(judge(learnt).all).toContain('tokens');
    expect(judge({ ...learnt, loss: 10.9 }).title).toBe('It did not learn');
    expect(judge({ ...learnt, loss: 0.1 }).all).not.toMatch(/byte|NaN|characters/);
  });

  it('says so when nothing was kept for checking', () => {
    expect(judge({}).all).toContain('None of the text was kept');
  });

  it('measures the fall over the last quarter', () => {
    expect(lateFall(checks(4, 3, 2, 1))).toBeCloseTo(0.5);
    expect(lateFall(checks(4, 3))).toBeNaN();
  });
});
