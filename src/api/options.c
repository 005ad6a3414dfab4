/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.c - the defaults of option structs, and such structs of programs that were built with
 * another version of tinygpt.h.
 *
 * A struct grows at its end alone. Its first member tells how much of it the caller knows:
 *
 *     struct_bytes | members of 0.2 | members that came later
 *                    the caller's     the library's defaults
 */
#include "api/options.h"

#include "base/libc.h"

/* What a caller does not know of is not written to. */
#define INIT(type, ...)                                                                            \
    void type##_init(type *options, size_t struct_bytes) {                                         \
        const type defaults = { __VA_ARGS__ };                                                     \
        if (!options || struct_bytes < sizeof options->struct_bytes) return;                       \
        memcpy(options, &defaults,                                                                 \
               struct_bytes < sizeof defaults ? struct_bytes : sizeof defaults);                   \
        options->struct_bytes = struct_bytes;                                                      \
    }

/* Members that are absent are zero on purpose: 0 and NULL choose, or switch off. */
INIT(tg_context_options, .threads = 0)

INIT(tg_train_options, .steps = 1000, .accum = 1, .lr = 3e-4, .min_lr_ratio = 0.1,
     .schedule = TG_CONSTANT, .decay_fraction = 0.2, .weight_decay = 0.1, .beta1 = 0.9,
     .beta2 = 0.95, .eps = 1e-8, .clip = 1, .seed = 42, .val_fraction = 0.1, .eval_every = 100,
     .eval_windows = 64, .keep_best = true, .momentum = 0.95)

/* top_p and repeat_penalty are neutral at 1 and not at 0, so zeroed options would not do. */
INIT(tg_sample_options, .temperature = 0.8, .top_p = 1, .repeat_penalty = 1, .repeat_last = 64,
     .seed = 42)

INIT(tg_embed_options, .pooling = TG_POOLING_MODEL)

INIT(tg_generation, .full = TG_FULL_SLIDE)

/* Every option struct begins with its size. */
static size_t size_of(const void *options) {
    size_t bytes;
    memcpy(&bytes, options, sizeof bytes);
    return bytes;
}

static tg_status want_size(tg_ctx *err, const char *name, const void *given, const void *own) {
    if (size_of(given) >= sizeof(size_t) && size_of(given) <= size_of(own)) return TG_OK;
    return tg_fail(err, TG_E_ARG,
                   "%s: struct_bytes: want what %s_default() gives, at most %zu, have %zu", name,
                   name, size_of(own), size_of(given));
}

/* All but the size itself, which is the target's own. */
static void copy_behind_size(const void *from, void *to, size_t bytes) {
    memcpy((char *)to + sizeof(size_t), (const char *)from + sizeof(size_t),
           bytes - sizeof(size_t));
}

tg_status tg_options_take(tg_ctx *err, const char *name, const void *given, void *own) {
    if (!given) return TG_OK;
    TG_TRY(want_size(err, name, given, own));
    copy_behind_size(given, own, size_of(given));
    return TG_OK;
}

tg_status tg_options_give(tg_ctx *err, const char *name, const void *own, void *given) {
    TG_TRY(want_size(err, name, given, own));
    copy_behind_size(own, given, size_of(given));
    return TG_OK;
}
