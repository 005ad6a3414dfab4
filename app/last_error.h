/* SPDX-License-Identifier: Apache-2.0 */
/*
 * last_error.h - the newest error that was printed, so that --json can say it, too.
 *
 * Errors are printed in two places (tg_app_error and tg_args_refuse), and main ends the program: it
 * adds {"error":{"code":2,"message":".."}} as the last line of standard output, unless the command
 * has said it in a line of its own.
 */
#ifndef TG_APP_LAST_ERROR_H
#define TG_APP_LAST_ERROR_H

#include "print/json_out.h"

void tg_last_error_set(const char *text); /* is copied, and cut at 1 KB */

/* The member "error" of the open object; nothing if there was none. Then it counts as said. */
void tg_last_error_put(tg_jout *j, int code);

/* The line, if there is something left to say. */
void tg_last_error_tell(int code);

#endif
