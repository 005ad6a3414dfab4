// SPDX-License-Identifier: Apache-2.0
/** vault.test.ts - power cuts at every point, damaged files, full disks. */
import { describe, expect, it } from 'vitest';
import { CrashDisk, PowerCut } from './crash_disk.js';
import { QuotaError } from './disk.js';
import { type Kept, Vault } from './vault.js';

const FILES = { slots: ['slot-0', 'slot-1'], pointer: 'pointer' } as const;

function open(disk: CrashDisk): Vault {
  return new Vault(disk, FILES);
}

function run(fill: number, bytes = 300): Uint8Array {
  return new Uint8Array(bytes).fill(fill);
}

function stepOf(saved: Kept | null): number | null {
  return saved && (saved.meta as { step: number }).step;
}

/** The run of a save must be its own from the first byte to the last. */
function whole(saved: Kept | null): void {
  if (saved) expect(saved.bytes.every((byte) => byte === stepOf(saved))).toBe(true);
}

/** A disk with saves 1..n on it. */
async function diskWith(n: number): Promise<CrashDisk> {
  const disk = new CrashDisk();
  const vault = open(disk);
  for (let step = 1; step <= n; step++) await vault.save(run(step), { step });
  return disk.survive(0);
}

/** Runs the work once for every event in it and every outcome, and looks at what is left. */
async function atEveryCut(
  saves: number,
  work: (vault: Vault) => Promise<void>,
  look: (vault: Vault, disk: CrashDisk, finished: boolean) => Promise<void>,
): Promise<number> {
  let states = 0;
  for (let dieAt = 0; ; dieAt++) {
    const disk = await diskWith(saves);
    const vault = open(disk);
    await vault.load();
    disk.dieAt = disk.events + dieAt;
    const finished = await work(vault).then(
      () => true,
      (e: unknown) => {
        if (!(e instanceof PowerCut)) throw e;
        return false;
      },
    );
    for (let outcome = 0; outcome < disk.outcomes; outcome++) {
      const left = disk.survive(outcome);
      await look(open(left), left, finished);
      states++;
    }
    if (finished) return states;
  }
}

describe('saving', () => {
  it('gives back what was saved, also in another visit', async () => {
    const disk = new CrashDisk();
    const vault = open(disk);
    expect(await vault.load()).toBeNull();
    for (let step = 1; step <= 5; step++) {
      await vault.save(run(step, 100 * step), { step, name: 'naïve "text"' });
      const later = open(disk.survive(0));
      const saved = await later.load();
      expect(saved?.bytes).toEqual(run(step, 100 * step));
      expect(saved?.meta).toEqual({ step, name: 'naïve "text"' });
      expect(later.notice).toBe('');
    }
  });

  it('keeps runs of no bytes, and smaller ones after larger ones', async () => {
    const disk = new CrashDisk();
    const vault = open(disk);
    for (const bytes of [1000, 0, 1, 999, 3]) {
      await vault.save(run(7, bytes), { step: 7 });
      expect((await open(disk).load())?.bytes).toEqual(run(7, bytes));
    }
  });

  it.each([0, 1, 2, 3])('survives every cut in a save after %i saves', async (before) => {
    const states = await atEveryCut(
      before,
      (vault) => vault.save(run(9), { step: 9 }),
      async (vault, disk, finished) => {
        const saved = await vault.load();
        const step = stepOf(saved);
        expect(finished ? [9] : [before || null, 9]).toContain(step);
        expect(vault.notice).toBe('');
        whole(saved);
        // And the next save is as good as any.
        await vault.save(run(10), { step: 10 });
        expect(stepOf(await open(disk.survive(0)).load())).toBe(10);
      },
    );
    expect(states).toBeGreaterThan(20);
  });

  it('survives two cuts, one after the other', async () => {
    await atEveryCut(
      2,
      (vault) => vault.save(run(8), { step: 8 }),
      async (_, disk) => {
        for (let dieAt = 0; dieAt < 8; dieAt++) {
          const second = disk.survive(0);
          const vault = open(second);
          const first = stepOf(await vault.load());
          second.dieAt = second.events + dieAt;
          await vault.save(run(9), { step: 9 }).catch(() => {});
          for (let outcome = 0; outcome < second.outcomes; outcome++) {
            const last = await open(second.survive(outcome)).load();
            expect([first, 9]).toContain(stepOf(last));
            whole(last);
          }
        }
      },
    );
  });
});

describe('damage', () => {
  it('of the newest slot, at any byte, gives the save before it and says so', async () => {
    const good = await diskWith(2);
    const bytes = good.bytes('slot-1');
    for (let at = 0; at < bytes.length; at++) {
      // Bytes 36..63 mean nothing.
      if (at >= 36 && at < 64) continue;
      const disk = good.survive(0);
      disk.spoil('slot-1', (b) => b.with(at, b[at]! ^ (1 << (at % 8))));
      const vault = open(disk);
      const saved = await vault.load();
      expect(stepOf(saved)).toBe(1);
      expect(vault.notice).toMatch(/newest save .* damaged/i);
      // The good one is not what the next save writes over.
      disk.dieAt = disk.events + 3;
      await vault.save(run(5), { step: 5 }).catch(() => {});
      expect(stepOf(await open(disk.survive(0)).load())).toBe(1);
    }
  });

  it('of the newest slot, cut anywhere or grown, is noticed, too', async () => {
    const good = await diskWith(2);
    const { length } = good.bytes('slot-1');
    for (const size of [0, 1, 35, 36, 63, 64, 65, length - 1, length + 1]) {
      const disk = good.survive(0);
      disk.spoil('slot-1', (b) => {
        const out = new Uint8Array(size);
        out.set(b.subarray(0, size));
        return out;
      });
      const vault = open(disk);
      expect(stepOf(await vault.load())).toBe(1);
      expect(vault.notice).not.toBe('');
    }
  });

  it('of the pointer, at any byte, loses nothing', async () => {
    const good = await diskWith(3);
    for (let at = 0; at < 24; at++) {
      const disk = good.survive(0);
      disk.spoil('pointer', (b) => b.with(at, b[at]! ^ 0x55));
      const vault = open(disk);
      expect(stepOf(await vault.load())).toBe(3);
      expect(vault.notice).toBe('');
    }
  });

  it('of both slots is said, and the next save works', async () => {
    const disk = await diskWith(2);
    for (const slot of ['slot-0', 'slot-1']) disk.spoil(slot, (b) => b.with(100, 0xff));
    const vault = open(disk);
    expect(await vault.load()).toBeNull();
    expect(vault.notice).toMatch(/damaged/);
    await vault.save(run(3), { step: 3 });
    expect(stepOf(await open(disk).load())).toBe(3);
  });

  it('is not seen in files of anything else', async () => {
    const disk = new CrashDisk();
    for (const name of ['slot-0', 'slot-1', 'pointer']) {
      disk.spoil(name, () => new TextEncoder().encode(`<!doctype html>${'x'.repeat(500)}`));
    }
    const vault = open(disk);
    expect(await vault.load()).toBeNull();
    expect(vault.notice).toBe('');
    await vault.save(run(1), { step: 1 });
    expect(stepOf(await open(disk).load())).toBe(1);
  });
});

describe('a full disk', () => {
  it('at any size is a QuotaError that leaves the save before', async () => {
    let refused = 0;
    for (let quota = 0; quota < 1400; quota += 9) {
      const disk = await diskWith(1);
      disk.quota = quota;
      const vault = open(disk);
      await vault.load();
      try {
        await vault.save(run(2, 400), { step: 2 });
      } catch (e) {
        expect(e).toBeInstanceOf(QuotaError);
        refused++;
        const later = open(disk.survive(0));
        expect(stepOf(await later.load())).toBe(1);
        // Once there is room again, saving goes on.
        disk.quota = Infinity;
        await vault.save(run(3), { step: 3 });
        expect(stepOf(await open(disk.survive(0)).load())).toBe(3);
      }
    }
    expect(refused).toBeGreaterThan(50);
  });

  it('that refuses gets its room back', async () => {
    const disk = await diskWith(1);
    disk.quota = 2000;
    const vault = open(disk);
    await expect(vault.save(run(2, 5000), { step: 2 })).rejects.toThrow(QuotaError);
    expect(disk.bytes('slot-1').length).toBe(0);
  });
});

describe('removing', () => {
  it('forgets all, at every cut all or nothing', async () => {
    await atEveryCut(
      2,
      (vault) => vault.remove(),
      async (vault, disk, finished) => {
        const step = stepOf(await vault.load());
        expect(finished ? [null] : [null, 2]).toContain(step);
        expect(vault.notice).toBe('');
        expect((await vault.head())?.meta ?? null).toEqual(step === null ? null : { step });
        await vault.save(run(4), { step: 4 });
        expect(stepOf(await open(disk.survive(0)).load())).toBe(4);
      },
    );
  });
});

describe('the head', () => {
  it('tells meta, size and text without the bytes', async () => {
    const disk = new CrashDisk();
    await open(disk).save(run(1), { step: 1 }, 7);
    await open(disk).save(run(2, 50), { step: 2 }, 7);
    const head = await open(disk).head();
    expect(head).toEqual({ meta: { step: 2 }, size: 64 + 10 + 300 + 64 + 10 + 50, text: 7 });
    expect(await open(new CrashDisk()).head()).toBeNull();
  });

  it('of a damaged record is that of the save before, or says so', async () => {
    const disk = await diskWith(2);
    disk.spoil('slot-1', (b) => b.with(70, 0));
    expect((await open(disk).head())?.meta).toEqual({ step: 1 });
    disk.spoil('slot-0', (b) => b.subarray(0, 9));
    const vault = open(disk);
    expect(await vault.head()).toBeNull();
    expect(vault.notice).toMatch(/damaged/);
  });
});
