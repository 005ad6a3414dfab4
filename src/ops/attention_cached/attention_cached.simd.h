/*
 * attention_cached.simd.h - attention of new tokens to the KV cache, by tiles of keys.
 *
 * A unit is a block of 64 rows of one query head. Many rows go through flash_block, whose lanes are
 * queries. Of few rows, as decoding has, most lanes would be idle; they go one by one with lanes
 * for keys, for which the keys of a tile are transposed. Every sum runs in the same order as there,
 * so that both give the same bits: see flash.h.
 */
#define FLASH_OF_CACHE
#include "ir/op.h"
#include "ops/attention/flash.h"
#include "ops/attention/heads.h"

/* So many rows one by one take about the time of a block of up to 16. */
enum { FEW_ROWS = 3 };

enum { KEY_VECS = TILE / LANES };

/* Dot products of q with a tile of transposed keys; lanes before key `first` and from n on are
 * -inf. */
static void dots_of_row(tg_v s[KEY_VECS], const float *q, const float *kt, size_t d, size_t first,
                        size_t n) {
    UNROLL
    for (int v = 0; v < KEY_VECS; v++) s[v] = tg_vzero();
    for (size_t c = 0; c < d; c++) {
        const tg_v x = tg_vset(q[c]);
        UNROLL
        for (int v = 0; v < KEY_VECS; v++)
            s[v] = tg_vfma(x, tg_vload(kt + c * TILE + v * LANES), s[v]);
    }
    UNROLL
    for (int v = 0; v < KEY_VECS; v++) {
        const size_t seen = clamp((ptrdiff_t)n - v * LANES, LANES);
        const size_t before = clamp((ptrdiff_t)first - v * LANES, LANES);
        s[v] = tg_vselect(tg_vfirst(seen), s[v], tg_vset(MINUS_INF));
        s[v] = tg_vselect(tg_vfirst(before), tg_vset(MINUS_INF), s[v]);
    }
}

/* o = o * keep + sum over j of p[j] v[j], in vecs vectors of columns: the more there are, the less
 * each chain waits for its own last addition. */
INLINE void add_values(float *o, tg_v keep, const float *p, const float *v, size_t step, size_t n,
                       int vecs) {
    tg_v acc[4];
    UNROLL
    for (int i = 0; i < vecs; i++) acc[i] = tg_vmul(tg_vload(o + i * LANES), keep);
    for (size_t j = 0; j < n; j++) {
        const tg_v w = tg_vset(p[j]);
        UNROLL
        for (int i = 0; i < vecs; i++)
            acc[i] = tg_vfma(w, tg_vload(v + j * step + i * LANES), acc[i]);
    }
    UNROLL
    for (int i = 0; i < vecs; i++) tg_vstore(o + i * LANES, acc[i]);
}

/*
 * The first query of x, at position pos, which sees keys from `low` on. m, l and keep are
 * flash.h's, the same in all lanes; l is a chain over keys, one at a time, since that is its order
 * there. Such chains are short of work for the processor, but a row's time is in reading and
 * transposing keys.
 */
static void one_row(const flash_head *x, const flash_local *f, size_t pos, size_t low) {
    const tg_v scale = tg_vset(x->scale * LOG2_E);
    const size_t width = f->width, end = pos + 1;
    tg_v m = tg_vset(MINUS_INF), l = tg_vzero();
    memset(f->o, 0, width * sizeof *f->o);
    for (size_t begin = low / TILE * TILE; begin < end; begin += TILE) {
        const size_t first = begin < low ? low - begin : 0;
        const size_t n = tg_min_size(TILE, end - begin), n_lanes = round_up(n, LANES);
        const rows k = memory_rows(x, 0, f->copy[0], width, begin, n, n_lanes);
        const rows v = memory_rows(x, 1, f->copy[1], width, begin, n, n);
        tg_v s[KEY_VECS];
        transpose(f->qt, k, width, n_lanes);
        dots_of_row(s, x->q.at, f->qt, x->d, first, n);
        const float top = tg_vmaxlane(tg_vmax(tg_vmax(s[0], s[1]), tg_vmax(s[2], s[3])));
        const tg_v new_m = tg_vmax(tg_vset(top), m);
        const tg_v keep = power_of_2(tg_vmul(tg_vsub(m, new_m), scale));
        for (int i = 0; i < KEY_VECS; i++)
            tg_vstore(f->s + i * LANES, power_of_2(tg_vmul(tg_vsub(s[i], new_m), scale)));
        m = new_m;
        l = tg_vmul(l, keep);
        for (size_t j = first; j < n; j++) l = tg_vadd(l, tg_vset(f->s[j]));
        const float *p = f->s + first, *at = v.at + first * v.step;
        const size_t seen = n - first;
        size_t c = 0;
        for (; c + 3 * LANES < width; c += 4 * LANES)
            add_values(f->o + c, keep, p, at + c, v.step, seen, 4);
        for (; c + LANES < width; c += 2 * LANES)
            add_values(f->o + c, keep, p, at + c, v.step, seen, 2);
        for (; c < width; c += LANES) add_values(f->o + c, keep, p, at + c, v.step, seen, 1);
    }
    const tg_v factor = tg_vdiv(tg_vset(1), l);
    for (size_t c = 0; c < x->d; c += LANES)
        store_columns(x->o, c, x->d, tg_vmul(tg_vload(f->o + c), factor));
}

/* Rows change from call to call, so the units do: one block for a head while decoding. */
static size_t units(const tg_args *a) {
    return (size_t)a->attr.i[0] * tg_units(a->in_type[0].dim[0], TILE);
}

static void run(const tg_args *a, size_t begin, size_t end) {
    const tg_heads s = tg_heads_of(&a->attr);
    const size_t n_rows = a->in_type[0].dim[0], t_max = a->in_type[1].dim[2];
    const size_t n_blocks = tg_units(n_rows, TILE), pos = (size_t)a->rt->pos;
    const flash_local f = flash_local_at(a->local, s.size);
    for (size_t u = begin; u < end; u++) {
        const size_t h = u / n_blocks, row = u % n_blocks * TILE;
        const size_t n = tg_min_size(TILE, n_rows - row);
        const float *k = (const float *)a->in[1] + h / s.group * t_max * s.size;
        flash_head x = {
            .d = s.size,
            .scale = a->attr.f[0],
            .q = { (const float *)a->in[0] + row * s.row + tg_heads_q(&s, h), s.row },
            .k = { k, s.size },
            .v = { k + s.n_kv * t_max * s.size, s.size },
            .o = (float *)a->out[0] + row * s.q_row + h * s.size,
            .o_step = s.q_row,
            .dtype = a->in_type[1].dtype,
        };
        if (x.dtype != TG_F32) {
            const size_t head_bytes = t_max * tg_kv_row_bytes(x.dtype, s.size);
            x.packed[0] = (const uint8_t *)a->in[1] + h / s.group * head_bytes;
            x.packed[1] = x.packed[0] + s.n_kv * head_bytes;
        }
        /* A block knows one edge of what its queries see: rows that a window cuts go one by one. */
        const size_t window = (size_t)a->attr.i[3];
        const bool cut = window > 0 && pos + row + n > window;
        if (n > FEW_ROWS && !cut) {
            flash_block(&x, &f, pos + row, n);
            continue;
        }
        for (size_t i = 0; i < n; i++) {
            const size_t seen = pos + row + i + 1;
            one_row(&x, &f, seen - 1, cut && seen > window ? seen - window : 0);
            x.q = rows_from(x.q, 1);
            x.o += x.o_step;
        }
    }
}

/* Of head size D alone: independent of the rows and of how long the cache is. */
static size_t local_bytes(const tg_args *a) {
    return flash_local_elems((size_t)a->attr.i[2]) * sizeof(float);
}

static const tg_variant variants[] = {
    { .name = "flash", .phase = { { units, run } }, .local_bytes = local_bytes },
};
TG_KERNELS(attention_cached, variants);
