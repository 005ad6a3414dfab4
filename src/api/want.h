/* SPDX-License-Identifier: Apache-2.0 */
/*
 * want.h - how public calls begin: with a clean error, and the arguments that must be there.
 */
#ifndef TG_API_WANT_H
#define TG_API_WANT_H

#include "base/err.h"
#include "base/os/os_fp.h"
#include "runtime/runtime.h"

/* Every call begins with it: the message that tg_context_error shows is always that of the last
 * call, and the caller's rounding mode and flush flags are kept out of the results. Without a
 * context there is nowhere to put a message, so the bare code has to do; one that a wrong option
 * gave keeps the message that says which. Not within a block of its own: the environment lasts as
 * long as the block. */
#define ENTER(ctx)                                                                                 \
    TG_OS_FP_SCOPE;                                                                                \
    do {                                                                                           \
        if (!(ctx) || !(ctx)->backend) return TG_E_ARG;                                            \
        tg_ctx_clear(&(ctx)->err);                                                                 \
    } while (0)
/* A macro, since it must return from its caller and knows the argument's name. Lengths of 0 make a
 * NULL fine, as with memcpy in practice; callers say so with `if (n) WANT(..)`. */
#define WANT(ctx, argument)                                                                        \
    do {                                                                                           \
        if (!(argument)) return tg_want_fail(&(ctx)->err, __func__, #argument);                    \
    } while (0)

/* E_ARG. tg_X makes a tg_X_job, which has the same arguments and one more: messages name the call
 * that has only those, unless it is about the one more. */
tg_status tg_want_fail(tg_ctx *err, const char *call, const char *argument);

#endif
