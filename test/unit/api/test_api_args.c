/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_api_args.c - what public calls say of arguments that are not there, and of contexts that
 * were not opened. Nothing of it may crash, and messages name calls of tinygpt.h.
 */
#include "engine_util.h"

static const tg_model_config tiny = { 1, 16, 2, 16, 256, 64 };

static void null_answers(void **state) {
    (void)state;
    size_t n = 7;
    tg_train_options o = tg_train_options_default();
    assert_int_equal(tg_param_count(NULL), 0);
    assert_false(tg_context_lever(NULL, "simd"));
    tg_context *ctx = open_context(1, NULL, NULL);
    assert_false(tg_context_lever(ctx, NULL));
    assert_false(tg_context_lever(NULL, NULL));
    tg_context_free(ctx);
    assert_string_equal(tg_context_banner(NULL), "");
    assert_string_equal(tg_context_isa(NULL), "");
    assert_int_equal(tg_context_threads(NULL), 0);
    assert_int_equal(tg_text_bytes(NULL), 0);
    assert_null(tg_trainer_model(NULL));
    assert_int_equal(tg_trainer_steps_done(NULL), 0);
    assert_true(tg_trainer_steady(NULL));
    assert_null(tg_trainer_history(NULL, &n));
    assert_int_equal(n, 0);
    assert_int_equal(tg_trainer_options(NULL, NULL), TG_E_ARG);
    assert_int_equal(tg_trainer_options(NULL, &o), TG_E_ARG);
    assert_false(tg_model_can(NULL, TG_CAN_WRITE));
    assert_int_equal(tg_chat(NULL, NULL, 0, NULL, 1, NULL, NULL), TG_E_ARG);
    assert_int_equal(tg_trainer_set_rate(NULL, NULL, NULL), TG_E_ARG);
    assert_int_equal(tg_session_tokens(NULL), 0);
    assert_int_equal(tg_session_held(NULL), 0);
    assert_int_equal(tg_session_capacity(NULL), 0);
    assert_null(tg_session_logits(NULL));
}

/* A wrong option gives a context that only has the message; each call refuses it and keeps that. */
static void a_context_of_a_wrong_option(void **state) {
    (void)state;
    tg_context_options wrong[4];
    for (int i = 0; i < 4; i++) wrong[i] = tg_context_options_default();
    wrong[0].levers = "+nonsense";
    wrong[1].isa = "z80";
    wrong[2].device = "abacus";
    wrong[3].threads = 100000;
    static const char *const said[] = { "nonsense", "z80", "abacus", "100000" };
    for (int i = 0; i < 4; i++) {
        tg_context *ctx;
        tg_model *model = NULL;
        tg_text *text = NULL;
        tg_job *job = NULL;
        double x;
        assert_true(tg_context_new(&wrong[i], &ctx) < 0);
        assert_non_null(ctx);
        assert_int_equal(tg_model_new(ctx, &tiny, 1, &model), TG_E_ARG);
        assert_int_equal(tg_model_new_job(ctx, &tiny, 1, &model, &job), TG_E_ARG);
        assert_int_equal(tg_model_open(ctx, "none", &model), TG_E_ARG);
        assert_int_equal(tg_text_open(ctx, "none", &text), TG_E_ARG);
        assert_int_equal(tg_measure_peak(ctx, &x), TG_E_ARG);
        assert_int_equal(tg_measure_read(ctx, 1 << 20, &x), TG_E_ARG);
        if (!strstr(tg_context_error(ctx), said[i]))
            fail_msg("want %s in: %s", said[i], tg_context_error(ctx));
        tg_context_free(ctx);
    }
}

static void messages_name_public_calls(void **state) {
    (void)state;
    tg_context *ctx = open_context(1, NULL, NULL);
    tg_model *model;
    tg_job *job;
    assert_int_equal(tg_model_new(ctx, NULL, 1, &model), TG_E_ARG);
    assert_string_equal(tg_context_error(ctx), "tg_model_new: want a value for config, have NULL");
    assert_int_equal(tg_model_open(ctx, NULL, &model), TG_E_ARG);
    assert_string_equal(tg_context_error(ctx), "tg_model_open: want a value for path, have NULL");
    assert_int_equal(tg_model_new_job(ctx, &tiny, 1, &model, NULL), TG_E_ARG);
    assert_string_equal(tg_context_error(ctx), "tg_model_new_job: want a value for job, have NULL");
    assert_int_equal(tg_model_open_job(ctx, "x", NULL, &job), TG_E_ARG);
    assert_string_equal(tg_context_error(ctx), "tg_model_open: want a value for out, have NULL");
    tg_context_free(ctx);
}

/* A wrong name is answered with near ones, and all of them can be asked for. */
static void names_of_tensors(void **state) {
    (void)state;
    tg_context *ctx = open_context(1, NULL, NULL);
    tg_model *model;
    OK(ctx, tg_model_new(ctx, &tiny, 1, &model));
    size_t n = 0;
    uint64_t elems = 0;
    float *out = malloc(4 * (size_t)tg_param_count(&tiny));
    for (const char *name; (name = tg_model_tensor_at(model, n, &elems)) != NULL; n++)
        OK(ctx, tg_model_tensor(model, name, out, (size_t)elems));
    free(out);
    assert_int_equal(n, 4 + 16 * tiny.layers);
    assert_null(tg_model_tensor_at(NULL, 0, NULL));
    float x;
    assert_int_equal(tg_model_tensor(model, "blocks.0.atn.q_proj.weight", &x, 1), TG_E_ARG);
    if (!strstr(tg_context_error(ctx), "blocks.0.attn.q_proj.weight") ||
        !strstr(tg_context_error(ctx), "blocks.0.atn.q_proj.weight"))
        fail_msg("want both names in: %s", tg_context_error(ctx));
    assert_int_equal(tg_model_tensor(model, "nope", &x, 1), TG_E_ARG);
    if (!strstr(tg_context_error(ctx), "tg_model_tensor_at"))
        fail_msg("want the call that lists names in: %s", tg_context_error(ctx));
    tg_model_free(model);
    tg_context_free(ctx);
}

/* A program that was built when the struct was shorter: what it does not know of has its default,
 * and nothing is written behind what it has. */
static void shorter_options(void **state) {
    (void)state;
    enum { KNOWN = offsetof(tg_train_options, warmup) };
    union {
        tg_train_options o;
        unsigned char bytes[sizeof(tg_train_options)];
    } old, back;
    memset(&old, 0xee, sizeof old);
    tg_train_options_init(&old.o, KNOWN);
    assert_int_equal(old.o.struct_bytes, KNOWN);
    assert_int_equal(old.o.steps, 1000);
    for (size_t i = KNOWN; i < sizeof old; i++) assert_int_equal(old.bytes[i], 0xee);
    old.o.steps = 7;
    tg_train_options_init(NULL, KNOWN);
    tg_train_options_init(&old.o, 3); /* not even its size: untouched */
    assert_int_equal(old.o.steps, 7);

    tg_context *ctx = open_context(1, NULL, NULL);
    tg_model *model;
    tg_text *text;
    tg_trainer *trainer;
    OK(ctx, tg_model_new(ctx, &tiny, 1, &model));
    OK(ctx, tg_text_from_memory(ctx, "to be or not to be, that is the question", 40, &text));
    OK(ctx, tg_trainer_new(ctx, model, text, &old.o, &trainer));
    tg_train_options whole = tg_train_options_default();
    OK(ctx, tg_trainer_options(trainer, &whole));
    assert_int_equal(whole.struct_bytes, sizeof whole);
    assert_int_equal(whole.steps, 7);
    assert_true(whole.clip == 1 && whole.warmup == 0 && whole.seed == 42);
    memset(&back, 0xee, sizeof back);
    back.o.struct_bytes = KNOWN;
    OK(ctx, tg_trainer_options(trainer, &back.o));
    assert_int_equal(back.o.steps, 7);
    for (size_t i = KNOWN; i < sizeof back; i++) assert_int_equal(back.bytes[i], 0xee);
    tg_trainer_free(trainer);
    tg_text_free(text);
    tg_model_free(model);
    tg_context_free(ctx);
}

/* Every struct of options, of a size that it never had: the size is named, nothing is made. */
static void other_sizes(void **state) {
    (void)state;
    const size_t sizes[] = { 0, sizeof(size_t) - 1, 4096 };
    tg_context *ctx = open_context(1, NULL, NULL), *other;
    tg_model *model;
    tg_session *session;
    tg_embedder *embedder;
    tg_forecast forecast;
    OK(ctx, tg_model_new(ctx, &tiny, 1, &model));
    OK(ctx, tg_session_new(ctx, model, 0, &session));
    const int32_t first = 1;
    int32_t token;
    char said[64];
    OK(ctx, tg_session_eval(session, &first, 1, NULL));
    for (int i = 0; i < 3; i++) {
        tg_context_options c = tg_context_options_default();
        tg_train_options t = tg_train_options_default();
        tg_sample_options s = tg_sample_options_default();
        tg_embed_options e = tg_embed_options_default();
        tg_generation g = tg_generation_default();
        c.struct_bytes = t.struct_bytes = s.struct_bytes = e.struct_bytes = sizes[i];
#define REFUSED(context, call, name)                                                               \
    do {                                                                                           \
        assert_int_equal(call, TG_E_ARG);                                                          \
        if (!strstr(tg_context_error(context), name ": struct_bytes: want"))                       \
            fail_msg("have %s", tg_context_error(context));                                        \
    } while (0)
        REFUSED(other, tg_context_new(&c, &other), "tg_context_options");
        tg_context_free(other);
        REFUSED(ctx, tg_forecast_run(ctx, &tiny, NULL, &t, &forecast), "tg_train_options");
        REFUSED(ctx, tg_session_sample(session, &s, 0, &token), "tg_sample_options");
        REFUSED(ctx, tg_embedder_new(ctx, model, &e, &embedder), "tg_embed_options");
        g.sample = &s;
        REFUSED(ctx, tg_session_continue(session, &g, NULL), "tg_sample_options");
        g.sample = NULL;
        g.struct_bytes = sizes[i];
        REFUSED(ctx, tg_session_continue(session, &g, NULL), "tg_generation");
        (void)tg_model_sampling(model, &s, said, sizeof said);
#undef REFUSED
    }
    tg_session_free(session);
    tg_model_free(model);
    tg_context_free(ctx);
}

/* What a model says that it can is what the calls do. */
static void abilities(void **state) {
    (void)state;
    tg_context *ctx = open_context(1, NULL, NULL);
    static const struct {
        const char *path;
        bool write, train, save;
    } rows[] = { { NULL, true, true, true },
                 { "test/golden/lm/qwen2", true, false, false },
                 { "test/golden/lm/bert.zip", false, false, false } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tg_model *m;
        tg_session *session;
        tg_embedder *embedder;
        tg_probe *probe;
        if (rows[i].path)
            OK(ctx, tg_model_open(ctx, rows[i].path, &m));
        else
            OK(ctx, tg_model_new(ctx, &tiny, 1, &m));
        assert_int_equal(tg_model_can(m, TG_CAN_WRITE), rows[i].write);
        assert_int_equal(tg_session_new(ctx, m, 16, &session) == TG_OK, rows[i].write);
        assert_int_equal(tg_model_can(m, TG_CAN_TRAIN), rows[i].train);
        assert_int_equal(tg_probe_new(ctx, m, 4, &probe) == TG_OK, rows[i].train);
        assert_int_equal(tg_model_can(m, TG_CAN_SAVE), rows[i].save);
        assert_int_equal(tg_model_save(m, "build/test/able.tinygpt", TG_FILE_V3) == TG_OK,
                         rows[i].save);
        assert_true(tg_model_can(m, TG_CAN_EMBED));
        OK(ctx, tg_embedder_new(ctx, m, NULL, &embedder));
        assert_false(tg_model_can(m, TG_CAN_CHAT));
        assert_false(tg_model_can(m, (tg_ability)99));
        tg_embedder_free(embedder);
        if (rows[i].train) tg_probe_free(probe);
        if (rows[i].write) tg_session_free(session);
        tg_model_free(m);
    }
    tg_context_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(null_answers),
        cmocka_unit_test(a_context_of_a_wrong_option),
        cmocka_unit_test(messages_name_public_calls),
        cmocka_unit_test(names_of_tensors),
        cmocka_unit_test(shorter_options),
        cmocka_unit_test(other_sizes),
        cmocka_unit_test(abilities),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
