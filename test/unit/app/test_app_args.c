/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_app_args.c - the option parser: what it takes, what it refuses, and what it says then.
 */
#include "args.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct values {
    bool flag;
    int64_t layers, bytes;
    uint64_t seed;
    double lr, val;
    const char *text, *file;
    int schedule;
};

static const tg_option options[] = {
    TG_FLAG("--flag", struct values, flag, "a flag"),
    TG_INT("--layers", struct values, layers, 1, 256, "N", "a number"),
    TG_SIZE("--bytes", struct values, bytes, 1, INT64_MAX, "N", "a size"),
    TG_SEED("--seed", struct values, seed, "S", "a seed"),
    TG_REAL("--lr", struct values, lr, 0, 10, "X", "a rate", .above_low = true),
    TG_REAL("--val", struct values, val, 0, 0.9, "X", "a fraction"),
};

static const tg_option more_options[] = {
    TG_TEXT("--text", struct values, text, "TEXT", "a text"),
    TG_PATH("--file", struct values, file, "FILE", "a file"),
    TG_CHOICE("--schedule", struct values, schedule, "constant|cosine|wsd", "a choice"),
    TG_FLAG("--secret", struct values, flag, "hidden", .hidden = true),
};

static const tg_command_spec spec = {
    .name = "try",
    .usage = "[options]",
    .about = "For tests.",
    .pos = { "A", "B" },
    .pos_max = 2,
};

static const tg_command_spec strict_spec = {
    .name = "try",
    .usage = "A",
    .about = "For tests.",
    .pos = { "A" },
    .pos_min = 1,
    .pos_max = 1,
};

static struct values values;
static tg_args args;
static char said[65536]; /* what the last parse printed on both streams */

/* Parses words up to NULL; stdout and stderr go to a file meanwhile. */
static int parse_list(const tg_command_spec *s, const char *const *words) {
    char *argv[64];
    int argc = 0;
    for (; words[argc]; argc++) argv[argc] = (char *)(uintptr_t)words[argc];
    values = (struct values) { .layers = 3, .lr = 0.5, .text = "default" };
    args = (tg_args) { .spec = s, .n_groups = 2 };
    args.groups[0] = (tg_option_group)TG_GROUP("First", options, &values);
    args.groups[1] = (tg_option_group)TG_GROUP("Second", more_options, &values);
    FILE *file = tmpfile();
    fflush(stdout);
    fflush(stderr);
    const int out = dup(1), err = dup(2);
    dup2(fileno(file), 1);
    dup2(fileno(file), 2);
    const int code = tg_args_parse(&args, argc, argv);
    fflush(stdout);
    fflush(stderr);
    dup2(out, 1);
    dup2(err, 2);
    close(out);
    close(err);
    rewind(file);
    said[fread(said, 1, sizeof said - 1, file)] = '\0';
    fclose(file);
    return code;
}

#define PARSE(...) parse_list(&spec, (const char *const[]) { __VA_ARGS__, NULL })

static void assert_says(const char *part) {
    if (!strstr(said, part)) fail_msg("want \"%s\" in \"%s\"", part, said);
}

static void values_arrive(void **state) {
    (void)state;
    assert_int_equal(PARSE("--flag", "--layers", "12", "--bytes=3M", "--seed",
                           "18446744073709551615", "--lr=1e-3", "--val", "0", "--text", "",
                           "--file", "-", "--schedule", "wsd", "one", "two"),
                     TG_ARGS_GO_ON);
    assert_true(values.flag);
    assert_int_equal(values.layers, 12);
    assert_int_equal(values.bytes, 3000000);
    assert_true(values.seed == UINT64_MAX);
    assert_true(values.lr == 1e-3 && values.val == 0);
    assert_string_equal(values.text, "");
    assert_string_equal(values.file, "-");
    assert_int_equal(values.schedule, 2);
    assert_int_equal(args.n_pos, 2);
    assert_string_equal(args.pos[1], "two");
    assert_true(tg_args_given(&args, "--layers"));
    assert_false(tg_args_given(&args, "--secret"));
}

static void defaults_stay(void **state) {
    (void)state;
    assert_int_equal(PARSE("x"), TG_ARGS_GO_ON);
    assert_int_equal(values.layers, 3);
    assert_true(values.lr == 0.5);
    assert_string_equal(values.text, "default");
    assert_false(tg_args_given(&args, "--layers"));
}

static void dashes(void **state) {
    (void)state;
    assert_int_equal(PARSE("--", "--layers", "-x"), TG_ARGS_GO_ON);
    assert_string_equal(args.pos[0], "--layers");
    assert_int_equal(PARSE("--text=--flag"), TG_ARGS_GO_ON);
    assert_string_equal(values.text, "--flag");
    assert_int_equal(PARSE("--text", "--flag"), 2);
    assert_says("--text: want a value");
    assert_int_equal(PARSE("--text", "-5"), TG_ARGS_GO_ON);
    assert_int_equal(PARSE("-"), TG_ARGS_GO_ON);
    assert_string_equal(args.pos[0], "-");
    assert_int_equal(PARSE("-x"), 2);
}

static void numbers_are_whole_strings(void **state) {
    (void)state;
    static const char *const bad[] = { "-1",
                                       "0",
                                       "257",
                                       "99999999999999999999",
                                       "1e3",
                                       "",
                                       "12abc",
                                       "NaN",
                                       "0x10",
                                       " 12",
                                       "12 ",
                                       "+12",
                                       "1.0",
                                       "--",
                                       "9223372036854775808",
                                       "1k" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char word[64];
        snprintf(word, sizeof word, "--layers=%s", bad[i]);
        if (PARSE(word) != 2) fail_msg("--layers takes \"%s\"", bad[i]);
        assert_says("--layers: want a whole number from 1 to 256, have \"");
        assert_says("see tinygpt try --help");
    }
    static const char *const bad_lr[] = {
        "0", "-1", "nan", "inf",  "-inf", "1e999", "0x1p3", "1,5",
        "",  " 1", "1 ",  "10.1", "e5",   ".",     "1e",    "--1"
    };
    for (size_t i = 0; i < sizeof bad_lr / sizeof *bad_lr; i++) {
        char word[64];
        snprintf(word, sizeof word, "--lr=%s", bad_lr[i]);
        if (PARSE(word) != 2) fail_msg("--lr takes \"%s\"", bad_lr[i]);
        assert_says("--lr: want a number above 0 and at most 10, have \"");
    }
    assert_int_equal(PARSE("--val", "0.95"), 2);
    assert_says("--val: want a number from 0 and at most 0.9");
    assert_int_equal(PARSE("--lr", ".5"), TG_ARGS_GO_ON);
    assert_int_equal(PARSE("--seed", "18446744073709551616"), 2);
    assert_int_equal(PARSE("--seed", "-1"), 2);
}

static void sizes(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t want; /* 0: refused */
    } cases[] = { { "1", 1 },
                  { "1k", 1000 },
                  { "2M", 2000000 },
                  { "3G", 3000000000 },
                  { "k", 0 },
                  { "1K", 0 },
                  { "1.5M", 0 },
                  { "1kk", 0 },
                  { "9223372036854775807", INT64_MAX },
                  { "9223372036854775807k", 0 },
                  { "9223372036G", INT64_C(9223372036000000000) },
                  { "9223372037G", 0 },
                  { "", 0 },
                  { "0", 0 },
                  { "-1k", 0 },
                  { "0000000000000000000000000000001", 0 } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char word[64];
        snprintf(word, sizeof word, "--bytes=%s", cases[i].text);
        const int code = PARSE(word);
        assert_int_equal(code, cases[i].want ? TG_ARGS_GO_ON : 2);
        if (cases[i].want) assert_true(values.bytes == cases[i].want);
    }
}

static void refusals(void **state) {
    (void)state;
    assert_int_equal(PARSE("--layer", "3"), 2);
    assert_says("no option --layer; did you mean --layers?");
    assert_int_equal(PARSE("--secreet"), 2);
    assert_null(strstr(said, "did you mean")); /* a hidden option is not offered */
    assert_int_equal(PARSE("--layers", "3", "--layers=4"), 2);
    assert_says("--layers is given twice");
    assert_int_equal(PARSE("--layers"), 2);
    assert_says("--layers: want a value (N) behind it, have none");
    assert_int_equal(PARSE("--flag=1"), 2);
    assert_says("--flag takes no value");
    assert_int_equal(PARSE("--schedule", "linear"), 2);
    assert_says("--schedule: want constant|cosine|wsd, have \"linear\"");
    assert_int_equal(PARSE("--schedule", "constant|cosine"), 2);
    assert_int_equal(PARSE("--schedule", "cos"), 2);
    assert_int_equal(PARSE("--schedule="), 2);
    assert_int_equal(PARSE("--schedule", "cosines"), 2);
    assert_int_equal(PARSE("--file", ""), 2);
    assert_int_equal(PARSE("a", "b", "c"), 2);
    assert_says("one argument too many: \"c\"");
    assert_int_equal(PARSE("\xff"), 2);
    assert_says("want arguments in UTF-8, have \"\\xFF\"");
    assert_int_equal(PARSE("--text", "a\xc3"), 2);
    assert_says("UTF-8");
    assert_int_equal(PARSE("--te\xff"), 2);
    assert_int_equal(parse_list(&strict_spec, (const char *const[]) { NULL }), 2);
    assert_says("A is missing");
}

static void terminals_are_safe(void **state) {
    (void)state;
    assert_int_equal(PARSE("--layers", "\x1b[31m\xc2\x9b"), 2);
    assert_null(strchr(said, '\x1b'));
    assert_null(strstr(said, "\xc2\x9b"));
    assert_says("\\x1B[31m");
}

static void a_megabyte(void **state) {
    (void)state;
    const size_t n = 1 << 20;
    char *word = malloc(n + 1);
    assert_non_null(word);
    memset(word, 'x', n);
    word[n] = '\0';
    assert_int_equal(PARSE("--layers", word), 2);
    assert_true(strlen(said) < 400);
    memcpy(word, "--", 2);
    assert_int_equal(PARSE(word), 2);
    assert_true(strlen(said) < 400);
    word[0] = word[1] = '1';
    assert_int_equal(PARSE("--text", word), TG_ARGS_GO_ON);
    assert_ptr_equal(values.text, word);
    free(word);
}

static void help(void **state) {
    (void)state;
    assert_int_equal(PARSE("--help"), 0);
    assert_says("usage: tinygpt try [options]");
    assert_says("--layers N");
    assert_says("a number (default 3)");
    assert_says("a text (default default)");
    assert_says("(default constant)");
    assert_null(strstr(said, "--secret"));
    assert_int_equal(PARSE("-h"), 0);
    assert_int_equal(PARSE("--layers", "0", "--help"), 2); /* the first mistake wins */
}

static void nearest(void **state) {
    (void)state;
    static const char *const words[] = { "train", "sample", "eval", "doctor" };
    assert_string_equal(tg_args_nearest("trian", words, 4), "train");
    assert_string_equal(tg_args_nearest("doctr", words, 4), "doctor");
    assert_string_equal(tg_args_nearest("samples", words, 4), "sample");
    assert_null(tg_args_nearest("zzzzzz", words, 4));
    assert_null(tg_args_nearest("", words, 0));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_arrive),
        cmocka_unit_test(defaults_stay),
        cmocka_unit_test(dashes),
        cmocka_unit_test(numbers_are_whole_strings),
        cmocka_unit_test(sizes),
        cmocka_unit_test(refusals),
        cmocka_unit_test(terminals_are_safe),
        cmocka_unit_test(a_megabyte),
        cmocka_unit_test(help),
        cmocka_unit_test(nearest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
