/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matmul_one_row.h - the texts of products of one row with weights of four bits, for matmul and for
 * norm_matmul: the main text, and the two that have the row as floats or in 8 bits for it.
 */
#ifndef TG_OPS_MATMUL_ONE_ROW_H
#define TG_OPS_MATMUL_ONE_ROW_H

static const char *const four_words[] = {
#include "ops/matmul/shaders/matmul_four_words.wgsl.h"
};
static const char *const one_row[] = {
#include "ops/matmul/shaders/matmul_one_row.wgsl.h"
};
static const char *const one_row_floats[] = {
#include "ops/matmul/shaders/matmul_one_row_floats.wgsl.h"
};
static const char *const one_row_int8[] = {
#include "ops/matmul/shaders/matmul_one_row_int8.wgsl.h"
};

#endif
