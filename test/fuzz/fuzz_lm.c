/*
 * fuzz_lm.c - libFuzzer entry for the readers of other people's model files: GGUF, folders of
 * safetensors in a zip file, tokenizer.json.
 *
 *     make fuzz, or see fuzz_tgpt.c for the command line; seeds are the files of test/golden
 *
 * Each input is tried as a GGUF file, as a zip file, and as tokenizer.json. Since a mutated zip
 * file seldom gets past its directory, an input is also cut where two bytes are 0xff into
 * config.json, model.safetensors and tokenizer.json, which a zip file is put together from here.
 */
#include "fuzz.h"

#include "io/hf.h"
#include "tok/tok.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* All rows of all tensors, which must be as many bytes as the table says. */
static void read_tensors(const tg_gguf *g) {
    for (size_t i = 0; i < g->n_tensors; i++) {
        const tg_gguf_tensor *t = &g->tensors[i];
        PROMISE(tg_gguf_tensor_find(g, t->name) == t);
        PROMISE(t->elems > 0 && t->elems % t->dim[0] == 0);
        if (t->bytes > (1u << 20)) continue;
        uint8_t *rows = malloc((size_t)t->bytes);
        (void)tg_gguf_read_rows(g, t, 0, t->elems / t->dim[0], rows);
        free(rows);
    }
}

static void try_tokenizer(tg_ctx *ctx, const char *text, size_t n) {
    tg_tok *tok;
    if (tg_tok_new_json(ctx, "fuzz", text, n, &tok) != TG_OK) return;
    tg_ids ids;
    tg_ids_init(&ids, &ctx->mem);
    if (tg_tok_encode(ctx, tok, text, n < 2000 ? n : 2000, TG_TOK_ENDS, &ids) == TG_OK)
        for (size_t i = 0; i < ids.n; i++) {
            size_t n_bytes;
            PROMISE(tg_tok_bytes(tok, ids.id[i], &n_bytes));
        }
    tg_ids_deinit(&ids);
    tg_tok_free(tok);
}

static void use(tg_ctx *ctx, tg_status status, tg_gguf *g) {
    PROMISE(status == TG_OK || (ctx->code == status && ctx->message[0]));
    if (status != TG_OK) return;
    read_tensors(g);
    if (g->tokenizer_json) try_tokenizer(ctx, g->tokenizer_json, g->tokenizer_bytes);
    tg_gguf_close(g);
}

/* A zip file whose members are stored. */
typedef struct zip {
    uint8_t bytes[1 << 18], directory[512];
    size_t n, n_directory, members;
} zip;

static void add_member(zip *z, const char *name, const uint8_t *data, size_t n) {
    const size_t n_name = strlen(name), at = z->n;
    uint8_t *m = z->bytes + z->n, *d = z->directory + z->n_directory;
    memset(m, 0, 30);
    memcpy(m, "PK\3\4", 4);
    tg_put_u16(m + 26, (uint16_t)n_name);
    memcpy(m + 30, name, n_name);
    memcpy(m + 30 + n_name, data, n);
    z->n += 30 + n_name + n;
    memset(d, 0, 46);
    memcpy(d, "PK\1\2", 4);
    tg_put_u32(d + 20, (uint32_t)n);
    tg_put_u32(d + 24, (uint32_t)n);
    tg_put_u16(d + 28, (uint16_t)n_name);
    tg_put_u32(d + 42, (uint32_t)at);
    memcpy(d + 46, name, n_name);
    z->n_directory += 46 + n_name;
    z->members++;
}

static void end_zip(zip *z) {
    uint8_t *e = z->bytes + z->n + z->n_directory;
    memcpy(z->bytes + z->n, z->directory, z->n_directory);
    memset(e, 0, 22);
    memcpy(e, "PK\5\6", 4);
    tg_put_u16(e + 10, (uint16_t)z->members);
    tg_put_u32(e + 12, (uint32_t)z->n_directory);
    tg_put_u32(e + 16, (uint32_t)z->n);
    z->n += z->n_directory + 22;
}

static size_t find_mark(const uint8_t *data, size_t from, size_t n) {
    for (size_t i = from; i + 1 < n; i++)
        if (data[i] == 0xff && data[i + 1] == 0xff) return i;
    return n;
}

static void try_members(tg_ctx *ctx, const uint8_t *data, size_t n) {
    static zip z;
    z.n = z.n_directory = z.members = 0;
    const size_t a = find_mark(data, 0, n), b = a < n ? find_mark(data, a + 2, n) : n;
    if (n > 1 << 17 || a == n) return;
    add_member(&z, "config.json", data, a);
    add_member(&z, "model.safetensors", data + a + 2, b - a - 2);
    if (b < n) add_member(&z, "tokenizer.json", data + b + 2, n - b - 2);
    end_zip(&z);
    tg_gguf g;
    use(ctx, tg_hf_open_memory(ctx, "fuzz", z.bytes, z.n, &g), &g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    meter m = { 0, 0 };
    const tg_mem mem = { metered, &m };
    tg_ctx ctx;
    tg_gguf g;
    tg_ctx_init(&ctx, &mem, NULL, NULL);
    use(&ctx, tg_gguf_open_memory(&ctx, "fuzz", data, n, &g), &g);
    tg_ctx_clear(&ctx);
    use(&ctx, tg_hf_open_memory(&ctx, "fuzz", data, n, &g), &g);
    tg_ctx_clear(&ctx);
    try_members(&ctx, data, n);
    try_tokenizer(&ctx, (const char *)data, n);
    PROMISE(m.live_bytes == 0);
    PROMISE(m.peak_bytes <= 1100 * n + ((size_t)64 << 20)); /* deflate can give 1032 bytes of one */
    return 0;
}
