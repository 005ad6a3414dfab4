/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_chats.c - conversations as rows of training: what is predicted and what is read, their
 * order, templates that write earlier turns anew, lines that are broken.
 */
#include "engine_util.h"
#include "fail_alloc.h"

#include "training/train.h"

static const char *const MODEL = "test/golden/lm/tune_phi3.zip"; /* '<bos>role: text<eos>' */
static const char *const SAVE = "build/test_chats.tinygpt";
static const char TWO[] =
    "{\"messages\":[{\"role\":\"user\",\"content\":\"Say 1\"},"
    "{\"role\":\"assistant\",\"content\":\"It is 1.\"}]}\n"
    "\n"
    "{\"messages\":[{\"role\":\"system\",\"content\":\"Count.\"},{\"role\":\"user\","
    "\"content\":\"Say 2\"},{\"role\":\"assistant\",\"content\":\"Well, 2\"},{\"role\":\"user\","
    "\"content\":\"And?\"},{\"role\":\"assistant\",\"content\":\"Then 3\"},{\"role\":\"user\","
    "\"content\":\"Thanks\"}]}\n";

enum { T = 96 };

typedef struct setting {
    tg_context *ctx;
    tg_tokenizer *tok;
} setting;

static setting open_setting(void) {
    setting s = { .ctx = open_context(1, NULL, NULL) };
    OK(s.ctx, tg_tokenizer_open(s.ctx, MODEL, &s.tok));
    return s;
}

static void close_setting(setting *s) {
    tg_tokenizer_free(s->tok);
    tg_context_free(s->ctx);
}

static tg_text *chats_of(const setting *s, const char *template_name, const char *lines,
                         tg_chats_info *info) {
    tg_text *text;
    OK(s->ctx, tg_text_of_chats(s->ctx, s->tok, template_name, "chats.jsonl", lines, strlen(lines),
                                0, info, &text));
    uint64_t n_val;
    text->rows_train = text->rows_split(text->rows_user, 0, &n_val);
    return text;
}

/* Special tokens as |. */
static void append(const setting *s, char *to, int32_t id) {
    size_t n;
    const char *bytes = tg_tokenizer_bytes(s->tok, id, &n);
    if (n)
        strncat(to, bytes, n);
    else
        strcat(to, "|");
}

/* What row n predicts, and what it reads, as text; they must be the same tokens, one later. */
static void row_of(const setting *s, tg_text *text, uint64_t n, char *predicted, char *read) {
    int32_t ids[T], targets[T];
    predicted[0] = read[0] = '\0';
    assert_int_equal(text->train_row(text->rows_user, n, T, ids, targets), 0);
    for (size_t t = 0; t < T; t++) {
        append(s, read, ids[t]);
        if (targets[t] == TG_NO_TARGET) continue;
        if (t + 1 < T) assert_int_equal(targets[t], ids[t + 1]);
        append(s, predicted, targets[t]);
    }
}

static void answers_alone_are_predicted(void **state) {
    (void)state;
    setting s = open_setting();
    tg_chats_info info;
    tg_text *text = chats_of(&s, NULL, TWO, &info);
    char predicted[2][512], read[2][4096];
    assert_int_equal(info.conversations, 2);
    assert_int_equal(info.rows, 2);
    row_of(&s, text, 0, predicted[0], read[0]);
    row_of(&s, text, 1, predicted[1], read[1]);
    const int two = strstr(read[0], "Count.") == NULL;
    assert_string_equal(predicted[!two], "It is 1.|");
    assert_string_equal(predicted[two], "Well, 2|Then 3|");
    assert_non_null(strstr(read[two], "|user: And?||assistant: Then 3|"));
    assert_null(strstr(read[two], "Thanks"));
    tg_text_free(text);
    close_setting(&s);
}

/* A template that shortens what was said earlier: each answer is learnt behind what its question
 * will stand behind. */
static void rewritten_turns_are_rows_of_their_own(void **state) {
    (void)state;
    static const char shortens[] =
        "{% for m in messages %}{{ '<bos>' + m['role'] + ': ' }}{% if m['role'] == 'assistant' and "
        "not loop.last %}..{% else %}{{ m['content'] }}{% endif %}{{ '<eos>' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<bos>assistant: ' }}{% endif %}";
    setting s = open_setting();
    tg_chats_info info;
    tg_text *text = chats_of(&s, shortens, TWO, &info);
    char predicted[512], read[4096];
    assert_int_equal(info.conversations, 2);
    assert_int_equal(info.rows, 3);
    int found = 0;
    for (uint64_t n = 0; n < 3; n++) {
        row_of(&s, text, n, predicted, read);
        if (!strstr(read, "And?")) continue;
        assert_string_equal(predicted, "Then 3|");
        assert_non_null(strstr(read, "assistant: ..|"));
        found++;
    }
    assert_int_equal(found, 1);
    tg_text_free(text);
    close_setting(&s);
}

static char *many(size_t n) {
    char *all = malloc(n * 128 + 1), *to = all;
    assert_non_null(all);
    for (size_t i = 0; i < n; i++)
        to += sprintf(to,
                      "{\"messages\":[{\"role\":\"user\",\"content\":\"%zu?\"},"
                      "{\"role\":\"assistant\",\"content\":\"%zu!\"}]}\n",
                      i, i);
    return all;
}

/* Each once an epoch, in another order in the next one and by another seed; one that is longer than
 * a row is cut. */
static void every_conversation_once_an_epoch(void **state) {
    (void)state;
    enum { N = 50 };
    setting s = open_setting();
    char *lines = many(N);
    tg_text *text = chats_of(&s, NULL, lines, NULL);
    int order[3][N];
    for (int pass = 0; pass < 3; pass++) {
        bool seen[N] = { false };
        text->rows_seed = pass == 2;
        for (uint64_t n = 0; n < N; n++) {
            char predicted[512], read[4096];
            row_of(&s, text, n + (pass == 1 ? N : 0), predicted, read);
            const int i = atoi(predicted);
            assert_false(seen[i]);
            seen[i] = true;
            order[pass][n] = i;
        }
    }
    assert_memory_not_equal(order[0], order[1], sizeof order[0]);
    assert_memory_not_equal(order[0], order[2], sizeof order[0]);
    int32_t ids[3], targets[3];
    assert_int_equal(text->train_row(text->rows_user, 0, 3, ids, targets), 0);
    assert_int_equal(targets[2], TG_NO_TARGET);
    tg_text_free(text);
    free(lines);
    close_setting(&s);
}

static run_of chat_run(const char *lines, double val_fraction) {
    run_of r = { .ctx = open_context(1, NULL, NULL) };
    tg_train_options o = tg_train_options_default();
    o.steps = 8;
    o.batch = 3;
    o.row_tokens = 24;
    o.eval_every = 2;
    o.val_fraction = val_fraction;
    OK(r.ctx, tg_model_open_floats(r.ctx, MODEL, &r.model));
    OK(r.ctx, tg_text_of_chats(r.ctx, tg_model_tokenizer(r.model), NULL, "chats.jsonl", lines,
                               strlen(lines), 0, NULL, &r.text));
    OK(r.ctx, tg_trainer_new(r.ctx, r.model, r.text, &o, &r.trainer));
    return r;
}

static void a_run_learns_and_is_resumed(void **state) {
    (void)state;
    char *lines = many(20);
    run_of r = chat_run(lines, 0.2);
    assert_int_equal(r.trainer->windows.n_val_rows, 4);
    const double first = steps_until(&r, 2).val_loss;
    steps_until(&r, 3);
    OK(r.ctx, tg_trainer_save(r.trainer, SAVE));
    const tg_step_report a = steps_until(&r, 8);
    assert_true(a.val_loss < first && a.bits_per_byte > 0);
    tg_step_report b = { .step = 0 };
    tg_trainer *t;
    OK(r.ctx, tg_trainer_open(r.ctx, SAVE, r.text, 0, &t));
    while (b.step < 8) OK(r.ctx, tg_trainer_step(t, &b));
    assert_int_equal(a.loss_hash, b.loss_hash);
    tg_trainer_free(t);
    *strrchr(lines, '!') = '?'; /* in the last answer */
    tg_text *other;
    OK(r.ctx, tg_text_of_chats(r.ctx, tg_model_tokenizer(r.model), NULL, "chats.jsonl", lines,
                               strlen(lines), 0, NULL, &other));
    assert_int_equal(tg_trainer_open(r.ctx, SAVE, other, 0, &t), TG_E_DATA);
    tg_text_free(other);
    end_run(&r);
    free(lines);
}

/* Another run on the same conversations, of other shares, changes nothing of the first one's. */
static void runs_share_conversations(void **state) {
    (void)state;
    uint64_t hash[2];
    char *lines = many(20);
    for (int shared = 0; shared < 2; shared++) {
        run_of r = chat_run(lines, 0.2);
        steps_until(&r, 3);
        tg_trainer *other = NULL;
        tg_train_options o = tg_train_options_default();
        o.row_tokens = 24;
        o.val_fraction = 0;
        if (shared) OK(r.ctx, tg_trainer_new(r.ctx, r.model, r.text, &o, &other));
        hash[shared] = steps_until(&r, 8).loss_hash;
        int32_t ids[24], targets[24];
        assert_int_equal(tg_windows_row(&r.trainer->windows, 4, false, 24, ids, targets),
                         TG_E_DATA);
        tg_trainer_free(other);
        end_run(&r);
    }
    assert_int_equal(hash[0], hash[1]);
    free(lines);
}

/* Rows that end before any answer begins would be learnt at no loss at all. */
static void answers_behind_the_rows_are_refused(void **state) {
    (void)state;
    enum { SHORT = 6 };
    char lines[2048], *good = many(1);
    run_of r = { .ctx = open_context(1, NULL, NULL) };
    OK(r.ctx, tg_model_open_floats(r.ctx, MODEL, &r.model));
    for (int validates = 0; validates < 2; validates++) {
        tg_train_options o = tg_train_options_default();
        o.row_tokens = validates ? 24 : SHORT;
        o.val_fraction = 0.5;
        snprintf(lines, sizeof lines,
                 "%s{\"messages\":[{\"role\":\"user\",\"content\":\"%0200d\"},"
                 "{\"role\":\"assistant\",\"content\":\"1\"}]}\n",
                 good, 1);
        OK(r.ctx, tg_text_of_chats(r.ctx, tg_model_tokenizer(r.model), NULL, "chats.jsonl", lines,
                                   strlen(lines), 0, NULL, &r.text));
        assert_int_equal(tg_trainer_new(r.ctx, r.model, r.text, &o, &r.trainer), TG_E_DATA);
        assert_non_null(strstr(tg_context_error(r.ctx), validates
                                                            ? "the validation part has no answer"
                                                            : "the training part has no answer"));
        tg_text_free(r.text);
    }
    tg_model_free(r.model);
    tg_context_free(r.ctx);
    free(good);
}

static void broken_lines_are_named(void **state) {
    (void)state;
    static const struct {
        const char *line, *says;
    } cases[] = {
        { "{\"messages\":[", "line 2" },
        { "{}", "messages" },
        { "[1]", "an object" },
        { "{\"messages\":{}}", "messages" },
        { "{\"messages\":[]}", "an answer" },
        { "{\"messages\":[\"hi\"]}", "an object" },
        { "{\"messages\":[{\"content\":\"hi\"}]}", "role" },
        { "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}", "an answer" },
        { "{\"messages\":[{\"role\":\"assistant\",\"content\":\"hi\"}]}", "an answer" },
        { "{\"messages\":[{\"role\":\"user\"},{\"role\":\"assistant\",\"content\":\"hi\"}]}",
          "undefined" },
    };
    setting s = open_setting();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char lines[1024];
        char *good = many(1);
        tg_text *text = NULL;
        snprintf(lines, sizeof lines, "%s%s\n%s", good, cases[i].line, good);
        const tg_status status = tg_text_of_chats(s.ctx, s.tok, NULL, "chats.jsonl", lines,
                                                  strlen(lines), 0, NULL, &text);
        const char *said = tg_context_error(s.ctx);
        if (status == TG_OK || text || !strstr(said, "chats.jsonl: line 2") ||
            !strstr(said, cases[i].says))
            fail_msg("%s: status %d, %s", cases[i].line, status, said);
        free(good);
    }
    tg_text *text;
    assert_int_equal(tg_text_of_chats(s.ctx, s.tok, NULL, "empty.jsonl", "\n", 1, 0, NULL, &text),
                     TG_E_DATA);
    close_setting(&s);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    size_t n = 1;
    for (bool done = false; !done; n++) {
        test_alloc a = { .fail_at = n };
        tg_context_options co = tg_context_options_default();
        co.threads = 1;
        co.alloc = test_alloc_fn;
        co.alloc_user = &a;
        tg_context *ctx = NULL;
        tg_tokenizer *tok = NULL;
        tg_text *text = NULL;
        tg_status status = tg_context_new(&co, &ctx);
        if (status == TG_OK) status = tg_tokenizer_open(ctx, MODEL, &tok);
        if (status == TG_OK) a.fail_at = a.requests + n;
        if (status == TG_OK)
            status =
                tg_text_of_chats(ctx, tok, NULL, "chats.jsonl", TWO, strlen(TWO), 0, NULL, &text);
        done = status == TG_OK;
        if (!done && tok) assert_int_equal(status, TG_E_MEMORY);
        tg_text_free(text);
        tg_tokenizer_free(tok);
        tg_context_free(ctx);
        assert_int_equal(a.live_pieces, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_alone_are_predicted),
        cmocka_unit_test(rewritten_turns_are_rows_of_their_own),
        cmocka_unit_test(every_conversation_once_an_epoch),
        cmocka_unit_test(a_run_learns_and_is_resumed),
        cmocka_unit_test(runs_share_conversations),
        cmocka_unit_test(answers_behind_the_rows_are_refused),
        cmocka_unit_test(broken_lines_are_named),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
