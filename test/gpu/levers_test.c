/* SPDX-License-Identifier: Apache-2.0 */
/*
 * levers_test.c - the levers of a GPU: each off, the same losses; a self-test that fails; tiles
 * that were measured, or are said to have been.
 */
#include "../unit/engine_util.h"

#include <sys/stat.h>

#include "backend/webgpu/webgpu.h"
#include "base/math.h"
#include "inspect/tune.h"
#include "training/train.h"

#define CACHE "build/levers_test_cache"

/* Widths and heads that are no multiple of a tile, rows that are: products in fours, and merges. */
static const tg_model_config config = { 1, 40, 5, 24, 256, 160 };
enum { STEPS = 4 };

/* SwiftShader compiles a shader for a second: it goes fewer ways. */
static bool is_slow;

static tg_context *open_gpu(const char *levers) {
    tg_context_options o = tg_context_options_default();
    o.threads = 1;
    o.device = "webgpu";
    o.levers = levers;
    tg_context *ctx;
    if (tg_context_new(&o, &ctx) != TG_OK) fail_msg("context: %s", tg_context_error(ctx));
    return ctx;
}

static const tg_gpu_info *info_of(const tg_context *ctx) {
    return tg_gpu_get_info(tg_webgpu_gpu(ctx->backend));
}

/* Contexts that come behind one whose self-test a test has seen. */
static int trust(void **state) {
    (void)state;
    return setenv("TG_GPU_TRUSTED", "1", 1);
}

static int trust_no_more(void **state) {
    (void)state;
    return unsetenv("TG_GPU_TRUSTED");
}

static run_of start(tg_context *ctx) {
    tg_train_options o = tg_train_options_default();
    o.steps = STEPS;
    o.batch = 3;
    o.accum = 2;
    o.eval_every = 2;
    o.eval_windows = 2;
    return start_run(ctx, &config, &o);
}

/* The losses of a run, and what they hash to. */
static uint64_t train(tg_context *ctx, double losses[STEPS]) {
    run_of r = start(ctx);
    tg_step_report report = { .step = 0 };
    for (int i = 0; i < STEPS; i++) {
        OK(r.ctx, tg_trainer_step(r.trainer, &report));
        losses[i] = report.loss;
    }
    end_run(&r);
    return report.loss_hash;
}

static void check_losses(const char *how, const double *have, const double *want) {
    for (int i = 0; i < STEPS; i++)
        if (!(tg_fabs(have[i] - want[i]) < 1e-5 * want[i]))
            fail_msg("%s: step %d: want %.9g, have %.9g", how, i, want[i], have[i]);
}

/* Losses near the CPU's; the bits of the default where they are to be kept (hash not 0). */
static void check_off(const char *levers, const double *want, uint64_t hash) {
    double have[STEPS];
    tg_context *ctx = open_gpu(levers);
    const uint64_t without = train(ctx, have);
    check_losses(levers, have, want);
    if (hash && without != hash) fail_msg("%s: other bits", levers);
    print_message("%s: %s\n", levers, hash ? "same bits" : "losses as near");
}

/* Of a GPU's own levers those that keep the bits do so there, too; a CPU's change nothing. A slow
 * adapter has all of them off at once, and then all others. */
static void each_off_the_same_losses(void **state) {
    double want[STEPS], all[STEPS];
    char joint[2][200] = { "", "" }, cpus[300] = "";
    train(open_context(1, NULL, NULL), want);
    const uint64_t hash = train(open_gpu(NULL), all);
    check_losses("all levers", all, want);
    trust(state);
    for (size_t i = 0; i < tg_lever_count(); i++) {
        const tg_lever_info *l = tg_lever_at(i);
        if (!l->default_on) continue;
        if (l->cpu_only)
            snprintf(cpus + strlen(cpus), sizeof cpus - strlen(cpus), "%s-%s", cpus[0] ? "," : "",
                     l->name);
        if (l->cpu_only) continue;
        char *j = joint[l->keeps_bits], levers[64];
        snprintf(j + strlen(j), sizeof joint[0] - strlen(j), "%s-%s", j[0] ? "," : "", l->name);
        snprintf(levers, sizeof levers, "-%s", l->name);
        if (!is_slow) check_off(levers, want, l->keeps_bits ? hash : 0);
    }
    check_off(joint[0], want, 0);
    check_off(joint[1], want, hash);
    check_off(cpus, want, hash);
}

static void withdrawn_ones_stay_off(void **state) {
    (void)state;
    tg_context_options o = tg_context_options_default();
    o.levers = "+f16_arithmetic";
    tg_context *ctx;
    assert_int_equal(tg_context_new(&o, &ctx), TG_E_ARG);
    assert_non_null(strstr(tg_context_error(ctx), "f16_arithmetic cannot be switched on"));
    assert_non_null(strstr(tg_context_error(ctx), "TFLOP/s"));
    tg_context_free(ctx);
}

/* Sums that leave out half of a workgroup: the lever goes off, says so, and the losses are right.
 */
static void a_wrong_shader_fails_the_self_test(void **state) {
    (void)state;
    double want[STEPS], have[STEPS];
    setenv("TG_GPU_WRONG", "subgroups", 1);
    tg_context *ctx = open_gpu(NULL);
    unsetenv("TG_GPU_WRONG");
    const char *banner = tg_context_banner(ctx);
    assert_false(tg_context_lever(ctx, "subgroups"));
    if (info_of(ctx)->subgroups) {
        assert_non_null(strstr(banner, "lever subgroups off: self-test: "));
        assert_non_null(strstr(banner, "want an error up to "));
    } else {
        assert_non_null(strstr(banner, "lever subgroups off: not offered"));
    }
    print_message("%s\n", banner);
    train(open_context(1, NULL, NULL), want);
    train(ctx, have);
    check_losses("after the self-test", have, want);
}

/* Numbers in each other's place, a pipeline that cannot be made, a merge that is wrong either way:
 * what it is goes off and nothing else, and losses are right without. */
static void wrong_fours_and_merges_fail_it(void **state) {
    (void)state;
    static const struct {
        const char *wrong, *said;
        bool fours;
    } faults[] = { { "vec4_loads", "lever vec4_loads off: self-test: 32x32", false },
                   { "vec4_loads,merges", "merges off: self-test: layer back, ", false },
                   { "too_large", "lever vec4_loads off: self-test: ", false },
                   { "merges", "merges off: self-test: layer back, ", true } };
    double want[STEPS], have[STEPS];
    train(open_context(1, NULL, NULL), want);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        /* wgpu-native on lavapipe makes a pipeline of any size. */
        if (!is_slow && strcmp(faults[i].wrong, "too_large") == 0) continue;
        setenv("TG_GPU_WRONG", faults[i].wrong, 1);
        tg_context *ctx = open_gpu(NULL);
        const char *banner = tg_context_banner(ctx);
        print_message("%s\n", banner);
        assert_non_null(strstr(banner, faults[i].said));
        assert_int_equal(tg_context_lever(ctx, "vec4_loads"), faults[i].fours);
        assert_int_equal(tg_context_lever(ctx, "subgroups"), info_of(ctx)->subgroups);
        if (is_slow && i < 2) {
            tg_context_free(ctx);
        } else {
            train(ctx, have);
            check_losses(faults[i].wrong, have, want);
        }
        unsetenv("TG_GPU_WRONG");
    }
}

static void right_ones_pass(void **state) {
    (void)state;
    tg_context *ctx = open_gpu(NULL);
    assert_int_equal(tg_context_lever(ctx, "subgroups"), info_of(ctx)->subgroups);
    assert_true(tg_context_lever(ctx, "vec4_loads"));
    assert_null(strstr(tg_context_banner(ctx), "self-test: "));
    tg_context_free(ctx);
}

/* The gradient of the next step is there when this one's loss is: what comes between may use it or
 * not, and the curve is the same. */
static void nothing_between_steps_is_missed(void **state) {
    (void)state;
    for (int changes = is_slow; changes < 2; changes++) {
        uint64_t hash[2];
        for (int ahead = 0; ahead < 2; ahead++) {
            run_of r = start(open_gpu(ahead ? NULL : "-readback_pipelining"));
            tg_step_report report;
            OK(r.ctx, tg_trainer_step(r.trainer, &report));
            assert_int_equal(r.trainer->ahead.step, ahead ? 2 : 0);
            if (changes) {
                /* A weight that is changed on the host makes the gradient stale. */
                float *w = r.trainer->model->weights;
                OK(r.ctx, tg_backend_fetch(r.ctx->backend, w, sizeof *w));
                *w += 1;
                r.trainer->model->version++;
                OK(r.ctx, tg_backend_touched(r.ctx->backend, w, sizeof *w));
            }
            for (int i = 1; i < STEPS; i++) OK(r.ctx, tg_trainer_step(r.trainer, &report));
            assert_int_equal(r.trainer->ahead.step, 0);
            hash[ahead] = report.loss_hash;
            end_run(&r);
        }
        assert_int_equal(hash[0], hash[1]);
    }
}

static size_t n_rows, n_better;
static void on_row(void *user, const tg_tile_row *row) {
    (void)user;
    assert_true(row->rule_ms > 0 && row->best_ms > 0 && row->best_ms <= row->rule_ms);
    n_rows += 1;
    n_better += strcmp(row->rule, row->best) != 0;
}

/* Another shader for every product that has one: how many. Nobody measured anything. */
static size_t put_others(run_of *r, size_t number) {
    const tg_plan *plan = &r->trainer->plans.grad;
    size_t n = 0;
    for (size_t s = 0; s < plan->n_steps; s++) {
        const tg_op_desc *d = tg_op_table[plan->steps[s].node->op];
        tg_args a[TG_MAX_MEMBERS];
        const tg_shader *now;
        const unsigned m = tg_webgpu_unit(r->ctx->backend, plan, s, a, &now);
        const tg_shader *other = m ? tg_gpu_tiles_candidate(d, a, m, number) : NULL;
        if (!other || other == now) continue;
        tg_gpu_tiles_put(tg_webgpu_tiles(r->ctx->backend), d, a, m, other->name);
        n++;
    }
    return n;
}

static size_t shaders_apart(run_of *r, const char **names) {
    size_t n = 0;
    for (size_t s = 0; s < r->trainer->plans.grad.n_steps; s++) {
        tg_args a[TG_MAX_MEMBERS];
        const tg_shader *now = NULL;
        tg_webgpu_unit(r->ctx->backend, &r->trainer->plans.grad, s, a, &now);
        n += now && names[s] && strcmp(now->name, names[s]) != 0;
        names[s] = now ? now->name : NULL;
    }
    return n;
}

/* A table from somewhere is followed by the next context, with losses as near as ever; a lever
 * keeps to the rule. */
static void tables_are_followed(void **state) {
    (void)state;
    double want[STEPS], have[STEPS];
    const char *names[256] = { NULL };
    train(open_context(1, NULL, NULL), want);
    for (size_t number = 1; number < (is_slow ? 2 : 5); number++) {
        remove(CACHE "/tiles.cache");
        run_of r = start(open_gpu(NULL));
        assert_non_null(strstr(tg_context_banner(r.ctx), "tiles by rule"));
        tg_step_report report;
        OK(r.ctx, tg_trainer_step(r.trainer, &report));
        assert_true(r.trainer->plans.grad.n_steps <= 256);
        memset(names, 0, sizeof names);
        shaders_apart(&r, names);
        const size_t n = put_others(&r, number);
        tg_gpu_tiles_put_tuned(tg_webgpu_tiles(r.ctx->backend));
        end_run(&r);

        r = start(open_gpu(NULL));
        assert_non_null(strstr(tg_context_banner(r.ctx), "tiles tuned"));
        for (int i = 0; i < STEPS; i++) {
            OK(r.ctx, tg_trainer_step(r.trainer, &report));
            have[i] = report.loss;
        }
        check_losses("other tiles", have, want);
        print_message("candidate %zu: other shaders at %zu steps\n", number, n);
        assert_int_equal(shaders_apart(&r, names), n);
        end_run(&r);
        tg_context *ctx = open_gpu("-tuned_tiles");
        assert_non_null(strstr(tg_context_banner(ctx), "tiles by rule"));
        tg_context_free(ctx);
    }
    remove(CACHE "/tiles.cache");
}

/* Software is refused by the public call; that the measurement ends, and keeps what it found, is
 * seen all the same. */
static void tunes(void **state) {
    (void)state;
    if (is_slow) return;
    run_of r = start(open_gpu(NULL));
    if (info_of(r.ctx)->software) {
        assert_int_equal(tg_trainer_tune(r.trainer, 1, on_row, NULL), TG_E_UNSUPPORTED);
        assert_non_null(strstr(tg_context_error(r.ctx), "not timed"));
    }
    OK(r.ctx, tg_train_tune(r.trainer, true, 1, on_row, NULL));
    print_message("%zu products, %zu with other tiles\n", n_rows, n_better);
    assert_true(n_rows >= 4);
    end_run(&r);
    tg_context *ctx = open_gpu(NULL);
    assert_non_null(strstr(tg_context_banner(ctx), "tiles tuned"));
    double want[STEPS], have[STEPS];
    train(open_context(1, NULL, NULL), want);
    train(ctx, have);
    check_losses("tuned", have, want);
    remove(CACHE "/tiles.cache");
}

static int begin(void **state) {
    (void)state;
    mkdir("build", 0777);
    remove(CACHE "/tiles.cache");
    setenv("TG_GPU_CACHE", CACHE, 1);
    tg_context *ctx = open_gpu("-subgroups");
    is_slow = strstr(info_of(ctx)->adapter, "SwiftShader") != NULL;
    tg_context_free(ctx);
    return 0;
}

int main(int argc, char **argv) {
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(each_off_the_same_losses, trust_no_more),
        cmocka_unit_test(withdrawn_ones_stay_off),
        cmocka_unit_test(right_ones_pass),
        cmocka_unit_test(a_wrong_shader_fails_the_self_test),
        cmocka_unit_test(wrong_fours_and_merges_fail_it),
        cmocka_unit_test_setup_teardown(nothing_between_steps_is_missed, trust, trust_no_more),
        cmocka_unit_test_setup_teardown(tables_are_followed, trust, trust_no_more),
        cmocka_unit_test(tunes),
    };
    return cmocka_run_group_tests(tests, begin, NULL);
}
