/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_fp_env.c - a host's rounding mode and flush flags reach no result, and are as they were when
 * a call returns, whichever way it returns.
 *
 * Workers keep the environment of the thread that started them, and the caller has its own, so each
 * mode is set before the context is made, after it, and then taken back. The first test shows that
 * the modes do change the processor's arithmetic here: else the others would show nothing.
 */
#include "engine_util.h"

#include "base/thread.h"

#include <fenv.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
enum { FLUSH = 0x8040 }; /* FTZ and DAZ */
static unsigned control(void) { return _mm_getcsr() & 0xffc0; }
static void set_flush(bool on) {
    _mm_setcsr((_mm_getcsr() & ~(unsigned)FLUSH) | (on ? (unsigned)FLUSH : 0));
}
#elif defined(__aarch64__)
static unsigned control(void) {
    uint64_t fpcr;
    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    return (unsigned)fpcr;
}
static void set_flush(bool on) {
    const uint64_t fpcr = (control() & ~(1u << 24)) | (on ? 1u << 24 : 0);
    __asm__ volatile("msr fpcr, %0" : : "r"(fpcr));
}
#endif

typedef struct mode {
    int round;
    bool flush;
} mode;
static const mode modes[] = { { FE_TONEAREST, false }, { FE_UPWARD, false },
                              { FE_DOWNWARD, false },  { FE_TOWARDZERO, false },
                              { FE_TONEAREST, true },  { FE_UPWARD, true } };
enum { N_MODES = sizeof modes / sizeof *modes };

static void set_mode(const mode *m) {
    assert_int_equal(fesetround(m->round), 0);
    set_flush(m->flush);
}

static int back_to_default(void **state) {
    (void)state;
    set_mode(&modes[0]);
    return 0;
}

/* What a whole use of the library gives, as one number: losses, validation, the forecast's advice,
 * a saved file, logits, sampled ids. */
typedef struct result {
    uint64_t losses, file, logits;
    double val;
    int32_t ids[12];
} result;

static uint64_t mix(uint64_t h, const void *bytes, size_t n) {
    for (size_t i = 0; i < n; i++) h = (h ^ ((const uint8_t *)bytes)[i]) * UINT64_C(1099511628211);
    return h;
}

static int ignore_text(void *user, const char *bytes, size_t n_bytes) {
    (void)user, (void)bytes, (void)n_bytes;
    return 0;
}

/* The environment of `m` is checked after each call. */
#define SAME_AFTER(call)                                                                           \
    do {                                                                                           \
        const unsigned before = control();                                                         \
        call;                                                                                      \
        if (control() != before || fegetround() != m->round)                                       \
            fail_msg("%s: the control register was %x, and is %x", #call, before, control());      \
    } while (0)

static void use(const mode *m, bool before_context, unsigned threads, result *out) {
    static const tg_model_config tiny = { 2, 24, 3, 16, 256, 96 };
    static const int32_t prompt[] = { 'T', 'o', ' ', 'b', 'e' };
    static const char path[] = "build/test_fp_env.tinygpt";
    tg_train_options o = tg_train_options_default();
    o.steps = 6;
    o.batch = 3;
    o.accum = 2;
    o.lr = 1e-3;
    o.schedule = TG_COSINE;
    o.eval_every = 3;
    o.eval_windows = 5;
    o.seed = 7;
    if (before_context) set_mode(m);
    tg_context *ctx = open_context(threads, NULL, NULL);
    set_mode(m);
    run_of run;
    SAME_AFTER(run = start_run(ctx, &tiny, &o));
    tg_step_report report = { .step = 0 };
    while (report.step < o.steps) SAME_AFTER(OK(ctx, tg_trainer_step(run.trainer, &report)));
    out->losses = report.loss_hash;
    out->val = report.val_loss;
    SAME_AFTER(OK(ctx, tg_trainer_save(run.trainer, path)));
    out->file = UINT64_C(14695981039346656037);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    char piece[4096];
    for (size_t n; (n = fread(piece, 1, sizeof piece, f)) > 0;)
        out->file = mix(out->file, piece, n);
    fclose(f);

    tg_session *session;
    const float *logits;
    tg_sample_options sampling = tg_sample_options_default();
    sampling.typical_p = 0.9;
    sampling.repeat_penalty = 1.3;
    SAME_AFTER(OK(ctx, tg_session_new(ctx, run.model, 0, &session)));
    SAME_AFTER(OK(ctx, tg_session_eval(session, prompt, 5, &logits)));
    out->logits = mix(UINT64_C(14695981039346656037), logits, 256 * sizeof *logits);
    int32_t token;
    SAME_AFTER(OK(ctx, tg_session_sample(session, &sampling, 0, &token)));
    tg_generation what = behind_text("the", 3, 12);
    what.sample = &sampling;
    what.write = ignore_text;
    what.new_ids = out->ids;
    SAME_AFTER(OK(ctx, tg_session_continue(session, &what, NULL)));
    /* Calls that fail. */
    const int32_t bad[] = { 999 };
    SAME_AFTER(assert_int_equal(tg_session_eval(session, bad, 1, NULL), TG_E_RANGE));
    SAME_AFTER(assert_int_equal(tg_session_eval(session, NULL, 1, NULL), TG_E_ARG));
    SAME_AFTER(assert_int_equal(tg_trainer_step(run.trainer, NULL), TG_STOPPED));
    tg_model *none;
    SAME_AFTER(assert_true(tg_model_open(ctx, "build/test_fp_env.none", &none) < 0));
    SAME_AFTER(tg_session_free(session));
    SAME_AFTER(tg_trainer_free(run.trainer));
    tg_model_free(run.model);
    tg_text_free(run.text);
    tg_context_free(ctx);
    assert_int_equal(fegetround(), m->round);
    set_mode(&modes[0]);
    remove(path);
}

static void the_modes_matter_here(void **state) {
    (void)state;
    /* Results, too: a compiler that knows nothing of modes may compute them at any other place. */
    volatile float third = 3, one = 1, tiny = 1e-38f, small = 1e-3f;
    volatile float nearest = one / third, denormal = tiny * small, below, flushed;
    set_mode(&modes[2]);
    below = one / third;
    set_mode(&modes[4]);
    flushed = tiny * small;
    set_mode(&modes[0]);
    assert_true(below < nearest && denormal > 0);
    assert_true(flushed == 0);
}

static void no_bit_changes(void **state) {
    (void)state;
    static const unsigned threads[] = { 1, 2, 4 };
    result wanted = { 0 };
    use(&modes[0], true, 1, &wanted);
    for (size_t t = 0; t < 3; t++)
        for (int i = 0; i < N_MODES; i++)
            for (int before = 0; before < 2; before++) {
                result r = { 0 };
                use(&modes[i], before, threads[t], &r);
                if (memcmp(&r, &wanted, sizeof r) != 0)
                    fail_msg("mode %d flush %d, set %s the context, %u threads: losses %d file %d "
                             "logits %d validation %d ids %d (1: the same)",
                             modes[i].round, modes[i].flush, before ? "before" : "after",
                             threads[t], r.losses == wanted.losses, r.file == wanted.file,
                             r.logits == wanted.logits, r.val == wanted.val,
                             memcmp(r.ids, wanted.ids, sizeof r.ids) == 0);
            }
}

/* Flags of exceptions that a host has cleared or raised are its own. */
static void flags_are_left(void **state) {
    (void)state;
    result r = { 0 };
    feclearexcept(FE_ALL_EXCEPT);
    tg_context *ctx = open_context(2, NULL, NULL);
    double gflops;
    OK(ctx, tg_measure_peak(ctx, &gflops));
    assert_int_equal(fetestexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW), 0);
    tg_context_free(ctx);
    feraiseexcept(FE_DIVBYZERO);
    use(&modes[0], false, 1, &r);
    assert_true(fetestexcept(FE_DIVBYZERO));
    feclearexcept(FE_ALL_EXCEPT);
}

static void divide(void *user, unsigned worker) {
    volatile float one = 1, third = 3;
    ((float *)user)[worker] = one / third;
}

/* A pool of its own: no public call that made it has set the default before. */
static void workers_begin_with_the_default(void **state) {
    (void)state;
    float wanted, have[4];
    divide(&wanted, 0);
    tg_ctx err;
    tg_ctx_init(&err, NULL, NULL, NULL);
    set_mode(&modes[2]);
    tg_pool *pool;
    assert_int_equal(tg_pool_new(&err, 4, &pool), TG_OK);
    tg_pool_run(pool, divide, have);
    tg_pool_free(pool);
    set_mode(&modes[0]);
    for (int i = 1; i < 4; i++) assert_true(have[i] == wanted);
    assert_true(have[0] < wanted); /* the caller's own */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(the_modes_matter_here, back_to_default),
        cmocka_unit_test_teardown(no_bit_changes, back_to_default),
        cmocka_unit_test_teardown(flags_are_left, back_to_default),
        cmocka_unit_test_teardown(workers_begin_with_the_default, back_to_default),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
