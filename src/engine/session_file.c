/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_file.c - a session in a file, to go on from another day to the bit.
 *
 *   OFFSET  SIZE
 *   0       8     "TGSESS2\n"
 *   8       44    eleven u32: the fields of head below
 *   52      b     how it was computed [bits_bytes]: "cpu fused +simd,-bf16" (bits.h)
 *   52+b    4n    i32 tokens [n_tokens]
 *           4V    f32 logits [vocab], those that follow the last token
 *           ..    the caller's note [note_bytes]
 *           ..    for each layer and each of its 2K heads of keys, then values: rows of positions
 *                 first .. n_tokens-1 (ops/attention/cache/kv_row.h); first is n_lost where the
 *                 layer has a window, else 0. A short convolution has one head, and a window: its
 *                 taps. Of a layer that keeps states, the one behind all tokens
 *   end-4   4     CRC-32C of all before
 *
 * "TGSESS1\n" has ten fields, and does not say how it was computed.
 *
 * A file is read twice: nothing of the session changes before its checksum, its model and its
 * length have been found right.
 */
#include "base/codec/crc.h"
#include "base/str.h"
#include "engine/session.h"
#include "io/output.h"
#include "io/reader.h"
#include "runtime/bits.h"

static const char magic[8] = { 'T', 'G', 'S', 'E', 'S', 'S', '2', '\n' };
enum { VERSION_AT = 6 }; /* in magic */

enum { HEAD_FIELDS = 11, OLD_FIELDS = 10, BITS_BYTES = 256, PIECE_BYTES = 1 << 14 };

/* In the order of the file. */
typedef struct head {
    uint32_t shape,
        weights; /* checksums: of the model's sizes and tensors; of samples of weights */
    uint32_t kv, layers, heads, row_bytes, vocab, n_tokens, n_lost, note_bytes;
    uint32_t bits_bytes;
    char bits[BITS_BYTES]; /* terminated */
    uint64_t tokens_at;    /* of the file: behind all this */
} head;

/* ------------------------------------------------------------------------------------ identity */

/* Samples all over the weights: models that were tuned differ nearly everywhere. */
enum { SAMPLES = 4096, SAMPLES_OF_MATRIX = 64, SAMPLE_BYTES = 64 };
static uint32_t weights_checksum(uint32_t crc, const void *weights, size_t n, size_t n_samples) {
    const uint8_t *bytes = weights;
    if (n <= n_samples * SAMPLE_BYTES) return tg_crc32c(crc, bytes, n);
    for (size_t i = 0; i < n_samples; i++)
        crc = tg_crc32c(crc, bytes + (n - SAMPLE_BYTES) / (n_samples - 1) * i, SAMPLE_BYTES);
    return crc;
}

/* Of what was packed, and of each matrix that is used where the file has it. */
static uint32_t packed_checksum(const tg_model *m) {
    uint32_t crc = weights_checksum(0, m->packed, m->table.bytes, SAMPLES);
    for (size_t i = 0; i < m->table.n_tensors; i++)
        if (m->table.tensors[i].stays)
            crc = weights_checksum(crc, m->in_file[i], (size_t)m->table.tensors[i].source->bytes,
                                   SAMPLES_OF_MATRIX);
    return crc;
}

static uint32_t shape_checksum(const tg_model *m) {
    const tg_model_config *c = &m->layout.config;
    const bool flat = tg_weights_are_flat(m);
    char text[256];
    int n = snprintf(text, sizeof text, "%s %d %d %d %d %d", flat ? c->family : "", (int)c->layers,
                     (int)c->heads, (int)c->width, (int)c->ctx, (int)c->vocab);
    uint32_t crc = tg_crc32c(0, text, (size_t)n);
    if (flat && !tg_meta_is_own(c)) /* which has nothing but those */
        crc = tg_crc32c(crc, &c->kv_heads,
                        offsetof(tg_model_config, conv_taps) - offsetof(tg_model_config, kv_heads));
    if (flat && c->conv_taps > 0)
        crc = tg_crc32c(crc, &c->conv_taps, sizeof c->conv_taps + sizeof c->layer_kind);
    if (flat && c->ssm_heads > 0)
        crc = tg_crc32c(crc, &c->ssm_heads,
                        offsetof(tg_model_config, logit_scale) + sizeof c->logit_scale -
                            offsetof(tg_model_config, ssm_heads));
    if (flat && c->experts > 0)
        crc = tg_crc32c(crc, &c->residual_scale,
                        offsetof(tg_model_config, experts_weigh) + sizeof c->experts_weigh -
                            offsetof(tg_model_config, residual_scale));
    for (size_t i = 0; i < m->table.n_tensors; i++) {
        const tg_tensor *t = &m->table.tensors[i];
        n = snprintf(text, sizeof text, "%s %d %zu %zu", t->name,
                     tg_packing_table[tg_dtype_table[t->source->type].packing].number,
                     (size_t)t->source->dim[1], (size_t)t->source->dim[0]);
        crc = tg_crc32c(crc, text, (size_t)n);
    }
    return crc;
}

/* What the head says of rows is said of keys and values; layers without have rows of floats. */
static const tg_layer_state *first_attention(const tg_session *s) {
    const tg_model_config *c = &s->model->layout.config;
    int32_t i = 0;
    while (i + 1 < c->layers && tg_layer_kind_of(c, i) != TG_LAYER_ATTENTION) i++;
    return &s->d->cache.layers[tg_layer_rows_at(c, i)];
}

static tg_status head_of(const tg_session *s, size_t note_bytes, head *out) {
    const tg_model *m = s->model;
    const tg_layer_state *layer = first_attention(s);
    const bool flat = tg_weights_are_flat(m);
    if (flat) TG_TRY(tg_weights_fetch(m));
    *out = (head) {
        .shape = shape_checksum(m),
        .weights =
            flat ? weights_checksum(0, m->weights, m->layout.n_elems * sizeof *m->weights, SAMPLES)
                 : packed_checksum(m),
        .kv = (uint32_t)s->d->kv,
        .layers = (uint32_t)s->d->cache.n_layers,
        .heads = (uint32_t)layer->heads,
        .row_bytes = (uint32_t)tg_layer_state_row_bytes(layer),
        .vocab = (uint32_t)m->layout.config.vocab,
        .n_tokens = (uint32_t)s->n_held,
        .n_lost = (uint32_t)s->n_lost,
        .note_bytes = (uint32_t)note_bytes,
    };
    const tg_bits bits = tg_bits_of(s->ctx, TG_LEVER_BIT(epilogue_fusion));
    tg_str_append(out->bits, sizeof out->bits, "%s %s %s", bits.device, bits.class, bits.levers);
    out->bits_bytes = (uint32_t)strlen(out->bits);
    return TG_OK;
}

/* The first position of a layer that is in the file. */
static uint32_t first_of(const tg_layer_state *l, uint32_t n_lost) {
    return l->keeps == TG_KEEPS_WINDOW ? n_lost : 0;
}

/* Rows that lie together: up to the end of a page. */
static size_t run_of(const tg_layer_state *l, size_t position, size_t end) {
    const size_t left = l->page_rows - position % l->page_rows;
    return end - position < left ? end - position : left;
}

/* -------------------------------------------------------------------------------------- saving */

typedef struct writer {
    tg_save *save;
    uint32_t crc;
    tg_status status; /* the first error */
} writer;

static void put(writer *w, const void *bytes, size_t n) {
    if (w->status != TG_OK || n == 0) return;
    w->crc = tg_crc32c(w->crc, bytes, n);
    w->status = tg_save_write(w->save, bytes, n);
}

static void put_head(writer *w, const head *h) {
    const uint32_t field[HEAD_FIELDS] = { h->shape,  h->weights,    h->kv,        h->layers,
                                          h->heads,  h->row_bytes,  h->vocab,     h->n_tokens,
                                          h->n_lost, h->note_bytes, h->bits_bytes };
    uint8_t bytes[4 * HEAD_FIELDS];
    for (size_t i = 0; i < HEAD_FIELDS; i++) tg_put_u32(bytes + 4 * i, field[i]);
    put(w, magic, sizeof magic);
    put(w, bytes, sizeof bytes);
    put(w, h->bits, h->bits_bytes);
}

static void put_layer(writer *w, const tg_session *s, int32_t layer) {
    const tg_layer_state *l = &s->d->cache.layers[layer];
    if (l->keeps == TG_KEEPS_STATES) {
        put(w, tg_cache_state(&s->d->cache, layer, s->sequence, s->n_held),
            tg_layer_state_row_bytes(l));
        return;
    }
    const size_t first = first_of(l, (uint32_t)s->n_lost), end = (size_t)s->n_held;
    for (size_t h = 0; h < l->heads; h++)
        for (size_t p = first, n; p < end; p += n) {
            n = run_of(l, p, end);
            put(w, tg_cache_row(&s->d->cache, layer, s->sequence, h, p),
                n * tg_layer_state_row_bytes(l));
        }
}

tg_status tg_session_write(const tg_session *s, const char *path, const void *note,
                           size_t note_bytes) {
    tg_ctx *err = &s->ctx->err;
    head h;
    writer w = { .status = TG_OK };
    if (s->ctx->backend != s->ctx->cpu)
        return tg_fail(err, TG_E_UNSUPPORTED, "%s: a session on a GPU is not saved", path);
    /* What a lost device had of the cache is not here, as in tg_session_find_cache. */
    const int32_t held = s->generation == s->ctx->generation
                             ? tg_cache_reach(&s->d->cache, s->sequence, s->n_held)
                             : 0;
    if (held < s->n_tokens)
        return tg_fail(err, TG_E_ARG,
                       "%s: want a session whose tokens are in its cache, have %d of %d: feed what "
                       "comes next before",
                       path, (int)held, (int)s->n_tokens);
    if (note_bytes > INT32_MAX)
        return tg_fail(err, TG_E_ARG, "%s: want a note of up to %d bytes, have %zu", path,
                       INT32_MAX, note_bytes);
    TG_TRY(head_of(s, note_bytes, &h));
    bool keep;
    TG_TRY(tg_output_want_kind(err, path, TG_OUTPUT_SESSION, &keep));
    TG_TRY(tg_save_begin(err, path, &w.save));
    put_head(&w, &h);
    put(&w, s->fed, h.n_tokens * sizeof *s->fed);
    put(&w, s->logits, h.vocab * sizeof *s->logits);
    put(&w, note, note_bytes);
    for (int32_t i = 0; i < (int32_t)h.layers; i++) put_layer(&w, s, i);
    uint8_t crc[4];
    tg_put_u32(crc, w.crc);
    put(&w, crc, sizeof crc);
    if (w.status == TG_OK) return tg_save_commit(w.save, keep);
    tg_save_abort(w.save);
    return w.status;
}

/* ------------------------------------------------------------------------------------- loading */

static tg_status read_head(tg_reader *r, head *h) {
    uint8_t begin[sizeof magic] = { 0 };
    uint32_t *const field[HEAD_FIELDS] = { &h->shape,  &h->weights,    &h->kv,        &h->layers,
                                           &h->heads,  &h->row_bytes,  &h->vocab,     &h->n_tokens,
                                           &h->n_lost, &h->note_bytes, &h->bits_bytes };
    if (tg_reader_left(r) >= sizeof begin) TG_TRY(tg_read_bytes(r, "magic", begin, sizeof begin));
    const bool old = begin[VERSION_AT] == '1';
    if (old) begin[VERSION_AT] = (uint8_t)magic[VERSION_AT];
    if (memcmp(begin, magic, sizeof magic) != 0)
        return tg_fail(r->ctx, TG_E_FORMAT, "%s: it is not the file of a session", r->name);
    const size_t n_fields = old ? OLD_FIELDS : HEAD_FIELDS;
    for (size_t i = 0; i < n_fields; i++) TG_TRY(tg_read_u32(r, "head", field[i]));
    h->tokens_at = sizeof magic + 4 * n_fields + h->bits_bytes;
    if (r->end < h->tokens_at + 4)
        return tg_reader_fail(r, TG_E_FORMAT, r->end, "session", "the file ends too early");
    return TG_OK;
}

/* Behind the checksum: a longer text, of a later version, is cut, and what it tells beyond is not
 * known here. */
static tg_status read_bits(tg_reader *r, head *h) {
    const size_t n = h->bits_bytes < BITS_BYTES ? h->bits_bytes : BITS_BYTES - 1;
    TG_TRY(tg_read_at(r, h->tokens_at - h->bits_bytes, "how it was computed", h->bits, n));
    h->bits[n] = '\0';
    r->offset = h->tokens_at;
    return TG_OK;
}

/* Splits "cpu fused +simd,-bf16" in place. Sums in an epilogue are those of training. */
static void compare_bits(const tg_session *s, head *h) {
    char *class = strchr(h->bits, ' ');
    char *levers = class ? strchr(class + 1, ' ') : NULL;
    if (!levers) return;
    *class = *levers = '\0';
    tg_bits_compare(s->ctx, "the session", h->bits, class + 1, levers + 1,
                    TG_LEVER_BIT(epilogue_fusion));
}

/* All of the file but its last four bytes, which are the answer. */
static tg_status want_checksum(const tg_reader *r) {
    static const char damaged[] =
        "the file of the session is damaged: want checksum %08x, have %08x";
    uint8_t piece[PIECE_BYTES];
    uint32_t crc = 0;
    for (uint64_t at = 0; at < r->end - 4;) {
        const uint64_t left = r->end - 4 - at;
        const size_t n = left < sizeof piece ? (size_t)left : sizeof piece;
        TG_TRY(tg_read_at(r, at, "session", piece, n));
        crc = tg_crc32c(crc, piece, n);
        at += n;
    }
    TG_TRY(tg_read_at(r, r->end - 4, "checksum", piece, 4));
    if (tg_get_u32(piece) == crc) return TG_OK;
    return tg_reader_fail(r, TG_E_CHECKSUM, r->end - 4, "checksum", damaged, tg_get_u32(piece),
                          crc);
}

/* Bytes of the layers' rows; 64 bits hold the product of what has been checked before. */
static uint64_t rows_bytes(const tg_session *s, const head *h) {
    uint64_t bytes = 0;
    for (int32_t i = 0; i < (int32_t)h->layers; i++) {
        const tg_layer_state *l = &s->d->cache.layers[i];
        const bool state = l->keeps == TG_KEEPS_STATES;
        bytes += (uint64_t)(state ? 1 : h->n_tokens - first_of(l, h->n_lost)) * l->heads *
                 tg_layer_state_row_bytes(l);
    }
    return bytes;
}

static const char *kv_name(uint32_t kv) {
    switch (kv) {
    case TG_F32: return "f32";
    case TG_F16: return "f16";
    default: return "int8";
    }
}

/* Is it of this model, in this session's kind of cache, and does it fit? */
static tg_status want_ours(const tg_reader *r, const tg_session *s, const head *h) {
    head own;
    TG_TRY(head_of(s, 0, &own));
    if (h->shape != own.shape || h->weights != own.weights || h->layers != own.layers ||
        h->vocab != own.vocab)
        return tg_fail(r->ctx, TG_E_SHAPE, "%s: it is a session of another model", r->name);
    if (h->kv != own.kv || h->heads != own.heads || h->row_bytes != own.row_bytes) {
        return tg_fail(r->ctx, TG_E_SHAPE,
                       "%s: want a cache of %s, as this session has, have one of %s", r->name,
                       kv_name(own.kv), kv_name(h->kv));
    }
    if (h->n_tokens > (uint32_t)s->capacity)
        return tg_fail(r->ctx, TG_E_FULL, "%s: want room for %u tokens, have %d", r->name,
                       (unsigned)h->n_tokens, (int)s->capacity);
    const uint32_t window = (uint32_t)tg_cache_window(&s->d->cache);
    bool right = h->n_lost == 0 ||
                 (window > 0 && h->n_lost <= h->n_tokens && h->n_tokens - h->n_lost >= window - 1);
    for (int32_t i = 0; right && i < (int32_t)h->layers; i++)
        right = s->d->cache.layers[i].keeps == TG_KEEPS_STATES ||
                h->n_tokens - first_of(&s->d->cache.layers[i], h->n_lost) <=
                    tg_layer_state_room(&s->d->cache.layers[i]);
    const uint64_t rest = 4 * (uint64_t)h->n_tokens + 4 * (uint64_t)h->vocab + h->note_bytes + 4;
    const uint64_t room = r->end - h->tokens_at;
    if (!right || room < rest || room - rest != rows_bytes(s, h))
        return tg_fail(r->ctx, TG_E_FORMAT, "%s: the sizes in its head are not those of the file",
                       r->name);
    return TG_OK;
}

static tg_status want_tokens(const tg_reader *r, const head *h) {
    for (uint32_t i = 0; i < h->n_tokens; i++) {
        uint8_t id[4];
        const uint64_t at = h->tokens_at + 4 * (uint64_t)i;
        TG_TRY(tg_read_at(r, at, "token", id, sizeof id));
        if (tg_get_u32(id) >= h->vocab)
            return tg_reader_fail(r, TG_E_RANGE, at, "token", "want an id below %u, have %u",
                                  (unsigned)h->vocab, (unsigned)tg_get_u32(id));
    }
    return TG_OK;
}

static tg_status read_layer(tg_reader *r, tg_session *s, int32_t layer) {
    const tg_layer_state *l = &s->d->cache.layers[layer];
    if (l->keeps == TG_KEEPS_STATES)
        return tg_read_bytes(r, "state",
                             tg_cache_state(&s->d->cache, layer, s->sequence, s->n_held),
                             tg_layer_state_row_bytes(l));
    const size_t first = first_of(l, (uint32_t)s->n_lost), end = (size_t)s->n_held;
    for (size_t h = 0; h < l->heads; h++)
        for (size_t p = first, n; p < end; p += n) {
            n = run_of(l, p, end);
            TG_TRY(tg_read_bytes(r, "cache", tg_cache_row(&s->d->cache, layer, s->sequence, h, p),
                                 n * tg_layer_state_row_bytes(l)));
        }
    return TG_OK;
}

/* From here on the session is filled; should the file fail now, it is left empty. */
static tg_status fill(tg_reader *r, tg_session *s, const head *h, tg_text_fn note, void *user) {
    TG_TRY(tg_read_bytes(r, "tokens", s->fed, h->n_tokens * sizeof *s->fed));
    TG_TRY(tg_read_bytes(r, "logits", s->logits, h->vocab * sizeof *s->logits));
    s->drawn = -1;
    char piece[4096];
    for (size_t left = h->note_bytes; left > 0;) {
        const size_t n = left < sizeof piece ? left : sizeof piece;
        TG_TRY(tg_read_bytes(r, "note", piece, n));
        if (note && note(user, piece, n) != 0) return tg_stopped(r->ctx, r->name);
        left -= n;
    }
    s->n_held = (int32_t)h->n_tokens;
    s->n_lost = (int32_t)h->n_lost;
    tg_cache_own(&s->d->cache, s->sequence, 0, h->n_tokens);
    tg_cache_put_state(&s->d->cache, s->sequence, s->n_held);
    for (int32_t i = 0; i < (int32_t)h->layers; i++) TG_TRY(read_layer(r, s, i));
    s->n_tokens = s->n_held;
    s->version = s->model->version;
    s->generation = s->ctx->generation;
    return TG_OK;
}

tg_status tg_session_read(tg_session *s, const char *path, tg_text_fn note, void *user) {
    tg_reader r;
    head h = { 0 };
    if (s->ctx->backend != s->ctx->cpu)
        return tg_fail(&s->ctx->err, TG_E_UNSUPPORTED, "%s: a GPU loads no session", path);
    TG_TRY(tg_reader_open(&s->ctx->err, path, &r));
    tg_status status = read_head(&r, &h);
    if (status == TG_OK) status = want_checksum(&r);
    if (status == TG_OK) status = read_bits(&r, &h);
    if (status == TG_OK) status = want_ours(&r, s, &h);
    if (status == TG_OK) status = want_tokens(&r, &h);
    if (status == TG_OK) {
        tg_session_go_back(s, 0);
        status = fill(&r, s, &h, note, user);
        if (status != TG_OK) tg_session_go_back(s, 0);
        if (status == TG_OK) compare_bits(s, &h);
    }
    tg_reader_close(&r);
    return status;
}
