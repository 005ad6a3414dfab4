/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflate.h - unpacks deflate streams (RFC 1951), as members of a zip file are.
 */
#ifndef TG_BASE_INFLATE_H
#define TG_BASE_INFLATE_H

#include "base/err.h"
#include "base/libc.h"

/* All of in [n_in] to out [n_out], whose size the caller knows. TG_E_FORMAT, with name and the
 * place in the stream, if it is not a whole stream of exactly that many bytes. */
tg_status tg_inflate(tg_ctx *ctx, const char *name, const uint8_t *in, size_t n_in, uint8_t *out,
                     size_t n_out);

/* The same into memory that grows as bytes come: a size that was only claimed costs nothing. On
 * success *out [n_out] is the caller's, to be freed by tg_free(&ctx->mem, *out, *room); else it is
 * NULL. */
tg_status tg_inflate_new(tg_ctx *ctx, const char *name, const uint8_t *in, size_t n_in,
                         size_t n_out, uint8_t **out, size_t *room);

#endif
