// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { choices, hasTurned, LN_256, meaning, type Milestone, newMilestones } from './words';

describe('words', () => {
  it('turn a loss into a number of choices', () => {
    expect(choices(LN_256)).toBe('256');
    expect(choices(Math.log(11))).toBe('11');
    expect(choices(1)).toBe('2.7');
  });

  it('have a sentence for every loss', () => {
    const said = [6, 5.5, 4, 3, 2.3, 1.8, 1.4, 1, 0.6, 0.1].map(meaning);
    expect(new Set(said).size).toBe(said.length);
    expect(meaning(NaN)).toBe('');
  });
});

describe('newMilestones', () => {
  const fall = (losses: number[]) => {
    const told: Milestone[] = [];
    losses.forEach((loss, i) =>
      told.push(...newMilestones(told, { step: i + 1, loss, checks: [] })),
    );
    return told.map((m) => m.id);
  };

  it('tells each rung once, also when the loss goes back over it', () => {
    expect(fall([5.5, 4.9, 5.1, 4.9, 3.1, 2.5])).toEqual(['common', 'frequency', 'pairs']);
  });

  it('tells several at once as the last of them', () => {
    expect(fall([5.5, 1.9])).toEqual(['pieces']);
  });

  it('notices learning by heart at a check, once', () => {
    const told: Milestone[] = [{ step: 1, id: 'words', text: '' }];
    const at = (step: number) =>
      newMilestones(told, { step, loss: 1.5, checks: [{ step: 10, loss: 1.9 }] });
    expect(at(11)).toEqual([]);
    const found = at(10);
    expect(found.map((m) => m.id)).toEqual(['gap']);
    told.push(...found);
    expect(at(10)).toEqual([]);
  });

  it('notices the turn only when four checks agree', () => {
    const checks = (losses: number[]) => losses.map((loss) => ({ loss }));
    expect(hasTurned(checks([3, 2, 1.8, 1.9, 1.9, 1.9]))).toBe(false);
    expect(hasTurned(checks([3, 2, 1.8, 1.9, 1.9, 1.9, 1.9]))).toBe(true);
    expect(hasTurned(checks([3, 2, 1.8, 1.9, 1.9, 1.7, 1.9]))).toBe(false);
  });
});
