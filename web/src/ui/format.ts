// SPDX-License-Identifier: Apache-2.0
/** format.ts - numbers as people read them, and back. English, whatever the browser speaks. */

/** A word at the beginning of a line. */
export function capital(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}

/** 366,432 */
export function count(n: number): string {
  return Math.round(n).toLocaleString('en-US');
}

/** 366 thousand, 6.4 million: for sentences. */
export function roughCount(n: number): string {
  if (n < 1000) return String(Math.round(n));
  const units: [number, string][] = [
    [1e9, 'billion'],
    [1e6, 'million'],
    [1e3, 'thousand'],
  ];
  for (const [size, word] of units) {
    // 999,950 and more would round to 1,000 of the smaller unit.
    if (n >= size * 0.9995) return `${short(n / size)} ${word}`;
  }
  return String(Math.round(n));
}

function short(x: number): string {
  return x < 9.95 ? trimZero(x.toFixed(1)) : x.toFixed(0);
}

function trimZero(text: string): string {
  return text.endsWith('.0') ? text.slice(0, -2) : text;
}

/** 312 bytes, 1.1 MB: decimal units, as file managers show them. */
export function bytes(n: number): string {
  if (!Number.isFinite(n)) return '–';
  if (n < 1000) return n === 1 ? '1 byte' : `${Math.round(n)} bytes`;
  const units: [number, string][] = [
    [1e9, 'GB'],
    [1e6, 'MB'],
    [1e3, 'KB'],
  ];
  for (const [size, unit] of units) {
    if (n >= size * 0.9995) return `${short(n / size)} ${unit}`;
  }
  return `${Math.round(n)} bytes`;
}

/** 4 s, 1 min 30 s, 2 h 5 min, 3 days. Coarser as it grows. */
export function duration(seconds: number): string {
  if (!Number.isFinite(seconds) || seconds < 0) return '–';
  if (seconds < 0.95) return 'under a second';
  if (seconds < 59.5) return `${Math.round(seconds)} s`;
  const total = seconds < 600 ? Math.round(seconds / 5) * 5 : Math.round(seconds / 60) * 60;
  const min = Math.floor(total / 60);
  if (min < 60) {
    const s = total % 60;
    return s && min < 10 ? `${min} min ${s} s` : `${min} min`;
  }
  const hours = Math.floor(min / 60);
  if (hours < 48) return min % 60 ? `${hours} h ${min % 60} min` : `${hours} h`;
  return `${Math.round(hours / 24)} days`;
}

/** 0.0123 -> 12.3 ms and so on, for times of one step. */
export function milliseconds(ms: number): string {
  if (!Number.isFinite(ms)) return '–';
  if (ms >= 9950) return `${(ms / 1000).toFixed(0)} s`;
  if (ms >= 995) return `${(ms / 1000).toFixed(1)} s`;
  return ms < 9.95 ? `${ms.toFixed(1)} ms` : `${ms.toFixed(0)} ms`;
}

export function percent(share: number): string {
  if (!Number.isFinite(share)) return '–';
  const p = 100 * share;
  return p > 0 && p < 0.95 ? 'under 1 %' : `${p.toFixed(0)} %`;
}

/** A loss in nats: three decimals. */
export function loss(nats: number): string {
  return Number.isFinite(nats) ? nats.toFixed(3) : '–';
}

/** A rate: 3e-3 and not 0.003, as papers and command lines have it. */
export function rate(x: number): string {
  if (!Number.isFinite(x)) return '–';
  if (x === 0) return '0';
  const [digits = '0', exponent = '0'] = x.toExponential(2).split('e');
  return `${Number(digits)}e${Number(exponent)}`;
}

export interface Bounds {
  min: number;
  max: number;
  whole?: boolean;
}

/** A whole typed text as a number in range: `1e-3`, `1,500` and `2 000` are numbers. */
export function parseNumber(text: string, b: Bounds): { value: number; problem: string } {
  const plain = text.trim().replace(/(?<=\d)[ ,](?=\d{3}(\D|$))/g, '');
  if (plain === '') return { value: NaN, problem: 'A number is needed.' };
  if (!/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(plain)) {
    return { value: NaN, problem: 'This is not a number.' };
  }
  const value = Number(plain);
  if (b.whole && !Number.isInteger(value)) {
    return { value: NaN, problem: 'A whole number is needed.' };
  }
  if (value < b.min || value > b.max) {
    return { value: NaN, problem: `From ${plainNumber(b.min)} to ${plainNumber(b.max)}.` };
  }
  return { value, problem: '' };
}

function plainNumber(x: number): string {
  return x !== 0 && Math.abs(x) < 1e-3
    ? rate(x)
    : x.toLocaleString('en-US', { maximumFractionDigits: 6 });
}

/** A model that knows nothing yet writes bytes of all kinds: what is no character is a dot, so that
 *  noise looks like noise and not like a broken font. */
export function readable(text: string): string {
  return text
    .replace(/^\n+/, '')
    .replace(/[\p{C}\u00a0\ufffd]/gu, (c) => (c === '\n' || c === '\t' ? c : '·'));
}

/** How far numbers on an axis of whole things, such as steps, may lie apart: 1, 2, 5, 10 and so on. */
export const WHOLE_STRIDES = Array.from(
  { length: 28 }, (_, i) => [1, 2, 5][i % 3]! * 10 ** Math.floor(i / 3),
);
