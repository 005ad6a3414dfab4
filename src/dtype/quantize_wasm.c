/* SPDX-License-Identifier: Apache-2.0 */
/* quantize_wasm.c - what modules write of a model is in f32: a trained one as GGUF. */
#include "base/err.h"
#include "dtype/quantize.h"

void tg_block_from_f32_n(tg_dtype type, uint8_t *out, const float *in, size_t n,
                         const float *importance) {
    TG_ASSERT(type == TG_F32 && !importance);
    memcpy(out, in, n * sizeof *in);
}
