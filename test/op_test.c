/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op_test.c - every op, case and variant on one ISA against the references; gradients by finite
 * differences. Knows no op by name.
 *
 *     op_test [--device webgpu [--one-size]] [--levers LIST] [--filter TEXT]
 *     op_test [--isa NAME] [--levers LIST] [--filter TEXT] [--gradients] [--verbose]
 *
 * Without --levers every variant that may run is tried; with it, the one that these levers choose.
 * With --device webgpu every shader of every op is run on the adapter, against the same references
 * and with the same guards, and those that no case picks, or that are of merges, are compiled. With
 * --levers, too, this is only done with shaders whose text is another one than by default. With
 * --one-size, of shaders whose names differ in digits alone the first is run. It is for software
 * GPUs, which compile a shader for seconds.
 *
 * The last line is "N passed, N failed"; the exit code is 0 only if something ran and nothing
 * failed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/check.h"
#include "backend/webgpu/device/self_test/check_gpu.h"
#include "inspect/inspect.h"
#include "runtime/runtime.h"
#include "simd/cpu.h"

typedef struct arguments {
    const char *device, *isa, *levers, *filter;
    bool gradients, verbose, one_size;
} arguments;

static void report(void *user, const tg_check *c) {
    const arguments *a = user;
    if (!c->passed || a->verbose)
        printf("%s %s %s: error %.3g, allowed %.3g\n", c->passed ? "ok  " : "FAIL", c->op, c->what,
               c->error, c->tolerance);
}

static bool parse(int argc, char **argv, arguments *a) {
    for (int i = 1; i < argc; i++) {
        const bool more = i + 1 < argc;
        if (strcmp(argv[i], "--gradients") == 0)
            a->gradients = true;
        else if (strcmp(argv[i], "--verbose") == 0)
            a->verbose = true;
        else if (strcmp(argv[i], "--one-size") == 0)
            a->one_size = true;
        else if (strcmp(argv[i], "--device") == 0 && more && strcmp(argv[i + 1], "webgpu") == 0)
            a->device = argv[++i];
        else if (strcmp(argv[i], "--isa") == 0 && more)
            a->isa = argv[++i];
        else if (strcmp(argv[i], "--levers") == 0 && more)
            a->levers = argv[++i];
        else if (strcmp(argv[i], "--filter") == 0 && more)
            a->filter = argv[++i];
        else
            return false;
    }
    return true;
}

typedef struct gpu_bench {
    tg_gpu_bench *bench;
    uint32_t changed; /* levers that are not as they are by default; 0: every shader is wanted */
    bool matrices;    /* shaders with matrices of a subgroup can be run, or what stands for them */
    bool one_size;
} gpu_bench;

static tg_status run_shader(void *user, const tg_op_desc *d, const tg_shader *s, const tg_args *a,
                            size_t guard_bytes) {
    return tg_gpu_bench_run(((gpu_bench *)user)->bench, d, s, a, guard_bytes);
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static bool same_but_numbers(const char *a, const char *b) {
    for (;;) {
        while (is_digit(*a)) a++;
        while (is_digit(*b)) b++;
        if (*a != *b) return false;
        if (!*a) return true;
        a++, b++;
    }
}

/* How many shaders before the i-th of an op have its very name: they are for other operands. */
static size_t namesakes(const tg_op_desc *d, size_t i) {
    size_t n = 0;
    for (size_t k = 0; k < i; k++) n += strcmp(d->shaders[k].name, d->shaders[i].name) == 0;
    return n;
}

/* An op has the same shader in another size, before this one. */
static bool is_another_size(const tg_shader *s) {
    for (int op = 0; op < TG_OP_COUNT; op++) {
        const tg_op_desc *d = tg_op_table[op];
        for (size_t i = 0; i < d->n_shaders; i++) {
            if (s != &d->shaders[i]) continue;
            for (size_t k = 0; k < i; k++)
                if (same_but_numbers(d->shaders[k].name, s->name) &&
                    strcmp(d->shaders[k].name, s->name) != 0 && namesakes(d, k) == namesakes(d, i))
                    return true;
            return false;
        }
    }
    return false; /* a merge */
}

static bool wants_shader(void *user, const tg_shader *s) {
    const gpu_bench *b = user;
    if (b->one_size && is_another_size(s)) return false;
    uint32_t levers = s->needs;
    for (unsigned i = 0; i < tg_shader_passes(s); i++) {
        levers |= tg_shader_pass_levers(&s->pass[i]);
        if (s->pass[i].matrices && !b->matrices) return false;
    }
    return !b->changed || (levers & b->changed);
}

/* What has been run was compiled for that, and is not compiled again. */
static tg_status compile_shaders(gpu_bench *b, tg_gpu *gpu, size_t *n_run) {
    for (int op = 0; op < TG_OP_COUNT; op++) {
        const tg_op_desc *d = tg_op_table[op];
        for (size_t i = 0; i < d->n_shaders + d->n_merges; i++) {
            const tg_shader *s =
                i < d->n_shaders ? &d->shaders[i] : &d->merges[i - d->n_shaders].shader;
            if (!wants_shader(b, s)) continue;
            TG_TRY(tg_gpu_bench_compile(b->bench, s));
            ++*n_run;
        }
    }
    return tg_gpu_settle(gpu);
}

static tg_status run_gpu(tg_context *ctx, arguments *a, size_t *n_run, size_t *n_failed) {
    tg_gpu *gpu;
    gpu_bench b = { .changed = a->levers ? tg_levers_default() ^ ctx->levers : 0,
                    .one_size = a->one_size };
    TG_TRY(tg_gpu_open(&ctx->err, &gpu));
    const tg_gpu_info *info = tg_gpu_get_info(gpu);
    printf("%s, %s, %s\n", info->adapter, info->driver, info->api);
    /* Two tiles of halves and sums on their way out take that much of a workgroup's memory. */
    b.matrices = info->max_group_bytes >= 24576;
    printf("%s subgroup matrices: %s%s\n", info->has_matrices ? "with" : "no", info->matrices,
           info->has_matrices ? ""
           : b.matrices       ? "; their shaders run without"
                        : "; their shaders are left out, for want of 24,576 bytes a workgroup");
    const uint32_t absent = info->subgroups ? 0 : TG_LEVER_BIT(subgroups);
    tg_status s = tg_gpu_bench_new(&ctx->err, gpu, ctx->levers & ~absent, &b.bench);
    if (s == TG_OK) {
        const tg_check_executor executor = { run_shader, &b, wants_shader };
        const tg_check_options o = {
            ctx->isa, ctx->levers, false, a->filter, report, a, &executor
        };
        s = tg_check_ops(&ctx->err, &o, n_run, n_failed);
        if (s == TG_OK && !a->filter) s = compile_shaders(&b, gpu, n_run);
    }
    tg_gpu_bench_free(b.bench);
    tg_gpu_close(gpu);
    return s;
}

static tg_status run(tg_context *ctx, arguments *a, size_t *n_run, size_t *n_failed) {
    if (a->device) return run_gpu(ctx, a, n_run, n_failed);
    const tg_check_options o = { ctx->isa, ctx->levers, a->levers == NULL, a->filter, report,
                                 a,        NULL };
    if (!a->gradients) return tg_check_ops(&ctx->err, &o, n_run, n_failed);
    TG_TRY(tg_check_op_gradients(&ctx->err, &o, n_run, n_failed));
    if (a->filter) return TG_OK;
    const size_t failed = *n_failed;
    TG_TRY(tg_inspect_model_gradients(ctx, report, a, n_failed));
    *n_run += *n_failed == failed;
    return TG_OK;
}

int main(int argc, char **argv) {
    arguments a = { .isa = NULL };
    if (!parse(argc, argv, &a)) {
        fprintf(
            stderr,
            "op_test: want --device webgpu, --one-size, --isa NAME, --levers LIST, --filter TEXT, --gradients, --verbose\n");
        return 2;
    }
    tg_context_options o = tg_context_options_default();
    o.isa = a.isa;
    o.levers = a.levers;
    o.threads = 1;
    tg_context *ctx;
    size_t n_run = 0, n_failed = 0;
    tg_status s = tg_context_new(&o, &ctx);
    if (s == TG_OK) s = run(ctx, &a, &n_run, &n_failed);
    if (s != TG_OK) {
        fprintf(stderr, "op_test: %s\n", tg_context_error(ctx));
        n_failed++;
    }
    printf("op_test %s%s: %zu passed, %zu failed\n",
           ctx ? a.device ? a.device : tg_context_isa(ctx) : "?", a.gradients ? " gradients" : "",
           n_run >= n_failed ? n_run - n_failed : 0, n_failed);
    tg_context_free(ctx);
    return n_run > 0 && n_failed == 0 ? 0 : 1;
}
