/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gguf_out.c - the tables of a tg_gguf as a file: GGUF, or .tinygpt v3. In WebAssembly, too, where
 * a trained model is written as GGUF, in slices.
 *
 *     values   its metadata; what a folder has in tokenizer.json becomes arrays in GGUF
 *     tensors  rows as f32, in the order that GGUF has them, then blocks of the new type
 *
 * Rows are converted by all workers; one piece of a tensor is in memory at a time.
 */
#include "base/math.h"
#include "base/str.h"
#include "base/time.h"
#include "convert/convert.h"
#include "convert/own_gguf.h"
#include "dtype/quantize.h"
#include "io/gguf/gguf_writer.h"
#include "io/output.h"
#include "io/tgpt/tgpt_v3_gguf.h"
#include "load/vocabulary.h"
#include "tok/tok_inside.h"
#include "training/data/text.h"

enum { PIECE_ELEMS = 4 << 20, VALUES_MORE = 28 };
enum { ENDS_OF_GGUF = 3 }; /* eos, eot and eom: further ones go in a list of Ollama's */

/* ------------------------------------------------------------------------------------- metadata */

static void add_value(tg_conversion *c, tg_gguf_value v) { c->values[c->n_values++] = v; }

static void add_number(tg_conversion *c, const char *key, uint32_t x) {
    add_value(c, (tg_gguf_value) { .key = key, .type = TG_GGUF_U32, .whole = x, .real = x });
}

static void add_text(tg_conversion *c, const char *key, const char *text) {
    add_value(
        c, (tg_gguf_value) { .key = key, .type = TG_GGUF_STRING, .text = { text, strlen(text) } });
}

static void add_bool(tg_conversion *c, const char *key, bool x) {
    add_value(c, (tg_gguf_value) { .key = key, .type = TG_GGUF_BOOL, .whole = x });
}

/* What the buffer holds, as an array that stays. */
static tg_status add_array(tg_conversion *c, const char *key, tg_gguf_type element, size_t count,
                           const tg_buf *b) {
    TG_TRY(tg_buf_status(&c->ctx->err, b, key));
    char *kept = tg_arena_alloc(&c->arena, b->length);
    if (!kept) return tg_fail_memory(&c->ctx->err, key, b->length);
    if (b->length) memcpy(kept, b->data, b->length);
    add_value(c, (tg_gguf_value) { .key = key,
                                   .type = TG_GGUF_ARRAY,
                                   .element = element,
                                   .count = count,
                                   .elements = (const uint8_t *)kept,
                                   .elements_bytes = b->length });
    return TG_OK;
}

/* Pieces and types; rows of the model beyond the vocabulary get names of their own, as GGUF wants a
 * token for each. WordPiece in GGUF marks the beginnings of words where others mark continuations.
 */
static tg_status add_pieces(tg_conversion *c, tg_buf *pieces, tg_buf *kinds) {
    const size_t n = (size_t)c->table.config.vocab, have = tg_tok_count(c->tok);
    const bool words = tg_tok_model_of(c->tok) == TG_TOK_WORDPIECE;
    for (size_t i = 0; i < n; i++) {
        char spare[32], kind[4];
        size_t n_bytes = (size_t)snprintf(spare, sizeof spare, "[PAD%zu]", i);
        const char *piece = i < have ? tg_tok_piece(c->tok, (int32_t)i, &n_bytes) : spare;
        const int type = i < have ? tg_tok_type(c->tok, (int32_t)i) : TG_TOK_UNUSED;
        if (words && type == TG_TOK_NORMAL) {
            const bool goes_on = n_bytes > 2 && memcmp(piece, "##", 2) == 0;
            const char *text = goes_on ? piece + 2 : piece;
            char *marked = tg_arena_sprintf(&c->arena, "%s%.*s", goes_on ? "" : TG_BLANK_MARK,
                                            (int)(n_bytes - (goes_on ? 2 : 0)), text);
            if (!marked) return tg_fail_memory(&c->ctx->err, "vocabulary", n_bytes);
            piece = marked;
            n_bytes = strlen(marked);
        }
        tg_gguf_add_string(pieces, piece, n_bytes);
        tg_put_u32((uint8_t *)kind, (uint32_t)type);
        tg_buf_append(kinds, kind, sizeof kind);
    }
    return TG_OK;
}

/* "left right" */
static tg_status add_merges(tg_conversion *c, tg_buf *merges, size_t *n) {
    tg_tok_merges m;
    TG_TRY(tg_tok_merges_of(&c->ctx->err, c->tok, &c->arena, &m));
    for (size_t i = 0; i < m.n; i++) {
        const tg_pair *p = &m.pair[m.order[i]];
        size_t a, b;
        const char *left = tg_tok_piece(c->tok, p->left, &a);
        const char *right = tg_tok_piece(c->tok, p->right, &b);
        tg_buf both;
        tg_buf_init(&both, &c->ctx->err.mem);
        tg_buf_append(&both, left, a);
        tg_buf_putc(&both, ' ');
        tg_buf_append(&both, right, b);
        tg_gguf_add_string(merges, tg_buf_text(&both), both.length);
        merges->failed = merges->failed || both.failed;
        tg_buf_deinit(&both);
    }
    *n = m.n;
    return TG_OK;
}

static void add_special(tg_conversion *c) {
    const bool bert = tg_tok_model_of(c->tok) == TG_TOK_WORDPIECE;
    size_t n_ends;
    const int32_t *ends = tg_tok_ends(c->tok, &n_ends);
    const struct {
        const char *key;
        int32_t id;
    } ids[] = { { "tokenizer.ggml.cls_token_id", bert ? tg_tok_bos(c->tok) : -1 },
                { "tokenizer.ggml.seperator_token_id", bert ? tg_tok_eos(c->tok) : -1 }, /* sic */
                { "tokenizer.ggml.bos_token_id", tg_tok_bos(c->tok) },
                { "tokenizer.ggml.eos_token_id", tg_tok_eos(c->tok) },
                { "tokenizer.ggml.eot_token_id", n_ends > 1 ? ends[1] : -1 },
                { "tokenizer.ggml.eom_token_id", n_ends > 2 ? ends[2] : -1 },
                { "tokenizer.ggml.unknown_token_id", tg_tok_unknown(c->tok) },
                { "tokenizer.ggml.padding_token_id", tg_tok_pad(c->tok) } };
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++)
        if (ids[i].id >= 0) add_number(c, ids[i].key, (uint32_t)ids[i].id);
    add_bool(c, "tokenizer.ggml.add_bos_token", tg_tok_adds_bos(c->tok));
    add_bool(c, "tokenizer.ggml.add_eos_token", c->tok->add_eos);
}

static tg_status add_lists(tg_conversion *c, tg_buf *pieces, tg_buf *kinds, tg_buf *merges) {
    size_t n_merges = 0;
    const size_t n = (size_t)c->table.config.vocab;
    const bool bpe = tg_tok_model_of(c->tok) != TG_TOK_WORDPIECE;
    TG_TRY(add_pieces(c, pieces, kinds));
    TG_TRY(add_array(c, "tokenizer.ggml.tokens", TG_GGUF_STRING, n, pieces));
    TG_TRY(add_array(c, "tokenizer.ggml.token_type", TG_GGUF_I32, n, kinds));
    if (bpe) TG_TRY(add_merges(c, merges, &n_merges));
    return bpe ? add_array(c, "tokenizer.ggml.merges", TG_GGUF_STRING, n_merges, merges) : TG_OK;
}

/* Of other tokenizers GGUF wants scores, which their tokenizer.json does not have, or not all of.
 */
static tg_status add_tokenizer(tg_conversion *c) {
    if (!c->g.tokenizer_json) return TG_OK;
    TG_TRY(tg_vocabulary_gguf(&c->g, (size_t)c->table.config.vocab, &c->tok));
    const tg_tok_model model = tg_tok_model_of(c->tok);
    const bool bpe = model == TG_TOK_BYTE_BPE, gemma = tg_tok_is_gemma(c->tok);
    if (!bpe && !gemma && model != TG_TOK_WORDPIECE)
        return tg_fail(&c->ctx->err, TG_E_UNSUPPORTED,
                       "%s: tokenizer: want byte-level BPE, Gemma's BPE or WordPiece, which GGUF "
                       "can state as tokenizer.json does, have another",
                       c->g.path);
    add_text(c, "tokenizer.ggml.model", bpe ? "gpt2" : gemma ? "gemma4" : "bert");
    if (!gemma)
        add_text(c, "tokenizer.ggml.pre",
                 bpe ? tg_tok_gguf_pre(c->tok->split, c->tok->normal, c->tok->ignore_merges)
                     : "jina-v2-en");
    add_special(c);
    tg_buf pieces, kinds, merges;
    tg_buf_init(&pieces, &c->ctx->err.mem);
    tg_buf_init(&kinds, &c->ctx->err.mem);
    tg_buf_init(&merges, &c->ctx->err.mem);
    const tg_status s = add_lists(c, &pieces, &kinds, &merges);
    tg_buf_deinit(&pieces);
    tg_buf_deinit(&kinds);
    tg_buf_deinit(&merges);
    return s;
}

/* By this key a file is known as one that tinygpt wrote (io/output.c): first of all, as only the
 * beginning of a file is looked at. */
#define MARK_KEY TG_OUTPUT_MARK ".version"

/* What columns matter by, as llama-quantize says it. */
#define IMATRIX "quantize.imatrix."

static void add_calibration(tg_conversion *c) {
    if (c->calibration->imatrix) add_text(c, IMATRIX "file", c->calibration->imatrix);
    if (c->calibration->text) add_text(c, IMATRIX "dataset", c->calibration->text->name);
    add_number(c, IMATRIX "entries_count", (uint32_t)c->n_importance);
    add_number(c, IMATRIX "chunks_count", (uint32_t)c->chunks);
}

/* What says something of the old file alone. */
static bool is_of_file(const char *key) {
    static const char *const keys[] = { "general.alignment", "general.file_type",
                                        "general.quantization_version", MARK_KEY };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (strcmp(key, keys[i]) == 0) return true;
    return strncmp(key, "split.", 6) == 0 || strncmp(key, IMATRIX, sizeof IMATRIX - 1) == 0;
}

static tg_status make_values(tg_conversion *c, tg_file_kind kind) {
    const bool whole = kind == TG_FILE_V3 && c->g.tokenizer_json;
    c->values = tg_arena_array(&c->arena, c->g.n_values + VALUES_MORE, sizeof *c->values);
    if (!c->values) return tg_fail_memory(&c->ctx->err, "metadata", c->g.n_values);
    if (kind == TG_FILE_GGUF) add_text(c, MARK_KEY, TG_VERSION_TEXT);
    for (size_t i = 0; i < c->g.n_values; i++) {
        const char *key = c->g.values[i].key;
        const bool replaced = c->g.tokenizer_json && !whole &&
                              (strcmp(key, "tokenizer.ggml.eos_token_id") == 0 ||
                               (strcmp(key, "tokenizer.ggml.eos_token_ids") == 0 &&
                                c->g.values[i].count <= ENDS_OF_GGUF));
        const bool again = strcmp(key, TG_GGUF_TOKENIZER_JSON) == 0 && c->g.tokenizer_json;
        if (!is_of_file(key) && !replaced && !again) add_value(c, c->g.values[i]);
    }
    add_number(c, "general.file_type", c->file_type);
    add_number(c, "general.quantization_version", 2);
    if (TG_NATIVE_PARTS && c->calibration) add_calibration(c);
    if (!whole) return add_tokenizer(c);
    add_value(c, (tg_gguf_value) { .key = TG_GGUF_TOKENIZER_JSON,
                                   .type = TG_GGUF_STRING,
                                   .text = { c->g.tokenizer_json, c->g.tokenizer_bytes } });
    return TG_OK;
}

/* -------------------------------------------------------------------------------------- tensors */

/* The type, or the next finer one whose blocks divide a row: llama.cpp takes the same. */
static tg_dtype fitting(tg_dtype want, uint64_t cols) {
    if (cols % tg_dtype_table[want].cols == 0) return want;
    if (cols % 32 != 0) return TG_F16;
    return want == TG_Q4_K ? TG_Q5_0 : want == TG_Q5_K ? TG_Q5_1 : TG_Q8_0;
}

const tg_tensor *tg_convert_use(const tg_conversion *c, const tg_gguf_tensor *t) {
    for (size_t i = 0; i < c->table.n_tensors; i++)
        if (c->table.tensors[i].source == t) return &c->table.tensors[i];
    return NULL;
}

/* llama.cpp reads positions and kinds of tokens by rows that it adds, taps of convolutions and what
 * stands apart in rows of groups: as floats. */
static bool is_matrix(const tg_gguf_tensor *t, const tg_tensor *use) {
    const bool floats =
        use && use->want->flags & (TG_WANT_FLOATS | TG_WANT_COLUMN | TG_WANT_GROUPS);
    return t->n_dims > 1 && !floats && strcmp(t->name, "position_embd.weight") != 0 &&
           strcmp(t->name, "token_types.weight") != 0;
}

/* Where a block's number stands: the first digit after a dot ("blk.12.attn_q.weight"). */
static bool is_number(const char *name, size_t at) {
    return at > 0 && name[at - 1] == '.' && name[at] >= '0' && name[at] <= '9';
}

static size_t digits(const char *text) {
    size_t n = 0;
    while (text[n] >= '0' && text[n] <= '9') n++;
    return n;
}

/* Of one kind are matrices whose names differ in numbers alone. */
static bool same_kind(const char *a, const char *b) {
    size_t i = 0, j = 0;
    while (a[i] && b[j]) {
        if (is_number(a, i) && is_number(b, j)) {
            i += digits(a + i);
            j += digits(b + j);
        } else if (a[i++] != b[j++]) {
            return false;
        }
    }
    return a[i] == b[j];
}

/* "blk.N.attn_q.weight Q8_0 (30)": a kind of matrices in a line, so that all of them are told. */
static void tell_finer(tg_convert_report *r, const tg_gguf_tensor *first, size_t n) {
    char name[128] = "";
    for (size_t i = 0; first->name[i];) {
        const bool number = n > 1 && is_number(first->name, i);
        tg_str_append(name, sizeof name, "%c", number ? 'N' : first->name[i]);
        i += number ? digits(first->name + i) : 1;
    }
    tg_str_append(r->finer, sizeof r->finer, "%s%s %s", r->finer[0] ? ", " : "", name,
                  tg_dtype_table[first->type].label);
    if (n > 1) tg_str_append(r->finer, sizeof r->finer, " (%zu)", n);
    r->n_finer += n;
}

/* Which of the tensors of its kind it is, and how many there are: layers that have one. */
static size_t place_of_kind(const tg_conversion *c, const tg_tensor *use, size_t *n) {
    size_t before = 0;
    *n = 0;
    for (size_t k = 0; k < c->table.n_tensors; k++) {
        const tg_tensor *other = &c->table.tensors[k];
        if (other->want != use->want) continue;
        *n += 1;
        before += other->layer < use->layer;
    }
    return before;
}

/*
 * What matters more in a mixture, by llama.cpp's rule (src/llama-quant.cpp): what logits are made
 * of, and values (alone or in one matrix with queries and keys) and the MLP's way down in the first
 * and the last eighth of the layers and in every third between, in Q6_K. It counts layers that have
 * values; of MLPs it has the number of all layers, and of routed experts their layer, too. Where
 * there are eight experts attention is small beside them, as values are beside queries where 80
 * layers share keys (70B): both are finer.
 */
static tg_dtype wanted(const tg_conversion *c, const tg_tensor *use) {
    const tg_model_config *m = &c->table.config;
    const char *name = use ? use->name : "";
    if (!TG_NATIVE_PARTS || !c->mixed) return c->type;
    if (strcmp(name, m->tied ? "token_embd.weight" : "output.weight") == 0) return TG_Q6_K;
    const bool value = strstr(name, ".attn_v.weight") || strstr(name, ".attn_qkv.weight");
    const bool down = strstr(name, ".ffn_down") != NULL;
    if (m->experts == 8 && (value || strstr(name, ".attn_k.weight"))) return TG_Q8_0;
    if (m->experts == 8 && c->type == TG_Q4_K && strstr(name, ".attn_output.weight"))
        return TG_Q5_K;
    if (!value && !down) return c->type;
    size_t n, at = place_of_kind(c, use, &n);
    if (down) n = (size_t)m->layers;
    if (down && m->experts > 1) at = (size_t)use->layer;
    if (at < n / 8 || at >= 7 * n / 8 || (at - n / 8) % 3 == 2) return TG_Q6_K;
    const bool shared = m->layers == 80 && m->kv_heads < m->heads;
    return value && shared && c->type == TG_Q4_K ? TG_Q5_K : c->type;
}

static void tell_all_finer(tg_conversion *c) {
    for (size_t i = 0; i < c->g.n_tensors; i++) {
        size_t n = 0, before = 0;
        for (size_t k = 0; c->finer[i] && k < c->g.n_tensors; k++) {
            if (!c->finer[k] || c->tensors[k].type != c->tensors[i].type ||
                !same_kind(c->tensors[k].name, c->tensors[i].name))
                continue;
            before += k < i;
            n++;
        }
        if (n && !before) tell_finer(c->report, &c->tensors[i], n);
    }
}

static tg_status make_tensors(tg_conversion *c) {
    c->tensors = tg_arena_array(&c->arena, c->g.n_tensors, sizeof *c->tensors);
    c->finer = tg_arena_array(&c->arena, c->g.n_tensors, sizeof *c->finer);
    if (!c->tensors || !c->finer)
        return tg_fail_memory(&c->ctx->err, "table of tensors", c->g.n_tensors);
    for (size_t i = 0; i < c->g.n_tensors; i++) {
        const tg_gguf_tensor *from = &c->g.tensors[i];
        tg_gguf_tensor *t = &c->tensors[i];
        const tg_tensor *use = tg_convert_use(c, from);
        const bool matrix = is_matrix(from, use);
        const tg_dtype want = matrix ? wanted(c, use) : TG_F32;
        *t = *from;
        t->place = NULL;
        if (use && (use->want->flags & (TG_WANT_COLUMN | TG_WANT_GROUPS))) {
            const bool column = use->want->flags & TG_WANT_COLUMN;
            t->n_dims = 2;
            t->dim[1] = column ? from->elems : (uint64_t)c->table.config.ssm_groups;
            t->dim[0] = from->elems / t->dim[1];
        }
        t->type = matrix ? fitting(want, t->dim[0]) : TG_F32;
        c->finer[i] = t->type != want;
        t->bytes = t->elems / tg_dtype_table[t->type].cols * tg_dtype_table[t->type].bytes;
        c->report->n_tensors += matrix;
    }
    if (TG_NATIVE_PARTS) tell_all_finer(c);
    return TG_OK;
}

typedef struct piece {
    const tg_conversion *c;
    const tg_gguf_tensor *from, *to;
    size_t n, cols, head_size; /* rows, of so many; 0: they keep their order */
    bool minus_exp;            /* they are logs, which GGUF has not */
    const tg_want *reorder;    /* heads of values, into GGUF's order; NULL: they stay */
    const float *importance;   /* [experts][cols]; NULL: none */
    uint64_t first;            /* row of the tensor */
    const uint8_t *in;
    float *floats; /* [workers][two rows] */
    uint8_t *out;
} piece;

/* Halves of a head side by side become pairs, as GGUF has Llama's (load/packing.c, the other way).
 */
static size_t source_row(const piece *p, size_t i) {
    if (p->reorder && !tg_turns_columns(p->reorder))
        return tg_head_in_row(&p->c->table.config, p->reorder, i);
    return p->head_size ? tg_row_halved(i, p->head_size) : i;
}

static void convert_worker(void *arg, unsigned worker) {
    piece *p = arg;
    const unsigned workers = p->c->ctx->threads;
    const size_t cols = p->cols;
    const tg_dtype_desc *from = &tg_dtype_table[p->from->type], *to = &tg_dtype_table[p->to->type];
    const size_t in_bytes = cols / from->cols * from->bytes;
    const size_t out_bytes = cols / to->cols * to->bytes;
    float *row = p->floats + 2 * worker * cols;
    const bool columns = p->reorder && tg_turns_columns(p->reorder);
    for (size_t i = p->n * worker / workers; i < p->n * (worker + 1) / workers; i++) {
        const uint8_t *in = p->in + source_row(p, i) * in_bytes;
        if (p->from->type == p->to->type && !p->minus_exp && !columns) {
            memcpy(p->out + i * out_bytes, in, in_bytes);
            continue;
        }
        tg_block_to_f32_n(p->from->type, row, in, cols);
        for (size_t k = 0; p->minus_exp && k < cols; k++) row[k] = (float)-tg_exp((double)row[k]);
        if (columns)
            tg_head_columns(&p->c->table.config, p->reorder, tg_head_in_turns, row, row + cols,
                            cols);
        const float *importance = p->importance;
        if (TG_NATIVE_PARTS && importance) importance += (p->first + i) / p->from->dim[1] * cols;
        tg_block_from_f32_n(p->to->type, p->out + i * out_bytes, row, cols, importance);
    }
}

/* Where the bytes of tensors go: one of the two. */
typedef struct sink {
    tg_save *gguf;
    tg_tgpt3_writer *own;
} sink;

static tg_status write_tensor(tg_conversion *c, const sink *to_file, size_t number,
                              tg_block *buffer) {
    const tg_gguf_tensor *from = &c->g.tensors[number], *to = &c->tensors[number];
    const tg_tensor *use = tg_convert_use(c, from);
    piece p = { .c = c, .from = from, .to = to, .cols = (size_t)from->dim[0] };
    if (use && use->turns && c->g.heads_plain) p.head_size = (size_t)c->table.config.head_size;
    if (use && use->reorder && c->g.heads_plain) p.reorder = use->want;
    if (TG_NATIVE_PARTS && c->importance) p.importance = c->importance[number];
    p.minus_exp = use && (use->want->flags & TG_WANT_LOGS) && c->g.heads_plain;
    if (p.head_size && from->n_dims == 1) p.cols = 1; /* elements of a bias are its rows */
    const uint64_t rows = from->elems / p.cols;
    const size_t unit = p.head_size ? p.head_size : 1;
    size_t most = (size_t)(PIECE_ELEMS / p.cols) / unit * unit;
    if (p.cols == 1 || p.reorder) most = (size_t)rows;
    if (most == 0) most = unit;
    if (most > rows) most = (size_t)rows;
    const size_t row_in = (size_t)(from->bytes / rows), row_out = (size_t)(to->bytes / rows);
    const size_t floats = 2 * c->ctx->threads * p.cols;
    const size_t need = floats * sizeof(float) + most * (row_in + row_out);
    if (need > buffer->bytes) {
        tg_block_free(buffer);
        TG_TRY(tg_block_new(&c->ctx->err, need, buffer));
    }
    p.floats = buffer->data;
    uint8_t *in = (uint8_t *)(p.floats + floats);
    p.in = in;
    p.out = in + most * row_in;
    if (to_file->gguf) TG_TRY(tg_gguf_save_tensor(to_file->gguf, to));
    for (uint64_t first = 0; first < rows; first += most) {
        p.n = rows - first < most ? (size_t)(rows - first) : most;
        p.first = first;
        TG_TRY(tg_gguf_read_rows(&c->g, from, first, p.n * p.cols / (size_t)from->dim[0], in));
        tg_pool_run(c->ctx->pool, convert_worker, &p);
        TG_TRY(to_file->gguf ? tg_save_write(to_file->gguf, p.out, p.n * row_out)
                             : tg_tgpt3_write(to_file->own, p.out, p.n * row_out));
    }
    return TG_OK;
}

static tg_status write_tensors(tg_conversion *c, const sink *to_file) {
    tg_block buffer = { 0 };
    tg_status s = TG_OK;
    for (size_t i = 0; s == TG_OK && i < c->g.n_tensors; i++)
        s = write_tensor(c, to_file, i, &buffer);
    tg_block_free(&buffer);
    return s;
}

/* The head of the file is written, and its tensors are not. */
static tg_status begin_gguf(tg_conversion *c, sink *to_file) {
    TG_TRY(make_values(c, TG_FILE_GGUF));
    TG_TRY(make_tensors(c));
    return tg_gguf_save_begin(&c->ctx->err, c->out, c->values, c->n_values, c->tensors,
                              c->g.n_tensors, &to_file->gguf);
}

tg_status tg_convert_write_gguf(tg_conversion *c) {
    sink to_file = { .own = NULL };
    TG_TRY(begin_gguf(c, &to_file));
    const tg_status s = write_tensors(c, &to_file);
    c->report->out_bytes = tg_save_offset(to_file.gguf);
    if (s == TG_OK) return tg_save_commit(to_file.gguf, c->keep);
    tg_save_abort(to_file.gguf);
    return s;
}

tg_status tg_convert_write_v3(tg_conversion *c) {
    sink to_file = { .gguf = NULL };
    tg_buf values;
    TG_TRY(make_values(c, TG_FILE_V3));
    TG_TRY(make_tensors(c));
    tg_buf_init(&values, &c->ctx->err.mem);
    tg_gguf_put_values(&values, c->values, c->n_values);
    tg_status s = tg_tgpt3_begin_gguf(&c->ctx->err, c->out, c->table.config.family, &values,
                                      c->tensors, c->g.n_tensors, &to_file.own);
    if (s == TG_OK) {
        s = write_tensors(c, &to_file);
        if (s == TG_OK)
            s = tg_tgpt3_commit(to_file.own, c->keep, &c->report->out_bytes);
        else
            tg_tgpt3_abort(to_file.own);
    }
    tg_buf_deinit(&values);
    return s;
}

/* ------------------------------------------------------------------- a trained model, in slices */

static tg_status begin(tg_exporting *e, tg_context *ctx, const char *in, const char *out) {
    tg_conversion *c = &e->conversion;
    tg_ctx *err = &ctx->err;
    sink to_file = { .own = NULL };
    tg_os_seen seen;
    tg_arena_init(&c->arena, &err->mem);
    *c = (tg_conversion) { .ctx = ctx,
                           .in = in,
                           .out = out,
                           .kind = TG_FILE_GGUF,
                           .type = TG_F32,
                           .report = &e->report,
                           .arena = c->arena };
    e->begun = true;
    tg_os_seen_begin(err, &seen);
    tg_status s = tg_own_gguf(err, in, &c->run, &c->g);
    if (s == TG_OK) s = tg_os_want_unseen(err, out);
    tg_os_seen_end(err);
    if (s == TG_OK) s = tg_tensors_read(&c->g, &c->arena, false, &c->table);
    if (s == TG_OK) s = tg_output_want_kind(err, out, TG_OUTPUT_GGUF, &c->keep);
    if (s == TG_OK) s = begin_gguf(c, &to_file);
    e->save = to_file.gguf;
    return s;
}

tg_status tg_exporting_go_on(tg_exporting *e, tg_context *ctx, const char *in, const char *out,
                             double deadline_ms) {
    tg_conversion *c = &e->conversion;
    if (!e->begun) TG_TRY(begin(e, ctx, in, out));
    const sink to_file = { .gguf = e->save };
    while (e->next < c->g.n_tensors) {
        TG_TRY(write_tensor(c, &to_file, e->next++, &e->buffer));
        if (tg_time_over(deadline_ms)) return TG_PENDING;
    }
    e->save = NULL; /* a commit that fails has dropped the file, too */
    return tg_save_commit(to_file.gguf, c->keep);
}

void tg_exporting_deinit(tg_exporting *e) {
    if (!e->begun) return;
    if (e->save) tg_save_abort(e->save);
    tg_conversion *c = &e->conversion;
    tg_block_free(&e->buffer);
    tg_tok_free(c->tok);
    tg_gguf_close(&c->g);
    tg_own_run_close(&c->run);
    tg_arena_deinit(&c->arena);
    *e = (tg_exporting) { .begun = false };
}
