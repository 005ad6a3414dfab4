/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check_gpu.c - one op on the GPU, on arrays of the host.
 *
 * All of it lies in one buffer, at multiples of 256 bytes, as values of a plan do:
 *
 *     | input | input | guard, output, guard | ... | scratch, guard | dummies |
 *
 * A binding of an output or of scratch goes on over the guard behind it, so that a shader which
 * writes too far can be seen to; no implementation's own bounds check hides it. What no array is
 * copied to holds NaNs.
 */
#include "backend/webgpu/device/self_test/check_gpu.h"

enum { DUMMY_BYTES = TG_GPU_ALIGN, N_DUMMIES = TG_MAX_BIND };

typedef struct piece {
    size_t offset, bytes; /* of the binding */
} piece;

struct tg_gpu_bench {
    tg_ctx *ctx;
    tg_gpu *gpu;
    tg_shader_cache own, *shaders;
    uint32_t step, call; /* the uniform buffers */
    uint32_t buffer;
    char *image; /* [bytes] of the buffer */
    size_t bytes;
    unsigned n_members;
    piece pieces[16 * TG_MAX_MEMBERS]; /* by binding, TG_BIND_OF(member, TG_BIND_...) */
    size_t end, dummies;
    /* Of a run that is PENDING, and is called again with the same arguments. */
    bool bound;
    uint32_t reading;
    tg_gpu_dispatch list[TG_MAX_PASSES];
};

tg_status tg_gpu_bench_new(tg_ctx *ctx, tg_gpu *gpu, uint32_t levers, tg_gpu_bench **out) {
    tg_gpu_bench *b = *out = tg_alloc(&ctx->mem, sizeof *b);
    if (!b) return tg_fail_memory(ctx, "bench of a GPU", sizeof *b);
    *b = (tg_gpu_bench) { .ctx = ctx,
                          .gpu = gpu,
                          .own = { .gpu = gpu, .ctx = ctx, .levers = levers },
                          .shaders = &b->own };
    TG_TRY(tg_gpu_buffer_new(gpu, "step", TG_GPU_ALIGN, true, &b->step));
    return tg_gpu_buffer_new(gpu, "call", TG_GPU_ALIGN, true, &b->call);
}

void tg_gpu_bench_share(tg_gpu_bench *b, tg_shader_cache *shaders) { b->shaders = shaders; }

static void free_buffer(tg_gpu_bench *b) {
    tg_gpu_buffer_free(b->gpu, b->buffer);
    tg_free(&b->ctx->mem, b->image, b->bytes);
    b->buffer = 0;
    b->image = NULL;
    b->bytes = 0;
}

/* Another check may be under way: then it needs them. */
void tg_gpu_bench_rest(tg_gpu_bench *b) {
    if (b && !b->bound) free_buffer(b);
}

void tg_gpu_bench_free(tg_gpu_bench *b) {
    if (!b) return;
    const tg_mem mem = b->ctx->mem;
    tg_gpu_buffer_free(b->gpu, b->step);
    tg_gpu_buffer_free(b->gpu, b->call);
    free_buffer(b);
    tg_shader_cache_deinit(&b->own);
    tg_free(&mem, b, sizeof *b);
}

tg_status tg_gpu_bench_compile(tg_gpu_bench *b, const tg_shader *s) {
    uint32_t pipeline;
    for (unsigned i = 0; i < tg_shader_passes(s); i++)
        TG_TRY(tg_shader_pipeline(b->shaders, s, &s->pass[i], &pipeline));
    return TG_OK;
}

/* Takes room for bytes, with a guard on either side; 0 bytes are nothing. */
static void place(tg_gpu_bench *b, unsigned slot, size_t bytes, size_t guard_bytes) {
    b->pieces[slot] = (piece) { .bytes = 0 };
    if (bytes == 0) return;
    b->pieces[slot] = (piece) { b->end + guard_bytes, (bytes + 3) / 4 * 4 + guard_bytes };
    b->end += guard_bytes + b->pieces[slot].bytes;
    b->end = (b->end + TG_GPU_ALIGN - 1) / TG_GPU_ALIGN * TG_GPU_ALIGN;
}

static bool is_state(const tg_op_desc *d, int in) {
    for (int k = 0; k < d->n_out; k++)
        if (d->state_in[k] == in + 1) return true;
    return false;
}

static void place_all(tg_gpu_bench *b, const tg_op_desc *d, const tg_shader *s, const tg_args *a,
                      size_t guard) {
    b->end = 0;
    for (unsigned m = 0; m < b->n_members; m++) {
        for (int k = 0; k < TG_MAX_IN; k++)
            place(b, TG_BIND_OF(m, TG_BIND_IN(k)),
                  a[m].in[k] && !is_state(d, k) ? tg_type_bytes(&a[m].in_type[k]) : 0, 0);
        for (int k = 0; k < TG_MAX_OUT; k++)
            place(b, TG_BIND_OF(m, TG_BIND_OUT(k)),
                  a[m].out[k] ? tg_type_bytes(&a[m].out_type[k]) : 0, guard);
    }
    place(b, TG_BIND_SCRATCH, s->scratch_bytes ? s->scratch_bytes(a) : 0, guard);
    b->dummies = b->end;
    b->end += N_DUMMIES * DUMMY_BYTES;
}

static tg_status reserve(tg_gpu_bench *b) {
    if (b->end <= b->bytes) return TG_OK;
    const size_t bytes = b->end * 2;
    free_buffer(b);
    b->image = tg_alloc(&b->ctx->mem, bytes);
    if (!b->image) return tg_fail_memory(b->ctx, "image of a buffer", bytes);
    b->bytes = bytes;
    return tg_gpu_buffer_new(b->gpu, "op test", bytes, false, &b->buffer);
}

/* Outputs are copied with their guards, there or back. */
static void copy_outputs(tg_gpu_bench *b, const tg_args *a, size_t guard, bool back) {
    for (unsigned at = 0; at < b->n_members * TG_MAX_OUT; at++) {
        const unsigned m = at / TG_MAX_OUT, k = at % TG_MAX_OUT;
        const piece *p = &b->pieces[TG_BIND_OF(m, TG_BIND_OUT(k))];
        if (!p->bytes) continue;
        char *host = (char *)a[m].out[k] - guard, *image = b->image + p->offset - guard;
        memcpy(back ? host : image, back ? image : host, p->bytes + guard);
    }
}

static void fill_image(tg_gpu_bench *b, const tg_args *a, size_t guard) {
    for (size_t i = 0; i < b->end; i += 4) memcpy(b->image + i, &(uint32_t) { 0x7fc0dead }, 4);
    for (unsigned at = 0; at < b->n_members * TG_MAX_IN; at++) {
        const unsigned m = at / TG_MAX_IN, k = at % TG_MAX_IN;
        const piece *p = &b->pieces[TG_BIND_OF(m, TG_BIND_IN(k))];
        if (p->bytes) memcpy(b->image + p->offset, a[m].in[k], tg_type_bytes(&a[m].in_type[k]));
    }
    copy_outputs(b, a, guard, false);
}

static tg_status bind_pass(tg_gpu_bench *b, const tg_shader *s, const tg_shader_pass *pass,
                           const tg_args *a, tg_gpu_dispatch *d) {
    TG_TRY(tg_shader_pipeline(b->shaders, s, pass, &d->pipeline));
    tg_gpu_range ranges[2 + TG_MAX_BIND] = { { b->step, 0, TG_STEP_WORDS * 4 },
                                             { b->call, 0, TG_CALL_BYTES } };
    for (unsigned i = 0; i < tg_shader_bindings(pass); i++) {
        const piece *p = &b->pieces[pass->bind[i]];
        ranges[2 + i] = (tg_gpu_range) { b->buffer, p->offset, p->bytes };
        if (p->bytes == 0)
            ranges[2 + i] = (tg_gpu_range) { b->buffer, b->dummies + i * DUMMY_BYTES, DUMMY_BYTES };
    }
    tg_shader_fold(pass->groups(a), d);
    return tg_gpu_group_new(b->gpu, d->pipeline, ranges, &d->group);
}

/* An output that adds does so in a call that accumulates. */
static tg_status write_uniforms(tg_gpu_bench *b, const tg_shader *s, const tg_args *a) {
    uint32_t words[TG_STEP_WORDS];
    tg_scalars rt = *a->rt;
    if (a->acc) rt.accumulate = 1;
    tg_shader_words(s, a, a->acc, 0, 0, words);
    TG_TRY(tg_gpu_write(b->gpu, b->step, 0, words, sizeof words));
    return tg_gpu_write(b->gpu, b->call, 0, &rt, sizeof rt);
}

/* As far as it goes without waiting: the objects, then the run, then what came out. */
static tg_status go_on(tg_gpu_bench *b, const tg_shader *s, const tg_args *a, size_t guard) {
    const unsigned n = tg_shader_passes(s);
    if (!b->bound) {
        TG_TRY(reserve(b));
        for (unsigned i = 0; i < n; i++) TG_TRY(bind_pass(b, s, &s->pass[i], a, &b->list[i]));
        b->bound = true;
    }
    const tg_gpu_piece all = { b->buffer, 0, b->end, b->image };
    if (!b->reading) {
        TG_TRY(tg_gpu_settle(b->gpu));
        fill_image(b, a, guard);
        TG_TRY(write_uniforms(b, s, a));
        TG_TRY(tg_gpu_write(b->gpu, b->buffer, 0, b->image, b->end));
        TG_TRY(tg_gpu_submit(b->gpu, b->list, n));
        TG_TRY(tg_gpu_read_begin(b->gpu, &all, 1, &b->reading));
    }
    return tg_gpu_read_end(b->gpu, b->reading, &all, 1);
}

static tg_status want_guard(const tg_gpu_bench *b, const tg_shader *s, size_t guard) {
    const piece *p = &b->pieces[TG_BIND_SCRATCH];
    const uint32_t *behind = (const void *)(b->image + p->offset + p->bytes - guard);
    for (size_t i = 0; p->bytes && i < guard / 4; i++)
        if (behind[i] != 0x7fc0dead)
            return tg_fail(b->ctx, TG_E_INTERNAL, "shader %s: writes behind its scratch", s->name);
    return TG_OK;
}

tg_status tg_gpu_bench_run_merge(tg_gpu_bench *b, const tg_op_desc *d, const tg_shader *s,
                                 const tg_args *a, unsigned n_members, size_t guard_bytes) {
    b->n_members = n_members;
    TG_ASSERT(guard_bytes % TG_GPU_ALIGN == 0);
    place_all(b, d, s, a, guard_bytes);
    const tg_status status = go_on(b, s, a, guard_bytes);
    if (status == TG_PENDING) return status;
    for (unsigned i = 0; i < TG_MAX_PASSES; i++) tg_gpu_group_free(b->gpu, b->list[i].group);
    memset(b->list, 0, sizeof b->list);
    b->bound = false;
    b->reading = 0;
    if (status != TG_OK) return status;
    copy_outputs(b, a, guard_bytes, true);
    return want_guard(b, s, guard_bytes);
}

bool tg_gpu_bench_wants(void *bench, const tg_shader *s) {
    return !(s->needs & ~((const tg_gpu_bench *)bench)->shaders->levers);
}

tg_status tg_gpu_bench_run(void *bench, const tg_op_desc *d, const tg_shader *s, const tg_args *a,
                           size_t guard_bytes) {
    return tg_gpu_bench_run_merge(bench, d, s, a, 1, guard_bytes);
}
