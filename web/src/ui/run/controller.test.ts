// SPDX-License-Identifier: Apache-2.0
/**
 * A made-up engine, whose loss depends on the step alone, shows what the controller does with one:
 * nothing is trained twice or left out, samples belong to their step, and no failure loses a run.
 */
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { TinygptError } from '../../lib/errors';
import type {
  FileSource,
  GenerateStats,
  GptConfig,
  HistoryPoint,
  ModelInfo,
  Piece,
  StepReport,
  TextSource,
  TrainOptions,
  VocabularyKind,
} from '../../lib/types';
import { RunController, type RunMeta, type RunText } from './controller';
import type { EnginePort, ModelPort, RunStore, SessionPort, TextPort, TrainerPort } from './ports';
import { defaultSettings, type Settings, trainOptions } from './settings';

class World implements EnginePort<FakeModel, TextPort> {
  clock = 0;
  msPerStep = 10;
  alive = 0;
  opened = 0;
  trapsAtSave = false;
  /** What taking a save holds training up for. */
  saveMs = 0;
  trainers: FakeTrainer[] = [];
  /** Behind this step a device is lost, and the run goes back to the step before; 0: never. */
  goesBackAt = 0;
  /** What goes wrong, and at which step. */
  faultAt: { step: number; error: Error } | null = null;

  thing(): TextPort {
    this.alive++;
    let freed = false;
    return {
      bytes: 1000,
      free: () => {
        if (!freed) this.alive--;
        freed = true;
      },
    };
  }

  async text(_: TextSource) {
    return this.thing();
  }

  /** The vocabularies that models were made with, and the text's answer to how many it has. */
  vocabularies: (readonly [kind: string, tokens: number])[] = [];
  tooFew = false;

  async newModel(c: GptConfig, _seed = 42, vocabulary?: FileSource) {
    return new FakeModel(this, vocabulary === undefined ? c.vocab : 64);
  }

  async trainVocabulary(_: TextPort, kind: VocabularyKind, tokens: number) {
    if (this.tooFew) throw new TinygptError('DATA', 'fewer');
    this.vocabularies.push([kind, tokens]);
    return new Uint8Array(2);
  }

  async openModel() {
    this.opened++;
    return new FakeModel(this);
  }

  async newTrainer(m: FakeModel, _: TextPort, o: Partial<TrainOptions> = {}) {
    return this.add(new FakeTrainer(this, m, o as TrainOptions, 0));
  }

  async openTrainer(f: FileSource, _: TextPort, steps = 0) {
    const { done, options } = JSON.parse(await (f as Blob).text()) as SavedRun;
    const total = steps > 0 ? steps : options.steps;
    return this.add(new FakeTrainer(this, new FakeModel(this), { ...options, steps: total }, done));
  }

  add(t: FakeTrainer): FakeTrainer {
    this.trainers.push(t);
    return t;
  }
}

interface SavedRun {
  done: number;
  options: TrainOptions;
}

class FakeModel implements ModelPort {
  #life: TextPort;
  sampled: number[] = [];
  trainer: FakeTrainer | null = null;

  constructor(readonly world: World, readonly vocab = 256) {
    this.#life = world.thing();
  }

  async info(): Promise<ModelInfo> {
    return {
      config: { layers: 3, width: 96, heads: 3, ctx: 64, vocab: this.vocab, mlp: 384 },
      params: 366432,
    } as ModelInfo;
  }

  async session(): Promise<SessionPort> {
    const at = this.trainer?.at ?? -1;
    this.sampled.push(at);
    async function* pieces(): AsyncGenerator<Piece> {
      yield { id: 0, text: `at ${at}`, ms: 1 };
    }
    return {
      generate: () => Object.assign(pieces(), { stats: Promise.resolve({} as GenerateStats) }),
      free() {},
    };
  }

  free() {
    this.#life.free();
  }
}

class FakeTrainer implements TrainerPort<FakeModel> {
  #life: TextPort;
  taken: number[] = [];

  constructor(
    readonly world: World,
    readonly model: FakeModel,
    public o: TrainOptions,
    public at: number,
  ) {
    this.#life = world.thing();
    model.trainer = this;
  }

  async *steps(
    n = Infinity,
    { signal }: { signal?: AbortSignal } = {},
  ): AsyncGenerator<StepReport> {
    for (let i = 0; i < n && this.at < this.o.steps; i++) {
      // A worker's messages come as tasks: the page breathes between them.
      await new Promise((resolve) => setImmediate(resolve));
      if (signal?.aborted) return;
      const fault = this.world.faultAt;
      if (fault && this.at + 1 === fault.step) {
        this.world.faultAt = null;
        throw fault.error;
      }
      this.at++;
      this.taken.push(this.at);
      this.world.clock += this.world.msPerStep;
      const at = this.at;
      yield this.report();
      if (at === this.world.goesBackAt) {
        this.world.goesBackAt = 0;
        this.at--;
      }
    }
  }

  report(): StepReport {
    const valLoss = this.at % 50 === 0 ? lossAt(this.at) + 0.1 : NaN;
    return {
      step: this.at,
      loss: lossAt(this.at),
      valLoss,
      valIsBest: !Number.isNaN(valLoss),
      lr: 1e-3,
      gradNorm: 1,
      ms: this.world.msPerStep,
      tokPerS: 1e5,
      shareOfPeak: 0.5,
      lossHash: 'ab',
      skipped: false,
      earlyStop: false,
      badTensor: '',
      bitsPerByte: NaN,
      valBitsPerByte: NaN,
    };
  }

  async done() {
    return this.at;
  }

  async options() {
    return this.o;
  }

  async setSteps(total: number) {
    this.o = { ...this.o, steps: total };
  }

  async history(): Promise<HistoryPoint[]> {
    return Array.from({ length: this.at }, (_, i) => ({
      step: i + 1,
      loss: lossAt(i + 1),
      valLoss: NaN,
    }));
  }

  async save() {
    if (this.world.trapsAtSave) throw new TinygptError('TRAP', 'unreachable');
    this.world.clock += this.world.saveMs;
    const saved: SavedRun = { done: this.at, options: this.o };
    return new TextEncoder().encode(JSON.stringify(saved));
  }

  saveBest = this.save;

  free() {
    this.#life.free();
  }
}

function lossAt(step: number): number {
  return 5.5 / (1 + step / 100);
}

class MemoryStore implements RunStore {
  /** By id: the step and the text of the last save. */
  runs = new Map<string, { step: number; text: number }>();
  saved: { run: Uint8Array; meta: object } | null = null;
  full = false;

  async saveRun(id: string, run: Uint8Array, meta: object, text: number) {
    if (this.full) throw Object.assign(new Error('no room'), { name: 'QuotaError' });
    this.saved = { run, meta };
    this.runs.set(id, { step: (meta as RunMeta).step, text });
  }

  async keepText() {
    return 7;
  }

  weights = new Map<string, Blob>();

  async keepWeights(id: string, step: number, weights: Blob) {
    this.weights.set(`${id}.${step}`, weights);
    return true;
  }

  async dropWeights(id: string, step: number) {
    this.weights.delete(`${id}.${step}`);
  }

  async loadWeights(id: string, step: number) {
    return this.weights.get(`${id}.${step}`) ?? null;
  }

  async listWeights(id: string) {
    return [...this.weights.keys()]
      .filter((key) => key.startsWith(`${id}.`))
      .map((key) => Number(key.split('.')[1]));
  }
}

const TEXT: RunText = { blob: new Blob(['at 0123456789\nit is so\n'.repeat(40)]), name: 'a text', sha256: 'ff' };
let world: World;
let store: MemoryStore;
let told: string[];
/** How many times another engine is at hand, and what it was asked for. */
let others = 0;
let refused: string[] = [];
let ended: number;
let made: number;
let c: RunController<FakeModel, TextPort>;

function settings(s: Partial<Settings> = {}): Settings {
  return { ...defaultSettings(), steps: 400, ...s };
}

beforeEach(() => {
  world = new World();
  store = new MemoryStore();
  told = [];
  ended = 0;
  made = 0;
  others = 0;
  refused = [];
  c = new RunController<FakeModel, TextPort>({
    engine: async () => world,
    another: async (e) => {
      refused.push(String(e));
      return others-- > 0;
    },
    store,
    now: () => world.clock,
    newId: () => `run${++made}`,
    onModel: () => {},
    tell: (_, text) => told.push(text),
    onEnd: () => ended++,
  });
  c.storing(true);
});

async function until(test: () => boolean): Promise<void> {
  const deadline = Date.now() + 100_000;
  while (!test()) {
    if (Date.now() > deadline) throw new Error(`waited in vain: ${JSON.stringify(c.state.get())}`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

const phase = () => c.state.get().phase;
const all = (n: number) => Array.from({ length: n }, (_, i) => i + 1);

describe('RunController', () => {
  it('takes every step once, to the end, and judges', async () => {
    await c.start(settings(), TEXT);
    await until(() => phase() === 'done');
    const s = c.state.get();
    expect(world.trainers[0]?.taken).toEqual(all(400));
    expect(c.curve.step).toEqual(all(400));
    expect(s.step).toBe(400);
    expect(s.verdict?.title).toBeTruthy();
    expect(s.best?.step).toBe(400);
    expect(s.milestones.map((m) => m.id)).toContain('letters');
    expect(ended).toBe(1);
    expect((store.saved?.meta as RunMeta).step).toBe(400);
  });

  it('makes nothing that is cancelled, and closes no other run for it', async () => {
    const saved = new Blob([JSON.stringify({ done: 5, options: trainOptions(settings()) })]);
    const cancelled = new AbortController();
    cancelled.abort();
    expect(await c.open(saved, TEXT, {}, 'a', 0, cancelled.signal)).toBe(false);
    const late = new AbortController();
    const stop = c.state.subscribe((s) => s.phase === 'preparing' && late.abort());
    expect(await c.open(saved, TEXT, {}, 'a', 0, late.signal)).toBe(false);
    stop();
    expect([phase(), world.alive]).toEqual(['idle', 0]);
    const other = new AbortController();
    await c.start(settings(), TEXT, null, other.signal);
    other.abort();
    await until(() => phase() === 'done');
  });

  it('makes no vocabulary for a run that was given up before', async () => {
    let read = () => {};
    const text = world.text.bind(world);
    world.text = async (t) => {
      await new Promise<void>((resolve) => (read = resolve));
      return text(t);
    };
    const starting = c.start(settings({ tokens: 'chars' }), TEXT);
    await new Promise((resolve) => setTimeout(resolve, 20));
    await c.forget();
    read();
    await starting;
    expect([phase(), world.alive, world.vocabularies]).toEqual(['idle', 0, []]);
  });

  it('trains to its end while the store does not answer', async () => {
    store.saveRun = () => new Promise(() => {});
    store.keepWeights = () => new Promise(() => {});
    await c.start(settings(), TEXT);
    await until(() => phase() === 'done');
    expect(world.trainers[0]?.taken).toEqual(all(400));
  });

  it('makes a vocabulary of the text first where tokens are no bytes', async () => {
    await c.start(settings({ tokens: 'pieces', pieces: 300 }), TEXT);
    expect(c.state.get()).toMatchObject({ vocab: 64, unit: 'token' });
    await c.start(settings({ tokens: 'chars' }), TEXT);
    expect(c.state.get()).toMatchObject({ vocab: 64, unit: 'character' });
    expect(c.state.get().settings).toMatchObject({ tokens: 'chars', family: 'tinygpt' });
    await c.start(settings(), TEXT);
    expect(c.state.get()).toMatchObject({ vocab: 256, bytesPerToken: 1 });
    expect(world.vocabularies).toEqual([['bpe', 300], ['chars', 0]]);
    world.tooFew = true;
    await c.start(settings({ tokens: 'pieces' }), TEXT);
    expect(c.state.get().problem).toContain('Take fewer pieces');
  });

  it('goes on when a lost device repeats the one step of a chunk', async () => {
    world.msPerStep = 5000; // slower than a chunk is long
    world.goesBackAt = 3;
    await c.start(settings({ steps: 6 }), TEXT);
    await until(() => phase() === 'done');
    expect(world.trainers[0]?.taken).toEqual([1, 2, 3, 3, 4, 5, 6]);
    expect(c.state.get().step).toBe(6);
  });

  it('samples at exactly the steps that it names', async () => {
    await c.start(settings({ sampleEvery: 150 }), TEXT);
    await until(() => phase() === 'done');
    expect([...new Set(world.trainers[0]?.model.sampled)]).toEqual([0, 150, 300, 400]);
    expect(c.state.get().prompt).toBe('it i');
    expect(c.state.get().samples.map((s) => [s.step, s.text])).toEqual(
      [0, 150, 300, 400].map((n) => [n, `at ${n}`]),
    );
  });

  it('keeps the weights of early steps and of samples, and finds them again', async () => {
    await c.start(settings({ sampleEvery: 150 }), TEXT);
    await until(() => c.state.get().savedStep === 400);
    const steps = [0, 10, 30, 100, 150, 300, 400];
    expect(c.state.get().keptSteps).toEqual(steps);
    const at = async (step: number) =>
      (JSON.parse((await (await c.weightsAt(step))?.text()) ?? '{}') as SavedRun).done;
    for (const step of steps) expect(await at(step)).toBe(step);
    const { run, meta } = store.saved!;
    await c.open(new Blob([run as Uint8Array<ArrayBuffer>]), TEXT, meta as RunMeta, 'run1');
    expect(c.state.get().keptSteps).toEqual(steps);
  });

  it('saves at its start, and then once a second where that costs little', async () => {
    const saves = vi.spyOn(store, 'saveRun');
    const steps = () => saves.mock.calls.map(([, , meta]) => (meta as RunMeta).step);
    await c.start(settings({ steps: 1000 }), TEXT);
    await until(() => phase() === 'done');
    expect(steps()[0]).toBe(0);
    // Ten seconds of training, 10 ms a step.
    const apart = steps().slice(1).map((step, i) => step - (steps()[i] ?? 0));
    expect(Math.max(...apart)).toBeLessThanOrEqual(101);
    expect(steps().length).toBeLessThan(16);
    expect(store.runs.get('run1')).toEqual({ step: 1000, text: 7 });
  });

  it('saves seldom where saving takes long, and says what would be lost', async () => {
    const saves = vi.spyOn(store, 'saveRun');
    world.saveMs = 2000;
    world.msPerStep = 1000;
    await c.start(settings({ steps: 100 }), TEXT);
    await until(() => c.state.get().step === 20);
    expect(c.unsavedMs).toBeGreaterThan(0);
    await until(() => phase() === 'done');
    expect(saves.mock.calls.length).toBeLessThan(10);
    expect(c.unsavedMs).toBe(0);
    store.full = true;
    await c.unpause(5);
    await until(() => phase() === 'done');
    expect(c.unsavedMs).toBe(Infinity);
  });

  it('keeps a run that makes room for another', async () => {
    await c.start(settings({ steps: 1e6 }), TEXT);
    await until(() => c.state.get().step > 30);
    await c.start(settings({ steps: 20 }), TEXT);
    await until(() => phase() === 'done');
    expect(store.runs.get('run1')?.step).toBe(world.trainers[0]?.at);
    expect(store.runs.get('run2')?.step).toBe(20);
    expect(c.state.get().id).toBe('run2');
  });

  it('a deletion of the open run is undone by no save, and its work is kept as a new run', async () => {
    await c.start(settings(), TEXT);
    await until(() => c.state.get().step >= 50);
    await c.pause();
    const { step } = c.state.get();
    // A save that was begun before is written to nobody.
    const saving = c.save();
    expect(c.disown('another')).toBe(null);
    expect(c.disown('run1')).not.toBe(null);
    store.runs.clear();
    await saving;
    await c.save();
    expect([...store.runs]).toEqual([]);
    expect(c.unsavedMs).toBe(0);
    expect(c.state.get()).toMatchObject({ id: 'run2', savedStep: null, keptSteps: [] });
    await c.unpause();
    await until(() => c.state.get().step > step);
    await c.pause();
    expect([...store.runs]).toEqual([['run2', { step: c.state.get().step, text: 7 }]]);
  });

  it('a deleted run that stays as it is goes with the next one, and Undo makes it itself again', async () => {
    await c.start(settings(), TEXT);
    await until(() => phase() === 'done');
    const kept = c.state.get().keptSteps;
    const takeBack = c.disown('run1');
    takeBack?.();
    expect(c.state.get()).toMatchObject({ id: 'run1', savedStep: 400, keptSteps: kept });
    c.disown('run1');
    store.runs.clear();
    await c.leave();
    expect([...store.runs]).toEqual([]);
  });

  it('opens a run standing still, and judges one that is over', async () => {
    await c.start(settings({ steps: 1e6 }), TEXT);
    await until(() => c.state.get().step > 30);
    await c.pause();
    const { run, meta } = store.saved!;
    const blob = new Blob([run as Uint8Array<ArrayBuffer>]);
    const { step } = meta as RunMeta;
    expect(await c.open(blob, { ...TEXT, kept: 3 }, meta as RunMeta, 'old')).toBe(true);
    expect(c.state.get()).toMatchObject({ id: 'old', phase: 'paused', step, savedStep: step });
    expect(c.unsavedMs).toBe(0);
    await c.unpause();
    await until(() => c.state.get().step > step);
    await c.pause();
    expect(store.runs.get('old')?.text).not.toBe(0);
    await c.open(blob, TEXT, meta as RunMeta, 'old', step);
    expect(phase()).toBe('done');
    expect(c.state.get().verdict).not.toBeNull();
  });

  it('gives back what was being made when something else was wanted', async () => {
    const slow = world.newTrainer.bind(world);
    let go = () => {};
    world.newTrainer = async (...a) => {
      await new Promise<void>((resolve) => (go = resolve));
      return slow(...a);
    };
    const first = c.start(settings(), TEXT);
    await new Promise((resolve) => setImmediate(resolve));
    await c.forget();
    go();
    await first;
    expect(phase()).toBe('idle');
    expect(world.alive).toBe(0);
  });

  it('pauses, goes on, stops and continues for more: no step is lost or repeated', async () => {
    await c.start(settings({ steps: 100_000 }), TEXT);
    await until(() => c.state.get().step > 50);
    await c.pause();
    expect(phase()).toBe('paused');
    const at = c.state.get().step;
    expect(at).toBe(world.trainers[0]?.at);
    expect((store.saved?.meta as RunMeta).step).toBe(at);
    await c.unpause();
    await until(() => c.state.get().step > at + 50);
    await c.stop();
    expect(phase()).toBe('done');
    expect(c.state.get().verdict?.title).toBe('Stopped early');
    const stopped = c.state.get().step;
    await c.unpause(25);
    await until(() => phase() === 'done');
    expect(c.state.get().step).toBe(stopped + 25);
    expect(world.trainers[0]?.taken).toEqual(all(stopped + 25));
  });

  it('goes on from a save as if nothing had been', async () => {
    await c.start(settings({ steps: 100_000 }), TEXT);
    await until(() => c.state.get().step > 120);
    await c.pause();
    const { saved } = store;
    if (!saved) throw new Error('nothing was saved');
    const { step } = saved.meta as RunMeta;
    const run = new Blob([saved.run as Uint8Array<ArrayBuffer>]);
    await c.resume(run, TEXT, saved.meta as RunMeta, '', step + 30);
    await until(() => phase() === 'done');
    expect(world.trainers[1]?.taken).toEqual(all(30).map((i) => step + i));
    expect(c.state.get().from).toBe(step);
    expect(c.curve.step).toEqual(all(step + 30));
    expect(c.state.get().samples[0]?.step).toBe(0);
  });

  it('comes back from a trap at its last save, and says so', async () => {
    world.msPerStep = 1000;
    world.faultAt = { step: 47, error: new TinygptError('TRAP', 'unreachable') };
    await c.start(settings({ steps: 60 }), TEXT);
    await until(() => world.trainers[0]?.at === 46 && world.faultAt === null);
    await c.recover('unreachable');
    await until(() => phase() === 'done');
    const second = world.trainers[1];
    expect(second?.taken[0]).toBeLessThanOrEqual(47);
    expect(second?.taken[0]).toBeGreaterThan(1);
    expect(second?.taken.at(-1)).toBe(60);
    expect(c.curve.step).toEqual(all(60));
    expect(told.join()).toContain('goes on from step');
  });

  it('begins anew when the trap came before the first save', async () => {
    world.trapsAtSave = true;
    world.faultAt = { step: 3, error: new TinygptError('TRAP', 'unreachable') };
    await c.start(settings({ steps: 20 }), TEXT);
    await until(() => world.faultAt === null);
    world.trapsAtSave = false;
    await c.recover('unreachable');
    await until(() => phase() === 'done');
    expect(world.trainers[1]?.taken).toEqual(all(20));
  });

  it('begins anew from the same file when it began with one', async () => {
    world.trapsAtSave = true;
    world.faultAt = { step: 3, error: new TinygptError('TRAP', 'unreachable') };
    await c.start(settings({ steps: 20 }), TEXT, new Blob(['a model']));
    await until(() => world.faultAt === null);
    world.trapsAtSave = false;
    await c.recover('unreachable');
    await until(() => phase() === 'done');
    expect(world.opened).toBe(2);
  });

  it('gives up when the engine traps again and again, the save intact', async () => {
    await c.start(settings({ steps: 1e6 }), TEXT);
    for (let i = 0; i < 4; i++) await c.recover('unreachable');
    expect(phase()).toBe('failed');
    expect(c.state.get().problem).toContain('again and again');
  });

  it('trains on when there is no room for saves', async () => {
    store.full = true;
    world.msPerStep = 1000;
    await c.start(settings({ steps: 60 }), TEXT);
    await until(() => phase() === 'done');
    expect(c.state.get().step).toBe(60);
    expect(c.state.get().saveProblem).toContain('no room');
    expect(c.lastSave).not.toBeNull();
  });

  it('stops at numbers that ran away, with a plain sentence', async () => {
    world.faultAt = { step: 30, error: new TinygptError('NUMBER', 'loss: want a finite number') };
    await c.start(settings(), TEXT);
    await until(() => phase() === 'failed');
    expect(c.state.get().problem).toContain('lower learning rate');
  });

  it('shows why a run could not begin', async () => {
    world.newTrainer = async () => {
      throw new TinygptError('DATA', 'text: want 65 bytes, have 3');
    };
    await c.start(settings(), TEXT);
    expect(phase()).toBe('failed');
    expect(c.state.get().problem).toContain('want 65 bytes');
  });

  it('begins once more where another engine is at hand, and else says why not', async () => {
    const made = world.newTrainer.bind(world);
    let refusals = 1;
    world.newTrainer = async (...a) => {
      if (refusals-- > 0) throw new TinygptError('MEMORY', 'want 9 bytes, have no memory');
      return made(...a);
    };
    others = 1;
    await c.start(settings(), TEXT);
    await until(() => phase() === 'done');
    expect(refused).toHaveLength(1);
    refusals = 2;
    others = 1;
    await c.start(settings(), TEXT);
    expect(phase()).toBe('failed');
    expect(c.state.get().problem).toContain('not enough memory');
    expect(refused).toHaveLength(3);
  });

  it('gives back everything', async () => {
    await c.start(settings(), TEXT);
    await until(() => phase() === 'done');
    await c.start(settings({ steps: 1e6 }), TEXT);
    await until(() => c.state.get().step > 10);
    await c.forget();
    expect(phase()).toBe('idle');
    expect(world.alive).toBe(0);
  });

  it('asks the core for what the form shows', async () => {
    await c.start(settings({ lr: 5e-4, patience: 3 }), TEXT);
    expect(world.trainers[0]?.o).toEqual(trainOptions(settings({ lr: 5e-4, patience: 3 })));
    await c.forget();
  });
});
