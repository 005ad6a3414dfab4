/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_lm_files.c - folders and zip files of models that are wrong: each is refused with what was
 * wanted, where, and what was found; nothing is left behind, whichever allocation fails.
 */
#include "tinygpt.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "fail_alloc.h"

#define GOOD      "test/golden/lm/qwen2"
#define FOLDER    "build/bad_model"
#define CONVERTED "build/converted"

enum { ROOM = 1 << 20 };
typedef struct bytes {
    char data[ROOM];
    size_t n;
} bytes;

static void read_file(const char *path, bytes *b) {
    FILE *f = fopen(path, "rb");
    if (!f) fail_msg("%s is missing", path);
    b->n = fread(b->data, 1, ROOM - 1, f);
    b->data[b->n] = '\0';
    fclose(f);
}

static void write_file(const char *path, const bytes *b) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(b->data, 1, b->n, f), b->n);
    fclose(f);
}

/* The first `from` to `to`, of any length. */
static void replace(bytes *b, const char *from, const char *to) {
    char *at = NULL;
    for (size_t i = 0; !at && i + strlen(from) <= b->n; i++)
        if (memcmp(b->data + i, from, strlen(from)) == 0) at = b->data + i;
    if (!at) fail_msg("no %s", from);
    const size_t rest = b->n - (size_t)(at - b->data) - strlen(from);
    memmove(at + strlen(to), at + strlen(from), rest);
    memcpy(at, to, strlen(to));
    b->n += strlen(to) - strlen(from);
}

static tg_status open_path(const char *path, char *why) {
    tg_context *ctx;
    tg_model *m = NULL;
    assert_int_equal(tg_context_new(NULL, &ctx), TG_OK);
    const tg_status s = tg_model_open(ctx, path, &m);
    snprintf(why, 1024, "%s", tg_context_error(ctx));
    tg_model_free(m);
    tg_context_free(ctx);
    return s;
}

/* A copy of the good folder: with config.json, or the header of its tensors, changed in one place.
 */
static tg_status open_folder(const char *from, const char *to, bool in_tensors, char *why) {
    static bytes config, tensors;
    read_file(GOOD "/config.json", &config);
    read_file(GOOD "/model.safetensors", &tensors);
    if (from) replace(in_tensors ? &tensors : &config, from, to);
    mkdir(FOLDER, 0777);
    write_file(FOLDER "/config.json", &config);
    write_file(FOLDER "/model.safetensors", &tensors);
    const tg_status s = open_path(FOLDER, why);
    remove(FOLDER "/config.json");
    remove(FOLDER "/model.safetensors");
    rmdir(FOLDER);
    return s;
}

static void configurations(void **state) {
    (void)state;
    static const struct {
        const char *from, *to;
        tg_status status;
        const char *says;
    } cases[] = {
        { NULL, NULL, TG_OK, "" },
        { "\"qwen2\"", "\"mamba\"", TG_E_UNSUPPORTED, "bert, have mamba" },
        { "\"silu\"", "\"relu\"", TG_E_UNSUPPORTED, "hidden_act: want silu, have relu" },
        { "\"default\"", "\"dynamic\"", TG_E_UNSUPPORTED,
          "want default, linear, yarn or llama3, have dynamic" },
        { "\"default\"",
          "\"llama3\", \"factor\": 8.0, \"low_freq_factor\": 4.0, \"high_freq_factor\": 4.0, "
          "\"original_max_position_embeddings\": 64",
          TG_E_FORMAT, "rope of llama3: want factor" },
        { "\"use_sliding_window\": false", "\"use_sliding_window\": true", TG_E_UNSUPPORTED,
          "use_sliding_window" },
        { "\"hidden_size\": 32", "\"hidden_size\": -1", TG_E_FORMAT, "hidden_size: want a whole" },
        { "\"hidden_size\": 32", "\"hidden_size\": 1e3", TG_E_FORMAT, "hidden_size: want a whole" },
        { "\"num_attention_heads\": 4", "\"num_attention_heads\": 3", TG_E_FORMAT, "heads: want" },
        { "\"vocab_size\": 48", "\"vocab_size\": 49", TG_E_SHAPE, "vocab_size: want 48" },
        { "\"tie_word_embeddings\": true", "\"tie_word_embeddings\": false", TG_E_FORMAT,
          "lm_head.weight: want it" },
        { "\"use_cache\": true", "\"quantization_config\": {\"quant_method\": \"aqlm\"}",
          TG_E_UNSUPPORTED,
          "quantization: want MLX's, fp8, gptq, awq, bitsandbytes, fbgemm_fp8, "
          "compressed-tensors, modelopt, have aqlm" },
        { "{\n", "[{\n", TG_E_FORMAT, "config.json" },
        { "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3", TG_E_SHAPE,
          "blk.2.attn_norm.weight: missing" },
        { "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 1", TG_E_SHAPE, "of no use here" },
        { "\"intermediate_size\": 64", "\"intermediate_size\": 65", TG_E_SHAPE,
          "blk.0.ffn_gate.weight: want [65,32], have [64,32]" },
    };
    char why[1024];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const tg_status s = open_folder(cases[i].from, cases[i].to, false, why);
        if (s != cases[i].status || !strstr(why, cases[i].says))
            fail_msg("case %zu: want %d \"%s\", have %d \"%s\"", i, (int)cases[i].status,
                     cases[i].says, (int)s, why);
    }
}

/* One header with a name, a shape and a type that are wrong: what lacks and what is there in its
 * place are named together. */
static void tensors(void **state) {
    (void)state;
    char why[1024];
    assert_int_equal(open_folder("model.norm.weight", "model.nrom.weight", true, why), TG_E_SHAPE);
    assert_non_null(strstr(why, "output_norm.weight: missing"));
    assert_non_null(strstr(why, "model.nrom.weight: of no use here"));
    assert_int_equal(open_folder("\"shape\":[64,32]", "\"shape\":[32,64]", true, why), TG_E_SHAPE);
    assert_non_null(strstr(why, "want [64,32], have [32,64]"));
    assert_null(strstr(why, "of no use"));
    assert_int_equal(open_folder("\"dtype\":\"F16\"", "\"dtype\":\"I16\"", true, why),
                     TG_E_UNSUPPORTED);
    assert_non_null(strstr(why, "or what quantization of config.json says (none), have I16"));
    assert_int_equal(open_folder("[0,3072]", "[0,3070]", true, why), TG_E_FORMAT);
    assert_int_equal(open_folder("[0,3072]", "[0,9999999999]", true, why), TG_E_FORMAT);
}

static void files(void **state) {
    (void)state;
    static bytes index;
    char why[1024];
    mkdir(FOLDER, 0777);
    assert_int_equal(open_path(FOLDER, why), TG_E_FORMAT);
    assert_non_null(strstr(why, "want a folder with a config.json"));
    read_file(GOOD "/config.json", &index);
    write_file(FOLDER "/config.json", &index);
    assert_int_equal(open_path(FOLDER, why), TG_E_IO);
    assert_non_null(strstr(why, "model.safetensors"));
    static const char *const bad[] = { "../lm/qwen2/model.safetensors", "/etc/passwd",
                                       "sub/x.safetensors" };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        index.n = (size_t)snprintf(index.data, ROOM, "{\"weight_map\":{\"a\":\"%s\"}}", bad[i]);
        write_file(FOLDER "/model.safetensors.index.json", &index);
        assert_int_equal(open_path(FOLDER, why), TG_E_FORMAT);
        assert_non_null(strstr(why, "want files of this folder"));
    }
    remove(FOLDER "/model.safetensors.index.json");
    remove(FOLDER "/config.json");
    rmdir(FOLDER);
}

/* Every cut and many flipped bits of a zip file: an error, or (in names and times that nobody looks
 * at) the same model. */
static void zips(void **state) {
    (void)state;
    static bytes good, changed;
    char why[1024];
    read_file("test/golden/lm/bert.zip", &good);
    for (size_t keep = 0; keep < good.n; keep += 997) {
        changed = good;
        changed.n = keep;
        write_file("build/cut.zip", &changed);
        assert_true(open_path("build/cut.zip", why) < 0);
    }
    int refused = 0, n = 0;
    for (size_t at = 5; at < good.n; at += 211, n++) {
        changed = good;
        changed.data[at] = (char)(changed.data[at] ^ 1 << at % 8);
        write_file("build/cut.zip", &changed);
        refused += open_path("build/cut.zip", why) < 0;
    }
    assert_true(refused > n * 9 / 10);
    remove("build/cut.zip");
}

/* The entry of a zip file's directory for the model's tensors. */
static char *entry_of_tensors(bytes *b) {
    static const char name[] = "model.safetensors";
    for (size_t i = 0; i + 46 + sizeof name <= b->n; i++) {
        char *e = b->data + i;
        const size_t n = (size_t)(unsigned char)e[28];
        if (memcmp(e, "PK\1\2", 4) == 0 && n >= sizeof name - 1 && i + 46 + n <= b->n &&
            memcmp(e + 46 + n - (sizeof name - 1), name, sizeof name - 1) == 0)
            return e;
    }
    fail_msg("no %s in the zip file", name);
    return NULL;
}

static uint32_t u32_at(const char *p) {
    uint32_t x;
    memcpy(&x, p, sizeof x);
    return x;
}

/* A member that claims the most that deflate could make of its bytes takes what its bytes prove. */
static void claims(void **state) {
    (void)state;
    static bytes b;
    char why[1024];
    read_file("test/golden/lm/bert.zip", &b);
    char *entry = entry_of_tensors(&b);
    assert_int_equal(entry[10], 8); /* deflated */
    const uint32_t packed = u32_at(entry + 20), unpacked = u32_at(entry + 24);
    for (uint32_t more = 1031; more <= 1033; more += 2) {
        const uint32_t claimed = packed * more;
        memcpy(entry + 24, &claimed, sizeof claimed);
        write_file("build/claims.zip", &b);
        test_alloc a = { .fail_at = 0 };
        tg_context_options o = tg_context_options_default();
        tg_context *ctx;
        tg_model *m = NULL;
        o.threads = 1;
        o.alloc = test_alloc_fn;
        o.alloc_user = &a;
        assert_int_equal(tg_context_new(&o, &ctx), TG_OK);
        const size_t before = a.live_bytes;
        assert_int_equal(tg_model_open(ctx, "build/claims.zip", &m), TG_E_FORMAT);
        snprintf(why, sizeof why, "%s", tg_context_error(ctx));
        assert_non_null(strstr(why, "model.safetensors"));
        tg_context_free(ctx);
        if (a.peak_bytes > before + 4 * (size_t)unpacked + (1 << 20))
            fail_msg("%u bytes of %u claimed: peak %zu over %zu", (unsigned)packed,
                     (unsigned)claimed, a.peak_bytes, before);
    }
    remove("build/claims.zip");
}

/* A split model without its second file, or with another in its place. */
static void parts(void **state) {
    (void)state;
    static bytes b;
    char why[1024], name[96];
    for (int i = 1; i <= 4; i++) {
        snprintf(name, sizeof name, "test/golden/lm/qwen2-split-0000%d-of-00004.gguf", i);
        read_file(name, &b);
        snprintf(name, sizeof name, "build/part-0000%d-of-00004.gguf", i == 4 ? 3 : i);
        if (i != 3) write_file(name, &b);
    }
    assert_int_equal(open_path("build/part-00001-of-00004.gguf", why), TG_E_FORMAT);
    assert_non_null(strstr(why, "split: want file 2 of 4, have 3 of 4"));
    remove("build/part-00003-of-00004.gguf");
    assert_int_equal(open_path("build/part-00001-of-00004.gguf", why), TG_E_IO);
    assert_int_equal(open_path("build/part-00002-of-00004.gguf", why), TG_E_ARG);
    assert_non_null(strstr(why, "want the first of its 4 files, have number 2"));
    rename("build/part-00001-of-00004.gguf", "build/part-one.gguf");
    assert_int_equal(open_path("build/part-one.gguf", why), TG_E_FORMAT);
    remove("build/part-one.gguf");
    remove("build/part-00002-of-00004.gguf");
}

/* -------------------------------------------------------------------------- files that shrink */

/* The only file in the folder of packed weights. */
static void find_kept(char path[512]) {
    DIR *d = opendir("build/kept");
    assert_non_null(d);
    path[0] = '\0';
    for (struct dirent *e; (e = readdir(d));)
        if (strstr(e->d_name, ".tgpack")) snprintf(path, 512, "build/kept/%s", e->d_name);
    closedir(d);
    assert_true(path[0]);
}

/* A model's own file, whose table of embeddings is read where it lies. */
static void cut_model(void) {
    static bytes file;
    const char *const path = "build/shrinks.gguf";
    const int32_t token = 3;
    const float *logits;
    tg_context *ctx;
    tg_model *m;
    tg_session *s;
    read_file("test/golden/lm/llama.gguf", &file);
    write_file(path, &file);
    assert_int_equal(tg_context_new(NULL, &ctx), TG_OK);
    assert_int_equal(tg_model_open(ctx, path, &m), TG_OK);
    assert_int_equal(tg_session_new(ctx, m, 0, &s), TG_OK);
    assert_int_equal(tg_session_eval(s, &token, 1, &logits), TG_OK);
    assert_int_equal(truncate(path, 0), 0);
    assert_int_equal(tg_session_eval(s, &token, 1, &logits), TG_E_IO);
    assert_non_null(strstr(tg_context_error(ctx), "shrinks.gguf: want a file that stays"));
    tg_session_free(s);
    tg_model_free(m);
    write_file(path, &file);
    assert_int_equal(tg_model_open(ctx, path, &m), TG_OK);
    assert_int_equal(tg_session_new(ctx, m, 0, &s), TG_OK);
    assert_int_equal(tg_session_eval(s, &token, 1, &logits), TG_OK);
    tg_session_free(s);
    tg_model_free(m);
    tg_context_free(ctx);
    remove(path);
}

/* Cut when packing has begun, which takes its weights from where they are mapped. */
static void cut_packing(void) {
    static bytes file;
    const char *const path = "build/shrinks.gguf";
    tg_context *ctx;
    tg_model *m = NULL;
    tg_job *job;
    read_file("test/golden/lm/llama.gguf", &file);
    write_file(path, &file);
    assert_int_equal(tg_context_new(NULL, &ctx), TG_OK);
    assert_int_equal(tg_model_open_job(ctx, path, &m, &job), TG_OK);
    assert_int_equal(tg_job_poll(job, 1e-6), TG_PENDING);
    assert_int_equal(truncate(path, 4096), 0);
    assert_int_equal(tg_job_poll(job, 0), TG_E_IO);
    assert_non_null(strstr(tg_context_error(ctx), "shrinks.gguf: want a file that stays"));
    assert_null(m);
    tg_job_free(job);
    tg_context_free(ctx);
    remove(path);
}

/* Cut while it is mapped: no signal, and no token of what is not there. The session's model can be
 * opened again. */
static void shrinking(void **state) {
    (void)state;
    const int32_t token = 3;
    char path[512];
    assert_int_equal(system("rm -rf build/kept"), 0);
    for (int turn = 0; turn < 2; turn++) { /* packed and kept; mapped, and cut */
        tg_context *ctx;
        tg_model *m;
        tg_session *s;
        tg_load_times t;
        const float *logits;
        assert_int_equal(tg_context_new(NULL, &ctx), TG_OK);
        assert_int_equal(tg_context_pack_cache(ctx, "build/kept"), TG_OK);
        assert_int_equal(tg_model_open(ctx, "test/golden/lm/qwen2.gguf", &m), TG_OK);
        assert_int_equal(tg_model_load_times(m, &t), TG_OK);
        assert_int_equal(t.mapped, turn);
        assert_int_equal(tg_session_new(ctx, m, 0, &s), TG_OK);
        assert_int_equal(tg_session_eval(s, &token, 1, &logits), TG_OK);
        if (turn == 1) {
            find_kept(path);
            assert_int_equal(truncate(path, 4096), 0);
            assert_int_equal(tg_session_eval(s, &token, 1, &logits), TG_E_IO);
            assert_non_null(strstr(tg_context_error(ctx), "one that shrank"));
        }
        tg_session_free(s);
        tg_model_free(m);
        tg_context_free(ctx);
    }
    assert_int_equal(remove(path), 0);
    cut_model();
    cut_packing();
}

/* -------------------------------------------------------------------------- when memory runs out
 */

typedef tg_status (*work_fn)(tg_context *ctx, int which);

/* The n-th request fails, for every n that there is: alone, or with all that follow. Then the work
 * fails of that and leaves nothing; or it can do without, as it can without a cache. */
static void every_request_fails(work_fn work, int which, size_t step) {
    for (int sticky = 0; sticky < 2; sticky++) {
        test_alloc a = { .fail_at = 1 };
        for (size_t n = 1; a.fail_at; n += n < 40 ? 1 : step) {
            a = (test_alloc) { .fail_at = n, .sticky = sticky };
            tg_context_options o = tg_context_options_default();
            tg_context *ctx = NULL;
            o.threads = 1;
            o.alloc = test_alloc_fn;
            o.alloc_user = &a;
            tg_status s = tg_context_new(&o, &ctx);
            if (s == TG_OK) s = work(ctx, which);
            if (s != TG_OK && s != TG_E_MEMORY)
                fail_msg("%d, request %zu: %s", which, n, tg_context_error(ctx));
            tg_context_free(ctx);
            assert_int_equal(a.live_pieces, 0);
            if (a.requests < n) {
                assert_int_equal(s, TG_OK);
                a.fail_at = 0;
            }
        }
    }
}

static tg_status open_one(tg_context *ctx, int which) {
    static const char *const paths[] = { "test/golden/lm/bert.zip", "test/golden/lm/llama",
                                         "test/golden/lm/mlx4",
                                         "test/golden/lm/qwen2-split-00001-of-00004.gguf" };
    tg_model *model = NULL;
    tg_status s = which % 2 ? tg_context_pack_cache(ctx, "build/kept") : TG_OK;
    if (s == TG_OK) s = tg_model_open(ctx, paths[which / 2], &model);
    tg_model_free(model);
    return s;
}

/* No half of a file is left, either: what has the name is whole, and temporary ones are gone. */
static tg_status convert_one(tg_context *ctx, int which) {
    static const struct {
        const char *in, *out;
        tg_file_kind kind;
        tg_weight_type type;
    } all[] = { { "test/golden/lm/bert.zip", CONVERTED "/a.gguf", TG_FILE_GGUF, TG_WEIGHT_F16 },
                { "test/golden/lm/qwen2", CONVERTED "/a.tinygpt", TG_FILE_V3, TG_WEIGHT_Q4_0 },
                { "build/words.gguf", CONVERTED "/folder", TG_FILE_FOLDER, TG_WEIGHT_BF16 } };
    tg_convert_report r;
    const tg_status s =
        tg_model_convert(ctx, all[which].in, all[which].out, all[which].kind, all[which].type, &r);
    DIR *d = opendir(CONVERTED);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));)
        if (strstr(e->d_name, ".tmp")) fail_msg("%s is left", e->d_name);
    closedir(d);
    return s;
}

static void no_memory(void **state) {
    (void)state;
    for (int i = 0; i < 8; i++) every_request_fails(open_one, i, 1);
    assert_int_equal(system("rm -r build/kept"), 0);
}

static void no_memory_to_convert(void **state) {
    (void)state;
    tg_context *ctx;
    tg_convert_report r;
    assert_int_equal(tg_context_new(NULL, &ctx), TG_OK);
    assert_int_equal(tg_model_convert(ctx, "test/golden/lm/bert.zip", "build/words.gguf",
                                      TG_FILE_GGUF, TG_WEIGHT_F32, &r),
                     TG_OK);
    tg_context_free(ctx);
    mkdir(CONVERTED, 0777);
    for (int i = 0; i < 3; i++) every_request_fails(convert_one, i, 7);
    assert_int_equal(system("rm -r " CONVERTED " build/words.gguf"), 0);
}

int main(void) {
    /* shrinking comes first: after the test that opens the first file, cmocka takes the handler of
     * the signal away. */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shrinking),
        cmocka_unit_test(configurations),
        cmocka_unit_test(tensors),
        cmocka_unit_test(files),
        cmocka_unit_test(zips),
        cmocka_unit_test(claims),
        cmocka_unit_test(parts),
        cmocka_unit_test(no_memory),
        cmocka_unit_test(no_memory_to_convert),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
