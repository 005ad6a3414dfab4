/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inttypes.h - the conversions that src/ names, for builds without a C library. The compiler knows
 * which of its types each of them belongs to; its own <inttypes.h> wants a C library behind it.
 */
#ifndef TG_BASE_WASM_INTTYPES_H
#define TG_BASE_WASM_INTTYPES_H

#include <stdint.h>

#define PRId32 __INT32_FMTd__
#define PRIu32 __UINT32_FMTu__
#define PRIx32 __UINT32_FMTx__
#define PRId64 __INT64_FMTd__
#define PRIu64 __UINT64_FMTu__
#define PRIx64 __UINT64_FMTx__

#endif
