/* SPDX-License-Identifier: Apache-2.0 */
/*
 * want.c - what a public call says about an argument that is not there.
 */
#include "api/want.h"

tg_status tg_want_fail(tg_ctx *err, const char *call, const char *argument) {
    static const char ending[] = "_job";
    const size_t n = strlen(call), tail = sizeof ending - 1;
    const bool shorten =
        n > tail && strcmp(call + n - tail, ending) == 0 && strcmp(argument, "job") != 0;
    return tg_fail(err, TG_E_ARG, "%.*s: want a value for %s, have NULL",
                   (int)(shorten ? n - tail : n), call, argument);
}
