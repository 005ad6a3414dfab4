/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cases_wasm.c - the test cases of the ops in a module are what its host fetched: a fortieth of a
 * module, for a check that few ask for. tools/wasm_cases.mjs, which takes them out, has the format.
 *
 * They are constants of the ops' files, in a section of their own, whose bounds the linker knows.
 * There they are zeros until they come; an op's reference to them is the same before and after.
 */
#include "base/os/os_wasm.h"
#include "io/reader.h"

extern uint32_t __start_tg_cases[], __stop_tg_cases[]; /* names of the linker's making */

tg_status tg_wasm_cases_set(const void *bytes, size_t n_bytes) {
    const uint8_t *p = bytes, *end = p + n_bytes;
    const size_t words = (size_t)(__stop_tg_cases - __start_tg_cases);
    if (n_bytes < 4 || tg_get_u32(p) != words) return TG_E_FORMAT; /* another build's */
    /* Twice: nothing is copied of what does not fit to its end. */
    for (int copies = 0; copies < 2; copies++) {
        size_t at = 0;
        for (p = (const uint8_t *)bytes + 4; end - p >= 4;) {
            const size_t head = tg_get_u32(p), n = head >> 16;
            p += 4;
            at += head & 0xffff;
            if (at > words || n > words - at || n > (size_t)(end - p) / 4) return TG_E_FORMAT;
            if (copies) memcpy(__start_tg_cases + at, p, 4 * n);
            p += 4 * n;
            at += n;
        }
        if (at != words || p != end) return TG_E_FORMAT;
    }
    return TG_OK;
}
