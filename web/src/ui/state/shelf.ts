// SPDX-License-Identifier: Apache-2.0
/**
 * shelf.ts - all runs that this browser keeps: named, opened, copied, exported, compared, and
 * deleted with a way back. Each has its text, settings, curve and samples in what was saved of it.
 */
import type { ListedRun } from '../../lib/store/index';
import { familyOf, UNNAMED } from '../model/families';
import { plainError } from '../plain_error';
import type { RunMeta } from '../run/controller';
import { defaultSettings, type Settings } from '../run/settings';
import { Store } from '../store';
import { keeping, kept, measureRoom, newId } from './keeping';
import { notify } from './notices';

export interface ShelfRun {
  id: string;
  /** As its owner calls it; else by size and text. */
  name: string;
  meta: RunMeta;
  /** On the disk. */
  bytes: number;
  /** Id of its text in the store, 0 for none. */
  text: number;
}

/** null: not looked yet. The newest first. */
export const shelf = new Store<readonly ShelfRun[] | null>(null);
/** Ids of those whose curves lie under the one that is open. */
export const compared = new Store<readonly string[]>([]);

const NAME = 'name.';
/** Ids of copies that were cancelled: none is shown, whenever one looks. */
const unwanted = new Set<string>();

/** A run whose meta is of another version may lack something; what it must have is looked at. */
export function readMeta(meta: object): RunMeta | null {
  const m = meta as Partial<RunMeta>;
  if (typeof m.step !== 'number' || !m.settings || !m.text) return null;
  const { savedAt = 0 } = m;
  return {
    ...(m as RunMeta),
    total: m.total ?? m.step,
    settings: { ...defaultSettings(), ...m.settings },
    samples: m.samples ?? [],
    milestones: m.milestones ?? [],
    savedAt,
    begun: m.begun ?? savedAt,
    params: m.params ?? 0,
    loss: m.loss ?? null,
    val: m.val ?? null,
    hash: m.hash ?? '',
    curve: m.curve ?? { steps: [], losses: [] },
  };
}

/** The few settings by which a person tells models apart. */
export function sizeWords(s: Settings): string {
  const own = s.family === UNNAMED ? '' : `${familyOf(s.family).label} `;
  const reads = s.tokens === 'bytes' ? '' : s.tokens === 'chars' ? ' on characters' : ' on pieces';
  return (s.size === 'custom' ? `${own}${s.layers} × ${s.width}` : s.size) + reads;
}

/** What tells its curve from the others. */
export function curveWords(r: ShelfRun): string {
  const { lr, batch, accum, seed } = r.meta.settings;
  return `${r.name}, rate ${lr}, batch ${batch * accum}, seed ${seed}`;
}

function plainName(meta: RunMeta): string {
  return `${sizeWords(meta.settings)} on ${meta.text.name}`;
}

function onShelf(r: ListedRun, names: Record<string, object>): ShelfRun | null {
  const meta = readMeta(r.meta);
  if (!meta) return null;
  const { name } = (names[NAME + r.id] ?? {}) as { name?: string };
  return { id: r.id, name: name || plainName(meta), meta, bytes: r.bytes, text: r.text };
}

/** Looks again at what is kept. */
export async function refreshShelf(): Promise<readonly ShelfRun[]> {
  if (keeping.get().status !== 'ok') return [];
  try {
    const [runs, names] = await Promise.all([kept.listRuns(), kept.loadDocs(NAME)]);
    const list = runs
      .map((r) => onShelf(r, names))
      .filter((r) => r !== null)
      .filter(({ id }) => !unwanted.has(id))
      .sort((a, b) => b.meta.savedAt - a.meta.savedAt);
    shelf.set(list);
    void measureRoom();
    return list;
  } catch (e) {
    notify('warning', `The models that are kept here could not be listed. ${plainError(e)}`);
    return [];
  }
}

async function changing(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (e) {
    notify('error', plainError(e));
  }
  await refreshShelf();
}

export function rename(run: ShelfRun, name: string): Promise<void> {
  return changing(async () => {
    const trimmed = name.trim().slice(0, 80);
    if (trimmed === '') await kept.removeDoc(NAME + run.id);
    else await kept.saveDoc(NAME + run.id, { name: trimmed });
  });
}

/** A copy is written as a whole: one that is not wanted any more goes when it is there. */
export function copyRun(run: ShelfRun, signal: AbortSignal): Promise<void> {
  const id = newId();
  const copying = changing(async () => {
    await kept.copyRun(run.id, id);
    await kept.saveDoc(NAME + id, { name: `${run.name}, copy`.slice(0, 80) });
  });
  const drop = async () => {
    await kept.dropRun(id);
    await kept.removeDoc(NAME + id);
  };
  signal.addEventListener('abort', () => {
    unwanted.add(id);
    void copying.then(() => changing(drop));
  });
  return copying;
}

/**
 * Takes a run from the shelf; until the page is closed it can come back. After a cancel it is there
 * as before. Of a run that is open, `takeBack` makes it that run again; null: it is not open.
 */
export function removeRun(
  run: ShelfRun,
  signal: AbortSignal,
  takeBack: (() => void) | null = null,
): Promise<void> {
  const restore = async () => {
    await kept.restoreRun(run.id);
    takeBack?.();
  };
  return changing(async () => {
    await kept.removeRun(run.id).catch((e: unknown) => {
      takeBack?.();
      throw e;
    });
    if (signal.aborted) {
      await restore();
      return;
    }
    compared.set(compared.get().filter((id) => id !== run.id));
    const open = takeBack ? ' It is still open here: if it goes on, it is kept as a new model.' : '';
    notify('info', `“${run.name}” is deleted.${open}`, {
      label: 'Undo',
      run: () => void changing(restore),
    });
  });
}

export function compare(id: string, on: boolean): void {
  const others = compared.get().filter((other) => other !== id);
  compared.set(on ? [...others, id] : others);
}
