/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mirrors.h - the GPU's copies of blocks of the host, and copies between the two: see webgpu.c.
 */
#ifndef TG_BACKEND_WEBGPU_MIRRORS_H
#define TG_BACKEND_WEBGPU_MIRRORS_H

#include "backend/webgpu/device/self_test/submit_check.h"
#include "plan/plan.h"

/* What somebody fetches, piece by piece, so that a copy of a large model does not need the model's
 * size again. It begins anew when the GPU's copy has changed meanwhile. */
typedef struct tg_descent {
    char *host;
    size_t bytes, done;
    unsigned version;
    uint32_t reading; /* of the piece; 0: not begun */
    tg_submit_check_mark mark;
} tg_descent;

typedef struct tg_mirror {
    char *host;
    size_t bytes;
    uint32_t buffer;  /* 0: a free entry. Others may have their bytes in it, too */
    size_t at;        /* where in it */
    bool fresh;       /* whether there was memory for it is not known yet */
    bool empty;       /* the host's bytes are not in it yet */
    unsigned version; /* of the GPU's copy */
    unsigned held;    /* the one that the host has as well */
    tg_descent down;
} tg_mirror;

/* ctx, gpu and submits are borrowed; a buffer has most_bytes at most, but for one large state. */
typedef struct tg_mirrors {
    tg_ctx *ctx;
    tg_gpu *gpu;
    tg_submit_check *submits;
    size_t most_bytes;
    bool refused; /* the last buffer, for want of memory on the card */
    tg_mirror *list;
    size_t n;
} tg_mirrors;

static inline bool tg_bytes_meet(const char *a, size_t a_bytes, const char *b, size_t b_bytes) {
    return (uintptr_t)a < (uintptr_t)b + b_bytes && (uintptr_t)b < (uintptr_t)a + a_bytes;
}

/* Of the block that begins at host; NULL: there is none. */
tg_mirror *tg_mirrors_find(tg_mirrors *w, const void *host);
/* Mirrors of all states of the plan, filled where they are new. written [n_states]: what a run
 * writes. E_MEMORY: nothing was uploaded, none of the new ones is left, and the message says what
 * would fit. */
tg_status tg_mirrors_reserve(tg_mirrors *w, const tg_plan *plan, const bool *written);
void tg_mirrors_free_one(tg_mirrors *w, tg_mirror *m);
/* The host's bytes become the GPU's, or the other way round; see tg_backend. */
tg_status tg_mirrors_fetch(tg_mirrors *w, const void *p, size_t bytes);
tg_status tg_mirrors_touched(tg_mirrors *w, const void *p, size_t bytes);

tg_status tg_bring_up(tg_mirrors *w, uint32_t buffer, size_t offset, const char *host,
                      size_t bytes);
/* TG_PENDING: the place is kept for the next call with the same arguments. */
tg_status tg_bring_down(tg_mirrors *w, tg_descent *d, unsigned version, uint32_t buffer,
                        size_t offset, char *host, size_t bytes);

#endif
