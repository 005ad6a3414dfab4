/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.h - option structs of callers, as this version of the library has them.
 */
#ifndef TG_API_OPTIONS_H
#define TG_API_OPTIONS_H

#include "base/err.h"
#include "tinygpt.h"

/* own: the defaults of this version, over which goes what the caller knows and has given. given
 * NULL: nothing. E_ARG: a size that no struct of that name ever had. name is the type's. */
tg_status tg_options_take(tg_ctx *err, const char *name, const void *given, void *own);

/* The other way about: what the caller's struct has a place for. E_ARG: its size is not set. */
tg_status tg_options_give(tg_ctx *err, const char *name, const void *own, void *given);

/* A block's variable `own` of a type, taken from what was given. Returns from its caller. */
#define TG_OPTIONS_TAKE(err, type, given, own)                                                     \
    type own = type##_default();                                                                   \
    TG_TRY(tg_options_take(err, #type, given, &own))

#endif
