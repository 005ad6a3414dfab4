/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.h - a strict JSON reader for hostile headers (RFC 8259), and a small writer.
 *
 * The reader walks the text twice with the same code: first to check all of it and to count, then
 * to fill arrays of just the right size. Nothing is allocated for a text that breaks the grammar,
 * nothing recurses, and the memory is bounded by 48 bytes a value, 8 a member and the text.
 *
 * Stricter than usual: duplicate keys are refused, UTF-8 is checked, lone surrogates (\ud800) are
 * refused, one value and nothing behind it but white space, depth and number of values limited.
 * Numbers stay text until somebody asks for a type, so integers never pass through a double.
 *
 *     const tg_json *root, *shape;
 *     TG_TRY(tg_json_parse(ctx, &arena, "model.safetensors", text, bytes, NULL, &root));
 *     TG_TRY(tg_json_want(ctx, root, "shape", TG_JSON_ARRAY, &shape));
 *     for (const tg_json *v = tg_json_first(shape); v; v = tg_json_next(v)) {
 *         TG_TRY(tg_json_uint64(ctx, v, &dim));
 *     }
 */
#ifndef TG_BASE_JSON_H
#define TG_BASE_JSON_H

#include "base/buf.h"
#include "base/err.h"
#include "base/libc.h"
#include "base/mem.h"

/* --------------------------------------------------------------------------------------- reader */

typedef enum tg_json_type {
    TG_JSON_NULL,
    TG_JSON_FALSE,
    TG_JSON_TRUE,
    TG_JSON_NUMBER,
    TG_JSON_STRING,
    TG_JSON_ARRAY,
    TG_JSON_OBJECT
} tg_json_type;

/*
 * A value. All nodes of a document lie in one array, in the order of the text: the first child of
 * a node is the node behind it, the next sibling is `skip` nodes on.
 *
 *     {"a": [1, 2], "b": 3}     0 object  1 array "a"  2 number 1  3 number 2  4 number "b" 3
 */
typedef struct tg_json {
    union {
        const char *text;             /* string (decoded) or number (as written), zero-terminated */
        const struct tg_json **keyed; /* object: its members in the order of their keys */
    } u;
    const char *document; /* its name, for messages */
    const char *key;      /* decoded, zero-terminated; NULL unless a member of an object */
    uint32_t length;      /* bytes of text: a string may hold zeros */
    uint32_t key_length;  /* the same for key */
    uint32_t offset;      /* of the value in the text, in bytes */
    uint32_t skip;        /* nodes to the next sibling; 0 for the last one */
    uint32_t count;       /* children */
    uint32_t type;        /* tg_json_type */
} tg_json;

#define TG_JSON_DEPTH_MAX 64u

typedef struct tg_json_limits {
    uint32_t depth;  /* open arrays and objects at once; 1..TG_JSON_DEPTH_MAX */
    uint32_t values; /* of all kinds */
} tg_json_limits;

/*
 * Parses a whole text of less than 4 GiB. Everything lies in the arena, nothing points into text.
 * name is for messages ("file", "request"). limits NULL: depth 64, 2^26 values.
 * Errors: TG_E_FORMAT "name: byte N: want X, have Y"; TG_E_MEMORY.
 */
tg_status tg_json_parse(tg_ctx *ctx, tg_arena *arena, const char *name, const char *text,
                        size_t n_bytes, const tg_json_limits *limits, const tg_json **root);

static inline tg_json_type tg_json_kind(const tg_json *v) { return (tg_json_type)v->type; }

/* Children of an array or object in the order of the text; NULL at the end. */
static inline const tg_json *tg_json_first(const tg_json *v) { return v->count ? v + 1 : NULL; }
static inline const tg_json *tg_json_next(const tg_json *v) { return v->skip ? v + v->skip : NULL; }

/* The member with this key, in O(log n); NULL if there is none or v is no object. */
const tg_json *tg_json_get(const tg_json *v, const char *key);
const tg_json *tg_json_get_n(const tg_json *v, const char *key, size_t key_length);

/* The same, and an error (TG_E_FORMAT) if it is missing or of another type. TG_JSON_TRUE and
 * TG_JSON_FALSE both stand for "a boolean". */
tg_status tg_json_want(tg_ctx *ctx, const tg_json *v, const char *key, tg_json_type type,
                       const tg_json **out);

/* The value of a node; TG_E_FORMAT if it is of another type or not exactly representable: an
 * integer must be written as one (no '.', no exponent) and fit; a double must be finite. */
tg_status tg_json_int64(tg_ctx *ctx, const tg_json *v, int64_t *out);
tg_status tg_json_uint64(tg_ctx *ctx, const tg_json *v, uint64_t *out);
tg_status tg_json_double(tg_ctx *ctx, const tg_json *v, double *out);
tg_status tg_json_bool(tg_ctx *ctx, const tg_json *v, bool *out);

/* A string node equal to a C string? */
bool tg_json_is(const tg_json *v, const char *text);

/* A value for a message: a text or a number as it is, cut, with zeros and controls as \0 and \x1b;
 * the kind of another; "none" of NULL. TG_JSON_SHOWN has the room on the caller's stack. */
#define TG_JSON_SHOWN_BYTES 64
const char *tg_json_show(const tg_json *v, char out[TG_JSON_SHOWN_BYTES]);
#define TG_JSON_SHOWN(v) tg_json_show((v), (char[TG_JSON_SHOWN_BYTES]) { 0 })

/* --------------------------------------------------------------------------------------- writer */

/*
 * Appends JSON to a buffer; commas and colons come by themselves. Misuse (a value without a key, an
 * end too many, TG_JSON_DEPTH_MAX levels) is our bug: TG_ASSERT. Running out of memory is
 * remembered by the buffer.
 */
typedef struct tg_json_writer {
    tg_buf *out;
    uint64_t object_bits; /* bit d: level d is an object */
    uint64_t filled_bits; /* bit d: level d has a member already */
    uint32_t depth;
    bool keyed; /* a key was written, its value is due */
    bool snake; /* keys are written as hash_of_loss where the caller says hashOfLoss */
} tg_json_writer;

void tg_json_writer_init(tg_json_writer *w, tg_buf *out);
void tg_json_begin_object(tg_json_writer *w);
void tg_json_end_object(tg_json_writer *w);
void tg_json_begin_array(tg_json_writer *w);
void tg_json_end_array(tg_json_writer *w);
void tg_json_key(tg_json_writer *w, const char *key);

void tg_json_put_string(tg_json_writer *w, const char *text);
/* Any bytes: what is not UTF-8 is written as U+FFFD, so that the result is always valid. */
void tg_json_put_string_n(tg_json_writer *w, const char *bytes, size_t n_bytes);
void tg_json_put_int(tg_json_writer *w, int64_t value);
void tg_json_put_uint(tg_json_writer *w, uint64_t value);
/* Shortest text that reads back as the same number; null for NaN and infinity, which JSON lacks. */
void tg_json_put_double(tg_json_writer *w, double value);
void tg_json_put_float(tg_json_writer *w, float value);
/* With a point where the number is whole, for readers that tell 4.0 from 4. */
void tg_json_put_real(tg_json_writer *w, double value);
void tg_json_put_bool(tg_json_writer *w, bool value);
void tg_json_put_null(tg_json_writer *w);

#endif
