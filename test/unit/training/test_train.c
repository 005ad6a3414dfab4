/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_train.c - the promises of a training run: the same bits whatever the threads and the ISA of
 * a class, through stops, saves and slices; refused updates; and memory that runs out anywhere.
 */
#include "engine_util.h"
#include "fail_alloc.h"
#include "nan.h"

#include "base/math.h"
#include "io/run/file.h"
#include "io/run/meta.h"
#include "training/schedule.h"
#include "training/train.h"

static const tg_model_config nano = { 2, 24, 3, 16, 256, 96 };
static const char *const SAVE = "build/test_train.tinygpt";

static tg_train_options options(int64_t steps, int32_t accum) {
    tg_train_options o = tg_train_options_default();
    o.steps = steps;
    o.batch = 5;
    o.accum = accum;
    o.lr = 1e-3;
    o.schedule = TG_COSINE;
    o.warmup = steps / 4;
    o.eval_every = 7;
    o.eval_windows = 9;
    return o;
}

static uint64_t hash_of_run(unsigned threads, const char *isa, const char *levers,
                            const tg_model_config *config, const tg_train_options *o) {
    run_of r = start_run(open_context(threads, isa, levers), config, o);
    const tg_step_report report = steps_until(&r, o->steps);
    end_run(&r);
    return report.loss_hash;
}

static void threads_do_not_matter(void **state) {
    (void)state;
    const tg_train_options o = options(50, 2);
    const tg_model_config tiny = tg_preset_find("tiny")->config;
    const uint64_t want = hash_of_run(1, NULL, NULL, &tiny, &o);
    static const unsigned threads[] = { 2, 3, 5, 8 };
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(hash_of_run(threads[i], NULL, NULL, &tiny, &o), want);
}

static void isas_of_a_class_agree(void **state) {
    (void)state;
    const tg_train_options o = options(50, 1);
    const tg_model_config tiny = tg_preset_find("tiny")->config;
    if (!isa_usable("avx2") || !isa_usable("avx512")) {
        print_message("skipped: isas_of_a_class_agree: this CPU has not both of avx2 and avx512\n");
        skip();
    }
    assert_int_equal(hash_of_run(2, "avx2", NULL, &tiny, &o),
                     hash_of_run(2, "avx512", NULL, &tiny, &o));
}

/* A lever that claims to keep the bits must. */
static void levers_keep_their_word(void **state) {
    (void)state;
    const tg_train_options o = options(20, 1);
    const uint64_t want = hash_of_run(2, NULL, NULL, &nano, &o);
    for (size_t i = 0; i < tg_lever_count(); i++) {
        const tg_lever_info *l = tg_lever_at(i);
        if (!l->keeps_bits) continue;
        char text[64];
        snprintf(text, sizeof text, "%c%s", l->default_on ? '-' : '+', l->name);
        if (hash_of_run(2, NULL, text, &nano, &o) != want) fail_msg("%s changes the bits", text);
    }
}

static void accumulation_equals_a_larger_batch(void **state) {
    (void)state;
    tg_train_options one = options(6, 1), four = options(6, 4);
    one.batch = 8;
    four.batch = 2;
    run_of a = start_run(open_context(2, NULL, NULL), &nano, &one);
    run_of b = start_run(open_context(2, NULL, NULL), &nano, &four);
    for (int i = 0; i < 6; i++) {
        tg_step_report ra, rb;
        OK(a.ctx, tg_trainer_step(a.trainer, &ra));
        OK(b.ctx, tg_trainer_step(b.trainer, &rb));
        assert_true(tg_fabs(ra.loss - rb.loss) < 1e-5 * ra.loss);
        assert_true(tg_fabs(ra.grad_norm - rb.grad_norm) < 1e-4 * ra.grad_norm);
    }
    end_run(&a);
    end_run(&b);
}

/* ------------------------------------------------------------------------------ stops and resuming
 */

static run_of resume(tg_context *ctx, int64_t steps) {
    run_of r = { .ctx = ctx };
    OK(ctx, tg_text_open(ctx, STORIES, &r.text));
    OK(ctx, tg_trainer_open(ctx, SAVE, r.text, steps, &r.trainer));
    return r;
}

static void same_weights(tg_trainer *a, tg_trainer *b) {
    const size_t bytes = a->model->layout.n_elems * sizeof(float);
    assert_memory_equal(a->model->weights, b->model->weights, bytes);
    assert_memory_equal(a->adam_m.data, b->adam_m.data, bytes);
    assert_memory_equal(a->adam_v.data, b->adam_v.data, bytes);
    assert_int_equal(a->n_history, b->n_history);
    for (size_t i = 0; i < a->n_history; i++)
        assert_memory_equal(&a->history[i].loss, &b->history[i].loss, sizeof(double));
}

static void a_resumed_run_is_the_run(void **state) {
    (void)state;
    static const int64_t stops[] = { 1, 10, 14, 19 };
    const tg_train_options o = options(20, 3);
    run_of whole = start_run(open_context(2, NULL, NULL), &nano, &o);
    const tg_step_report want = steps_until(&whole, 20);
    for (size_t i = 0; i < 4; i++) {
        run_of first = start_run(open_context(1, NULL, NULL), &nano, &o);
        steps_until(&first, stops[i]);
        OK(first.ctx, tg_trainer_save(first.trainer, SAVE));
        end_run(&first);
        run_of second = resume(open_context(3, NULL, NULL), 0);
        assert_int_equal(tg_trainer_steps_done(second.trainer), stops[i]);
        const tg_step_report have = steps_until(&second, 20);
        assert_int_equal(have.loss_hash, want.loss_hash);
        same_weights(whole.trainer, second.trainer);
        end_run(&second);
    }
    end_run(&whole);
}

/* All that a run knows beside its arrays comes back, each number in its own place. */
static void a_resumed_run_knows_what_it_knew(void **state) {
    (void)state;
    tg_train_options o = tg_train_options_default();
    o.batch = 2;
    o.steps = 10;
    o.eval_every = 0;
    run_of r = start_run(open_context(1, NULL, NULL), &nano, &o);
    steps_until(&r, 4);
    tg_trainer *t = r.trainer, *again;
    t->updates = 3;
    t->stale = 7;
    t->history_stride = 16;
    t->best_step = 2;
    t->best_val = 1.25;
    t->last_val = 2.5;
    t->last_val_step = 1;
    t->last_loss = 3.75;
    t->eval_pending = true;
    const uint64_t hash = t->loss_hash;
    OK(r.ctx, tg_trainer_save(t, SAVE));
    OK(r.ctx, tg_trainer_open(r.ctx, SAVE, r.text, 0, &again));
    assert_int_equal(again->step, 4);
    assert_int_equal(again->updates, 3);
    assert_int_equal(again->stale, 7);
    assert_int_equal(again->history_stride, 16);
    assert_int_equal(again->best_step, 2);
    assert_true(again->best_val >= 1.25 && again->best_val <= 1.25);
    assert_true(again->last_val >= 2.5 && again->last_val <= 2.5);
    assert_int_equal(again->last_val_step, 1);
    assert_true(again->last_loss >= 3.75 && again->last_loss <= 3.75);
    assert_true(again->eval_pending);
    assert_true(again->loss_hash == hash);
    assert_int_equal(again->n_history, t->n_history);
    assert_int_equal(again->o.steps, 10);
    tg_trainer_free(again);
    OK(r.ctx, tg_trainer_open(r.ctx, SAVE, r.text, 12, &again));
    assert_int_equal(again->o.steps, 12);
    tg_trainer_free(again);
    assert_int_equal(tg_trainer_open(r.ctx, SAVE, r.text, 3, &again), TG_E_ARG);
    assert_non_null(strstr(tg_context_error(r.ctx), "want at least the 4 that are done"));
    end_run(&r);
    remove(SAVE);
}

/* A file of the best weights tells of the steps that led to them, and of none behind. */
static void the_best_has_its_own_history(void **state) {
    (void)state;
    tg_train_options o = options(12, 1);
    o.eval_every = 4;
    o.keep_best = true;
    run_of r = start_run(open_context(1, NULL, NULL), &nano, &o);
    steps_until(&r, 5);
    assert_int_equal(r.trainer->best_step, 4);
    r.trainer->best_val = 0; /* no later validation is better */
    steps_until(&r, 9);
    assert_int_equal(r.trainer->best_step, 4);
    const tg_history_point *const all = r.trainer->history;
    assert_int_equal(all[r.trainer->n_history - 1].step, 9);
    OK(r.ctx, tg_trainer_save_best(r.trainer, SAVE));

    tg_ctx ctx;
    tg_file *f;
    tg_meta meta;
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    assert_int_equal(tg_file_open(&ctx, SAVE, &f), TG_OK);
    assert_int_equal(tg_meta_read(f, &meta), TG_OK);
    assert_int_equal(meta.n_history, 4);
    for (size_t i = 0; i < 4; i++) assert_int_equal(meta.history[i].step, all[i].step);
    assert_int_equal(meta.final.step, 4);
    assert_memory_equal(&meta.final.loss, &all[3].loss, sizeof(double));
    tg_file_close(f);
    end_run(&r);
    remove(SAVE);
}

/* Slices that end anywhere, also between micro-steps, and a save in the middle of accumulation. */
static void stops_inside_a_step(void **state) {
    (void)state;
    const tg_train_options o = options(12, 3);
    run_of whole = start_run(open_context(2, NULL, NULL), &nano, &o);
    const tg_step_report want = steps_until(&whole, 12);
    run_of cut = start_run(open_context(2, NULL, NULL), &nano, &o);
    int pending = 0, slices = 0, next = 401;
    while (tg_trainer_steps_done(cut.trainer) < 12 || cut.trainer->eval_pending) {
        tg_step_report report;
        const tg_status s = tg_trainer_poll(cut.trainer, 1e-6, &report);
        assert_true(s == TG_OK || s == TG_PENDING);
        pending += s == TG_PENDING;
        /* A step has some 230 slices: often enough to hit its middle, and ever more rarely, so that
         * one with many more slices comes to its end, too. */
        if (s == TG_PENDING && ++slices == next) {
            slices = 0;
            next += 10;
            OK(cut.ctx, tg_trainer_save(cut.trainer, SAVE));
            end_run(&cut);
            cut = resume(open_context(2, NULL, NULL), 0);
        }
    }
    assert_true(pending > 100);
    assert_int_equal(cut.trainer->loss_hash, want.loss_hash);
    same_weights(whole.trainer, cut.trainer);
    end_run(&cut);
    end_run(&whole);
}

static double standing_still(void *user, int64_t step) {
    (void)user;
    (void)step;
    return 0;
}

/* Weights that a rate of 0 leaves as they are give the same loss again and again: no progress. */
static void ties_stop_a_run_early(void **state) {
    (void)state;
    tg_train_options o = options(50, 1);
    o.eval_every = 2;
    o.patience = 3;
    run_of r = start_run(open_context(2, NULL, NULL), &nano, &o);
    tg_train_set_rate(r.trainer, standing_still, NULL);
    tg_step_report report = { 0 };
    while (!report.early_stop && report.step < o.steps)
        OK(r.ctx, tg_trainer_step(r.trainer, &report));
    assert_true(report.early_stop);
    assert_int_equal(report.step, 2 + 3 * 2);
    end_run(&r);
}

/* Each step has its own rate: the first of a warmup is a part of the whole, and moves the weights
 * as a run does whose rate is that part. */
static void a_step_has_its_own_rate(void **state) {
    (void)state;
    tg_train_options warm = options(8, 1), plain = options(8, 1);
    warm.warmup = 4;
    plain.warmup = 0;
    plain.schedule = TG_CONSTANT;
    plain.lr = tg_schedule_lr(&warm, 0);
    assert_true(plain.lr > 0 && plain.lr < tg_schedule_lr(&warm, 1));
    run_of a = start_run(open_context(2, NULL, NULL), &nano, &warm);
    run_of b = start_run(open_context(2, NULL, NULL), &nano, &plain);
    const tg_step_report first = steps_until(&a, 1), other = steps_until(&b, 1);
    assert_true(first.lr == other.lr && first.lr == plain.lr);
    same_weights(a.trainer, b.trainer);
    end_run(&a);
    end_run(&b);
}

static void refuses_another_text(void **state) {
    (void)state;
    const tg_train_options o = options(4, 1);
    run_of r = start_run(open_context(1, NULL, NULL), &nano, &o);
    steps_until(&r, 2);
    OK(r.ctx, tg_trainer_save(r.trainer, SAVE));
    tg_text *other;
    tg_trainer *t;
    char bytes[4000];
    memset(bytes, 'x', sizeof bytes);
    OK(r.ctx, tg_text_from_memory(r.ctx, bytes, sizeof bytes, &other));
    assert_int_equal(tg_trainer_open(r.ctx, SAVE, other, 0, &t), TG_E_DATA);
    assert_null(t);
    assert_non_null(strstr(tg_context_error(r.ctx), "another text"));
    tg_text_free(other);
    /* As long as the right one, and another byte at its end. */
    const size_t n = (size_t)r.text->n_bytes;
    char *same = malloc(n);
    FILE *f = fopen(STORIES, "rb");
    assert_non_null(f);
    assert_int_equal(fread(same, 1, n, f), n);
    fclose(f);
    for (int changed = 0; changed < 2; changed++) {
        same[n - 1] ^= (char)changed;
        OK(r.ctx, tg_text_from_memory(r.ctx, same, n, &other));
        assert_int_equal(tg_trainer_open(r.ctx, SAVE, other, 0, &t), changed ? TG_E_DATA : TG_OK);
        tg_trainer_free(t);
        tg_text_free(other);
    }
    free(same);
    /* Of a text that is too long for a checksum the mark is all that is known. */
    r.trainer->text_mark ^= 1;
    OK(r.ctx, tg_trainer_save(r.trainer, SAVE));
    assert_int_equal(tg_trainer_open(r.ctx, SAVE, r.text, 0, &t), TG_E_DATA);
    assert_non_null(strstr(tg_context_error(r.ctx), "bytes with mark"));
    end_run(&r);
}

/* ----------------------------------------------------------------------------- numbers that are
 * none */

static void refuses_what_is_not_finite(void **state) {
    (void)state;
    static const char *const tensors[] = { "blocks.1.mlp.fc_in.weight", "grad.blocks.0.ln1.bias",
                                           "token_embedding.weight" };
    for (size_t i = 0; i < 3; i++) {
        tg_train_options o = options(6, 2);
        run_of r = start_run(open_context(2, NULL, NULL), &nano, &o);
        steps_until(&r, 3);
        const size_t bytes = r.model->layout.n_elems * sizeof(float);
        float *before = malloc(bytes);
        memcpy(before, r.model->weights, bytes);
        assert_true(poison(r.trainer, tensors[i], i == 1 ? (float)TG_INF : (float)TG_NAN));
        tg_step_report report;
        assert_int_equal(tg_trainer_step(r.trainer, &report), TG_E_NUMBER);
        const char *name = strncmp(tensors[i], "grad.", 5) == 0 ? "blocks.0.ln1.bias" : tensors[i];
        if (!strstr(tg_context_error(r.ctx), name)) fail_msg("%s", tg_context_error(r.ctx));
        assert_memory_equal(before, r.model->weights, bytes);
        assert_int_equal(tg_trainer_steps_done(r.trainer), 3);
        steps_until(&r, 6); /* the poison is gone: the run goes on */
        free(before);
        end_run(&r);
    }
}

static void skips_a_bad_step_on_request(void **state) {
    (void)state;
    tg_train_options o = options(6, 1);
    o.skip_bad_steps = true;
    run_of r = start_run(open_context(2, NULL, NULL), &nano, &o);
    steps_until(&r, 3);
    assert_true(poison(r.trainer, "grad.ln_final.weight", (float)TG_NAN));
    tg_step_report report;
    OK(r.ctx, tg_trainer_step(r.trainer, &report));
    assert_true(report.skipped);
    assert_int_equal(report.step, 4);
    assert_non_null(strstr(report.bad_tensor, "ln_final.weight"));
    steps_until(&r, 6);
    assert_int_equal(r.trainer->updates, 5);
    end_run(&r);
}

/* A backend that is not the CPU, as the plans see it, and computes as the CPU does. */
static tg_status fetch_nothing(tg_backend *b, void *p, size_t bytes) {
    (void)b, (void)p, (void)bytes;
    return TG_OK;
}
static tg_status touch_nothing(tg_backend *b, const void *p, size_t bytes) {
    (void)b, (void)p, (void)bytes;
    return TG_OK;
}
static void forget_nothing(tg_backend *b, const void *p, size_t bytes) {
    (void)b, (void)p, (void)bytes;
}
static void free_nothing(tg_backend *b) { (void)b; }

typedef struct other {
    tg_backend b;
    tg_context *ctx;
} other;
static tg_status run_on_cpu(tg_backend *b, tg_plan *plan, const tg_scalars *rt, tg_run *run) {
    return tg_backend_run(((other *)b)->ctx->cpu, plan, rt, run);
}
static tg_context *open_rounding(other *o) {
    tg_context *ctx = open_context(2, NULL, "+f16_storage");
    *o = (other) { .b = *ctx->cpu, .ctx = ctx };
    o->b.run = run_on_cpu;
    o->b.fetch = fetch_nothing;
    o->b.touched = touch_nothing;
    o->b.forget = forget_nothing;
    o->b.free = free_nothing;
    ctx->backend = &o->b;
    return ctx;
}

/* Gradients are rounded to f16, and one is infinite while the loss is not: that is the scale's
 * fault. The step is skipped without being asked for, counted and told, and a save knows. */
static void an_overflow_halves_the_scale(void **state) {
    (void)state;
    tg_train_options o = options(8, 1);
    other gpu, gpu_again;
    run_of r = start_run(open_rounding(&gpu), &nano, &o);
    steps_until(&r, 3);
    const size_t bytes = r.model->layout.n_elems * sizeof(float);
    float *before = malloc(bytes);
    memcpy(before, r.model->weights, bytes);
    assert_true(poison(r.trainer, "grad.ln_final.weight", (float)TG_INF));
    tg_step_report report;
    OK(r.ctx, tg_trainer_step(r.trainer, &report));
    assert_true(report.skipped);
    assert_int_equal(report.step, 4);
    assert_non_null(strstr(report.bad_tensor, "scaled by 0.5"));
    assert_non_null(strstr(report.bad_tensor, "so far 1 times"));
    assert_memory_equal(before, r.model->weights, bytes);
    OK(r.ctx, tg_trainer_save(r.trainer, SAVE));
    report = steps_until(&r, 8);
    assert_false(report.skipped);
    assert_int_equal(r.trainer->updates, 7);
    run_of again = resume(open_rounding(&gpu_again), 0);
    assert_true(again.trainer->scaling[0] == 0.5f && again.trainer->scaling[1] == 0 &&
                again.trainer->scaling[2] == 1);
    assert_true(steps_until(&again, 8).loss_hash == report.loss_hash);
    assert_memory_equal(again.trainer->scaling, r.trainer->scaling, sizeof r.trainer->scaling);
    free(before);
    /* A lost device goes back to the copy from before the first step, and to its scale. */
    r.ctx->generation++;
    OK(r.ctx, tg_train_follow(r.trainer));
    assert_int_equal(tg_trainer_steps_done(r.trainer), 0);
    assert_true(r.trainer->scaling[0] == 1 && r.trainer->scaling[2] == 0);
    again.ctx->backend = again.ctx->cpu;
    r.ctx->backend = r.ctx->cpu;
    end_run(&again);
    end_run(&r);
}

/* The CPU rounds nothing to f16, so an infinite gradient is no scale's fault there. */
static void the_cpu_scales_nothing(void **state) {
    (void)state;
    tg_train_options o = options(8, 1);
    run_of r = start_run(open_context(2, NULL, "+f16_storage"), &nano, &o);
    assert_null(r.trainer->plans.scaling);
    assert_true(poison(r.trainer, "grad.ln_final.weight", (float)TG_INF));
    tg_step_report report;
    assert_int_equal(tg_trainer_step(r.trainer, &report), TG_E_NUMBER);
    end_run(&r);
}

/* ------------------------------------------------------------------------------- bad options,
 * memory */

static void names_a_bad_option(void **state) {
    (void)state;
    tg_context *ctx = open_context(1, NULL, NULL);
    tg_text *text;
    tg_model *m;
    tg_trainer *t;
    OK(ctx, tg_text_open(ctx, STORIES, &text));
    OK(ctx, tg_model_new(ctx, &nano, 1, &m));
    tg_train_options o = options(5, 1);
    o.lr = (double)TG_NAN;
    assert_int_equal(tg_trainer_new(ctx, m, text, &o, &t), TG_E_ARG);
    assert_non_null(strstr(tg_context_error(ctx), "lr"));
    o = options(5, 1);
    o.batch = -1;
    assert_int_equal(tg_trainer_new(ctx, m, text, &o, &t), TG_E_ARG);
    assert_non_null(strstr(tg_context_error(ctx), "batch"));
    tg_model_config bad = nano;
    bad.heads = 5;
    tg_model *none;
    assert_int_not_equal(tg_model_new(ctx, &bad, 1, &none), TG_OK);
    assert_non_null(strstr(tg_context_error(ctx), "heads"));
    tg_model_free(m);
    tg_text_free(text);
    tg_context_free(ctx);
}

static void short_texts(void **state) {
    (void)state;
    tg_context *ctx = open_context(1, NULL, NULL);
    tg_model *m;
    OK(ctx, tg_model_new(ctx, &nano, 1, &m));
    tg_train_options o = options(3, 1);
    o.val_fraction = 0;
    for (size_t n = 0; n < 20; n++) {
        tg_text *text;
        tg_trainer *t;
        OK(ctx, tg_text_from_memory(ctx, "a short text, 20 by.", n, &text));
        const tg_status s = tg_trainer_new(ctx, m, text, &o, &t);
        assert_int_equal(s, n < 17 ? TG_E_DATA : TG_OK);
        if (s == TG_OK) OK(ctx, tg_trainer_run(t, NULL, NULL));
        tg_trainer_free(t);
        tg_text_free(text);
    }
    tg_model_free(m);
    tg_context_free(ctx);
}

/* A model is measured as its trainer would, to the bit, in whatever batches, and takes the memory
 * of a forward pass: less than one of the three arrays that a trainer has beside the weights. */
static void measured_without_a_trainer(void **state) {
    (void)state;
    test_alloc a = { .fail_at = 0 };
    tg_context_options co = tg_context_options_default();
    co.alloc = test_alloc_fn;
    co.alloc_user = &a;
    tg_context *ctx;
    tg_text *text;
    tg_model *m;
    assert_int_equal(tg_context_new(&co, &ctx), TG_OK);
    OK(ctx, tg_text_open(ctx, STORIES, &text));
    const tg_model_config wide = { 2, 192, 3, 4, 256, 768 };
    OK(ctx, tg_model_new(ctx, &wide, 1, &m));
    const size_t weight_bytes = (size_t)tg_param_count(&wide) * sizeof(float);
    for (int part = 0; part < 2; part++) {
        tg_train_options o = options(1, 1);
        o.val_fraction = part ? 0.25 : 0;
        o.eval_windows = 30;
        tg_trainer *t;
        double want, have;
        OK(ctx, tg_trainer_new(ctx, m, text, &o, &t));
        OK(ctx, tg_trainer_eval(t, &want));
        tg_trainer_free(t);
        const size_t before = a.peak_bytes = a.live_bytes;
        OK(ctx, tg_model_eval(ctx, m, text, o.val_fraction, 30, &have));
        assert_memory_equal(&have, &want, sizeof want);
        assert_true(a.peak_bytes - before < weight_bytes);
        assert_int_equal(a.live_bytes, before);
        assert_int_equal(tg_model_eval(ctx, m, text, 1e-6, 30, &have), TG_E_DATA);
        assert_non_null(strstr(tg_context_error(ctx), STORIES));
        assert_int_equal(tg_model_eval(ctx, m, text, 0.95, 30, &have), TG_E_ARG);
    }
    tg_model_free(m);
    tg_text_free(text);
    tg_context_free(ctx);
    assert_int_equal(a.live_pieces, 0);
}

/* Whoever converts a run or compares it has a tensor of it in memory, and not all of them: beside a
 * GGUF file's head, of which 8 MiB are read. */
static void read_a_tensor_at_a_time(void **state) {
    (void)state;
    static const char run[] = "build/test_lazy.tinygpt", gguf[] = "build/test_lazy.gguf";
    test_alloc a = { .fail_at = 0 };
    tg_context_options co = tg_context_options_default();
    co.alloc = test_alloc_fn;
    co.alloc_user = &a;
    for (int own = 0; own < 2; own++) {
        const tg_model_config deep = {
            16, 160, 4, 8, 256, 640, .family = own ? "tinygpt" : "qwen3"
        };
        const size_t weight_bytes = (size_t)tg_param_count(&deep) * sizeof(float);
        tg_context *ctx;
        tg_model *m;
        tg_job *job;
        bool equal;
        assert_int_equal(tg_context_new(&co, &ctx), TG_OK);
        OK(ctx, tg_model_new(ctx, &deep, 1, &m));
        OK(ctx, tg_model_save(m, run, TG_FILE_V3));
        tg_model_free(m);
        const size_t before = a.peak_bytes = a.live_bytes;
        OK(ctx, tg_model_convert_job(ctx, run, gguf, TG_FILE_GGUF, &job));
        while (tg_job_poll(job, 5) == TG_PENDING) continue;
        OK(ctx, tg_job_poll(job, 0));
        tg_job_free(job);
        OK(ctx, tg_file_compare(ctx, run, gguf, &equal, NULL, NULL));
        assert_true(equal);
        assert_true(a.peak_bytes - before < weight_bytes);
        tg_context_free(ctx);
        assert_int_equal(a.live_pieces, 0);
    }
    remove(run);
    remove(gguf);
}

/* Everything a program does, with an allocator that fails at one place. True if all went well. */
static bool whole_program(test_alloc *a) {
    tg_context_options co = tg_context_options_default();
    co.threads = 2;
    co.alloc = test_alloc_fn;
    co.alloc_user = a;
    tg_context *ctx = NULL;
    tg_text *text = NULL;
    tg_model *model = NULL, *opened = NULL;
    tg_trainer *trainer = NULL, *resumed = NULL;
    double loss;
    char bytes[600];
    memset(bytes, 'x', sizeof bytes);
    const tg_model_config small = { 1, 8, 2, 8, 256, 32 };
    tg_train_options o = options(3, 2);
    o.batch = 2;
    o.eval_every = 2;
    bool ok = tg_context_new(&co, &ctx) == TG_OK;
    ok = ok && tg_text_from_memory(ctx, bytes, sizeof bytes, &text) == TG_OK;
    ok = ok && tg_model_new(ctx, &small, 7, &model) == TG_OK;
    ok = ok && tg_trainer_new(ctx, model, text, &o, &trainer) == TG_OK;
    ok = ok && tg_trainer_run(trainer, NULL, "build/test_memory.tinygpt") == TG_OK;
    ok = ok && tg_trainer_open(ctx, "build/test_memory.tinygpt", text, 4, &resumed) == TG_OK;
    ok = ok && tg_trainer_run(resumed, NULL, NULL) == TG_OK;
    ok = ok && tg_model_open(ctx, "build/test_memory.tinygpt", &opened) == TG_OK;
    ok = ok && tg_model_eval(ctx, opened, text, 0.1, 2, &loss) == TG_OK;
    ok = ok && tg_generate(ctx, opened, "x", 1, NULL, 12, NULL, NULL) == TG_OK;
    if (!ok && ctx) assert_true(strlen(tg_context_error(ctx)) > 0);
    tg_model_free(opened);
    tg_trainer_free(resumed);
    tg_trainer_free(trainer);
    tg_model_free(model);
    tg_text_free(text);
    tg_context_free(ctx);
    return ok;
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    test_alloc count = { .fail_at = 0 };
    assert_true(whole_program(&count));
    assert_int_equal(count.live_pieces, 0);
    const size_t n = count.requests;
    for (int sticky = 0; sticky < 2; sticky++) {
        for (size_t i = 1; i <= n; i++) {
            test_alloc a = { .fail_at = i, .sticky = sticky };
            if (whole_program(&a)) fail_msg("request %zu of %zu failed and nobody noticed", i, n);
            assert_int_equal(a.live_pieces, 0);
        }
    }
    print_message("%zu allocations failed once and for good\n", n);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_do_not_matter),
        cmocka_unit_test(isas_of_a_class_agree),
        cmocka_unit_test(levers_keep_their_word),
        cmocka_unit_test(accumulation_equals_a_larger_batch),
        cmocka_unit_test(a_resumed_run_is_the_run),
        cmocka_unit_test(a_resumed_run_knows_what_it_knew),
        cmocka_unit_test(the_best_has_its_own_history),
        cmocka_unit_test(stops_inside_a_step),
        cmocka_unit_test(ties_stop_a_run_early),
        cmocka_unit_test(a_step_has_its_own_rate),
        cmocka_unit_test(refuses_another_text),
        cmocka_unit_test(refuses_what_is_not_finite),
        cmocka_unit_test(skips_a_bad_step_on_request),
        cmocka_unit_test(an_overflow_halves_the_scale),
        cmocka_unit_test(the_cpu_scales_nothing),
        cmocka_unit_test(names_a_bad_option),
        cmocka_unit_test(short_texts),
        cmocka_unit_test(measured_without_a_trainer),
        cmocka_unit_test(read_a_tensor_at_a_time),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
