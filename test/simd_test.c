/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simd_test.c - simd/vec.h and vmath.h on every ISA that this CPU can run.
 *
 *     simd_test [--every N] [--isa NAME]
 *
 * vec.h's functions are exact, so each is held against plain C, bit for bit. vmath.h's are
 * approximations: each is held against base/math.h in double, with the bounds that vmath.h states,
 * on every N-th float there is (default 4099, a prime: all binades, all last digits). A hash over
 * its results must be that of the ISA's class in the table below; so NEON under an emulator is
 * compared with AVX-512 on another machine, and a change of a single bit is seen.
 *
 * NaNs are compared as NaNs: their sign and payload are the CPU's own.
 * The last line is "N passed, N failed"; the exit code is 0 only if nothing failed.
 */
#include "simd_probe.h"

#include <math.h>
#include <stdlib.h>

#include "base/math.h"
#include "base/rng.h"
#include "dtype/dtype.h"

enum { BLOCK = 4096, EVERY = 4099 };

typedef struct test {
    const probe *p;
    const tg_isa_desc *isa;
    uint32_t every;
    int passed, failed;
} test;

static const probe *const probes[] = {
#define TG_ISA_ROW(name, fused, needs) [TG_ISA_ID_##name] = &probe_of__##name,
#include "simd/isa.def"
#undef TG_ISA_ROW
};

TG_PRINTF(4, 5)
static void verdict(test *t, const char *what, bool ok, const char *format, ...) {
    t->passed += ok;
    t->failed += !ok;
    if (ok) return;
    va_list args;
    va_start(args, format);
    printf("FAIL %s %s: ", t->isa->name, what);
    vprintf(format, args);
    putchar('\n');
    va_end(args);
}

/* --------------------------------------------------------------------------------------- inputs */

/* Zeros, the ends of the subnormals and normals, ones, halves, whole numbers at the edge of what a
 * float can tell apart, infinities and NaN. */
static const uint32_t specials[] = {
    0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007fffff, 0x00800000, 0x80800000, 0x3f800000,
    0xbf800000, 0x3f7fffff, 0x3f800001, 0x3f000000, 0x40200000, 0xc0200000, 0x4b000000, 0x4b7fffff,
    0x4b800000, 0xcb800000, 0x4effffff, 0x477fe000, 0x477ff000, 0x33800000, 0x33000001, 0x7f7fffff,
    0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00000, 0x7f800001, 0x42b17218, 0xc2cff1b5,
};
enum { N_SPECIALS = sizeof specials / sizeof specials[0] };

/* Any bits: a third of them are huge, a third tiny. Streams differ. */
static void fill_random(uint32_t *bits, size_t n, uint32_t stream) {
    for (size_t i = 0; i < n; i += 4) tg_philox(7, i, TG_RNG_INIT, stream, bits + i);
}

/* Every special with every other, and then random bits; b moves within a row of a. */
static void fill_pairs(uint32_t *a, uint32_t *b, uint32_t *c) {
    fill_random(a, BLOCK, 1);
    fill_random(b, BLOCK, 2);
    fill_random(c, BLOCK, 3);
    for (size_t i = 0; i < N_SPECIALS * N_SPECIALS; i++) {
        a[i] = specials[i / N_SPECIALS];
        b[i] = specials[i % N_SPECIALS];
        c[i] = specials[(i / N_SPECIALS + 3 * i) % N_SPECIALS];
    }
    /* Near cancellations, where a fused product and a rounded one part. */
    for (size_t i = N_SPECIALS * N_SPECIALS; i < 2 * N_SPECIALS * N_SPECIALS; i++) {
        a[i] = 0x3f800000 | (a[i] & 0x7fffff);
        b[i] = 0x3f800000 | (b[i] & 0x7fffff);
        c[i] = tg_bits_from_float(-tg_float_from_bits(a[i]) * tg_float_from_bits(b[i]));
    }
}

static bool same_float(float a, float b) {
    return tg_bits_from_float(a) == tg_bits_from_float(b) || (a != a && b != b);
}

/* ---------------------------------------------------------------------------------- exact floats
 */

static float ref_vadd(float a, float b) { return a + b; }
static float ref_vsub(float a, float b) { return a - b; }
static float ref_vmul(float a, float b) { return a * b; }
static float ref_vdiv(float a, float b) { return a / b; }
static float ref_vmin(float a, float b) { return a < b ? a : b; }
static float ref_vmax(float a, float b) { return a > b ? a : b; }
static float ref_vlt(float a, float b) { return a < b ? 1 : 2; }
static float ref_vle(float a, float b) { return a <= b ? 1 : 2; }
static float ref_vgt(float a, float b) { return a > b ? 1 : 2; }
static float ref_veq(float a, float b) { return a == b ? 1 : 2; }
static float ref_vscale(float a, float b) { return (float)tg_ldexp((double)a, (int)b); }
static float ref_vabs(float a) { return tg_float_from_bits(tg_bits_from_float(a) & 0x7fffffff); }
static float ref_vneg(float a) { return tg_float_from_bits(tg_bits_from_float(a) ^ 0x80000000); }
static float ref_vsqrt(float a) { return sqrtf(a); }

static void test_binary(test *t, const char *name, float (*ref)(float, float),
                        void (*have)(float *, const float *, const float *, size_t), const float *a,
                        const float *b) {
    static float y[BLOCK];
    have(y, a, b, BLOCK);
    for (size_t i = 0; i < BLOCK; i++) {
        const float want = ref(a[i], b[i]);
        if (same_float(y[i], want)) continue;
        verdict(t, name, false, "of %a and %a: want %a, have %a", (double)a[i], (double)b[i],
                (double)want, (double)y[i]);
        return;
    }
    verdict(t, name, true, "%s", "");
}

static void test_exact_unary(test *t, const char *name, float (*ref)(float),
                             void (*have)(float *, const float *, size_t), const float *a) {
    static float y[BLOCK];
    have(y, a, BLOCK);
    for (size_t i = 0; i < BLOCK; i++) {
        if (same_float(y[i], ref(a[i]))) continue;
        verdict(t, name, false, "of %a: want %a, have %a", (double)a[i], (double)ref(a[i]),
                (double)y[i]);
        return;
    }
    verdict(t, name, true, "%s", "");
}

/* Rounded once in the fused class, twice in the other: the line between the classes. */
static void test_fma(test *t, const char *name, float sign,
                     void (*have)(float *, const float *, const float *, const float *, size_t),
                     const float *a, const float *b, const float *c) {
    static float y[BLOCK];
    have(y, a, b, c, BLOCK);
    for (size_t i = 0; i < BLOCK; i++) {
        const float product = sign * a[i] * b[i];
        const float want = t->isa->fused ? fmaf(sign * a[i], b[i], c[i]) : product + c[i];
        if (same_float(y[i], want)) continue;
        verdict(t, name, false, "of %a, %a and %a: want %a, have %a", (double)a[i], (double)b[i],
                (double)c[i], (double)want, (double)y[i]);
        return;
    }
    verdict(t, name, true, "%s", "");
}

static void test_floats(test *t) {
    static uint32_t ua[BLOCK], ub[BLOCK], uc[BLOCK];
    static float a[BLOCK], b[BLOCK], c[BLOCK];
    fill_pairs(ua, ub, uc);
    memcpy(a, ua, sizeof a);
    memcpy(b, ub, sizeof b);
    memcpy(c, uc, sizeof c);
#define BINARY(name) test_binary(t, #name, ref_##name, t->p->name, a, b)
    BINARY(vadd);
    BINARY(vsub);
    BINARY(vmul);
    BINARY(vdiv);
    BINARY(vmin);
    BINARY(vmax);
    BINARY(vlt);
    BINARY(vle);
    BINARY(vgt);
    BINARY(veq);
    test_exact_unary(t, "vabs", ref_vabs, t->p->vabs, a);
    test_exact_unary(t, "vneg", ref_vneg, t->p->vneg, a);
    test_exact_unary(t, "vsqrt", ref_vsqrt, t->p->vsqrt, a);
    test_fma(t, "vfma", 1, t->p->vfma, a, b, c);
    test_fma(t, "vfnma", -1, t->p->vfnma, a, b, c);
    /* All whole n that it is for, with x all over (1/4, 4). */
    for (size_t i = 0; i < BLOCK; i++) {
        a[i] = (float)tg_ldexp(1 + (double)(ua[i] & 0x7fffff) * 0x1p-23, (int)(i % 4) - 2);
        if (ub[i] & 1) a[i] = -a[i];
        if (tg_fabs((double)a[i]) == 0.25) a[i] = 1;
        b[i] = (float)((int)(i % 501) - 250);
    }
    BINARY(vscale);
#undef BINARY
}

/* -------------------------------------------------------------------------------------- integers
 */

static void test_integers(test *t) {
    static uint32_t a[BLOCK], b[BLOCK], c[BLOCK];
    static int32_t ia[BLOCK], ib[BLOCK], y[BLOCK];
    static float f[BLOCK], g[BLOCK];
    fill_pairs(a, b, c);
    memcpy(ia, a, sizeof ia);
    memcpy(ib, b, sizeof ib);
#define SAME(name, call, want_)                                                                    \
    do {                                                                                           \
        size_t wrong = BLOCK;                                                                      \
        t->p->call;                                                                                \
        for (size_t i = BLOCK; i-- > 0;)                                                           \
            if ((uint32_t)y[i] != (uint32_t)(want_)) wrong = i;                                    \
        verdict(t, name, wrong == BLOCK, "of %08x and %08x: have %08x", a[wrong % BLOCK],          \
                b[wrong % BLOCK], (unsigned)y[wrong % BLOCK]);                                     \
    } while (0)
    SAME("viadd", viadd(y, ia, ib, BLOCK), a[i] + b[i]);
    SAME("visub", visub(y, ia, ib, BLOCK), a[i] - b[i]);
    SAME("viand", viand(y, ia, ib, BLOCK), a[i] & b[i]);
    SAME("vior", vior(y, ia, ib, BLOCK), a[i] | b[i]);
    static const int count[4] = { 1, 13, 23, 31 };
    SAME("vishl", vishl(y, ia, BLOCK), a[i] << count[i / 16 % 4]);
    SAME("vishr", vishr(y, ia, BLOCK), a[i] >> count[i / 16 % 4]);
    SAME("visar", visar(y, ia, BLOCK), (int64_t)ia[i] >> count[i / 16 % 4]);
    memcpy(f, a, sizeof f);
    SAME("vbits", bits(y, f, BLOCK), a[i]);
    t->p->frombits(g, ia, BLOCK);
    verdict(t, "vfrombits", memcmp(g, a, sizeof g) == 0, "other bits than it was given");

    /* Halves among them, up to the last float below 2^31. */
    for (size_t i = 0; i < BLOCK; i++)
        f[i] = i < 256 ? (float)i / 2 - 64 : (float)ia[i] * (float)tg_ldexp(1, -(int)(i % 31) - 1);
    SAME("vround", vround(y, f, BLOCK), (int32_t)lrint((double)f[i]));
    t->p->vfloat(g, ia, BLOCK);
    size_t wrong = BLOCK;
    for (size_t i = 0; i < BLOCK; i++)
        if (g[i] != (float)ia[i]) wrong = i;
    verdict(t, "vfloat", wrong == BLOCK, "of %d: have %a", (int)ia[wrong % BLOCK],
            (double)g[wrong % BLOCK]);
#undef SAME
}

/* ------------------------------------------------------------------------------ memory, reductions
 */

/* Beyond what may be touched there is a NaN, in front and behind. */
static void test_parts(test *t) {
    float from[16], y[48], back[16];
    for (int i = 0; i < 16; i++) from[i] = (float)(i + 1);
    for (size_t n = 0; n <= 16; n++) {
        bool ok = true;
        t->p->load_n(y, from, n);
        for (size_t i = 0; i < 16; i++) ok = ok && y[i] == (i < n ? from[i] : 0);
        for (int i = 0; i < 48; i++) y[i] = NAN;
        t->p->store_n(y + 16, from, n);
        for (size_t i = 0; i < 48; i++)
            ok = ok && (i >= 16 && i < 16 + n ? y[i] == from[i - 16] : y[i] != y[i]);
        t->p->first(back, n);
        for (size_t i = 0; i < 16; i++) ok = ok && back[i] == (i < n ? 1 : 2);
        verdict(t, "load_n, store_n, first", ok, "with %zu lanes", n);
    }
    /* Exactly as long as what is read, so that a sanitizer or the heap's guard sees one more. */
    for (size_t n = 1; n <= 16; n++) {
        float *exact = malloc(n * sizeof *exact);
        memcpy(exact, from, n * sizeof *exact);
        t->p->load_n(y, exact, n);
        t->p->store_n(exact, y, n);
        verdict(t, "load_n of n floats", memcmp(exact, from, n * sizeof *exact) == 0, "%zu", n);
        free(exact);
    }
    int32_t whole[16];
    bool ok = true;
    t->p->fill(y, 0.1f);
    t->p->ifill(whole, -7);
    for (int i = 0; i < 16; i++) ok = ok && y[i] == 0.1f && y[16 + i] == 0 && whole[i] == -7;
    verdict(t, "vset, vzero, viset", ok, "other values");
}

/* Lanes i and i + 8, then + 4, + 2, + 1: numbers of very different size tell orders apart. */
static void test_reductions(test *t) {
    uint32_t bits[16];
    float x[16];
    bool sums = true, largest = true;
    for (uint32_t round = 0; round < 500; round++) {
        float s[16], m = -INFINITY;
        fill_random(bits, 16, 100 + round);
        for (int i = 0; i < 16; i++) {
            x[i] = (float)(int32_t)bits[i] * (float)tg_ldexp(1, (int)(bits[i] % 40) - 60);
            s[i] = x[i];
            m = x[i] > m ? x[i] : m;
        }
        for (int half = 8; half >= 1; half /= 2)
            for (int i = 0; i < half; i++) s[i] = s[i] + s[i + half];
        sums = sums && same_float(t->p->vsum(x), s[0]);
        largest = largest && same_float(t->p->vmaxlane(x), m);
    }
    verdict(t, "vsum", sums, "another order than vec.h's");
    verdict(t, "vmaxlane", largest, "not the largest");
}

static void test_turn(test *t) {
    float from[16 * 19], to[16 * 21];
    for (int i = 0; i < 16 * 19; i++) from[i] = (float)i;
    for (size_t rows = 1; rows <= 16; rows++) {
        for (size_t cols = 1; cols <= 16; cols++) {
            bool ok = true;
            for (int i = 0; i < 16 * 21; i++) to[i] = NAN;
            t->p->turn(to, 21, from, 19, rows, cols);
            for (size_t j = 0; j < 16; j++)
                for (size_t i = 0; i < 21; i++) {
                    const float have = to[j * 21 + i];
                    ok = ok && (j >= cols || i >= 16 ? have != have
                                                     : have == (i < rows ? from[i * 19 + j] : 0));
                }
            verdict(t, "vturn", ok, "of %zu rows and %zu columns", rows, cols);
        }
    }
}

/* --------------------------------------------------------------------------------- 16-bit floats
 */

static void test_loads(test *t, const char *name, void (*load)(float *, const uint16_t *, size_t),
                       float (*ref)(uint16_t)) {
    uint16_t h[16];
    float y[16];
    for (uint32_t base = 0; base < 65536; base += 16) {
        for (uint32_t i = 0; i < 16; i++) h[i] = (uint16_t)(base + i);
        load(y, h, 16);
        for (int i = 0; i < 16; i++) {
            if (same_float(y[i], ref(h[i]))) continue;
            verdict(t, name, false, "of %04x: want %a, have %a", h[i], (double)ref(h[i]),
                    (double)y[i]);
            return;
        }
    }
    verdict(t, name, true, "%s", "");
}

/* nan_from: the first bits, without sign, that are a NaN. */
static bool same_half(uint16_t a, uint16_t b, uint16_t nan_from) {
    return a == b || ((a & 0x7fff) >= nan_from && (b & 0x7fff) >= nan_from);
}

static bool stores_agree(test *t, const char *name,
                         void (*store)(uint16_t *, const float *, size_t), uint16_t (*ref)(float),
                         uint16_t nan_from, const uint32_t *bits) {
    float x[16];
    uint16_t h[16];
    memcpy(x, bits, sizeof x);
    store(h, x, 16);
    for (int i = 0; i < 16; i++) {
        if (same_half(h[i], ref(x[i]), nan_from)) continue;
        verdict(t, name, false, "of %08x: want %04x, have %04x", bits[i], ref(x[i]), h[i]);
        return false;
    }
    return true;
}

/* Around every representable number and every tie between two of them, then all over. widen gives
 * the float that a pattern stands for; ties lie half way in the float's bits. */
static void test_stores(test *t, const char *name, void (*store)(uint16_t *, const float *, size_t),
                        uint16_t (*ref)(float), float (*widen)(uint16_t), uint16_t nan_from) {
    uint32_t bits[16];
    for (uint32_t h = 0; h < 65536; h++) {
        const uint32_t at = tg_bits_from_float(widen((uint16_t)h));
        const uint32_t next =
            tg_bits_from_float(widen((uint16_t)((h & 0x8000) | ((h + 1) & 0x7fff))));
        const uint32_t tie = at + (next - at) / 2;
        for (uint32_t i = 0; i < 16; i++) bits[i] = (i < 8 ? at : tie) + i % 8 - 3;
        if (!stores_agree(t, name, store, ref, nan_from, bits)) return;
    }
    for (uint64_t x = 0; x + 16 * t->every <= UINT32_MAX; x += 16 * t->every) {
        for (uint32_t i = 0; i < 16; i++) bits[i] = (uint32_t)x + i * t->every;
        if (!stores_agree(t, name, store, ref, nan_from, bits)) return;
    }
    verdict(t, name, true, "%s", "");
}

static void test_halves(test *t) {
    test_loads(t, "vload_f16", t->p->load_f16, tg_f16_to_f32);
    test_loads(t, "vload_bf16", t->p->load_bf16, tg_bf16_to_f32);
    test_stores(t, "vstore_f16", t->p->store_f16, tg_f16_from_f32, tg_f16_to_f32, 0x7c01);
    test_stores(t, "vstore_bf16", t->p->store_bf16, tg_bf16_from_f32, tg_bf16_to_f32, 0x7f81);
    uint16_t a[16], y[16];
    int32_t wide[16];
    bool ok = true;
    for (uint32_t base = 0; base < 65536; base += 16) {
        for (uint32_t i = 0; i < 16; i++) a[i] = (uint16_t)(base + i);
        t->p->copy_u16(y, wide, a, 16);
        for (int i = 0; i < 16; i++) ok = ok && y[i] == a[i] && wide[i] == a[i];
    }
    verdict(t, "viload_u16, vistore_u16", ok, "not what was stored");
}

/* ------------------------------------------------------------------------------------------ vmath
 */

static const double root_half = 0.70710678118654752440;
static const double root_2_over_pi = 0.79788456080286535588;

static double ref_phi(double x) { return 0.5 * tg_erfc(-x * root_half); }
static double ref_gelu(double x) { return x * ref_phi(x); }
static double ref_gelu_grad(double x) {
    return ref_phi(x) + x * tg_exp(-0.5 * x * x) * root_2_over_pi * 0.5;
}
static double tanh_u(double x) { return tg_tanh(root_2_over_pi * (x + 0.044715 * x * x * x)); }
static double ref_gelu_tanh(double x) { return 0.5 * x * (1 + tanh_u(x)); }
static double ref_gelu_tanh_d(double x) {
    const double u = tanh_u(x), slope = root_2_over_pi * (1 + 3 * 0.044715 * x * x);
    if (tg_fabs(u) == 1) return 0.5 * (1 + u); /* x^2 may be infinite there */
    return 0.5 * (1 + u) + 0.5 * x * (1 - u * u) * slope;
}
static double ref_silu(double x) { return x / (1 + tg_exp(-x)); }
static double ref_silu_d(double x) {
    const double g = 1 / (1 + tg_exp(-x)), rest = 1 / (1 + tg_exp(x));
    return g == 0 ? 0 : g + x * g * rest;
}

typedef enum unit { ULP, ABSOLUTE, RELATIVE } unit; /* RELATIVE: to 1 + |want| */

/* Bounds are vmath.h's. zero and the infinities: what those give, within the bound. Hashes of every
 * 4099th float. */
typedef struct function {
    const char *name;
    size_t place;
    double (*ref)(double);
    unit unit;
    double bound;
    float zero, plus_inf, minus_inf;
    uint64_t hash[2]; /* plain class, fused class */
} function;

#define FUNCTION(name, ...) { #name, offsetof(probe, name), __VA_ARGS__ }
static const function functions[] = {
    FUNCTION(vexp, tg_exp, ULP, 1.2, 1, INFINITY, 0,
             { UINT64_C(0x378e41829569c424), UINT64_C(0x2fed4604d98e705b) }),
    FUNCTION(vlog, tg_log, ULP, 0.9, -INFINITY, INFINITY, NAN,
             { UINT64_C(0xd33c28105c61fa8e), UINT64_C(0x6760875a6c2f1771) }),
    FUNCTION(vphi, ref_phi, ABSOLUTE, 1.4e-7, 0.5f, 1, 0,
             { UINT64_C(0xaef8512e4d23f6ae), UINT64_C(0x3e67619e96d25508) }),
    FUNCTION(vgelu_erf, ref_gelu, RELATIVE, 4.5e-7, 0, INFINITY, NAN,
             { UINT64_C(0xc48cad533a5ec19f), UINT64_C(0xaa83877747cbe624) }),
    FUNCTION(vgelu_erf_d, ref_gelu_grad, ABSOLUTE, 2.7e-7, 0.5f, 1, 0,
             { UINT64_C(0x58a65f420a8fd3a9), UINT64_C(0xd906dc3fa9280e7d) }),
    FUNCTION(vgelu_tanh, ref_gelu_tanh, RELATIVE, 1.2e-7, 0, INFINITY, NAN,
             { UINT64_C(0x147e6e9b22491e37), UINT64_C(0x0a863d90f51ba370) }),
    FUNCTION(vgelu_tanh_d, ref_gelu_tanh_d, ABSOLUTE, 3e-7, 0.5f, 1, 0,
             { UINT64_C(0xb4db5aa6b8c3d195), UINT64_C(0xa94466abff7e3dab) }),
    FUNCTION(vsilu, ref_silu, RELATIVE, 1.5e-7, 0, INFINITY, NAN,
             { UINT64_C(0x74e2526de0161df1), UINT64_C(0x48a65c12e61756cf) }),
    FUNCTION(vsilu_d, ref_silu_d, ABSOLUTE, 3e-7, 0.5f, 1, 0,
             { UINT64_C(0xdfa734eb3f65d30a), UINT64_C(0x6a4966115cf2fb6f) }),
    FUNCTION(vtanh, tg_tanh, ULP, 3, 0, 1, -1,
             { UINT64_C(0x868c0141b73b197a), UINT64_C(0x40cd538b18ae18ff) }),
};
enum { N_FUNCTIONS = sizeof functions / sizeof functions[0] };

typedef void (*unary)(float *, const float *, size_t);

static unary function_of(const test *t, const function *f) {
    unary u;
    memcpy(&u, (const char *)t->p + f->place, sizeof u);
    return u;
}

/* The distance of two neighbours at |x|, for x within the floats. */
static double spacing(double x) {
    int e;
    frexp(x, &e);
    return tg_ldexp(1, e - 24 < -149 ? -149 : e - 24);
}

/* In units of the bound's kind. What rounds to infinity may come out as infinity or as the largest
 * float, an ulp away. */
static double error_of(const function *f, double want, float have) {
    if (tg_isnan(want) || have != have) return tg_isnan(want) && have != have ? 0 : INFINITY;
    const double largest = (double)FLT_MAX, ulp = spacing(largest);
    const double w = want > largest + ulp ? largest + ulp : want;
    const double h = isinf(have) ? (have > 0 ? largest + ulp : -largest - ulp) : (double)have;
    if (isinf(want) && want < 0) return isinf(have) && have < 0 ? 0 : INFINITY;
    const double distance = tg_fabs(h - w);
    if (f->unit == ULP) return distance / spacing(w > largest ? largest : w);
    return f->unit == RELATIVE ? distance / (1 + tg_fabs(w)) : distance;
}

/* All floats but NaN and infinity, by steps; the reference is computed once for all ISAs. */
typedef struct samples {
    float *x;
    double *want; /* [N_FUNCTIONS * n] */
    size_t n;
} samples;

static samples make_samples(uint32_t every) {
    samples s = { .n = 0 };
    const size_t room = (size_t)(UINT32_MAX / every) + 16 + N_SPECIALS;
    s.x = malloc(room * sizeof *s.x);
    s.want = malloc(room * N_FUNCTIONS * sizeof *s.want);
    if (!s.x || !s.want) exit(1);
    for (uint64_t bits = 0; bits <= UINT32_MAX; bits += every)
        if ((bits >> 23 & 0xff) != 0xff) s.x[s.n++] = tg_float_from_bits((uint32_t)bits);
    while (s.n % 16) s.x[s.n++] = 1;
    for (size_t k = 0; k < N_FUNCTIONS; k++)
        for (size_t i = 0; i < s.n; i++) s.want[k * s.n + i] = functions[k].ref((double)s.x[i]);
    return s;
}

static void test_function(test *t, size_t k, const samples *s) {
    static float y[BLOCK];
    const function *f = &functions[k];
    const unary call = function_of(t, f);
    double worst = 0;
    float at = 0;
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a over words */
    for (size_t begin = 0; begin < s->n; begin += BLOCK) {
        const size_t n = s->n - begin < BLOCK ? s->n - begin : BLOCK;
        call(y, s->x + begin, n);
        for (size_t i = 0; i < n; i++) {
            const double error = error_of(f, s->want[k * s->n + begin + i], y[i]);
            if (error > worst) {
                worst = error;
                at = s->x[begin + i];
            }
            const uint32_t bits = y[i] != y[i] ? 0x7fc00000 : tg_bits_from_float(y[i]);
            hash = (hash ^ bits) * UINT64_C(1099511628211);
        }
    }
    verdict(t, f->name, worst <= f->bound, "at %a: error %.3g, allowed %.3g", (double)at, worst,
            f->bound);
    if (t->every == EVERY)
        verdict(t, f->name, hash == f->hash[t->isa->fused],
                "not the bits of its class: hash %016" PRIx64 ", want %016" PRIx64, hash,
                f->hash[t->isa->fused]);

    const float in[16] = { 0, -0.0f, INFINITY, -INFINITY, NAN };
    const float want[5] = { f->zero, f->zero, f->plus_inf, f->minus_inf, NAN };
    call(y, in, 16);
    for (int i = 0; i < 5; i++) {
        const bool ok = same_float(y[i], want[i]) || fabsf(y[i] - want[i]) <= (float)f->bound;
        verdict(t, f->name, ok, "of %g: want %g, have %g", (double)in[i], (double)want[i],
                (double)y[i]);
    }
}

/* ------------------------------------------------------------------------------------------- main
 */

static bool parse(int argc, char **argv, uint32_t *every, const char **isa) {
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 == argc) return false;
        if (strcmp(argv[i], "--isa") == 0)
            *isa = argv[i + 1];
        else if (strcmp(argv[i], "--every") == 0)
            *every = (uint32_t)strtoul(argv[i + 1], NULL, 10);
        else
            return false;
    }
    return *every > 0;
}

int main(int argc, char **argv) {
    uint32_t every = EVERY;
    const char *only = NULL;
    if (!parse(argc, argv, &every, &only)) {
        fprintf(stderr, "usage: simd_test [--every N] [--isa NAME]\n");
        return 2;
    }
    size_t n;
    const tg_isa_desc *list = tg_isa_list(&n);
    const samples s = make_samples(every);
    int passed = 0, failed = 0;
    for (size_t i = 0; i < n; i++) {
        if (!tg_isa_usable(&list[i]) || (only && strcmp(only, list[i].name) != 0)) continue;
        test t = { .p = probes[i], .isa = &list[i], .every = every };
        test_floats(&t);
        test_integers(&t);
        test_parts(&t);
        test_reductions(&t);
        test_turn(&t);
        test_halves(&t);
        for (size_t k = 0; k < N_FUNCTIONS; k++) test_function(&t, k, &s);
        printf("simd_test %s: %d checks\n", list[i].name, t.passed + t.failed);
        passed += t.passed;
        failed += t.failed;
    }
    free(s.x);
    free(s.want);
    printf("simd_test: %d passed, %d failed\n", passed, failed);
    return failed == 0 && passed > 0 ? 0 : 1;
}
