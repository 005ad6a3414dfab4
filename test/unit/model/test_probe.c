/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_probe.c - looking inside a model: PyTorch's numbers (test/golden/gpt/probe_custom.txt), the
 * bits of a session, and what must hold between edits whatever the numbers are.
 */
#include "sharp_util.h"

#include "base/math.h"
#include "fail_alloc.h"
#include "inspect/probe.h"

/* FIRST: the byte of the text that is read first, as in probe.py. */
enum { L = 2, H = 5, T = 24, V = 256, FIRST = 24 };
static const tg_model_config custom = { L, 40, H, T, V, 160 };

/* A sharp model, a text and a donor's, and a probe for each. */
typedef struct scene {
    tg_context *ctx;
    tg_model *model;
    tg_probe *probe, *donor;
    int32_t tokens[T], other[T];
} scene;

static scene open_scene(unsigned threads, const char *isa, const char *levers) {
    scene s = { .ctx = open_context(threads, isa, levers) };
    OK(s.ctx, tg_model_new(s.ctx, &custom, 42, &s.model));
    sharpen(s.model);
    read_tokens(s.ctx, FIRST, s.tokens, T);
    read_tokens(s.ctx, FIRST + T, s.other, T);
    OK(s.ctx, tg_probe_new(s.ctx, s.model, T, &s.probe));
    OK(s.ctx, tg_probe_new(s.ctx, s.model, T, &s.donor));
    OK(s.ctx, tg_probe_run(s.donor, s.other, NULL, 0, NULL));
    return s;
}

static void close_scene(scene *s) {
    tg_probe_free(s->probe);
    tg_probe_free(s->donor);
    tg_model_free(s->model);
    tg_context_free(s->ctx);
}

static void run(scene *s, const tg_edit *edits, size_t n) {
    OK(s->ctx, tg_probe_run(s->probe, s->tokens, edits, n, s->donor));
}

static bool same_bits(const float *a, const float *b, size_t n) {
    return memcmp(a, b, n * sizeof *a) == 0;
}

/* A copy of the lens behind so many blocks, freed by the caller. */
static float *lens_of(const tg_probe *p, int layer) {
    float *copy = malloc(T * V * sizeof *copy);
    memcpy(copy, tg_probe_lens(p, layer), T * V * sizeof *copy);
    return copy;
}

/* ------------------------------------------------------------------------------- against PyTorch
 */

static const tg_edit experiments[][2] = {
    { { 1, 2, -1, TG_PART_HEAD, TG_EDIT_ZERO } },
    { { 0, 0, 10, TG_PART_ATTENTION, TG_EDIT_ZERO } },
    { { 1, 0, -1, TG_PART_MLP, TG_EDIT_ZERO } },
    { { 0, 0, -1, TG_PART_BLOCK, TG_EDIT_ZERO } },
    { { 0, 0, 23, TG_PART_MLP, TG_EDIT_DONOR } },
    { { 0, 1, -1, TG_PART_HEAD, TG_EDIT_DONOR }, { 1, 0, 20, TG_PART_BLOCK, TG_EDIT_ZERO } },
};
enum { N_EXPERIMENTS = sizeof experiments / sizeof experiments[0] };

static void near(const char *what, const float *have, const double *want, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!(tg_fabs((double)have[i] - want[i]) <= 1e-5))
            fail_msg("%s: value %zu: want %.9g, have %.9g", what, i, want[i], (double)have[i]);
}

static void same_as_pytorch(const char *isa, const char *levers) {
    size_t n;
    double *golden = read_golden("test/golden/gpt/probe_custom.txt", &n);
    assert_int_equal(n, L * H * 4 * T + (L + 1 + N_EXPERIMENTS) * V);
    const double *want = golden;
    scene s = open_scene(2, isa, levers);
    run(&s, NULL, 0);
    for (int l = 0; l < L; l++)
        for (int h = 0; h < H; h++, want += 4 * T)
            near("attention", tg_probe_attention(s.probe, l, h) + (T - 4) * T, want, 4 * T);
    for (int l = 0; l <= L; l++, want += V)
        near("lens", tg_probe_lens(s.probe, l) + (T - 1) * V, want, V);
    for (int e = 0; e < N_EXPERIMENTS; e++, want += V) {
        run(&s, experiments[e], e == N_EXPERIMENTS - 1 ? 2 : 1);
        near("edited", tg_probe_lens(s.probe, L) + (T - 1) * V, want, V);
    }
    close_scene(&s);
    free(golden);
}

static void agrees_with_pytorch(void **state) {
    (void)state;
    for (size_t i = 0; i < tg_isa_count(); i++)
        if (tg_isa_at(i)->usable) same_as_pytorch(tg_isa_at(i)->name, NULL);
    same_as_pytorch(NULL, "-simd");
    same_as_pytorch(NULL, "-flash_attention,-epilogue_fusion");
}

/* ------------------------------------------------------------------------------------ attention */

static void rows_of_attention(void **state) {
    (void)state;
    scene s = open_scene(1, NULL, NULL);
    run(&s, NULL, 0);
    for (int l = 0; l < L; l++)
        for (int h = 0; h < H; h++) {
            const float *p = tg_probe_attention(s.probe, l, h);
            for (int t = 0; t < T; t++) {
                double sum = 0;
                for (int j = 0; j < T; j++) {
                    const double x = (double)p[t * T + j];
                    assert_true(j <= t ? x > 0 && x <= 1 : x == 0);
                    sum += x;
                }
                assert_true(tg_fabs(sum - 1) < 1e-6);
            }
        }
    close_scene(&s);
}

/* ------------------------------------------------------------------------------------------ bits
 */

/* The plan with taps, whole sequences: the bits of generation, token by token and in one go. */
static void lens_is_the_session(void **state) {
    (void)state;
    for (size_t i = 0; i < tg_isa_count(); i++) {
        if (!tg_isa_at(i)->usable) continue;
        scene s = open_scene(2, tg_isa_at(i)->name, NULL);
        run(&s, NULL, 0);
        tg_session *session;
        const float *logits, *lens = tg_probe_lens(s.probe, L);
        OK(s.ctx, tg_session_new(s.ctx, s.model, 0, &session));
        for (int t = 0; t < T; t++) {
            OK(s.ctx, tg_session_eval(session, &s.tokens[t], 1, &logits));
            assert_true(same_bits(logits, lens + t * V, V));
        }
        OK(s.ctx, tg_session_rewind(session, 0));
        OK(s.ctx, tg_session_eval(session, s.tokens, T, &logits));
        assert_true(same_bits(logits, lens + (T - 1) * V, V));
        tg_session_free(session);
        close_scene(&s);
    }
}

/* A part of a text has the bits that it has in the whole: later tokens are not seen. */
static void a_prefix_is_a_prefix(void **state) {
    (void)state;
    scene s = open_scene(2, NULL, NULL);
    run(&s, NULL, 0);
    for (size_t n = 1; n < T; n += 7) {
        tg_probe *p;
        OK(s.ctx, tg_probe_new(s.ctx, s.model, n, &p));
        OK(s.ctx, tg_probe_run(p, s.tokens, NULL, 0, NULL));
        for (int l = 0; l <= L; l++)
            assert_true(same_bits(tg_probe_lens(p, l), tg_probe_lens(s.probe, l), n * V));
        for (size_t t = 0; t < n; t++)
            assert_true(same_bits(tg_probe_attention(p, 1, 3) + t * n,
                                  tg_probe_attention(s.probe, 1, 3) + t * T, n));
        tg_probe_free(p);
    }
    close_scene(&s);
}

static void threads_do_not_matter(void **state) {
    (void)state;
    float *want = NULL;
    for (unsigned threads = 1; threads <= 3; threads += 2) {
        scene s = open_scene(threads, NULL, NULL);
        run(&s, experiments[5], 2);
        if (want)
            assert_true(same_bits(want, tg_probe_lens(s.probe, L), T * V));
        else
            want = lens_of(s.probe, L);
        close_scene(&s);
    }
    free(want);
}

/* No edits, edits that were taken back, and a donor that has run the same text: no bit changes. */
static void nothing_changes_nothing(void **state) {
    (void)state;
    scene s = open_scene(2, NULL, NULL);
    run(&s, NULL, 0);
    float *want[L + 1];
    for (int l = 0; l <= L; l++) want[l] = lens_of(s.probe, l);
    for (int e = 0; e < N_EXPERIMENTS; e++) {
        run(&s, experiments[e], 1);
        assert_false(same_bits(want[L], tg_probe_lens(s.probe, L), T * V));
        run(&s, NULL, 0);
        for (int l = 0; l <= L; l++)
            assert_true(same_bits(want[l], tg_probe_lens(s.probe, l), T * V));
    }
    tg_edit all[L * (3 + H)];
    size_t n = 0;
    for (int l = 0; l < L; l++) {
        for (int h = 0; h < H; h++) all[n++] = (tg_edit) { l, h, -1, TG_PART_HEAD, TG_EDIT_DONOR };
        all[n++] = (tg_edit) { l, 0, -1, TG_PART_ATTENTION, TG_EDIT_DONOR };
        all[n++] = (tg_edit) { l, 0, -1, TG_PART_MLP, TG_EDIT_DONOR };
        all[n++] = (tg_edit) { l, 0, -1, TG_PART_BLOCK, TG_EDIT_DONOR };
    }
    OK(s.ctx, tg_probe_run(s.donor, s.tokens, NULL, 0, NULL));
    for (size_t i = 0; i < n; i++) {
        run(&s, &all[i], 1);
        assert_true(same_bits(want[L], tg_probe_lens(s.probe, L), T * V));
    }
    run(&s, all, n);
    for (int l = 0; l <= L; l++) {
        assert_true(same_bits(want[l], tg_probe_lens(s.probe, l), T * V));
        free(want[l]);
    }
    close_scene(&s);
}

/* ----------------------------------------------------------------------------------------- edits
 */

/* The projection of nothing is its bias: without one, heads that give nothing are attention that
 * gives nothing; with one, attention gives the bias. */
static void all_heads_are_the_attention(void **state) {
    (void)state;
    scene s = open_scene(2, NULL, NULL);
    const tg_edit attention = { 1, 0, -1, TG_PART_ATTENTION, TG_EDIT_ZERO };
    tg_edit heads[H];
    for (int h = 0; h < H; h++) heads[h] = (tg_edit) { 1, h, -1, TG_PART_HEAD, TG_EDIT_ZERO };
    run(&s, &attention, 1);
    float *without = lens_of(s.probe, L);
    run(&s, heads, H);
    assert_false(same_bits(without, tg_probe_lens(s.probe, L), T * V));

    const tg_tensor_spec *bias = tg_weights_find(s.model, "blocks.1.attn.o_proj.bias");
    memset(s.model->weights + bias->offset_elems, 0, bias->cols * sizeof(float));
    run(&s, heads, H);
    assert_true(same_bits(without, tg_probe_lens(s.probe, L), T * V));
    run(&s, heads, H - 1);
    assert_false(same_bits(without, tg_probe_lens(s.probe, L), T * V));
    free(without);
    close_scene(&s);
}

/* The stream behind a block is all that later blocks know of the text. */
static void a_block_from_the_donor_is_the_donor(void **state) {
    (void)state;
    scene s = open_scene(2, NULL, NULL);
    run(&s, NULL, 0);
    float *first = lens_of(s.probe, 0);
    for (int l = 0; l < L; l++) {
        const tg_edit block = { l, 0, -1, TG_PART_BLOCK, TG_EDIT_DONOR };
        run(&s, &block, 1);
        assert_true(same_bits(first, tg_probe_lens(s.probe, 0), T * V));
        for (int k = l + 1; k <= L; k++)
            assert_true(same_bits(tg_probe_lens(s.donor, k), tg_probe_lens(s.probe, k), T * V));
    }
    /* At its last position alone, what comes before stays as it was. */
    const tg_edit last = { 0, 0, T - 1, TG_PART_BLOCK, TG_EDIT_DONOR };
    run(&s, NULL, 0);
    float *own = lens_of(s.probe, L);
    run(&s, &last, 1);
    assert_true(same_bits(own, tg_probe_lens(s.probe, L), (T - 1) * V));
    assert_true(same_bits(tg_probe_lens(s.donor, 1) + (T - 1) * V,
                          tg_probe_lens(s.probe, 1) + (T - 1) * V, V));
    assert_false(same_bits(own + (T - 1) * V, tg_probe_lens(s.probe, L) + (T - 1) * V, V));
    free(own);
    free(first);
    close_scene(&s);
}

/* What a donor gives is what it had after edits of its own; it may be another model. */
static void donors_of_all_kinds(void **state) {
    (void)state;
    scene s = open_scene(2, NULL, NULL);
    const tg_edit no_mlp = { 0, 0, -1, TG_PART_MLP, TG_EDIT_ZERO };
    const tg_edit from_donor = { 0, 0, -1, TG_PART_MLP, TG_EDIT_DONOR };
    run(&s, &no_mlp, 1);
    float *want = lens_of(s.probe, L);
    OK(s.ctx, tg_probe_run(s.donor, s.other, &no_mlp, 1, NULL));
    run(&s, &from_donor, 1);
    assert_true(same_bits(want, tg_probe_lens(s.probe, L), T * V));
    free(want);

    tg_model *fresh;
    tg_probe *p;
    OK(s.ctx, tg_model_new(s.ctx, &custom, 7, &fresh));
    OK(s.ctx, tg_probe_new(s.ctx, fresh, T, &p));
    OK(s.ctx, tg_probe_run(p, s.tokens, &(tg_edit) { 1, 0, -1, TG_PART_BLOCK, TG_EDIT_DONOR }, 1,
                           s.donor));
    assert_false(same_bits(tg_probe_lens(s.donor, L), tg_probe_lens(p, L), T * V)); /* its head */
    tg_probe_free(p);
    tg_model_free(fresh);
    close_scene(&s);
}

static void a_block_left_out_passes_the_stream(void **state) {
    (void)state;
    scene s = open_scene(2, NULL, NULL);
    tg_edit blocks[L];
    for (int l = 0; l < L; l++) blocks[l] = (tg_edit) { l, 0, -1, TG_PART_BLOCK, TG_EDIT_ZERO };
    run(&s, NULL, 0);
    float *embedding = lens_of(s.probe, 0);
    run(&s, blocks, L);
    for (int l = 0; l <= L; l++)
        assert_true(same_bits(embedding, tg_probe_lens(s.probe, l), T * V));
    free(embedding);
    close_scene(&s);
}

static void the_last_edit_counts(void **state) {
    (void)state;
    scene s = open_scene(2, NULL, NULL);
    const tg_edit edits[] = { { 0, 0, -1, TG_PART_MLP, TG_EDIT_ZERO },
                              { 0, 0, -1, TG_PART_MLP, TG_EDIT_DONOR } };
    run(&s, &edits[1], 1);
    float *want = lens_of(s.probe, L);
    run(&s, edits, 2);
    assert_true(same_bits(want, tg_probe_lens(s.probe, L), T * V));
    free(want);
    close_scene(&s);
}

/* Layer 0 is a convolution: it has no heads to look at or to leave out, and is left out whole. */
static void layers_without_heads(void **state) {
    (void)state;
    static const tg_model_config config = { 2, 24, 4, T, V, 0, "lfm2", .kv_heads = 2 };
    static const tg_edit head = { .layer = 0, .part = TG_PART_HEAD, .head = 1, .position = -1 };
    static const tg_edit all = { .layer = 0, .part = TG_PART_ATTENTION, .position = -1 };
    scene s = { .ctx = open_context(2, NULL, NULL) };
    float plain[V];
    OK(s.ctx, tg_model_new(s.ctx, &config, 3, &s.model));
    OK(s.ctx, tg_probe_new(s.ctx, s.model, 9, &s.probe));
    for (int k = 0; k < 3; k++) {
        run(&s, k == 1 ? &head : &all, k > 0);
        const float *last = tg_probe_lens(s.probe, 2) + 8 * V;
        if (k == 0) memcpy(plain, last, sizeof plain);
        assert_int_equal(same_bits(plain, last, V), k < 2);
        assert_null(tg_probe_attention(s.probe, 0, 1));
        assert_non_null(tg_probe_attention(s.probe, 1, 1));
    }
    close_scene(&s);
}

/* ------------------------------------------------------------------------------------- arguments
 */

static void refuses(scene *s, tg_status want, const char *says, const tg_edit *edit,
                    const tg_probe *donor) {
    assert_int_equal(tg_probe_run(s->probe, s->tokens, edit, edit ? 1 : 0, donor), want);
    if (!strstr(tg_context_error(s->ctx), says))
        fail_msg("want '%s' in: %s", says, tg_context_error(s->ctx));
}

static void refuses_bad_arguments(void **state) {
    (void)state;
    static const struct {
        tg_edit edit;
        const char *says;
    } cases[] = {
        { { -1, 0, 0, TG_PART_MLP, TG_EDIT_ZERO }, "edit 0: layer: want 0..1, have -1" },
        { { L, 0, 0, TG_PART_MLP, TG_EDIT_ZERO }, "layer: want 0..1, have 2" },
        { { 0, 0, T, TG_PART_MLP, TG_EDIT_ZERO }, "position: want -1..23, have 24" },
        { { 0, 0, -2, TG_PART_MLP, TG_EDIT_ZERO }, "position: want -1..23, have -2" },
        { { 0, H, 0, TG_PART_HEAD, TG_EDIT_ZERO }, "head: want 0..4, have 5" },
        { { 0, -1, 0, TG_PART_HEAD, TG_EDIT_ZERO }, "head: want 0..4, have -1" },
        { { 0, 0, 0, (tg_model_part)4, TG_EDIT_ZERO }, "part: want 0..3, have 4" },
        { { 0, 0, 0, TG_PART_MLP, (tg_edit_kind)2 }, "kind: want 0..1, have 2" },
    };
    scene s = open_scene(2, NULL, NULL);
    assert_null(tg_probe_lens(s.probe, 0));
    assert_null(tg_probe_attention(s.probe, 0, 0));
    run(&s, NULL, 0);
    float *want = lens_of(s.probe, L);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        refuses(&s, TG_E_RANGE, cases[i].says, &cases[i].edit, NULL);
    const tg_edit from = { 0, 0, 0, TG_PART_MLP, TG_EDIT_DONOR };
    refuses(&s, TG_E_ARG, "want a donor", &from, NULL);
    refuses(&s, TG_E_ARG, "the same one", &from, s.probe);

    tg_probe *other;
    tg_model *small;
    OK(s.ctx, tg_probe_new(s.ctx, s.model, T - 1, &other));
    refuses(&s, TG_E_ARG, "one that has run", &from, other);
    OK(s.ctx, tg_probe_run(other, s.tokens, NULL, 0, NULL));
    refuses(&s, TG_E_ARG, "want 24 tokens, have 23", &from, other);
    tg_probe_free(other);
    const tg_model_config narrow = { L, 20, H, T, V, 80 };
    OK(s.ctx, tg_model_new(s.ctx, &narrow, 1, &small));
    OK(s.ctx, tg_probe_new(s.ctx, small, T, &other));
    OK(s.ctx, tg_probe_run(other, s.tokens, NULL, 0, NULL));
    refuses(&s, TG_E_ARG, "same sizes", &from, other);
    tg_probe_free(other);
    tg_model_free(small);

    const int32_t keep = s.tokens[3];
    s.tokens[3] = V;
    refuses(&s, TG_E_RANGE, "token 3: want an id in [0,256), have 256", NULL, NULL);
    s.tokens[3] = -1;
    refuses(&s, TG_E_RANGE, "token 3", NULL, NULL);
    s.tokens[3] = keep;
    /* All of that left the last run's results alone. */
    assert_true(same_bits(want, tg_probe_lens(s.probe, L), T * V));
    free(want);
    assert_null(tg_probe_lens(s.probe, -1));
    assert_null(tg_probe_lens(s.probe, L + 1));
    assert_null(tg_probe_attention(s.probe, L, 0));
    assert_null(tg_probe_attention(s.probe, 0, H));
    assert_int_equal(tg_probe_new(s.ctx, s.model, 0, &other), TG_E_ARG);
    assert_int_equal(tg_probe_new(s.ctx, s.model, T + 1, &other), TG_E_ARG);
    assert_non_null(strstr(tg_context_error(s.ctx), "want 1..24, have 25"));
    assert_null(other);
    close_scene(&s);
}

static void *heap(void *user, void *ptr, size_t old_bytes, size_t new_bytes) {
    return test_alloc_fn(user, ptr, old_bytes, new_bytes);
}

static void survives_failing_allocations(void **state) {
    (void)state;
    for (size_t fail_at = 1;; fail_at++) {
        test_alloc a = { 0 };
        tg_context_options o = tg_context_options_default();
        o.threads = 1;
        o.alloc = heap;
        o.alloc_user = &a;
        tg_context *ctx;
        tg_model *m;
        tg_probe *p;
        assert_int_equal(tg_context_new(&o, &ctx), TG_OK);
        OK(ctx, tg_model_new(ctx, &custom, 42, &m));
        const int32_t tokens[3] = { 1, 2, 3 };
        a.fail_at = a.requests + fail_at;
        tg_status s = tg_probe_new(ctx, m, 3, &p);
        if (s == TG_OK) s = tg_probe_run(p, tokens, NULL, 0, NULL);
        if (s != TG_OK) {
            assert_int_equal(s, TG_E_MEMORY);
            assert_non_null(strstr(tg_context_error(ctx), "memory"));
        }
        const bool failed = s != TG_OK;
        tg_probe_free(p);
        tg_model_free(m);
        tg_context_free(ctx);
        assert_int_equal(a.live_pieces, 0);
        if (!failed) break;
        assert_true(fail_at < 1000);
    }
}

/* ------------------------------------------------------------------------------------ in training
 */

/* Between two slices of a step the model can be looked at, except while its weights change. */
static bool looked(tg_context *ctx, tg_probe *p, const int32_t *tokens) {
    const tg_status s = tg_probe_run(p, tokens, NULL, 0, NULL);
    if (s != TG_OK && !(s == TG_E_ARG && strstr(tg_context_error(ctx), "update")))
        fail_msg("status %d: %s", (int)s, tg_context_error(ctx));
    return s == TG_OK;
}

/* A run that somebody watches is the run that nobody watches. */
static void watching_does_not_disturb(void **state) {
    (void)state;
    uint64_t hash[2] = { 0, 0 };
    size_t n_looks = 0;
    for (int watched = 0; watched < 2; watched++) {
        tg_train_options o = tg_train_options_default();
        o.steps = 6;
        o.batch = 4;
        o.eval_every = 0;
        run_of r = start_run(open_context(2, NULL, NULL), &custom, &o);
        tg_probe *p = NULL;
        int32_t tokens[T];
        read_tokens(r.ctx, 0, tokens, T);
        if (watched) OK(r.ctx, tg_probe_new(r.ctx, r.model, T, &p));
        float *last = NULL;
        tg_step_report report;
        for (int i = 0; i < o.steps; i++) {
            tg_status s;
            while ((s = tg_trainer_poll(r.trainer, 1e-6, &report)) == TG_PENDING)
                n_looks += watched && looked(r.ctx, p, tokens);
            assert_int_equal(s, TG_OK);
            if (!watched) continue;
            assert_true(looked(r.ctx, p, tokens));
            assert_true(!last || !same_bits(last, tg_probe_lens(p, L), T * V)); /* it learns */
            free(last);
            last = lens_of(p, L);
        }
        free(last);
        hash[watched] = report.loss_hash;
        tg_probe_free(p);
        end_run(&r);
    }
    assert_true(n_looks > 0);
    assert_true(hash[0] == hash[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_pytorch),
        cmocka_unit_test(rows_of_attention),
        cmocka_unit_test(lens_is_the_session),
        cmocka_unit_test(a_prefix_is_a_prefix),
        cmocka_unit_test(threads_do_not_matter),
        cmocka_unit_test(nothing_changes_nothing),
        cmocka_unit_test(all_heads_are_the_attention),
        cmocka_unit_test(a_block_from_the_donor_is_the_donor),
        cmocka_unit_test(donors_of_all_kinds),
        cmocka_unit_test(a_block_left_out_passes_the_stream),
        cmocka_unit_test(the_last_edit_counts),
        cmocka_unit_test(layers_without_heads),
        cmocka_unit_test(refuses_bad_arguments),
        cmocka_unit_test(survives_failing_allocations),
        cmocka_unit_test(watching_does_not_disturb),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
