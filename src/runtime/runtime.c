/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime.c - opening a context: options are checked, the ISA and levers chosen, the pool started,
 * and the banner says what is in use and why nothing better is.
 */
#include "runtime/runtime.h"

#include "backend/cpu/cpu.h"
#include "backend/webgpu/device/self_test/check_gpu.h"
#include "backend/webgpu/webgpu.h"
#include "base/os/os.h"
#include "base/str.h"
#include "base/time.h"
#include "simd/cpu.h"
#include "simd/peak.h"

/* The bits follow the order of ir/levers.def. They are never stored in a file: names are. */
uint32_t tg_levers_default(void) {
    uint32_t levers = 0;
    for (int i = 0; i < TG_LEVER_COUNT; i++)
        if (tg_lever_table[i].default_on) levers |= 1u << i;
    return levers;
}

/* The name comes out of a list and is not terminated, so it has a length. */
static int find_lever(const char *name, size_t n_bytes) {
    for (int i = 0; i < TG_LEVER_COUNT; i++)
        if (strlen(tg_lever_table[i].name) == n_bytes &&
            memcmp(tg_lever_table[i].name, name, n_bytes) == 0)
            return i;
    return -1;
}

/* A line that is only kept as a record of what was tried. */
static bool is_withdrawn(int lever) {
    return strncmp(tg_lever_table[lever].state, "withdrawn", 9) == 0;
}

/* Nobody knows the names by heart, so the message lists them. The item is cut at 64 bytes, because
 * it may be the whole of a mistyped command line. */
static tg_status unknown_lever(tg_ctx *err, const char *item, size_t n_bytes) {
    char known[512] = "";
    for (int i = 0; i < TG_LEVER_COUNT; i++)
        if (!is_withdrawn(i)) tg_str_append(known, sizeof known, " %s", tg_lever_table[i].name);
    return tg_fail(err, TG_E_ARG, "levers: want a list of +name and -name out of%s, have '%.*s'",
                   known, (int)(n_bytes < 64 ? n_bytes : 64), item);
}

/* Items are applied from left to right, and the last word about a lever counts; so a caller may
 * append its own to the user's. After an error *levers holds what stood before the bad item. An
 * empty item between two commas is unknown, too; a comma at the end is fine. */
tg_status tg_levers_parse(tg_ctx *err, const char *text, uint32_t *levers) {
    for (const char *item = text; item && *item;) {
        const char *comma = strchr(item, ',');
        const size_t n = comma ? (size_t)(comma - item) : strlen(item);
        const bool off = n > 0 && item[0] == '-', on = n > 0 && item[0] == '+';
        const int lever = off || on ? find_lever(item + 1, n - 1) : -1;
        if (lever < 0) return unknown_lever(err, item, n);
        if (on && is_withdrawn(lever))
            return tg_fail(err, TG_E_ARG, "levers: %s cannot be switched on, it is %s",
                           tg_lever_table[lever].name, tg_lever_table[lever].state);
        if (on)
            *levers |= 1u << lever;
        else
            *levers &= ~(1u << lever);
        item += comma ? n + 1 : n;
    }
    return TG_OK;
}

/* The row of the ISA asked for; it must be built in and usable here. Two different mistakes get two
 * messages: a name that nobody knows, and one that this CPU has no use for. NULL is the best
 * one. */
static tg_status choose_isa(tg_context *ctx, const char *name) {
    const tg_isa_desc *isa = name ? tg_isa_find(name) : tg_isa_best();
    if (!isa) {
        char known[128] = "";
        size_t n;
        const tg_isa_desc *list = tg_isa_list(&n);
        for (size_t i = 0; i < n; i++) tg_str_append(known, sizeof known, " %s", list[i].name);
        return tg_fail(&ctx->err, TG_E_ARG, "isa: want one of%s, have '%s'", known, name);
    }
    if (!tg_isa_usable(isa))
        return tg_fail(&ctx->err, TG_E_ARG, "isa: %s needs %s, which this CPU does not have", name,
                       isa->needs);
    ctx->isa = isa->id;
    return TG_OK;
}

/* More threads than processors are allowed, with a warning: the tests need them to show that bits
 * do not depend on the number. The lever is asked after the range, so that a wrong number is an
 * error even where it would not be used. */
static tg_status choose_threads(tg_context *ctx, unsigned wanted) {
    tg_os_cpus cpus;
    tg_os_cpus_get(&cpus);
    if (wanted > TG_POOL_THREADS_MAX)
        return tg_fail(&ctx->err, TG_E_ARG, "threads: want 1..%u, have %u", TG_POOL_THREADS_MAX,
                       wanted);
    ctx->threads = wanted ? wanted : cpus.usable;
    if (ctx->threads > TG_POOL_THREADS_MAX) ctx->threads = TG_POOL_THREADS_MAX;
    if (!(ctx->levers & TG_LEVER_BIT(threads))) ctx->threads = 1;
    if (wanted > cpus.usable)
        tg_say(&ctx->err, TG_LOG_WARNING,
               "%u threads on %u usable processors: they will wait for each other", wanted,
               cpus.usable);
    return TG_OK;
}

/* A GPU that is no hardware is named as what it is: nobody is to take its times for a GPU's. Ops
 * without a shader take whole plans to the CPU. */
static void write_gpu(tg_context *ctx) {
    const tg_gpu_info *i = tg_gpu_get_info(tg_webgpu_gpu(ctx->backend));
    char *const banner = ctx->banner;
    const size_t room = sizeof ctx->banner;
    tg_str_append(banner, room, "webgpu %s (%s%s%s, by %s), f32%s%s%s%s%s, ", i->adapter, i->api,
                  i->driver[0] ? ", " : "", i->driver, i->library, i->f16 ? ", f16" : "",
                  i->has_matrices ? ", subgroup matrices" : "", i->subgroups ? ", subgroups" : "",
                  i->timestamps ? ", timestamps" : "",
                  i->software ? ", software: computes on the CPU" : "");
    tg_str_append(banner, room,
                  "limits: buffer %" PRIu64 " MiB, binding %" PRIu64
                  " MiB, workgroup %u threads %u bytes, ",
                  i->max_buffer_bytes >> 20, i->max_binding_bytes >> 20, i->max_group_threads,
                  i->max_group_bytes);
    tg_str_append(banner, room, "%s", ctx->backend->note);
    for (int op = 0; op < TG_OP_COUNT; op++) {
        const tg_op_desc *d = tg_op_table[op];
        if (!d->structural && d->n_shaders == 0)
            tg_str_append(banner, room, "%s on the CPU, ", d->name);
    }
}

/* One line for logs and benchmarks: whoever reads a number must see what made it. Only what departs
 * from the best case is mentioned, so a banner that ends after the threads is good news. Reference
 * kernels are named op by op, since they are slower by orders of magnitude. */
static void write_banner(tg_context *ctx) {
    size_t n;
    const tg_isa_desc *list = tg_isa_list(&n);
    char *const banner = ctx->banner;
    const size_t room = sizeof ctx->banner;
    tg_os_cpus cpus;
    tg_os_cpus_get(&cpus);
    tg_str_append(banner, room, "tinygpt %s, ", TG_VERSION_TEXT);
    if (ctx->backend != ctx->cpu) write_gpu(ctx);
    tg_str_append(banner, room, "cpu %s", list[ctx->isa].name);
    if (ctx->isa != tg_isa_best()->id)
        tg_str_append(banner, room, " (asked for; %s is faster)", tg_isa_best()->name);
    for (size_t i = ctx->isa + 1; i < n; i++)
        if (!tg_isa_usable(&list[i]))
            tg_str_append(banner, room, " (no %s on this CPU)", list[i].name);
    tg_str_append(banner, room, ", %u thread%s of %u", ctx->threads, ctx->threads == 1 ? "" : "s",
                  cpus.online);
    if (cpus.affinity < cpus.online) tg_str_append(banner, room, " (affinity %u)", cpus.affinity);
    if (cpus.quota > 0) tg_str_append(banner, room, " (quota %.1f)", cpus.quota);
    for (int i = 0; i < TG_LEVER_COUNT; i++) {
        const bool on = ctx->levers >> i & 1;
        if (on != tg_lever_table[i].default_on)
            tg_str_append(banner, room, ", %c%s", on ? '+' : '-', tg_lever_table[i].name);
    }
    if ((ctx->levers & TG_LEVER_BIT(bf16)) && !tg_cpu_has_bf16())
        tg_str_append(banner, room, " (no bf16 products on this CPU: f32 is used)");
    const bool simd = ctx->levers & TG_LEVER_BIT(simd);
    for (int op = 0; simd && op < TG_OP_COUNT; op++)
        if (!tg_op_table[op]->structural && !tg_op_table[op]->scalar_only &&
            !tg_kernels_at(ctx->isa, (tg_op_id)op, 0))
            tg_str_append(banner, room, ", %s by reference", tg_op_table[op]->name);
}

/* From now on the CPU computes: plans that were made for the GPU run there, too. */
static void give_up_gpu(tg_context *ctx, const char *why) {
    tg_say(&ctx->err, TG_LOG_WARNING, "the CPU goes on: %s", why);
    tg_backend_free(ctx->backend);
    ctx->backend = ctx->cpu;
}

static tg_status replace_gpu(tg_context *ctx) {
    if (ctx->losses >= TG_LOSSES_MAX) {
        give_up_gpu(ctx, "the GPU was lost three times");
        return TG_OK;
    }
    tg_backend *fresh;
    const tg_status s = tg_webgpu_new(&ctx->err, ctx->cpu, ctx->levers, &fresh);
    if (s == TG_PENDING) return s;
    if (s != TG_OK) {
        give_up_gpu(ctx, ctx->err.message);
        return TG_OK;
    }
    tg_backend_free(ctx->backend);
    ctx->backend = fresh;
    ctx->levers &= ~fresh->levers_off;
    return TG_OK;
}

tg_status tg_runtime_recover(tg_context *ctx) {
    if (!tg_backend_lost(ctx->backend)) return TG_OK;
    if (!ctx->replacing) {
        ctx->losses++;
        tg_say(&ctx->err, TG_LOG_WARNING, "%s", ctx->err.message);
    }
    ctx->replacing = true;
    tg_ctx_clear(&ctx->err);
    tg_gpu_bench_free(ctx->bench);
    ctx->bench = NULL;
    TG_TRY(replace_gpu(ctx));
    ctx->replacing = false;
    ctx->generation++;
    ctx->banner[0] = '\0';
    write_banner(ctx);
    tg_ctx_clear(&ctx->err);
    return TG_OK;
}

tg_status tg_runtime_run(tg_context *ctx, const char *what, tg_plan *plan, const tg_scalars *rt,
                         tg_run *run) {
    const tg_status status = tg_backend_run(ctx->backend, plan, rt, run);
    if (status != TG_E_DEVICE || !tg_backend_lost(ctx->backend)) return status;
    char why[TG_MESSAGE_BYTES];
    snprintf(why, sizeof why, "%s", ctx->err.message);
    TG_TRY(tg_runtime_recover(ctx));
    return tg_fail(&ctx->err, TG_E_DEVICE, "%s: %s", what, why);
}

/* All that follows the first allocation; on failure the context only carries its error. */
tg_status tg_runtime_open(tg_context *ctx, const tg_context_options *o) {
    const bool gpu = o->device && strcmp(o->device, "webgpu") == 0;
    if (o->device && !gpu && strcmp(o->device, "cpu") != 0)
        return tg_fail(&ctx->err, TG_E_UNSUPPORTED, "device: want cpu or webgpu, have '%s'",
                       o->device);
    ctx->copy_every = TG_COPY_EVERY;
    ctx->levers = tg_levers_default();
    TG_TRY(tg_levers_parse(&ctx->err, o->levers, &ctx->levers));
    ctx->err.small_pages = !(ctx->levers & TG_LEVER_BIT(huge_pages));
    TG_TRY(choose_isa(ctx, o->isa));
    TG_TRY(choose_threads(ctx, o->threads));
    TG_TRY(tg_pool_new(&ctx->err, ctx->threads, &ctx->pool));
    TG_TRY(tg_cpu_new(&ctx->err, ctx->pool, &ctx->cpu));
    ctx->backend = ctx->cpu;
    if (gpu) TG_TRY(tg_webgpu_new(&ctx->err, ctx->cpu, ctx->levers, &ctx->backend));
    ctx->levers &= ~ctx->backend->levers_off;
    write_banner(ctx);
    return TG_OK;
}

/* Only without memory for the context itself is there nothing to carry a message. */
tg_status tg_runtime_new(const tg_context_options *o, tg_context **out) {
    tg_mem mem = tg_mem_default();
    if (o->alloc) mem = (tg_mem) { o->alloc, o->alloc_user };
    tg_context *ctx = *out = tg_alloc(&mem, sizeof *ctx);
    if (!ctx) return TG_E_MEMORY;
    tg_ctx_init(&ctx->err, &mem, o->log, o->log_user);
    return TG_OK;
}

/* The backends go first: the GPU's borrows the CPU's, which borrows the pool. All take NULL, as a
 * context that failed early has. */
void tg_runtime_free(tg_context *ctx) {
    if (!ctx) return;
    const tg_mem mem = ctx->err.mem;
    tg_gpu_bench_free(ctx->bench);
    if (ctx->backend != ctx->cpu) tg_backend_free(ctx->backend);
    tg_backend_free(ctx->cpu);
    tg_pool_free(ctx->pool);
    tg_os_seen_end(&ctx->err);
    tg_free(&mem, ctx, sizeof *ctx);
}

tg_status tg_runtime_block(tg_context *ctx, size_t bytes, tg_block *out) {
    return tg_block_new(&ctx->err, bytes, out);
}

tg_status tg_runtime_block_take(tg_context *ctx, size_t bytes, tg_block *out) {
    return tg_block_take(&ctx->err, bytes, out);
}

void tg_runtime_block_free(tg_context *ctx, tg_block *block) {
    if (block->data) tg_backend_forget(ctx->backend, block->data, block->bytes);
    tg_block_free(block);
}

tg_plan_options tg_runtime_plan_options(const tg_context *ctx, const char *name) {
    return (tg_plan_options) { .name = name,
                               .isa = ctx->isa,
                               .levers = ctx->levers & ~ctx->backend->unwanted_levers,
                               .workers = ctx->threads,
                               .align_bytes = ctx->backend->align_bytes,
                               .apart = ctx->backend->apart,
                               .segment_bytes = ctx->backend->segment_bytes };
}

tg_status tg_runtime_check_options(tg_context *ctx, const char *filter, tg_check_fn report,
                                   void *user, tg_check_options *out) {
    *out = (tg_check_options) {
        .isa = ctx->isa, .levers = ctx->levers, .filter = filter, .report = report, .user = user
    };
    if (ctx->backend == ctx->cpu) return TG_OK;
    if (!ctx->bench)
        TG_TRY(tg_gpu_bench_new(&ctx->err, tg_webgpu_gpu(ctx->backend), ctx->levers, &ctx->bench));
    ctx->executor = (tg_check_executor) { tg_gpu_bench_run, ctx->bench, tg_gpu_bench_wants };
    out->executor = &ctx->executor;
    return TG_OK;
}

void tg_runtime_check_end(tg_context *ctx) { tg_gpu_bench_rest(ctx->bench); }

tg_status tg_runtime_gpu(tg_context *ctx, tg_gpu_facts *out) {
    if (ctx->backend == ctx->cpu)
        return tg_fail(&ctx->err, TG_E_UNSUPPORTED, "GPU: the context computes on the CPU");
    const tg_gpu_info *i = tg_gpu_get_info(tg_webgpu_gpu(ctx->backend));
    *out = (tg_gpu_facts) { .adapter = i->adapter,
                            .driver = i->driver,
                            .api = i->api,
                            .library = i->library,
                            .matrices = i->matrices,
                            .software = i->software,
                            .f16 = i->f16,
                            .subgroups = i->subgroups,
                            .timestamps = i->timestamps,
                            .has_matrices = i->has_matrices,
                            .max_buffer_bytes = i->max_buffer_bytes,
                            .max_binding_bytes = i->max_binding_bytes,
                            .max_group_bytes = i->max_group_bytes,
                            .max_group_threads = i->max_group_threads };
    return TG_OK;
}

/* All of it is asked anew at each call: free memory, the peak and even a quota change while we
 * run. */
tg_status tg_runtime_machine(tg_context *ctx, tg_machine_info *out) {
    *out = (tg_machine_info) { .cpus = 0 };
    tg_os_cpus cpus;
    tg_os_memory memory;
    tg_os_cpus_get(&cpus);
    TG_TRY(tg_os_memory_get(&ctx->err, &memory));
    out->cpus = cpus.online;
    out->affinity_cpus = cpus.affinity;
    out->cgroup_cpus = cpus.quota;
    out->memory_bytes = memory.total_bytes;
    out->memory_available_bytes = memory.available_bytes;
    out->process_peak_bytes = tg_os_peak_rss_bytes();
    tg_os_cpu_name(out->cpu_name, sizeof out->cpu_name);
    return TG_OK;
}

/* ----------------------------------------------------------------------------------- measurements
 */

/* One region of all workers, each with its own result on a cache line of its own: entries are 64
 * bytes, and tg_alloc's alignment keeps the few used ones from straddling two lines. Without that
 * the workers' last stores would be part of what is measured. */
typedef struct peak_run {
    const tg_peak_kernels *kernels;
    double n_flop;
    const float *data;
    size_t bytes_each;
    struct {
        double done;
        float sink;
        char apart[48];
    } worker[TG_POOL_THREADS_MAX];
} peak_run;

static void run_multiply_add(void *arg, unsigned w) {
    peak_run *r = arg;
    r->worker[w].done = r->kernels->multiply_add(r->n_flop, &r->worker[w].sink);
}

static void run_read(void *arg, unsigned w) {
    peak_run *r = arg;
    r->kernels->read(r->data + r->bytes_each / sizeof(float) * w, r->bytes_each,
                     &r->worker[w].sink);
}

/* One round of n_flop operations a worker, in operations a millisecond. All workers at once, since
 * that is how a plan runs: under full load clock rates are lower, and two workers may share a
 * core. */
static tg_status measure_round(tg_context *ctx, double n_flop, double *rate) {
    peak_run *r = tg_alloc(&ctx->err.mem, sizeof *r);
    if (!r) return tg_fail_memory(&ctx->err, "measurement", sizeof *r);
    r->kernels = tg_peak_find(ctx->isa);
    r->n_flop = n_flop;
    const double start = tg_time_ms();
    tg_pool_run(ctx->pool, run_multiply_add, r);
    const double ms = tg_time_ms() - start;
    double flop = 0;
    for (unsigned w = 0; w < ctx->threads; w++) flop += r->worker[w].done;
    *rate = ms > 0 ? flop / ms : 0;
    tg_free(&ctx->err.mem, r, sizeof *r);
    return TG_OK;
}

/* The best of 16 rounds: a neighbour can only take speed away. The first one is short, whatever the
 * machine is; the others take some 10 ms each, by the rate that was seen so far. The result stays
 * in the context, where the reports of training find it. */
tg_status tg_peak_measuring_go_on(tg_peak_measuring *p, tg_context *ctx, double deadline_ms,
                                  double *gflops) {
    enum { ROUNDS = 16 };
    const double round_ms = 10;
    if (p->rounds == 0) p->n_flop = 1e7;
    while (p->rounds < ROUNDS) {
        double rate = 0;
        TG_TRY(measure_round(ctx, p->n_flop, &rate));
        if (rate > p->best) p->best = rate;
        if (p->best > 0) p->n_flop = p->best / ctx->threads * round_ms;
        p->rounds++;
        if (tg_time_over(deadline_ms)) return TG_PENDING;
    }
    *gflops = ctx->peak_gflops = p->best / 1e6;
    return TG_OK;
}

/* Each worker reads its own share from end to end. n_bytes should be well above the last cache, or
 * it is the cache that is measured. Bytes a second, while the peak is in units of 1e9. */
tg_status tg_runtime_measure_read(tg_context *ctx, size_t n_bytes, double *bytes_per_s) {
    tg_block block = { 0 };
    peak_run *r = tg_alloc(&ctx->err.mem, sizeof *r);
    if (!r) return tg_fail_memory(&ctx->err, "measurement", sizeof *r);
    tg_status status = tg_runtime_block(ctx, n_bytes, &block);
    if (status == TG_OK) {
        memset(block.data, 1, n_bytes); /* untouched pages would all be one page of zeros */
        r->kernels = tg_peak_find(ctx->isa);
        r->data = block.data;
        r->bytes_each = n_bytes / ctx->threads / 1024 * 1024;
        double best = 0;
        for (int i = 0; i < 6; i++) {
            const double start = tg_time_ms();
            tg_pool_run(ctx->pool, run_read, r);
            const double ms = tg_time_ms() - start;
            const double rate = (double)(r->bytes_each * ctx->threads) / ms * 1e3;
            if (ms > 0 && rate > best) best = rate;
        }
        *bytes_per_s = ctx->read_bytes_per_s = best;
    }
    tg_block_free(&block);
    tg_free(&ctx->err.mem, r, sizeof *r);
    return status;
}
