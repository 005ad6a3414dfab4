/*
 * fuzz_tgpt.c - libFuzzer entry for everything that reads model files, .tinygpt and .safetensors.
 *
 *     clang-19 -std=c11 -g -O1 -DTG_DEBUG -fsanitize=fuzzer,address,undefined -Iinclude -Isrc
 *         test/fuzz/fuzz_tgpt.c $(find src/base src/dtype src/io -name '*.c') -o fuzz_tgpt
 *     mkdir -p corpus && TG_FUZZ_SEEDS=corpus ./fuzz_tgpt -max_len=16384 corpus
 *
 * TG_FUZZ_SEEDS names a folder that gets a smallest file of each kind before the run begins.
 *
 * Each input is used as it is, and again with what would keep the fuzzer out of everything behind
 * it made right: the checksums of a v3 file, the length of a .safetensors header. A crash, a leak,
 * an undefined operation or a broken promise of file.h (checked below) is a finding.
 */
#include "fuzz.h"

#include "../unit/io_util.h"
#include "io/safetensors.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void read_everything(tg_ctx *ctx, tg_file *f) {
    float piece[257]; /* odd, so that pieces begin anywhere within a block */
    tg_meta meta;
    (void)tg_meta_read(f, &meta);
    PROMISE(f->n_tensors == f->manifest.n * (f->has_moments ? 3 : 1));
    PROMISE(f->step >= 0 && f->manifest.elems > 0);
    for (size_t i = 0; i < f->n_tensors; i++) {
        const tg_file_tensor *t = &f->tensor[i];
        PROMISE(tg_file_find(f, t->name) == t);
        PROMISE(t->offset <= f->total_bytes && t->bytes <= f->total_bytes - t->offset);
        for (uint64_t first = 0; first < t->elems; first += 257) {
            const size_t n = t->elems - first < 257 ? (size_t)(t->elems - first) : 257;
            if (tg_file_read_f32(f, t, piece, first, n) != TG_OK) {
                break;
            }
        }
        PROMISE(tg_file_read_f32(f, t, piece, t->elems, 1) == TG_E_ARG || ctx->code != TG_OK);
    }
    tg_ctx_clear(ctx);
    (void)tg_file_check_all(f);
}

static void try_bytes(const uint8_t *data, size_t n) {
    meter m = { 0, 0 };
    const tg_mem mem = { metered, &m };
    tg_ctx ctx;
    tg_file *f;
    tg_ctx_init(&ctx, &mem, NULL, NULL);
    const tg_status status = tg_file_open_memory(&ctx, "fuzz", data, n, &f);
    PROMISE((status == TG_OK) == (f != NULL));
    PROMISE(status == TG_OK || (ctx.code == status && ctx.message[0] != 0));
    if (f) {
        read_everything(&ctx, f);
        tg_file_close(f);
    }
    PROMISE(m.live_bytes == 0);
    PROMISE(m.peak_bytes <= 2 * n + ((size_t)64 << 20));
}

/* A v3 file with all element types; its numbers are zeros. */
static tg_status save_mixed(tg_ctx *ctx, const char *path, const tg_gpt_config *config) {
    static const char json[] = "{\"family\":\"tinygpt\",\"step\":0,\"config\":{\"layers\":1,"
                               "\"dModel\":1,\"ctx\":1,\"heads\":1}}";
    static const tg_file_dtype types[] = { TG_FILE_INT4, TG_FILE_F16, TG_FILE_BF16, TG_FILE_F32 };
    static const uint8_t zeros[1024];
    tg_arena arena;
    tg_manifest m;
    tg_tgpt3_writer *w;
    tg_arena_init(&arena, &ctx->mem);
    PROMISE(tg_manifest_new(ctx, &arena, config, &m) == TG_OK);
    PROMISE(tg_tgpt3_begin(ctx, path, json, sizeof json - 1, &w) == TG_OK);
    for (size_t i = 0; i < m.n; i++) {
        tg_tgpt3_declare(w, m.entry[i].name, types[i % 4], (uint32_t)m.entry[i].n_dims,
                         m.entry[i].dim);
    }
    for (size_t i = 0; i < m.n; i++) {
        tg_tgpt3_write(w, zeros, (size_t)tg_file_dtype_bytes(types[i % 4], m.entry[i].elems));
    }
    tg_arena_deinit(&arena);
    return tg_tgpt3_commit(w, false);
}

/* Every f32 of the seed is 0, and its own JSON is in its metadata. */
static tg_status read_zeros(void *user, size_t tensor, tg_part part, uint64_t first, size_t n,
                            float *out) {
    (void)user, (void)tensor, (void)part, (void)first;
    memset(out, 0, n * sizeof *out);
    return TG_OK;
}

static tg_status save_safetensors(tg_ctx *ctx, const char *path, const tg_gpt_config *config) {
    static const char json[] = "{\"family\":\"tinygpt\",\"step\":0,\"config\":{\"layers\":1,"
                               "\"dModel\":1,\"ctx\":1,\"heads\":1}}";
    const tg_weights weights = { .read = read_zeros };
    return tg_safetensors_save(ctx, path, config, json, sizeof json - 1, &weights, false);
}

/* The header of a .safetensors file ends with its last brace: makes its length say so. */
static void safetensors_repair(uint8_t *data, size_t n) {
    if (n <= 8 || data[8] != '{') {
        return;
    }
    size_t end = n;
    while (end > 8 && data[end - 1] != '}') {
        end--;
    }
    tg_put_u64(data, end - 8);
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc;
    (void)argv;
    static const tg_file_kind kinds[] = { TG_FILE_V1_F32, TG_FILE_V2_F32, TG_FILE_V2_F16,
                                          TG_FILE_V2_INT4 };
    const char *folder = getenv("TG_FUZZ_SEEDS");
    const tg_gpt_config config = config_of(1, 1, 1, 1);
    const tg_weights weights = { .read = model_read, .has_moments = true };
    const tg_meta meta = model_meta();
    char path[512];
    tg_ctx ctx;
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    for (int i = 0; folder && i < 8; i++) {
        snprintf(path, sizeof path, "%s/seed%d.tinygpt", folder, i);
        PROMISE((i < 4   ? tg_tgpt2_save(&ctx, path, kinds[i], &config, 7, &meta, &weights, false)
                 : i < 6 ? model_save_v3(&ctx, path, &config, i == 5, false)
                 : i < 7 ? save_mixed(&ctx, path, &config)
                         : save_safetensors(&ctx, path, &config)) == TG_OK);
    }
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    try_bytes(data, n);
    uint8_t *copy = malloc(n ? n : 1); /* exactly as long, so that a step too far is seen */
    if (!copy) {
        abort();
    }
    memcpy(copy, data, n);
    v3_repair(copy, n);
    safetensors_repair(copy, n);
    if (memcmp(copy, data, n) != 0) {
        try_bytes(copy, n);
    }
    free(copy);
    return 0;
}
