/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_shaders.c - every step of every plan has a shader, so that no model leaves a GPU. Found
 * without a GPU, by the tables of the ops; what the shaders compute is op_test's and gpu_test's.
 *
 * A plan with a step that none fits runs on the CPU as a whole, so the test names the step.
 */
#include "engine_util.h"

#include "engine/all_rows.h"
#include "engine/embed.h"
#include "engine/session.h"
#include "inspect/probe.h"
#include "ops/build.h"
#include "training/train.h"

static bool has_shader(const tg_op_desc *d, const tg_args *a) {
    for (size_t i = 0; i < d->n_shaders; i++)
        if (!d->shaders[i].fits || d->shaders[i].fits(a)) return true;
    return false;
}

static size_t n_seen; /* steps */

static void check_plan(const char *whose, const tg_plan *plan) {
    for (size_t i = 0; i < plan->n_steps; i++) {
        const tg_step *s = &plan->steps[i];
        const tg_op_desc *d = tg_op_table[s->node->op];
        if (!has_shader(d, &s->args))
            fail_msg("%s, plan %s: no shader of %s fits %s", whose, plan->name, d->name,
                     s->node->name);
    }
    n_seen += plan->n_steps;
}

static tg_model_config config_of(const char *family) {
    tg_model_config c = { .layers = 2, .width = 32, .heads = 4, .ctx = 80, .vocab = 256 };
    c.family = family;
    if (strcmp(family, "tinygpt") != 0 && strcmp(family, "gpt2") != 0) c.kv_heads = 2;
    if (tg_family_find(family)->windows) c.window = 9;
    return c;
}

static void check_training(tg_context *ctx, const char *family, const tg_layout *layout) {
    tg_train_options o = tg_train_options_default();
    tg_train_plans plans;
    o.accum = 2;
    o = tg_train_options_of(&o, &layout->config);
    OK(ctx, tg_train_plans_build(ctx, layout, &o, 0, &plans));
    check_plan(family, &plans.grad);
    check_plan(family, &plans.update);
    check_plan(family, &plans.eval);
    tg_train_plans_free(&plans);
}

static void check_session(tg_context *ctx, const char *whose, tg_model *m, tg_kv_type kv) {
    tg_session *s;
    OK(ctx, tg_session_new_kv(ctx, m, 0, kv, &s));
    OK(ctx, tg_decoder_want_rows(s->d));
    for (int k = 0; k < TG_SESSION_CLASSES; k++) check_plan(whose, &s->d->by_rows[k].plan);
    check_plan(whose, &s->d->rows.plan);
    check_plan(whose, &s->sample);
    tg_session_free(s);
}

/* Hidden states and logits of all tokens: embeddings and evaluation. */
static void check_all_rows(tg_context *ctx, const char *whose, tg_model *m) {
    static const tg_answers answers[] = { TG_ANSWER_ROWS, TG_ANSWER_HIDDEN_STATES };
    for (size_t i = 0; i < 2; i++) {
        tg_all_rows r = { 0 };
        OK(ctx, tg_all_rows_open(&r, ctx, m, 32, answers[i]));
        check_plan(whose, &r.plan);
        tg_all_rows_deinit(&r);
    }
}

static void every_family(void **state) {
    (void)state;
    tg_context *ctx = open_context(1, NULL, NULL);
    for (size_t i = 0; tg_family_at(i); i++) {
        const char *const family = tg_family_at(i);
        const tg_model_config c = config_of(family);
        tg_model *m;
        tg_probe *p;
        OK(ctx, tg_model_new(ctx, &c, 1, &m));
        check_training(ctx, family, &m->layout);
        for (int kv = TG_KV_F32; kv <= TG_KV_INT8; kv++)
            check_session(ctx, family, m, (tg_kv_type)kv);
        check_all_rows(ctx, family, m);
        OK(ctx, tg_probe_new(ctx, m, 8, &p));
        check_plan(family, &p->plan);
        tg_probe_free(p);
        tg_model_free(m);
    }
    assert_true(n_seen > 1000);
    tg_context_free(ctx);
}

/* Weights in the types of files: of test/golden/lm, in all packings there. */
static void files(void **state) {
    (void)state;
    static const char *const names[] = {
        "llama.gguf",  "llama3",       "qwen2.gguf",   "qwen3.gguf",    "gpt2_erf",
        "gemma3.gguf", "phi3.gguf",    "mistral.gguf", "biases.gguf",   "smollm3.gguf",
        "yarn.gguf",   "phi4.gguf",    "gemma2.gguf",  "olmo2.gguf",    "olmo3.gguf",
        "lfm2.gguf",   "granite.gguf", "qwen35.gguf",  "qwen3moe.gguf", "mlx4",
        "mlx8",        "nemotron.gguf"
    };
    tg_context *ctx = open_context(1, NULL, NULL);
    tg_model *m;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[64];
        snprintf(path, sizeof path, "test/golden/lm/%s", names[i]);
        OK(ctx, tg_model_open(ctx, path, &m));
        check_session(ctx, names[i], m, TG_KV_F32);
        check_all_rows(ctx, names[i], m);
        tg_model_free(m);
    }
    static const char *const encoders[] = { "bert.zip", "embed_modernbert.zip", "embed_nomic.zip",
                                            "embed_embeddinggemma.zip" };
    for (size_t i = 0; i < sizeof encoders / sizeof *encoders; i++) {
        char path[64];
        tg_embedder *e;
        snprintf(path, sizeof path, "test/golden/lm/%s", encoders[i]);
        OK(ctx, tg_model_open(ctx, path, &m));
        OK(ctx, tg_embedder_new(ctx, m, NULL, &e));
        check_plan(encoders[i], &e->plan);
        tg_embedder_free(e);
        tg_model_free(m);
    }
    tg_context_free(ctx);
}

/* Floats that are trained in front of a matrix of a file that is not, as adapters are: its gradient
 * goes through the matrix, in each type that there is. */
static void through_packed_weights(void **state) {
    (void)state;
    tg_context *ctx = open_context(1, NULL, NULL);
    for (tg_dtype type = 0; type < TG_DTYPE_COUNT; type++) {
        if (type == TG_I32 || type == TG_U8 || type == TG_F64) continue;
        tg_graph g;
        tg_plan plan;
        OK(ctx, tg_graph_init(&g, &ctx->err, ctx->levers));
        tg_value *x = tg_input(&g, "x", tg_type_2d(TG_F32, 20, 256));
        tg_value *w = tg_state(&g, "w", tg_type_packed(type, 48, 256));
        tg_value *adapter = tg_state(&g, "adapter", tg_type_2d(TG_F32, 256, 256)), *gradient;
        tg_value *y = tg_matmul(&g, tg_matmul(&g, x, adapter, NULL, 0), w, NULL, 2);
        tg_value *targets = tg_input(&g, "targets", tg_type_1d(TG_I32, 20));
        tg_grad(&g, tg_cross_entropy(&g, y, targets, 1), 1, &adapter, 1, &gradient);
        tg_output(&g, gradient, "gradient");
        OK(ctx, tg_graph_finish(&g));
        const tg_plan_options o = tg_runtime_plan_options(ctx, "adapter");
        OK(ctx, tg_plan_build(&plan, &g, &o));
        check_plan(tg_dtype_name(type), &plan);
        tg_graph_deinit(&g);
    }
    tg_context_free(ctx);
}

/* A case of an op that says nothing has a shader, and one that says that there is none has none. */
static void every_case(void **state) {
    (void)state;
    for (int op = 0; op < TG_OP_COUNT; op++) {
        const tg_op_desc *d = tg_op_table[op];
        for (size_t i = 0; i < d->n_cases; i++) {
            const tg_case *c = &d->cases[i];
            tg_args a = { .attr = c->attr, .rows_alone = c->rows_alone };
            for (int k = 0; k < TG_MAX_IN; k++)
                if (c->in[k].dtype != TG_DTYPE_COUNT) a.in_type[k] = c->in[k];
            if (has_shader(d, &a) == c->no_shader)
                fail_msg("%s, case %zu: want %s shader that fits", d->name, i,
                         c->no_shader ? "no" : "a");
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_family),
        cmocka_unit_test(files),
        cmocka_unit_test(through_packed_weights),
        cmocka_unit_test(every_case),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
