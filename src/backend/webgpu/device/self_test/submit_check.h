/* SPDX-License-Identifier: Apache-2.0 */
/*
 * submit_check.h - whether a GPU has done what it was given: nothing that a driver drops without a
 * word is taken for an answer.
 *
 *     word 0   submits done: the last dispatch of each adds one
 *     word 1   the newest reading, written before it is begun
 *
 * Both come down with every reading, in one copy more of the same submit. A submit that was dropped
 * leaves word 0 behind for good, and so fails all readings that follow; a reading that was dropped
 * finds the words of an older one. Costs a dispatch of one thread a submit and 8 bytes a reading,
 * and waits for nothing.
 */
#ifndef TG_BACKEND_WEBGPU_SUBMIT_CHECK_H
#define TG_BACKEND_WEBGPU_SUBMIT_CHECK_H

#include "backend/webgpu/shaders.h"

typedef struct tg_submit_check {
    tg_gpu *gpu;
    tg_ctx *ctx;
    uint32_t buffer;
    tg_gpu_dispatch last;
    uint32_t want[2]; /* the words as they should be by now */
} tg_submit_check;

/* Of a reading: what its words should be, and what they are. It may move until the end. */
typedef struct tg_submit_check_mark {
    uint32_t want[2], have[2];
} tg_submit_check_mark;

/* call: a uniform buffer of TG_CALL_BYTES. All objects are the GPU's and end with it. */
tg_status tg_submit_check_init(tg_submit_check *s, tg_shader_cache *shaders, uint32_t call);
/* As tg_gpu_submit. list has room for one more, which is left as it was. */
tg_status tg_submit_check_submit(tg_submit_check *s, tg_gpu_dispatch *list, size_t n);
/* As tg_gpu_read_begin and _end; list has room for one more, which is the check's.
 * E_DEVICE: something was dropped, and what is at the pieces' hosts is not to be used. */
tg_status tg_submit_check_read_begin(tg_submit_check *s, tg_gpu_piece *list, size_t n,
                                     tg_submit_check_mark *mark, uint32_t *reading);
tg_status tg_submit_check_read_end(tg_submit_check *s, uint32_t reading, tg_gpu_piece *list,
                                   size_t n, tg_submit_check_mark *mark);

#endif
