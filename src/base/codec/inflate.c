/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflate.c - deflate: blocks of literals and copies, in Huffman codes of their own.
 *
 *     bits come from the low end of each byte; a code of n bits has its first bit lowest
 *
 *     block   | last | kind 2 |  kind 0: bytes as they are    1: fixed codes    2: codes follow
 *     symbol  0..255 a byte     256 the end     257.. a length, behind which comes a distance
 *
 * A code is looked up by the next FAST_BITS bits at once; longer ones go on bit by bit, through the
 * counts of codes of each length (canonical codes: those of a length are consecutive numbers).
 * Nothing of a stream is believed: a code that is not complete, a copy from before the beginning
 * and a byte too many are errors.
 */
#include "base/codec/inflate.h"

enum { FAST_BITS = 10, LONGEST = 15, LITERALS = 288, DISTANCES = 30, FIXED_DISTANCES = 32 };

typedef struct stream {
    tg_ctx *ctx;
    const char *name;
    const uint8_t *in;
    size_t n_in, at;
    uint64_t bits; /* read ahead, the next one lowest */
    unsigned n_bits;
    uint8_t *out; /* [room], of which done are written; room is at most n_out */
    size_t room, n_out, done;
} stream;

/* fast[bits]: symbol << 4 | length of its code; 0: none so short. */
typedef struct code {
    uint16_t fast[1 << FAST_BITS];
    uint16_t count[LONGEST + 1];
    uint16_t symbol[LITERALS]; /* by length, then by number */
} code;

static tg_status broken(const stream *s, const char *what) {
    return tg_fail(s->ctx, TG_E_FORMAT, "%s: byte %zu of the packed data: %s", s->name, s->at,
                   what);
}

/* Bits beyond the end are zeros, which want() notices when they are used. */
static void refill(stream *s) {
    while (s->n_bits <= 56 && s->at < s->n_in) {
        s->bits |= (uint64_t)s->in[s->at++] << s->n_bits;
        s->n_bits += 8;
    }
}

static tg_status take(stream *s, unsigned n, unsigned *out) {
    *out = 0;
    refill(s);
    if (n > s->n_bits) return broken(s, "want more, have the end");
    *out = (unsigned)(s->bits & (((uint64_t)1 << n) - 1));
    s->bits >>= n;
    s->n_bits -= n;
    return TG_OK;
}

/* Room for n more bytes. Memory that grows does so by doubling, so that it is at most twice what
 * the stream has proved, but for the first pages. */
static tg_status reserve(stream *s, size_t n) {
    enum { FIRST_BYTES = 64 << 10 };
    if (n > s->n_out - s->done) return broken(s, "want no more bytes, have some");
    if (n <= s->room - s->done) return TG_OK;
    size_t room = s->room ? s->room : FIRST_BYTES;
    while (room < s->done + n) room = room > s->n_out / 2 ? s->n_out : 2 * room;
    if (room > s->n_out) room = s->n_out;
    uint8_t *grown = tg_realloc(&s->ctx->mem, s->out, s->room, room);
    if (!grown) return tg_fail_memory(s->ctx, s->name, room);
    s->out = grown;
    s->room = room;
    return TG_OK;
}

/* lengths [n], 0: the symbol has no code. A code of one symbol may leave its second half unused, as
 * distances do where there is one distance; other codes must be complete. */
static tg_status make_code(const stream *s, code *c, const uint8_t *lengths, size_t n) {
    uint16_t next[LONGEST + 2] = { 0 }, place[LONGEST + 2] = { 0 };
    memset(c, 0, sizeof *c);
    for (size_t i = 0; i < n; i++) c->count[lengths[i]]++;
    const size_t used = n - c->count[0];
    c->count[0] = 0;
    int left = 1;
    for (int length = 1; length <= LONGEST; length++) {
        left = 2 * left - c->count[length];
        if (left < 0) return broken(s, "want a Huffman code, have more symbols than fit");
        next[length + 1] = (uint16_t)((next[length] + c->count[length]) << 1);
        place[length + 1] = (uint16_t)(place[length] + c->count[length]);
    }
    if (left > 0 && used > 1) return broken(s, "want a whole Huffman code, have part of one");
    for (size_t i = 0; i < n; i++) {
        const unsigned length = lengths[i];
        if (length == 0) continue;
        c->symbol[place[length]++] = (uint16_t)i;
        const unsigned number = next[length]++;
        if (length > FAST_BITS) continue;
        unsigned turned = 0; /* the first bit of the code lowest */
        for (unsigned b = 0; b < length; b++) turned |= (number >> b & 1) << (length - 1 - b);
        for (unsigned k = turned; k < 1u << FAST_BITS; k += 1u << length)
            c->fast[k] = (uint16_t)(i << 4 | length);
    }
    return TG_OK;
}

static tg_status take_symbol(stream *s, const code *c, unsigned *out) {
    *out = 0;
    refill(s);
    const unsigned entry = c->fast[s->bits & ((1u << FAST_BITS) - 1)];
    if (entry && (entry & 15) <= s->n_bits) {
        s->bits >>= entry & 15;
        s->n_bits -= entry & 15;
        *out = entry >> 4;
        return TG_OK;
    }
    unsigned number = 0, first = 0, place = 0;
    for (unsigned length = 1; length <= LONGEST; length++) {
        unsigned bit;
        TG_TRY(take(s, 1, &bit));
        number |= bit;
        if (number - first < c->count[length]) {
            *out = c->symbol[place + number - first];
            return TG_OK;
        }
        place += c->count[length];
        first = (first + c->count[length]) << 1;
        number <<= 1;
    }
    return broken(s, "want a code, have bits that are none");
}

/* --------------------------------------------------------------------------------------- blocks */

static tg_status copy_stored(stream *s) {
    unsigned n, not_n;
    unsigned skipped;
    TG_TRY(take(s, s->n_bits % 8, &skipped));
    TG_TRY(take(s, 16, &n));
    TG_TRY(take(s, 16, &not_n));
    if ((n ^ not_n) != 0xffff) return broken(s, "want a length and its complement");
    TG_TRY(reserve(s, n));
    for (; n > 0 && s->n_bits > 0; n--) {
        unsigned byte;
        TG_TRY(take(s, 8, &byte));
        s->out[s->done++] = (uint8_t)byte;
    }
    if (n > s->n_in - s->at) return broken(s, "want more, have the end");
    if (n > 0) memcpy(s->out + s->done, s->in + s->at, n); /* of nothing there may be no memory */
    s->at += n;
    s->done += n;
    return TG_OK;
}

static tg_status copy_back(stream *s, unsigned symbol, const code *distances) {
    static const uint16_t length_base[29] = { 3,  4,  5,  6,   7,   8,   9,   10,  11, 13,
                                              15, 17, 19, 23,  27,  31,  35,  43,  51, 59,
                                              67, 83, 99, 115, 131, 163, 195, 227, 258 };
    static const uint8_t length_bits[29] = { 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                             2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0 };
    unsigned more, at;
    if (symbol - 257 >= 29) return broken(s, "want a length, have a number that is none");
    TG_TRY(take(s, length_bits[symbol - 257], &more));
    const size_t n = length_base[symbol - 257] + more;
    TG_TRY(take_symbol(s, distances, &at));
    if (at >= DISTANCES) return broken(s, "want a distance, have a number that is none");
    /* Distances double every two symbols: 1 2 3 4 5 7 9 13 17 25 .. */
    const unsigned bits = at < 2 ? 0 : at / 2 - 1;
    TG_TRY(take(s, bits, &more));
    const size_t distance = (at < 2 ? 1 + at : 1 + ((2u + (at & 1)) << bits)) + more;
    if (distance > s->done) return broken(s, "want a distance within what is there");
    TG_TRY(reserve(s, n));
    uint8_t *to = s->out + s->done;
    for (size_t i = 0; i < n; i++) to[i] = to[(ptrdiff_t)i - (ptrdiff_t)distance];
    s->done += n;
    return TG_OK;
}

static tg_status run_block(stream *s, const code *literals, const code *distances) {
    for (;;) {
        unsigned symbol;
        TG_TRY(take_symbol(s, literals, &symbol));
        if (symbol == 256) return TG_OK;
        if (symbol > 256) {
            TG_TRY(copy_back(s, symbol, distances));
            continue;
        }
        if (s->done == s->room) TG_TRY(reserve(s, 1));
        s->out[s->done++] = (uint8_t)symbol;
    }
}

static tg_status fixed_codes(const stream *s, code *literals, code *distances) {
    uint8_t lengths[LITERALS];
    for (int i = 0; i < LITERALS; i++)
        lengths[i] = (uint8_t)(i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8);
    TG_TRY(make_code(s, literals, lengths, LITERALS));
    memset(lengths, 5, FIXED_DISTANCES);
    return make_code(s, distances, lengths, FIXED_DISTANCES);
}

/* The lengths of both codes are one list, in a code of its own: 0..15 a length, 16 the last one 3
 * to 6 times more, 17 and 18 a run of zeros. */
static tg_status read_codes(stream *s, code *literals, code *distances) {
    static const uint8_t order[19] = { 16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                       11, 4,  12, 3, 13, 2, 14, 1, 15 };
    unsigned n_literals, n_distances, n_lengths, x;
    uint8_t lengths[LITERALS + FIXED_DISTANCES] = { 0 };
    TG_TRY(take(s, 5, &n_literals));
    TG_TRY(take(s, 5, &n_distances));
    TG_TRY(take(s, 4, &n_lengths));
    n_literals += 257;
    n_distances += 1;
    if (n_literals > 286 || n_distances > DISTANCES)
        return broken(s, "want up to 286 symbols and 30 distances");
    for (unsigned i = 0; i < n_lengths + 4; i++) {
        TG_TRY(take(s, 3, &x));
        lengths[order[i]] = (uint8_t)x;
    }
    TG_TRY(make_code(s, literals, lengths, 19));
    memset(lengths, 0, sizeof lengths);
    for (unsigned i = 0; i < n_literals + n_distances;) {
        unsigned symbol, n = 1;
        TG_TRY(take_symbol(s, literals, &symbol));
        if (symbol < 16) {
            lengths[i++] = (uint8_t)symbol;
            continue;
        }
        if (symbol == 16 && i == 0) return broken(s, "want a length before its repetition");
        const uint8_t value = symbol == 16 ? lengths[i - 1] : 0;
        TG_TRY(take(s, symbol == 16 ? 2 : symbol == 17 ? 3 : 7, &n));
        n += symbol == 18 ? 11 : 3;
        if (n > n_literals + n_distances - i) return broken(s, "want fewer lengths of codes");
        memset(lengths + i, value, n);
        i += n;
    }
    if (lengths[256] == 0) return broken(s, "want a code for the end of the block, have none");
    TG_TRY(make_code(s, distances, lengths + n_literals, n_distances));
    return make_code(s, literals, lengths, n_literals);
}

static tg_status run(stream *s, code *literals, code *distances) {
    unsigned last = 0, kind;
    while (!last) {
        TG_TRY(take(s, 1, &last));
        TG_TRY(take(s, 2, &kind));
        if (kind == 3) return broken(s, "want a block of kind 0..2, have 3");
        if (kind == 0) {
            TG_TRY(copy_stored(s));
            continue;
        }
        TG_TRY(kind == 1 ? fixed_codes(s, literals, distances)
                         : read_codes(s, literals, distances));
        TG_TRY(run_block(s, literals, distances));
    }
    if (s->done != s->n_out) return broken(s, "want more bytes, have the end of the stream");
    return TG_OK;
}

static tg_status run_all(stream *s) {
    code *codes = tg_alloc(&s->ctx->mem, 2 * sizeof *codes);
    if (!codes) return tg_fail_memory(s->ctx, s->name, 2 * sizeof *codes);
    const tg_status status = run(s, &codes[0], &codes[1]);
    tg_free(&s->ctx->mem, codes, 2 * sizeof *codes);
    return status;
}

tg_status tg_inflate(tg_ctx *ctx, const char *name, const uint8_t *in, size_t n_in, uint8_t *out,
                     size_t n_out) {
    stream s = { ctx, name, in, n_in, .out = out, .room = n_out, .n_out = n_out };
    return run_all(&s);
}

tg_status tg_inflate_new(tg_ctx *ctx, const char *name, const uint8_t *in, size_t n_in,
                         size_t n_out, uint8_t **out, size_t *room) {
    stream s = { ctx, name, in, n_in, .n_out = n_out };
    tg_status status = run_all(&s);
    if (status == TG_OK && !s.out) { /* of no bytes */
        s.room = 1;
        s.out = tg_alloc(&ctx->mem, s.room);
        if (!s.out) status = tg_fail_memory(ctx, name, s.room);
    }
    if (status != TG_OK) {
        tg_free(&ctx->mem, s.out, s.room);
        s.out = NULL;
    }
    *out = s.out;
    *room = s.room;
    return status;
}
