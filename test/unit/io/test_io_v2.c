/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_io_v2.c - .tinygpt v1 and v2 against fixtures that another program wrote.
 *
 * tools/oracle/fixtures.py writes files from the description of the format alone, with the numbers
 * that a reader must get out of them. TG_FIXTURES names a folder that holds them already; without
 * it they are written to a temporary one (needs python3, and the repository as working folder).
 */
#include "io_util.h"

#include "dtype/dtype.h"
#include "fail_alloc.h"
#include "io/run/quant.h"

#include <setjmp.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[64] = "/tmp/tgv2-XXXXXX"; /* ours, removed at the end */
static char fixtures[256];

static const char *path_in(const char *dir, const char *name, const char *suffix) {
    static char path[4][512];
    static unsigned next;
    char *out = path[next++ % 4];
    assert_in_range(snprintf(out, sizeof path[0], "%s/%s%s", dir, name, suffix), 1,
                    sizeof path[0] - 1);
    return out;
}

/* A line of index.txt. */
typedef struct fixture {
    char name[64], dtype[8], rewrite[8];
    unsigned version, moments, history;
    long long step;
    size_t elems;
} fixture;

static fixture list[64];
static size_t n_fixtures;

static int setup(void **state) {
    (void)state;
    char command[512];
    const char *given = getenv("TG_FIXTURES");
    assert_non_null(mkdtemp(folder));
    snprintf(fixtures, sizeof fixtures, "%s", given ? given : folder);
    if (!given) {
        snprintf(command, sizeof command, "python3 tools/oracle/fixtures.py %s", folder);
        assert_int_equal(system(command), 0);
    }
    FILE *index = fopen(path_in(fixtures, "index", ".txt"), "r");
    assert_non_null(index);
    for (fixture *f = list;
         fscanf(index, "%63s %u %7s %u %lld %zu %u %7s", f->name, &f->version, f->dtype,
                &f->moments, &f->step, &f->elems, &f->history, f->rewrite) == 8;
         f++) {
        n_fixtures++;
    }
    fclose(index);
    assert_true(n_fixtures >= 10);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

/* All elements of one part of a file, in file order. */
static float *read_part(tg_file *f, size_t part) {
    float *all = malloc(f->manifest.elems * sizeof *all);
    assert_non_null(all);
    for (size_t i = 0; i < f->manifest.n; i++) {
        const tg_file_tensor *t = &f->tensor[part * f->manifest.n + i];
        assert_int_equal(
            tg_file_read_f32(f, t, all + f->manifest.entry[i].first_elem, 0, (size_t)t->elems),
            TG_OK);
    }
    return all;
}

static void check_part(tg_file *f, const char *name, size_t part) {
    static const char *const suffixes[] = { ".w.f32", ".m.f32", ".v.f32" };
    file_bytes want = bytes_read(path_in(fixtures, name, suffixes[part]));
    float *have = read_part(f, part);
    assert_int_equal(want.n, f->manifest.elems * sizeof *have);
    assert_memory_equal(have, want.data, want.n);
    free(have);
    bytes_free(&want);
}

static tg_file_kind kind_of(const fixture *x) {
    return strcmp(x->dtype, "fp16") == 0   ? TG_FILE_V2_F16
           : strcmp(x->dtype, "int4") == 0 ? TG_FILE_V2_INT4
           : x->version == 1               ? TG_FILE_V1_F32
                                           : TG_FILE_V2_F32;
}

static void reads_what_others_wrote(void **state) {
    (void)state;
    for (size_t i = 0; i < n_fixtures; i++) {
        const fixture *x = &list[i];
        static const char *const dtypes[] = { "fp32", "fp16", "int4" };
        static const tg_file_dtype types[] = { TG_FILE_F32, TG_FILE_F16, TG_FILE_INT4 };
        tg_ctx ctx;
        tg_file *f;
        tg_meta meta;
        tg_ctx_init(&ctx, NULL, NULL, NULL);
        if (tg_file_open(&ctx, path_in(fixtures, x->name, ".tinygpt"), &f) != TG_OK) {
            fail_msg("%s: %s", x->name, ctx.message);
        }
        assert_int_equal(f->version, x->version);
        assert_string_equal(f->format, x->version == 1 ? "tinygpt v1" : "tinygpt v2");
        assert_int_equal(f->step, x->step);
        assert_int_equal(f->manifest.elems, x->elems);
        assert_int_equal(f->has_moments, x->moments);
        assert_false(f->checksummed);
        for (size_t d = 0; d < 3; d++) {
            assert_true((strcmp(x->dtype, dtypes[d]) == 0) == (f->dtype == types[d]));
        }
        assert_int_equal(f->config.layers, 2);
        assert_int_equal(f->config.width, 24);
        assert_int_equal(f->config.heads, 3);
        assert_int_equal(f->config.ctx, 16);
        for (size_t part = 0; part < (x->moments ? 3 : 1); part++) {
            check_part(f, x->name, part);
        }
        assert_int_equal(tg_meta_read(f, &meta), TG_OK);
        assert_int_equal(meta.n_history, x->history);
        if (x->history) {
            assert_int_equal(meta.history[0].step, 1);
            assert_true(meta.history[0].loss == 5.5 && tg_isnan(meta.history[0].val_loss));
            assert_true(meta.history[2].loss == 2.5 && meta.history[2].val_loss == 2.625);
        }
        tg_file_close(f);
    }
}

/* The web page's header is the richest one: what a run needs is found in it. */
static void finds_the_options_of_a_browser_run(void **state) {
    (void)state;
    tg_ctx ctx;
    tg_file *f;
    tg_meta meta;
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    assert_int_equal(tg_file_open(&ctx, path_in(fixtures, "v2_fp32_browser", ".tinygpt"), &f), 0);
    assert_int_equal(tg_meta_read(f, &meta), TG_OK);
    assert_int_equal(meta.train.batch, 16);
    assert_int_equal(meta.train.steps, 1500);
    assert_int_equal(meta.train.eval_every, 50);
    assert_int_equal(meta.train.seed, 42);
    assert_true(meta.train.lr == 0.0003 && meta.train.clip == 1);
    assert_int_equal(meta.final.step, 100);
    assert_true(meta.final.loss == 2.5 && meta.best_val_loss == 2.625);
    assert_int_equal(meta.best_step, 100);
    tg_file_close(f);
}

/* Any piece of a tensor is the same as that piece of the whole. */
static void reads_pieces(void **state) {
    (void)state;
    static const char *const names[] = { "v2_fp32", "v2_fp16_align1", "v2_int4_odd" };
    for (size_t i = 0; i < 3; i++) {
        tg_ctx ctx;
        tg_file *f;
        tg_ctx_init(&ctx, NULL, NULL, NULL);
        assert_int_equal(tg_file_open(&ctx, path_in(fixtures, names[i], ".tinygpt"), &f), TG_OK);
        float *all = read_part(f, 0), piece[200];
        const tg_file_tensor *t = tg_file_find(f, "blocks.1.mlp.fc_in.weight");
        assert_non_null(t);
        assert_true(t->dim[0] == 24 && t->dim[1] == 96);
        const float *whole = all + f->manifest.entry[t - f->tensor].first_elem;
        uint64_t first = 0;
        for (size_t n = 0; n < 200; n++, first = (first * 31 + 7) % (t->elems - 200)) {
            assert_int_equal(tg_file_read_f32(f, t, piece, first, n), TG_OK);
            assert_memory_equal(piece, whole + first, n * sizeof *piece);
        }
        assert_int_equal(tg_file_read_f32(f, t, piece, t->elems - 1, 1), TG_OK);
        assert_int_equal(tg_file_read_f32(f, t, piece, t->elems - 1, 2), TG_E_ARG);
        assert_int_equal(tg_file_read_f32(f, t, piece, UINT64_MAX, 2), TG_E_ARG);
        assert_non_null(strstr(ctx.message, "blocks.1.mlp.fc_in.weight"));
        assert_null(tg_file_find(f, "blocks.2.ln1.weight"));
        assert_null(tg_file_find(f, ""));
        free(all);
        tg_file_close(f);
    }
}

/* Offset of the body: behind the step. */
static size_t body_at(file_bytes b) { return 16 + tg_get_u32(b.data + 8); }

static void writes_what_others_wrote(void **state) {
    (void)state;
    for (size_t i = 0; i < n_fixtures; i++) {
        const fixture *x = &list[i];
        tg_ctx ctx;
        const char *in = path_in(fixtures, x->name, ".tinygpt");
        const char *out = path_in(folder, "rewritten", ".tinygpt");
        tg_ctx_init(&ctx, NULL, NULL, NULL);
        if (tg_io_convert(&ctx, in, out, kind_of(x)) != TG_OK) {
            fail_msg("%s: %s", x->name, ctx.message);
        }
        file_bytes a = bytes_read(in), b = bytes_read(out);
        if (strcmp(x->rewrite, "file") == 0) {
            assert_int_equal(a.n, b.n);
            assert_memory_equal(a.data, b.data, a.n);
        } else if (strcmp(x->rewrite, "body") == 0) {
            const size_t at = body_at(a) - 4, bt = body_at(b) - 4; /* with the step */
            assert_int_equal(a.n - at, b.n - bt);
            assert_memory_equal(a.data + at, b.data + bt, a.n - at);
        }
        /* What we wrote ourselves comes back whole, whoever wrote it first. */
        assert_int_equal(tg_io_convert(&ctx, out, path_in(folder, "again", ".tinygpt"), kind_of(x)),
                         TG_OK);
        file_bytes c = bytes_read(path_in(folder, "again", ".tinygpt"));
        if (strcmp(x->rewrite, "-") != 0) {
            assert_int_equal(b.n, c.n);
            assert_memory_equal(b.data, c.data, b.n);
        }
        bytes_free(&a);
        bytes_free(&b);
        bytes_free(&c);
    }
}

/* Through v3 and back nothing that both layouts hold is lost. */
static void survives_v3(void **state) {
    (void)state;
    for (size_t i = 0; i < n_fixtures; i++) {
        const fixture *x = &list[i];
        tg_ctx ctx;
        bool equal;
        const char *in = path_in(fixtures, x->name, ".tinygpt");
        const char *v3 = path_in(folder, "v3", ".tinygpt");
        const char *out = path_in(folder, "back", ".tinygpt");
        tg_ctx_init(&ctx, NULL, NULL, NULL);
        tg_buf text;
        tg_buf_init(&text, &ctx.mem);
        assert_int_equal(tg_io_convert(&ctx, in, v3, TG_FILE_V3), TG_OK);
        assert_int_equal(check_file(&ctx, v3), TG_OK);
        assert_int_equal(tg_io_compare(&ctx, in, v3, &equal, keep_text, &text), TG_OK);
        if (!equal) {
            fail_msg("%s: %s", x->name, tg_buf_text(&text));
        }
        assert_int_equal(strncmp(tg_buf_text(&text), "equal: ", 7), 0);
        assert_int_equal(tg_io_convert(&ctx, v3, out, kind_of(x)), TG_OK);
        file_bytes a = bytes_read(in), b = bytes_read(out);
        if (strcmp(x->rewrite, "-") != 0) {
            const size_t at = body_at(a) - 4, bt = body_at(b) - 4;
            assert_int_equal(a.n - at, b.n - bt);
            assert_memory_equal(a.data + at, b.data + bt, a.n - at);
        }
        tg_buf_deinit(&text);
        bytes_free(&a);
        bytes_free(&b);
    }
}

/* f32 to f16 rounds to nearest even; the fixture's f16 file was made by Python from the same f32.
 */
static void narrows_as_python_does(void **state) {
    (void)state;
    static const struct {
        const char *to;
        tg_file_kind kind;
    } cases[] = { { "v2_fp16", TG_FILE_V2_F16 }, { "v2_int4", TG_FILE_V2_INT4 } };
    for (size_t i = 0; i < 2; i++) {
        tg_ctx ctx;
        tg_ctx_init(&ctx, NULL, NULL, NULL);
        const char *out = path_in(folder, "narrow", ".tinygpt");
        assert_int_equal(
            tg_io_convert(&ctx, path_in(fixtures, "v2_fp32", ".tinygpt"), out, cases[i].kind),
            TG_OK);
        file_bytes a = bytes_read(path_in(fixtures, cases[i].to, ".tinygpt")), b = bytes_read(out);
        assert_int_equal(a.n - body_at(a), b.n - body_at(b));
        assert_memory_equal(a.data + body_at(a), b.data + body_at(b), a.n - body_at(a));
        bytes_free(&a);
        bytes_free(&b);
    }
}

/* No moments in, zeros out. */
static void fp32_without_moments_has_zeros(void **state) {
    (void)state;
    tg_ctx ctx;
    tg_file *f;
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    const char *out = path_in(folder, "zeros", ".tinygpt");
    assert_int_equal(
        tg_io_convert(&ctx, path_in(fixtures, "v2_fp16", ".tinygpt"), out, TG_FILE_V2_F32), TG_OK);
    assert_int_equal(tg_file_open(&ctx, out, &f), TG_OK);
    assert_true(f->has_moments);
    check_part(f, "v2_fp16", 0);
    for (size_t part = 1; part < 3; part++) {
        float *all = read_part(f, part);
        for (uint64_t i = 0; i < f->manifest.elems; i++) {
            assert_true(tg_bits_from_float(all[i]) == 0);
        }
        free(all);
    }
    tg_file_close(f);
}

/* ------------------------------------------------------------------------------------ bad files */

static tg_status open_bytes(file_bytes b, char message[TG_MESSAGE_BYTES]) {
    test_alloc a = { 0 };
    const tg_mem mem = test_alloc_mem(&a);
    tg_ctx ctx;
    tg_file *f;
    tg_ctx_init(&ctx, &mem, NULL, NULL);
    uint8_t *exact = malloc(b.n ? b.n : 1); /* no room behind it: a sanitizer sees a step too far */
    memcpy(exact, b.data, b.n);
    const tg_status status = tg_file_open_memory(&ctx, "bad.tinygpt", exact, b.n, &f);
    assert_true((status == TG_OK) == (f != NULL));
    tg_file_close(f);
    free(exact);
    assert_int_equal(a.live_pieces, 0);
    assert_true(a.peak_bytes < 2 * b.n + (64u << 20));
    memcpy(message, ctx.message, TG_MESSAGE_BYTES);
    return status;
}

/* A v2 file with this header and a body of zeros of n_body bytes. */
static file_bytes file_with(uint32_t version, const char *header, int32_t step, size_t n_body) {
    file_bytes b = bytes_of("TGPT", 4);
    uint8_t number[4];
    tg_put_u32(number, version);
    bytes_append(&b, number, 4);
    tg_put_u32(number, (uint32_t)strlen(header));
    bytes_append(&b, number, 4);
    bytes_append(&b, header, strlen(header));
    tg_put_u32(number, (uint32_t)step);
    bytes_append(&b, number, 4);
    uint8_t *zeros = calloc(1, n_body + 1);
    bytes_append(&b, zeros, n_body);
    free(zeros);
    return b;
}

#define TINY_CONFIG "{\"layers\":1,\"dModel\":1,\"ctx\":1,\"heads\":1}"
#define TINY_ELEMS  (256u + 1 + 2 + 25)

static void refuses_bad_headers(void **state) {
    (void)state;
    static const struct {
        const char *header;
        tg_status want;
        const char *says;
    } cases[] = {
        { "{\"config\":" TINY_CONFIG "}", TG_OK, "" },
        { "{\"config\":{\"layers\":1,\"dModel\":1,\"ctx\":1,\"heads\":1,\"dMlp\":4,\"vocabSize\":256}}",
          TG_OK, "" },
        { "{\"config\":" TINY_CONFIG ",\"lossHistory\":\"none\",\"finalLoss\":7,\"bestVal\":[]}",
          TG_OK, "" },
        { "{\"config\":" TINY_CONFIG ",\"manifest\":null}", TG_OK, "" },
        { "", TG_E_FORMAT, "byte 0" },
        { "[]", TG_E_FORMAT, "want a JSON object" },
        { "{}", TG_E_FORMAT, "config" },
        { "{\"config\":[]}", TG_E_FORMAT, "config" },
        { "{\"config\":" TINY_CONFIG ",\"config\":" TINY_CONFIG "}", TG_E_FORMAT, "" },
        { "{\"config\":" TINY_CONFIG "} x", TG_E_FORMAT, "" },
        { "{\"config\":{\"layers\":1,\"dModel\":1,\"ctx\":1}}", TG_E_FORMAT, "config.heads" },
        { "{\"config\":{\"layers\":1.0,\"dModel\":1,\"ctx\":1,\"heads\":1}}", TG_E_RANGE,
          "config.layers" },
        { "{\"config\":{\"layers\":\"1\",\"dModel\":1,\"ctx\":1,\"heads\":1}}", TG_E_RANGE,
          "config.layers" },
        { "{\"config\":{\"layers\":4294967297,\"dModel\":1,\"ctx\":1,\"heads\":1}}", TG_E_RANGE,
          "config.layers" },
        { "{\"config\":{\"layers\":0,\"dModel\":1,\"ctx\":1,\"heads\":1}}", TG_E_RANGE, "layers" },
        { "{\"config\":{\"layers\":257,\"dModel\":1,\"ctx\":1,\"heads\":1}}", TG_E_RANGE,
          "layers" },
        { "{\"config\":{\"layers\":-1,\"dModel\":1,\"ctx\":1,\"heads\":1}}", TG_E_RANGE, "layers" },
        { "{\"config\":{\"layers\":1,\"dModel\":16385,\"ctx\":1,\"heads\":1}}", TG_E_RANGE,
          "width" },
        { "{\"config\":{\"layers\":1,\"dModel\":1,\"ctx\":65537,\"heads\":1}}", TG_E_RANGE, "ctx" },
        { "{\"config\":{\"layers\":1,\"dModel\":3,\"ctx\":1,\"heads\":2}}", TG_E_RANGE, "heads" },
        { "{\"config\":{\"layers\":1,\"dModel\":1,\"ctx\":1,\"heads\":0}}", TG_E_RANGE, "heads" },
        { "{\"config\":{\"layers\":1,\"dModel\":1,\"ctx\":1,\"heads\":1,\"dMlp\":5}}", TG_E_RANGE,
          "mlp" },
        { "{\"config\":{\"layers\":1,\"dModel\":1,\"ctx\":1,\"heads\":1,\"vocabSize\":49152}}",
          TG_E_UNSUPPORTED, "vocabulary" },
        { "{\"config\":" TINY_CONFIG ",\"weightDtype\":\"fp8\"}", TG_E_UNSUPPORTED, "fp8" },
        { "{\"config\":" TINY_CONFIG ",\"weightDtype\":7}", TG_E_UNSUPPORTED, "weightDtype" },
        { "{\"config\":" TINY_CONFIG ",\"weightDtype\":\"fp16\"}", TG_E_UNSUPPORTED,
          "includesOptimizerState" },
        { "{\"config\":" TINY_CONFIG ",\"includesOptimizerState\":false}", TG_E_UNSUPPORTED,
          "includesOptimizerState" },
        { "{\"config\":" TINY_CONFIG ",\"includesOptimizerState\":1}", TG_E_FORMAT, "" },
        { "{\"config\":" TINY_CONFIG ",\"manifest\":{}}", TG_E_FORMAT, "manifest" },
        { "{\"config\":" TINY_CONFIG ",\"manifest\":[]}", TG_E_FORMAT, "have 0" },
        { "{\"config\":" TINY_CONFIG ",\"manifest\":[{\"name\":\"moe.router.weight\"}]}",
          TG_E_FORMAT, "moe.router.weight" },
        { "{\"config\":" TINY_CONFIG ",\"a\":[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]}", TG_E_FORMAT,
          "" },
        /* The layout of these is another one, so the zeros are not the right number of bytes. */
        { "{\"config\":{\"layers\":2,\"dModel\":1,\"ctx\":1,\"heads\":1}}", TG_E_FORMAT, "body" },
        { "{\"config\":{\"layers\":256,\"dModel\":16384,\"ctx\":65536,\"heads\":1}}", TG_E_FORMAT,
          "body" },
        { "{\"config\":" TINY_CONFIG ",\"weightDtype\":\"fp16\",\"includesOptimizerState\":false}",
          TG_E_FORMAT, "body" },
        { "{\"config\":" TINY_CONFIG ",\"weightDtype\":\"int4\",\"includesOptimizerState\":false}",
          TG_E_FORMAT, "body" },
        { "{\"config\":" TINY_CONFIG ",\"weightDtype\":\"int4\",\"includesOptimizerState\":false,"
          "\"int4BlockSize\":32}",
          TG_E_FORMAT, "int4BlockSize" },
        { "{\"config\":" TINY_CONFIG ",\"weightDtype\":\"int4\",\"includesOptimizerState\":false,"
          "\"int4ScalesBytes\":1}",
          TG_E_FORMAT, "int4ScalesBytes" },
        { "{\"config\":" TINY_CONFIG ",\"weightDtype\":\"int4\",\"includesOptimizerState\":false,"
          "\"int4PackedBytes\":-1}",
          TG_E_FORMAT, "" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char message[TG_MESSAGE_BYTES];
        file_bytes b = file_with(2, cases[i].header, 0, 12 * TINY_ELEMS);
        const tg_status have = open_bytes(b, message);
        if (have != cases[i].want || !strstr(message, cases[i].says)) {
            fail_msg("case %zu %s: status %d, message \"%s\"", i, cases[i].header, have, message);
        }
        bytes_free(&b);
    }
}

static void refuses_bad_prefixes(void **state) {
    (void)state;
    static const char header[] = "{\"config\":" TINY_CONFIG "}";
    char message[TG_MESSAGE_BYTES];
    static const struct {
        uint32_t version;
        tg_status want;
    } versions[] = { { 0, TG_E_FORMAT },
                     { 1, TG_OK },
                     { 2, TG_OK },
                     { 3, TG_E_UNSUPPORTED },
                     { 4, TG_E_UNSUPPORTED },
                     { UINT32_MAX, TG_E_FORMAT } };
    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
        file_bytes b = file_with(versions[i].version, header, 0, 12 * TINY_ELEMS);
        assert_int_equal(open_bytes(b, message), versions[i].want);
        bytes_free(&b);
    }
    /* A negative step; then lengths of the header that the file cannot hold. */
    file_bytes b = file_with(2, header, -1, 12 * TINY_ELEMS);
    assert_int_equal(open_bytes(b, message), TG_E_FORMAT);
    assert_non_null(strstr(message, "step"));
    bytes_free(&b);
    b = file_with(2, header, 0, 12 * TINY_ELEMS);
    static const uint32_t lengths[] = { 0, 1, 0x7fffffff, 0xfffffff0, UINT32_MAX };
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        tg_put_u32(b.data + 8, lengths[i]);
        assert_int_equal(open_bytes(b, message), TG_E_FORMAT);
        assert_non_null(strstr(message, "bad.tinygpt"));
    }
    /* Only the exact length is accepted: no truncation, no byte too many. */
    tg_put_u32(b.data + 8, (uint32_t)strlen(header));
    assert_int_equal(open_bytes(b, message), TG_OK);
    for (size_t n = 0; n < b.n; n++) {
        assert_int_equal(open_bytes((file_bytes) { b.data, n }, message), TG_E_FORMAT);
    }
    bytes_append(&b, "\0", 1);
    assert_int_equal(open_bytes(b, message), TG_E_FORMAT);
    bytes_free(&b);
    /* Strangers. */
    static const char *const others[] = { "TGPU\2\0\0\0", "GGUF\3\0\0\0", "PK\3\4", "T",
                                          "TGP",          "\x89PNG" };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        b = bytes_of(others[i], strlen(others[i]));
        assert_int_equal(open_bytes(b, message), TG_E_FORMAT);
        assert_non_null(strstr(message, "magic"));
        bytes_free(&b);
    }
}

/* A manifest that disagrees is refused with all that is wrong: somebody may have gone by it. */
static void refuses_a_manifest_that_disagrees(void **state) {
    (void)state;
    static const struct {
        const char *from, *to; /* the first occurrence in the fixture's header, same length */
        const char *says;
    } changes[] = {
        { "\"shape\":[96,24]", "\"shape\":[24,96]", "mlp.fc_in.weight" },
        { "\"shape\":[24]", "\"shape\":[25]", "ln_final.weight" },
        { "\"floatOffset\":6144", "\"floatOffset\":6145", "position_embedding.weight" },
        { "blocks.0.attn.q_proj.weight", "blocks.0.attn.k_proj.weight", "q_proj.weight" },
    };
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        char message[TG_MESSAGE_BYTES];
        file_bytes b = bytes_read(path_in(fixtures, "v2_fp16", ".tinygpt"));
        const size_t n = strlen(changes[i].from);
        size_t at = 0;
        while (memcmp(b.data + at, changes[i].from, n) != 0) {
            at++;
            assert_true(at + n < b.n);
        }
        memcpy(b.data + at, changes[i].to, n);
        assert_int_equal(open_bytes(b, message), TG_E_FORMAT);
        if (!strstr(message, changes[i].says)) {
            fail_msg("want %s in: %s", changes[i].says, message);
        }
        bytes_free(&b);
    }
}

/* Numbers that no f16 can hold, and such that are no numbers, are refused, by name and place. */
static tg_status read_large(void *user, size_t tensor, tg_part part, uint64_t first, size_t n,
                            float *out) {
    for (size_t i = 0; i < n; i++) {
        out[i] = tensor == 3 && part == TG_PART_WEIGHT && first + i == 1 ? *(float *)user : 0.5f;
    }
    return TG_OK;
}

static void refuses_numbers_that_f16_cannot_hold(void **state) {
    (void)state;
    float values[] = { 65520, -1e30f, (float)TG_INF, (float)TG_NAN, -7 * 65520 };
    static const tg_file_kind kinds[] = { TG_FILE_V2_F16, TG_FILE_V2_INT4 };
    const char *out = path_in(folder, "large", ".tinygpt");
    const tg_model_config config = config_of(1, 4, 1, 4);
    const tg_meta meta = model_meta();
    for (size_t i = 0; i < 5; i++) {
        const tg_weights weights = { .read = read_large, .user = &values[i] };
        for (size_t k = 0; k < (i == 0 ? 1 : 2); k++) { /* int4 holds seven times as much */
            tg_ctx ctx;
            tg_ctx_init(&ctx, NULL, NULL, NULL);
            assert_int_equal(tg_tgpt2_save(&ctx, out, kinds[k], &config, 0, &meta, &weights, false),
                             TG_E_RANGE);
            assert_non_null(strstr(ctx.message, "ln_final.bias: element 1"));
            assert_int_equal(access(out, F_OK), -1);
        }
    }
    /* The largest f16 and what rounds to it go in; the step has a range of its own. */
    float fits = 65519;
    const tg_weights weights = { .read = read_large, .user = &fits };
    tg_ctx ctx;
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    assert_int_equal(
        tg_tgpt2_save(&ctx, out, TG_FILE_V2_F16, &config, INT32_MAX, &meta, &weights, false), 0);
    assert_int_equal(tg_tgpt2_save(&ctx, out, TG_FILE_V2_F16, &config, (int64_t)INT32_MAX + 1,
                                   &meta, &weights, false),
                     TG_E_RANGE);
    assert_int_equal(unlink(out), 0);
    /* v3 has a writer of its own. */
    tg_ctx_clear(&ctx);
    assert_int_equal(tg_tgpt2_save(&ctx, out, TG_FILE_V3, &config, 0, &meta, &weights, false),
                     TG_E_ARG);
}

/* A history of any length is thinned to 512 points that end with the last one. */
static void thins_the_history(void **state) {
    (void)state;
    static tg_history_point points[5000];
    static const size_t counts[] = { 1, 2, 511, 512, 513, 1024, 1025, 4999, 5000 };
    const tg_model_config config = config_of(1, 4, 1, 4);
    const tg_weights weights = { .read = model_read };
    const char *out = path_in(folder, "history", ".tinygpt");
    for (size_t i = 0; i < 5000; i++) {
        points[i] = (tg_history_point) { (int64_t)i + 1, 6.0 - (double)i / 1e3, TG_NAN };
    }
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        tg_ctx ctx;
        tg_file *f;
        tg_meta meta = model_meta(), back;
        tg_ctx_init(&ctx, NULL, NULL, NULL);
        meta.history = points;
        meta.n_history = counts[i];
        assert_int_equal(
            tg_tgpt2_save(&ctx, out, TG_FILE_V2_F16, &config, 9, &meta, &weights, false), TG_OK);
        assert_int_equal(tg_file_open(&ctx, out, &f), TG_OK);
        assert_int_equal(tg_meta_read(f, &back), TG_OK);
        assert_true(back.n_history <= 512 && (counts[i] > 512 || back.n_history == counts[i]));
        assert_true(back.n_history >= (counts[i] > 512 ? 256 : 1));
        const tg_history_point *last = &back.history[back.n_history - 1];
        assert_int_equal(last->step, (int64_t)counts[i]);
        assert_true(last->loss == points[counts[i] - 1].loss && tg_isnan(last->val_loss));
        tg_file_close(f);
    }
}

/* Every allocation fails once: an error, no leak, no file, and the message says memory. */
static void survives_failing_allocations(void **state) {
    (void)state;
    static const char *const names[] = { "v2_fp32_browser", "v2_int4" };
    for (size_t k = 0; k < 2; k++) {
        const char *in = path_in(fixtures, names[k], ".tinygpt");
        const char *out = path_in(folder, "alloc", ".tinygpt");
        bool done = false;
        for (size_t i = 1; !done; i++) {
            test_alloc a = { .fail_at = i };
            const tg_mem mem = test_alloc_mem(&a);
            tg_ctx ctx;
            tg_ctx_init(&ctx, &mem, NULL, NULL);
            const tg_status status =
                tg_io_convert(&ctx, in, out, k ? TG_FILE_V2_INT4 : TG_FILE_V2_F32);
            done = a.requests < i;
            assert_int_equal(status, done ? TG_OK : TG_E_MEMORY);
            assert_int_equal(ctx.code, status);
            assert_int_equal(a.live_pieces, 0);
            assert_int_equal(access(out, F_OK), done ? 0 : -1);
            assert_true(i < 10000);
        }
        assert_int_equal(unlink(out), 0);
    }
}

/* The presets' published numbers of parameters, by the list and by the closed form. */
static void counts_parameters(void **state) {
    (void)state;
    static const struct {
        int32_t layers, width, heads, ctx;
        uint64_t params;
    } presets[] = {
        { 2, 48, 3, 32, 70464 },          { 3, 96, 3, 64, 366432 },
        { 4, 128, 4, 96, 838400 },        { 6, 192, 6, 128, 2743296 },
        { 8, 256, 8, 128, 6416896 },      { 12, 256, 8, 256, 9608704 },
        { 14, 384, 12, 256, 25039872 },   { 14, 384, 12, 512, 25138176 },
        { 24, 1280, 20, 512, 473244160 },
    };
    for (size_t i = 0; i < sizeof presets / sizeof presets[0]; i++) {
        tg_ctx ctx;
        tg_arena arena;
        tg_manifest m;
        const tg_model_config config =
            config_of(presets[i].layers, presets[i].width, presets[i].heads, presets[i].ctx);
        tg_ctx_init(&ctx, NULL, NULL, NULL);
        tg_arena_init(&arena, &ctx.mem);
        assert_int_equal(tg_gpt_config_check(&ctx, "preset", &config), TG_OK);
        assert_int_equal(tg_manifest_new(&ctx, &arena, &config, &m), TG_OK);
        assert_int_equal(m.elems, presets[i].params);
        assert_int_equal(tg_manifest_elems(&config), presets[i].params);
        assert_int_equal(m.n, 4 + 16 * (size_t)presets[i].layers);
        char last[64];
        snprintf(last, sizeof last, "blocks.%d.mlp.fc_out.bias", presets[i].layers - 1);
        assert_string_equal(m.entry[m.n - 1].name, last);
        tg_arena_deinit(&arena);
    }
}

/* Encode and decode of single blocks, at the edges. */
static void int4_blocks(void **state) {
    (void)state;
    float w[64], back[64];
    uint16_t scale;
    uint8_t nibbles[32];
    for (int i = 0; i < 64; i++) {
        w[i] = (float)(i % 15 - 7) * 0.25f;
    }
    tg_int4_encode(w, 64, &scale, nibbles);
    assert_true(tg_f16_to_f32(scale) == 0.25f);
    assert_int_equal(nibbles[0], 1 | 2 << 4); /* -7 in the low half, -6 in the high one */
    tg_int4_decode(scale, nibbles, 0, 64, back);
    for (int i = 0; i < 64; i++) {
        assert_true(back[i] == w[i]);
    }
    tg_int4_decode(scale, nibbles, 3, 5, back);
    assert_memory_equal(back, w + 3, 5 * sizeof *w);
    /* One element; the nibbles behind it are zero. */
    tg_int4_encode(&(float) { -3.5f }, 1, &scale, nibbles);
    assert_int_equal(nibbles[0], 1);
    assert_int_equal(nibbles[1], 0);
    tg_int4_decode(scale, nibbles, 0, 1, back);
    assert_true(back[0] == -3.5f);
    /* Halves round away from zero: scale 1, quotients 0.5 and -0.5. */
    const float halves[3] = { 7, 0.5f, -0.5f };
    tg_int4_encode(halves, 3, &scale, nibbles);
    tg_int4_decode(scale, nibbles, 0, 3, back);
    assert_true(back[0] == 7 && back[1] == 1 && back[2] == -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_others_wrote),
        cmocka_unit_test(finds_the_options_of_a_browser_run),
        cmocka_unit_test(reads_pieces),
        cmocka_unit_test(writes_what_others_wrote),
        cmocka_unit_test(survives_v3),
        cmocka_unit_test(narrows_as_python_does),
        cmocka_unit_test(fp32_without_moments_has_zeros),
        cmocka_unit_test(refuses_bad_headers),
        cmocka_unit_test(refuses_bad_prefixes),
        cmocka_unit_test(refuses_a_manifest_that_disagrees),
        cmocka_unit_test(refuses_numbers_that_f16_cannot_hold),
        cmocka_unit_test(thins_the_history),
        cmocka_unit_test(survives_failing_allocations),
        cmocka_unit_test(counts_parameters),
        cmocka_unit_test(int4_blocks),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
