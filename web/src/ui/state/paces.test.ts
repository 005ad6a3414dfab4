// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import { defaultSettings } from '../run/settings';
import { byPace, learnPace, paceKey, paceOf } from './paces';

it('remembers how long a step took, by what it depends on', () => {
  const s = defaultSettings();
  const key = paceKey(s, 'cpu');
  expect(paceOf(key)).toBeNaN();
  learnPace(key, 40);
  learnPace(key, 36);
  learnPace(key, NaN);
  expect(paceOf(key)).toBe(36);
  expect(paceOf(paceKey({ ...s, batch: s.batch + 1 }, 'cpu'))).toBeNaN();
  expect(paceOf(paceKey({ ...s, lr: s.lr / 2 }, 'cpu'))).toBe(36);
  expect(paceOf(paceKey(s, 'webgpu'))).toBeNaN();
});

it('keeps the newest', () => {
  for (let i = 0; i < 40; i++) learnPace(`k${i}`, i + 1);
  expect(paceOf('k0')).toBeNaN();
  expect(paceOf('k39')).toBe(40);
});

it('corrects a forecast in proportion', () => {
  const f = { msPerStep: 66, seconds: 100, bytes: 5 };
  expect(byPace(f, 33)).toEqual({ msPerStep: 33, seconds: 50, bytes: 5 });
  expect(byPace(f, NaN)).toBe(f);
});
