/* SPDX-License-Identifier: Apache-2.0 */
/*
 * models_test.c - models of files on a GPU: their logits against the CPU's; sessions of a batch,
 * and drafts, against lone sessions without, to the bit.
 *
 * Runs on whatever adapter is found, as gpu_test.c. An argument is a pattern of test names.
 */
#include "../unit/engine_util.h"

#include <math.h>
#include <sys/stat.h>

#include "backend/webgpu/webgpu.h"
#include "base/math.h"
#include "engine/session.h"
#include "runtime/runtime.h"

/* SwiftShader compiles a shader for a second: it goes fewer ways. */
static bool is_slow;

static tg_context *gpu; /* of all tests: what it has compiled stays */
static int on_the_cpu;  /* plans that fell there */

static void count_falls(void *user, int level, const char *text) {
    (void)user;
    (void)level;
    if (strstr(text, "dispatch")) print_message("%s\n", text);
    if (!strstr(text, "runs on the CPU")) return;
    print_message("%s\n", text);
    on_the_cpu++;
}

/* Behind a text that is fed as 20 rows, then 3, then one by one: the likeliest token each time. */
static void logits_along(tg_context *ctx, const char *path, tg_kv_type kv, size_t vocab,
                         float *out) {
    enum { LONG = 20, SHORT = 3, MORE = 6 };
    tg_model *m;
    tg_session *s;
    int32_t ids[LONG + SHORT], next;
    const float *logits;
    OK(ctx, tg_model_open(ctx, path, &m));
    OK(ctx, tg_session_new_kv(ctx, m, 64, kv, &s));
    for (int i = 0; i < LONG + SHORT; i++) ids[i] = (5 * i * i + 3) % (int)vocab;
    OK(ctx, tg_session_eval(s, ids, LONG, NULL));
    OK(ctx, tg_session_eval(s, ids + LONG, SHORT, &logits));
    for (int i = 0;; i++) {
        memcpy(out + (size_t)i * vocab, logits, vocab * sizeof *out);
        if (i == MORE) break;
        next = (7 * i + 11) % (int)vocab;
        OK(ctx, tg_session_eval(s, &next, 1, &logits));
    }
    tg_session_free(s);
    tg_model_free(m);
}

static void want_same_logits(tg_context *cpu, const char *path, tg_kv_type kv) {
    enum { V = 48, N = 7 };
    static float want[N * V], have[N * V];
    on_the_cpu = 0;
    logits_along(cpu, path, kv, V, want);
    logits_along(gpu, path, kv, V, have);
    assert_int_equal(on_the_cpu, 0);
    for (int k = 0; k < N * V; k++)
        if (!(tg_fabs((double)have[k] - (double)want[k]) < 1e-3))
            fail_msg("%s: logit %d: want %g, have %g", path, k, (double)want[k], (double)have[k]);
}

/* Every family, with and without windows, in floats and in whole numbers: on the GPU as on the CPU,
 * whose activations are not rounded here, and no plan leaves the GPU. The first UNLIKE of them have
 * steps that none before them has; a slow adapter leaves the others, which it compiles anew for
 * their shapes alone, to the long tests. */
static void same_logits_of_model_files(void **state) {
    (void)state;
    enum { UNLIKE = 9 };
    static const char *const files[] = {
        "llama.gguf",   "gemma3.gguf",     "gemma2.gguf",   "gpt2.gguf",     "lfm2.gguf",
        "granite.gguf", "qwen35.gguf",     "qwen3moe.gguf", "mlx4",          "llama3.gguf",
        "qwen2.gguf",   "qwen3.gguf",      "phi3.gguf",     "mistral.gguf",  "biases.gguf",
        "smollm3.gguf", "yarn.gguf",       "phi4.gguf",     "olmo2.gguf",    "olmo3.gguf",
        "olmoe.gguf",   "granitemoe.gguf", "falcon.gguf",   "nemotron.gguf", "gemma4.gguf"
    };
    static const struct {
        tg_weight_type type;
        const char *name;
    } packed[] = { { TG_WEIGHT_Q4_0, "build/models_test.q4.gguf" },
                   { TG_WEIGHT_Q8_0, "build/models_test.q8.gguf" } };
    tg_context *cpu = open_context(1, NULL, "-int8_activations");
    const size_t n = is_slow && !getenv("TG_TEST_LONG") ? UNLIKE : sizeof files / sizeof *files;
    const size_t all = n + sizeof packed / sizeof *packed;
    for (size_t i = 0; i < all; i++) {
        char path[64];
        snprintf(path, sizeof path, "test/golden/lm/%s", files[i < n ? i : 0]);
        if (i >= n) {
            tg_convert_report report;
            OK(cpu, tg_context_force(cpu, true));
            OK(cpu, tg_model_convert(cpu, path, packed[i - n].name, TG_FILE_GGUF,
                                     packed[i - n].type, &report));
            snprintf(path, sizeof path, "%s", packed[i - n].name);
        }
        want_same_logits(cpu, path, TG_KV_F32);
    }
    tg_context_free(cpu);
}

/* ------------------------------------------------------------------------------------ batches */

/* A plan that is one dispatch has one workgroup: lavapipe ends loops after 65,535 turns in all,
 * which is no time to wait for another thread of a machine that does other things, too. */
static tg_context *open_on_gpu(const char *levers) {
    tg_context_options o = tg_context_options_default();
    tg_context *ctx;
    o.threads = 1;
    o.device = "webgpu";
    o.levers = levers;
    o.log = count_falls;
    setenv("TG_SINGLE_GROUPS", "1", 1);
    if (tg_context_new(&o, &ctx) != TG_OK) fail_msg("context: %s", tg_context_error(ctx));
    unsetenv("TG_SINGLE_GROUPS");
    return ctx;
}

/* What phases hand on is in one half of the buffer after one token, and in the other one after the
 * next; the half that the next token has is empty, as nothing that is there may be of this one. */
static void want_one_half_empty(tg_context *ctx, const tg_single *one, uint32_t *half) {
    if (*half == one->half) fail_msg("half %u of what is handed on is had twice", *half);
    *half = one->half;
    const size_t n = one->flow_words;
    uint32_t *words = calloc(2 * n, sizeof *words), reading;
    const tg_gpu_piece all = { one->flow, 0, 2 * n * sizeof *words, words };
    tg_gpu *g = tg_webgpu_gpu(ctx->backend);
    assert_int_equal(tg_gpu_read_begin(g, &all, 1, &reading), TG_OK);
    assert_int_equal(tg_gpu_read_end(g, reading, &all, 1), TG_OK);
    size_t full[2] = { 0, 0 };
    for (size_t i = 0; i < 2 * n; i++) full[i / n] += words[i] != 0;
    free(words);
    if (full[1 - *half] != 0 || full[*half] < n / 4)
        fail_msg("of %zu words that are handed on the halves have %zu and %zu", n, full[0],
                 full[1]);
}

enum { ROUNDED_V = 48, ROUNDED_N = 6 };
/* Of tokens one after the other; the dispatches of a token. */
static size_t logits_of_tokens(tg_context *ctx, const char *path, float *out) {
    tg_model *m;
    tg_session *s;
    const float *row;
    const tg_single *one;
    const bool on_gpu = ctx->backend != ctx->cpu;
    uint32_t half = 2;
    OK(ctx, tg_model_open(ctx, path, &m));
    OK(ctx, tg_session_new(ctx, m, 64, &s));
    for (int32_t i = 0; i < ROUNDED_N; i++) {
        const int32_t id = (7 * i + 11) % ROUNDED_V;
        OK(ctx, tg_session_eval(s, &id, 1, &row));
        memcpy(out + i * ROUNDED_V, row, ROUNDED_V * sizeof *row);
        one = on_gpu ? tg_webgpu_single_of(ctx->backend, &s->d->by_rows[0].plan) : NULL;
        if (one) want_one_half_empty(ctx, one, &half);
    }
    const size_t n = on_gpu ? tg_webgpu_dispatches(ctx->backend, &s->d->by_rows[0].plan) : 0;
    tg_session_free(s);
    tg_model_free(m);
    return n;
}

static double most_apart(const float *a, const float *b) {
    double most = 0;
    for (int k = 0; k < ROUNDED_V * ROUNDED_N; k++) {
        const double apart = tg_fabs((double)a[k] - (double)b[k]);
        most = apart > most ? apart : most;
    }
    return most;
}

static void want_rounded_rows(const char *path) {
    static float cpu[ROUNDED_V * ROUNDED_N], floats[ROUNDED_V * ROUNDED_N];
    static float have[ROUNDED_V * ROUNDED_N];
    tg_context *ctx = open_context(1, NULL, NULL);
    logits_of_tokens(ctx, path, cpu);
    tg_context_free(ctx);
    logits_of_tokens(gpu, path, floats);
    for (size_t i = 0; i < (is_slow ? 1 : 3); i++) {
        static const char *const levers[] = { NULL, "+single_dispatch",
                                              "+single_dispatch,-int8_activations" };
        ctx = open_on_gpu(levers[i]);
        const size_t dispatches = logits_of_tokens(ctx, path, have);
        const double apart = most_apart(have, i < 2 ? cpu : floats);
        if ((dispatches <= 3) != (i > 0)) fail_msg("a token is %zu dispatches", dispatches);
        if (!(apart < 1e-3)) fail_msg("%s, way %zu: logits are %g apart", path, i, apart);
        tg_context_free(ctx);
    }
    assert_true(most_apart(cpu, floats) > 1e-2);
}

/* Tokens that are fed one by one, their products with weights of four bits rounded as the CPU
 * rounds its own, by many dispatches a token and by one, and by one of floats; blocks with a scale,
 * and with an offset, too. What another order of sums takes over the edge to the next whole number
 * is small beside what rounding is. */
static void rounded_rows_as_on_the_cpu(void **state) {
    (void)state;
    static const char q4_0[] = "build/models_test.rounded.gguf";
    tg_context *ctx = open_context(1, NULL, NULL);
    tg_convert_report report;
    OK(ctx, tg_context_force(ctx, true));
    OK(ctx, tg_model_convert(ctx, "test/golden/lm/llama.gguf", q4_0, TG_FILE_GGUF, TG_WEIGHT_Q4_0,
                             &report));
    tg_context_free(ctx);
    want_rounded_rows(q4_0);
    want_rounded_rows("test/golden/blocks/llama_q4_1.gguf");
}

/* Keys and values in 16 and in 8 bits, all positions and a window. */
static void same_logits_of_packed_caches(void **state) {
    (void)state;
    tg_context *cpu = open_context(1, NULL, "-int8_activations");
    want_same_logits(cpu, "test/golden/lm/llama.gguf", TG_KV_F16);
    want_same_logits(cpu, "test/golden/lm/gemma3.gguf", TG_KV_INT8);
    tg_context_free(cpu);
}

static int32_t first_of_largest(const float *logits, int32_t n, const int32_t *recent,
                                size_t n_recent, double penalty) {
    int32_t best = 0;
    double most = -TG_INF;
    for (int32_t id = 0; id < n; id++) {
        double x = (double)logits[id];
        for (size_t i = 0; i < n_recent; i++)
            if (recent[i] == id) {
                x = (double)logits[id] > 0 ? (double)logits[id] / penalty
                                           : (double)logits[id] * penalty;
                break;
            }
        if (x > most) {
            most = x;
            best = id;
        }
    }
    return best;
}

/* The token that the plan of one row gives beside the logits: behind one row and behind several,
 * with a penalty and without, it is the likeliest of the logits as they are now. */
static void greedy_tokens_are_of_the_logits(void **state) {
    (void)state;
    enum { V = 48, TURNS = 8 };
    tg_sample_options greedy = tg_sample_options_default(), penalized;
    tg_model *m;
    tg_session *s;
    const float *logits;
    int32_t fed[64], token;
    size_t n = 0;
    greedy.temperature = 0;
    penalized = greedy;
    penalized.repeat_penalty = 3;
    OK(gpu, tg_model_open(gpu, "test/golden/lm/llama.gguf", &m));
    OK(gpu, tg_session_new(gpu, m, 64, &s));
    for (size_t turn = 0; turn < TURNS; turn++) {
        const size_t rows = turn % 3 == 2 ? 3 : 1;
        for (size_t i = 0; i < rows; i++) fed[n + i] = (int32_t)((11 * (n + i) + 5 * turn) % V);
        OK(gpu, tg_session_eval(s, fed + n, rows, &logits));
        n += rows;
        OK(gpu, tg_session_sample(s, &greedy, turn, &token));
        assert_int_equal(token, first_of_largest(logits, V, NULL, 0, 1));
        OK(gpu, tg_session_sample(s, &penalized, turn, &token));
        assert_int_equal(token, first_of_largest(logits, V, fed, n, 3));
    }
    /* A letter that is favoured is not the plan's. */
    const tg_logit_bias bias = { (first_of_largest(logits, V, NULL, 0, 1) + 1) % V, 1000 };
    OK(gpu, tg_session_set_bias(s, &bias, 1));
    OK(gpu, tg_session_sample(s, &greedy, 0, &token));
    assert_int_equal(token, bias.id);
    tg_session_free(s);
    tg_model_free(m);
}

/* A text as it was fed, and the logits each time. */
enum { TURNS_V = 48, TURNS_MAX = 64, TURNS_CTX = 32, TURNS_PROMPT = 4, TURNS_BACK = 6 };
typedef struct turns {
    tg_session *s;
    int32_t fed[TURNS_MAX];
    bool by_chance[TURNS_MAX]; /* drawn with the turn's number */
    float logits[TURNS_MAX][TURNS_V];
    size_t n;
} turns;

/* under_way: whether the token behind it is by then. */
static void feed_turn(turns *t, int32_t token, bool under_way) {
    const float *logits;
    OK(gpu, tg_session_eval(t->s, &token, 1, &logits));
    memcpy(t->logits[t->n], logits, sizeof t->logits[t->n]);
    t->fed[t->n++] = token;
    assert_int_equal(t->s->on.position, under_way ? t->s->n_tokens : -1);
}
static void feed_drawn(turns *t, bool under_way) { feed_turn(t, t->s->drawn, under_way); }
static void feed_another(turns *t) { feed_turn(t, (t->s->drawn + 1) % TURNS_V, false); }

/* Whether the first two are what had been drawn is a matter of chance. */
static void feed_by_chance(turns *t, const tg_sample_options *o) {
    for (int i = 0; i < 5; i++) {
        int32_t token;
        OK(gpu, tg_session_sample(t->s, o, t->n, &token));
        t->by_chance[t->n] = true;
        feed_turn(t, token, i > 1 || (t->s->follows && token == t->s->drawn));
    }
}

static void feed_turns(turns *t, const tg_sample_options *greedy, const tg_sample_options *chance) {
    int32_t token;
    feed_turn(t, 7, false);
    feed_drawn(t, false);
    for (int k = 0; k < 4; k++) feed_drawn(t, true);
    feed_another(t);
    feed_drawn(t, false);
    for (int k = 0; k < 2; k++) feed_drawn(t, true);
    /* The workspace is another plan's by now: what is under way is right, and has no successor. */
    OK(gpu, tg_session_sample(t->s, chance, 0, &token));
    OK(gpu, tg_session_sample(t->s, greedy, 0, &token));
    feed_drawn(t, false);
    feed_drawn(t, true);
    feed_by_chance(t, chance);
    /* What is under way draws by chance, and that is not wanted any more. */
    OK(gpu, tg_session_sample(t->s, greedy, 0, &token));
    feed_drawn(t, true);
    assert_int_equal(t->s->drawn, first_of_largest(t->logits[t->n - 1], TURNS_V, NULL, 0, 1));
    OK(gpu, tg_session_rewind(t->s, TURNS_BACK));
    feed_another(t);
    feed_drawn(t, false);
    while (t->s->n_tokens < TURNS_CTX - 1) feed_drawn(t, true);
    feed_drawn(t, false); /* behind it there is no room */
}

/* The same turns, each of which is waited for, and drawn by a plan of its own. */
static void want_same_turns(const turns *t, tg_session *s, const tg_sample_options *chance) {
    for (size_t k = 0; k < t->n; k++) {
        const float *logits;
        int32_t token;
        if (k == t->n - (TURNS_CTX - TURNS_BACK)) OK(gpu, tg_session_rewind(s, TURNS_BACK));
        if (t->by_chance[k]) {
            s->drawn = -1;
            OK(gpu, tg_session_sample(s, chance, k, &token));
            assert_int_equal(token, t->fed[k]);
        }
        s->follows = false;
        OK(gpu, tg_session_eval(s, &t->fed[k], 1, &logits));
        assert_int_equal(s->on.position, -1);
        assert_memory_equal(logits, t->logits[k], sizeof t->logits[k]);
    }
}

/* A text that goes on with what was drawn has the next token under way: the bits are those of a
 * session that waits for each token. Nor does it matter whether another token is fed, whether
 * others have used the device in between, and where one goes back. */
static void running_on_changes_nothing(void **state) {
    (void)state;
    static const char *const files[] = { "llama.gguf", "lfm2.gguf" };
    static const int32_t prompt[TURNS_PROMPT] = { 5, 8, 21, 3 };
    static turns t;
    tg_sample_options greedy = tg_sample_options_default(), chance = greedy;
    greedy.temperature = 0;
    chance.temperature = 1.5;
    chance.top_k = 7;
    chance.top_p = 0.9;
    for (size_t i = 0; i < (is_slow ? 1 : 2); i++) {
        char path[64];
        tg_model *m;
        tg_session *waits;
        snprintf(path, sizeof path, "test/golden/lm/%s", files[i]);
        OK(gpu, tg_model_open(gpu, path, &m));
        t = (turns) { .n = 0 };
        OK(gpu, tg_session_new(gpu, m, TURNS_CTX, &t.s));
        OK(gpu, tg_session_eval(t.s, prompt, TURNS_PROMPT, NULL));
        feed_turns(&t, &greedy, &chance);
        OK(gpu, tg_session_new(gpu, m, TURNS_CTX, &waits));
        OK(gpu, tg_session_eval(waits, prompt, TURNS_PROMPT, NULL));
        want_same_turns(&t, waits, &chance);
        tg_session_free(t.s);
        tg_session_free(waits);
        tg_model_free(m);
    }
}

/* The tokens that follow a prompt, and how many dispatches each was; from one of them on a
 * workgroup is missing. */
static size_t write_greedily(tg_context *ctx, const char *path, int32_t *ids, size_t n,
                             size_t missing_from) {
    static const int32_t prompt[] = { 5, 6, 7, 9, 11 };
    tg_sample_options greedy = tg_sample_options_default();
    tg_model *m;
    tg_session *s;
    greedy.temperature = 0;
    OK(ctx, tg_model_open(ctx, path, &m));
    OK(ctx, tg_session_new(ctx, m, 128, &s));
    OK(ctx, tg_session_eval(s, prompt, sizeof prompt / sizeof *prompt, NULL));
    for (size_t i = 0; i < n; i++) {
        if (i >= missing_from) tg_webgpu_single(ctx->backend)->missing = 1;
        OK(ctx, tg_session_sample(s, &greedy, i, &ids[i]));
        OK(ctx, tg_session_eval(s, &ids[i], 1, NULL));
    }
    const size_t dispatches = tg_webgpu_dispatches(ctx->backend, &s->d->by_rows[0].plan);
    tg_session_free(s);
    tg_model_free(m);
    return dispatches;
}

/* The same tokens, over more than a page of the cache, and the same logits within the tolerance.
 * Then nobody comes through from the third token on, and then one of two, in the trial already:
 * many dispatches compute the tokens, and none is wrong. It is one test, as compiling the kernel
 * takes seconds there, and minutes on SwiftShader. */
static void one_dispatch_a_token(void **state) {
    (void)state;
    enum { N = 66, V = 48 };
    static const char path[] = "test/golden/lm/mlx4";
    static float want[7 * V], have[7 * V];
    int32_t ids[2][N];
    if (is_slow) {
        print_message(
            "skipped: one_dispatch_a_token: SwiftShader does not end compiling its kernel\n");
        skip();
    }
    tg_context *ctx = open_on_gpu("+single_dispatch,-int8_activations");
    tg_single_rules *rules = tg_webgpu_single(ctx->backend);
    assert_true(write_greedily(gpu, path, ids[0], N, N) > 5);
    assert_in_range(write_greedily(ctx, path, ids[1], N, N), 1, 3); /* and those that draw */
    assert_memory_equal(ids[1], ids[0], sizeof ids[0]);
    logits_along(gpu, path, TG_KV_F32, V, want);
    logits_along(ctx, path, TG_KV_F32, V, have);
    for (int k = 0; k < 7 * V; k++)
        if (!(tg_fabs((double)have[k] - (double)want[k]) < 1e-4))
            fail_msg("logit %d: want %g, have %g", k, (double)want[k], (double)have[k]);
    assert_true(write_greedily(ctx, path, ids[1], 6, 3) > 5);
    assert_int_equal(rules->groups, 0);
    assert_memory_equal(ids[1], ids[0], 6 * sizeof ids[0][0]);
    rules->groups = 2;
    rules->looks = 1000;
    assert_true(write_greedily(ctx, path, ids[1], 6, 0) > 5);
    assert_int_equal(rules->groups, 0);
    assert_memory_equal(ids[1], ids[0], 6 * sizeof ids[0][0]);
    tg_context_free(ctx);
}

/* Vectors of texts of several lengths, by an encoder that is on the GPU whole. */
static void same_vectors_of_an_encoder(void **state) {
    (void)state;
    enum { WIDTH = 32, TEXTS = 3 };
    static const tg_embed_text texts[TEXTS] = {
        { "the cat", 7 }, { "a", 1 }, { "the dog sat on a red mat, and the cat on the dog", 48 }
    };
    float vectors[2][TEXTS * WIDTH];
    tg_context *cpu = open_context(1, NULL, "-int8_activations");
    on_the_cpu = 0;
    for (int i = 0; i < 2; i++) {
        tg_context *ctx = i == 0 ? cpu : gpu;
        const tg_embed_options o = tg_embed_options_default();
        tg_embedder *e;
        tg_model *m;
        OK(ctx, tg_model_open(ctx, "test/golden/lm/bert.zip", &m));
        OK(ctx, tg_embedder_new(ctx, m, &o, &e));
        assert_int_equal(tg_embedder_width(e), WIDTH);
        OK(ctx, tg_embedder_run(e, texts, TEXTS, vectors[i]));
        tg_embedder_free(e);
        tg_model_free(m);
    }
    tg_context_free(cpu);
    assert_int_equal(on_the_cpu, 0);
    for (int k = 0; k < TEXTS * WIDTH; k++)
        if (!(tg_fabs((double)vectors[1][k] - (double)vectors[0][k]) < 1e-3))
            fail_msg("number %d: want %g, have %g", k, (double)vectors[0][k],
                     (double)vectors[1][k]);
}

enum { TOGETHER = 3, ROUNDS = 7 };

/* The sessions of a batch, each beside a lone one that is fed the same. */
static void want_as_alone(tg_batch *batch, tg_session *const *alone, size_t V) {
    for (size_t i = 0; i < TOGETHER; i++) {
        const float *have = tg_session_logits(tg_batch_session(batch, i));
        const float *want = tg_session_logits(alone[i]);
        if (!want) continue;
        for (size_t v = 0; v < V; v++)
            if (memcmp(&have[v], &want[v], sizeof *have) != 0)
                fail_msg("session %zu, logit %zu: want %.9g, have %.9g", i, v, (double)want[v],
                         (double)have[v]);
    }
}

/* In slices: the GPU is awaited between them. */
static void eval_in_slices(tg_batch *batch, tg_batch_entry *e, size_t n) {
    tg_job *job;
    tg_status s;
    OK(gpu, tg_batch_eval_job(batch, e, n, &job));
    while ((s = tg_job_poll(job, 0.01)) == TG_PENDING) {
    }
    tg_job_free(job);
    OK(gpu, s);
}

/* A model's prompts of several lengths, then single tokens of all or some; to the bit what each
 * session has alone on this adapter, and no plan leaves it. */
static void decode_together(const char *path, size_t V) {
    static const size_t prompts[TOGETHER] = { 5, 1, 37 };
    tg_model *m;
    tg_batch *batch;
    tg_session *alone[TOGETHER];
    int32_t ids[64];
    OK(gpu, tg_model_open(gpu, path, &m));
    OK(gpu, tg_batch_new(gpu, m, TOGETHER, 64, TG_KV_F32, &batch));
    for (int i = 0; i < 64; i++) ids[i] = (5 * i * i + 3) % (int)V;
    for (size_t i = 0; i < TOGETHER; i++) OK(gpu, tg_session_new(gpu, m, 64, &alone[i]));
    for (int round = 0; round < ROUNDS; round++) {
        tg_batch_entry e[TOGETHER];
        size_t n = 0;
        for (size_t i = 0; i < TOGETHER; i++) {
            if (round > 1 && (round + (int)i) % 4 == 0) continue;
            const size_t k = round == 0 ? prompts[i] : 1;
            e[n++] = (tg_batch_entry) { tg_batch_session(batch, i), ids + round + i, k, TG_OK };
            OK(gpu, tg_session_eval(alone[i], ids + round + i, k, NULL));
        }
        if (round % 2)
            eval_in_slices(batch, e, n);
        else
            OK(gpu, tg_batch_eval(batch, e, n));
        want_as_alone(batch, alone, V);
    }
    for (size_t i = 0; i < TOGETHER; i++) tg_session_free(alone[i]);
    tg_batch_free(batch);
    tg_model_free(m);
}

static void batches_as_alone(void **state) {
    (void)state;
    static const char *const files[] = { "mlx4", "gemma3.gguf", "gpt2.gguf" };
    const size_t n = is_slow ? 1 : sizeof files / sizeof *files;
    on_the_cpu = 0;
    for (size_t i = 0; i < n; i++) {
        char path[64];
        snprintf(path, sizeof path, "test/golden/lm/%s", files[i]);
        decode_together(path, 48);
    }
    assert_int_equal(on_the_cpu, 0);
}

/* Of a copy the pages that are full are shared, and the rest is computed again; so is what a
 * session loses that goes back into a page which is not its own. Sums of prompts have other orders.
 */
static void copies_share_pages(void **state) {
    (void)state;
    static const tg_model_config config = { .layers = 1,
                                            .width = 32,
                                            .heads = 2,
                                            .ctx = 160,
                                            .vocab = 256,
                                            .family = "llama",
                                            .kv_heads = 1 };
    tg_model *m;
    tg_batch *batch;
    tg_session *alone;
    int32_t ids[100];
    if (is_slow) return; /* the same shaders as batches_as_alone has */
    for (int i = 0; i < 100; i++) ids[i] = (7 * i * i + i) % 256;
    OK(gpu, tg_model_new(gpu, &config, 3, &m));
    OK(gpu, tg_batch_new(gpu, m, 2, 0, TG_KV_F32, &batch));
    OK(gpu, tg_session_new(gpu, m, 0, &alone));
    tg_session *const a = tg_batch_session(batch, 0), *const b = tg_batch_session(batch, 1);
    OK(gpu, tg_session_eval(a, ids, 100, NULL));
    OK(gpu, tg_batch_copy(batch, 1, 0));
    assert_int_equal(tg_session_held(b), 64);
    for (int back = 100; back >= 20; back -= 40) { /* 100, 60 and 20 tokens are common to both */
        OK(gpu, tg_session_rewind(a, (size_t)back));
        OK(gpu, tg_session_rewind(b, (size_t)back));
        OK(gpu, tg_session_eval(a, ids + 5, 3, NULL));
        OK(gpu, tg_session_eval(b, ids + 11, 3, NULL));
        for (int k = 0; k < 2; k++) {
            OK(gpu, tg_session_rewind(alone, 0));
            OK(gpu, tg_session_eval(alone, ids, (size_t)back, NULL));
            OK(gpu, tg_session_eval(alone, ids + (k ? 11 : 5), 3, NULL));
            const float *have = tg_session_logits(k ? b : a), *want = tg_session_logits(alone);
            for (int v = 0; v < 256; v++)
                if (!(fabsf(have[v] - want[v]) < 1e-4F))
                    fail_msg("%d common, session %d, logit %d: want %.9g, have %.9g", back, k, v,
                             (double)want[v], (double)have[v]);
        }
    }
    tg_session_free(alone);
    tg_batch_free(batch);
    tg_model_free(m);
}

/* What a guess has right, and what it has not, changes no token. */
static void drafts_as_without(void **state) {
    (void)state;
    enum { N = 24 };
    static const int32_t prompt[] = { 5, 6, 7, 5, 6, 7, 5, 6, 7 };
    tg_model *m;
    tg_session *s;
    int32_t ids[2][N];
    if (is_slow) return; /* the same shaders as batches_as_alone has */
    OK(gpu, tg_model_open(gpu, "test/golden/lm/llama.gguf", &m));
    for (size_t i = 0; i < 2; i++) {
        tg_generation g = tg_generation_default();
        tg_sample_options greedy = tg_sample_options_default();
        tg_generate_stats stats;
        greedy.temperature = 0;
        g.ids = prompt;
        g.n_ids = sizeof prompt / sizeof *prompt;
        g.sample = &greedy;
        g.n_tokens = N;
        g.new_ids = ids[i];
        g.draft = i == 1 ? 4 : 0;
        OK(gpu, tg_session_new(gpu, m, 64, &s));
        OK(gpu, tg_session_continue(s, &g, &stats));
        if (i == 1) assert_true(stats.accepted > 0);
        tg_session_free(s);
    }
    assert_memory_equal(ids[1], ids[0], sizeof ids[0]);
    tg_model_free(m);
}

/* ------------------------------------------------------------------------- slices, lost devices */

enum { ANSWER = 24, LOSSES = 3 };

/* Loses the device when so many tokens have come, as many times as there are places. */
typedef struct losing {
    tg_context *ctx;
    int n_tokens;
    const int *at; /* [LOSSES]; NULL: never */
} losing;

static int lose_at(void *user, const tg_token *token) {
    losing *l = user;
    if (token->id < 0) return 0;
    l->n_tokens++;
    for (int i = 0; l->at && i < LOSSES; i++)
        if (l->n_tokens == l->at[i] && l->ctx->backend != l->ctx->cpu)
            tg_gpu_lose(tg_webgpu_gpu(l->ctx->backend));
    return 0;
}

/* The likeliest tokens behind 40 others, in slices as short as can be; how many polls it took.
 * others: between any two slices another session computes, whose plans have the same workspace, and
 * is freed, whose buffers other plans may name. */
static size_t answer_in_slices(tg_context *ctx, const char *path, const int *lose, bool others,
                               int32_t *ids) {
    enum { PROMPT = 40 };
    int32_t prompt[PROMPT];
    tg_model *m;
    tg_session *s, *other;
    tg_job *job;
    tg_generate_stats stats;
    losing l = { ctx, 0, lose };
    tg_generation g = tg_generation_default();
    tg_sample_options greedy = tg_sample_options_default();
    for (int i = 0; i < PROMPT; i++) prompt[i] = (5 * i * i + 3) % 48;
    greedy.temperature = 0;
    g.ids = prompt;
    g.n_ids = PROMPT;
    g.sample = &greedy;
    g.n_tokens = ANSWER;
    g.new_ids = ids;
    g.token = lose_at;
    g.user = &l;
    OK(ctx, tg_model_open(ctx, path, &m));
    OK(ctx, tg_session_new(ctx, m, 64, &s));
    OK(ctx, tg_session_continue_job(s, &g, &stats, &job));
    size_t polls = 1;
    tg_status status;
    while ((status = tg_job_poll(job, 1e-6)) == TG_PENDING) {
        polls++;
        if (!others) continue;
        OK(ctx, tg_session_new(ctx, m, 64, &other));
        OK(ctx, tg_session_eval(other, prompt + 7, polls % 2 ? 1 : 20, NULL));
        tg_session_free(other);
    }
    tg_job_free(job);
    OK(ctx, status);
    assert_int_equal(stats.new_tokens, ANSWER);
    tg_session_free(s);
    tg_model_free(m);
    return polls;
}

/* A slice ends between two submits, and the plan goes on behind it: in a prompt, too, which is one
 * run. */
static void slices_as_whole(void **state) {
    (void)state;
    static const char path[] = "test/golden/lm/llama.gguf";
    int32_t want[ANSWER], have[ANSWER];
    tg_context *cpu = open_context(1, NULL, "-int8_activations");
    answer_in_slices(cpu, path, NULL, false, want);
    on_the_cpu = 0;
    const size_t polls = answer_in_slices(gpu, path, NULL, false, have);
    assert_int_equal(on_the_cpu, 0);
    assert_memory_equal(have, want, sizeof want);
    /* One a token comes from generation, where no plan is cut. */
    if (polls < ANSWER + 3)
        fail_msg("polls: want more than the %d tokens, have %zu", ANSWER, polls);
    answer_in_slices(gpu, path, NULL, true, have);
    assert_memory_equal(have, want, sizeof want);
    tg_context_free(cpu);
}

/* Two devices are lost in the middle of an answer, and then the third: the CPU writes the end. No
 * token is another one, and what was said stays in the session. */
static void answers_go_on_without_the_device(void **state) {
    (void)state;
    static const int at[LOSSES] = { 3, 9, 16 };
    int32_t want[ANSWER], have[ANSWER];
    if (is_slow) return; /* it compiles all anew for each device; wgpu on lavapipe is asked */
    tg_context *cpu = open_context(1, NULL, "-int8_activations");
    answer_in_slices(cpu, "test/golden/lm/llama.gguf", NULL, false, want);
    answer_in_slices(gpu, "test/golden/lm/llama.gguf", at, false, have);
    assert_memory_equal(have, want, sizeof want);
    assert_int_equal(gpu->losses, LOSSES);
    assert_ptr_equal(gpu->backend, gpu->cpu);
    tg_context_free(cpu);
}

static int begin(void **state) {
    (void)state;
    mkdir("build", 0777);
    setenv("TG_GPU_CACHE", "build/models_test_cache", 1);
    setenv("TG_GPU_TRUSTED", "1", 1); /* levers_test.c is about the self-test */
    tg_context_options o = tg_context_options_default();
    o.threads = 1;
    o.device = "webgpu";
    o.log = count_falls;
    o.levers = "-int8_activations"; /* but for rounded_rows_as_on_the_cpu */
    if (tg_context_new(&o, &gpu) != TG_OK) fail_msg("context: %s", tg_context_error(gpu));
    const char *adapter = tg_gpu_get_info(tg_webgpu_gpu(gpu->backend))->adapter;
    is_slow = strstr(adapter, "SwiftShader") != NULL;
    return 0;
}

static int end(void **state) {
    (void)state;
    tg_context_free(gpu);
    return 0;
}

int main(int argc, char **argv) {
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_logits_of_model_files),
        cmocka_unit_test(rounded_rows_as_on_the_cpu),
        cmocka_unit_test(same_logits_of_packed_caches),
        cmocka_unit_test(greedy_tokens_are_of_the_logits),
        cmocka_unit_test(running_on_changes_nothing),
        cmocka_unit_test(one_dispatch_a_token),
        cmocka_unit_test(same_vectors_of_an_encoder),
        cmocka_unit_test(batches_as_alone),
        cmocka_unit_test(copies_share_pages),
        cmocka_unit_test(drafts_as_without),
        cmocka_unit_test(slices_as_whole),
        cmocka_unit_test(answers_go_on_without_the_device), /* the last: it leaves the GPU */
    };
    return cmocka_run_group_tests(tests, begin, end);
}
