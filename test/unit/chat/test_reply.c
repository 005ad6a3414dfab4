/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_reply.c - the parts of an answer: the same however its text is cut, also by what only looks
 * like a mark.
 */
#include "tok_util.h"

#include "chat/reply.h"

typedef struct parts {
    char text[3][256];
    size_t n[3];
} parts;

static void hear(void *user, tg_reply_part part, const char *text, size_t n) {
    parts *p = user;
    assert_true(n > 0 && p->n[part] + n < sizeof p->text[0]);
    memcpy(p->text[part] + p->n[part], text, n);
    p->n[part] += n;
}

static const struct {
    const char *template_text, *answer, *said, *thought, *called;
} cases[] = {
    { "<think>", "<think>\nWhy?\n</think>\n\nSo.", "So.", "Why?\n", "" },
    { "</think>", "Hm <think>a</think> b <think> c", "Hm b ", "ac", "" },
    { NULL, "<think>a</think>b", "<think>a</think>b", "", "" },
    { "[THINK]", "<think>[THINK]x[/THINK]y", "<think>y", "x", "" },
    { "<think>", "a <<think>b</</think></think>c", "a <</think>c", "b</", "" },
    { "<think>", "1 < 2, <thin, </think>", "1 < 2, <thin, </think>", "", "" },
    { "<think><tool_call>", "<think>a <tool_call></think><tool_call>\n{\"n\":1}\n</tool_call>z",
      "z", "a <tool_call>", "{\"n\":1}\n" },
    { "<tool_call>", "<tool_call>1</tool_call>\n<tool_call>2</tool_call>", "", "", "12" },
    { "[TOOL_CALLS]", "Yes.[TOOL_CALLS] [{}] </think>", "Yes.", "", "[{}] </think>" },
    { "<|channel>thought", "<|channel>thought\nhm<channel|>yes <", "yes <", "hm", "" },
};

static void parts_are_told_apart(void **state) {
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        const char *const want[3] = { cases[c].said, cases[c].thought, cases[c].called };
        const size_t n = strlen(cases[c].answer);
        for (size_t piece = 1; piece <= n; piece++) {
            parts p = { .n = { 0 } };
            tg_reply r;
            tg_reply_begin(&r, cases[c].template_text, NULL);
            for (size_t at = 0; at < n; at += piece)
                tg_reply_push(&r, cases[c].answer + at, n - at < piece ? n - at : piece, hear, &p);
            tg_reply_end(&r, hear, &p);
            for (size_t k = 0; k < 3; k++) assert_string_equal(p.text[k], want[k]);
        }
    }
}

static void bytes_of_any_kind(void **state) {
    (void)state;
    static const char zeros[] = "<think>\0a\0</think>\0<\0";
    parts p = { .n = { 0 } };
    tg_reply r;
    tg_reply_begin(&r, "<think>[TOOL_CALLS]", NULL);
    tg_reply_push(&r, zeros, sizeof zeros - 1, hear, &p);
    tg_reply_push(&r, "[TOOL_CALLS]\0", 13, hear, &p);
    tg_reply_end(&r, hear, &p);
    assert_int_equal(p.n[TG_REPLY_THINKING], 3);
    assert_memory_equal(p.text[TG_REPLY_THINKING], "\0a\0", 3);
    assert_int_equal(p.n[TG_REPLY_ANSWER], 3);
    assert_memory_equal(p.text[TG_REPLY_ANSWER], "\0<\0", 3);
    assert_int_equal(p.n[TG_REPLY_TOOL_CALL], 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_told_apart),
        cmocka_unit_test(bytes_of_any_kind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
