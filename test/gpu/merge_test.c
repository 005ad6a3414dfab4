/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge_test.c - steps that run as one dispatch (tg_merge), between guards.
 *
 * test/op_test runs ops one by one; a merge exists in plans only, where what it writes too far ends
 * in another value, and what a binding's own limit stops is not seen. Here its tensors lie in one
 * buffer, each between guards of NaNs, and bindings go on over the guard behind:
 *
 *     | guard | x | guard | dy | guard | ... | db | guard | scratch | guard |
 *
 * After the dispatch the guards are as they were, so are the inputs, and outputs are what the
 * members' references make of them. What goes from the leader to a member and is never written
 * stays unwritten.
 */
#include "../unit/engine_util.h"

#include "backend/cpu/check.h"
#include "backend/webgpu/shaders.h"
#include "backend/webgpu/webgpu.h"
#include "base/math.h"
#include "ops/build.h"
#include "runtime/runtime.h"

enum { GUARD = 256, GUARD_BITS = 0x7fc0dead, MOST = 1 << 20 };

/* Back through a layer: dy [M,N], w [K,N], x [M,K], z [M,K] before the activation. */
enum { DY, W, X, Z, DX, DW, DB, DZ, SCRATCH, N_TENSORS };

typedef struct tensor {
    size_t offset, elems; /* in the image, in elements */
} tensor;

typedef struct bench {
    tg_context *ctx;
    tg_gpu *gpu;
    tg_shader_cache shaders;
    uint32_t words, call, buffer;
    tensor tensors[N_TENSORS];
    size_t end;
    uint32_t before[MOST], after[MOST];
    tg_args args[TG_MAX_MEMBERS];
    tg_scalars rt;
} bench;

static float *data_of(bench *b, uint32_t *image, int t) {
    return (float *)(void *)(image + b->tensors[t].offset);
}

static void place(bench *b, int t, size_t elems) {
    b->tensors[t] = (tensor) { b->end + GUARD, elems };
    b->end = (b->tensors[t].offset + elems + GUARD + 63) / 64 * 64;
    assert_true(b->end <= MOST);
}

/* A member's step, on the image of before. */
static void set_args(bench *b, unsigned m, int in0, tg_type type0, int in1, tg_type type1, int out,
                     tg_type type) {
    tg_args *a = &b->args[m];
    *a = (tg_args) { .in = { data_of(b, b->before, in0) },
                     .out = { data_of(b, b->before, out) },
                     .in_type = { type0 },
                     .out_type = { type },
                     .rt = &b->rt,
                     .workers = 1 };
    if (in1 == N_TENSORS) return;
    a->in[1] = data_of(b, b->before, in1);
    a->in_type[1] = type1;
}

/* Outputs that add begin with numbers, the others with what nobody should find there. */
static void set_up(bench *b, size_t M, size_t N, size_t K, bool add) {
    const size_t elems[] = { M * N, K * N, M * K, M * K, M * K, K * N, N, M * K };
    b->end = 0;
    for (int t = 0; t < SCRATCH; t++) place(b, t, elems[t]);
    for (size_t i = 0; i < MOST; i++) b->before[i] = GUARD_BITS;
    for (int t = 0; t < SCRATCH; t++)
        if (t < DX || (add && (t == DW || t == DB)))
            tg_check_fill_f32(data_of(b, b->before, t), elems[t], M + N + K, (uint32_t)t, 1);
    const tg_type mn = tg_type_2d(TG_F32, M, N), kn = tg_type_2d(TG_F32, K, N),
                  mk = tg_type_2d(TG_F32, M, K), n = tg_type_1d(TG_F32, N);
    b->rt = (tg_scalars) { .accumulate = add };
    set_args(b, 0, DY, mn, W, kn, DX, mk);
    set_args(b, 1, X, mk, DY, mn, DW, kn);
    set_args(b, 2, DY, mn, N_TENSORS, mn, DB, n);
    set_args(b, 3, Z, mk, DX, mk, DZ, mk);
    b->args[0].attr.i[0] = 2;
    b->args[1].attr.i[0] = 1;
    b->args[3].attr.i[0] = TG_ACT_GELU_ERF;
    b->args[1].acc = b->args[2].acc = add;
}

/* The tensor of a binding; N_TENSORS: none. */
static int tensor_of(const tg_merge *merge, unsigned slot) {
    static const int in[TG_MAX_MEMBERS][2] = { { DY, W }, { X, DY }, { DY, N_TENSORS }, { Z, DX } };
    static const int out[TG_MAX_MEMBERS] = { DX, DW, DB, DZ };
    const unsigned member = slot / 16, of = slot % 16;
    if (slot == TG_BIND_SCRATCH) return merge->shader.scratch_bytes ? SCRATCH : N_TENSORS;
    if (member >= merge->n_members) return N_TENSORS;
    return of >= TG_BIND_OUT(0) ? out[member] : in[member][of - TG_BIND_IN(0)];
}

static void run_pass(bench *b, const tg_merge *merge, const tg_shader_pass *pass) {
    tg_gpu_dispatch d;
    tg_gpu_range ranges[2 + TG_MAX_BIND] = { { b->words, 0, TG_STEP_WORDS * 4 },
                                             { b->call, 0, TG_CALL_BYTES } };
    OK(b->ctx, tg_shader_pipeline(&b->shaders, &merge->shader, pass, &d.pipeline));
    for (unsigned i = 0; i < tg_shader_bindings(pass); i++) {
        const int t = tensor_of(merge, pass->bind[i]);
        const tensor *of = &b->tensors[t];
        ranges[2 + i] = (tg_gpu_range) { b->buffer, (MOST + i * 64) * 4, 256 };
        if (t < N_TENSORS)
            ranges[2 + i] = (tg_gpu_range) { b->buffer, of->offset * 4, (of->elems + GUARD) * 4 };
    }
    tg_shader_fold(pass->groups(b->args), &d);
    OK(b->ctx, tg_gpu_group_new(b->gpu, d.pipeline, ranges, &d.group));
    OK(b->ctx, tg_gpu_settle(b->gpu));
    OK(b->ctx, tg_gpu_submit(b->gpu, &d, 1));
    tg_gpu_group_free(b->gpu, d.group);
}

static void run_merge(bench *b, const tg_merge *merge) {
    const tg_shader *s = &merge->shader;
    uint32_t words[TG_STEP_WORDS];
    place(b, SCRATCH, s->scratch_bytes ? s->scratch_bytes(b->args) / 4 : 0);
    tg_shader_words(s, b->args, b->args[0].acc, 0, 0, words);
    for (unsigned m = 1; m < merge->n_members; m++)
        words[61] |= (uint32_t)b->args[m].acc << 8 * (m - 1);
    OK(b->ctx, tg_gpu_write(b->gpu, b->words, 0, words, sizeof words));
    OK(b->ctx, tg_gpu_write(b->gpu, b->call, 0, &b->rt, sizeof b->rt));
    OK(b->ctx, tg_gpu_write(b->gpu, b->buffer, 0, b->before, b->end * 4));
    for (unsigned i = 0; i < tg_shader_passes(s); i++) run_pass(b, merge, &s->pass[i]);
    const tg_gpu_piece all = { b->buffer, 0, b->end * 4, b->after };
    uint32_t reading;
    OK(b->ctx, tg_gpu_read_begin(b->gpu, &all, 1, &reading));
    OK(b->ctx, tg_gpu_read_end(b->gpu, reading, &all, 1));
}

/* Which tensors the merge writes; scratch may be left as it likes. */
static bool is_written(const tg_merge *merge, int t) {
    return t == DW || t == DB || t == (merge->n_members == 4 ? DZ : DX);
}

static void check_outside(bench *b, const tg_merge *merge) {
    for (size_t i = 0; i < b->end; i++) {
        bool open = false;
        for (int t = 0; t < N_TENSORS && !open; t++)
            open = (t == SCRATCH || is_written(merge, t)) && i >= b->tensors[t].offset &&
                   i < b->tensors[t].offset + b->tensors[t].elems;
        if (!open && b->after[i] != b->before[i])
            fail_msg("%s: element %zu was written and is nobody's", merge->shader.name, i);
    }
}

/* Runs the references on the image of before, once it is no longer needed. */
static void check_outputs(bench *b, const tg_merge *merge) {
    for (unsigned m = 0; m < merge->n_members; m++) tg_op_table[merge->ops[m]]->ref(&b->args[m]);
    for (int t = DX; t < SCRATCH; t++) {
        const float *want = data_of(b, b->before, t), *have = data_of(b, b->after, t);
        for (size_t i = 0; is_written(merge, t) && i < b->tensors[t].elems; i++)
            if (!(tg_fabs((double)have[i] - (double)want[i]) <
                  2e-5 * (1 + tg_fabs((double)want[i]))))
                fail_msg("%s: output %d, element %zu: want %.9g, have %.9g", merge->shader.name,
                         t - DX, i, (double)want[i], (double)have[i]);
    }
}

/* Around tiles of 32 and 64; many rows, so that sums are cut. */
static const size_t shapes[][3] = { { 1, 4, 4 },    { 31, 68, 36 },   { 33, 36, 64 },
                                    { 65, 32, 68 }, { 300, 20, 132 }, { 67, 516, 4 } };

static void merges_keep_to_their_own(void **state) {
    (void)state;
    bench *b = calloc(1, sizeof *b);
    tg_context_options o = tg_context_options_default();
    o.threads = 1;
    o.device = "webgpu";
    if (tg_context_new(&o, &b->ctx) != TG_OK) fail_msg("context: %s", tg_context_error(b->ctx));
    b->gpu = tg_webgpu_gpu(b->ctx->backend);
    b->shaders = (tg_shader_cache) { .gpu = b->gpu, .ctx = &b->ctx->err, .levers = b->ctx->levers };
    OK(b->ctx, tg_gpu_buffer_new(b->gpu, "words", TG_GPU_ALIGN, true, &b->words));
    OK(b->ctx, tg_gpu_buffer_new(b->gpu, "call", TG_GPU_ALIGN, true, &b->call));
    OK(b->ctx, tg_gpu_buffer_new(b->gpu, "all", (MOST + TG_MAX_BIND * 64) * 4, false, &b->buffer));
    const tg_op_desc *leader = tg_op_table[TG_OP_matmul];
    assert_true(leader->n_merges > 0);
    for (size_t i = 0; i < leader->n_merges; i++) {
        const tg_merge *merge = &leader->merges[i];
        size_t n = 0;
        for (size_t k = 0; k < 2 * sizeof shapes / sizeof *shapes; k++) {
            const size_t *s = shapes[k / 2];
            set_up(b, s[0], s[1], s[2], k % 2);
            if (merge->shader.fits && !merge->shader.fits(b->args)) continue;
            if (merge->shader.scratch_bytes && !merge->shader.scratch_bytes(b->args)) continue;
            run_merge(b, merge);
            check_outside(b, merge);
            check_outputs(b, merge);
            n++;
        }
        print_message("%s, of %d steps: %zu cases\n", merge->shader.name, merge->n_members, n);
        assert_true(n >= 2);
    }
    tg_shader_cache_deinit(&b->shaders);
    tg_context_free(b->ctx);
    free(b);
}

/* Nobody else leads merges: one that does needs tensors here. */
static void no_merge_is_left_out(void **state) {
    (void)state;
    for (int op = 0; op < TG_OP_COUNT; op++)
        assert_true(op == TG_OP_matmul || tg_op_table[op]->n_merges == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merges_keep_to_their_own),
        cmocka_unit_test(no_merge_is_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
