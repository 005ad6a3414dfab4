/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matmul.simd.h - the ways to compute y = act(a b + bias) + residual on this ISA, of floats;
 * weights of files have theirs in matmul_packed.simd.h.
 *
 *   few_rows   up to 4 rows: b is read once, nothing is packed          matmul_few.h
 *   bf16       operands rounded to bf16, sums in f32: AVX512_BF16 only  matmul_block.h
 *   blocked    packed panels and register tiles                         matmul_block.h
 *   plain      loops over vectors, for when the lever is off            matmul_few.h
 *
 * All but bf16 give the same bits for the same element. Read matmul_tile.h first.
 */
#include "simd/vec.h"
#include "simd/vmath.h"

#include "ir/op.h"
#include "ops/matmul/matmul_block.h"
#include "ops/matmul/matmul_few.h"
#include "simd/cpu.h"

static size_t f32_pack_units(const tg_args *args) { return pack_units(args, false); }
static void f32_pack(const tg_args *args, size_t begin, size_t end) {
    pack_run(args, begin, end, false);
}
static size_t f32_units(const tg_args *args) { return tile_units(args, false); }
static void f32_run(const tg_args *args, size_t begin, size_t end) {
    tile_run(args, begin, end, false);
}
static size_t f32_packed_bytes(const tg_args *args) { return packed_bytes(args, false); }

#ifdef TG_SIMD_BF16
static bool bf16_fits(const tg_args *args) { return matmul_b_is_floats(args) && tg_cpu_has_bf16(); }
static size_t bf16_pack_units(const tg_args *args) { return pack_units(args, true); }
static void bf16_pack(const tg_args *args, size_t begin, size_t end) {
    pack_run(args, begin, end, true);
}
static size_t bf16_units(const tg_args *args) { return tile_units(args, true); }
static void bf16_run(const tg_args *args, size_t begin, size_t end) {
    tile_run(args, begin, end, true);
}
static size_t bf16_packed_bytes(const tg_args *args) { return packed_bytes(args, true); }
#endif

static const tg_variant variants[] = {
    { .name = "few_rows",
      .needs = TG_LEVER_BIT(blocked_gemm),
      .fits = few_fits,
#ifdef FEW_COPIES
      .copy_bytes = few_copy_bytes,
      .copy = few_copy,
#endif
      .phase = { { few_units, few_run } } },
#ifdef TG_SIMD_BF16
    { .name = "bf16",
      .needs = TG_LEVER_BIT(blocked_gemm) | TG_LEVER_BIT(bf16),
      .bf16_inputs = true,
      .fits = bf16_fits,
      .phase = { { bf16_pack_units, bf16_pack }, { bf16_units, bf16_run } },
      .scratch_bytes = bf16_packed_bytes,
      .local_bytes = room_bytes },
#endif
    { .name = "blocked",
      .needs = TG_LEVER_BIT(blocked_gemm),
      .fits = matmul_b_is_floats,
      .phase = { { f32_pack_units, f32_pack }, { f32_units, f32_run } },
      .scratch_bytes = f32_packed_bytes,
      .local_bytes = room_bytes },
    { .name = "plain",
      .fits = matmul_b_is_floats,
      .phase = { { plain_units, plain_run } },
      .local_bytes = plain_room },
};
TG_KERNELS_AND(matmul, variants, matmul_packed);
