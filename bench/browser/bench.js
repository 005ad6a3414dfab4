// SPDX-License-Identifier: Apache-2.0
/**
 * bench.js - what run.py's page measures: engines on both devices, in turns, and posts.
 */
import { Engine } from './bundle/tinygpt.js';

const query = Object.fromEntries(new URLSearchParams(location.search));
const number = (name) => Number(query[name]);
const post = (kind, row = {}) =>
  fetch('/rows', { method: 'POST', body: JSON.stringify({ kind, ...row }) });

/** By linear interpolation between neighbours. */
function quantile(list, q) {
  const sorted = [...list].sort((a, b) => a - b);
  const at = q * (sorted.length - 1), low = Math.floor(at);
  return sorted[low] + (at - low) * ((sorted[low + 1] ?? sorted[low]) - sorted[low]);
}
const mean = (list) => list.reduce((sum, x) => sum + x, 0) / list.length;
function spread(list) {
  return { median: quantile(list, 0.5), low: quantile(list, 0.1), high: quantile(list, 0.9) };
}

const DEVICES = ['cpu', 'webgpu'];

async function open(device) {
  const threads = device === 'cpu' ? number('threads') : 1;
  const levers = device === 'webgpu' && query.levers ? { levers: query.levers } : {};
  const engine = await Engine.open({ device, threads, ...levers });
  await post('engine', { device, banner: engine.info.banner, notes: engine.info.notes });
  if (engine.info.device !== device) throw new Error(`${device}: ${engine.info.notes.at(-1)}`);
  if (engine.info.gpu?.software && !query.software) throw new Error('the adapter is software');
  return engine;
}

/** Milliseconds of each step of a block. */
async function block(trainer, steps) {
  const ms = [];
  let last = performance.now();
  for await (const _ of trainer.steps(steps)) {
    const now = performance.now();
    ms.push(now - last);
    last = now;
  }
  return ms;
}

/** Both devices at one preset, block by block. The first block of each is thrown away. */
async function train(engines, preset) {
  const steps = number('steps'), rounds = number('rounds');
  const runs = {}, times = { cpu: [], webgpu: [] }, ratios = [];
  for (const device of DEVICES) {
    const engine = engines[device];
    const { config } = engine.info.presets.find(({ name }) => name === preset);
    const text = await engine.text(await engine.stories(42, 400_000));
    const model = await engine.newModel(config);
    const trainer = await engine.newTrainer(model, text, {
      steps: steps * (rounds + 1), evalEvery: 0, valFraction: 0,
    });
    runs[device] = { text, model, trainer };
    await block(trainer, steps);
  }
  for (let round = 0; round < rounds; round++) {
    const now = {};
    for (const device of DEVICES) {
      const ms = await block(runs[device].trainer, steps);
      times[device].push(...ms);
      now[device] = quantile(ms, 0.5);
    }
    ratios.push(now.cpu / now.webgpu);
  }
  for (const device of DEVICES) {
    await post('train', { preset, device, ms: spread(times[device]), mean: mean(times[device]) });
    for (const object of Object.values(runs[device])) object.free();
  }
  await post('ratio', { what: `train ${preset}`, webgpuIsFaster: spread(ratios) });
}

const WORDS = 'the sky is blue and the sun is warm so we walk to the sea and back again ';

/** A text of at least so many tokens, other than those before: none of it is in the cache. */
function promptOf(tokens, round) {
  return `${round} ${WORDS.repeat(Math.ceil(tokens / 12))}`.split(' ').slice(0, tokens * 0.8).join(' ');
}

async function write(session, text, tokens) {
  const answer = session.complete(text, { tokens, temperature: 0 });
  answer.stats.catch(() => {});
  const ids = [];
  for await (const { id } of answer) if (id >= 0) ids.push(id);
  return { ids, stats: await answer.stats };
}

/** Milliseconds from an abort in the middle of an answer to its end. */
async function stopMs(session) {
  const control = new AbortController();
  let asked = 0;
  const answer = session.complete(promptOf(number('prompt'), 'stop'), {
    tokens: 1000, temperature: 0, signal: control.signal,
  });
  answer.stats.catch(() => {});
  setTimeout(() => {
    asked = performance.now();
    control.abort();
  }, 50);
  for await (const _ of answer);
  return asked === 0 ? 0 : performance.now() - asked;
}

async function chat(engines) {
  const prompt = number('prompt'), tokens = number('tokens');
  const file = await (await fetch('/model')).blob();
  const sessions = {}, read = { cpu: [], webgpu: [] }, wrote = { cpu: [], webgpu: [] };
  const ratios = [], greedy = {};
  for (const device of DEVICES) {
    const engine = engines[device];
    const before = await engine.memoryBytes();
    const model = await engine.openChatModel(file);
    sessions[device] = await model.session({ ctx: Math.min(4 * (prompt + tokens), model.info.ctx) });
    greedy[device] = (await write(sessions[device], promptOf(prompt, 'first'), tokens)).ids;
    await post('memory', {
      device, fileBytes: file.size, loadMs: model.info.loadMs,
      moduleBytes: (await engine.memoryBytes()) - before, gpuBytes: await engine.gpuBytes(),
    });
  }
  const differs = greedy.cpu.findIndex((id, i) => id !== greedy.webgpu[i]);
  await post('greedy', { tokens: greedy.cpu.length, sameFirst: differs < 0 ? greedy.cpu.length : differs });
  for (let round = 0; round < number('rounds'); round++) {
    for (const device of DEVICES) {
      const { stats } = await write(sessions[device], promptOf(prompt, round), tokens);
      read[device].push((stats.promptTokens - stats.reusedTokens) / (stats.promptMs / 1e3));
      wrote[device].push(stats.tokPerS);
    }
    ratios.push(wrote.webgpu.at(-1) / wrote.cpu.at(-1));
  }
  for (const device of DEVICES) {
    await post('model', {
      device, readPerS: spread(read[device]), writtenPerS: spread(wrote[device]),
      stopMs: await stopMs(sessions[device]),
    });
  }
  await post('ratio', { what: 'writing', webgpuIsFaster: spread(ratios) });
}

async function main() {
  const engines = {};
  for (const device of DEVICES) engines[device] = await open(device);
  const checks = await engines.webgpu.checkKernels(undefined, { filter: query.ops });
  await post('kernels', checks);
  if (checks.failed > 0) throw new Error('shaders are wrong: nothing is timed');
  for (const preset of query.presets.split(',').filter(Boolean)) await train(engines, preset);
  if (query.model) await chat(engines);
}

main().then(() => post('end'), (error) => post('error', { error: String(error?.stack ?? error) }));
