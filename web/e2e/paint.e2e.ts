// SPDX-License-Identifier: Apache-2.0
/** paint.e2e.ts - how soon the page is there, served by the program. It measures time: nothing runs beside it. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { firstTab, forget, visit, type Visit } from './browser';
import { Playground } from './page';
import { serve, type Site } from './servers';

let site: Site;
let v: Visit;
let p: Playground;

beforeAll(async () => {
  site = await serve();
  v = await visit({ serviceWorkers: 'block' });
  p = new Playground(firstTab(v));
});
afterAll(async () => {
  await v.close();
  forget(v.profile);
  await site.stop();
  expect(v.errors).toEqual([]);
});

it('has painted within a second and can be used within two, its scripts by brotli', async () => {
  let painted = Infinity;
  let usable = Infinity;
  // The best of some loads: what else the machine does only makes them later.
  for (let i = 0; i < 10 && (painted > 1000 || usable > 2000); i++) {
    await p.open(site.url);
    const seen = await p.page.evaluate(() => {
      const [paint] = performance.getEntriesByName('first-contentful-paint');
      const scripts = performance.getEntriesByType('resource')
        .filter(({ name }) => name.endsWith('.js')) as (PerformanceEntry & {
        contentEncoding?: string;
      })[];
      const codings = scripts.map((script) => script.contentEncoding);
      return { paint: paint?.startTime ?? Infinity, now: performance.now(), codings };
    });
    painted = Math.min(painted, seen.paint);
    usable = Math.min(usable, seen.now);
    expect(new Set(seen.codings)).toEqual(new Set(['br']));
  }
  expect(painted).toBeLessThan(1000);
  expect(usable).toBeLessThan(2000);
});
