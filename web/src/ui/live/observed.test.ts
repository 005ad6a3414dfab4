// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { madeText } from '../text/made';
import {
  closedBrackets,
  copied,
  knownLetters,
  knownWords,
  referenceOf,
  rowsThatFit,
  sumsIn,
} from './observed';

const stories = referenceOf('The cat sat on the mat. Ein Mädchen saß da.\n'.repeat(30));
const places = referenceOf(madeText('places', 1, 20_000));
const code = referenceOf(madeText('code', 1, 20_000));
const sums = referenceOf(madeText('sums', 1, 20_000));

describe('what a text has', () => {
  it('is told apart', () => {
    expect([stories, places, code, sums].map((r) => r.columns)).toEqual([0, 5, 0, 0]);
    expect([stories, places, code, sums].map((r) => r.brackets)).toEqual([false, false, true, false]);
    expect([stories, places, code, sums].map((r) => r.sums)).toEqual([false, false, false, true]);
  });
});

describe('what a sample is counted for', () => {
  it('words that occur, whatever their case and script', () => {
    expect(knownWords('xx THE CAT zat mädchen saß yy', stories)).toEqual({ of: 5, right: 4 });
    expect(knownLetters('cat7', stories)).toEqual({ of: 4, right: 3 });
  });

  it('brackets that close in order', () => {
    expect(closedBrackets('f(a[1])\n')).toEqual({ of: 2, right: 2 });
    expect(closedBrackets('f(a[1)]\n')).toEqual({ of: 2, right: 1 });
    expect(closedBrackets('f(a\ng(b')).toEqual({ of: 1, right: 0 });
  });

  it('rows with as many columns', () => {
    expect(rowsThatFit('cut\nA,B,1,2,3\nA,B,1\nA,B,1,2', places)).toEqual({ of: 2, right: 1 });
  });

  it('sums that are right', () => {
    expect(sumsIn('9+97: 7+9=16 0+9+1=10 =106\n1+1: 1+1=2 =3\n2+2: 4=')).toEqual({ of: 2, right: 1 });
    expect(sumsIn(madeText('sums', 3, 3000)).of).toBeGreaterThan(50);
  });

  it('what it has copied', () => {
    expect(copied('zzThe cat sat on the mat. Ein Mädchen saß da.', stories)).toBe(30);
    expect(copied('nothing of it', stories)).toBe(0);
  });
});
