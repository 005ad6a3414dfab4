/* SPDX-License-Identifier: Apache-2.0 */
/*
 * last_error.c - see last_error.h.
 */
#include "last_error.h"

static char newest[1024];

void tg_last_error_set(const char *text) { snprintf(newest, sizeof newest, "%s", text); }

void tg_last_error_put(tg_jout *j, int code) {
    if (!newest[0]) return;
    tg_jout_open(j, "error", '{');
    tg_jout_int(j, "code", code);
    tg_jout_text(j, "message", newest);
    tg_jout_close(j);
    newest[0] = '\0';
}

void tg_last_error_tell(int code) {
    if (!newest[0]) return;
    tg_jout j = tg_jout_to(stdout);
    tg_jout_open(&j, NULL, '{');
    tg_last_error_put(&j, code);
    tg_jout_close(&j);
    tg_jout_line(&j);
}
