// SPDX-License-Identifier: Apache-2.0
/**
 * stage.ts - what the tests of a file stand on: the page as `tinygpt serve` serves it, in a browser
 * whose profile goes with it. A browser takes a second of CPU time to start and all that the page
 * costs until its code is compiled, so a file has one for all of its tests.
 *
 *   onOneStage      one tab at one address for the whole file: its tests go on from one another
 *   onFreshStages   each test has a tab and an address of its own. A server has a port of its own,
 *                   and what a browser stores it stores by address: nothing is there yet.
 *
 * Behind the last test, or behind each: the console has shown no error.
 */
import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest';
import { firstTab, forget, visit, type Visit, type VisitOptions } from './browser';
import { Playground } from './page';
import { serve, type Site } from './servers';

export interface Stage {
  site: Site;
  v: Visit;
  p: Playground;
}

type Use = (stage: Stage) => unknown;

async function leave(v: Visit): Promise<void> {
  await v.close();
  forget(v.profile);
}

export function onOneStage(use: Use, options: VisitOptions = {}): void {
  let site: Site;
  let v: Visit;
  beforeAll(async () => {
    site = await serve();
    v = await visit(options);
    await use({ site, v, p: new Playground(firstTab(v)) });
  });
  afterAll(async () => {
    await leave(v);
    await site.stop();
    expect(v.errors).toEqual([]);
  });
}

export function onFreshStages(use: Use, options: VisitOptions = {}): void {
  let site: Site;
  let v: Visit;
  beforeAll(async () => {
    v = await visit(options);
  });
  beforeEach(async () => {
    site = await serve();
    await use({ site, v, p: new Playground(await freshTab(v)) });
  });
  afterEach(async () => {
    // Whatever still runs in the tab goes with it, before its server does.
    await freshTab(v);
    await v.context.unrouteAll();
    await site.stop();
    expect(v.errors.splice(0)).toEqual([]);
  });
  afterAll(() => leave(v));
}

/** An empty tab in place of all that are open; nothing is remembered of what was asked in them. */
export async function freshTab(v: Visit) {
  const before = v.context.pages();
  const tab = await v.context.newPage();
  await Promise.all(before.map((page) => page.close()));
  v.asked.splice(0);
  return tab;
}
