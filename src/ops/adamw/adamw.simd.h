/* SPDX-License-Identifier: Apache-2.0 */
/*
 * adamw.simd.h - runs of elements, in one pass: 16 bytes read and 12 written for each.
 */
#include "base/math.h"
#include "ir/op.h"
#include "ops/kernel.h"
#include "simd/vec.h"

#define UNIT 4096u

/* The formula with all that is the same for every element taken out of it:
 *   w' = keep * w - rate * m' / (sqrt(v') * root + eps) */
typedef struct factors {
    tg_v clip, b1, c1, b2, c2, rate, root, eps;
} factors;

static size_t units(const tg_args *a) { return tg_units(tg_type_elems(&a->in_type[0]), UNIT); }

/* In double, then rounded once: in float, powers near 1 would leave few digits in bias1 and bias2.
 * The betas themselves are floats, as attributes are; the reference has the same ones. t is 1 or
 * more, else the bias terms would be 0. The decay is not among them: it differs between the two
 * parts of a run. */
static factors factors_of(const tg_args *a) {
    const double b1 = (double)a->attr.f[0], b2 = (double)a->attr.f[1];
    const double bias1 = 1 - tg_pow(b1, a->rt->step), bias2 = 1 - tg_pow(b2, a->rt->step);
    return (factors) {
        .clip = tg_vset(((const float *)a->in[4])[1]),
        .b1 = tg_vset(a->attr.f[0]),
        .c1 = tg_vset((float)(1 - b1)),
        .b2 = tg_vset(a->attr.f[1]),
        .c2 = tg_vset((float)(1 - b2)),
        .rate = tg_vset((float)((double)a->rt->lr / bias1)),
        .root = tg_vset((float)(1 / tg_sqrt(bias2))),
        .eps = tg_vset(a->attr.f[2]),
    };
}

/* A decayed weight that has no gradient yet shrinks all the same: that is what "decoupled" means. v
 * is a sum of squares and never negative, so the root needs no guard. */
static inline tg_v step(const factors *f, tg_v keep, tg_v w, tg_v g, tg_v *m, tg_v *v) {
    g = tg_vmul(g, f->clip);
    *m = tg_vfma(f->b1, *m, tg_vmul(f->c1, g));
    *v = tg_vfma(f->b2, *v, tg_vmul(tg_vmul(f->c2, g), g));
    const tg_v spread = tg_vfma(tg_vsqrt(*v), f->root, f->eps);
    return tg_vfnma(f->rate, tg_vdiv(*m, spread), tg_vmul(keep, w));
}

/* Elements [i, stop), all of them decayed or none. */
static void run_elems(const tg_args *a, const factors *f, float keep_scalar, size_t i,
                      size_t stop) {
    const float *w_in = a->in[0], *grads = a->in[1], *m_in = a->in[2], *v_in = a->in[3];
    float *w_out = a->out[0], *m_out = a->out[1], *v_out = a->out[2];
    const tg_v keep = tg_vset(keep_scalar);
    for (; i + 16 <= stop; i += 16) {
        tg_v m = tg_vload(m_in + i), v = tg_vload(v_in + i);
        tg_vstore(w_out + i, step(f, keep, tg_vload(w_in + i), tg_vload(grads + i), &m, &v));
        tg_vstore(m_out + i, m);
        tg_vstore(v_out + i, v);
    }
    if (i >= stop) return;
    const size_t n = stop - i;
    tg_v m = tg_vload_n(m_in + i, n), v = tg_vload_n(v_in + i, n);
    const tg_v w = step(f, keep, tg_vload_n(w_in + i, n), tg_vload_n(grads + i, n), &m, &v);
    tg_vstore_n(w_out + i, w, n);
    tg_vstore_n(m_out + i, m, n);
    tg_vstore_n(v_out + i, v, n);
}

/* ok is 0 for a step that must not happen: all three arrays keep what they hold, since outputs lie
 * in place of the inputs. Unit borders and the border between decayed and not are independent, so a
 * unit may hold a piece of either; both parts may be empty. */
static void run(const tg_args *a, size_t begin, size_t end) {
    if (((const float *)a->in[4])[2] == 0) return;
    const factors f = factors_of(a);
    const double decay = 1 - (double)a->rt->lr * (double)a->attr.f[3];
    const size_t first = begin * UNIT;
    const size_t stop = tg_min_size(end * UNIT, tg_type_elems(&a->in_type[0]));
    const size_t decayed = a->attr.i[0] > 0 ? (size_t)a->attr.i[0] : 0;
    const size_t split = tg_min_size(stop, first > decayed ? first : decayed);
    run_elems(a, &f, (float)decay, first, split);
    run_elems(a, &f, 1, split, stop);
}

static const tg_variant variants[] = { { .name = "elements", .phase = { { units, run } } } };
TG_KERNELS(adamw, variants);
