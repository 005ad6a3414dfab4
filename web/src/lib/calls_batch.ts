// SPDX-License-Identifier: Apache-2.0
/**
 * calls_batch.ts - several conversations or texts of one model at once: each weight is read once for
 * all of them. A row is a session of the core's batch, and has what it would have alone.
 */
import type { Ptr } from './abi.js';
import { type Call, using } from './calling.js';
import { ends, generation, KEYS, pieceOf, statsOf, type Talker } from './calls_chat.js';
import { choose, TinygptError } from './errors.js';
import type { Entry } from './registry.js';
import { Cancelled } from './tasks.js';
import type { BatchPiece } from './types.js';

interface Rows {
  talkers: Talker[];
  /** Rows that somebody has stopped since the answers began. */
  stopped: Set<number>;
}
const rowsOf = new WeakMap<Entry, Rows>();

/** TG_STOPPED of tg_status. */
const STOPPED = 2;

function rows(batch: Entry, ...wanted: number[]): Rows {
  const all = rowsOf.get(batch)!;
  const last = all.talkers.length - 1;
  for (const row of wanted) {
    if (Number.isInteger(row) && row >= 0 && row <= last) continue;
    throw new TinygptError('ARG', `batch: want a row of 0..${last}, have ${row}`);
  }
  return all;
}

export const batchNew: Call<'batchNew'> = async (core, task, id, n, ctx, keys, template) => {
  const model = core.registry.get('model', id);
  return core.framed(task, (frame) => {
    const { c } = core;
    if (!(Number.isInteger(n) && n >= 0)) {
      throw new TinygptError('ARG', `batch: want a number of rows, have ${n}`);
    }
    if (template !== null) ends(core, frame, c.tg_model_tokenizer(model.at), template);
    const out = frame.alloc(8);
    const type = choose(KEYS, keys, 'keys');
    core.ok(c.tg_batch_new(core.context, model.at, n, ctx, type, out));
    const at = core.memory.pointer(out);
    const entry = core.registry.add('batch', at, [model], () => c.tg_batch_free(at), model);
    const talkers = Array.from({ length: n }, (_, i) =>
      ({ at: c.tg_batch_session(at, i), model, template }));
    rowsOf.set(entry, { talkers, stopped: new Set() });
    return { id: entry.id, capacity: c.tg_session_capacity(talkers[0]!.at) };
  });
};

export const batchAnswer: Call<'batchAnswer'> = async (core, task, id, said, options) => {
  const batch = core.registry.get('batch', id);
  if (said.length === 0) throw new TinygptError('ARG', 'batch: want one text at least, have none');
  const { talkers } = rows(batch, said.length - 1);
  const { memory, host } = core;
  const start = performance.now();
  return using([batch], () =>
    core.framed(task, async (frame) => {
      await task.hold(id);
      const { stopped } = rows(batch);
      stopped.clear();
      const users = said.map((_, row) => host.listen((at?: Ptr) => {
        if (at === undefined) return task.cancelled || batch.freed || stopped.has(row) ? 1 : 0;
        const piece = pieceOf(core, talkers[row]!, at, start);
        task.emit({ ...piece, row } satisfies BatchPiece);
        return 0;
      }));
      try {
        const what = frame.alloc(8 * said.length);
        memory.setPointers(what, said.map((one, row) =>
          generation(core, frame, talkers[row]!, one, options[row] ?? {}, users[row]!)));
        const size = memory.size('tg_generate_stats');
        const stats = frame.alloc(size * said.length);
        const statuses = frame.alloc(4 * said.length);
        let all = false;
        try {
          await core.job(
            task, frame, [batch.model!.id], 'tg_batch_continue', batch.at, what, said.length,
            stats, statuses,
          );
        } catch (error) {
          if (!(error instanceof Cancelled)) throw error;
          all = true;
        }
        return said.map((_, row) => {
          const status = core.ok(memory.int32(statuses + 4 * row));
          return statsOf(core, talkers[row]!, stats + row * size, all || status === STOPPED);
        });
      } finally {
        users.forEach((user) => host.unlisten(user));
      }
    }));
};

/** Asked for while the answers are written, so it holds nothing. */
export const batchStop: Call<'batchStop'> = async (core, _task, id, row) => {
  rows(core.registry.get('batch', id), row).stopped.add(row);
};

export const batchCopy: Call<'batchCopy'> = async (core, task, id, to, from) => {
  const batch = core.registry.get('batch', id);
  rows(batch, to, from);
  await using([batch], async () => {
    await task.hold(id);
    core.ok(core.c.tg_batch_copy(batch.at, to, from));
  });
};
