/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_stories.c - the story generator as its callers see it, its English as far as a program can
 * judge it, and every row of the grammar.
 *
 * The checks of the text run over 10 MB, some 4,000 stories; the checks of the grammar read
 * data/stories.txt as stories.c does and need no luck: they see the rows that a text may never have
 * drawn.
 */
#include "base/codec/crc.h"
#include "base/libc.h"
#include "training/data/stories.h"

#include <setjmp.h>
#include <stdlib.h>

#include <cmocka.h>

enum { TEXT_BYTES = 10000000, SEED = 1 };

static char *text; /* [TEXT_BYTES + 1], the stories of SEED, terminated */

/* ----------------------------------------------------------------------------------- The stream */

/* Where a generator's pieces go; after `refuse_at` calls (if not 0) it refuses. */
typedef struct {
    char *bytes;
    size_t room, length, n_calls, refuse_at, longest;
} sink;

static tg_status take(void *user, const char *bytes, size_t n) {
    sink *s = user;
    s->n_calls++;
    if (s->n_calls == s->refuse_at) return TG_E_IO;
    assert_true(n >= 1 && n <= s->room - s->length);
    memcpy(s->bytes + s->length, bytes, n);
    s->length += n;
    if (n > s->longest) s->longest = n;
    return TG_OK;
}

static sink generate(uint64_t seed, char *bytes, size_t n) {
    sink s = { .bytes = bytes, .room = n };
    assert_int_equal(tg_stories_generate(seed, n, take, &s), TG_OK);
    return s;
}

static void read_grammar(void);
static void drop_grammar(void);

static int make_text(void **state) {
    (void)state;
    text = calloc(TEXT_BYTES + 1, 1);
    if (text == NULL) return -1;
    generate(SEED, text, TEXT_BYTES);
    read_grammar();
    return 0;
}

static int drop_text(void **state) {
    (void)state;
    free(text);
    drop_grammar();
    return 0;
}

static void same_seed_same_bytes(void **state) {
    (void)state;
    enum { N = 300000 };
    char *a = calloc(N, 1), *b = calloc(N, 1);
    assert_true(a != NULL && b != NULL);
    generate(UINT64_C(0xfedcba9876543210), a, N);
    generate(UINT64_C(0xfedcba9876543210), b, N);
    assert_memory_equal(a, b, N);
    generate(UINT64_C(0xfedcba9876543211), b, N);
    assert_memory_not_equal(a, b, 100);
    generate(UINT64_C(0x1edcba9876543210), b, N); /* the upper half of the seed counts, too */
    assert_memory_not_equal(a, b, 100);
    free(a);
    free(b);
}

/* A change of the grammar changes every text of every seed: then this number changes, on purpose.
 */
static void text_is_this_version(void **state) {
    (void)state;
    assert_int_equal(tg_crc32c(0, text, 1000000), 0x78976fe);
}

static void longer_text_extends(void **state) {
    (void)state;
    static const size_t sizes[] = { 1, 2, 7, 100, 4095, 4096, 4097, 8192, 65537, 1000003 };
    char *part = calloc(1000003, 1);
    assert_non_null(part);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const sink s = generate(SEED, part, sizes[i]);
        assert_int_equal(s.length, sizes[i]);
        assert_memory_equal(part, text, sizes[i]);
        assert_true(s.longest <= 4096);
    }
    free(part);
}

static void nothing_asked_nothing_written(void **state) {
    (void)state;
    sink s = { 0 };
    assert_int_equal(tg_stories_generate(SEED, 0, take, &s), TG_OK);
    assert_int_equal(s.n_calls, 0);
}

static void refusal_ends_it(void **state) {
    (void)state;
    enum { N = 100000 };
    char *bytes = calloc(N, 1);
    assert_non_null(bytes);
    for (size_t at = 1; at <= 3; at++) {
        sink s = { .bytes = bytes, .room = N, .refuse_at = at };
        assert_int_equal(tg_stories_generate(SEED, UINT64_MAX, take, &s), TG_E_IO);
        assert_int_equal(s.n_calls, at);
        assert_memory_equal(bytes, text, s.length);
    }
    free(bytes);
}

/* ---------------------------------------------------------------------------------- The English */

/* Fails with the words around text[at]. */
static void fail_at(const char *what, size_t at) {
    const size_t from = at < 60 ? 0 : at - 60;
    fail_msg("%s at byte %zu: ...%.120s", what, at, text + from);
}

static bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
static bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
static bool is_letter(char c) { return is_lower(c) || is_upper(c); }
static bool in_word(char c) { return is_letter(c) || c == '\'' || c == '-'; }
static bool is_stop(char c) { return c != '\0' && strchr(".,!?;:", c) != NULL; }

static bool begins(const char *s, const char *with) { return strncmp(s, with, strlen(with)) == 0; }

/* Letters, stops, quotes and line ends: so no mark of the grammar is left, and all is ASCII. */
static void only_plain_characters(void **state) {
    (void)state;
    for (size_t i = 0; i < TEXT_BYTES; i++) {
        const char c = text[i];
        const bool plain = in_word(c) || is_stop(c) || c == ' ' || c == '\n' || c == '"';
        if (!plain) fail_at("want a plain character", i);
    }
}

static void spaces_and_stops(void **state) {
    (void)state;
    for (size_t i = 1; i < TEXT_BYTES; i++) {
        const char before = text[i - 1], c = text[i];
        if (c == ' ' && (before == ' ' || before == '\n')) fail_at("a space too many", i);
        if ((is_stop(c) || c == '\n') && before == ' ') fail_at("a space before a stop", i);
        if (is_stop(c) && is_stop(before)) fail_at("two stops", i);
        if (is_letter(c) && is_stop(before)) fail_at("no space behind a stop", i);
        if (c == '\n' && before == '\n' && text[i + 1] == '\n') fail_at("two empty lines", i);
    }
}

/* Every paragraph ends with a stop, closes its quotes, and begins like a sentence. */
static void paragraphs_are_whole(void **state) {
    (void)state;
    size_t n_quotes = 0, start = 0;
    bool title = true;
    for (size_t i = 0; i < TEXT_BYTES; i++) {
        if (text[i] == '"') n_quotes++;
        if (text[i] != '\n') continue;
        const char first = text[start], last = i > start ? text[i - 1] : '\n';
        const bool stopped = last == '.' || last == '!' || last == '?' || last == '"';
        if (i > start && !is_upper(first) && first != '"') fail_at("want a capital", start);
        if (i > start && !title && !stopped) fail_at("want a stop before the line's end", i);
        if (n_quotes % 2 != 0) fail_at("want quotes in pairs", i);
        title = i == start;
        n_quotes = 0;
        start = i + 1;
    }
}

/* Behind . ! or ? and a space comes a capital or a quote; Mr. and Mrs. end no sentence. */
static void sentences_begin_with_capitals(void **state) {
    (void)state;
    for (size_t i = 0; i + 2 < TEXT_BYTES; i++) {
        const bool end = text[i] == '.' || text[i] == '!' || text[i] == '?';
        if (end && text[i + 1] == ' ' && is_lower(text[i + 2])) fail_at("want a capital", i + 2);
    }
}

/* "a" or "an" as the next word sounds; the grammar keeps to words whose first letter tells. */
static void articles_fit(void **state) {
    (void)state;
    for (size_t i = 1; i + 4 < TEXT_BYTES; i++) {
        if (in_word(text[i - 1]) || (text[i] != 'a' && text[i] != 'A')) continue;
        const bool an = text[i + 1] == 'n' && text[i + 2] == ' ';
        if (!an && text[i + 1] != ' ') continue;
        const char *next = text + i + (an ? 3 : 2);
        bool vowel = strchr("aeiouAEIOU", *next) != NULL;
        if (begins(next, "hour") || begins(next, "honest") || begins(next, "heir")) vowel = true;
        if (begins(next, "one-") || begins(next, "one ") || begins(next, "uni") ||
            begins(next, "use") || begins(next, "ewe") || begins(next, "eu")) {
            vowel = begins(next, "unim") || begins(next, "unin");
        }
        if (vowel != an) fail_at("want the other article", i);
    }
}

static void no_word_twice(void **state) {
    (void)state;
    size_t before = 0, n_before = 0;
    for (size_t i = 0; i < TEXT_BYTES;) {
        size_t n = 0;
        while (i + n < TEXT_BYTES && in_word(text[i + n])) n++;
        if (n == 0) {
            if (text[i] != ' ') n_before = 0;
            i++;
            continue;
        }
        if (n == n_before && memcmp(text + before, text + i, n) == 0) fail_at("a word twice", i);
        before = i;
        n_before = n;
        i += n;
    }
}

/* ---------------------------------------------------------------------------------- The variety */

/* Byte strings and how often they came, by their hash: 64 bits tell a million strings apart. */
typedef struct {
    struct {
        uint64_t hash; /* 0: empty */
        size_t times;
    } *slots; /* [n_slots] */
    size_t n_slots, n;
} tally;

static tally tally_new(size_t n_slots) {
    tally t = { .n_slots = n_slots };
    t.slots = calloc(n_slots, sizeof *t.slots);
    assert_non_null(t.slots);
    return t;
}

static uint64_t hash(const char *s, size_t n) {
    uint64_t h = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)(s[i] | 0x20)) * UINT64_C(1099511628211);
    return h == 0 ? 1 : h;
}

static void tally_add(tally *t, uint64_t h) {
    size_t at = (size_t)(h % t->n_slots);
    while (t->slots[at].hash != 0 && t->slots[at].hash != h) at = (at + 1) % t->n_slots;
    if (t->slots[at].hash == 0) t->n++;
    t->slots[at].hash = h;
    t->slots[at].times++;
    assert_true(t->n * 2 < t->n_slots);
}

/* Thousands of words, not counting those that are rare: most of them are names of places. */
static void many_words(void **state) {
    (void)state;
    tally words = tally_new(1 << 17);
    for (size_t i = 0, n; i < TEXT_BYTES; i += n + 1) {
        for (n = 0; i + n < TEXT_BYTES && is_letter(text[i + n]);) n++;
        if (n > 0) tally_add(&words, hash(text + i, n));
    }
    size_t n_common = 0;
    for (size_t i = 0; i < words.n_slots; i++) n_common += words.slots[i].times >= 20;
    assert_in_range(n_common, 4500, 10000);
    free(words.slots);
}

/* Stories of a page, and hardly a paragraph that is told again in 10 MB. */
static void many_stories(void **state) {
    (void)state;
    tally paragraphs = tally_new(1 << 18);
    size_t n_stories = 0, n_paragraphs = 0, start = 0;
    for (size_t i = 0; i < TEXT_BYTES; i++) {
        if (text[i] != '\n') continue;
        if (i == start) n_stories++;
        if (i - start >= 60) { /* longer than any title */
            n_paragraphs++;
            tally_add(&paragraphs, hash(text + start, i - start));
        }
        start = i + 1;
    }
    assert_in_range(TEXT_BYTES / n_stories, 1000, 3000);
    assert_in_range(n_paragraphs / n_stories, 5, 15);
    assert_true(paragraphs.n * 100 >= n_paragraphs * 97);
    free(paragraphs.slots);
}

/* ---------------------------------------------------------------------------------- The grammar */

/* Read anew here, line by line, so that a fault of the generator's own reader does not hide one. */
typedef struct {
    char *name, *columns;
    char **rows;
    size_t n_rows;
} table;

enum { MAX_TABLES = 1000 };
static char *grammar; /* a copy, cut into lines */
static table tables[MAX_TABLES];
static size_t n_tables;

static void add_row(table *t, char *line) {
    t->rows = realloc(t->rows, (t->n_rows + 1) * sizeof *t->rows);
    assert_non_null(t->rows);
    t->rows[t->n_rows++] = line;
}

static void read_grammar(void) {
    grammar = strdup(tg_stories_grammar());
    assert_non_null(grammar);
    for (char *line = strtok(grammar, "\n"); line; line = strtok(NULL, "\n")) {
        if (*line == '%') continue;
        if (*line != '@') {
            assert_true(n_tables > 0);
            add_row(&tables[n_tables - 1], line);
            continue;
        }
        assert_true(n_tables < MAX_TABLES);
        char *name = strchr(line, ' ') + 1, *columns = strchr(name, ' ') + 1;
        columns[-1] = '\0';
        tables[n_tables++] = (table) { .name = name, .columns = columns };
    }
}

static void drop_grammar(void) {
    for (size_t i = 0; i < n_tables; i++) free(tables[i].rows);
    free(grammar);
}

static const char *here; /* the row under the check, for the messages */

static const table *find_table(const char *name, size_t length) {
    for (size_t i = 0; i < n_tables; i++) {
        if (strlen(tables[i].name) == length && memcmp(tables[i].name, name, length) == 0) {
            return &tables[i];
        }
    }
    return NULL;
}

/* Whether `list`, split by spaces, holds the word. */
static bool has_column(const char *list, const char *word, size_t length) {
    for (const char *at = list; at != NULL; at = strchr(at, ' ')) {
        if (*at == ' ') at++;
        if (strncmp(at, word, length) == 0 && (at[length] == ' ' || at[length] == '\0'))
            return true;
    }
    return false;
}

static bool has_key(const table *t, const char *key, size_t length) {
    for (size_t i = 0; i < t->n_rows; i++) {
        const char *row = t->rows[i];
        const bool ends = strlen(row) == length || strncmp(row + length, " |", 2) == 0;
        if (strncmp(row, key, length) == 0 && ends) return true;
    }
    return false;
}

/* A column that every kind of person has, or that stands for all of them in table sex. */
static bool has_person_column(char key, const char *word, size_t length) {
    static const char *const kinds[] = { "child_she", "adult_he", "kin_she", "stranger", "sex" };
    bool found = has_column("call name met", word, length);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const table *t = find_table(kinds[i], strlen(kinds[i]));
        assert_non_null(t);
        const bool fits = (i < 2 && key != 'e' && key != 'o') || (i == 2 && key == 'e') ||
                          (i == 3 && key == 'o') || i == 4 || key == 'x' || key == 'y';
        found = found || (fits && has_column(t->columns, word, length));
    }
    return found;
}

/* What stands between braces, or between "?" and ":": a person or a table, and a column of it. */
static void check_reference(const char *s, size_t n) {
    size_t i = n > 0 && s[0] == '^', name, end;
    if (n - i == 1 && s[i] == 'a') return;
    name = i;
    while (i < n && (is_lower(s[i]) || s[i] == '_')) i++;
    end = i;
    if (i < n && s[i] >= '0' && s[i] <= '9') i++;
    const bool person = end - name == 1 && strchr("hfsrenoxy", s[name]) != NULL;
    const table *t = find_table(s + name, end - name);
    if (!person && t == NULL) fail_msg("no such table: %.*s in: %s", (int)n, s, here);
    if (i < n && s[i] == '.') {
        const size_t column = ++i;
        while (i < n && is_lower(s[i])) i++;
        const bool known = person ? has_person_column(s[name], s + column, i - column)
                                  : has_column(t->columns, s + column, i - column);
        if (!known) fail_msg("no such column: %.*s in: %s", (int)n, s, here);
    } else if (i < n && s[i] == '=') {
        if (t == NULL || !has_key(t, s + i + 1, n - i - 1)) {
            fail_msg("no such row: %.*s in: %s", (int)n, s, here);
        }
        return;
    }
    if (i < n && s[i] == ':') {
        for (i++; i < n && strchr("hfsrenoxy", s[i]) != NULL;) i++;
    }
    if (i < n && s[i] != '=') fail_msg("cannot read: %.*s in: %s", (int)n, s, here);
}

/* One column of a row: its marks are closed and its references known. */
static void check_template(const char *s, size_t n) {
    size_t brackets = 0, quotes = 0;
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '[') brackets++;
        if (s[i] == ']' && brackets-- == 0) fail_msg("] without [ in: %s", here);
        if (s[i] == '`') quotes++;
        if (s[i] == '}') fail_msg("} without { in: %s", here);
        const bool condition = s[i] == '?' && i > 0 && s[i - 1] == '[';
        if (s[i] != '{' && !condition) continue;
        const char *end = memchr(s + i, condition ? ':' : '}', n - i);
        if (end == NULL) fail_msg("an open mark in: %s", here);
        const size_t length = (size_t)(end - s) - i - 1;
        check_reference(s + i + 1, length);
        i += length + 1;
    }
    if (brackets != 0) fail_msg("[ without ] in: %s", here);
    if (quotes % 2 != 0) fail_msg("want quotes in pairs in: %s", here);
}

static size_t count(const char *s, char c) {
    size_t n = 0;
    for (; *s != '\0'; s++) n += *s == c;
    return n;
}

static void every_row_is_sound(void **state) {
    (void)state;
    for (size_t i = 0; i < n_tables; i++) {
        const table *t = &tables[i];
        assert_ptr_equal(find_table(t->name, strlen(t->name)), t); /* no name twice */
        for (size_t row = 0; row < t->n_rows; row++) {
            here = t->rows[row];
            if (count(here, '|') != count(t->columns, ' ')) {
                fail_msg("%s: want the columns \"%s\", have: %s", t->name, t->columns, here);
            }
            for (const char *at = here; at != NULL;) {
                const char *bar = strchr(at, '|');
                check_template(at, bar != NULL ? (size_t)(bar - at) : strlen(at));
                at = bar != NULL ? bar + 1 : NULL;
            }
        }
    }
}

/* No row twice in a table: it would only be drawn more often. */
static void rows_of_words_differ(void **state) {
    (void)state;
    for (size_t i = 0; i < n_tables; i++) {
        for (size_t a = 0; a < tables[i].n_rows; a++) {
            for (size_t b = a + 1; b < tables[i].n_rows; b++) {
                if (strchr(tables[i].rows[a], '{') != NULL) continue;
                if (strcmp(tables[i].rows[a], tables[i].rows[b]) == 0) {
                    fail_msg("%s: twice: %s", tables[i].name, tables[i].rows[a]);
                }
            }
        }
    }
}

static void many_plots(void **state) {
    (void)state;
    const table *plots = find_table("plot", 4);
    assert_non_null(plots);
    assert_in_range(plots->n_rows, 25, 1000);
}

/* What cannot be expanded is refused before anything is written: no grammar, a row before the first
 * table, a table without rows, an unknown mark, a last line without its end, a missing table. */
static void broken_grammars_are_refused(void **state) {
    (void)state;
    static const char *const broken[] = {
        "",
        "row\n",
        "@table story text\n",
        "@list story text\n@table same what\nx\n",
        "@tables story text\nx\n",
        "@table story text\nx",
        "% nothing\n",
    };
    tg_storyteller *t = malloc(tg_storyteller_bytes());
    char byte;
    sink s = { .bytes = &byte, .room = 1 };
    assert_non_null(t);
    assert_int_equal(tg_storyteller_begin(t, NULL, 1, 1, take, &s), TG_E_UNSUPPORTED);
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++)
        assert_int_equal(tg_storyteller_begin(t, broken[i], 1, 1, take, &s), TG_E_FORMAT);
    assert_int_equal(s.n_calls, 0);
    assert_int_equal(tg_storyteller_begin(t, tg_stories_grammar(), 1, 1, take, &s), TG_OK);
    free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_seed_same_bytes),
        cmocka_unit_test(text_is_this_version),
        cmocka_unit_test(longer_text_extends),
        cmocka_unit_test(nothing_asked_nothing_written),
        cmocka_unit_test(refusal_ends_it),
        cmocka_unit_test(only_plain_characters),
        cmocka_unit_test(spaces_and_stops),
        cmocka_unit_test(paragraphs_are_whole),
        cmocka_unit_test(sentences_begin_with_capitals),
        cmocka_unit_test(articles_fit),
        cmocka_unit_test(no_word_twice),
        cmocka_unit_test(many_words),
        cmocka_unit_test(many_stories),
        cmocka_unit_test(every_row_is_sound),
        cmocka_unit_test(rows_of_words_differ),
        cmocka_unit_test(many_plots),
        cmocka_unit_test(broken_grammars_are_refused),
    };
    return cmocka_run_group_tests_name("stories", tests, make_text, drop_text);
}
