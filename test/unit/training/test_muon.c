/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_muon.c - training by Muon: the update against PyTorch's, on any number of threads, through a
 * save, and refused as a whole.
 */
#include "engine_util.h"

#include "base/math.h"
#include "io/run/file.h"
#include "training/train.h"

static const tg_model_config nano = { 2, 24, 3, 16, 256, 96 };
static const char *const SAVE = "build/test_muon.tinygpt";

static tg_train_options options(tg_optimizer optimizer) {
    tg_train_options o = tg_train_options_default();
    o.steps = 8;
    o.batch = 5;
    o.lr = 3e-3;
    o.eval_every = 4;
    o.eval_windows = 9;
    o.optimizer = optimizer;
    return o;
}

static run_of fresh(unsigned threads, tg_optimizer optimizer) {
    const tg_train_options o = options(optimizer);
    return start_run(open_context(threads, NULL, NULL), &nano, &o);
}

/* The numbers of tools/oracle/muon.py: element e of tensor `tensor` at a step. */
static void fill(const tg_layout *l, float *flat, double step) {
    for (size_t i = 0; i < l->n_tensors; i++) {
        const tg_tensor_spec *t = &l->tensors[i];
        for (size_t e = 0; e < t->rows * t->cols; e++)
            flat[t->offset_elems + e / t->cols * t->row_stride_elems + e % t->cols] =
                (float)tg_sin(0.01 * (double)e * (double)e + (double)i + 0.7 * step);
    }
}

static double sum_of(const tg_tensor_spec *t, const float *flat) {
    double sum = 0;
    for (size_t e = 0; e < t->rows * t->cols; e++)
        sum += (double)flat[t->offset_elems + e / t->cols * t->row_stride_elems + e % t->cols] *
               tg_cos((double)e);
    return sum;
}

static void update(tg_trainer *t, int32_t step) {
    const tg_scalars rt = { .step = step, .lr = 0.02f };
    tg_run run = { .deadline_ms = 0 };
    OK(t->ctx, tg_backend_run(t->ctx->backend, &t->plans.update, &rt, &run));
}

static void updates_are_pytorchs(void **state) {
    (void)state;
    const tg_model_config custom = { 2, 40, 5, 24, 256, 160 };
    tg_train_options o = options(TG_MUON);
    o.clip = 0;
    run_of r = start_run(open_context(2, NULL, NULL), &custom, &o);
    tg_trainer *t = r.trainer;
    const tg_layout *l = &t->model->layout;
    size_t n;
    double *want = read_golden("test/golden/gpt/muon_custom.txt", &n);
    assert_int_equal(n, l->n_tensors);
    fill(l, t->model->weights, 0);
    for (int32_t step = 1; step <= 3; step++) {
        fill(l, t->grads.data, step);
        update(t, step);
    }
    for (size_t i = 0; i < n; i++) {
        const double have = sum_of(&l->tensors[i], t->model->weights);
        if (!(tg_fabs(have - want[i]) <= 1e-4 * (1 + tg_fabs(want[i]))))
            fail_msg("%s: want %.9g, have %.9g", l->tensors[i].name, want[i], have);
    }
    free(want);
    end_run(&r);
}

/* The weights of an expert go by its own gradients alone, so that those of another one may have any
 * length: nothing of a tensor of experts is taken as one matrix. */
static void experts_are_matrices_of_their_own(void **state) {
    (void)state;
    static const tg_model_config routed = { .layers = 1,
                                            .width = 16,
                                            .heads = 2,
                                            .ctx = 8,
                                            .vocab = 256,
                                            .mlp = 24,
                                            .family = "qwen3moe",
                                            .experts = 3,
                                            .experts_used = 2 };
    tg_train_options o = options(TG_MUON);
    size_t tensors = 0;
    o.clip = 0;
    run_of run[2];
    for (int k = 0; k < 2; k++) {
        run[k] = start_run(open_context(1, NULL, NULL), &routed, &o);
        tg_trainer *t = run[k].trainer;
        const tg_layout *l = &t->model->layout;
        fill(l, t->model->weights, 0);
        fill(l, t->grads.data, 1);
        for (size_t i = 0; k && i < l->n_tensors; i++) {
            const tg_tensor_spec *s = &l->tensors[i];
            float *first = (float *)t->grads.data + s->offset_elems;
            if (!(s->want->flags & TG_WANT_EXPERTS)) continue;
            for (size_t e = 0; e < s->rows / 3 * s->cols; e++)
                first[e / s->cols * s->row_stride_elems + e % s->cols] *= 100;
        }
        update(t, 1);
    }
    const tg_layout *l = &run[0].model->layout;
    for (size_t i = 0; i < l->n_tensors; i++) {
        const tg_tensor_spec *s = &l->tensors[i];
        if (!(s->want->flags & TG_WANT_EXPERTS)) continue;
        tensors++;
        for (size_t r = s->rows / 3; r < s->rows; r++) {
            const size_t at = s->offset_elems + r * s->row_stride_elems;
            assert_memory_equal(run[0].model->weights + at, run[1].model->weights + at,
                                s->cols * sizeof(float));
        }
    }
    assert_int_equal(tensors, 3);
    for (int k = 0; k < 2; k++) end_run(&run[k]);
}

/* What is no matrix of a layer is AdamW's, to the bit. */
static void others_stay_with_adamw(void **state) {
    (void)state;
    run_of a = fresh(1, TG_ADAMW), m = fresh(1, TG_MUON);
    steps_until(&a, 1);
    steps_until(&m, 1);
    const tg_layout *l = &a.model->layout;
    size_t same = 0;
    for (size_t i = 0; i < l->n_params; i++) {
        const tg_param *p = &l->params[i];
        const bool equal =
            memcmp(a.model->weights + p->offset_elems, m.model->weights + p->offset_elems,
                   tg_type_elems(&p->type) * sizeof(float)) == 0;
        assert_int_equal(equal, p->layer < 0 || p->type.n_dims == 1);
        same += equal;
    }
    assert_true(same > 0 && same < l->n_params);
    end_run(&a);
    end_run(&m);
}

/* The same bits on any number of threads, and behind a save, which says how it goes on. */
static void a_run_is_the_run(void **state) {
    (void)state;
    run_of one = fresh(1, TG_MUON), three = fresh(3, TG_MUON);
    steps_until(&one, 5);
    OK(one.ctx, tg_trainer_save(one.trainer, SAVE));
    const tg_step_report a = steps_until(&one, 8), b = steps_until(&three, 8);
    assert_int_equal(a.loss_hash, b.loss_hash);
    tg_step_report c = { .step = 0 };
    tg_trainer *t;
    OK(one.ctx, tg_trainer_open(one.ctx, SAVE, one.text, 0, &t));
    assert_int_equal(t->o.optimizer, TG_MUON);
    while (c.step < 8) OK(one.ctx, tg_trainer_step(t, &c));
    assert_int_equal(a.loss_hash, c.loss_hash);
    assert_memory_equal(t->model->weights, one.model->weights, one.model->block.bytes);
    tg_trainer_free(t);
    end_run(&one);
    end_run(&three);
}

/* A gradient that is not finite leaves weights and momentum as they were. */
static void a_refused_update_writes_nothing(void **state) {
    (void)state;
    run_of r = fresh(1, TG_MUON);
    tg_trainer *t = r.trainer;
    steps_until(&r, 2);
    const size_t bytes = t->model->layout.n_elems * sizeof(float);
    float *before = malloc(2 * bytes);
    assert_non_null(before);
    memcpy(before, t->model->weights, bytes);
    memcpy((char *)before + bytes, t->adam_m.data, bytes);
    ((float *)t->grads.data)[3] = (float)TG_NAN;
    update(t, 3);
    assert_memory_equal(before, t->model->weights, bytes);
    assert_memory_equal((char *)before + bytes, t->adam_m.data, bytes);
    free(before);
    end_run(&r);
}

static void names_a_bad_momentum(void **state) {
    (void)state;
    tg_train_options o = options(TG_MUON);
    o.momentum = 1;
    tg_context *ctx = open_context(1, NULL, NULL);
    tg_text *text;
    tg_model *model;
    tg_trainer *t;
    OK(ctx, tg_text_open(ctx, STORIES, &text));
    OK(ctx, tg_model_new(ctx, &nano, 1, &model));
    assert_int_equal(tg_trainer_new(ctx, model, text, &o, &t), TG_E_ARG);
    assert_non_null(strstr(tg_context_error(ctx), "momentum"));
    tg_model_free(model);
    tg_text_free(text);
    tg_context_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(updates_are_pytorchs),
        cmocka_unit_test(experts_are_matrices_of_their_own),
        cmocka_unit_test(others_stay_with_adamw),
        cmocka_unit_test(a_run_is_the_run),
        cmocka_unit_test(a_refused_update_writes_nothing),
        cmocka_unit_test(names_a_bad_momentum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
