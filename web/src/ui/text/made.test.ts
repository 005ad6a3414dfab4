// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { MADE, madeText } from './made';

describe('a made text', () => {
  it.each(MADE.map((m) => m.id))('%s: ASCII, as long as wanted, and a longer one begins with it', (id) => {
    const short = madeText(id, 7, 2000);
    expect(short).toMatch(/^[\n -~]*\n$/);
    expect(short.length).toBeLessThanOrEqual(2000);
    expect(short.length).toBeGreaterThan(1700);
    expect(madeText(id, 7, 4000).startsWith(short)).toBe(true);
    expect(madeText(id, 8, 2000)).not.toBe(short);
  });

  it('sums are right, and so is their working', () => {
    for (const line of madeText('sums', 1, 20_000).trim().split('\n')) {
      const found = /^(\d+)\+(\d+): (.*) =(\d+)$/.exec(line);
      expect(found, line).not.toBeNull();
      const [, a, b, steps, total] = found!;
      expect(Number(total)).toBe(Number(a) + Number(b));
      let carry = 0;
      let digits = '';
      for (const step of steps!.split(' ')) {
        const [terms, result] = step.split('=');
        const right = terms!.split('+').reduce((s, t) => s + Number(t), 0);
        expect(Number(result)).toBe(right);
        expect(terms!.split('+').length).toBe(carry ? 3 : 2);
        digits = `${right % 10}${digits}`;
        carry = right > 9 ? 1 : 0;
      }
      expect(Number(`${carry}${digits}`)).toBe(Number(total));
    }
  });

  it('places have five columns, and programs close what they open', () => {
    for (const row of madeText('places', 1, 5000).trim().split('\n')) {
      expect(row.split(',').length, row).toBe(5);
    }
    const code = madeText('code', 1, 20_000);
    for (const [open, close] of ['()', '[]']) {
      expect(code.split(open!).length).toBe(code.split(close!).length);
    }
  });

  it('recipes use all that they list, and are named after some of it', () => {
    for (const r of madeText('recipes', 1, 20_000).trim().split('\n\n')) {
      const parts = [...r.matchAll(/^- .*?([a-z]+)$/gm)].map((m) => m[1]!);
      const steps = r.split('\n').filter((line) => /^\d/.test(line)).join(' ');
      expect(parts.length).toBeGreaterThan(2);
      for (const part of parts) expect(steps, r).toContain(part);
      expect(parts[1]!.startsWith(r.split(' ')[0]!.toLowerCase())).toBe(true);
    }
  });

  it('tunes have whole bars', () => {
    const lengths: Record<string, number> = { '4/4': 8, '6/8': 6, '3/4': 6, '2/4': 4 };
    for (const t of madeText('tunes', 1, 20_000).trim().split('\n\n')) {
      const metre = /^M:(.*)$/m.exec(t)?.[1] ?? '';
      const bars = t.split('\n').slice(5).join('').split(/[|:]+/).filter((b) => b !== '');
      expect(bars.length).toBe(8);
      for (const b of bars) {
        const length = [...b.matchAll(/[A-Ga-g](\d?)/g)].reduce((s, m) => s + Number(m[1] || 1), 0);
        expect(length, b).toBe(lengths[metre]);
      }
    }
  });

  it('what there is none of is said', () => {
    expect(() => madeText('novels', 1, 10)).toThrow(/novels/);
  });
});
