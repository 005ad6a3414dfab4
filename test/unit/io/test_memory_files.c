/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_memory_files.c - files in memory are to whatever opens files what the same ones on the disk
 * are: models of each format, folders, texts, tokenizers.
 */
#include "engine_util.h"

typedef struct kept {
    char *bytes;
    size_t n;
    tg_memory_file *file;
} kept;

static kept keep(tg_context *ctx, const char *path, const char *name) {
    kept k = { .n = 0 };
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END)) fail_msg("%s: cannot be read", path);
    k.n = (size_t)ftell(f);
    rewind(f);
    k.bytes = malloc(k.n + 1);
    assert_int_equal(fread(k.bytes, 1, k.n, f), k.n);
    fclose(f);
    OK(ctx, tg_memory_file_new(ctx, name, k.bytes, k.n, &k.file));
    return k;
}

static void drop(kept *k) {
    tg_memory_file_free(k->file);
    free(k->bytes);
}

static float *logits_of(tg_context *ctx, const char *path, size_t *n) {
    const int32_t ids[] = { 3, 41, 0, 12, 12 };
    tg_model *m;
    tg_session *s;
    tg_model_info info;
    const float *logits;
    OK(ctx, tg_model_open(ctx, path, &m));
    OK(ctx, tg_model_get_info(m, &info));
    OK(ctx, tg_session_new(ctx, m, 16, &s));
    OK(ctx, tg_session_eval(s, ids, 5, &logits));
    *n = (size_t)info.config.vocab;
    float *copy = malloc(*n * sizeof *copy);
    memcpy(copy, logits, *n * sizeof *copy);
    tg_session_free(s);
    tg_model_free(m);
    return copy;
}

static void same(tg_context *ctx, const char *disk, const char *memory) {
    size_t n, m;
    float *a = logits_of(ctx, disk, &n), *b = logits_of(ctx, memory, &m);
    assert_int_equal(n, m);
    assert_memory_equal(a, b, n * sizeof *a);
    free(a);
    free(b);
}

#define LM  "test/golden/lm/"
#define OWN "build/test/memory.tinygpt"

static void models(void **state) {
    (void)state;
    static const tg_model_config tiny = { 1, 16, 2, 16, 256, 64 };
    tg_context *ctx = open_context(2, NULL, NULL);
    tg_model *own;
    OK(ctx, tg_context_pack_cache(ctx, "build/test/memory.cache"));
    OK(ctx, tg_model_new(ctx, &tiny, 1, &own));
    OK(ctx, tg_model_save(own, OWN, TG_FILE_V3));
    tg_model_free(own);
    static const struct {
        const char *disk, *name;
    } files[] = { { LM "llama.gguf", "llama.gguf" },
                  { LM "gemma3.zip", "a/zip" },
                  { OWN, "own" },
                  /* another model under a name that was there: nothing is remembered of it */
                  { LM "qwen3.gguf", "llama.gguf" } };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        kept k = keep(ctx, files[i].disk, files[i].name);
        same(ctx, files[i].disk, tg_memory_file_path(k.file));
        OK(ctx, tg_file_check(ctx, tg_memory_file_path(k.file)));
        drop(&k);
    }
    tg_context_free(ctx);
}

/* Two parts with an index, and a config.json: a folder is where its files are. */
static void folders(void **state) {
    (void)state;
    static const char *const names[] = { "config.json", "model.safetensors.index.json",
                                         "model-00001-of-00002.safetensors",
                                         "model-00002-of-00002.safetensors" };
    enum { N = sizeof names / sizeof *names };
    tg_context *ctx = open_context(2, NULL, NULL);
    kept k[N];
    for (int i = 0; i < N; i++) {
        char disk[96], name[96];
        snprintf(disk, sizeof disk, LM "llama/%s", names[i]);
        snprintf(name, sizeof name, "folder/llama/%s", names[i]);
        k[i] = keep(ctx, disk, name);
    }
    same(ctx, LM "llama", "memory:folder/llama");
    tg_memory_file_free(k[N - 1].file);
    k[N - 1].file = NULL;
    tg_model *m = NULL;
    assert_int_equal(tg_model_open(ctx, "memory:folder/llama", &m), TG_E_IO);
    assert_non_null(strstr(tg_context_error(ctx), names[N - 1]));
    for (int i = 0; i < N; i++) drop(&k[i]);
    tg_context_free(ctx);
}

static void texts_and_tokenizers(void **state) {
    (void)state;
    tg_context *ctx = open_context(1, NULL, NULL);
    tg_text *text;
    tg_tokenizer *tok;
    kept k = keep(ctx, "test/golden/lm/bert.zip", "vocabulary");
    OK(ctx, tg_tokenizer_open(ctx, "memory:vocabulary", &tok));
    assert_true(tg_tokenizer_count(tok) > 0);
    tg_tokenizer_free(tok);
    OK(ctx, tg_text_open(ctx, "memory:vocabulary", &text));
    assert_int_equal(tg_text_bytes(text), k.n);
    tg_text_free(text);
    drop(&k);
    tg_context_free(ctx);
}

static void refused(void **state) {
    (void)state;
    tg_context *ctx = open_context(1, NULL, NULL);
    tg_memory_file *file, *other;
    tg_model *m = NULL;
    char longest[1100];
    memset(longest, 'x', sizeof longest);
    longest[1025] = '\0';
    OK(ctx, tg_memory_file_new(ctx, "twice", "ab", 2, &file));
    assert_int_equal(tg_memory_file_new(ctx, "twice", "cd", 2, &other), TG_E_ARG);
    assert_non_null(strstr(tg_context_error(ctx), "memory:twice: want a name that no other"));
    assert_null(other);
    assert_int_equal(tg_memory_file_new(ctx, "", "cd", 2, &other), TG_E_ARG);
    assert_int_equal(tg_memory_file_new(ctx, longest, "cd", 2, &other), TG_E_ARG);
    assert_int_equal(tg_memory_file_new(ctx, "null", NULL, 2, &other), TG_E_ARG);
    assert_int_equal(tg_memory_file_new(ctx, NULL, "cd", 2, &other), TG_E_ARG);
    OK(ctx, tg_memory_file_new(ctx, "empty", NULL, 0, &other));
    assert_true(tg_model_open(ctx, "memory:empty", &m) < 0);
    assert_true(tg_model_open(ctx, "memory:twice", &m) < 0);
    tg_memory_file_free(other);
    tg_memory_file_free(file);
    tg_memory_file_free(NULL);
    assert_string_equal(tg_memory_file_path(NULL), "");
    assert_int_equal(tg_model_open(ctx, "memory:twice", &m), TG_E_IO);
    assert_non_null(strstr(tg_context_error(ctx), "memory:twice"));
    tg_context_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models),
        cmocka_unit_test(folders),
        cmocka_unit_test(texts_and_tokenizers),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
