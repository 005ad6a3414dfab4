// SPDX-License-Identifier: Apache-2.0
/**
 * calls_train.ts - runs: making, continuing, stepping, asking, saving.
 */
import { numbers, PENDING, type Ptr, STOPPED, type Struct } from './abi.js';
import { type Call, offering, using } from './calling.js';
import { converted, dropProbes, FILE_KINDS, pieces, SAVED, saveModel, takeSaved } from './calls_model.js';
import { type Core, type Frame, SLICE_MS } from './core.js';
import type { Entry } from './registry.js';
import { Cancelled, type Task } from './tasks.js';
import type { StepReport } from './types.js';

function addTrainer(core: Core, at: Ptr, needs: Entry[], model?: Entry): Entry {
  return core.registry.add('trainer', at, needs, () => core.c.tg_trainer_free(at), model);
}

export const trainerNew: Call<'trainerNew'> = async (core, task, modelId, textId, options) => {
  const model = core.registry.get('model', modelId);
  const text = core.registry.get('text', textId);
  return using([model, text], () =>
    core.framed(task, async (frame) => {
      await task.hold(modelId, textId);
      const out = frame.alloc(8);
      const given = core.writeTrainOptions(frame, options);
      const { context } = core;
      await core.job(task, frame, [], 'tg_trainer_new', context, model.at, text.at, given, out);
      return { id: addTrainer(core, core.memory.pointer(out), [model, text], model).id };
    }));
};

export const trainerOpen: Call<'trainerOpen'> = async (core, task, file, textId, steps) => {
  const text = core.registry.get('text', textId);
  return using([text], () =>
    core.framed(task, (frame) =>
      offering(core, file, 'run', async (name) => {
        await task.hold(textId);
        const out = frame.alloc(8);
        const path = frame.string(name);
        await core.job(
          task, frame, [], 'tg_trainer_open', core.context, path, text.at, steps, out,
        );
        const trainer = addTrainer(core, core.memory.pointer(out), [text]);
        const at = core.c.tg_trainer_model(trainer.at);
        const model = core.registry.add('model', at, [trainer], () => dropProbes(core, model));
        trainer.model = model;
        trainer.owned = model;
        return { id: trainer.id, model: { id: model.id, pieces: pieces(core, frame, at) } };
      })));
};

function report(raw: Struct<'tg_step_report'>): StepReport {
  const lossHash = raw.lossHash.toString(16).padStart(16, '0');
  return { ...numbers(raw), lossHash };
}

export const steps: Call<'steps'> = async (core, task, id, n, ahead) => {
  const trainer = core.registry.get('trainer', id);
  const held = [id, trainer.model!.id];
  const { c, memory } = core;
  return using([trainer], () =>
    core.framed(task, async (frame) => {
      const out = frame.alloc(memory.size('tg_step_report'));
      try {
        for (let done = 0; done < n;) {
          await task.room(ahead);
          trainer.check();
          await task.hold(...held);
          const status = core.ok(c.tg_trainer_poll(trainer.at, SLICE_MS, out));
          if (c.tg_trainer_steady(trainer.at)) task.release(...held);
          if (status === STOPPED) return;
          if (status !== PENDING) {
            task.emit(report(memory.read('tg_step_report', out)));
            done++;
          }
          await task.turn(status === PENDING ? core.host.gpus.next() : undefined);
        }
      } catch (error) {
        if (!(error instanceof Cancelled)) throw error;
      } finally {
        if (task.alive && !c.tg_trainer_steady(trainer.at)) finishUpdate(core, trainer);
      }
    }));
};

/** The weights of a stopped run must be those of one moment before anybody reads them. The caller
 *  that stopped it does not wait for that; whoever reads them does. */
function finishUpdate(core: Core, trainer: Entry): void {
  core.background((task) =>
    using([trainer], () =>
      core.framed(task, async (frame) => {
        const out = frame.alloc(core.memory.size('tg_step_report'));
        await task.hold(trainer.id, trainer.model!.id);
        while (!core.c.tg_trainer_steady(trainer.at)) {
          core.ok(core.c.tg_trainer_poll(trainer.at, SLICE_MS, out));
          await task.turn(core.host.gpus.next());
        }
      })));
}

/** A call on a trainer that has it and its model for itself from beginning to end. */
async function alone<T>(
  core: Core, task: Task, id: number, body: (trainer: Entry, frame: Frame) => Promise<T>,
): Promise<T> {
  const trainer = core.registry.get('trainer', id);
  return using([trainer], () =>
    core.framed(task, async (frame) => {
      await task.hold(id, trainer.model!.id);
      return body(trainer, frame);
    }));
}

export const trainerDone: Call<'trainerDone'> = async (core, _task, id) =>
  Number(core.c.tg_trainer_steps_done(core.registry.get('trainer', id).at));

export const trainerOptions: Call<'trainerOptions'> = async (core, task, id) => {
  const trainer = core.registry.get('trainer', id);
  return core.framed(task, (frame) => {
    const at = core.defaults(frame, 'tg_train_options');
    core.ok(core.c.tg_trainer_options(trainer.at, at));
    return core.readTrainOptions(at);
  });
};

export const trainerSetSteps: Call<'trainerSetSteps'> = (core, task, id, total) =>
  alone(core, task, id, async (trainer) => {
    core.ok(core.c.tg_trainer_set_steps(trainer.at, total));
  });

export const trainerHistory: Call<'trainerHistory'> = async (core, task, id) => {
  const trainer = core.registry.get('trainer', id);
  return core.framed(task, (frame) => {
    const count = frame.alloc(8);
    const at = core.c.tg_trainer_history(trainer.at, count);
    const size = core.memory.size('tg_history_point');
    return Array.from({ length: core.memory.pointer(count) }, (_, i) =>
      numbers(core.memory.read('tg_history_point', at + i * size)));
  });
};

export const trainerEvaluate: Call<'trainerEvaluate'> = (core, task, id) =>
  alone(core, task, id, async (trainer, frame) => {
    const loss = frame.alloc(8);
    await core.job(task, frame, [], 'tg_trainer_eval', trainer.at, loss);
    return core.memory.double(loss);
  });

/** The run as a file of the core's own layout. */
async function saveRun(core: Core, task: Task, frame: Frame, trainer: Entry): Promise<Uint8Array> {
  await core.job(task, frame, [], 'tg_trainer_save', trainer.at, frame.string(SAVED));
  return takeSaved(core, task);
}

export const trainerSave: Call<'trainerSave'> = (core, task, id, kind) =>
  alone(core, task, id, async (trainer, frame) => {
    if (kind === 'run') return saveRun(core, task, frame, trainer);
    if (kind !== 'v2-f32') return saveModel(core, task, trainer.model!, kind);
    /* The one other layout with room for moments: the run is converted, not the model saved. */
    return converted(core, task, await saveRun(core, task, frame, trainer), FILE_KINDS[kind]);
  });

export const trainerSaveBest: Call<'trainerSaveBest'> = (core, task, id) =>
  alone(core, task, id, async (trainer, frame) => {
    await core.job(task, frame, [], 'tg_trainer_save_best', trainer.at, frame.string(SAVED));
    return takeSaved(core, task);
  });
