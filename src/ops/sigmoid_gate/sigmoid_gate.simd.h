/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sigmoid_gate.simd.h - split_gates, join_gates, sigmoid_gate and sigmoid_gate_grad: the first two
 * copy by rows, the others go by sixteen elements.
 */
#include "ops/sigmoid_gate/gates_rules.h"
#include "simd/vmath.h"

/* ----------------------------------------------------------------------------------------- copies
 */

static size_t rows_of_unit(const tg_args *a) {
    return tg_unit_rows(gates_of(&a->attr).row, TG_UNIT_ELEMS);
}
static size_t copy_units(const tg_args *a) {
    return tg_units(tg_type_rows(&a->in_type[0]), rows_of_unit(a));
}

/* A row of x, and of the two that it is split into; joins: the other way, of gates that may be
 * NULL, which are zeros. */
static void copy_row(const gates *s, float *x, float *qkv, float *gate, bool joins) {
    const size_t tail = s->row - s->HD, bytes = s->D * sizeof *x;
    for (size_t h = 0; h < s->HD; h += s->D) {
        float *query = x + 2 * h, *own = query + s->D;
        memcpy(joins ? query : qkv + h, joins ? qkv + h : query, bytes);
        if (gate)
            memcpy(joins ? own : gate + h, joins ? gate + h : own, bytes);
        else
            memset(own, 0, bytes);
    }
    memcpy(joins ? x + 2 * s->HD : qkv + s->HD, joins ? qkv + s->HD : x + 2 * s->HD,
           tail * sizeof *x);
}

static void copy_rows(const tg_args *a, size_t begin, size_t end, void *x, void *qkv, void *gate,
                      bool joins) {
    const gates s = gates_of(&a->attr);
    const size_t stop = tg_min_size(end * rows_of_unit(a), tg_type_rows(&a->in_type[0]));
    for (size_t r = begin * rows_of_unit(a); r < stop; r++)
        copy_row(&s, (float *)x + r * (s.row + s.HD), (float *)qkv + r * s.row,
                 gate ? (float *)gate + r * s.HD : NULL, joins);
}

/* What is only read is not written to: copy_row says which way it goes. */
static void run_split(const tg_args *a, size_t begin, size_t end) {
    copy_rows(a, begin, end, (void *)(uintptr_t)a->in[0], a->out[0], a->out[1], false);
}
static void run_join(const tg_args *a, size_t begin, size_t end) {
    copy_rows(a, begin, end, a->out[0], (void *)(uintptr_t)a->in[0], (void *)(uintptr_t)a->in[1],
              true);
}

static const tg_variant split[] = { { .name = "rows", .phase = { { copy_units, run_split } } } };
TG_KERNELS(split_gates, split);
static const tg_variant join[] = { { .name = "rows", .phase = { { copy_units, run_join } } } };
TG_KERNELS(join_gates, join);

/* ------------------------------------------------------------------------------------------ gates
 */

/* Half of TG_UNIT_ELEMS, as an element costs an exp and a division. */
enum { ELEMS = TG_UNIT_ELEMS / 2 };
static size_t units(const tg_args *a) { return tg_units(tg_type_elems(&a->in_type[0]), ELEMS); }

/* Of minus x: exp is infinite far out, and the quotient 0. */
static inline tg_v sigmoid(tg_v minus) {
    return tg_vdiv(tg_vset(1), tg_vadd(tg_vset(1), tg_vexp(minus)));
}

static void run_gate(const tg_args *a, size_t begin, size_t end) {
    const float *x = a->in[0], *gate = a->in[1];
    const size_t stop = tg_min_size(end * ELEMS, tg_type_elems(&a->in_type[0]));
    for (size_t i = begin * ELEMS; i < stop; i += 16) {
        const size_t n = tg_min_size(16, stop - i);
        const tg_v s = sigmoid(tg_vneg(tg_vload_n(gate + i, n)));
        tg_vstore_n((float *)a->out[0] + i, tg_vmul(tg_vload_n(x + i, n), s), n);
    }
}

static void run_gate_grad(const tg_args *a, size_t begin, size_t end) {
    const float *x = a->in[0], *gate = a->in[1], *dy = a->in[2];
    const size_t stop = tg_min_size(end * ELEMS, tg_type_elems(&a->in_type[0]));
    for (size_t i = begin * ELEMS; i < stop; i += 16) {
        const size_t n = tg_min_size(16, stop - i);
        const tg_v g = tg_vload_n(gate + i, n);
        const tg_v dx = tg_vmul(tg_vload_n(dy + i, n), sigmoid(tg_vneg(g)));
        tg_vstore_n((float *)a->out[0] + i, dx, n);
        tg_vstore_n((float *)a->out[1] + i, tg_vmul(tg_vmul(dx, tg_vload_n(x + i, n)), sigmoid(g)),
                    n);
    }
}

static const tg_variant gate[] = { { .name = "elements", .phase = { { units, run_gate } } } };
TG_KERNELS(sigmoid_gate, gate);
static const tg_variant gate_grad[] = { { .name = "elements",
                                          .phase = { { units, run_gate_grad } } } };
TG_KERNELS(sigmoid_gate_grad, gate_grad);
