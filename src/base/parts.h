/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parts.h - what native builds have and modules have no room for: families (Makefile:
 * WASM_LACKS_FAMILIES), and scales that are chosen by what columns are multiplied with. Where a
 * condition begins with it, a module is made without what hangs on that.
 */
#ifndef TG_BASE_PARTS_H
#define TG_BASE_PARTS_H

#ifndef TG_NATIVE_PARTS
#define TG_NATIVE_PARTS 1
#endif

#endif
