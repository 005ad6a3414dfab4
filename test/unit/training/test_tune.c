/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_tune.c - third-party models with float weights, trained on tokens: the losses of the oracle
 * (tools/oracle/finetune.py), and that what is saved is what was trained.
 */
#include "engine_util.h"

#include <math.h>

#include "io/gguf/gguf.h"
#include "load/weights.h"
#include "training/train.h"

enum { STEPS = 20, TEXT_BYTES = 12000, ROW = 24, BATCH = 4 };

#define RUN "build/test/tune.tinygpt"

static const char *const families[] = { "llama",      "qwen2",  "qwen3",    "gemma3",  "gpt2",
                                        "lfm2",       "phi3",   "mistral",  "smollm3", "phi4",
                                        "gemma2",     "olmo2",  "granite",  "qwen35",  "qwen3moe",
                                        "granitemoe", "falcon", "nemotron", "gemma4" };
enum { N_FAMILIES = sizeof families / sizeof families[0] };

static tg_text *first_bytes(tg_context *ctx, size_t n) {
    char *bytes = malloc(n);
    tg_text *text;
    FILE *f = fopen(STORIES, "rb");
    assert_non_null(f);
    assert_int_equal(fread(bytes, 1, n, f), n);
    fclose(f);
    OK(ctx, tg_text_from_memory(ctx, bytes, n, &text));
    free(bytes);
    return text;
}

static tg_train_options options(void) {
    tg_train_options o = tg_train_options_default();
    o.steps = STEPS;
    o.batch = BATCH;
    o.row_tokens = ROW;
    o.lr = 1e-3;
    o.eval_every = 0;
    o.eval_windows = 0;
    return o;
}

static const char *folder_of(const char *family, char path[64]) {
    snprintf(path, 64, "test/golden/lm/tune_%s.zip", family);
    return path;
}

static run_of start(unsigned threads, const char *family) {
    char path[64];
    const tg_train_options o = options();
    run_of r = { .ctx = open_context(threads, NULL, NULL) };
    r.text = first_bytes(r.ctx, TEXT_BYTES);
    OK(r.ctx, tg_model_open_floats(r.ctx, folder_of(family, path), &r.model));
    OK(r.ctx, tg_trainer_new(r.ctx, r.model, r.text, &o, &r.trainer));
    return r;
}

/* What the trained model answers behind the oracle's prompt. */
static void answers(run_of *r, const char *family) {
    enum { N = 20, V = 288 };
    char path[64];
    size_t n;
    int32_t prompt[N];
    tg_session *s;
    const float *logits;
    double most = 0, worst = 0;
    snprintf(path, sizeof path, "test/golden/lm/tune_%s_logits.txt", family);
    double *want = read_golden(path, &n);
    assert_int_equal(n, V);
    for (int i = 0; i < N; i++) prompt[i] = (11 * i * i + 5 * i + 2) % (V - 2) + 2;
    OK(r->ctx, tg_session_new(r->ctx, r->model, 0, &s));
    OK(r->ctx, tg_session_eval(s, prompt, N, &logits));
    for (int i = 0; i < V; i++) {
        most = fmax(most, fabs(want[i]));
        worst = fmax(worst, fabs((double)logits[i] - want[i]));
    }
    if (!(worst < 1e-4 * most))
        fail_msg("%s: a logit of up to %g is off by %g", family, most, worst);
    tg_session_free(s);
    free(want);
}

static void test_oracle(void **state) {
    (void)state;
    for (int k = 0; k < N_FAMILIES; k++) {
        char path[64];
        tg_step_report report;
        snprintf(path, sizeof path, "test/golden/lm/tune_%s.txt", families[k]);
        run_of r = start(2, families[k]);
        const double worst = off_golden(&r, path, STEPS, &report);
        if (!(worst < 1e-4)) fail_msg("%s: losses differ by %g", families[k], worst);
        assert_true(report.bits_per_byte > 0 && report.bits_per_byte < report.loss / 0.6931);
        answers(&r, families[k]);
        end_run(&r);
    }
}

/* Threads change no bit; a run that was saved and resumed goes on to the same ones. */
static void resumes(const char *family) {
    run_of whole = start(1, family), half = start(3, family);
    const uint64_t hash = steps_until(&whole, STEPS).loss_hash;
    steps_until(&half, STEPS / 2);
    OK(half.ctx, tg_trainer_save(half.trainer, RUN));
    run_of rest = { .ctx = open_context(2, NULL, NULL) };
    rest.text = first_bytes(rest.ctx, TEXT_BYTES);
    OK(rest.ctx, tg_trainer_open(rest.ctx, RUN, rest.text, 0, &rest.trainer));
    if (steps_until(&rest, STEPS).loss_hash != hash) fail_msg("%s: other bits", family);
    OK(rest.ctx, tg_trainer_save(rest.trainer, RUN));
    end_run(&rest);
    end_run(&half);
    end_run(&whole);
}

/* Without a trainer: its bits, whatever the vocabulary; and about the same in pieces over a cache,
 * where windows of as many predicted tokens have one more in all. */
static void test_alone(void **state) {
    (void)state;
    for (int k = 0; k < N_FAMILIES; k++) {
        char path[64];
        double want, have, pieces;
        tg_train_options o = options();
        o.row_tokens = 0;
        o.val_fraction = 0.3;
        o.eval_windows = 3;
        run_of r = { .ctx = open_context(2, NULL, NULL) };
        r.text = first_bytes(r.ctx, TEXT_BYTES);
        OK(r.ctx, tg_model_open_floats(r.ctx, folder_of(families[k], path), &r.model));
        OK(r.ctx, tg_trainer_new(r.ctx, r.model, r.text, &o, &r.trainer));
        OK(r.ctx, tg_trainer_eval(r.trainer, &want));
        OK(r.ctx, tg_model_eval(r.ctx, r.model, r.text, 0.3, 3, &have));
        assert_memory_equal(&have, &want, sizeof want);
        tg_model_evaluating e = { 0 };
        OK(r.ctx, tg_model_evaluating_begin(&e, r.ctx, r.model, r.text, 0.3, 3));
        e.in_pieces = true;
        e.o.row_tokens++;
        OK(r.ctx, tg_model_evaluating_go_on(&e, 0, &pieces));
        assert_true(fabs(pieces / want - 1) < 1e-5);
        tg_model_evaluating_deinit(&e);
        end_run(&r);
    }
}

/* A conversation, if there is a template: the same ids, text and ends. */
static void keeps_chat(tg_context *ctx, const tg_tokenizer *a, const tg_tokenizer *b) {
    static const tg_turn turn = { TG_USER, "The bear?", 9 };
    const char *was = tg_tokenizer_template(a), *is = tg_tokenizer_template(b);
    int32_t x[128], y[128], ends_x[TG_ENDS_MAX], ends_y[TG_ENDS_MAX];
    size_t n, m;
    assert_int_equal(was != NULL, is != NULL);
    if (!was) return;
    assert_string_equal(was, is);
    OK(ctx, tg_tokenizer_ends(ctx, a, NULL, ends_x, &n));
    OK(ctx, tg_tokenizer_ends(ctx, b, NULL, ends_y, &m));
    assert_true(n > 0);
    assert_int_equal(n, m);
    assert_memory_equal(ends_x, ends_y, n * sizeof *ends_x);
    OK(ctx, tg_tokenizer_chat(ctx, a, NULL, &turn, 1, 0, x, 128, &n));
    OK(ctx, tg_tokenizer_chat(ctx, b, NULL, &turn, 1, 0, y, 128, &m));
    assert_true(n > 9);
    assert_int_equal(n, m);
    assert_memory_equal(x, y, n * sizeof *x);
}

/* Saves have the tokenizer of the folder: the same ids, of this text and of any; and its chat. */
static void keeps_tokenizer(tg_context *ctx, const char *family, const char *save) {
    static const char text[] = "The bear who had seen it,\n\nand 12 more: \xc3\xa9 <eos>";
    char path[64];
    tg_tokenizer *a, *b;
    int32_t x[128], y[128];
    size_t n, m;
    OK(ctx, tg_tokenizer_open(ctx, folder_of(family, path), &a));
    OK(ctx, tg_tokenizer_open(ctx, save, &b));
    assert_int_equal(tg_tokenizer_count(a), tg_tokenizer_count(b));
    OK(ctx, tg_tokenizer_encode(ctx, a, text, sizeof text - 1, TG_ENCODE_ENDS, x, 128, &n));
    OK(ctx, tg_tokenizer_encode(ctx, b, text, sizeof text - 1, TG_ENCODE_ENDS, y, 128, &m));
    assert_int_equal(n, m);
    assert_memory_equal(x, y, n * sizeof *x);
    keeps_chat(ctx, a, b);
    tg_tokenizer_free(a);
    tg_tokenizer_free(b);
}

/* What convert writes is read back and compared by convert itself: here its report is looked at,
 * and that a file that it wrote can be trained again, from the same weights. */
static void converts(tg_context *ctx, const char *family) {
    static const char gguf[] = "build/test/tune.gguf";
    static const struct {
        const char *in, *out;
        tg_file_kind kind;
    } to[] = { { RUN, gguf, TG_FILE_GGUF },
               { RUN, "build/test/tune.hf", TG_FILE_FOLDER },
               { gguf, "build/test/tune_lm.tinygpt", TG_FILE_V3 } };
    tg_model *run, *back;
    OK(ctx, tg_model_open(ctx, RUN, &run));
    for (size_t i = 0; i < sizeof to / sizeof to[0]; i++) {
        tg_convert_report r;
        OK(ctx, tg_model_convert(ctx, to[i].in, to[i].out, to[i].kind, TG_WEIGHT_F32, &r));
        if (!(r.max_error < 1e-5) || r.n_positions == 0)
            fail_msg("%s: %s: off by %g at %zu positions", family, to[i].out, r.max_error,
                     (size_t)r.n_positions);
        OK(ctx, tg_model_open_floats(ctx, to[i].out, &back));
        assert_true(tg_config_same(&run->layout.config, &back->layout.config));
        /* Gains of Gemma and Qwen 3.5 are 1 + w in memory, and w in a folder; decays of states are
         * logs, and in GGUF what they are logs of: rounded once more on the way. */
        const bool rounds = strcmp(family, "gemma3") == 0 || strcmp(family, "granite") == 0 ||
                            strcmp(family, "falcon") == 0 || strcmp(family, "qwen35") == 0 ||
                            strcmp(family, "nemotron") == 0;
        const float most = rounds ? 1.2e-7f : 0;
        for (size_t e = 0; e < run->layout.n_elems; e++)
            if (!(fabsf(run->weights[e] - back->weights[e]) <= most))
                fail_msg("%s: %s: weight %zu is another one", family, to[i].out, e);
        tg_model_free(back);
        keeps_tokenizer(ctx, family, to[i].out);
    }
    tg_model_free(run);
}

static void test_saves(void **state) {
    (void)state;
    for (int k = 0; k < N_FAMILIES; k++) {
        tg_context *ctx = open_context(2, NULL, NULL);
        resumes(families[k]);
        keeps_tokenizer(ctx, families[k], RUN);
        converts(ctx, families[k]);
        tg_context_free(ctx);
    }
}

static void refused(tg_context *ctx, const char *path, const char *message) {
    tg_model *m = NULL;
    assert_int_equal(tg_model_open_floats(ctx, path, &m), TG_E_UNSUPPORTED);
    assert_null(m);
    if (!strstr(tg_context_error(ctx), message)) fail_msg("%s: %s", path, tg_context_error(ctx));
}

static void test_refusals(void **state) {
    (void)state;
    tg_context *ctx = open_context(1, NULL, NULL);
    refused(ctx, "test/golden/lm/mlx4", "training wants f32, f16 or bf16, have mlx4");
    refused(ctx, "test/golden/lm/falcon_norm",
            "tensor blk.0.ssm_norm.weight: training wants models of falcon-h1 without it");
    refused(ctx, "test/golden/lm/rank_bert.zip", "training wants models of bert without it");
    tg_model *m, *packed;
    tg_trainer *t;
    tg_text *text = first_bytes(ctx, TEXT_BYTES);
    const tg_train_options o = options();
    OK(ctx, tg_model_open_floats(ctx, "test/golden/lm/llama", &m)); /* without a tokenizer */
    assert_int_equal(tg_trainer_new(ctx, m, text, &o, &t), TG_E_DATA);
    assert_non_null(strstr(tg_context_error(ctx), "a row for each of the 256 tokens"));
    OK(ctx, tg_model_open(ctx, "test/golden/lm/tune_qwen3.zip", &packed));
    assert_int_equal(tg_trainer_new(ctx, packed, text, &o, &t), TG_E_UNSUPPORTED);
    assert_non_null(strstr(tg_context_error(ctx), "open it with tg_model_open_floats"));
    tg_model_free(packed);
    tg_model_free(m);
    tg_text_free(text);
    tg_context_free(ctx);
}

/* ---------------------------------------------------------------------------------- own rows */

/* The windows that a text's batches have, as rows of the caller's; what does not count is masked.
 */
typedef struct own_rows {
    int32_t *ids;
    size_t n_train, n;
    bool masks, wrong;
} own_rows;

static int own_row(void *user, uint64_t number, size_t T, int32_t *ids, int32_t *targets) {
    const own_rows *r = user;
    const uint64_t start = tg_batch_start(42, number, r->n_train, T);
    for (size_t i = 0; i < T; i++) {
        ids[i] = r->ids[start + i];
        targets[i] = r->masks && i % 3 == 1 ? TG_NO_TARGET : r->ids[start + i + 1];
    }
    if (r->wrong) ids[3] = 288;
    return 0;
}

static int own_val(void *user, uint64_t number, size_t T, int32_t *ids, int32_t *targets) {
    const own_rows *r = user;
    for (size_t i = 0; i < T; i++) {
        ids[i] = r->ids[r->n_train + number * T + i];
        targets[i] = r->ids[r->n_train + number * T + i + 1];
    }
    return 0;
}

static own_rows rows_of(tg_context *ctx, const tg_model *m) {
    own_rows r = { .n = 0 };
    char *bytes = malloc(TEXT_BYTES);
    FILE *f = fopen(STORIES, "rb");
    assert_non_null(f);
    assert_int_equal(fread(bytes, 1, TEXT_BYTES, f), TEXT_BYTES);
    fclose(f);
    r.ids = malloc(TEXT_BYTES * sizeof *r.ids);
    OK(ctx, tg_tokenizer_encode(ctx, tg_model_tokenizer(m), bytes, TEXT_BYTES, 0, r.ids, TEXT_BYTES,
                                &r.n));
    r.n_train = r.n - (size_t)((double)r.n * 0.1);
    free(bytes);
    return r;
}

static run_of start_rows(own_rows *rows, bool masks, const char *resume) {
    char path[64];
    const tg_train_options o = options();
    run_of r = { .ctx = open_context(2, NULL, NULL) };
    tg_model *m;
    OK(r.ctx, tg_model_open_floats(r.ctx, folder_of("qwen3", path), &m));
    *rows = rows_of(r.ctx, m);
    rows->masks = masks;
    const uint64_t n_val = (rows->n - rows->n_train - 1) / ROW;
    OK(r.ctx, tg_text_of_rows(r.ctx, own_row, own_val, n_val, 7, rows, &r.text));
    if (resume) {
        tg_model_free(m);
        OK(r.ctx, tg_trainer_open(r.ctx, resume, r.text, 0, &r.trainer));
    } else {
        r.model = m;
        OK(r.ctx, tg_trainer_new(r.ctx, r.model, r.text, &o, &r.trainer));
    }
    return r;
}

/* The same rows as a text's give the same bits; fewer targets others; and a run of them resumes. */
static void test_rows(void **state) {
    (void)state;
    own_rows rows, more, rest_rows;
    run_of text = start(1, "qwen3"), own = start_rows(&rows, false, NULL);
    const tg_step_report a = steps_until(&text, STEPS), b = steps_until(&own, STEPS);
    assert_true(a.loss_hash == b.loss_hash);
    assert_true(a.val_loss == b.val_loss);
    run_of masked = start_rows(&more, true, NULL);
    steps_until(&masked, STEPS / 2);
    OK(masked.ctx, tg_trainer_save(masked.trainer, RUN));
    const tg_step_report c = steps_until(&masked, STEPS);
    assert_true(c.loss_hash != b.loss_hash && fabs(c.loss / b.loss - 1) < 0.1);
    run_of rest = start_rows(&rest_rows, true, RUN);
    assert_true(steps_until(&rest, STEPS).loss_hash == c.loss_hash);
    tg_step_report report;
    OK(own.ctx, tg_trainer_set_steps(own.trainer, STEPS + 1));
    rows.wrong = true;
    assert_int_equal(tg_trainer_step(own.trainer, &report), TG_E_RANGE);
    assert_non_null(strstr(tg_context_error(own.ctx), "token 3: want an id in [0,288)"));
    end_run(&rest);
    end_run(&masked);
    end_run(&own);
    end_run(&text);
    free(rows.ids);
    free(more.ids);
    free(rest_rows.ids);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_oracle),   cmocka_unit_test(test_alone), cmocka_unit_test(test_saves),
        cmocka_unit_test(test_refusals), cmocka_unit_test(test_rows),
    };
    return cmocka_run_group_tests_name("tune", tests, NULL, NULL);
}
