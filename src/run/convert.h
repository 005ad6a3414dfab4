/*
 * convert.h - a model of any kind as a GGUF file, in another type, and what that cost.
 */
#ifndef TG_RUN_CONVERT_H
#define TG_RUN_CONVERT_H

#include "run/runtime.h"

/* tg_gguf_convert of tinygpt.h; arguments are checked. */
tg_status tg_convert_gguf(tg_context *ctx, const char *in, const char *out, tg_weight_type type,
                          tg_convert_report *report);

#endif
