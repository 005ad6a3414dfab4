/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel.h - what references and kernel bodies share besides the vector language.
 *
 * How rows and elements are cut into units. A unit is worth some thousand elements: long against
 * handing it out (well below a microsecond), short against a step, so that 2 to 16 workers end
 * together; a small tensor is one unit and stays on one worker. The cut depends on shapes alone.
 */
#ifndef TG_OPS_KERNEL_H
#define TG_OPS_KERNEL_H

#include "base/libc.h"

#define TG_UNIT_ELEMS 8192u /* of a kernel that does a few operations an element */

static inline size_t tg_min_size(size_t a, size_t b) { return a < b ? a : b; }

/* Units of per_unit things that n things make; the last one may be short. */
static inline size_t tg_units(size_t n, size_t per_unit) { return (n + per_unit - 1) / per_unit; }

/* Rows of a unit of about unit_elems elements, at least one. */
static inline size_t tg_unit_rows(size_t cols, size_t unit_elems) {
    return cols < unit_elems ? unit_elems / (cols ? cols : 1) : 1;
}

/* Ids are checked long before they get here; this is the promise that whatever comes, no kernel
 * reads or writes outside a table of n rows. */
static inline size_t tg_clamp_id(int32_t id, size_t n) {
    return id < 0 ? 0 : tg_min_size((size_t)id, n - 1);
}

#endif
