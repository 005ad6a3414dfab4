/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_lm.c - families of model files: logits of tiny random models against transformers
 * (test/golden/lm, made by tools/oracle/lm.py), prompts in pieces, and files that are wrong.
 */
#include "tinygpt.h"

#include "backend/cpu/cpu.h"
#include "base/os/os.h"
#include "io/gguf/gguf_writer.h"
#include "load/packing.h"
#include "load/weights.h"
#include "model/state.h"
#include "ops/kernels.h"
#include "ops/matmul/matmul_operands.h"
#include "simd/cpu.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A session of SHORT positions turns as those models do that tell short texts from long ones. */
enum { V = 48, PROMPTS = 3, SHORT = 16 };

/* A file or folder, and the numbers that it must give. Whole-number weights are multiplied with
 * activations of 8 bits unless a lever says no: transformers has no such rounding. */
static const struct {
    const char *file, *golden, *levers;
} models[] = {
    { "llama.gguf", "llama", NULL },
    { "llama3.gguf", "llama3", NULL },
    { "qwen2.gguf", "qwen2", NULL },
    { "qwen3.gguf", "qwen3", NULL },
    { "gemma3.gguf", "gemma3", NULL },
    { "gpt2.gguf", "gpt2", NULL },
    { "phi3.gguf", "phi3", NULL },
    { "phi3", "phi3", NULL },
    { "lfm2.gguf", "lfm2", NULL },
    { "lfm2", "lfm2", NULL },
    { "granite.gguf", "granite", NULL },
    { "granite", "granite", NULL }, /* names, logs and halves that GGUF has in other forms */
    { "falcon.gguf", "falcon", NULL },
    { "falcon", "falcon", NULL }, /* weights times numbers of config.json */
    { "falcon_norm.gguf", "falcon_norm", NULL },
    { "falcon_norm", "falcon_norm", NULL },
    { "nemotron.gguf", "nemotron", NULL },
    { "nemotron", "nemotron", NULL }, /* layers that are one thing each, norms of groups */
    { "qwen35.gguf", "qwen35", NULL },
    { "qwen35", "qwen35", NULL },      /* heads of values in the other order */
    { "gemma4.gguf", "gemma4", NULL }, /* keys that layers share, and sizes by layer */
    { "gemma4", "gemma4", NULL },
    { "mistral.gguf", "mistral", NULL },
    { "mistral", "mistral", NULL },
    { "biases.gguf", "biases", NULL }, /* a Llama with all that it may have */
    { "biases", "biases", NULL },
    { "smollm3.gguf", "smollm3", NULL },
    { "smollm3", "smollm3", NULL },
    { "yarn.gguf", "yarn", NULL },
    { "yarn", "yarn", NULL },
    { "phi4.gguf", "phi4", NULL }, /* part of a head turns, by the length of texts */
    { "phi4", "phi4", NULL },
    { "gemma2.gguf", "gemma2", NULL }, /* soft caps that bend much */
    { "gemma2", "gemma2", NULL },
    { "olmo2.gguf", "olmo2", NULL }, /* norms of all heads together */
    { "olmo2", "olmo2", NULL },
    { "olmo3.gguf", "olmo3", NULL }, /* YaRN, but not in layers with a window */
    { "olmo3", "olmo3", NULL },
    { "qwen3moe.gguf", "qwen3moe", NULL }, /* routed experts: of GGUF in one tensor, */
    { "qwen3moe", "qwen3moe", NULL },      /* one by one, */
    { "olmoe.gguf", "olmoe", NULL },       /* weighted by their shares of all, */
    { "olmoe", "olmoe", NULL },
    { "granitemoe.gguf", "granitemoe", NULL },
    { "granitemoe", "granitemoe", NULL }, /* and gates beside values */
    { "qwen2-split-00001-of-00004.gguf", "qwen2", NULL },
    { "llama", "llama", NULL },   /* in two parts, with an index */
    { "llama3", "llama3", NULL }, /* frequencies from factors */
    { "qwen2", "qwen2", NULL },
    { "qwen3/model.safetensors", "qwen3", NULL },
    { "gemma3.zip", "gemma3", NULL },
    { "gpt2", "gpt2", NULL },
    { "gpt2_erf", "gpt2_erf", NULL },
    { "mlx4", "mlx4", "-int8_activations" },
    { "mlx8", "mlx8", "-int8_activations" },
};

typedef struct golden {
    int n;
    int32_t ids[32];
    double logits[V];
} golden;

static void read_golden(const char *name, golden out[PROMPTS]) {
    char path[96];
    snprintf(path, sizeof path, "test/golden/lm/%s.txt", name);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    for (int p = 0; p < PROMPTS; p++) {
        assert_int_equal(fscanf(f, "%d", &out[p].n), 1);
        for (int i = 0; i < out[p].n; i++) assert_int_equal(fscanf(f, "%d", &out[p].ids[i]), 1);
        for (int i = 0; i < V; i++) assert_int_equal(fscanf(f, "%lf", &out[p].logits[i]), 1);
    }
    fclose(f);
}

static tg_context *context(const char *isa, const char *levers) {
    tg_context_options o = tg_context_options_default();
    tg_context *ctx;
    o.isa = isa;
    o.levers = levers;
    o.threads = 2;
    assert_int_equal(tg_context_new(&o, &ctx), TG_OK);
    return ctx;
}

static tg_model *open_model(tg_context *ctx, const char *file) {
    char path[96];
    tg_model *m;
    snprintf(path, sizeof path, "test/golden/lm/%s", file);
    if (tg_model_open(ctx, path, &m) != TG_OK) fail_msg("%s", tg_context_error(ctx));
    return m;
}

/* The largest difference, over 1 + the largest logit. */
static double feed(tg_session *s, const golden *g, int piece, float *out) {
    const float *logits = NULL;
    double worst = 0, largest = 0;
    assert_int_equal(tg_session_rewind(s, 0), TG_OK);
    for (int i = 0; i < g->n; i += piece) {
        const int n = g->n - i < piece ? g->n - i : piece;
        assert_int_equal(tg_session_eval(s, g->ids + i, (size_t)n, &logits), TG_OK);
    }
    for (int i = 0; i < V; i++) {
        worst = fmax(worst, fabs((double)logits[i] - g->logits[i]));
        largest = fmax(largest, fabs(g->logits[i]));
    }
    memcpy(out, logits, V * sizeof *out);
    return worst / (1 + largest);
}

/* Whole, token by token, and in pieces that cut windows and tiles. */
static tg_session *session_for(tg_context *ctx, tg_model *m, tg_kv_type kv, const golden *g) {
    tg_session *s;
    assert_int_equal(tg_session_new_kv(ctx, m, g->n <= SHORT ? SHORT : 0, kv, &s), TG_OK);
    return s;
}

static void check_model(const char *file, const char *name, const char *levers, const char *isa) {
    tg_context *ctx = context(isa, levers);
    tg_model *m = open_model(ctx, file);
    golden g[PROMPTS];
    read_golden(name, g);
    for (int p = 0; p < PROMPTS; p++) {
        float whole[V], pieces[V];
        tg_session *s = session_for(ctx, m, TG_KV_F32, &g[p]);
        const double error = feed(s, &g[p], 32, whole);
        if (!(error <= 1e-4)) fail_msg("%s prompt %d: error %g", file, p, error);
        for (int piece = 1; piece <= 7; piece += 2) {
            feed(s, &g[p], piece, pieces);
            for (int i = 0; i < V; i++)
                assert_true(fabs((double)pieces[i] - (double)whole[i]) <=
                            1e-5 * (1 + fabs((double)whole[i])));
        }
        tg_session_free(s);
    }
    tg_model_free(m);
    tg_context_free(ctx);
}

static void transformers_logits(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        check_model(models[i].file, models[i].golden, models[i].levers, NULL);
        check_model(models[i].file, models[i].golden, models[i].levers, "scalar");
    }
}

static void what_it_is(void **state) {
    (void)state;
    tg_context *ctx = context(NULL, NULL);
    tg_model *m = open_model(ctx, "gemma3.gguf");
    tg_model_info info;
    assert_int_equal(tg_model_get_info(m, &info), TG_OK);
    assert_string_equal(info.family, "gemma3");
    assert_string_equal(info.format, "gguf");
    assert_string_equal(info.dtype, "F16");
    assert_int_equal(info.config.vocab, V);
    /* It can be run, and nothing else. */
    float x[4];
    assert_int_equal(tg_model_tensor(m, "token_embd.weight", x, 4), TG_E_UNSUPPORTED);
    assert_int_equal(tg_model_save(m, "build/never.tinygpt", TG_FILE_V3), TG_E_UNSUPPORTED);
    tg_probe *probe;
    assert_int_equal(tg_probe_new(ctx, m, 4, &probe), TG_E_UNSUPPORTED);
    tg_model_free(m);
    tg_context_free(ctx);
}

/* Layers without keys of their own remember nothing, and heads are as wide as their layer has them.
 */
static void shared_keys_are_kept_once(void **state) {
    (void)state;
    tg_context *ctx = context(NULL, NULL);
    tg_model *m = open_model(ctx, "gemma4.gguf");
    const tg_model_config *c = &m->layout.config;
    assert_int_equal(tg_model_states(c), 4);
    for (int i = 0; i < 4; i++) {
        const tg_layer_state s = tg_layer_state_of(c, i, TG_F32, 64, 1);
        assert_int_equal(s.row_elems, i % 2 == 0 ? 8 : 16);
        assert_int_equal(s.window, i % 2 == 0 ? 4 : 0);
    }
    /* Two of eight pairs turn, as fast as if all did; without the factors that the file has, too.
     */
    float freq[8];
    assert_int_equal(tg_config_turned(c, TG_FREQ_ALL), 16);
    tg_config_freq(c, TG_FREQ_ALL, NULL, freq);
    assert_true(freq[0] == 1 && fabsf(freq[1] * powf(500, 0.125F) - 1) < 1e-6F && freq[2] == 0);
    tg_model_free(m);
    tg_context_free(ctx);
}

/* A copy of a model's file with bytes changed; returns what opening says. */
static tg_status open_changed(size_t keep, size_t at, const void *bytes, size_t n, char *message) {
    FILE *f = fopen("test/golden/lm/llama.gguf", "rb");
    assert_non_null(f);
    static char data[1 << 20];
    const size_t size = fread(data, 1, sizeof data, f);
    fclose(f);
    assert_true(size > 1000 && size < sizeof data);
    memcpy(data + at, bytes, n);
    f = fopen("build/changed.gguf", "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, keep ? keep : size, f), keep ? keep : size);
    fclose(f);
    tg_context *ctx = context(NULL, NULL);
    tg_model *m = NULL;
    const tg_status s = tg_model_open(ctx, "build/changed.gguf", &m);
    snprintf(message, 256, "%s", tg_context_error(ctx));
    tg_model_free(m);
    tg_context_free(ctx);
    remove("build/changed.gguf");
    return s;
}

/* A cache of fewer bits: near the numbers of f32, and the same bits however the prompt is cut. */
static void packed_caches(void **state) {
    (void)state;
    static const double most[] = { 0, 2e-3, 5e-2 };
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        tg_context *ctx = context(NULL, models[i].levers);
        tg_model *m = open_model(ctx, models[i].file);
        golden g[PROMPTS];
        read_golden(models[i].golden, g);
        for (int kv = TG_KV_F16; kv <= TG_KV_INT8; kv++) {
            float whole[V], pieces[V];
            for (int p = 0; p < PROMPTS; p++) {
                tg_session *s = session_for(ctx, m, (tg_kv_type)kv, &g[p]);
                const double error = feed(s, &g[p], 32, whole);
                if (!(error > 1e-7 && error <= most[kv]))
                    fail_msg("%s prompt %d kv %d: error %g", models[i].file, p, kv, error);
                feed(s, &g[p], 1, pieces);
                assert_memory_equal(whole, pieces, sizeof whole);
                tg_session_free(s);
            }
        }
        tg_session *s;
        assert_int_equal(tg_session_new_kv(ctx, m, 0, (tg_kv_type)3, &s), TG_E_ARG);
        tg_model_free(m);
        tg_context_free(ctx);
    }
}

/* A weight that is no number: the first token already is refused, with the layer it comes from, and
 * the session is as it was. */
static void check_bad_number(const char *tensor, const char *want) {
    tg_ctx quiet;
    tg_gguf g;
    static const uint8_t nan_bytes[4] = { 0, 0, 0xc0, 0x7f };
    static char data[1 << 20];
    tg_ctx_init(&quiet, NULL, NULL, NULL);
    assert_int_equal(tg_gguf_open(&quiet, "test/golden/lm/llama.gguf", &g), TG_OK);
    const tg_gguf_tensor *t = tg_gguf_tensor_find(&g, tensor);
    assert_non_null(t);
    assert_int_equal(t->type, TG_F32);
    const uint64_t at = t->offset;
    tg_gguf_close(&g);
    FILE *f = fopen("test/golden/lm/llama.gguf", "rb");
    const size_t size = fread(data, 1, sizeof data, f);
    fclose(f);
    memcpy(data + at, nan_bytes, sizeof nan_bytes);
    f = fopen("build/nan.gguf", "wb");
    assert_int_equal(fwrite(data, 1, size, f), size);
    fclose(f);

    tg_context *ctx = context(NULL, NULL);
    tg_model *m;
    tg_session *s;
    const int32_t tokens[3] = { 1, 2, 3 };
    assert_int_equal(tg_model_open(ctx, "build/nan.gguf", &m), TG_OK);
    assert_int_equal(tg_session_new(ctx, m, 0, &s), TG_OK);
    assert_int_equal(tg_session_eval(s, tokens, 3, NULL), TG_E_NUMBER);
    if (!strstr(tg_context_error(ctx), want)) fail_msg("%s", tg_context_error(ctx));
    assert_int_equal(tg_session_tokens(s), 0);
    tg_session_free(s);
    tg_model_free(m);
    tg_context_free(ctx);
    remove("build/nan.gguf");
}

static void bad_numbers(void **state) {
    (void)state;
    check_bad_number("blk.0.attn_norm.weight", "from the embedding or layer 0");
    check_bad_number("blk.0.ffn_norm.weight", "from layer 0");
    check_bad_number("output_norm.weight", "behind the last layer");
}

static void wrong_files(void **state) {
    (void)state;
    char why[256];
    assert_int_equal(open_changed(0, 4, "\x09", 1, why), TG_E_UNSUPPORTED);
    assert_non_null(strstr(why, "version"));
    /* counts of 2^63 */
    assert_int_equal(open_changed(0, 8, "\0\0\0\0\0\0\0\x80", 8, why), TG_E_FORMAT);
    assert_non_null(strstr(why, "number of tensors"));
    assert_int_equal(open_changed(0, 16, "\0\0\0\0\0\0\0\x80", 8, why), TG_E_FORMAT);
    /* the first key: longer than the file */
    assert_int_equal(open_changed(0, 24, "\xff\xff\xff\xff\xff\xff\xff\xff", 8, why), TG_E_FORMAT);
    /* cut anywhere in the head, and in the data */
    for (size_t keep = 1; keep < 3000; keep += 97)
        assert_true(open_changed(keep, 0, "GGUF", keep < 4 ? keep : 4, why) < 0);
    assert_int_equal(open_changed(20000, 0, "GGUF", 4, why), TG_E_FORMAT);
    assert_non_null(strstr(why, "tensor"));
}

/* A list of key heads that is none, or that is another model's. */
static void wrong_kinds(void **state) {
    (void)state;
    static const struct {
        uint8_t heads[3];
        const char *says;
    } rows[] = {
        { { 0, 0, 0 }, "the same wherever it is not 0, have others" },
        { { 2, 1, 0 }, "the same wherever it is not 0, have others" },
        { { 0, 5, 0 }, "want a whole number in 1..4, or for each of 3 layers one" },
        { { 0, 3, 0 }, "want key heads that divide query heads" },
        { { 0, 2, 2 }, "blk.2.attn_q.weight: missing" },
        { { 2, 2, 0 }, "blk.0.attn_q.weight: missing" },
    };
    static const char key[] = "lfm2.attention.head_count_kv";
    static char data[1 << 17];
    FILE *f = fopen("test/golden/lm/lfm2.gguf", "rb");
    const size_t size = fread(data, 1, sizeof data, f);
    fclose(f);
    size_t at = 0;
    while (memcmp(data + at, key, sizeof key - 1) != 0) at++;
    at += sizeof key - 1 + 4 + 4 + 8; /* behind the types of list and elements, and their number */
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (size_t k = 0; k < 3; k++) data[at + 4 * k] = (char)rows[i].heads[k];
        f = fopen("build/kinds.gguf", "wb");
        assert_int_equal(fwrite(data, 1, size, f), size);
        fclose(f);
        tg_context *ctx = context(NULL, NULL);
        tg_model *m;
        assert_int_not_equal(tg_model_open(ctx, "build/kinds.gguf", &m), TG_OK);
        if (!strstr(tg_context_error(ctx), rows[i].says))
            fail_msg("row %zu: %s", i, tg_context_error(ctx));
        tg_context_free(ctx);
    }
    remove("build/kinds.gguf");
}

/* ----------------------------------------------------------------------------------- packing */

#define LARGE "build/large.gguf"

static bool is_matrix(const tg_gguf_tensor *t) { return t->n_dims == 2; }

/* A model with so many tokens that its tables are packed in several runs, by whoever comes; all of
 * it in whole numbers, so that nothing stays in the file. */
static void write_large(void) {
    enum { TOKENS = 150001 };
    tg_mem mem = tg_mem_default();
    tg_ctx ctx;
    tg_gguf from;
    tg_gguf_tensor tensors[32];
    tg_save *save;
    tg_ctx_init(&ctx, &mem, NULL, NULL);
    assert_int_equal(tg_gguf_open(&ctx, "test/golden/lm/llama.gguf", &from), TG_OK);
    for (size_t i = 0; i < from.n_tensors; i++) {
        tg_gguf_tensor *t = &tensors[i];
        *t = from.tensors[i];
        if (!is_matrix(t)) continue;
        t->type = t->name[0] == 'o' ? TG_Q8_0 : TG_Q4_1;
        if (t->dim[1] == V) t->dim[1] = TOKENS;
        t->elems = t->dim[0] * t->dim[1];
        t->bytes = t->elems / 32 * tg_dtype_table[t->type].bytes;
    }
    assert_int_equal(
        tg_gguf_save_begin(&ctx, LARGE, from.values, from.n_values, tensors, from.n_tensors, &save),
        TG_OK);
    uint32_t x = 1;
    for (size_t i = 0; i < from.n_tensors; i++) {
        uint8_t *bytes = malloc(tensors[i].bytes);
        if (is_matrix(&tensors[i]))
            for (size_t k = 0; k < tensors[i].bytes; k++)
                bytes[k] = (uint8_t)((x = x * 1664525 + 1013904223) >> 24);
        else
            assert_int_equal(tg_gguf_read_rows(&from, &from.tensors[i], 0,
                                               from.tensors[i].elems / from.tensors[i].dim[0],
                                               bytes),
                             TG_OK);
        tg_gguf_save_tensor(save, &tensors[i]);
        assert_int_equal(tg_save_write(save, bytes, tensors[i].bytes), TG_OK);
        free(bytes);
    }
    assert_int_equal(tg_save_commit(save, false), TG_OK);
    tg_gguf_close(&from);
}

/* Every group of a matrix has the bytes that tg_pack_group makes of the file's rows; those of rows
 * in another order have logits to answer for them. */
static void check_packed(const tg_model *m) {
    for (size_t i = 0; i < m->table.n_tensors; i++) {
        const tg_tensor *t = &m->table.tensors[i];
        if (!t->type.layout || t->pairs) continue;
        const size_t n_rows = t->type.dim[0], cols = t->type.dim[1];
        const size_t row_bytes = (size_t)t->source->bytes / n_rows;
        const size_t group_bytes = tg_pack_group_bytes(t->type.layout, cols);
        uint8_t *rows = malloc(t->source->bytes), *want = malloc(group_bytes);
        assert_int_equal(tg_gguf_read_rows(&m->file, t->source, 0, n_rows, rows), TG_OK);
        for (size_t g = 0; g < tg_pack_groups(n_rows); g++) {
            const uint8_t *row[TG_PACK_ROWS] = { NULL };
            for (size_t r = 0; r < TG_PACK_ROWS && g * TG_PACK_ROWS + r < n_rows; r++)
                row[r] = rows + (g * TG_PACK_ROWS + r) * row_bytes;
            tg_pack_group(t->source->type, cols, row, want);
            assert_memory_equal(m->packed + t->offset_bytes + g * group_bytes, want, group_bytes);
        }
        free(rows);
        free(want);
    }
}

static int no_maps(const char *operation, const char *path) {
    (void)path;
    return strcmp(operation, "mmap") == 0 ? ENOMEM : 0;
}

/* Mapped or read, by one worker or several, at once or in slices: the same bytes. */
static void packed_bytes(void **state) {
    (void)state;
    write_large();
    for (int turn = 0; turn < 8; turn++) {
        tg_context_options o = tg_context_options_default();
        tg_context *ctx;
        tg_model *m = NULL;
        tg_job *job;
        int slices = 1;
        o.threads = turn & 1 ? 1 : 3;
        tg_os_fault = turn & 2 ? no_maps : NULL;
        assert_int_equal(tg_context_new(&o, &ctx), TG_OK);
        assert_int_equal(tg_model_open_job(ctx, LARGE, &m, &job), TG_OK);
        while (tg_job_poll(job, turn & 4 ? 1e-6 : 0) == TG_PENDING) slices++;
        if (!m) fail_msg("%s", tg_context_error(ctx));
        assert_true(turn & 4 ? slices > 1 : slices == 1);
        check_packed(m);
        tg_job_free(job);
        tg_model_free(m);
        tg_context_free(ctx);
        tg_os_fault = NULL;
    }
    remove(LARGE);
}

/* ------------------------------------------------------------------------------ rows as they lie
 */

enum { N = 37, K = 53, M = 14 };

static void run_product(size_t isa, tg_type type, const void *w, size_t m, const float *x,
                        float *y) {
    static float local[(K + 11) * 16 + 16 * M * K];
    tg_args a = { .in = { x, w }, .out = { y }, .attr.i = { 2 }, .workers = 1 };
    a.in_type[MATMUL_A] = tg_type_2d(TG_F32, m, K);
    a.in_type[MATMUL_B] = type;
    a.out_type[0] = tg_type_2d(TG_F32, m, N);
    a.local = local;
    const tg_variant *v = tg_kernels_choose(isa, TG_OP_matmul, UINT32_MAX, &a);
    assert_non_null(v);
    tg_cpu_run_step_alone(v, &a, 0);
}

/* A matrix that is not packed gives the bits of one that is, for few rows of x and for many. */
static void rows_bits(void **state) {
    (void)state;
    static const tg_dtype types[] = { TG_F16, TG_BF16 };
    static uint8_t rows[N * K * 2], packed[(N + 15) / 16 * 16 * K * 2];
    static float x[M * K], in_rows[M * N], in_groups[M * N];
    uint32_t seed = 1;
    size_t n_isas;
    const tg_isa_desc *isas = tg_isa_list(&n_isas);
    for (size_t i = 0; i < M * K; i++)
        x[i] = (float)(int32_t)(seed = seed * 1664525 + 1013904223) * 0x1p-31F;
    for (int t = 0; t < 2; t++) {
        const size_t each = tg_dtype_table[types[t]].bytes;
        for (size_t i = 0; i < N * K * each; i++) { /* of like size, so that each rounding counts */
            rows[i] = (uint8_t)((seed = seed * 1664525 + 1013904223) >> 24);
            if (i % each == each - 1) rows[i] = (uint8_t)((rows[i] & 0x80) | 0x3d);
        }
        for (size_t g = 0; g < (N + 15) / 16; g++) {
            const uint8_t *row[16] = { NULL };
            for (size_t r = 0; r < 16 && 16 * g + r < N; r++)
                row[r] = rows + (16 * g + r) * K * each;
            tg_pack_group(types[t], K, row, packed + g * 16 * K * each);
        }
        for (size_t i = 0; i < n_isas; i++) {
            if (!tg_isa_usable(&isas[i])) continue;
            for (size_t m = 1; m <= M; m++) {
                run_product(isas[i].id, tg_type_2d(types[t], N, K), rows, m, x, in_rows);
                run_product(isas[i].id, tg_type_packed(types[t], N, K), packed, m, x, in_groups);
                assert_memory_equal(in_rows, in_groups, m * N * sizeof *in_rows);
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transformers_logits),
        cmocka_unit_test(what_it_is),
        cmocka_unit_test(packed_caches),
        cmocka_unit_test(bad_numbers),
        cmocka_unit_test(wrong_files),
        cmocka_unit_test(packed_bytes),
        cmocka_unit_test(wrong_kinds),
        cmocka_unit_test(rows_bits),
        cmocka_unit_test(shared_keys_are_kept_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
