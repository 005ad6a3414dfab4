// SPDX-License-Identifier: Apache-2.0
/** kill.ts - ends a tab in the middle of a save, at an operation on the disk that is chosen. */
import type { BrowserContext, Page } from 'playwright-core';

/**
 * The store's worker stops for good at its next operation with this number: a write stands half
 * done, the others have not begun. Operations are counted over all files of a save.
 */
export async function freezeStoreAt(page: Page, operation: number): Promise<void> {
  const worker = page.workers().find((w) => w.url().includes('store.worker'));
  if (!worker) throw new Error('the store has no worker');
  await worker.evaluate((operation) => {
    let n = 0;
    const scope = globalThis as unknown as {
      FileSystemSyncAccessHandle: { prototype: Record<string, (...a: unknown[]) => unknown> };
    };
    const { prototype } = scope.FileSystemSyncAccessHandle;
    for (const name of ['write', 'truncate', 'flush']) {
      const real = prototype[name]!;
      prototype[name] = function (this: unknown, ...args: unknown[]) {
        if (n++ !== operation) return real.apply(this, args);
        if (name === 'write') {
          const bytes = args[0] as Uint8Array;
          real.call(this, bytes.subarray(0, bytes.length >> 1), args[1]);
        }
        for (;;);
      };
    }
  }, operation);
}

/** Kills the tab's process, workers and all, and gives a new tab. */
export async function killTab(context: BrowserContext, page: Page): Promise<Page> {
  const next = await context.newPage();
  const cdp = await context.newCDPSession(page);
  const crashed = page.waitForEvent('crash');
  void cdp.send('Page.crash').catch(() => {});
  await crashed;
  await page.close();
  return next;
}
