/* SPDX-License-Identifier: Apache-2.0 */
/*
 * submit_check.c - see submit_check.h.
 */
#include "backend/webgpu/device/self_test/submit_check.h"

static const char *const wgsl[] = {
#include "backend/webgpu/device/self_test/submit_check.wgsl.h"
};
static const tg_shader shader = {
    .name = "submit_check",
    .pass = { { .entry = "main", .wgsl = { wgsl }, .bind = { TG_BIND_OUT(0) } } }
};

tg_status tg_submit_check_init(tg_submit_check *s, tg_shader_cache *shaders, uint32_t call) {
    *s = (tg_submit_check) { .gpu = shaders->gpu,
                             .ctx = shaders->ctx,
                             .last = { .x = 1, .y = 1, .z = 1 } };
    TG_TRY(tg_gpu_buffer_new(s->gpu, "submit_check", TG_GPU_ALIGN, false, &s->buffer));
    TG_TRY(tg_shader_pipeline(shaders, &shader, &shader.pass[0], &s->last.pipeline));
    const tg_gpu_range ranges[] = { { call, 0, TG_CALL_BYTES },
                                    { call, 0, TG_CALL_BYTES },
                                    { s->buffer, 0, TG_GPU_ALIGN } };
    return tg_gpu_group_new(s->gpu, s->last.pipeline, ranges, &s->last.group);
}

tg_status tg_submit_check_submit(tg_submit_check *s, tg_gpu_dispatch *list, size_t n) {
    const tg_gpu_dispatch kept = list[n];
    list[n] = s->last;
    const tg_status status = tg_gpu_submit(s->gpu, list, n + 1);
    list[n] = kept;
    s->want[0]++;
    return status;
}

tg_status tg_submit_check_read_begin(tg_submit_check *s, tg_gpu_piece *list, size_t n,
                                     tg_submit_check_mark *mark, uint32_t *reading) {
    s->want[1]++;
    memcpy(mark->want, s->want, sizeof mark->want);
    list[n] = (tg_gpu_piece) { s->buffer, 0, sizeof mark->have, mark->have };
    TG_TRY(tg_gpu_write(s->gpu, s->buffer, 4, &s->want[1], 4));
    return tg_gpu_read_begin(s->gpu, list, n + 1, reading);
}

tg_status tg_submit_check_read_end(tg_submit_check *s, uint32_t reading, tg_gpu_piece *list,
                                   size_t n, tg_submit_check_mark *mark) {
    list[n] = (tg_gpu_piece) { s->buffer, 0, sizeof mark->have, mark->have };
    TG_TRY(tg_gpu_read_end(s->gpu, reading, list, n + 1));
    if (memcmp(mark->have, mark->want, sizeof mark->have) == 0) return TG_OK;
    return tg_fail(s->ctx, TG_E_DEVICE,
                   "GPU %s: want %u submits done and reading %u, have %u and %u: the driver has "
                   "dropped work",
                   tg_gpu_get_info(s->gpu)->adapter, mark->want[0], mark->want[1], mark->have[0],
                   mark->have[1]);
}
