/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bits.c - see bits.h. Levers are written by their names: their order in ir/levers.def may change.
 */
#include "runtime/bits.h"

#include "base/str.h"
#include "ops/kernels.h"
#include "simd/cpu.h"

/* bf16 does nothing where the instruction set or the processor has no such products. */
static bool has_bf16(const tg_context *ctx) {
    const tg_variant *v;
    for (size_t i = 0; (v = tg_kernels_at(ctx->isa, TG_OP_matmul, i)); i++)
        if (v->bf16_inputs) return tg_cpu_has_bf16();
    return false;
}

static bool on_gpu(const tg_context *ctx) { return ctx->backend != ctx->cpu; }

/* Does it change bits where this context computes, and can it be switched at all? */
static bool counts(const tg_context *ctx, int lever, uint32_t except) {
    if (except >> lever & 1) return false;
    const tg_lever_desc *l = &tg_lever_table[lever];
    if (l->keeps_bits || (on_gpu(ctx) ? l->cpu_only : l->gpu_only)) return false;
    return strncmp(l->state, "withdrawn", 9) != 0;
}

static bool is_on(const tg_context *ctx, int lever) {
    return (ctx->levers >> lever & 1) && (lever != TG_LEVER_bf16 || has_bf16(ctx));
}

tg_bits tg_bits_of(const tg_context *ctx, uint32_t except) {
    size_t n;
    tg_bits b = { on_gpu(ctx) ? "webgpu" : "cpu",
                  tg_isa_list(&n)[ctx->isa].fused ? "fused" : "plain", "" };
    for (int i = 0; i < TG_LEVER_COUNT; i++)
        if (counts(ctx, i, except))
            tg_str_append(b.levers, sizeof b.levers, "%s%c%s", b.levers[0] ? "," : "",
                          is_on(ctx, i) ? '+' : '-', tg_lever_table[i].name);
    return b;
}

/* '+' or '-', as the list has it; 0 if it does not have the name. */
static char sign_in(const char *list, const char *name) {
    const size_t n = strlen(name);
    while (*list) {
        const char *end = strchr(list, ',');
        const size_t length = end ? (size_t)(end - list) : strlen(list);
        if (length == n + 1 && memcmp(list + 1, name, n) == 0) return *list;
        list += length + (list[length] == ',');
    }
    return 0;
}

static void differ(char *out, size_t out_bytes, const char *what, const char *then,
                   const char *now) {
    tg_str_append(out, out_bytes, "%s%s %s (here: %s)", out[0] ? ", " : "", what, then, now);
}

void tg_bits_compare(const tg_context *ctx, const char *what, const char *device, const char *class,
                     const char *levers, uint32_t except) {
    const tg_bits now = tg_bits_of(ctx, except);
    char text[512] = "";
    const bool moved = device && strcmp(device, now.device) != 0;
    if (moved) differ(text, sizeof text, "device", device, now.device);
    if (!on_gpu(ctx) && !moved && class && strcmp(class, now.class) != 0)
        differ(text, sizeof text, "determinism class", class, now.class);
    for (int i = 0; levers && i < TG_LEVER_COUNT; i++) {
        const char then = sign_in(levers, tg_lever_table[i].name);
        const char here = is_on(ctx, i) ? '+' : '-';
        if (!then || then == here || !counts(ctx, i, except)) continue;
        char name[64] = "";
        tg_str_append(name, sizeof name, "lever %s", tg_lever_table[i].name);
        differ(text, sizeof text, name, then == '+' ? "on" : "off", here == '+' ? "on" : "off");
    }
    if (text[0])
        tg_say(&ctx->err, TG_LOG_WARNING,
               "%s was computed with %s: it goes on, but not to the same bits", what, text);
}
