/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packed_whole.h - the tile of packed_int8.h where a register holds much: a block of W is taken
 * apart once, into eight vectors of bytes, for all rows of x.
 */
#ifndef TG_OPS_PACKED_WHOLE_H
#define TG_OPS_PACKED_WHOLE_H

INLINE tg_vi dot_four(tg_packing p, bool vnni, tg_vi c, tg_b64 u, const int8_t *four) {
#ifdef TG_SIMD_VNNI
    if (vnni) return tg_vdot_vnni(c, u, four);
#endif
    (void)vnni;
    return is_bytes(p) ? tg_vdot_bytes(c, u, four) : tg_vdot_small(c, u, four);
}

INLINE tg_v add_block(tg_packing p, bool vnni, tg_v y, const w_block *w, const x_block *x) {
    tg_vi sum = tg_viset(start_of(p, x));
    UNROLL
    for (int j = 0; j < 8; j++) {
        if (p == TG_PACK_Q8MX16 && j == 4) {
            y = tg_vfma(tg_vmul(w->scale[0], tg_vset(x->d)), tg_vfloat(sum), y);
            y = tg_vfma(w->offset[0], tg_vset(x->d_sum_first), y);
            sum = tg_viset(x->minus_128 - x->minus_128_first);
        }
        sum = dot_four(p, vnni, sum, w->u[j], x->q + 4 * j);
    }
    const int last = p == TG_PACK_Q8MX16;
    y = tg_vfma(tg_vmul(w->scale[last], tg_vset(x->d)), tg_vfloat(sum), y);
    if (has_offset(p)) {
        const float d_sum = p == TG_PACK_Q8MX16 ? x->d_sum - x->d_sum_first : x->d_sum;
        y = tg_vfma(w->offset[last], tg_vset(d_sum), y);
    }
    return y;
}

/* Lines are fetched by hand, well ahead and into the second cache, as in matmul_few.h. What lies
 * behind a group is most often the next one; the address may lie behind the matrix, too: it is no
 * pointer. */
enum { STREAMS = 1, AHEAD_BYTES = 8192 };
INLINE void fetch_ahead(tg_packing p, const uint8_t *group, size_t at) {
    const size_t bytes = block_bytes(p);
    const uintptr_t line = ((uintptr_t)group + at * bytes + AHEAD_BYTES) / 64 * 64;
    UNROLL
    for (size_t i = 0; i < (bytes + 63) / 64; i++) TG_PREFETCH_FAR((const void *)(line + 64 * i));
}

INLINE void rows_of_group(tg_packing p, bool vnni, const int rows, const uint8_t *group,
                          const x_block *x, size_t blocks, tg_v *y) {
    tg_v sum[TILE_ROWS];
    UNROLL
    for (int i = 0; i < rows; i++) sum[i] = tg_vzero();
    for (size_t b = 0; b < blocks; b++) {
        w_block w;
        if (rows == 1) fetch_ahead(p, group, b);
        take_block(p, group, b, &w);
        UNROLL
        for (int i = 0; i < rows; i++)
            sum[i] = add_block(p, vnni, sum[i], &w, x + (size_t)i * blocks + b);
    }
    UNROLL
    for (int i = 0; i < rows; i++) y[i] = sum[i];
}

/* y[i] = the products of rows of x, `blocks` apart, with a group; all but x and y are constants. */
INLINE void tile(tg_packing p, bool vnni, const uint8_t *group, const x_block *x, size_t blocks,
                 tg_v y[TILE_ROWS]) {
    rows_of_group(p, vnni, TILE_ROWS, group, x, blocks, y);
}

/* y[0] = the product of a row of x with a group. */
INLINE void one_row(tg_packing p, bool vnni, const uint8_t *const *groups, size_t n,
                    const x_block *x, size_t blocks, tg_v y[STREAMS]) {
    (void)n;
    rows_of_group(p, vnni, 1, groups[0], x, blocks, y);
}

#endif
