// SPDX-License-Identifier: Apache-2.0
/**
 * controller.ts - one run from Start to its end: training, samples, saves, recovery.
 *
 *     idle -> preparing -> running <-> paused -> idle (another run)
 *                            |  ^
 *                            v  | continue
 *                           done            failed: the last save and the message are kept
 *
 * Training goes in chunks of some seconds. Between two chunks the weights stand still: samples are
 * written there, so that "step 400" is exactly step 400, and there the run is saved (save_times.ts
 * says when). No timer drives any of it, so a hidden tab trains at full speed. A run that makes room
 * for another is saved, and is not lost: the store has all of them.
 *
 * The bytes of the last save are kept as a Blob besides the store's copy: a browser without storage
 * can still recover from a trap, and the person can download them.
 */
import type { StepReport } from '../../lib/types';
import { codeOf, plainError } from '../plain_error';
import { type Unit, unitOf } from '../live/words';
import { type Milestone, milestonesOf, milestonesOfCheck } from '../live/milestones';
import { LOOKED_AT_BYTES, type Reference, referenceOf } from '../live/observed';
import { type Verdict, verdict } from '../live/verdict';
import { Store } from '../store';
import { Curve, thin } from './curve';
import type { EnginePort, ModelPort, RunStore, TextPort, TrainerPort } from './ports';
import { nextSave } from './save_times';
import { EarlierWeights, nextEarly } from './weights';
import { gptConfig, type Settings, settingsOfRun, trainOptions } from './settings';

export type Phase = 'idle' | 'preparing' | 'running' | 'paused' | 'done' | 'failed';

export interface Sample {
  step: number;
  /** Written from nothing. */
  text: string;
}

/** The text of a run: it is read again after a trap, so the Blob is kept. */
export interface RunText {
  blob: Blob;
  name: string;
  /** '' while it is not known. */
  sha256: string;
  /** Seed of the story generator, if that made it. */
  stories?: number;
  /** Its id in the store, if it is kept there already. */
  kept?: number;
}

export interface RunState {
  /** What the store knows the run by; '' while there is none. */
  id: string;
  phase: Phase;
  settings: Settings | null;
  /** Tokens that the model knows, 256 where they are bytes; and its parameters. */
  vocab: number;
  /** What they are. */
  unit: Unit;
  /** Of the text; NaN while no step has told. */
  bytesPerToken: number;
  params: number;
  /** The text's name, for showing. */
  textName: string;
  step: number;
  total: number;
  last: StepReport | null;
  /** The newest validation and the best one. */
  val: { step: number; loss: number } | null;
  best: { step: number; loss: number } | null;
  /** Smoothed. */
  loss: number;
  msPerStep: number;
  /** Seconds of training so far in this visit. */
  seconds: number;
  milestones: readonly Milestone[];
  samples: readonly Sample[];
  /** A sample being written at this moment. */
  writing: Sample | null;
  /** A beginning out of the text, for trying what it knew then and now; '' while not known. */
  prompt: string;
  /** Steps whose weights are kept, the first one first. */
  keptSteps: readonly number[];
  verdict: Verdict | null;
  problem: string;
  /** The step that this visit began with: 0, or where a saved run went on. */
  from: number;
  savedStep: number | null;
  savedAt: number | null;
  /** Why saves do not reach the store, in plain words; '' if they do. */
  saveProblem: string;
  skipped: number;
  /** Grows when the curve has new points; at most four times a second. */
  curveTick: number;
}

/** What is kept beside a save, as JSON. */
export interface RunMeta {
  step: number;
  total: number;
  settings: Settings;
  text: { bytes: number; name: string; sha256: string; stories?: number };
  samples: readonly Sample[];
  milestones: readonly Milestone[];
  savedAt: number;
  /** When it was started. */
  begun: number;
  params: number;
  /** Smoothed, and of the newest check; null while there is none. */
  loss: number | null;
  val: number | null;
  /** 16 digits over the bits of all losses; equal digits, equal runs. */
  hash: string;
  /** The smoothed loss at some hundred steps. */
  curve: { steps: number[]; losses: number[] };
}

export interface RunDeps<M extends ModelPort, T extends TextPort> {
  engine: () => Promise<EnginePort<M, T>>;
  /** A run could not be made: is there another engine now, on which it may go well? */
  another: (e: unknown) => Promise<boolean>;
  store: RunStore;
  now: () => number;
  /** A new run's id. */
  newId: () => string;
  /** Told when the run's model is another one, or has learnt; null when it is gone. */
  onModel: (model: M | null, state: RunState) => void;
  /** What a person should hear wherever they are. */
  tell: (kind: 'info' | 'good' | 'warning' | 'error', text: string) => void;
  /** The end was reached by itself. */
  onEnd: (state: RunState) => void;
}

const IDLE: RunState = {
  id: '',
  phase: 'idle',
  settings: null,
  vocab: 256,
  unit: 'character',
  bytesPerToken: 1,
  params: 0,
  textName: '',
  step: 0,
  total: 0,
  last: null,
  val: null,
  best: null,
  loss: NaN,
  msPerStep: NaN,
  seconds: 0,
  milestones: [],
  samples: [],
  writing: null,
  prompt: '',
  keptSteps: [],
  verdict: null,
  problem: '',
  from: 0,
  savedStep: null,
  savedAt: null,
  saveProblem: '',
  skipped: 0,
  curveTick: 0,
};

/** A chunk of training. */
const CHUNK_MS = 4000;
const SHOW_MS = 250;
const SAMPLE_TOKENS = 220;
/** So long a piece of the text is the prompt. */
const PROMPT_CHARS = 24;
const MOST_SAMPLES = 60;
/** A text larger than this is not copied into the browser's storage: its file is asked for. */
export const TEXT_KEPT_BYTES = 512e6;
const TRAPS = 3;

interface Made<M extends ModelPort> {
  trainer: TrainerPort<M>;
  /** The model, if it was made for this; else the trainer has its own. */
  model: M | null;
}

export class RunController<M extends ModelPort, T extends TextPort> {
  readonly state = new Store<RunState>(IDLE);
  curve = new Curve();
  /** The newest save, for downloading when the store is full, and for recovery. */
  lastSave: Blob | null = null;

  readonly #deps: RunDeps<M, T>;
  #trainer: TrainerPort<M> | null = null;
  #model: M | null = null;
  #text: T | null = null;
  #source: RunText | null = null;
  /** The model file that the run began with, if it was one. */
  #base: Blob | null = null;
  /** What samples are counted against. */
  #reference: Reference | null = null;
  /** Its id in the store, 0 while it is not there. */
  #textId = 0;
  /** The step at which its save was deleted, while it is not saved anew. */
  #disownedStep: number | null = null;
  #weights = new EarlierWeights('', null);
  /** The writing of weights, which nothing waits for but the end. */
  #keeping: Promise<void> = Promise.resolve();
  #begun = 0;
  /** The hash over all losses, of a run that was opened. */
  #hash = '';
  #storing = false;
  #abort: AbortController | null = null;
  /** Ends the making of a vocabulary; each turn has one. */
  #making = new AbortController();
  #loop: Promise<void> | null = null;
  #saving: Promise<void> | null = null;
  /** When the run went on, and when it is saved next. */
  #wentOn = 0;
  #nextSave = 0;
  #shownAt = 0;
  #traps = 0;
  /** Counts runs: what is made for an older one is given back. */
  #turn = 0;
  #shown: RunState = IDLE;

  constructor(deps: RunDeps<M, T>) {
    this.#deps = deps;
  }

  /** Whether saves reach the store; the page says so after opening it. */
  storing(yes: boolean): void {
    this.#storing = yes;
    if (yes && this.#source) void this.#keepText(this.#source);
  }

  /** Milliseconds of training that a reload would cost now. */
  get unsavedMs(): number {
    const { step, from, savedStep, phase, saveProblem, msPerStep } = this.#shown;
    if (!this.#trainer || phase === 'failed') return 0;
    if (!this.#storing || saveProblem !== '') return step > from ? Infinity : 0;
    return (step - (savedStep ?? this.#disownedStep ?? from)) * msPerStep || 0;
  }

  get busy(): boolean {
    const { phase } = this.state.get();
    return phase === 'running' || phase === 'preparing';
  }

  /** The open run's trainer, for saving it in other layouts; null when there is none. */
  get trainer(): TrainerPort<M> | null {
    return this.#trainer;
  }

  get text(): RunText | null {
    return this.#source;
  }

  /** The model as it was at one of keptSteps; null if it is not there any more. */
  weightsAt(step: number): Promise<Blob | null> {
    return this.#weights.at(step);
  }

  /** The text's SHA-256 often comes only after the run has begun. */
  setFingerprint(blob: Blob, sha256: string): void {
    if (this.#source?.blob === blob) this.#source = { ...this.#source, sha256 };
  }

  /** A new run. `base` is a model file to go on from, with its own size; null: fresh weights. A
   *  signal that aborts while it is made ends that, and nothing else. */
  async start(
    settings: Settings,
    text: RunText,
    base: Blob | null = null,
    signal?: AbortSignal,
  ): Promise<void> {
    await this.leave();
    this.#base = base;
    const id = this.#deps.newId();
    const make = (engine: EnginePort<M, T>, held: T) => this.#anew(engine, settings, held);
    if (await this.#begin(id, settings, text, make, null, signal)) this.#go();
  }

  async #anew(engine: EnginePort<M, T>, settings: Settings, held: T): Promise<Made<M>> {
    const model = await this.#fresh(engine, settings, held);
    return { trainer: await engine.newTrainer(model, held, trainOptions(settings)), model };
  }

  /** The weights that a run begins with: those of a file, or new ones. A vocabulary that is not of
   *  bytes is made of the text before. */
  async #fresh(engine: EnginePort<M, T>, settings: Settings, held: T): Promise<M> {
    if (this.#base) return engine.openModel(this.#base);
    const { tokens, pieces, seed } = settings;
    const config = gptConfig(settings);
    if (tokens === 'bytes') return engine.newModel(config, seed);
    const [kind, n] = tokens === 'chars' ? (['chars', 0] as const) : (['bpe', pieces] as const);
    const { signal } = this.#making;
    const made = await engine.trainVocabulary(held, kind, n, { signal }).catch((e: unknown) => {
      throw kind === 'bpe' && codeOf(e) === 'DATA' ? new Error(FEW_PIECES) : e;
    });
    return engine.newModel({ ...config, vocab: 0 }, seed, made);
  }

  /**
   * The very run of a save is here again, standing where it was; unpause() lets it go on. `id` is
   * what the store knows it by, '' for a run that came from a file. `total`, if not 0, is its new
   * number of steps. A signal that aborts while it is made ends that, and nothing else.
   */
  async open(
    run: Blob,
    text: RunText,
    meta: Partial<RunMeta> = {},
    id = '',
    total = 0,
    signal?: AbortSignal,
  ): Promise<boolean> {
    const before = meta.settings ?? null;
    await this.leave();
    const make = async (engine: EnginePort<M, T>, held: T) => ({
      trainer: await engine.openTrainer(run, held, total),
      model: null,
    });
    const as = id || this.#deps.newId();
    if (!(await this.#begin(as, before, text, make, run, signal))) return false;
    const { samples = [], milestones = [], begun, savedAt = null, hash = '' } = meta;
    this.#hash = hash;
    if (begun !== undefined) this.#begun = begun;
    const { step } = this.#shown;
    const over = step >= this.#shown.total;
    this.#patch(
      {
        samples,
        milestones,
        phase: over ? 'done' : 'paused',
        verdict: over ? this.#judge() : null,
        ...(id === '' ? {} : { savedStep: step, savedAt }),
      },
      true,
    );
    return true;
  }

  /** The very run of a save goes on. */
  async resume(...what: Parameters<RunController<M, T>['open']>): Promise<void> {
    if (await this.open(...what)) this.#go();
  }

  async #begin(
    id: string,
    settings: Settings | null,
    text: RunText,
    make: (engine: EnginePort<M, T>, held: T) => Promise<Made<M>>,
    run: Blob | null = null,
    signal?: AbortSignal,
  ): Promise<boolean> {
    if (signal?.aborted) return false;
    const mine = ++this.#turn;
    signal?.addEventListener('abort', () => {
      if (mine === this.#turn && this.#shown.phase === 'preparing') void this.forget();
    });
    this.#source = text;
    this.#textId = text.kept ?? 0;
    this.#disownedStep = null;
    this.#hash = '';
    this.#begun = this.#deps.now();
    this.#traps = 0;
    this.lastSave = run;
    this.curve = new Curve();
    this.#reference = null;
    this.#weights = new EarlierWeights(id, this.#storing ? this.#deps.store : null);
    this.#shown = { ...IDLE, id, phase: 'preparing', settings, textName: text.name };
    this.#show();
    try {
      const reference = referenceOf(await text.blob.slice(0, LOOKED_AT_BYTES).text());
      if (!(await this.#make(mine, text.blob, make))) return false;
      this.#reference = reference;
      this.#shown = { ...this.#shown, prompt: promptOf(reference.text) };
      await this.#adopt(settings);
    } catch (e) {
      if (mine !== this.#turn) return false;
      // Where another engine may manage it, it begins there.
      const again = await this.#deps.another(e).catch(() => false);
      if (mine !== this.#turn) return false;
      if (again) return this.#begin(id, settings, text, make, run, signal);
      await this.#fail(e);
      return false;
    }
    void this.#keepText(text);
    return mine === this.#turn;
  }

  /** The engine's part of a run. False, and nothing of it is left, where somebody wanted something
   *  else meanwhile. */
  async #make(
    mine: number,
    blob: Blob,
    make: (engine: EnginePort<M, T>, held: T) => Promise<Made<M>>,
  ): Promise<boolean> {
    if (mine !== this.#turn) return false;
    this.#making = new AbortController();
    const engine = await this.#deps.engine();
    const held = await engine.text(blob);
    if (mine !== this.#turn) {
      held.free();
      return false;
    }
    const made = await make(engine, held).catch((e: unknown) => {
      held.free();
      throw e;
    });
    if (mine !== this.#turn) {
      for (const thing of [made.trainer, made.model ?? made.trainer.model, held]) thing.free();
      return false;
    }
    this.#text = held;
    this.#trainer = made.trainer;
    this.#model = made.model;
    return true;
  }

  /** Reads everything that the page shows from a trainer that was just made or opened. */
  async #adopt(settings: Settings | null): Promise<void> {
    const trainer = this.#trainer;
    if (!trainer) return;
    const [step, options, info, history] = await Promise.all([
      trainer.done(),
      trainer.options(),
      trainer.model.info(),
      trainer.history(),
    ]);
    this.curve = Curve.of(history);
    const checks = this.curve.checks();
    const best = checks.reduce<RunState['best']>(
      (b, c) => (b === null || c.loss < b.loss ? c : b),
      null,
    );
    const known = settingsOfRun(info.config, options);
    const all = settings ? { ...known, ...chosenOf(settings) } : known;
    const { vocab } = info.config;
    const unit = unitOfRun(all, vocab, this.#reference?.text ?? '');
    await this.#weights.find(step).catch(() => {});
    this.#patch(
      {
        settings: all,
        vocab,
        unit,
        bytesPerToken: isOfBytes(all, vocab) ? 1 : NaN,
        params: info.params,
        step,
        total: options.steps,
        from: step,
        loss: this.curve.smoothed,
        val: checks.at(-1) ?? null,
        best,
        keptSteps: this.#weights.steps,
        curveTick: this.#shown.curveTick + 1,
      },
      true,
    );
    this.#deps.onModel(trainer.model, this.state.get());
  }

  /** Running again after pause(), or after the end with more steps. */
  async unpause(moreSteps = 0): Promise<void> {
    const { phase } = this.state.get();
    if (!this.#trainer || (phase !== 'paused' && phase !== 'done')) return;
    try {
      if (moreSteps > 0) {
        const total =
          Math.max(this.#shown.step, phase === 'done' ? this.#shown.step : this.#shown.total) +
          moreSteps;
        await this.#trainer.setSteps(total);
        this.#patch({ total });
      }
    } catch (e) {
      await this.#fail(e);
      return;
    }
    this.#go();
  }

  /** Stands still within 100 ms, and saves. */
  async pause(): Promise<void> {
    if (this.state.get().phase !== 'running') return;
    this.#abort?.abort();
    await this.#loop;
    if (this.#shown.phase !== 'running') return;
    this.#patch({ phase: 'paused' }, true);
    await this.save();
  }

  /** Ends the run here, with a verdict; it can still be continued. */
  async stop(): Promise<void> {
    const { phase } = this.state.get();
    if (phase !== 'running' && phase !== 'paused') return;
    this.#abort?.abort();
    await this.#loop;
    if (this.#shown.phase === 'failed' || this.#shown.phase === 'done') return;
    await this.#end(false);
  }

  /** Puts the run away: another one takes its place. It is saved, and stays in the store. */
  async leave(): Promise<void> {
    const { phase } = this.state.get();
    if (phase === 'idle') return;
    this.#abort?.abort();
    await this.#loop;
    if (phase !== 'failed' && this.#shown.step !== this.#shown.savedStep) await this.save();
    await this.forget();
  }

  /**
   * The saved run of this id is being deleted. If it is the open one, that stays open and is nobody's:
   * as it stands it is not saved again, which would undo the deletion, and when it goes on it is kept
   * as a new run. Returns the call that takes this back; null if it is not open.
   */
  disown(id: string): (() => void) | null {
    const { phase, step, savedStep, savedAt, keptSteps } = this.#shown;
    if (id === '' || id !== this.#shown.id) return null;
    if (phase === 'preparing') {
      void this.forget();
      return null;
    }
    const own = this.#deps.newId();
    const [textId, weights] = [this.#textId, this.#weights];
    // What belongs to the deleted run goes with it: its text, unless it is kept anew, and its weights.
    this.#textId = 0;
    this.#weights = new EarlierWeights(own, this.#storing ? this.#deps.store : null);
    this.#disownedStep = step;
    this.#patch({ id: own, savedStep: null, savedAt: null, keptSteps: [] }, true);
    return () => {
      // Another run may be open by now, or this one be kept as a new one.
      if (this.#shown.id !== own || this.#shown.savedStep !== null) return;
      this.#textId = textId;
      this.#weights = weights;
      this.#disownedStep = null;
      this.#patch({ id, savedStep, savedAt, keptSteps }, true);
    };
  }

  /** Puts the run away as it was last saved; one that is being made is not made. */
  async forget(): Promise<void> {
    this.#turn++;
    this.#making.abort();
    await this.#close();
    this.lastSave = null;
    this.#source = null;
    this.curve = new Curve();
    this.#shown = IDLE;
    this.#show();
  }

  /** The module trapped and is new: everything in it is gone, the last save is not. */
  async recover(reason: string): Promise<void> {
    const { phase } = this.state.get();
    // A trap while a run is being made fails that making, with a message of its own.
    if (phase === 'idle' || phase === 'failed' || phase === 'preparing') return;
    this.#abort?.abort();
    await this.#loop;
    const why = reason.replace(/\.$/, '');
    this.#traps++;
    if (!(await this.#regain(phase, why))) return;
    this.#deps.tell(
      'warning',
      `The engine stopped unexpectedly (${why}). It was started anew, and the run goes on ` +
        `from step ${this.#shown.step}, its last save.`,
    );
  }

  /** Another engine takes the place of this one, which `reopen` ends. The run is saved before, and
   *  goes on there. */
  async move(reopen: () => Promise<void>): Promise<void> {
    const { phase } = this.state.get();
    if (phase === 'preparing') throw new Error('The run is being made: wait until it has begun.');
    const has = phase === 'running' || phase === 'paused' || phase === 'done';
    if (phase === 'running') await this.pause();
    else if (has) await this.save();
    await reopen();
    if (has) await this.#regain(phase, 'another device was wanted');
  }

  /** Makes the run anew on an engine that knows nothing of it, from its last save. */
  async #regain(phase: Phase, why: string): Promise<boolean> {
    this.#trainer = null;
    this.#model = null;
    this.#text = null;
    this.#deps.onModel(null, this.state.get());
    const text = this.#source;
    if (!text || this.#traps > TRAPS) {
      await this.#fail(
        new Error(`The engine failed again and again (${why}). The last save is safe.`),
      );
      return false;
    }
    const { settings, total } = this.#shown;
    const mine = this.#turn;
    const save = this.lastSave;
    const make = async (engine: EnginePort<M, T>, held: T) => {
      if (save) return { trainer: await engine.openTrainer(save, held, total), model: null };
      if (!settings) throw new Error(`The engine failed before the first save (${why}).`);
      return this.#anew(engine, settings, held);
    };
    try {
      if (!(await this.#make(mine, text.blob, make))) return false;
      await this.#adopt(settings);
      if (mine !== this.#turn) return false;
    } catch (e) {
      if (mine !== this.#turn) return false;
      await this.#fail(e);
      return false;
    }
    if (phase === 'running') this.#go();
    else this.#patch({ phase: phase === 'done' ? 'done' : 'paused' }, true);
    return true;
  }

  // ---------------------------------------------------------------------------------- the loop

  #go(): void {
    this.#abort = new AbortController();
    this.#wentOn = this.#deps.now();
    this.#nextSave = this.#wentOn;
    if (this.#source) void this.#keepText(this.#source);
    this.#patch({ phase: 'running', verdict: null, problem: '' }, true);
    this.#loop = this.#work(this.#abort.signal);
  }

  async #work(signal: AbortSignal): Promise<void> {
    try {
      while (!signal.aborted && this.#trainer) {
        // Only taking the bytes holds training up; they are written while it goes on.
        if (this.#deps.now() >= this.#nextSave && !this.#saving) {
          await new Promise<void>((resolve) => void this.save(resolve));
        }
        if (signal.aborted) break;
        const every = this.#sampleEvery();
        if (this.#sampleDue(every)) await this.#sample(signal);
        if (!signal.aborted) await this.#keepWeights(this.#shown.step % every === 0);
        if (signal.aborted) break;
        const over = await this.#chunk(this.#trainer, every, signal);
        if (signal.aborted) break;
        if (over) {
          await this.#end(true);
          return;
        }
      }
    } catch (e) {
      // A trap is answered by recover(), which waits for this loop to end.
      if (codeOf(e) === 'TRAP' || signal.aborted) return;
      await this.#fail(e);
    }
  }

  /** Some seconds of training, at most to the next sample or save. True when the run is over: also
   *  where no step came. (One that was done again on another device is a step, too.) */
  async #chunk(trainer: TrainerPort<M>, every: number, signal: AbortSignal): Promise<boolean> {
    const { step, total, msPerStep } = this.#shown;
    const ms = Math.min(CHUNK_MS, this.#nextSave - this.#deps.now());
    const fit = Number.isFinite(msPerStep) ? Math.max(1, Math.floor(ms / msPerStep)) : 1;
    const n = Math.min(fit, total - step, every - (step % every), nextEarly(step) - step);
    let over = false;
    let came = false;
    if (n > 0) {
      for await (const r of trainer.steps(n, { signal })) {
        this.#take(r);
        came = true;
        over ||= r.earlyStop;
      }
      // Stopping may leave finished steps unreported; the trainer knows of them.
      if (signal.aborted) await this.#catchUp(trainer);
    }
    return over || !came || this.#shown.step >= this.#shown.total;
  }

  async #catchUp(trainer: TrainerPort<M>): Promise<void> {
    const done = await trainer.done();
    if (done <= this.#shown.step) return;
    const missing = (await trainer.history()).filter((h) => h.step > this.#shown.step);
    for (const h of missing) this.curve.addPoint(h);
    this.#patch(
      { step: done, loss: this.curve.smoothed, curveTick: this.#shown.curveTick + 1 },
      true,
    );
  }

  #take(r: StepReport): void {
    const s = this.#shown;
    this.curve.add(r);
    const val = Number.isFinite(r.valLoss) ? { step: r.step, loss: r.valLoss } : s.val;
    const best = r.valIsBest && val ? val : s.best;
    const checks = this.curve.checksIfNew();
    const fresh = milestonesOfCheck(s.milestones, r.step, this.curve.smoothed, checks);
    const ms = Number.isFinite(s.msPerStep) ? s.msPerStep + (r.ms - s.msPerStep) / 10 : r.ms;
    this.#patch({
      step: r.step,
      last: r,
      val,
      best,
      loss: this.curve.smoothed,
      msPerStep: ms,
      seconds: s.seconds + r.ms / 1000,
      skipped: s.skipped + (r.skipped ? 1 : 0),
      ...(r.bitsPerByte > 0 ? { bytesPerToken: r.loss / Math.LN2 / r.bitsPerByte } : {}),
      curveTick: s.curveTick + 1,
      ...(fresh.length > 0 ? { milestones: [...s.milestones, ...fresh] } : {}),
    });
  }

  // --------------------------------------------------------------------------------- samples

  #sampleEvery(): number {
    const { settings, total } = this.#shown;
    if (settings && settings.sampleEvery > 0) return settings.sampleEvery;
    return Math.max(10, Math.round(total / 12 / 10) * 10);
  }

  #sampleDue(every: number): boolean {
    const { step, samples } = this.#shown;
    return step % every === 0 && samples.at(-1)?.step !== step;
  }

  async #sample(signal: AbortSignal): Promise<void> {
    const trainer = this.#trainer;
    if (!trainer) return;
    const { step } = this.#shown;
    const session = await trainer.model.session();
    let text = '';
    try {
      const o = { tokens: SAMPLE_TOKENS, temperature: 0.8, topP: 0.95, seed: step, signal };
      const pieces = session.generate('', o);
      // The numbers are not asked for; a stop must not leave an unheard rejection.
      pieces.stats.catch(() => {});
      for await (const p of pieces) {
        text += p.text;
        this.#patch({ writing: { step, text } });
      }
    } finally {
      session.free();
    }
    if (signal.aborted) {
      this.#patch({ writing: null }, true);
      return;
    }
    const { samples, milestones } = this.#shown;
    const seen = this.#reference;
    const fresh = seen && step > 0 ? milestonesOf(milestones, step, text, seen) : [];
    this.#patch(
      {
        writing: null,
        samples: [...samples, { step, text }].slice(-MOST_SAMPLES),
        milestones: [...milestones, ...fresh],
      },
      true,
    );
  }

  /** Keeps what the model is now, if this is a step to come back to. Only taking the bytes holds
   *  training up: a store that does not answer is none of the run's. */
  async #keepWeights(sampled: boolean): Promise<void> {
    const trainer = this.#trainer;
    const { step, params } = this.#shown;
    const weights = this.#weights;
    if (!trainer || !weights.wants(step, sampled, 4 * params)) return;
    // Whatever is wrong with the model is the next step's to find.
    const model = await trainer.save('v3').catch(() => null);
    if (!model) return;
    this.#keeping = weights.keep(step, new Blob([model as Uint8Array<ArrayBuffer>])).then(() => {
      if (weights !== this.#weights || this.#shown.keptSteps === weights.steps) return;
      if (this.#trainer) this.#patch({ keptSteps: weights.steps }, true);
    });
  }

  // ----------------------------------------------------------------------------------- saves

  /** Saves now, behind a save that is under way. Never throws: what failed is shown. `taken` is
   *  called when the run may change again, before it is written. */
  async save(taken: () => void = () => {}): Promise<void> {
    while (this.#saving) await this.#saving;
    this.#saving = this.#save(taken).finally(() => {
      this.#saving = null;
      taken();
    });
    await this.#saving;
  }

  async #save(taken: () => void): Promise<void> {
    const trainer = this.#trainer;
    const { settings } = this.#shown;
    if (!trainer || !settings || !this.#source) return;
    const began = this.#deps.now();
    try {
      const step = await trainer.done();
      const run = await trainer.save('run');
      this.lastSave = new Blob([run as Uint8Array<ArrayBuffer>]);
      const now = this.#deps.now();
      this.#nextSave = nextSave(this.#wentOn, now, now - began);
      if (step === this.#disownedStep) return;
      if (this.#storing) {
        const { id } = this.#shown;
        const meta = this.#meta(step, settings, this.#source);
        const written = this.#deps.store.saveRun(id, run, meta, this.#textId);
        taken();
        await written;
        if (id !== this.#shown.id) return;
      }
      this.#patch({ savedStep: step, savedAt: this.#deps.now(), saveProblem: '' }, true);
    } catch (e) {
      if (codeOf(e) === 'TRAP' || !this.#trainer) return;
      this.#patch({ saveProblem: plainSaveProblem(e) }, true);
      this.#deps.tell('warning', `${plainSaveProblem(e)} Training goes on.`);
    }
  }

  #meta(step: number, settings: Settings, text: RunText): RunMeta {
    const { total, params, samples, milestones, loss, val, last } = this.#shown;
    const { name, sha256 } = text;
    return {
      step,
      total,
      settings,
      text: {
        bytes: text.blob.size,
        name,
        sha256,
        ...(text.stories === undefined ? {} : { stories: text.stories }),
      },
      samples: samples.slice(-24),
      milestones,
      savedAt: this.#deps.now(),
      begun: this.#begun,
      params,
      loss: Number.isFinite(loss) ? loss : null,
      val: val?.loss ?? null,
      hash: last?.lossHash ?? this.#hash,
      curve: thin(this.curve),
    };
  }

  async #keepText(text: RunText): Promise<void> {
    if (!this.#storing || text.blob.size > TEXT_KEPT_BYTES || this.#textId !== 0) return;
    try {
      const id = await this.#deps.store.keepText(text.blob);
      if (this.#source?.blob !== text.blob) return;
      this.#textId = id;
      // A save that was made before does not know of it.
      this.#nextSave = 0;
    } catch {
      // The run can be continued with the same text given again; the offer says so.
    }
  }

  // ------------------------------------------------------------------------------------ ends

  async #end(byItself: boolean): Promise<void> {
    const s = this.#shown;
    if (!s.settings || !this.#source) return;
    if (byItself && this.#abort) await this.#sample(this.#abort.signal);
    // At once: another run may be open when the weights are kept.
    this.#patch({ phase: 'done', verdict: this.#judge() }, true);
    await this.#keepWeights(true);
    await this.#keeping;
    await this.save();
    if (byItself) this.#deps.onEnd(this.state.get());
  }

  #judge(): Verdict | null {
    const { settings, vocab, unit, params, step, total, loss } = this.#shown;
    if (!settings || !this.#source) return null;
    const { batch, accum, ctx, valFraction } = settings;
    const trainBytes = this.#source.blob.size * (1 - valFraction);
    return verdict({
      size: settings.size,
      vocab,
      unit,
      params,
      steps: step,
      total,
      trainBytes,
      epochs:
        (step * batch * accum * ctx * this.#shown.bytesPerToken) / Math.max(1, trainBytes),
      loss,
      checks: this.curve.checks(),
    });
  }

  async #fail(e: unknown): Promise<void> {
    this.#patch({ phase: 'failed', problem: plainError(e), writing: null }, true);
  }

  /** Ends whatever runs and gives everything back. */
  async #close(): Promise<void> {
    this.#abort?.abort();
    await this.#loop;
    await this.#saving;
    await this.#keeping;
    this.#loop = null;
    this.#abort = null;
    if (this.#trainer) this.#deps.onModel(null, this.state.get());
    const opened = this.#trainer?.model;
    this.#trainer?.free();
    if (opened && opened !== this.#model) opened.free();
    this.#model?.free();
    this.#text?.free();
    this.#trainer = null;
    this.#model = null;
    this.#text = null;
  }

  // ----------------------------------------------------------------------------------- state

  /** Changes what is true; what is shown follows four times a second, or at once. */
  #patch(fields: Partial<RunState>, atOnce = false): void {
    this.#shown = { ...this.#shown, ...fields };
    const now = this.#deps.now();
    if (!atOnce && now - this.#shownAt < SHOW_MS) return;
    this.#shownAt = now;
    this.#show();
    const model = this.#trainer?.model;
    if (model) this.#deps.onModel(model, this.#shown);
  }

  #show(): void {
    this.state.set(this.#shown);
  }
}

/** The beginning of a line in the middle of the text, cut at the end of a word if it has some. */
function promptOf(text: string): string {
  const middle = text.indexOf('\n', text.length / 2) + 1;
  const [line = ''] = text.slice(middle).trimStart().split('\n');
  const piece = [...line].slice(0, PROMPT_CHARS).join('');
  return /^\S+ /.test(piece) && piece.length < line.length
    ? piece.slice(0, piece.lastIndexOf(' ') + 1)
    : piece.slice(0, Math.ceil(piece.length / 2));
}

/** What a person chose and a file of the run does not tell. */
function chosenOf(s: Settings): Partial<Settings> {
  const { size, family, tokens, pieces, sampleEvery } = s;
  return { size, family, tokens, pieces, sampleEvery };
}

function isOfBytes(s: Settings, vocab: number): boolean {
  return vocab === 256 && s.tokens === 'bytes';
}

/** A model of bytes may be one of a file's 256 tokens. */
function unitOfRun(s: Settings, vocab: number, text: string): Unit {
  const pieces = s.tokens === 'bytes' && !isOfBytes(s, vocab);
  return unitOf(pieces ? 'pieces' : s.tokens, /^\p{ASCII}*$/u.test(text));
}

const FEW_PIECES =
  'The text has fewer pieces than the vocabulary is to have. Take fewer pieces, characters, or a ' +
  'longer text.';

function plainSaveProblem(e: unknown): string {
  if (e instanceof Error && /quota/i.test(e.name)) {
    return 'The browser has no room left for saving this run. Download it under Files to keep it.';
  }
  return (
    `The run could not be saved in the browser. ${plainError(e)} Download it under Files ` +
    'to keep it.'
  );
}
