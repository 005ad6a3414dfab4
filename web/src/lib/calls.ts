// SPDX-License-Identifier: Apache-2.0
/**
 * calls.ts - the table of all calls of protocol.ts, and those on texts and on the engine itself.
 * Each is one function: arguments to C, a job or a call, results out of the module's memory.
 */
import { numbers } from './abi.js';
import { type Call, config, Gathered, listening, offering, using } from './calling.js';
import * as batch from './calls_batch.js';
import * as chat from './calls_chat.js';
import * as model from './calls_model.js';
import * as train from './calls_train.js';
import * as write from './calls_write.js';
import type { Method } from './protocol.js';
import type { Check, LintFinding } from './types.js';

const textNew: Call<'textNew'> = (core, task, source) =>
  core.framed(task, (frame) =>
    offering(core, source, 'text', async (name) => {
      task.check();
      const out = frame.alloc(8);
      core.ok(core.c.tg_text_open(core.context, frame.string(name), out));
      const at = core.memory.pointer(out);
      const entry = core.registry.add('text', at, [], () => core.c.tg_text_free(at));
      return { id: entry.id, bytes: Number(core.c.tg_text_bytes(at)) };
    }));

const textSha256: Call<'textSha256'> = async (core, task, id) => {
  const text = core.registry.get('text', id);
  return using([text], () =>
    core.framed(task, async (frame) => {
      await task.hold(id);
      const digest = frame.alloc(32);
      await core.job(task, frame, [], 'tg_text_sha256', text.at, digest);
      const bytes = core.memory.copy(digest, 32);
      return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
    }));
};

const lint: Call<'lint'> = async (core, task, id, ctx, valFraction) => {
  const text = core.registry.get('text', id);
  const levels = ['error', 'warning', 'remark'] as const;
  const findings: LintFinding[] = [];
  const take = (at: number) => {
    const found = core.memory.read('tg_lint', at);
    findings.push({ level: levels[found.level] ?? 'remark', code: found.code, text: found.text });
  };
  return using([text], () =>
    core.framed(task, (frame) =>
      listening(core, take, async (user) => {
        await task.hold(id);
        const report = core.c.tg_wasm_on_lint();
        await core.job(task, frame, [], 'tg_text_lint', text.at, ctx, valFraction, report, user);
        return findings;
      })));
};

const stories: Call<'stories'> = async (core, task, seed, bytes) => {
  await core.prepareStories();
  const gathered = new Gathered(core);
  return core.framed(task, (frame) =>
    listening(core, gathered.take, async (user) => {
      const onText = core.c.tg_wasm_on_text();
      await core.job(task, frame, [], 'tg_stories', core.context, seed, bytes, onText, user);
      return gathered.bytes();
    }));
};

/* -------------------------------------------------------------------------- the engine itself */

const forecast: Call<'forecast'> = async (core, task, value, options, textId) => {
  const text = textId === 0 ? undefined : core.registry.get('text', textId);
  const held = text ? [text] : [];
  return using(held, () => core.framed(task, async (frame) => {
    const out = frame.alloc(core.memory.size('tg_forecast'));
    const at = config(core, frame, value);
    const given = core.writeTrainOptions(frame, options);
    const { context } = core;
    await core.job(task, frame, [], 'tg_forecast_run', context, at, text?.at ?? 0, given, out);
    const raw = numbers(core.memory.read('tg_forecast', out));
    return { ...raw, advice: raw.advice.split('\n').filter((line) => line !== '') };
  }));
};

const measurePeak: Call<'measurePeak'> = (core, task) =>
  core.framed(task, async (frame) => {
    const out = frame.alloc(8);
    await core.job(task, frame, [], 'tg_measure_peak', core.context, out);
    return core.memory.double(out);
  });

const measureGpu: Call<'measureGpu'> = (core, task) =>
  core.framed(task, async (frame) => {
    const [rate, gflops] = [frame.alloc(8), frame.alloc(8)];
    await core.job(task, frame, [], 'tg_measure_gpu', core.context, rate, gflops);
    return { bytesPerSecond: core.memory.double(rate), gflops: core.memory.double(gflops) };
  });

const measureRead: Call<'measureRead'> = (core, task, bytes) =>
  core.framed(task, (frame) => {
    const out = frame.alloc(8);
    core.ok(core.c.tg_measure_read(core.context, bytes, out));
    return core.memory.double(out);
  });

const checkKernels: Call<'checkKernels'> = (core, task, filter) => {
  let passed = 0;
  const take = (at: number) => {
    const check: Check = core.memory.read('tg_check', at);
    if (check.passed) passed++;
    task.emit(check);
  };
  return core.framed(task, (frame) =>
    listening(core, take, async (user) => {
      await core.prepareCases();
      const failed = frame.alloc(8);
      const part = filter === '' ? 0 : frame.string(filter);
      const report = core.c.tg_wasm_on_check();
      await core.job(
        task, frame, [], 'tg_check_kernels', core.context, part, report, user, failed,
      );
      return { passed, failed: core.memory.pointer(failed) };
    }));
};

const checkFile: Call<'checkFile'> = (core, task, file) => {
  const gathered = new Gathered(core);
  return core.framed(task, (frame) =>
    offering(core, file, 'file', (name) =>
      listening(core, gathered.take, async (user) => {
        const path = frame.string(name);
        await core.job(task, frame, [], 'tg_file_check', core.context, path);
        const onText = core.c.tg_wasm_on_text();
        core.ok(core.c.tg_file_info(core.context, path, false, onText, user));
        return gathered.text();
      })));
};

/** All calls but those that begin and end the engine, which the worker answers itself. */
export const CALLS: { [M in Exclude<Method, 'open' | 'close'>]: Call<M> } = {
  lint,
  stories,
  forecast,
  measurePeak,
  measureGpu,
  measureRead,
  checkKernels,
  checkFile,
  memoryBytes: async (core) => core.memoryBytes(),
  gpuBytes: async (core) => core.gpuBytes(),
  textNew,
  textSha256,
  vocabularyTrain: model.vocabularyTrain,
  modelNew: model.modelNew,
  modelOpen: model.modelOpen,
  modelInfo: model.modelInfo,
  modelTokenize: model.modelTokenize,
  modelSave: model.modelSave,
  modelProbe: model.modelProbe,
  sessionNew: write.sessionNew,
  generate: write.generate,
  chatFacts: chat.chatFacts,
  chatOpen: chat.chatOpen,
  chatTokenize: chat.chatTokenize,
  chatNew: chat.chatNew,
  answer: chat.answer,
  batchNew: batch.batchNew,
  batchAnswer: batch.batchAnswer,
  batchStop: batch.batchStop,
  batchCopy: batch.batchCopy,
  chatSave: chat.chatSave,
  chatLoad: chat.chatLoad,
  embed: chat.embed,
  trainerNew: train.trainerNew,
  trainerOpen: train.trainerOpen,
  steps: train.steps,
  trainerDone: train.trainerDone,
  trainerOptions: train.trainerOptions,
  trainerSetSteps: train.trainerSetSteps,
  trainerHistory: train.trainerHistory,
  trainerEvaluate: train.trainerEvaluate,
  trainerSave: train.trainerSave,
  trainerSaveBest: train.trainerSaveBest,
  free: async (core, _task, id) => core.registry.free(id),
};
