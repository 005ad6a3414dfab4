/*
 * matmul.simd.h - y = act(a b + bias) + residual: the blocked product and its plain fall-back.
 */
#include "simd/vec.h"
#include "simd/vmath.h"

#include "ir/op.h"
#include "ops/matmul/matmul_pack.h"
#include "ops/matmul/matmul_tile.h"

#ifndef DWM
#define DWM 264
#define DWN 256
#endif
#ifndef PF2
#define PF2 1
#endif
#ifndef PF3
#define PF3 1
#endif
#ifndef PF4
#define PF4 0
#endif
#ifndef PF
#define PF 1
#endif
enum { BPAD = 48 };
enum { A_AREA = 384 * K_BLOCK + 48 * 64 };
enum {
    BLOCK_PANELS = 384 / PANEL, /* columns of b that stay in the second cache, with K_BLOCK of k */
    BLOCK_STRIPS = 96 / TG_MR,  /* rows of y whose sums stay there between two blocks of k */
};

typedef struct cut {
    size_t strips, panels;   /* of y */
    size_t rows_of, cols_of; /* strips and panels of a unit */
    size_t down, across;     /* units */
    size_t k_blocks, kc;
} cut;

static cut cut_of(const product *p, unsigned workers) {
    cut c = { .strips = tg_units(p->m, TG_MR), .panels = tg_units(p->n, PANEL) };
    c.k_blocks = tg_units(p->k, K_BLOCK);
    c.kc = tg_units(tg_units(p->k, c.k_blocks), 16) * 16;
    const size_t want = workers > 1 ? 4 * (size_t)workers : 1;
    c.across = tg_units(c.panels, BLOCK_PANELS);
    if (p->trans == 1) {
        c.across = tg_units(c.panels, DWN / PANEL);
        c.down = tg_units(c.strips, DWM / TG_MR);
        while (c.down * c.across < want && c.across * 2 <= c.panels / 2) c.across *= 2;
        while (c.down * c.across < want && c.down * 2 <= c.strips / 4) c.down *= 2;
    } else {
        c.down = c.strips;
        while (c.down * c.across < want && c.across * 2 <= c.panels) c.across *= 2;
    }
    c.rows_of = tg_units(c.strips, c.down);
    c.cols_of = tg_units(c.panels, c.across);
    c.down = tg_units(c.strips, c.rows_of);
    c.across = tg_units(c.panels, c.cols_of);
    return c;
}

static void tile(size_t rows, size_t kc, const float *a, size_t a_row, size_t a_k, const float *b,
                 const float *from, size_t ld_from, float *to, size_t ld_to, const ahead *next, const float *bias, const float *res, size_t ld_res) {
    if (a_k == 1) {
        switch (rows) {
#define TILE_HEIGHT(h)                                                                             \
    case h: tile_rows(h, kc, a, A_LD, 1, b, from, ld_from, to, ld_to, next, bias, res, ld_res); break;
            TILE_HEIGHTS(TILE_HEIGHT)
#undef TILE_HEIGHT
        }
    } else {
        switch (rows) {
#define TILE_HEIGHT(h)                                                                             \
    case h: tile_rows(h, kc, a, 1, a_k, b, from, ld_from, to, ld_to, next, bias, res, ld_res); break;
            TILE_HEIGHTS(TILE_HEIGHT)
#undef TILE_HEIGHT
        }
    }
    (void)a_row;
}

/* The tile at (row, col), for one block of k. */
static void step_tile(const product *p, size_t row, size_t rows, size_t col, size_t k0, size_t kc,
                      const float *a, size_t a_k, const float *b, const ahead *next) {
    const size_t cols = tg_min_size(PANEL, p->n - col);
    const bool first = k0 == 0, last = k0 + kc >= p->k;
    float *y = p->y + row * p->n + col;
    const float *from = !first || p->acc ? y : NULL;
    size_t ld_from = p->n;
    float sums[TG_MR * PANEL];
    if (PF3 && last && p->res)
        for (size_t i = 0; i < rows; i++)
            for (size_t j = 0; j < cols; j += 16) TG_PREFETCH(p->res + (row + i) * p->n + col + j);
    if (PF4 && last)
        for (size_t i = 0; i < rows; i++)
            for (size_t j = 0; j < cols; j += 16) __builtin_prefetch(p->y + (row + i) * p->n + col + j,1,3);
    const bool plain = !p->z && p->act == TG_ACT_NONE;
    if (cols == PANEL && (plain || !last)) {
        tile(rows, kc, a, A_LD, a_k, b, from, ld_from, y, p->n, next, last && p->bias ? p->bias + col : NULL, last && p->res ? p->res + row * p->n + col : NULL, p->n);
        return;
    }
    if (cols < PANEL && from) {
        for (size_t i = 0; i < rows; i++)
            for (size_t j = 0; j < PANEL; j += 16)
                tg_vstore(sums + i * PANEL + j,
                          tg_vload_n(from + i * p->n + j, cols > j ? tg_min_size(16, cols - j) : 0));
        from = sums;
        ld_from = PANEL;
    }
    tile(rows, kc, a, A_LD, a_k, b, from, ld_from, sums, PANEL, next, NULL, NULL, 0);
    if (last) {
        finish(p, sums, row, rows, col, cols);
        return;
    }
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j += 16)
            tg_vstore_n(y + i * p->n + j, tg_vload(sums + i * PANEL + j), tg_min_size(16, cols - j));
}

static void block(const product *p, const cut *c, size_t strip, size_t strips, size_t panel,
                  size_t panels, const float *packed, float *local) {
    float *const strip_a = local, *const block_b = local + A_AREA;
    for (size_t k0 = 0; k0 < p->k; k0 += c->kc) {
        const size_t kc = tg_min_size(c->kc, p->k - k0);
        if (!packed)
            pack_b_rows(p, panel * PANEL, panels, k0, kc, block_b, kc * PANEL + BPAD);
        const bool DIRECT = p->lda % 1024 != 0;
        if (p->trans == 1 && !DIRECT)
            pack_a_columns(p, strip * TG_MR, tg_min_size(strips * TG_MR, p->m - strip * TG_MR), k0, kc, strip_a);
        for (size_t s = strip; s < strip + strips; s++) {
            const size_t row = s * TG_MR, rows = tg_min_size(TG_MR, p->m - row);
            const float *a = strip_a;
            size_t a_k = 1;
            if (p->trans == 1) {
                a = DIRECT ? p->a + k0 * p->lda + row : strip_a + (s - strip) * (kc * TG_MR + 48);
                a_k = DIRECT ? p->lda : TG_MR;
            } else {
                pack_a(p, row, rows, k0, kc, strip_a);
            }
            const size_t share = (TG_MR + panels - 1) / panels;
            for (size_t j = 0; j < panels; j++) {
                ahead next = { NULL, 0, 0 };
                if (PF && p->trans != 1 && s + 1 < strip + strips) {
                    next = (ahead) { p->a + (row + TG_MR + j * share) * p->lda + k0, 0, p->lda };
                    size_t have = tg_min_size(TG_MR, p->m - row - TG_MR);
                    if (j * share < have) next.rows = tg_min_size(share, have - j * share);
                }
                if (PF2 && p->trans == 1 && k0 + kc < p->k) {
                    const size_t tiles = strips * panels, t = (s - strip) * panels + j;
                    const size_t k1 = k0 + kc, n1 = tg_min_size(c->kc, p->k - k1);
                    for (size_t k = k1 + t * n1 / tiles; k < k1 + (t + 1) * n1 / tiles; k++) {
                        const float *pa = p->a + k * p->lda + strip * TG_MR, *pb = p->b + k * p->ldb + panel * PANEL;
                        for (size_t l = 0; l < strips * TG_MR; l += 16) __builtin_prefetch(pa + l, 0, 2);
                        for (size_t l = 0; l < panels * PANEL; l += 16) __builtin_prefetch(pb + l, 0, 2);
                    }
                }
                const float *b = packed ? packed + ((panel + j) * p->k + k0) * PANEL
                                        : block_b + j * (kc * PANEL + BPAD);
                step_tile(p, row, rows, (panel + j) * PANEL, k0, kc, a, a_k, b, &next);
            }
        }
    }
}

static size_t pack_units(const tg_args *args) {
    const product p = product_of(args);
    return p.trans == 1 ? 0 : tg_units(p.n, PANEL) * tg_units(p.k, K_BLOCK);
}
static void pack_run(const tg_args *args, size_t begin, size_t end) {
    const product p = product_of(args);
    const size_t k_blocks = tg_units(p.k, K_BLOCK);
    for (size_t u = begin; u < end; u++) {
        const size_t panel = u / k_blocks, k0 = u % k_blocks * K_BLOCK;
        pack_b(&p, panel * PANEL, k0, tg_min_size(K_BLOCK, p.k - k0),
               (float *)args->scratch + (panel * p.k + k0) * PANEL);
    }
}
static size_t block_units(const tg_args *args) {
    const product p = product_of(args);
    const cut c = cut_of(&p, args->workers);
    return c.down * c.across;
}
static void block_run(const tg_args *args, size_t begin, size_t end) {
    const product p = product_of(args);
    const cut c = cut_of(&p, args->workers);
    while (begin < end) {
        const size_t across = begin / c.down, down = begin % c.down;
        size_t many = tg_min_size(end - begin, c.down - down);
        if (p.trans != 1) many = tg_min_size(many, BLOCK_STRIPS);
        else many = 1;
        const size_t strip = down * c.rows_of, panel = across * c.cols_of;
        block(&p, &c, strip, tg_min_size(many * c.rows_of, c.strips - strip), panel,
              tg_min_size(c.cols_of, c.panels - panel), p.trans == 1 ? NULL : args->scratch,
              args->local);
        begin += many;
    }
}
static size_t scratch_bytes(const tg_args *args) {
    const product p = product_of(args);
    return p.trans == 1 ? 0 : tg_units(p.n, PANEL) * PANEL * p.k * sizeof(float);
}
static size_t local_bytes(const tg_args *args) {
    (void)args;
    return (A_AREA + (size_t)BLOCK_PANELS * (PANEL * K_BLOCK+BPAD)) * sizeof(float);
}

static const tg_variant variants[] = {
    { .name = "blocked",
      .needs = TG_LEVER_BIT(blocked_gemm),
      .phase = { { pack_units, pack_run }, { block_units, block_run } },
      .scratch_bytes = scratch_bytes,
      .local_bytes = local_bytes },
};
TG_KERNELS(matmul, variants);
