/*
 * want.h - how public calls begin: with a clean error, and the arguments that must be there.
 */
#ifndef TG_API_WANT_H
#define TG_API_WANT_H

#include "base/err.h"

/* Every call begins with it: the message that tg_context_error shows is always that of the last
 * call. Without a context there is nowhere to put one, so the bare code has to do. */
#define ENTER(ctx)                                                                                 \
    do {                                                                                           \
        if (!(ctx)) return TG_E_ARG;                                                               \
        tg_ctx_clear(&(ctx)->err);                                                                 \
    } while (0)
/* A macro, since it must return from its caller and knows the argument's name. Lengths of 0 make a
 * NULL fine, as with memcpy in practice; callers say so with `if (n) WANT(..)`. */
#define WANT(ctx, argument)                                                                        \
    do {                                                                                           \
        if (!(argument))                                                                           \
            return tg_fail(&(ctx)->err, TG_E_ARG, "%s: want a value for " #argument ", have NULL", \
                           __func__);                                                              \
    } while (0)

#endif
