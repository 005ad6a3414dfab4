/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hf_methods_wasm.c - a module reads MLX's weights alone: it has no room for the other methods.
 */
#include "io/hf/hf_quant.h"

const tg_hf_method *const tg_hf_methods[] = { NULL };
const size_t tg_hf_n_methods = 0;
