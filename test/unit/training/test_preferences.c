/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_preferences.c - training on pairs of answers: the losses are PyTorch's, rows of a pair stay
 * together, a run goes on to the same bits, what is broken is refused.
 */
#include "engine_util.h"
#include "fail_alloc.h"

#include "training/train.h"

static const char *const PHI3 = "test/golden/lm/tune_phi3.zip"; /* '<bos>role: text<eos>' */
static const char *const SAVE = "build/test_preferences.tinygpt";
static const char TALK[] =
    "{\"prompt\":[{\"role\":\"user\",\"content\":\"Say 1\"}],"
    "\"chosen\":[{\"role\":\"assistant\",\"content\":\"It is 1.\"}],"
    "\"rejected\":[{\"role\":\"assistant\",\"content\":\"No\"}]}\n"
    "{\"prompt\":\"Say 2\",\"chosen\":[{\"role\":\"user\",\"content\":\"Say 2\"},{\"role\":"
    "\"assistant\",\"content\":\"2.\"}],\"rejected\":[{\"role\":\"user\",\"content\":\"Say 2\"},"
    "{\"role\":\"assistant\",\"content\":\"3?\"}]}\n"
    "{\"prompt\":\"Say 3:\",\"chosen\":\" 3\",\"rejected\":\" nothing\"}\n";

static char *contents(const char *path) {
    FILE *f = fopen(path, "rb");
    char *all = calloc(1, 65536);
    assert_non_null(f);
    assert_true(fread(all, 1, 65535, f) > 0);
    fclose(f);
    return all;
}

static tg_train_options options(int32_t accum) {
    tg_train_options o = tg_train_options_default();
    o.steps = 10;
    o.batch = 4;
    o.accum = accum;
    o.lr = 1e-3;
    o.val_fraction = 0.25;
    o.eval_every = 5;
    return o;
}

static tg_text *pairs_of(const run_of *r, const char *lines, double beta) {
    tg_text *text;
    OK(r->ctx, tg_text_of_pairs(r->ctx, tg_model_tokenizer(r->model), NULL, "pairs.jsonl", lines,
                                strlen(lines), 0, beta, NULL, &text));
    return text;
}

static run_of start_pairs(const char *family, unsigned threads, const tg_train_options *o) {
    char path[128];
    run_of r = { .ctx = open_context(threads, NULL, NULL) };
    snprintf(path, sizeof path, "test/golden/lm/tune_%s.zip", family);
    OK(r.ctx, tg_model_open_floats(r.ctx, path, &r.model));
    snprintf(path, sizeof path, "test/golden/lm/pairs_%s.jsonl", family);
    char *lines = contents(path);
    r.text = pairs_of(&r, lines, 0.1);
    free(lines);
    OK(r.ctx, tg_trainer_new(r.ctx, r.model, r.text, o, &r.trainer));
    return r;
}

/* Of messages and of texts, by attention and by convolutions. */
static void losses_are_pytorchs(void **state) {
    (void)state;
    static const char *const families[] = { "phi3", "lfm2" };
    for (int k = 0; k < 2; k++) {
        char path[128];
        size_t n;
        const tg_train_options o = options(1);
        run_of r = start_pairs(families[k], 2, &o);
        tg_step_report report;
        tg_preferences p;
        snprintf(path, sizeof path, "test/golden/lm/pairs_%s.txt", families[k]);
        double *want = read_golden(path, &n);
        assert_int_equal(n, 13);
        for (int i = 0; i < 10; i++) {
            OK(r.ctx, tg_trainer_step(r.trainer, &report));
            OK(r.ctx, tg_trainer_preferences(r.trainer, &p));
            if (!(fabs(report.loss / want[i] - 1) < 1e-5))
                fail_msg("%s: step %d: want %.9g, have %.9g", families[k], i + 1, want[i],
                         report.loss);
        }
        assert_true(p.accuracy == 1 && p.margin > 1);
        if (!(fabs(report.val_loss / want[10] - 1) < 1e-5) || p.val_accuracy != want[11] ||
            !(fabs(p.val_margin / want[12] - 1) < 1e-5))
            fail_msg("%s: validation: %.9g, %g, %.9g", families[k], report.val_loss, p.val_accuracy,
                     p.val_margin);
        free(want);
        end_run(&r);
    }
}

/* What a row predicts, as text, specials as |. */
static void predicted(const run_of *r, tg_text *text, uint64_t n, char *out) {
    enum { T = 48 };
    int32_t ids[T], targets[T];
    out[0] = '\0';
    assert_int_equal(text->train_row(text->rows_user, n, T, ids, targets), 0);
    for (size_t t = 0; t < T; t++) {
        size_t n_bytes;
        if (targets[t] == TG_NO_TARGET) continue;
        if (t + 1 < T) assert_int_equal(targets[t], ids[t + 1]);
        const char *bytes = tg_tokenizer_bytes(tg_model_tokenizer(r->model), targets[t], &n_bytes);
        strncat(out, n_bytes ? bytes : "|", n_bytes ? n_bytes : 1);
    }
}

/* A question is in both rows, so that no loss would tell whether it is predicted. */
static void answers_alone_are_predicted_and_stay_together(void **state) {
    (void)state;
    static const char *const answers[][2] = { { "It is 1.|", "No|" },
                                              { "2.|", "3?|" },
                                              { " 3|", " nothing|" } };
    run_of r = { .ctx = open_context(1, NULL, NULL) };
    OK(r.ctx, tg_model_open_floats(r.ctx, PHI3, &r.model));
    r.text = pairs_of(&r, TALK, 0.1);
    uint64_t n_val;
    char have[2][256];
    r.text->rows_train = r.text->rows_split(r.text->rows_user, 0, &n_val);
    assert_int_equal(r.text->rows_train, 6);
    for (uint64_t epoch = 0; epoch < 3; epoch++) {
        unsigned seen = 0;
        for (uint64_t n = 6 * epoch; n < 6 * epoch + 6; n += 2) {
            for (int i = 0; i < 2; i++) predicted(&r, r.text, n + (uint64_t)i, have[i]);
            for (unsigned k = 0; k < 3; k++)
                if (strcmp(have[0], answers[k][0]) == 0 && strcmp(have[1], answers[k][1]) == 0)
                    seen |= 1u << k;
        }
        assert_int_equal(seen, 7);
    }
    end_run(&r);
}

/* Threads, a save before the first step, whose references are not known yet, and one in the middle;
 * a run keeps its beta, whatever the text now has, and takes none from others on the same text. */
static void a_run_goes_on_to_the_same_bits(void **state) {
    (void)state;
    const tg_train_options o = options(2);
    uint64_t hash = 0;
    for (unsigned threads = 1; threads <= 2; threads++) {
        run_of r = start_pairs("phi3", threads, &o);
        for (int64_t saved = 0; saved <= 6; saved += 3) {
            tg_trainer *t;
            tg_step_report b = { .step = saved };
            tg_preferences p;
            if (saved) steps_until(&r, saved);
            OK(r.ctx, tg_trainer_save(r.trainer, SAVE));
            char *lines = contents("test/golden/lm/pairs_phi3.jsonl");
            tg_text *other = pairs_of(&r, lines, 5);
            OK(r.ctx, tg_trainer_open(r.ctx, SAVE, other, 0, &t));
            while (b.step < 10) OK(r.ctx, tg_trainer_step(t, &b));
            OK(r.ctx, tg_trainer_preferences(t, &p));
            assert_true(p.val_accuracy == 1);
            if (hash == 0) hash = b.loss_hash;
            assert_int_equal(b.loss_hash, hash);
            assert_true(other->beta == 5);
            tg_trainer_free(t);
            tg_text_free(other);
            free(lines);
        }
        assert_int_equal(steps_until(&r, 10).loss_hash, hash);
        end_run(&r);
    }
}

/* Three of the four pairs that validate; margins of a model that has hardly moved are nearly 0, and
 * those of rows that are no pair are not. */
static void what_validates_is_whole_pairs(void **state) {
    (void)state;
    tg_train_options o = options(1);
    tg_preferences p;
    o.steps = 1;
    o.lr = 1e-9;
    o.eval_windows = 5;
    run_of r = start_pairs("phi3", 1, &o);
    steps_until(&r, 1);
    OK(r.ctx, tg_trainer_preferences(r.trainer, &p));
    assert_true(fabs(p.val_margin) < 1e-5);
    end_run(&r);
}

static void what_cannot_be_trained_on_is_refused(void **state) {
    (void)state;
    char *lines = contents("test/golden/lm/pairs_phi3.jsonl");
    tg_train_options o = options(1);
    tg_trainer *t;
    tg_preferences p;
    tg_text *text;
    run_of r = start_pairs("phi3", 1, &o);
    steps_until(&r, 1);
    OK(r.ctx, tg_trainer_save(r.trainer, SAVE));
    o.batch = 3;
    assert_int_equal(tg_trainer_new(r.ctx, r.model, r.text, &o, &t), TG_E_ARG);
    o.batch = 4;
    o.row_tokens = 8;
    assert_int_equal(tg_trainer_new(r.ctx, r.model, r.text, &o, &t), TG_E_DATA);
    assert_non_null(strstr(tg_context_error(r.ctx), "an answer that does not begin"));
    assert_int_equal(tg_text_of_pairs(r.ctx, tg_model_tokenizer(r.model), NULL, "p", lines,
                                      strlen(lines), 0, 0, NULL, &text),
                     TG_E_ARG);
    /* Another pair, and a text; a run on a text has no pairs. */
    *strrchr(lines, '7') = '8';
    text = pairs_of(&r, lines, 0.1);
    assert_int_equal(tg_trainer_open(r.ctx, SAVE, text, 0, &t), TG_E_DATA);
    tg_text_free(text);
    OK(r.ctx, tg_text_open(r.ctx, STORIES, &text));
    assert_int_equal(tg_trainer_open(r.ctx, SAVE, text, 0, &t), TG_E_DATA);
    o.row_tokens = 0;
    OK(r.ctx, tg_trainer_new(r.ctx, r.model, text, &o, &t));
    assert_int_equal(tg_trainer_preferences(t, &p), TG_E_ARG);
    OK(r.ctx, tg_trainer_save(t, SAVE));
    tg_trainer_free(t);
    assert_int_equal(tg_trainer_open(r.ctx, SAVE, r.text, 0, &t), TG_E_DATA);
    tg_text_free(text);
    free(lines);
    end_run(&r);
}

#define SAID(who, what) "[{\"role\":\"" who "\",\"content\":\"" what "\"}]"

static void broken_lines_are_named(void **state) {
    (void)state;
    static const struct {
        const char *line, *says;
    } cases[] = {
        { "{\"chosen\":", "line 2" },
        { "[]", "an object" },
        { "{}", "chosen" },
        { "{\"prompt\":\"a\",\"chosen\":\"b\"}", "rejected" },
        { "{\"prompt\":\"a\",\"chosen\":\"b\",\"rejected\":3}", "rejected" },
        { "{\"prompt\":\"a\",\"chosen\":\"b\",\"rejected\":" SAID("assistant", "c") "}",
          "rejected" },
        { "{\"chosen\":\"b\",\"rejected\":\"c\"}", "prompt" },
        { "{\"prompt\":3,\"chosen\":" SAID("assistant", "b") ",\"rejected\":[]}", "prompt" },
        { "{\"prompt\":\"a\",\"chosen\":\"b\",\"chosen\":\"b\",\"rejected\":\"c\"}", "chosen" },
        { "{\"chosen\":[],\"rejected\":[]}", "an answer" },
        { "{\"prompt\":" SAID("user", "a") ",\"chosen\":[],\"rejected\":[]}", "one message" },
        { "{\"prompt\":[],\"chosen\":" SAID("assistant", "b") ",\"rejected\":[]}", "an answer" },
        { "{\"prompt\":" SAID("user", "a") ",\"chosen\":" SAID("user", "b") ",\"rejected\":[]}",
          "an answer" },
        { "{\"prompt\":" SAID("user", "a") ",\"chosen\":" SAID("assistant",
                                                               "b") ",\"rejected\":[1]}",
          "an object" },
    };
    tg_context *ctx = open_context(1, NULL, NULL);
    tg_tokenizer *tok;
    tg_text *text = NULL;
    OK(ctx, tg_tokenizer_open(ctx, PHI3, &tok));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static const char good[] = "{\"prompt\":\"a\",\"chosen\":\"b\",\"rejected\":\"c\"}\n";
        char lines[1024];
        snprintf(lines, sizeof lines, "%s%s\n%s", good, cases[i].line, good);
        const tg_status status = tg_text_of_pairs(ctx, tok, NULL, "pairs.jsonl", lines,
                                                  strlen(lines), 0, 0.1, NULL, &text);
        const char *said = tg_context_error(ctx);
        if (status == TG_OK || text || !strstr(said, "pairs.jsonl: line 2") ||
            !strstr(said, cases[i].says))
            fail_msg("%s: status %d, %s", cases[i].line, status, said);
    }
    assert_int_equal(tg_text_of_pairs(ctx, tok, NULL, "e", "\n", 1, 0, 0.1, NULL, &text),
                     TG_E_DATA);
    assert_non_null(strstr(tg_context_error(ctx), "want a pair"));
    tg_tokenizer_free(tok);
    /* Texts want no template; messages do. */
    OK(ctx, tg_tokenizer_open(ctx, "test/golden/lm/tune_lfm2.zip", &tok));
    assert_int_equal(tg_text_of_pairs(ctx, tok, NULL, "t", TALK, strlen(TALK), 0, 0.1, NULL, &text),
                     TG_E_UNSUPPORTED);
    tg_tokenizer_free(tok);
    tg_context_free(ctx);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    char *lines = contents("test/golden/lm/pairs_phi3.jsonl");
    tg_train_options o = options(1);
    o.row_tokens = 40;
    for (size_t n = 1, done = 0; !done; n++) {
        test_alloc a = { .fail_at = n };
        tg_context_options co = tg_context_options_default();
        co.threads = 1;
        co.alloc = test_alloc_fn;
        co.alloc_user = &a;
        run_of r = { 0 };
        tg_status status = tg_context_new(&co, &r.ctx);
        if (status == TG_OK) status = tg_model_open_floats(r.ctx, PHI3, &r.model);
        if (status == TG_OK) a.fail_at = a.requests + n;
        if (status == TG_OK)
            status = tg_text_of_pairs(r.ctx, tg_model_tokenizer(r.model), NULL, "p", lines,
                                      strlen(lines), 0, 0.1, NULL, &r.text);
        if (status == TG_OK) status = tg_trainer_new(r.ctx, r.model, r.text, &o, &r.trainer);
        done = status == TG_OK;
        if (!done && r.model) assert_int_equal(status, TG_E_MEMORY);
        end_run(&r);
        assert_int_equal(a.live_pieces, 0);
    }
    free(lines);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_are_pytorchs),
        cmocka_unit_test(answers_alone_are_predicted_and_stay_together),
        cmocka_unit_test(a_run_goes_on_to_the_same_bits),
        cmocka_unit_test(what_validates_is_whole_pairs),
        cmocka_unit_test(what_cannot_be_trained_on_is_refused),
        cmocka_unit_test(broken_lines_are_named),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
