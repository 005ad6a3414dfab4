/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_session.c - what a session keeps: windows in rings, conversations that change, its file.
 *
 * The model is the tiny Gemma of test/golden/lm with another window and context in its file, as
 * tools/oracle/lm.py computes test/golden/lm/gemma3_long.txt. Layers with a window of 300 then keep
 * 832 positions, and the prompts are longer.
 */
#include "tinygpt.h"

#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <sys/mman.h>
#include <unistd.h>

#include "base/codec/crc.h"
#include "engine/session.h"
#include "fail_alloc.h"
#include "io/reader.h"
#include "ops/attention/cache/kv_row.h"

enum { V = 48, LONG = 1500, LENGTHS = 3, WINDOW = 300, CTX = 2048 };

#define MODEL "build/long.gguf"
#define SAVED "build/test.session"

static int32_t ids[LONG];
static struct {
    int n;
    double logits[V];
} golden[LENGTHS];

/* Replaces the number of a key, a u32 behind its name and type. */
static void set_number(char *bytes, size_t n_bytes, const char *key, uint32_t value) {
    char *at = memmem(bytes, n_bytes, key, strlen(key));
    assert_non_null(at);
    memcpy(at + strlen(key) + 4, &value, sizeof value);
}

static void write_file(const char *path, const void *bytes, size_t n) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    fclose(f);
}

static size_t read_file(const char *path, char *bytes, size_t room) {
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    const size_t n = fread(bytes, 1, room, f);
    fclose(f);
    assert_true(n < room);
    return n;
}

static int prepare(void **state) {
    static char bytes[1 << 18];
    (void)state;
    const size_t n = read_file("test/golden/lm/gemma3.gguf", bytes, sizeof bytes);
    set_number(bytes, n, "gemma3.attention.sliding_window", WINDOW);
    set_number(bytes, n, "gemma3.context_length", CTX);
    write_file(MODEL, bytes, n);
    for (int i = 0; i < LONG; i++) ids[i] = (7 * i * i + 3 * i + 1) % V;
    FILE *f = fopen("test/golden/lm/gemma3_long.txt", "r");
    assert_non_null(f);
    for (int p = 0; p < LENGTHS; p++) {
        assert_int_equal(fscanf(f, "%d", &golden[p].n), 1);
        for (int i = 0; i < V; i++) assert_int_equal(fscanf(f, "%lf", &golden[p].logits[i]), 1);
    }
    fclose(f);
    return 0;
}

static int clean(void **state) {
    (void)state;
    remove(MODEL);
    remove(SAVED);
    return 0;
}

typedef struct opened {
    tg_context *ctx;
    tg_model *model;
} opened;

static opened open_file(const char *path) {
    opened o;
    tg_context_options options = tg_context_options_default();
    options.threads = 2;
    assert_int_equal(tg_context_new(&options, &o.ctx), TG_OK);
    if (tg_model_open(o.ctx, path, &o.model) != TG_OK) fail_msg("%s", tg_context_error(o.ctx));
    return o;
}

static void close_file(opened *o) {
    tg_model_free(o->model);
    tg_context_free(o->ctx);
}

static tg_session *session_of(const opened *o, int kv) {
    tg_session *s;
    assert_int_equal(tg_session_new_kv(o->ctx, o->model, 0, (tg_kv_type)kv, &s), TG_OK);
    return s;
}

/* ids [first, first + n) in calls of `piece`; out [V], or NULL. */
static void feed(tg_session *s, int first, int n, int piece, float *out) {
    const float *logits = NULL;
    for (int i = first; i < first + n; i += piece) {
        const int k = first + n - i < piece ? first + n - i : piece;
        assert_int_equal(tg_session_eval(s, ids + i, (size_t)k, &logits), TG_OK);
    }
    if (out) memcpy(out, logits, V * sizeof *out);
}

/* What a session that was never used before says of the first n tokens. */
static void fresh(const opened *o, int kv, int n, float *out) {
    tg_session *s = session_of(o, kv);
    feed(s, 0, n, n, out);
    tg_session_free(s);
}

static double error_of(const float *logits, const double *want) {
    double worst = 0, largest = 0;
    for (int i = 0; i < V; i++) {
        worst = fmax(worst, fabs((double)logits[i] - want[i]));
        largest = fmax(largest, fabs(want[i]));
    }
    return worst / (1 + largest);
}

/* --------------------------------------------------------------------------------------- rings */

/* The numbers of transformers, and the same bits in pieces of any size. */
static void windows_in_rings(void **state) {
    (void)state;
    static const double most[] = { 1e-4, 2e-3, 5e-2 };
    static const int pieces[] = { 1, 7, 32, 100, 513 };
    opened o = open_file(MODEL);
    for (int kv = TG_KV_F32; kv <= TG_KV_INT8; kv++) {
        float whole[V], cut[V];
        for (int p = 0; p < LENGTHS; p++) {
            fresh(&o, kv, golden[p].n, whole);
            const double error = error_of(whole, golden[p].logits);
            if (!(error <= most[kv])) fail_msg("kv %d length %d: error %g", kv, golden[p].n, error);
        }
        for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
            tg_session *s = session_of(&o, kv);
            feed(s, 0, LONG, pieces[i], cut);
            assert_memory_equal(whole, cut, sizeof whole);
            tg_session_free(s);
        }
    }
    close_file(&o);
}

/* The forecast: one layer of six keeps all, the others 832 positions. */
static int gather(void *user, const char *bytes, size_t n) {
    strncat(user, bytes, n);
    return 0;
}

static void what_info_says(void **state) {
    (void)state;
    static char text[1 << 16];
    opened o = open_file(MODEL);
    const int rows = 2 * (2048 + 5 * 832); /* of 16 numbers; of bytes, with a scale */
    char want[128];
    text[0] = '\0';
    assert_int_equal(tg_file_info(o.ctx, MODEL, true, gather, text), TG_OK);
    snprintf(want, sizeof want, "{\"tokens\":2048,\"bytes\":%d,\"bytes_f16\":%d,\"bytes_int8\":%d}",
             rows * 16 * 4, rows * 16 * 2, rows * (16 + 4));
    if (!strstr(text, want)) fail_msg("no %s in %.2000s", want, text);
    close_file(&o);
}

/* Back to where the window is in the ring still, and to where it is not. */
static void going_back(void **state) {
    (void)state;
    static const int to[] = { 1499, 1400, 968, 967, 966, 299, 1, 0 };
    opened o = open_file(MODEL);
    for (size_t i = 0; i < sizeof to / sizeof *to; i++) {
        const int n = to[i];
        float want[V], have[V];
        tg_session *s = session_of(&o, TG_KV_F32);
        feed(s, 0, LONG, LONG, NULL);
        assert_int_equal(tg_session_rewind(s, (size_t)n), TG_OK);
        /* 668 positions are lost, and the window needs 299 before n. */
        assert_int_equal(tg_session_tokens(s), n);
        assert_int_equal(tg_session_held(s), n >= 668 + 299 ? n : 0);
        feed(s, n, n == LONG - 1 ? 1 : 33, 20, have);
        assert_int_equal(tg_session_held(s), tg_session_tokens(s));
        fresh(&o, TG_KV_F32, n == LONG - 1 ? LONG : n + 33, want);
        assert_memory_equal(want, have, sizeof want);
        tg_session_free(s);
    }
    close_file(&o);
}

/* A long call that is refused in its middle has overwritten what the ring had before. */
static void a_call_that_is_abandoned(void **state) {
    (void)state;
    opened o = open_file(MODEL);
    float want[V], have[V];
    tg_session *s = session_of(&o, TG_KV_F32);
    tg_job *job;
    feed(s, 0, 400, 400, NULL);
    assert_int_equal(tg_session_eval_job(s, ids + 400, LONG - 400, &job), TG_OK);
    while (tg_job_poll(job, 1e-6) == TG_PENDING && tg_session_tokens(s) < 1300) {
    }
    tg_job_free(job);
    assert_int_equal(tg_session_tokens(s), 400);
    assert_int_equal(tg_session_held(s), 0);
    feed(s, 400, 10, 10, have);
    fresh(&o, TG_KV_F32, 410, want);
    assert_memory_equal(want, have, sizeof want);
    tg_session_free(s);
    close_file(&o);
}

/* ------------------------------------------------------------------------- short convolutions */

/* Of what they sum over they keep 576 positions, and the next one sees two: the same bits in pieces
 * of any size, back to where those two are still and to where they are not, and from a file. */
static void short_convolutions(void **state) {
    (void)state;
    static char bytes[1 << 18];
    static const int pieces[] = { 1, 33, 513 }, to[] = { LONG - 1, 1300, 926, 925, 40, 1 };
    const size_t n_bytes = read_file("test/golden/lm/lfm2.gguf", bytes, sizeof bytes);
    set_number(bytes, n_bytes, "lfm2.context_length", CTX);
    write_file(MODEL ".conv", bytes, n_bytes);
    opened o = open_file(MODEL ".conv");
    float want[V], have[V];
    for (int kv = TG_KV_F32; kv <= TG_KV_INT8; kv++) {
        fresh(&o, kv, LONG, want);
        for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
            tg_session *s = session_of(&o, kv);
            feed(s, 0, LONG, pieces[i], have);
            assert_memory_equal(want, have, sizeof want);
            tg_session_free(s);
        }
    }
    for (size_t i = 0; i < sizeof to / sizeof *to; i++) {
        tg_session *s = session_of(&o, TG_KV_F16), *copy = session_of(&o, TG_KV_F16);
        feed(s, 0, LONG, LONG, NULL);
        assert_int_equal(tg_session_save(s, SAVED, NULL, 0), TG_OK);
        assert_int_equal(tg_session_load(copy, SAVED, NULL, NULL), TG_OK);
        for (int k = 0; k < 2; k++) {
            tg_session *one = k ? copy : s;
            assert_int_equal(tg_session_rewind(one, (size_t)to[i]), TG_OK);
            assert_int_equal(tg_session_held(one), to[i] >= 926 ? to[i] : 0);
            feed(one, to[i], 1, 1, have);
            fresh(&o, TG_KV_F16, to[i] + 1, want);
            assert_memory_equal(want, have, sizeof want);
        }
        tg_session_free(copy);
        tg_session_free(s);
    }
    close_file(&o);
    remove(MODEL ".conv");
}

/* ------------------------------------------------------------------------------------- states */

/* States cannot be taken back, and a few of them stay: behind each long run, before the last token
 * of a feed, and the newest. Going back is going on from the newest one that is not beyond. */
static void states_of(const char *file, const char *context) {
    static char bytes[1 << 18];
    static const int pieces[] = { 1, 33, 513 };
    static const int to[][2] = { { LONG - 1, LONG - 1 }, { 1400, 1024 }, { 1024, 1024 },
                                 { 1023, 512 },          { 511, 0 },     { 1, 0 } };
    const size_t n_bytes = read_file(file, bytes, sizeof bytes);
    set_number(bytes, n_bytes, context, CTX);
    write_file(MODEL ".states", bytes, n_bytes);
    opened o = open_file(MODEL ".states");
    float want[V], have[V];
    size_t same;
    fresh(&o, TG_KV_F32, LONG, want);
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        tg_session *s = session_of(&o, TG_KV_F32);
        feed(s, 0, LONG, pieces[i], have);
        assert_memory_equal(want, have, sizeof want);
        tg_session_free(s);
    }
    tg_session *s = session_of(&o, TG_KV_F32), *copy = session_of(&o, TG_KV_F32);
    for (size_t i = 0; i < sizeof to / sizeof *to; i++) {
        const int n = to[i][0];
        assert_int_equal(tg_session_rewind(s, 0), TG_OK);
        feed(s, 0, LONG, LONG, NULL);
        assert_int_equal(tg_session_rewind(s, (size_t)n), TG_OK);
        assert_int_equal(tg_session_held(s), to[i][1]);
        feed(s, n, 1, 1, have);
        assert_int_equal(tg_session_held(s), n + 1);
        fresh(&o, TG_KV_F32, n + 1, want);
        assert_memory_equal(want, have, sizeof want);
    }
    /* Other tokens behind a place that is gone back to: nothing of the old ones is found again. */
    assert_int_equal(tg_session_rewind(s, 0), TG_OK);
    feed(s, 0, 600, 600, NULL);
    assert_int_equal(tg_session_reuse(s, ids, 600, &same), TG_OK);
    assert_int_equal(same, 599);
    assert_int_equal(tg_session_held(s), 599);
    feed(s, 599, 1, 1, NULL);
    feed(s, 0, 40, 1, NULL); /* an answer */
    assert_int_equal(tg_session_rewind(s, 600), TG_OK);
    assert_int_equal(tg_session_held(s), 599);
    feed(s, 600, 40, 40, have);
    fresh(&o, TG_KV_F32, 640, want);
    assert_memory_equal(want, have, sizeof want);
    /* A file has the newest state alone. */
    assert_int_equal(tg_session_save(s, SAVED, NULL, 0), TG_OK);
    assert_int_equal(tg_session_load(copy, SAVED, NULL, NULL), TG_OK);
    for (int k = 0; k < 2; k++) {
        feed(k ? copy : s, 640, 5, 5, have);
        fresh(&o, TG_KV_F32, 645, want);
        assert_memory_equal(want, have, sizeof want);
    }
    assert_int_equal(tg_session_rewind(copy, 639), TG_OK);
    assert_int_equal(tg_session_held(copy), 0);
    feed(copy, 639, 6, 6, have);
    assert_memory_equal(want, have, sizeof want);
    tg_session_free(copy);
    tg_session_free(s);
    close_file(&o);
    remove(MODEL ".states");
}

static void states(void **state) {
    (void)state;
    states_of("test/golden/lm/granite.gguf", "granitehybrid.context_length");
    states_of("test/golden/lm/qwen35.gguf", "qwen35.context_length");
}

/* What a run was filling when it was given up is no state, and the one before it is there still. */
static void states_of_a_call_that_is_abandoned(void **state) {
    (void)state;
    static char bytes[1 << 18];
    const size_t n_bytes = read_file("test/golden/lm/granite.gguf", bytes, sizeof bytes);
    set_number(bytes, n_bytes, "granitehybrid.context_length", CTX);
    write_file(MODEL ".states", bytes, n_bytes);
    opened o = open_file(MODEL ".states");
    float want[V], have[V];
    tg_session *s = session_of(&o, TG_KV_F32);
    tg_job *job;
    feed(s, 0, 400, 400, NULL);
    assert_int_equal(tg_session_eval_job(s, ids + 400, 500, &job), TG_OK);
    assert_int_equal(tg_job_poll(job, 1e-6), TG_PENDING);
    tg_job_free(job);
    assert_int_equal(tg_session_tokens(s), 400);
    assert_int_equal(tg_session_held(s), 400);
    feed(s, 400, 10, 10, have);
    fresh(&o, TG_KV_F32, 410, want);
    assert_memory_equal(want, have, sizeof want);
    tg_session_free(s);
    close_file(&o);
    remove(MODEL ".states");
}

/* ---------------------------------------------------------------------------- conversations */

static void a_conversation_that_changes(void **state) {
    (void)state;
    opened o = open_file(MODEL);
    tg_session *s = session_of(&o, TG_KV_F32);
    size_t same = 99;
    float want[V], have[V];
    int32_t other[64];
    memcpy(other, ids, sizeof other);
    other[40] = (ids[40] + 1) % V;
    assert_int_equal(tg_session_reuse(s, ids, 64, &same), TG_OK);
    assert_int_equal(same, 0);
    feed(s, 0, 64, 64, want);
    assert_int_equal(tg_session_reuse(s, other, 64, &same), TG_OK);
    assert_int_equal(same, 40);
    assert_int_equal(tg_session_tokens(s), 40);
    assert_int_equal(tg_session_eval(s, other + same, 64 - same, NULL), TG_OK);
    /* A beginning, and the whole: the last token is fed again. */
    assert_int_equal(tg_session_reuse(s, other, 30, &same), TG_OK);
    assert_int_equal(same, 29);
    assert_int_equal(tg_session_reuse(s, ids, 64, &same), TG_OK);
    assert_int_equal(same, 29);
    feed(s, 29, 35, 35, have);
    assert_memory_equal(want, have, sizeof want);
    assert_int_equal(tg_session_reuse(s, ids, 0, &same), TG_OK);
    assert_int_equal(same, 0);
    tg_session_free(s);
    close_file(&o);
}

/* --------------------------------------------------------------------------------------- files */

static int take_note(void *user, const char *bytes, size_t n) {
    strncat(user, bytes, n);
    return 0;
}

static int refuse_note(void *user, const char *bytes, size_t n) {
    (void)user, (void)bytes, (void)n;
    return 1;
}

/* Saved after n tokens and loaded into another session, it goes on to the same bits. */
static void saved_and_loaded(void **state) {
    (void)state;
    static const int lengths[] = { 0, 1, 299, 900, 1499 };
    opened o = open_file(MODEL), again = open_file(MODEL);
    for (int kv = TG_KV_F32; kv <= TG_KV_INT8; kv++) {
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            char note[64] = "";
            float want[V], have[V];
            const int n = lengths[i];
            tg_session *a = session_of(&o, kv), *b = session_of(&again, kv);
            feed(a, 0, n, 512, NULL);
            feed(b, 3, 1200, 512, NULL);
            assert_int_equal(tg_session_save(a, SAVED, "seed 7", 6), TG_OK);
            if (tg_session_load(b, SAVED, take_note, note) != TG_OK)
                fail_msg("%s", tg_context_error(again.ctx));
            assert_string_equal(note, "seed 7");
            assert_int_equal(tg_session_tokens(b), n);
            if (n > 0)
                assert_memory_equal(tg_session_logits(a), tg_session_logits(b), V * sizeof(float));
            feed(a, n, 1, 1, want);
            feed(b, n, 1, 1, have);
            assert_memory_equal(want, have, sizeof want);
            /* What was lost is known to be. */
            assert_int_equal(tg_session_rewind(b, (size_t)n / 2), TG_OK);
            assert_int_equal(tg_session_held(b), n == 1499 ? 0 : n / 2);
            tg_session_free(a);
            tg_session_free(b);
        }
    }
    close_file(&o);
    close_file(&again);
}

/* The log's newest warning. */
static char warned[512];
static void on_log(void *user, int level, const char *text) {
    (void)user;
    if (level == 1) snprintf(warned, sizeof warned, "%s", text);
}

/* A session that is loaded with another class, or other levers that change bits, says so with both
 * values; one of before that was kept is loaded as ever. */
static void other_settings_are_said(void **state) {
    (void)state;
    static const struct {
        const char *isa, *levers, *wanted[3];
    } rows[] = {
        { NULL, NULL, { "" } },
        { NULL, "-threads,-recompute,-huge_pages,-blocked_gemm", { "" } },
        { NULL, "-int8_activations", { "lever int8_activations on (here: off)" } },
        { NULL, "-simd", { "lever simd on (here: off)", "the session", "not to the same bits" } },
        { "scalar",
          "-flash_attention",
          { "determinism class fused (here: plain)", "lever flash_attention on (here: off)" } },
    };
    opened o = open_file(MODEL);
    tg_session *s = session_of(&o, TG_KV_F32);
    feed(s, 0, 20, 20, NULL);
    assert_int_equal(tg_session_save(s, SAVED, "x", 1), TG_OK);
    tg_session_free(s);
    const bool fused = strcmp(tg_context_isa(o.ctx), "scalar") != 0;
    close_file(&o);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tg_context_options with = tg_context_options_default();
        with.isa = rows[i].isa;
        with.levers = rows[i].levers;
        with.log = on_log;
        opened other;
        if (rows[i].isa && !fused) continue;
        assert_int_equal(tg_context_new(&with, &other.ctx), TG_OK);
        assert_int_equal(tg_model_open(other.ctx, MODEL, &other.model), TG_OK);
        tg_session *loaded = session_of(&other, TG_KV_F32);
        warned[0] = '\0';
        assert_int_equal(tg_session_load(loaded, SAVED, NULL, NULL), TG_OK);
        for (int k = 0; k < 3 && rows[i].wanted[k]; k++)
            if (!strstr(warned, rows[i].wanted[k]) || (!rows[i].wanted[k][0] && warned[0]))
                fail_msg("row %zu: want \"%s\", have \"%s\"", i, rows[i].wanted[k], warned);
        tg_session_free(loaded);
        close_file(&other);
    }
}

/* Files of version 1: without the eleventh field and what it is the length of. */
static void sessions_of_version_1(void **state) {
    (void)state;
    static char bytes[1 << 20];
    float want[V], have[V];
    opened o = open_file(MODEL);
    tg_session *s = session_of(&o, TG_KV_F32);
    feed(s, 0, 20, 20, NULL);
    assert_int_equal(tg_session_save(s, SAVED, "x", 1), TG_OK);
    size_t n = read_file(SAVED, bytes, sizeof bytes);
    uint32_t more;
    memcpy(&more, bytes + 48, sizeof more);
    assert_true(more > 10 && more < 200);
    bytes[6] = '1';
    n -= 4 + more + 4;
    memmove(bytes + 48, bytes + 52 + more, n - 48);
    const uint32_t crc = tg_crc32c(0, bytes, n);
    memcpy(bytes + n, &crc, sizeof crc);
    write_file(SAVED, bytes, n + 4);
    tg_session *old = session_of(&o, TG_KV_F32);
    if (tg_session_load(old, SAVED, NULL, NULL) != TG_OK) fail_msg("%s", tg_context_error(o.ctx));
    feed(s, 20, 1, 1, want);
    feed(old, 20, 1, 1, have);
    assert_memory_equal(want, have, sizeof want);
    tg_session_free(s);
    tg_session_free(old);
    close_file(&o);
}

/* The session is as it was, and the message says why. */
static void refused(const opened *o, tg_session *s, tg_status want, const char *words) {
    const size_t before = tg_session_tokens(s);
    assert_int_equal(tg_session_load(s, SAVED, NULL, NULL), want);
    if (!strstr(tg_context_error(o->ctx), words)) fail_msg("%s", tg_context_error(o->ctx));
    assert_int_equal(tg_session_tokens(s), before);
}

static void files_that_are_refused(void **state) {
    (void)state;
    static char bytes[1 << 20], changed[1 << 20];
    opened o = open_file(MODEL), other = open_file("test/golden/lm/llama.gguf");
    tg_session *s = session_of(&o, TG_KV_F32), *half = session_of(&o, TG_KV_F16), *small, *foreign;
    foreign = session_of(&other, TG_KV_F32);
    assert_int_equal(tg_session_new(o.ctx, o.model, 10, &small), TG_OK);
    feed(s, 0, 20, 20, NULL);
    assert_int_equal(tg_session_save(s, SAVED, "x", 1), TG_OK);
    refused(&o, half, TG_E_SHAPE, "a cache of f16, as this session has, have one of f32");
    refused(&o, small, TG_E_FULL, "room for 20 tokens");
    refused(&other, foreign, TG_E_SHAPE, "another model");
    assert_int_equal(tg_session_load(s, "build/none", NULL, NULL), TG_E_IO);
    assert_int_equal(tg_session_save(s, "build/none/x", NULL, 0), TG_E_IO);
    assert_int_equal(tg_session_load(s, SAVED, refuse_note, NULL), TG_STOPPED);
    assert_int_equal(tg_session_tokens(s), 0);
    feed(s, 0, 20, 20, NULL);
    /* Weights that differ in one tensor. */
    const size_t n_model = read_file(MODEL, bytes, sizeof bytes);
    memset(bytes + n_model - 2000, 1, 500);
    write_file("build/tuned.gguf", bytes, n_model);
    opened tuned = open_file("build/tuned.gguf");
    tg_session *of_tuned = session_of(&tuned, TG_KV_F32);
    refused(&tuned, of_tuned, TG_E_SHAPE, "another model");
    tg_session_free(of_tuned);
    close_file(&tuned);
    remove("build/tuned.gguf");
    /* Cut, or with one byte changed, anywhere. */
    const size_t n = read_file(SAVED, bytes, sizeof bytes);
    uint32_t bits_bytes;
    memcpy(&bits_bytes, bytes + 48, sizeof bits_bytes);
    for (size_t i = 0; i < n; i += i < 400 ? 1 : 997) {
        write_file(SAVED, bytes, i);
        refused(&o, s,
                i < 8                 ? TG_E_FORMAT
                : i < 56 + bits_bytes ? TG_E_FORMAT
                                      : TG_E_CHECKSUM,
                "session");
        memcpy(changed, bytes, n);
        changed[i] ^= 0x40;
        write_file(SAVED, changed, n);
        /* A length that cannot be is seen before the checksum. */
        const bool length = i >= 48 && i < 52;
        refused(&o, s, i < 8 || (length && i > 48) ? TG_E_FORMAT : TG_E_CHECKSUM, "session");
    }
    write_file(SAVED, "tinygpt chat 1\n", 15);
    refused(&o, s, TG_E_FORMAT, "not the file of a session");
    /* A prompt that has to be computed again is not there to be saved. */
    feed(s, 20, 1480, 1480, NULL);
    assert_int_equal(tg_session_rewind(s, 30), TG_OK);
    assert_int_equal(tg_session_save(s, SAVED, NULL, 0), TG_E_ARG);
    tg_session_free(s);
    tg_session_free(half);
    tg_session_free(small);
    tg_session_free(foreign);
    close_file(&o);
    close_file(&other);
}

/* Bytes of this process that lie in huge pages. */
static size_t huge_now(void) {
    char line[256];
    size_t kb, bytes = 0;
    FILE *f = fopen("/proc/self/smaps", "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f))
        if (sscanf(line, "AnonHugePages: %zu kB", &kb) == 1) bytes += kb << 10;
    fclose(f);
    return bytes;
}

/* Does this system join pages when it is asked to? */
static bool joins_pages(void) {
    size_t dirty;
    const size_t before = huge_now();
    char *pages = tg_os_pages_new(TG_OS_HUGE_BYTES, true, &dirty);
    tg_os_pages_split(pages, TG_OS_HUGE_BYTES);
    memset(pages, 7, TG_OS_HUGE_BYTES);
    tg_os_pages_join(pages, TG_OS_HUGE_BYTES);
    const bool joined = huge_now() > before;
    tg_os_pages_free(pages, TG_OS_HUGE_BYTES);
    return joined;
}

static size_t resident_bytes(const tg_session *s) {
    const size_t page = tg_os_page_bytes(), n = s->d->cache.block.bytes / page;
    unsigned char *in = calloc(n, 1);
    size_t bytes = 0;
    assert_int_equal(mincore(s->d->cache.block.data, n * page, in), 0);
    for (size_t i = 0; i < n; i++) bytes += in[i] & 1 ? page : 0;
    free(in);
    return bytes;
}

static void seal(char *bytes, size_t n) {
    tg_put_u32((uint8_t *)bytes + n - 4, tg_crc32c(0, bytes, n - 4));
}

/* Whole by its checksum, and not what a session writes: tokens that the model does not have. */
static void files_of_somebody_else(void **state) {
    (void)state;
    static char bytes[1 << 20];
    opened o = open_file(MODEL);
    tg_session *s = session_of(&o, TG_KV_F32);
    feed(s, 0, 20, 20, NULL);
    (void)remove(SAVED); /* another test has damaged it */
    assert_int_equal(tg_session_save(s, SAVED, "x", 1), TG_OK);
    const size_t n = read_file(SAVED, bytes, sizeof bytes);
    char *const at = memmem(bytes, n, ids, 20 * sizeof *ids);
    assert_non_null(at);
    static const int32_t wrong[] = { V, -1, INT32_MAX };
    for (size_t i = 0; i < 3; i++) {
        memcpy(at + 4 * (7 * i), &wrong[i], sizeof *wrong);
        seal(bytes, n);
        write_file(SAVED, bytes, n);
        refused(&o, s, TG_E_RANGE, "want an id below 48");
        memcpy(at + 4 * (7 * i), &ids[7 * i], sizeof *ids);
    }
    seal(bytes, n);
    write_file(SAVED, bytes, n);
    assert_int_equal(tg_session_load(s, SAVED, NULL, NULL), TG_OK);
    tg_session_free(s);
    close_file(&o);
}

/* Whole by its checksum, and with a head that is not this session's, or not the file's. */
static void heads_that_lie(void **state) {
    (void)state;
    enum { SHAPE, WEIGHTS, KV, LAYERS, HEADS, ROW_BYTES, VOCAB, TOKENS, LOST, NOTE_BYTES, BITS };
    static const struct {
        int field;
        uint32_t value; /* instead of what is there, or with MORE: beside it */
        bool more;
        tg_status want;
        const char *words;
    } rows[] = {
        { SHAPE, 1, true, TG_E_SHAPE, "another model" },
        { WEIGHTS, 1, true, TG_E_SHAPE, "another model" },
        { LAYERS, 1, true, TG_E_SHAPE, "another model" },
        { VOCAB, 1, true, TG_E_SHAPE, "another model" },
        { KV, TG_F16, false, TG_E_SHAPE, "a cache of f32, as this session has, have one of f16" },
        { KV, 77, false, TG_E_SHAPE, "have one of int8" },
        { HEADS, 1, true, TG_E_SHAPE, "want a cache of" },
        { ROW_BYTES, 4, true, TG_E_SHAPE, "want a cache of" },
        { TOKENS, INT32_MAX, false, TG_E_FULL, "room for 2147483647 tokens" },
        { TOKENS, 19, false, TG_E_FORMAT, "the sizes in its head" },
        { LOST, 1, false, TG_E_FORMAT, "the sizes in its head" },
        { LOST, 21, false, TG_E_FORMAT, "the sizes in its head" },
        { NOTE_BYTES, 1, true, TG_E_FORMAT, "the sizes in its head" },
        { NOTE_BYTES, UINT32_MAX, false, TG_E_FORMAT, "the sizes in its head" },
        { BITS, 4, true, TG_E_FORMAT, "the sizes in its head" },
        { BITS, UINT32_MAX, false, TG_E_FORMAT, "the file ends too early" },
    };
    static char bytes[1 << 20];
    opened o = open_file(MODEL);
    tg_session *s = session_of(&o, TG_KV_F32);
    feed(s, 0, 20, 20, NULL);
    (void)remove(SAVED);
    assert_int_equal(tg_session_save(s, SAVED, "x", 1), TG_OK);
    const size_t n = read_file(SAVED, bytes, sizeof bytes);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint8_t *const at = (uint8_t *)bytes + 8 + 4 * rows[i].field;
        const uint32_t was = tg_get_u32(at);
        tg_put_u32(at, rows[i].more ? was + rows[i].value : rows[i].value);
        seal(bytes, n);
        write_file(SAVED, bytes, n);
        refused(&o, s, rows[i].want, rows[i].words);
        tg_put_u32(at, was);
    }
    tg_session_free(s);
    close_file(&o);
}

/* How it was computed, told by another version: more than is known here, or less. It is loaded. */
static void bits_of_other_versions(void **state) {
    (void)state;
    enum { AT = 52, LONGER = 400 };
    static char bytes[1 << 20], told[1 << 20];
    opened o = open_file(MODEL);
    tg_session *s = session_of(&o, TG_KV_F32);
    float want[V], have[V];
    feed(s, 0, 20, 20, NULL);
    (void)remove(SAVED);
    assert_int_equal(tg_session_save(s, SAVED, "x", 1), TG_OK);
    const size_t n = read_file(SAVED, bytes, sizeof bytes);
    const uint32_t was = tg_get_u32((const uint8_t *)bytes + 48);
    feed(s, 20, 1, 1, want);
    static const uint32_t lengths[] = { 0, 3, LONGER };
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        const uint32_t length = lengths[i];
        memcpy(told, bytes, AT);
        tg_put_u32((uint8_t *)told + 48, length);
        for (uint32_t k = 0; k < length; k++)
            told[AT + k] = k < was && length > was ? bytes[AT + k] : ',';
        memcpy(told + AT + length, bytes + AT + was, n - AT - was);
        seal(told, n - was + length);
        write_file(SAVED, told, n - was + length);
        if (tg_session_load(s, SAVED, NULL, NULL) != TG_OK)
            fail_msg("%u bytes: %s", (unsigned)length, tg_context_error(o.ctx));
        feed(s, 20, 1, 1, have);
        assert_memory_equal(want, have, sizeof want);
    }
    tg_session_free(s);
    close_file(&o);
}

/* A cache of 16 MiB. A token takes next to nothing of it; two thousand fill its first huge page,
 * which is joined, and the beginning of the second, which is not; no bit of an answer changes. */
static void a_cache_that_grows(void **state) {
    (void)state;
    enum { WIDTH = 128, POSITIONS = 16384, SOME = 2080, BYTES = 256 };
    const tg_model_config config = { 1, WIDTH, 1, POSITIONS, BYTES, 4 * WIDTH };
    static int32_t tokens[SOME];
    static float want[BYTES];
    const bool joins = joins_pages();
    if (!joins) print_message("          this system joins no pages\n");
    for (int i = 0; i < SOME; i++) tokens[i] = (5 * i * i + i) % BYTES;
    for (int turn = 0; turn < 2; turn++) { /* small pages alone; as it is */
        tg_context_options o = tg_context_options_default();
        tg_context *ctx;
        tg_model *m;
        tg_session *s;
        const float *logits;
        o.levers = turn ? NULL : "-huge_pages";
        assert_int_equal(tg_context_new(&o, &ctx), TG_OK);
        assert_int_equal(tg_model_new(ctx, &config, 42, &m), TG_OK);
        assert_int_equal(tg_session_new(ctx, m, POSITIONS, &s), TG_OK);
        assert_int_equal(tg_session_eval(s, tokens, 1, NULL), TG_OK);
        assert_in_range(resident_bytes(s), 1, 64 << 10);
        assert_int_equal(tg_session_eval(s, tokens + 1, 600, NULL), TG_OK);
        const size_t before = huge_now(); /* all but the cache has its pages now */
        assert_int_equal(tg_session_eval(s, tokens + 601, SOME - 601, &logits), TG_OK);
        assert_int_equal(huge_now() - before, turn && joins ? TG_OS_HUGE_BYTES : 0);
        if (!turn) memcpy(want, logits, sizeof want);
        assert_memory_equal(logits, want, sizeof want);
        tg_session_free(s);
        tg_model_free(m);
        tg_context_free(ctx);
    }
}

/* A row of a packed cache: whole steps of the largest number's 127th, to the nearest; and where one
 * number is none, none is one, so that it is seen. */
static void rows_of_packed_caches(void **state) {
    (void)state;
    enum { D = 8 };
    const float x[D] = { 127, -127, 0.4f, 0.6f, -0.6f, -0.4f, 126.5f, 0 };
    const float want[D] = { 127, -127, 0, 1, -1, 0, 127, 0 };
    uint8_t row[D + sizeof(float)];
    tg_kv_write(TG_U8, row, x, D);
    for (size_t i = 0; i < D; i++) assert_true(fabsf(tg_kv_at(TG_U8, row, D, i) - want[i]) < 1e-4f);
    static const float bad[] = { NAN, INFINITY, -INFINITY };
    for (size_t k = 0; k < 3; k++) {
        float y[D];
        memcpy(y, x, sizeof y);
        y[3] = bad[k];
        tg_kv_write(TG_U8, row, y, D);
        for (size_t i = 0; i < D; i++) assert_true(isnan(tg_kv_at(TG_U8, row, D, i)));
    }
}

/* To the last place and the last id, and not one further; a refused call changes nothing. */
static void one_too_many(void **state) {
    (void)state;
    const tg_model_config config = { 1, 16, 1, 8, 256, 64 };
    const int32_t tokens[10] = { 1, 2, 3, 4, 5, 6, 7, 255, 9, 10 }, wrong[] = { 256, -1 };
    tg_context *ctx;
    tg_model *m;
    tg_session *s;
    assert_int_equal(tg_context_new(NULL, &ctx), TG_OK);
    assert_int_equal(tg_model_new(ctx, &config, 42, &m), TG_OK);
    assert_int_equal(tg_session_new(ctx, m, 8, &s), TG_OK);
    for (int i = 0; i < 2; i++)
        assert_int_equal(tg_session_eval(s, wrong + i, 1, NULL), TG_E_RANGE);
    assert_int_equal(tg_session_eval(s, tokens, 9, NULL), TG_E_FULL);
    assert_int_equal(tg_session_tokens(s), 0);
    assert_int_equal(tg_session_eval(s, tokens, 5, NULL), TG_OK);
    assert_int_equal(tg_session_eval(s, tokens + 5, 4, NULL), TG_E_FULL);
    assert_int_equal(tg_session_tokens(s), 5);
    assert_int_equal(tg_session_eval(s, tokens + 5, 3, NULL), TG_OK);
    assert_int_equal(tg_session_eval(s, tokens + 8, 1, NULL), TG_E_FULL);
    assert_int_equal(tg_session_tokens(s), 8);
    tg_session_free(s);
    tg_model_free(m);
    tg_context_free(ctx);
}

/* Sliding keeps the newest half, the smaller one of an odd number, as a session that was fed just
 * that: a context of 15 keeps the last 7. */
static void sliding_keeps_the_newest_half(void **state) {
    (void)state;
    const tg_model_config config = { 2, 32, 2, 16, 256, 128 };
    static const struct {
        int32_t ctx, fed, kept;
    } cases[] = { { 15, 15, 7 }, { 16, 16, 8 }, { 15, 13, 6 }, { 16, 9, 4 }, { 15, 2, 1 } };
    tg_context *ctx;
    tg_model *m;
    int32_t tokens[16];
    for (int32_t i = 0; i < 16; i++) tokens[i] = (7 * i * i + 3 * i) % 251;
    assert_int_equal(tg_context_new(NULL, &ctx), TG_OK);
    assert_int_equal(tg_model_new(ctx, &config, 42, &m), TG_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int32_t fed = cases[i].fed, kept = cases[i].kept;
        tg_session *slid, *fresh;
        const float *have, *want;
        assert_int_equal(tg_session_new(ctx, m, cases[i].ctx, &slid), TG_OK);
        assert_int_equal(tg_session_new(ctx, m, cases[i].ctx, &fresh), TG_OK);
        assert_int_equal(tg_session_eval(slid, tokens, (size_t)fed, NULL), TG_OK);
        assert_int_equal(tg_session_slide(slid), TG_OK);
        assert_int_equal(tg_session_tokens(slid), kept);
        assert_int_equal(tg_session_eval(slid, tokens, 1, &have), TG_OK);
        assert_int_equal(tg_session_eval(fresh, tokens + fed - kept, (size_t)kept, NULL), TG_OK);
        assert_int_equal(tg_session_eval(fresh, tokens, 1, &want), TG_OK);
        assert_memory_equal(have, want, 256 * sizeof *want);
        tg_session_free(slid);
        tg_session_free(fresh);
    }
    tg_model_free(m);
    tg_context_free(ctx);
}

/* Whichever request for memory fails while a session is saved or loaded, alone or with all behind
 * it: the session and the file are what they were, and nothing is left. */
static void no_memory(void **state) {
    (void)state;
    static char before[1 << 20], after[1 << 20];
    test_alloc a = { .fail_at = 0 };
    tg_context_options options = tg_context_options_default();
    opened o;
    options.threads = 1;
    options.alloc = test_alloc_fn;
    options.alloc_user = &a;
    assert_int_equal(tg_context_new(&options, &o.ctx), TG_OK);
    assert_int_equal(tg_model_open(o.ctx, MODEL, &o.model), TG_OK);
    tg_session *s = session_of(&o, TG_KV_INT8);
    feed(s, 0, 20, 20, NULL);
    (void)remove(SAVED); /* another test has damaged it */
    assert_int_equal(tg_session_save(s, SAVED, "x", 1), TG_OK);
    const size_t bytes = read_file(SAVED, before, sizeof before);
    feed(s, 20, 5, 5, NULL);
    for (int k = 0; k < 4; k++) {
        tg_status status = TG_E_MEMORY;
        for (size_t n = 1; status == TG_E_MEMORY; n++) {
            const size_t live = a.live_pieces, first = a.requests;
            char note[64] = "";
            a.sticky = k % 2;
            a.fail_at = first + n;
            status = k < 2 ? tg_session_load(s, SAVED, take_note, note)
                           : tg_session_save(s, SAVED, "x", 1);
            a.fail_at = 0;
            if (status == TG_OK) assert_true(a.requests < first + n);
            if (status != TG_OK && status != TG_E_MEMORY) fail_msg("%s", tg_context_error(o.ctx));
            assert_int_equal(a.live_pieces, live);
            assert_int_equal(tg_session_tokens(s), k < 2 && status == TG_OK ? 20 : 25);
            if (status == TG_OK && k >= 2) break;
            assert_int_equal(read_file(SAVED, after, sizeof after), bytes);
            assert_memory_equal(before, after, bytes);
        }
        assert_int_equal(tg_session_rewind(s, 20), TG_OK);
        feed(s, 20, 5, 5, NULL);
        write_file(SAVED, before, bytes);
    }
    tg_session_free(s);
    close_file(&o);
    assert_int_equal(a.live_pieces, 0);
}

/* Sessions that 0.1.0 saved behind these tokens have what is computed from them today. */
static void sessions_of_the_first_release(void **state) {
    (void)state;
    static const int32_t read[] = { 3, 1, 4, 1, 5, 9, 2, 6 };
    enum { N = sizeof read / sizeof *read };
    static const struct {
        const char *model, *session;
        tg_kv_type kv;
    } rows[] = {
        { "lm/tune_llama.zip", "llama_f32", TG_KV_F32 },
        { "lm/tune_llama.zip", "llama_f16", TG_KV_F16 },
        { "lm/tune_llama.zip", "llama_int8", TG_KV_INT8 },
        { "first_release/half.tinygpt", "run", TG_KV_F32 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char path[96];
        tg_model_info info;
        tg_session *loaded, *fresh;
        const float *have, *want;
        snprintf(path, sizeof path, "test/golden/%s", rows[i].model);
        opened o = open_file(path);
        assert_int_equal(tg_model_get_info(o.model, &info), TG_OK);
        assert_int_equal(tg_session_new_kv(o.ctx, o.model, 0, rows[i].kv, &loaded), TG_OK);
        assert_int_equal(tg_session_new_kv(o.ctx, o.model, 0, rows[i].kv, &fresh), TG_OK);
        snprintf(path, sizeof path, "test/golden/first_release/%s.session", rows[i].session);
        if (tg_session_load(loaded, path, NULL, NULL) != TG_OK)
            fail_msg("%s: %s", path, tg_context_error(o.ctx));
        assert_int_equal(tg_session_tokens(loaded), N);
        assert_int_equal(tg_session_eval(fresh, read, N, NULL), TG_OK);
        assert_int_equal(tg_session_eval(loaded, read, 1, &have), TG_OK);
        assert_int_equal(tg_session_eval(fresh, read, 1, &want), TG_OK);
        const size_t bytes = (size_t)info.config.vocab * sizeof *have;
        if (memcmp(have, want, bytes) != 0) fail_msg("%s: it goes on to other bits", path);
        tg_session_free(loaded);
        tg_session_free(fresh);
        close_file(&o);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_in_rings),
        cmocka_unit_test(what_info_says),
        cmocka_unit_test(going_back),
        cmocka_unit_test(a_call_that_is_abandoned),
        cmocka_unit_test(a_conversation_that_changes),
        cmocka_unit_test(short_convolutions),
        cmocka_unit_test(states),
        cmocka_unit_test(states_of_a_call_that_is_abandoned),
        cmocka_unit_test(saved_and_loaded),
        cmocka_unit_test(sessions_of_the_first_release),
        cmocka_unit_test(other_settings_are_said),
        cmocka_unit_test(sessions_of_version_1),
        cmocka_unit_test(files_that_are_refused),
        cmocka_unit_test(files_of_somebody_else),
        cmocka_unit_test(heads_that_lie),
        cmocka_unit_test(bits_of_other_versions),
        cmocka_unit_test(rows_of_packed_caches),
        cmocka_unit_test(one_too_many),
        cmocka_unit_test(sliding_keeps_the_newest_half),
        cmocka_unit_test(a_cache_that_grows),
        cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, prepare, clean);
}
