/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.c - the JSON reader. The writer is json_write.c.
 *
 * It is one loop over the text with an explicit stack. It runs twice: with nodes == NULL it
 * checks and counts, then it fills. Both runs take the same decisions, since they are the same
 * code; the second one can only fail on duplicate keys, which need the decoded keys side by side.
 *
 *     value         a scalar              -> after_value
 *                   '[' or '{' key ':'    -> value
 *                   "[]" or "{}"          -> after_value
 *     after_value   ',' or ',' key ':'    -> value
 *                   ']' or '}'            -> after_value, one level up
 *                   at level 0            -> white space and the end
 *
 * Invariant of the second run: nodes, chars and members were counted by the first one, so no write
 * needs a bound of its own; TG_ASSERT checks the sums at the end.
 */
#include "base/codec/json.h"

#include "base/str.h"

/* ------------------------------------------------------------------------------- reader's state */

/*
 * An open array or object. The tree is linked as it is read: a new value is hung behind `last`, and
 * the count goes into the node when the level closes.
 */
typedef struct level {
    uint32_t node; /* the open array or object */
    uint32_t last; /* its newest child; meaningless while it has none */
    uint32_t count;
    bool object;
} level;

typedef struct parser {
    tg_ctx *ctx;
    const char *name;
    const char *text;
    size_t n_bytes;
    size_t at;
    tg_json_limits limits;

    /* Sizes that the first run counts; positions while the second one fills. */
    size_t n_nodes, n_chars, n_members;

    tg_json *nodes; /* NULL in the first run */
    char *chars;
    const tg_json **members;

    const char *key; /* decoded, of the member whose value comes next; NULL in an array */
    size_t key_length;

    uint32_t depth;
    level levels[TG_JSON_DEPTH_MAX];
} parser;

/* What stands at the current place, for a message. Anything but plain ASCII is shown as a number,
 * since it may be half of a character or invisible. */
static void describe(const parser *p, char out[32]) {
    if (p->at >= p->n_bytes) {
        snprintf(out, 32, "the end of the text");
        return;
    }
    const unsigned char c = (unsigned char)p->text[p->at];
    snprintf(out, 32, c > 0x20 && c < 0x7f ? "'%c'" : "byte 0x%02x", c);
}

/* The one way in which the grammar fails: where, wanted, found. */
static tg_status refuse(const parser *p, const char *want) {
    char have[32];
    describe(p, have);
    return tg_fail(p->ctx, TG_E_FORMAT, "%s: byte %zu: want %s, have %s", p->name, p->at, want,
                   have);
}

/* The byte at the current place; 0 at the end, which is valid nowhere outside a string. */
static char peek(const parser *p) { return p->at < p->n_bytes ? p->text[p->at] : 0; }

/* RFC 8259 knows these four; a form feed or a no-break space is an error. */
static void skip_space(parser *p) {
    while (p->at < p->n_bytes) {
        const char c = p->text[p->at];
        if (c != ' ' && c != '\t' && c != '\n' && c != '\r') break;
        p->at++;
    }
}

/* -------------------------------------------------------------------------------------- strings */

/* By hand, since library functions take signs, spaces and "0x" where JSON wants digits. */
static bool hex_digits_4(const parser *p, size_t at, uint32_t *out) {
    *out = 0;
    if (p->n_bytes < 4 || at > p->n_bytes - 4) return false;
    for (size_t i = at; i < at + 4; i++) {
        const char c = p->text[i];
        const uint32_t digit = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                               : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
                               : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A' + 10)
                                                      : 16;
        if (digit == 16) return false;
        *out = *out << 4 | digit;
    }
    return true;
}

/*
 * \uXXXX, with the place behind the u: one code point, or two halves of one (UTF-16). Half a pair
 * is refused, though the RFC leaves it open: it has no UTF-8 form, and readers that disagree about
 * it disagree about which tensor has a name.
 */
static tg_status unicode_escape(parser *p, uint32_t *code) {
    const char *const want = "four hexadecimal digits";
    uint32_t low;
    if (!hex_digits_4(p, p->at, code)) return refuse(p, want);
    if (*code >= 0xdc00 && *code <= 0xdfff) return refuse(p, "no lone low surrogate");
    p->at += 4;
    if (*code < 0xd800 || *code > 0xdbff) return TG_OK;
    if (peek(p) != '\\' || p->n_bytes - p->at < 6 || p->text[p->at + 1] != 'u' ||
        !hex_digits_4(p, p->at + 2, &low) || low < 0xdc00 || low > 0xdfff) {
        return refuse(p, "the low surrogate that belongs to a high one");
    }
    p->at += 6;
    *code = 0x10000 + ((*code - 0xd800) << 10) + (low - 0xdc00);
    return TG_OK;
}

/* One escape, with the place behind the backslash. strchr would find the zero at the end of the
 * table, so a zero in the text must not get there. */
static tg_status escape(parser *p, uint32_t *code) {
    static const char names[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    const char c = peek(p);
    const char *found = c ? strchr(names, c) : NULL;
    if (found) {
        p->at++;
        *code = (uint32_t)meanings[found - names];
        return TG_OK;
    }
    if (c != 'u') return refuse(p, "an escape (one of \"\\/bfnrtu)");
    p->at++;
    return unicode_escape(p, code);
}

/*
 * A string from its opening to its closing quote. Decoded into the pool in the second run, with a
 * zero behind it; in the first run only measured. *out is NULL then.
 */
static tg_status string(parser *p, const char **out, size_t *length) {
    char *to = p->nodes ? p->chars + p->n_chars : NULL;
    size_t n = 0;
    *out = to;
    p->at++; /* the quote */
    for (;;) {
        if (p->at >= p->n_bytes) return refuse(p, "a closing quote");
        const unsigned char c = (unsigned char)p->text[p->at];
        if (c == '"') break;
        if (c < 0x20) return refuse(p, "a control character to be escaped");
        if (c < 0x80 && c != '\\') { /* nearly everything */
            if (to) to[n] = (char)c;
            n++;
            p->at++;
            continue;
        }
        uint32_t code;
        char bytes[4];
        if (c == '\\') {
            p->at++;
            TG_TRY(escape(p, &code));
        } else {
            const size_t n_read = tg_utf8_next(p->text + p->at, p->n_bytes - p->at, &code);
            if (n_read == 0) return refuse(p, "valid UTF-8");
            p->at += n_read;
        }
        const size_t n_put = tg_utf8_put(code, bytes);
        if (to) memcpy(to + n, bytes, n_put);
        n += n_put;
    }
    p->at++;
    if (to) to[n] = 0;
    *length = n;
    p->n_chars += n + 1;
    return TG_OK;
}

/* -------------------------------------------------------------------------------------- scalars */

/* Returns how many there were: most places need at least one. */
static size_t skip_digits(parser *p) {
    const size_t start = p->at;
    while (peek(p) >= '0' && peek(p) <= '9') p->at++;
    return p->at - start;
}

/*
 * Checks the grammar of a number and keeps its text. No value is computed here: 2^53 + 1 and 1e400
 * are numbers, and only who asks for a type can say whether they fit.
 */
static tg_status number(parser *p, const char **out, size_t *length) {
    const size_t start = p->at;
    if (peek(p) == '-') p->at++;
    if (peek(p) == '0') {
        p->at++;
        if (peek(p) >= '0' && peek(p) <= '9') return refuse(p, "no digit after a leading 0");
    } else if (skip_digits(p) == 0) {
        return refuse(p, "a digit");
    }
    if (peek(p) == '.') {
        p->at++;
        if (skip_digits(p) == 0) return refuse(p, "a digit after the point");
    }
    if (peek(p) == 'e' || peek(p) == 'E') {
        p->at++;
        if (peek(p) == '+' || peek(p) == '-') p->at++;
        if (skip_digits(p) == 0) return refuse(p, "a digit in the exponent");
    }
    *length = p->at - start;
    *out = NULL;
    if (p->nodes) {
        char *to = p->chars + p->n_chars;
        memcpy(to, p->text + start, *length);
        to[*length] = 0;
        *out = to;
    }
    p->n_chars += *length + 1;
    return TG_OK;
}

/* The message points at the first letter that is wrong. What follows the word is checked by
 * after_value, so "nulll" fails there. */
static tg_status word(parser *p, const char *text) {
    for (; *text; text++, p->at++)
        if (peek(p) != *text) return refuse(p, "null, false or true");
    return TG_OK;
}

/* --------------------------------------------------------------------------------------- values */

/*
 * Makes the node of a value and hangs it into the open array or object. What it holds is filled in
 * by the caller. In the first run *node stays what it is: a dummy of the caller's.
 */
static tg_status new_node(parser *p, tg_json **node) {
    if (p->n_nodes >= p->limits.values) {
        return tg_fail(p->ctx, TG_E_FORMAT,
                       "%s: byte %zu: want at most %" PRIu32 " values, have more", p->name, p->at,
                       p->limits.values);
    }
    const uint32_t index = (uint32_t)p->n_nodes++;
    if (p->nodes) *node = &p->nodes[index];
    **node = (tg_json) { .document = p->name,
                         .key = p->key,
                         .key_length = (uint32_t)p->key_length,
                         .offset = (uint32_t)p->at };
    if (p->depth > 0) {
        level *parent = &p->levels[p->depth - 1];
        if (parent->count > 0 && p->nodes) p->nodes[parent->last].skip = index - parent->last;
        parent->last = index;
        parent->count++;
        p->n_members += parent->object;
    }
    return TG_OK;
}

/* The key waits in the parser until new_node makes the member that it belongs to. */
static tg_status key_and_colon(parser *p) {
    skip_space(p);
    if (peek(p) != '"') return refuse(p, "a key in quotes");
    TG_TRY(string(p, &p->key, &p->key_length));
    skip_space(p);
    if (peek(p) != ':') return refuse(p, "':'");
    p->at++;
    return TG_OK;
}

/*
 * Opens an array or object, whose node is the newest one. *empty: its end follows at once, which is
 * the only place where an end may stand without a value before it (so "[1,]" is refused).
 */
static tg_status open_level(parser *p, bool object, bool *empty) {
    if (p->depth >= p->limits.depth) {
        return tg_fail(p->ctx, TG_E_FORMAT,
                       "%s: byte %zu: want at most %" PRIu32 " open arrays and objects, have more",
                       p->name, p->at, p->limits.depth);
    }
    p->levels[p->depth++] = (level) { .node = (uint32_t)p->n_nodes - 1, .object = object };
    p->at++;
    p->key = NULL;
    p->key_length = 0;
    skip_space(p);
    *empty = peek(p) == (object ? '}' : ']');
    return object && !*empty ? key_and_colon(p) : TG_OK;
}

/* Parses what begins a value. *open: an array or object that is not empty; a value comes next. */
static tg_status value(parser *p, bool *open) {
    tg_json dummy, *node = &dummy;
    bool empty = false;
    *open = false;
    skip_space(p);
    const char c = peek(p);
    TG_TRY(new_node(p, &node));
    size_t length = 0;
    if (c == '{' || c == '[') {
        node->type = c == '{' ? TG_JSON_OBJECT : TG_JSON_ARRAY;
        TG_TRY(open_level(p, c == '{', &empty));
        *open = !empty;
    } else if (c == '"') {
        node->type = TG_JSON_STRING;
        TG_TRY(string(p, &node->u.text, &length));
    } else if (c == '-' || (c >= '0' && c <= '9')) {
        node->type = TG_JSON_NUMBER;
        TG_TRY(number(p, &node->u.text, &length));
    } else if (c == 't') {
        node->type = TG_JSON_TRUE;
        TG_TRY(word(p, "true"));
    } else if (c == 'f') {
        node->type = TG_JSON_FALSE;
        TG_TRY(word(p, "false"));
    } else if (c == 'n') {
        node->type = TG_JSON_NULL;
        TG_TRY(word(p, "null"));
    } else {
        return refuse(p, "a value");
    }
    node->length = (uint32_t)length;
    return TG_OK;
}

/* ------------------------------------------------------------------------------ keys of objects */

/* The order of a member among its siblings: by length, then by bytes. */
static int compare_key(const tg_json *member, const char *key, size_t key_length) {
    if (member->key_length != key_length) return member->key_length < key_length ? -1 : 1;
    return memcmp(member->key, key, key_length);
}

/* A strict order, so that "neither before the other" means equal. */
static bool key_before(const tg_json *a, const tg_json *b) {
    return compare_key(a, b->key, b->key_length) < 0;
}

/* Restores "no child is greater than its parent" below a root that may be too small. */
static void sift_down(const tg_json **heap, size_t root, size_t n) {
    for (size_t child; (child = 2 * root + 1) < n; root = child) {
        if (child + 1 < n && key_before(heap[child], heap[child + 1])) child++;
        if (!key_before(heap[root], heap[child])) return;
        const tg_json *moved = heap[root];
        heap[root] = heap[child];
        heap[child] = moved;
    }
}

/*
 * Heapsort: n log n whatever the keys are, in place and without recursion. A hash table would be
 * faster on average and quadratic for an attacker who knows the hash.
 */
static void sort_members(const tg_json **members, size_t n) {
    for (size_t root = n / 2; root > 0; root--) sift_down(members, root - 1, n);
    for (size_t end = n; end > 1;) {
        end--;
        const tg_json *largest = members[0];
        members[0] = members[end];
        members[end] = largest;
        sift_down(members, 0, end);
    }
}

/*
 * Lists the members of an object in the order of their keys; equal ones meet there. The list then
 * serves tg_json_get, so the check for duplicates costs nothing that look-ups would not pay.
 */
static tg_status index_object(parser *p, tg_json *object, const tg_json **members) {
    const size_t n = object->count;
    size_t i = 0;
    object->u.keyed = members; /* an object has no text of its own */
    for (const tg_json *v = tg_json_first(object); v; v = tg_json_next(v)) members[i++] = v;
    sort_members(members, n);
    for (i = 1; i < n; i++) {
        const tg_json *a = members[i - 1], *b = members[i];
        if (!key_before(a, b)) {
            return tg_fail(p->ctx, TG_E_FORMAT,
                           "%s: byte %" PRIu32 ": want each key once, have \"%s\" again (first at "
                           "byte %" PRIu32 ")",
                           p->name, a->offset > b->offset ? a->offset : b->offset, a->key,
                           a->offset > b->offset ? b->offset : a->offset);
        }
    }
    return TG_OK;
}

/* Runs after the second walk, when all siblings are linked. Every object gets its part of one array
 * that the first walk measured. */
static tg_status index_objects(parser *p) {
    size_t used = 0;
    for (size_t i = 0; i < p->n_nodes; i++) {
        tg_json *node = &p->nodes[i];
        if (node->type != TG_JSON_OBJECT) continue;
        TG_TRY(index_object(p, node, p->members + used));
        used += node->count;
    }
    TG_ASSERT(used == p->n_members);
    return TG_OK;
}

/* ------------------------------------------------------------------------------------- the walk */

/* The end bracket has been seen. Only now is the number of children known. */
static void close_level(parser *p) {
    const level *closed = &p->levels[--p->depth];
    if (p->nodes) p->nodes[closed->node].count = closed->count;
    p->at++;
}

/* Behind a complete value: closes what ends here. *more: a comma, and so another value. */
static tg_status after_value(parser *p, bool *more) {
    *more = false;
    while (p->depth > 0) {
        const bool object = p->levels[p->depth - 1].object;
        skip_space(p);
        const char c = peek(p);
        if (c == ',') {
            p->at++;
            *more = true;
            p->key = NULL;
            p->key_length = 0;
            return object ? key_and_colon(p) : TG_OK;
        }
        if (c != (object ? '}' : ']')) return refuse(p, object ? "',' or '}'" : "',' or ']'");
        close_level(p);
    }
    return TG_OK;
}

/*
 * One pass over the text. Each turn of the loop consumes the beginning of one value, and all ends
 * that follow it, so it takes as many turns as there are values.
 */
static tg_status walk(parser *p) {
    p->at = 0;
    p->n_nodes = p->n_chars = p->n_members = 0;
    p->key = NULL;
    p->key_length = 0;
    p->depth = 0;
    for (bool more = true; more;) {
        bool open;
        TG_TRY(value(p, &open));
        if (!open) TG_TRY(after_value(p, &more));
    }
    skip_space(p);
    return p->at == p->n_bytes ? TG_OK : refuse(p, "nothing behind the value");
}

/* The second pass. The name moves into the arena, because the nodes keep it for later messages. */
static tg_status fill(parser *p, tg_arena *arena) {
    const size_t n_nodes = p->n_nodes, n_chars = p->n_chars, n_members = p->n_members;
    p->name = tg_arena_strdup(arena, p->name);
    p->nodes = tg_arena_array(arena, n_nodes, sizeof *p->nodes);
    p->chars = tg_arena_alloc(arena, n_chars);
    p->members = tg_arena_array(arena, n_members, sizeof *p->members);
    if (!p->name || !p->nodes || !p->chars || !p->members)
        return tg_fail_memory(p->ctx, p->name ? p->name : "JSON", n_nodes * sizeof *p->nodes);
    TG_TRY(walk(p));
    TG_ASSERT(p->n_nodes == n_nodes && p->n_chars == n_chars && p->n_members == n_members);
    return index_objects(p);
}

tg_status tg_json_parse(tg_ctx *ctx, tg_arena *arena, const char *name, const char *text,
                        size_t n_bytes, const tg_json_limits *limits, const tg_json **root) {
    static const tg_json_limits standard = { .depth = TG_JSON_DEPTH_MAX,
                                             .values = UINT32_C(1) << 26 };
    *root = NULL;
    if (n_bytes >= UINT32_MAX) {
        return tg_fail(ctx, TG_E_FORMAT, "%s: want less than 4 GiB of JSON, have %zu bytes", name,
                       n_bytes);
    }
    parser p = { .ctx = ctx, .name = name, .text = text, .n_bytes = n_bytes };
    p.limits = limits ? *limits : standard;
    if (p.limits.depth > TG_JSON_DEPTH_MAX) p.limits.depth = TG_JSON_DEPTH_MAX;
    TG_TRY(walk(&p));
    TG_TRY(fill(&p, arena));
    *root = p.nodes;
    return TG_OK;
}

/* ------------------------------------------------------------------------------------ accessors */

static const char *const type_names[] = {
    [TG_JSON_NULL] = "null",        [TG_JSON_FALSE] = "a boolean", [TG_JSON_TRUE] = "a boolean",
    [TG_JSON_NUMBER] = "a number",  [TG_JSON_STRING] = "a string", [TG_JSON_ARRAY] = "an array",
    [TG_JSON_OBJECT] = "an object",
};

/*
 * document: byte N: "key": want ..., have ...
 * A number is quoted, since its kind is right and its value is not; of other values the kind tells.
 */
static tg_status refuse_value(tg_ctx *ctx, const tg_json *v, const char *want) {
    const bool number = v->type == TG_JSON_NUMBER;
    return tg_fail(ctx, TG_E_FORMAT, "%s: byte %" PRIu32 "%s%.64s%s: want %s, have %.64s",
                   v->document, v->offset, v->key ? ": \"" : "", v->key ? v->key : "",
                   v->key ? "\"" : "", want, number ? v->u.text : type_names[v->type]);
}

/* Binary search in the order that index_object made. */
const tg_json *tg_json_get_n(const tg_json *v, const char *key, size_t key_length) {
    size_t low = 0, high = v->type == TG_JSON_OBJECT ? v->count : 0;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int order = compare_key(v->u.keyed[middle], key, key_length);
        if (order == 0) return v->u.keyed[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

const tg_json *tg_json_get(const tg_json *v, const char *key) {
    return tg_json_get_n(v, key, strlen(key));
}

/* The type that a caller can ask for: "a boolean" is either of two. */
static uint32_t kind_of(uint32_t type) { return type == TG_JSON_FALSE ? TG_JSON_TRUE : type; }

tg_status tg_json_want(tg_ctx *ctx, const tg_json *v, const char *key, tg_json_type type,
                       const tg_json **out) {
    *out = NULL;
    if (v->type != TG_JSON_OBJECT) return refuse_value(ctx, v, type_names[TG_JSON_OBJECT]);
    const tg_json *member = tg_json_get(v, key);
    if (!member) {
        return tg_fail(ctx, TG_E_FORMAT, "%s: byte %" PRIu32 ": want a member \"%s\", have none",
                       v->document, v->offset, key);
    }
    if (kind_of(member->type) != kind_of(type)) return refuse_value(ctx, member, type_names[type]);
    *out = member;
    return TG_OK;
}

/* The integer parsers want digits from end to end, which refuses "1.0", "1e3" and what overflows,
 * without a rule of its own for each. */
tg_status tg_json_int64(tg_ctx *ctx, const tg_json *v, int64_t *out) {
    if (v->type == TG_JSON_NUMBER && tg_parse_int64(v->u.text, v->length, out)) return TG_OK;
    return refuse_value(ctx, v, "an integer within 64 bits");
}

tg_status tg_json_uint64(tg_ctx *ctx, const tg_json *v, uint64_t *out) {
    if (v->type == TG_JSON_NUMBER && tg_parse_uint64(v->u.text, v->length, out)) return TG_OK;
    return refuse_value(ctx, v, "an integer from 0 to 2^64 - 1");
}

tg_status tg_json_double(tg_ctx *ctx, const tg_json *v, double *out) {
    if (v->type == TG_JSON_NUMBER && tg_parse_double(v->u.text, v->length, out)) return TG_OK;
    return refuse_value(ctx, v, "a number within the range of a double");
}

tg_status tg_json_bool(tg_ctx *ctx, const tg_json *v, bool *out) {
    if (v->type != TG_JSON_TRUE && v->type != TG_JSON_FALSE)
        return refuse_value(ctx, v, type_names[TG_JSON_TRUE]);
    *out = v->type == TG_JSON_TRUE;
    return TG_OK;
}

/* Lengths first: "a" is not equal to a string of 'a' and a zero. */
bool tg_json_is(const tg_json *v, const char *text) {
    const size_t length = strlen(text);
    return v->type == TG_JSON_STRING && v->length == length && !memcmp(v->u.text, text, length);
}

const char *tg_json_show(const tg_json *v, char out[TG_JSON_SHOWN_BYTES]) {
    static const char *const kinds[] = {
        [TG_JSON_NULL] = "null",    [TG_JSON_FALSE] = "false",      [TG_JSON_TRUE] = "true",
        [TG_JSON_ARRAY] = "a list", [TG_JSON_OBJECT] = "an object",
    };
    if (!v) return "none";
    if (v->type != TG_JSON_STRING && v->type != TG_JSON_NUMBER) return kinds[v->type];
    size_t n = 0;
    for (uint32_t i = 0; i < v->length && n + 5 < TG_JSON_SHOWN_BYTES; i++) {
        const unsigned char c = (unsigned char)v->u.text[i];
        if (c == 0)
            n += (size_t)snprintf(out + n, TG_JSON_SHOWN_BYTES - n, "\\0");
        else if (c < 0x20 || c == 0x7f)
            n += (size_t)snprintf(out + n, TG_JSON_SHOWN_BYTES - n, "\\x%02x", (unsigned)c);
        else
            out[n++] = (char)c;
    }
    out[n] = 0;
    return out;
}
