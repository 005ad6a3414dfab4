/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stories.c - expands the story grammar: one walk over templates, written straight to the caller.
 *
 * The grammar is data/stories.txt: tables of rows, one a line, whose columns are split by bars and
 * named in the table's head; the first column is what a bare reference means. @table is a list of
 * templates, @list one of fixed texts, in which no word is exchanged.
 *
 * A template is text with these marks (nothing else is special):
 *
 *     {bird}        a row of table bird, drawn anew, not one that this story used already
 *     {bird.song}   its column "song"
 *     {place1}      with a digit: drawn once and kept for the story; {place2} is another row
 *     {bird0.song}  with 0: the row that was drawn last, kept or not
 *     {season1=winter}   keeps from now on the row whose first column is "winter"; writes nothing
 *     {h} {h.him}   a person of the cast (list below): the name, or a column of kind or sex; at the
 *                   first mention who it is, too ("her grandmother, Nana Ida,")
 *     {f.call}      the name without that, and from then on the person counts as mentioned
 *     {f.name}      the bare first name, and nothing changes; {f.met} is "yes" or "no"
 *     {glad:f}      table glad with x = f: inside it, {x} and {x.he} mean the friend
 *     {meet:ho}     x = h and y = o
 *     {^...}        the same with a capital first letter
 *     {a} {^a}      "a" or "an", as the next letter wants (so no "hour" and no "useful" behind it)
 *     [one/two/]    one of the pieces, which may be empty and may nest
 *     [~one/two]    the same piece each time in a story
 *     [?season1=winter:cold/warm]   the first piece if the column is that text, else the second
 *     did not       words that stand in table same become any of their like, or themselves
 *     {flower}+     the plural: a final s, es or ies
 *     `             a double quote
 *     \n            the end of a paragraph
 *
 * Spaces and commas need no care: runs of spaces become one, none stays at a line's end or before a
 * stop; a comma is dropped before any stop and behind ! or ?; a word said twice is said once.
 *
 * Invariants. Every random choice is one Philox block with its own number in the story, so a story
 * depends on (seed, number) alone. Memory is bounded: one teller on the stack, and recursion ends
 * at MAX_DEPTH. A reference that does not resolve is written out with its braces, where the tests
 * of the grammar look for it.
 */
#include "training/data/stories.h"

#include "base/err.h"
#include "base/libc.h"
#include "base/rng.h"
#include "base/time.h"

enum {
    MAX_DEPTH = 24,   /* of references inside references; the grammar needs 10 */
    MAX_KEPT = 64,    /* rows kept by a digit in one story; the grammar needs 21 */
    N_RECENT = 256,   /* rows drawn lately in this story, to be avoided */
    N_TRIES = 6,      /* draws before a repeated row is accepted */
    MAX_TABLES = 500, /* the grammar has 400 */
    MAX_ROWS = 9000,  /* and 7,620 */
    N_BUCKETS = 1024, /* of the table index; a power of two, above twice the number of tables */
    WORD_BYTES = 48,  /* a longer word is written in two parts */
    PIECE_BYTES = 4096
};

/* ----------------------------------------------------------------------------------- The tables */

/* A piece of the grammar's text: length bytes at `at`, not terminated. */
typedef struct {
    const char *at;
    size_t length;
} span;

typedef struct {
    span name, columns; /* "name at look": the names of the columns, split by one space */
    uint16_t first, n_rows;
    bool fixed; /* no word of it is exchanged */
} table;

/*
 * The cast. Who plays a part is decided when the part is first mentioned.
 *   first, call   templates of the name at the first mention and later, with x = the person
 *   people        the table of the kind in a world of people, she and he
 *   beasts        the same in a world of animals
 *   names         the table of the name, she and he
 */
typedef struct {
    char key;
    const char *first, *call;
    const char *people[2], *beasts[2], *names[2];
} part;

#define CHILD { "child_she", "child_he" }, { "beast", "beast" }, { "girl", "boy" }
#define KIN   { "kin_she", "kin_he" }, { "kin_she", "kin_he" }, { "girl", "boy" }
#define ADULT { "adult_she", "adult_he" }, { "beast", "beast" }, { "surname", "surname" }
#define ODD   { "stranger", "stranger" }, { "stranger", "stranger" }, { "surname", "surname" }

/* clang-format off */
static const part parts[] = {
    /* hero, friend, small one, rival */
    { 'h', "{x.name}", "{x.name}", CHILD },
    { 'f', "{h.his} friend {x.name}", "{x.name}", CHILD },
    { 's', "{h.his} little {x.sib} {x.name}", "{x.name}", CHILD },
    { 'r', "{x.name}, {a}{x.kind} from {nearby},", "{x.name}", CHILD },
    /* elder of the family, neighbour, stranger */
    { 'e', "{h.his} {x.kind}, {x.title} {x.name},", "{x.title} {x.name}", KIN },
    { 'n', "{x.mrs} {x.name} the {job1}", "{x.mrs} {x.name}", ADULT },
    { 'o', "the {x.kind}", "the {x.kind}", ODD },
};
/* clang-format on */

enum { N_PARTS = sizeof parts / sizeof parts[0], NO_TABLE = UINT16_MAX };

/* ----------------------------------------------------------------------------------- The teller */

/* A row of a table, or nothing (found false). */
typedef struct {
    bool found;
    uint16_t table, row;
} choice;

typedef struct {
    choice sex, kind, name; /* found false: not cast yet */
    bool met;               /* the story has said who it is */
} person;

typedef struct {
    char digit;
    choice row;
} kept;

struct tg_storyteller {
    /* where the text goes */
    tg_stories_write write;
    void *user;
    uint64_t left; /* bytes still wanted; 0 also after an error */
    tg_status status;
    size_t n_piece;
    char piece[PIECE_BYTES];

    /* the text at its end */
    bool space;   /* a space is due before what comes next */
    bool comma;   /* and a comma before that space, unless a stop comes */
    bool capital; /* the next word begins with a capital */
    bool article; /* "a" or "an" is due before the next word */
    char last;    /* the last byte written */
    size_t n_word, n_before;
    char word[WORD_BYTES];   /* the word being put together, not written yet */
    char before[WORD_BYTES]; /* the word before it; n_before 0: more than a space lies between */

    /* the story being told */
    uint64_t seed, story;
    uint32_t draw; /* number of the next choice */
    person cast[N_PARTS];
    size_t n_kept, n_recent;
    kept kept[MAX_KEPT];
    choice recent[N_RECENT]; /* a ring: the oldest is overwritten */

    /* the grammar: where rows begin in its text, those of table[i] at row_at[table[i].first] .. */
    const char *grammar;
    uint16_t n_tables, n_rows;
    table table[MAX_TABLES];
    uint32_t row_at[MAX_ROWS];

    /* open-addressed by hash, 0 is empty */
    uint16_t index[N_BUCKETS];      /* number of a table + 1, by its name */
    uint16_t same_index[N_BUCKETS]; /* number of a row of table `same` + 1, by its first word */
};
typedef struct tg_storyteller teller;

/* Where a template is being expanded. */
typedef struct {
    char x, y;  /* the keys of the persons that x and y stand for; 0: nobody */
    bool fixed; /* no word is exchanged */
} scope;

/* --------------------------------------------------------------------------------------- Output */

static void flush(teller *t) {
    if (t->n_piece > 0 && t->status == TG_OK) t->status = t->write(t->user, t->piece, t->n_piece);
    if (t->status != TG_OK) t->left = 0;
    t->n_piece = 0;
}

static void write_byte(teller *t, char c) {
    if (t->left == 0) return;
    t->piece[t->n_piece++] = c;
    t->last = c;
    t->left--;
    if (t->n_piece == PIECE_BYTES || t->left == 0) flush(t);
}

static bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
static bool is_letter(char c) { return is_lower(c) || (c >= 'A' && c <= 'Z'); }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static bool is_vowel(char c) {
    const char low = (char)(c | 0x20);
    return low == 'a' || low == 'e' || low == 'i' || low == 'o' || low == 'u';
}

static bool is_stop(char c) {
    return c == '.' || c == ',' || c == '!' || c == '?' || c == ';' || c == ':';
}

/* Writes the comma and the space that are due, if they have a place before c. */
static void write_gap(teller *t, char c) {
    const bool joins = is_stop(c) || c == '\n';
    if (t->comma && !joins && t->last != '?' && t->last != '!') write_byte(t, ',');
    if (t->space && !joins && t->last != '\n') write_byte(t, ' ');
    t->comma = t->space = false;
}

/* Two tables that know nothing of each other may well put the same word side by side. */
static bool repeats(const teller *t) {
    return !t->article && !t->comma && t->n_word == t->n_before &&
           memcmp(t->word, t->before, t->n_word) == 0;
}

/* The word is complete: writes it, with what is due before it. */
static void end_word(teller *t) {
    if (t->n_word > 0 && !repeats(t)) {
        write_gap(t, t->word[0]);
        memcpy(t->before, t->word, t->n_word);
        t->n_before = t->n_word;
        if (t->article) {
            write_byte(t, t->capital ? 'A' : 'a');
            if (is_vowel(t->word[0])) write_byte(t, 'n');
            write_byte(t, ' ');
            t->article = t->capital = false;
        }
        if (t->capital && is_lower(t->word[0])) t->word[0] = (char)(t->word[0] - 'a' + 'A');
        t->capital = false;
        for (size_t i = 0; i < t->n_word; i++) write_byte(t, t->word[i]);
    }
    t->n_word = 0;
}

/* One character of a template that is no mark. */
static void put(teller *t, char c) {
    const bool inside = t->n_word > 0 && (c == '\'' || c == '-');
    if (is_letter(c) || inside) {
        if (t->n_word == WORD_BYTES) end_word(t);
        t->word[t->n_word++] = c;
        return;
    }
    end_word(t);
    if (c == ' ') {
        t->space = true;
    } else if (c == ',') {
        t->comma = true;
        t->space = false;
    } else {
        write_gap(t, c);
        write_byte(t, c == '`' ? '"' : c);
        t->n_before = 0;
    }
}

static void put_span(teller *t, span s) {
    for (size_t i = 0; i < s.length; i++) put(t, s.at[i]);
}

/* Makes a plural of the word that was just put. */
static void put_plural(teller *t) {
    const char a = t->n_word > 0 ? t->word[t->n_word - 1] : ' ';
    const char b = t->n_word > 1 ? t->word[t->n_word - 2] : ' ';
    if (a == 'y' && !is_vowel(b)) {
        t->word[t->n_word - 1] = 'i';
        put(t, 'e');
    } else if (a == 's' || a == 'x' || a == 'z' || (a == 'h' && (b == 'c' || b == 's'))) {
        put(t, 'e');
    }
    put(t, 's');
}

/* -------------------------------------------------------------------------------------- Choices */

/* Choice number `draw` of this story, in [0, n). The story's number is the stream, its high half
 * lies above the number of the choice. */
static size_t below_at(const teller *t, uint32_t draw, size_t n) {
    uint32_t block[4];
    const uint64_t index = (t->story >> 32) << 32 | draw;
    tg_philox(t->seed, index, TG_RNG_STORIES, (uint32_t)t->story, block);
    return (size_t)tg_rng_below(tg_rng_draw64(block), n);
}

/* The next choice of this story, in [0, n). */
static size_t below(teller *t, size_t n) { return below_at(t, t->draw++, n); }

static bool was_recent(const teller *t, choice c) {
    const size_t n = t->n_recent < N_RECENT ? t->n_recent : N_RECENT;
    for (size_t i = 0; i < n; i++) {
        if (t->recent[i].table == c.table && t->recent[i].row == c.row) return true;
    }
    return false;
}

static void remember(teller *t, choice c) { t->recent[t->n_recent++ % N_RECENT] = c; }

/* A row that this story has not used, as far as a few draws can find one. */
static choice draw_row(teller *t, uint16_t number) {
    choice c = { .found = true, .table = number };
    for (size_t tries = 0; tries < N_TRIES; tries++) {
        c.row = (uint16_t)below(t, t->table[number].n_rows);
        if (!was_recent(t, c)) break;
    }
    remember(t, c);
    return c;
}

/* ------------------------------------------------------------------------------------- Look-ups */

static span span_of(const char *text) { return (span) { text, strlen(text) }; }

static bool same(span a, span b) {
    return a.length == b.length && memcmp(a.at, b.at, a.length) == 0;
}

/* FNV-1a, 32 bits. */
static uint32_t hash(span name) {
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < name.length; i++) h = (h ^ (unsigned char)name.at[i]) * 16777619u;
    return h;
}

static void index_put(uint16_t index[N_BUCKETS], span name, size_t number) {
    uint32_t b = hash(name);
    while (index[b % N_BUCKETS] != 0) b++;
    index[b % N_BUCKETS] = (uint16_t)(number + 1);
}

/* The letters that text begins with. */
static span word_of(span text) {
    size_t n = 0;
    while (n < text.length && is_letter(text.at[n])) n++;
    return (span) { text.at, n };
}

/* The number of the table of that name, or NO_TABLE. */
static uint16_t find_table(const teller *t, span name) {
    for (uint32_t b = hash(name); t->index[b % N_BUCKETS] != 0; b++) {
        const uint16_t number = (uint16_t)(t->index[b % N_BUCKETS] - 1);
        if (same(t->table[number].name, name)) return number;
    }
    return NO_TABLE;
}

/* The text up to the next `end`; *rest is what lies behind it, its at NULL where nothing does. */
static span cut(span text, char end, span *rest) {
    size_t n = 0;
    while (n < text.length && text.at[n] != end) n++;
    *rest = n == text.length ? (span) { 0 } : (span) { text.at + n + 1, text.length - n - 1 };
    return (span) { text.at, n };
}

/* A row ends with its line, which the grammar's text always has. */
static span row_text(const teller *t, size_t number, size_t row) {
    const char *at = t->grammar + t->row_at[t->table[number].first + row];
    return (span) { at, (size_t)(strchr(at, '\n') - at) };
}

/* One line of the grammar; false if there are more tables or rows than there is room for, or a row
 * before the first table. */
static bool add_line(teller *t, span line) {
    if (line.length == 0 || line.at[0] == '%') return true;
    if (line.at[0] != '@') {
        if (t->n_tables == 0 || t->n_rows == MAX_ROWS) return false;
        t->row_at[t->n_rows++] = (uint32_t)(line.at - t->grammar);
        t->table[t->n_tables - 1].n_rows++;
        return true;
    }
    if (t->n_tables == MAX_TABLES) return false;
    table *made = &t->table[t->n_tables++];
    const span kind = cut(line, ' ', &made->columns);
    made->fixed = same(kind, span_of("@list"));
    made->first = t->n_rows;
    made->name = cut(made->columns, ' ', &made->columns);
    return made->fixed || same(kind, span_of("@table"));
}

/* All lines, each with its end; and every table has rows. */
static bool read_tables(teller *t) {
    for (span rest = span_of(t->grammar); rest.length > 0;) {
        const span line = cut(rest, '\n', &rest);
        if (!rest.at || !add_line(t, line)) return false;
    }
    for (size_t i = 0; i < t->n_tables; i++) {
        if (t->table[i].n_rows == 0) return false;
        index_put(t->index, t->table[i].name, i);
    }
    return true;
}

static bool has_rows(const teller *t, const char *name, size_t least) {
    const uint16_t number = find_table(t, span_of(name));
    return number != NO_TABLE && t->table[number].n_rows >= least;
}

/* The tables that this file itself asks for by name. */
static bool has_all_tables(const teller *t) {
    bool all = has_rows(t, "story", 1) && has_rows(t, "same", 1) && has_rows(t, "world", 1) &&
               has_rows(t, "sex", 2);
    for (size_t i = 0; i < 2 * N_PARTS; i++) {
        const part *p = &parts[i / 2];
        all = all && has_rows(t, p->people[i % 2], 1) && has_rows(t, p->beasts[i % 2], 1) &&
              has_rows(t, p->names[i % 2], 1);
    }
    return all;
}

/* Is it a grammar that stories can be told from? */
static bool index_tables(teller *t) {
    if (!read_tables(t) || !has_all_tables(t)) return false;
    const uint16_t words = find_table(t, span_of("same"));
    const size_t n = t->table[words].n_rows;
    for (size_t i = 0; i < n && n * 2 < N_BUCKETS; i++)
        index_put(t->same_index, word_of(row_text(t, words, i)), i);
    return n * 2 < N_BUCKETS;
}

/* The column of a row, by name; an empty name is the first column. at NULL: there is none. */
static span column(const teller *t, choice c, span name) {
    span heads = t->table[c.table].columns, cells = row_text(t, c.table, c.row);
    while (heads.at != NULL && cells.at != NULL) {
        const span head = cut(heads, ' ', &heads);
        span cell = cut(cells, '|', &cells);
        if (name.length > 0 && !same(head, name)) continue;
        while (cell.length > 0 && cell.at[0] == ' ') cell = (span) { cell.at + 1, cell.length - 1 };
        while (cell.length > 0 && cell.at[cell.length - 1] == ' ') cell.length--;
        return cell;
    }
    return (span) { NULL, 0 };
}

/* The place of what is kept under the digit, or n_kept. */
static size_t find_kept(const teller *t, uint16_t number, char digit) {
    size_t i = 0;
    while (i < t->n_kept && (t->kept[i].row.table != number || t->kept[i].digit != digit)) i++;
    return i;
}

/* Keeps the row under the digit, in place of an earlier one; not found if there is no room. */
static choice keep_row(teller *t, char digit, choice c) {
    const size_t i = find_kept(t, c.table, digit);
    if (i == MAX_KEPT) return (choice) { 0 };
    if (i == t->n_kept) t->n_kept++;
    t->kept[i] = (kept) { .digit = digit, .row = c };
    return c;
}

/* The row of the table kept under the digit; the first call draws it. */
static choice keep(teller *t, uint16_t number, char digit) {
    const size_t i = find_kept(t, number, digit);
    return i < t->n_kept ? t->kept[i].row : keep_row(t, digit, draw_row(t, number));
}

/* Keeps the row whose first column is key; not found if there is none. */
static choice keep_key(teller *t, uint16_t number, char digit, span key) {
    choice c = { .found = number != NO_TABLE, .table = number };
    for (size_t row = 0; c.found && row < t->table[number].n_rows; row++) {
        c.row = (uint16_t)row;
        if (same(column(t, c, (span) { NULL, 0 }), key)) return keep_row(t, digit, c);
    }
    return (choice) { 0 };
}

/* The row that this story drew last from the table; a new one if none is remembered. */
static choice last_drawn(teller *t, uint16_t number) {
    const size_t n = t->n_recent < N_RECENT ? t->n_recent : N_RECENT;
    for (size_t i = 1; i <= n; i++) {
        const choice c = t->recent[(t->n_recent - i) % N_RECENT];
        if (c.table == number) return c;
    }
    return draw_row(t, number);
}

/* ------------------------------------------------------------------------------------- The cast */

static choice draw_from(teller *t, const char *name) {
    return draw_row(t, find_table(t, span_of(name)));
}

/* Three friends in four differ from the hero in sex: then "he" and "she" tell the two apart. */
static size_t draw_sex(teller *t, size_t number) {
    const choice hero = t->cast[0].sex;
    const size_t sex = below(t, 2);
    if (number != 1 || !hero.found) return sex;
    return below(t, 4) > 0 ? 1u - hero.row : hero.row;
}

/* The number of the part with that key, or N_PARTS. */
static size_t find_part(char key) {
    size_t i = 0;
    while (i < N_PARTS && parts[i].key != key) i++;
    return i;
}

/* The person of a part, cast now if need be. */
static person *cast(teller *t, size_t number) {
    const part *role = &parts[number];
    person *who = &t->cast[number];
    if (!who->sex.found) {
        const choice world = keep(t, find_table(t, span_of("world")), '1');
        const bool beasts = same(column(t, world, span_of("cast")), span_of("beasts"));
        const size_t sex = draw_sex(t, number);
        who->sex = (choice) { true, find_table(t, span_of("sex")), (uint16_t)sex };
        who->kind = draw_from(t, beasts ? role->beasts[sex] : role->people[sex]);
        who->name = draw_from(t, role->names[sex]);
    }
    return who;
}

/* --------------------------------------------------------------------------------- The expander */

/* What stands between two braces, taken apart: {^table1.column:xy} or {table1=key}. */
typedef struct {
    bool capital;
    span name, column, key;
    char digit;  /* 0: none */
    scope scope; /* x = 0: as outside */
} reference;

static void expand(teller *t, span text, scope who, size_t depth);

/* Parts named x and y stand for those of the scope. */
static char resolve(char key, scope who) {
    if (key == 'x') return who.x;
    if (key == 'y') return who.y;
    return key;
}

static reference parse(span s, scope who) {
    reference r = { .scope = who };
    size_t i = 0;
    if (i < s.length && s.at[i] == '^') {
        r.capital = true;
        i++;
    }
    r.name.at = s.at + i;
    while (i < s.length && (is_lower(s.at[i]) || s.at[i] == '_')) i++;
    r.name.length = (size_t)(s.at + i - r.name.at);
    if (i < s.length && is_digit(s.at[i])) r.digit = s.at[i++];
    if (i < s.length && s.at[i] == '.') {
        r.column.at = s.at + ++i;
        while (i < s.length && is_lower(s.at[i])) i++;
        r.column.length = (size_t)(s.at + i - r.column.at);
    }
    if (i < s.length && s.at[i] == ':') {
        if (i + 1 < s.length) r.scope.x = resolve(s.at[i + 1], who);
        if (i + 2 < s.length) r.scope.y = resolve(s.at[i + 2], who);
    } else if (i < s.length && s.at[i] == '=') {
        r.key = (span) { s.at + i + 1, s.length - i - 1 };
    }
    return r;
}

/* The template that a reference to a person stands for; at NULL: no such person or column. */
static span person_text(teller *t, reference *r, scope who) {
    r->scope.x = resolve(r->name.at[0], who);
    r->scope.fixed = true;
    const size_t number = find_part(r->scope.x);
    if (number == N_PARTS) return (span) { NULL, 0 };
    person *p = cast(t, number);
    const bool call = same(r->column, span_of("call"));
    if (call || r->column.length == 0) {
        const bool first = !call && !p->met;
        p->met = true;
        return span_of(first ? parts[number].first : parts[number].call);
    }
    if (same(r->column, span_of("met"))) return span_of(p->met ? "yes" : "no");
    if (same(r->column, span_of("name"))) return column(t, p->name, (span) { NULL, 0 });
    const span cell = column(t, p->kind, r->column);
    return cell.at != NULL ? cell : column(t, p->sex, r->column);
}

/* The template that a reference stands for; at NULL: it does not resolve. */
static span reference_text(teller *t, reference *r, scope who) {
    if (r->name.length == 1) return person_text(t, r, who);
    const uint16_t number = find_table(t, r->name);
    if (number == NO_TABLE) return (span) { NULL, 0 };
    r->scope.fixed = t->table[number].fixed;
    const choice c = r->digit == 0     ? draw_row(t, number)
                     : r->digit == '0' ? last_drawn(t, number)
                                       : keep(t, number, r->digit);
    return c.found ? column(t, c, r->column) : (span) { NULL, 0 };
}

/* `inside` is what stands between the braces. */
static void expand_reference(teller *t, span inside, scope who, size_t depth) {
    reference r = parse(inside, who);
    if (r.capital) t->capital = true;
    if (same(r.name, span_of("a")) && r.column.length == 0) {
        t->article = true;
        return;
    }
    if (r.key.length > 0 && keep_key(t, find_table(t, r.name), r.digit, r.key).found) return;
    const span text = depth < MAX_DEPTH ? reference_text(t, &r, who) : (span) { NULL, 0 };
    if (text.at != NULL) {
        expand(t, text, r.scope, depth + 1);
        return;
    }
    put(t, '{');
    put_span(t, inside);
    put(t, '}');
}

/* The length of the piece of an alternative at text[0..length): up to its own '/' or to the end. */
static size_t piece_length(span s) {
    size_t nested = 0, i = 0;
    for (; i < s.length; i++) {
        if (s.at[i] == '[') nested++;
        if (s.at[i] == ']') nested--;
        if (s.at[i] == '/' && nested == 0) break;
    }
    return i;
}

/* Piece number `wanted` of "one/two/three"; *n_pieces tells how many there are. */
static span nth_piece(span s, size_t wanted, size_t *n_pieces) {
    span found = { s.at, 0 };
    size_t n = 0;
    for (size_t at = 0; at <= s.length; n++) {
        const span piece = { s.at + at, piece_length((span) { s.at + at, s.length - at }) };
        if (n == wanted) found = piece;
        at += piece.length + 1;
    }
    *n_pieces = n;
    return found;
}

/* `inside` is "?reference=text:one/two": expands one of the two. */
static void expand_condition(teller *t, span inside, scope who, size_t depth) {
    size_t equals = 1, colon, n_pieces;
    while (equals < inside.length && inside.at[equals] != '=') equals++;
    for (colon = equals; colon < inside.length && inside.at[colon] != ':';) colon++;
    if (colon == inside.length) return;
    reference r = parse((span) { inside.at + 1, equals - 1 }, who);
    const span have = reference_text(t, &r, who);
    const span want = { inside.at + equals + 1, colon - equals - 1 };
    const span pieces = { inside.at + colon + 1, inside.length - colon - 1 };
    const bool holds = have.at != NULL && same(have, want);
    expand(t, nth_piece(pieces, holds ? 0 : 1, &n_pieces), who, depth);
}

static void expand_pieces(teller *t, span inside, scope who, size_t depth) {
    size_t n_pieces;
    if (inside.length > 0 && inside.at[0] == '?') {
        expand_condition(t, inside, who, depth);
        return;
    }
    const bool once = inside.length > 0 && inside.at[0] == '~';
    if (once) inside = (span) { inside.at + 1, inside.length - 1 };
    nth_piece(inside, 0, &n_pieces);
    /* The text itself names the choice; the upper half of the numbers is kept for these. */
    const uint32_t named = hash(inside) | UINT32_C(1) << 31;
    const size_t wanted = once ? below_at(t, named, n_pieces) : below(t, n_pieces);
    expand(t, nth_piece(inside, wanted, &n_pieces), who, depth);
}

/* The number of bytes between an opening mark at text[0] and its closing one. */
static size_t inside_length(span text, char open, char close) {
    size_t nested = 0;
    for (size_t i = 0; i < text.length; i++) {
        if (text.at[i] == open) nested++;
        if (text.at[i] == close && --nested == 0) return i - 1;
    }
    return text.length - 1;
}

/*
 * If the text begins with the words of a row of table `same`: tells its second column instead.
 * Returns how many bytes of the text that covers, 0 if there is no such row.
 */
static size_t expand_same(teller *t, span text, scope who, size_t depth) {
    const span word = word_of(text);
    for (uint32_t b = hash(word); t->same_index[b % N_BUCKETS] != 0; b++) {
        const choice c = { true, find_table(t, span_of("same")),
                           (uint16_t)(t->same_index[b % N_BUCKETS] - 1) };
        const span what = column(t, c, span_of("what"));
        if (what.length > text.length || !same(what, (span) { text.at, what.length })) continue;
        if (what.length < text.length && is_letter(text.at[what.length])) continue;
        if (!is_lower(what.at[0])) t->capital = true;
        who.fixed = true;
        expand(t, column(t, c, span_of("instead")), who, depth + 1);
        return what.length;
    }
    return 0;
}

/* Tells the letters that the text begins with, or what may stand for them; returns their number. */
static size_t expand_word(teller *t, span text, scope who, size_t depth) {
    const size_t covered = who.fixed ? 0 : expand_same(t, text, who, depth);
    if (covered > 0) return covered;
    const span word = word_of(text);
    put_span(t, word);
    return word.length;
}

static void expand(teller *t, span text, scope who, size_t depth) {
    for (size_t i = 0; i < text.length && t->left > 0; i++) {
        const char c = text.at[i];
        const span here = { text.at + i, text.length - i };
        if (c == '{') {
            const span inside = { here.at + 1, inside_length(here, '{', '}') };
            expand_reference(t, inside, who, depth);
            i += inside.length + 1;
        } else if (c == '[') {
            const span inside = { here.at + 1, inside_length(here, '[', ']') };
            expand_pieces(t, inside, who, depth);
            i += inside.length + 1;
        } else if (c == '+') {
            put_plural(t);
        } else if (c == '\\' && here.length > 1 && here.at[1] == 'n') {
            put(t, '\n');
            i++;
        } else if (is_letter(c)) {
            i += expand_word(t, here, who, depth) - 1;
        } else {
            put(t, c);
        }
    }
}

/* ------------------------------------------------------------------------------------- The text */

static void tell_story(teller *t) {
    t->draw = 0;
    t->n_kept = t->n_recent = 0;
    t->space = t->comma = t->capital = t->article = false;
    t->last = '\n';
    t->n_word = t->n_before = 0;
    for (size_t i = 0; i < N_PARTS; i++) t->cast[i] = (person) { 0 };
    expand(t, span_of("{story}\n\n"), (scope) { 0 }, 0);
}

tg_status tg_stories_pass(void *user, const char *bytes, size_t n) {
    const tg_stories_sink *s = user;
    return s->write(s->user, bytes, n) == 0 ? TG_OK : TG_STOPPED;
}

size_t tg_storyteller_bytes(void) { return sizeof(teller); }

tg_status tg_storyteller_begin(tg_storyteller *t, const char *grammar, uint64_t seed,
                               uint64_t bytes, tg_stories_write write, void *user) {
    *t = (teller) { .write = write, .user = user, .left = bytes, .status = TG_OK, .seed = seed };
    t->grammar = grammar;
    return !grammar ? TG_E_UNSUPPORTED : index_tables(t) ? TG_OK : TG_E_FORMAT;
}

tg_status tg_storyteller_go_on(tg_storyteller *t, double deadline_ms) {
    for (; t->left > 0; t->story++) {
        tell_story(t);
        if (t->left > 0 && tg_time_over(deadline_ms)) {
            t->story++;
            return TG_PENDING;
        }
    }
    return t->status;
}

tg_status tg_stories_generate(uint64_t seed, uint64_t bytes, tg_stories_write write, void *user) {
    teller t;
    TG_TRY(tg_storyteller_begin(&t, tg_stories_grammar(), seed, bytes, write, user));
    return tg_storyteller_go_on(&t, 0);
}
