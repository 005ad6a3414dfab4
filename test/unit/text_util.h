/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text_util.h - where a test lets the library write to: a growing buffer, by a tg_text_fn.
 */
#ifndef TG_TEST_TEXT_UTIL_H
#define TG_TEST_TEXT_UTIL_H

#include "base/buf.h"

/* user is the tg_buf. It never asks the writer to stop. */
static inline int keep_text(void *user, const char *text, size_t n) {
    tg_buf_append(user, text, n);
    return 0;
}

#endif
