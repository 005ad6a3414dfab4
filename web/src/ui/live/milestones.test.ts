// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { madeText } from '../text/made';
import { hasTurned, type Milestone, milestonesOf, milestonesOfCheck } from './milestones';
import { referenceOf } from './observed';

const ids = (list: readonly Milestone[]) => list.map((m) => m.id);
const cats = referenceOf('The cat sat on the mat and the dog ate it.\n'.repeat(40));

describe('milestones of a sample', () => {
  it('are counted, and the highest is told', () => {
    expect(milestonesOf([], 10, 'q7#zz p!x', cats)).toEqual([]);
    const found = milestonesOf([], 20, 'xx the cat sat dog yy', cats);
    expect(ids(found)).toContain('words-all');
    expect(ids(found)).not.toContain('words-half');
    expect(found[0]?.step).toBe(20);
    expect(found.find((m) => m.id === 'words-all')?.text).toContain('4 of 4');
  });

  it('are told once, and lower ones not behind higher ones', () => {
    const told = milestonesOf([], 20, 'xx the cat sat dog yy', cats);
    expect(ids(milestonesOf(told, 30, 'xx the cat zzt dgg yy', cats))).toEqual([]);
  });

  it('know what the text is: a table is not praised for its words alone', () => {
    const places = referenceOf(madeText('places', 1, 20_000));
    const rows = madeText('places', 9, 500);
    expect(ids(milestonesOf([], 5, rows, places))).toContain('columns');
    expect(ids(milestonesOf([], 5, rows.replaceAll(',', ';'), places))).not.toContain('columns');
    const sums = referenceOf(madeText('sums', 1, 20_000));
    expect(ids(milestonesOf([], 5, madeText('sums', 9, 300), sums))).toContain('sums');
    expect(ids(milestonesOf([], 5, '1+1: 2 =3\n'.repeat(9), sums))).not.toContain('sums-half');
  });

  it('see what was copied', () => {
    const copy = 'The cat sat on the mat and the dog ate it.\nThe cat sat on the mat';
    expect(ids(milestonesOf([], 5, copy, cats))).toContain('copied');
  });
});

describe('milestones of a check', () => {
  const check = (step: number, loss: number) => ({ step, loss });

  it('see learning by heart', () => {
    expect(ids(milestonesOfCheck([], 100, 0.5, [check(100, 1.1)]))).toEqual(['gap']);
    expect(milestonesOfCheck([], 100, 2, [check(100, 2.2)])).toEqual([]);
    expect(milestonesOfCheck([], 101, 0.5, [check(100, 1.1)])).toEqual([]);
  });

  it('see the turn', () => {
    const turned = [3, 2, 2.1, 2.2, 2.2, 2.3].map((loss, i) => check(100 * i, loss));
    expect(hasTurned(turned)).toBe(true);
    expect(ids(milestonesOfCheck([], 500, 2.2, turned))).toEqual(['turn']);
    expect(hasTurned(turned.slice(0, 5))).toBe(false);
  });
});
