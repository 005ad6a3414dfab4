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
    tg_train_options o;
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
    tg_trainer_options(NULL, NULL);
    tg_trainer_options(NULL, &o);
    assert_int_equal(o.steps, tg_train_options_default().steps);
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(null_answers),
        cmocka_unit_test(a_context_of_a_wrong_option),
        cmocka_unit_test(messages_name_public_calls),
        cmocka_unit_test(names_of_tensors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
