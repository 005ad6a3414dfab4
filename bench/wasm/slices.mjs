/*
 * slices.mjs - the longest that the engine is away, for everything that a page may want to stop:
 * each job is polled with a budget, and the longest poll counts; calls without a job count whole.
 */
import { newTrainer } from '../../test/wasm/run.mjs';

const PENDING = 1;

/* Times of one call, or of all polls of a job: { longest, all, polls }. */
export function slicesOf(w, engine, shape, { budget = 20, name }) {
    const { c } = w, { ctx, out, call, made } = engine, results = {};
    const timed = (what, run) => {
        const start = performance.now();
        const result = run();
        const ms = performance.now() - start;
        const row = (results[what] ??= { longest: 0, all: 0, polls: 0 });
        row.longest = Math.max(row.longest, ms);
        row.all += ms;
        row.polls++;
        return result;
    };
    /* The job's address goes behind what it makes. */
    const to = out + w.pointer(16);
    const job = (what, start, ...args) => {
        timed(`${what}, begin`, () => call(start, ...args, to));
        const j = w.readPointer(to);
        let status;
        do status = timed(what, () => c.tg_job_poll(j, budget));
        while (status === PENDING);
        timed(`${what}, end`, () => c.tg_job_free(j));
        if (status !== 0) throw new Error(`${what}: status ${status}`);
        return w.readPointer(out);
    };

    const model = job('model_new', 'tg_model_new_job', ctx, shape.config, 42n, out);
    const made_ = timed('trainer_new', () => newTrainer(w, engine, { name, steps: 100, model }));
    const { trainer, text } = made_;
    for (let i = 0; i < 2; i++) job('step', 'tg_trainer_step_job', trainer, w.pointer(0));
    timed('forecast', () => call('tg_trainer_forecast', trainer, c.tg_wasm_alloc(w.pointer(2048))));
    job('trainer_eval', 'tg_trainer_eval_job', trainer, c.tg_wasm_alloc(w.pointer(8)));
    const path = w.string('m.tinygpt');
    job('model_save', 'tg_model_save_job', model, path, 0);
    job('model_open', 'tg_model_open_job', ctx, path, out);
    timed('convert', () => call('tg_file_convert', ctx, path, w.string('m.safetensors'), w.pointer(0)));
    timed('model_eval', () =>
        call('tg_model_eval', ctx, model, text, 0.1, 8, c.tg_wasm_alloc(w.pointer(8))));
    job('trainer_save', 'tg_trainer_save_job', trainer, w.string('t.tinygpt'));
    const session = timed('session_new', () => made('tg_session_new', ctx, model, 0));
    const prompt = w.put(new Uint8Array(shape.ctx * 4).fill(97));
    job('session_eval', 'tg_session_eval_job', session, prompt, w.pointer(1));
    return results;
}
