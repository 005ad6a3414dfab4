/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpu.c - asks the CPU what it has, and whether the system saves it across a context switch.
 *
 * x86: CPUID leaves 1 and 7 name the features; XGETBV register 0 names the parts of the register
 * file that the system restores. A feature without its registers must not be used:
 *
 *     XCR0 bit   1 xmm   2 ymm (upper halves)   5 mask registers   6 zmm 0-15 upper   7 zmm 16-31
 *
 * AArch64 has NEON by definition. Anything else runs the first row, which is the scalar one, and in
 * WebAssembly the only one.
 */
#include "simd/cpu.h"

#include <stdatomic.h>

/* A bit for each row of the table, may its objects run, and for what some kernels ask besides. */
enum { HAS_BF16 = 1 << 16, HAS_VNNI = 1 << 17, ASKED = 1 << 18 };
#define HAS_ISA(id) (1u << (id))

#if defined(__x86_64__)
#include <cpuid.h>

static uint64_t saved_registers(void) {
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

static bool has_all(uint32_t word, uint32_t bits) { return (word & bits) == bits; }

static uint32_t detect(void) {
    uint32_t f = HAS_ISA(TG_ISA_ID_scalar), a, b, c, d, c1, b7, c7, a71 = 0;
    if (!__get_cpuid(1, &a, &b, &c1, &d)) return f;
    if (!has_all(c1, bit_OSXSAVE | bit_AVX)) return f;
    const uint64_t ymm = 0x06, zmm = 0xe6, saved = saved_registers();
    if ((saved & ymm) != ymm || !__get_cpuid_count(7, 0, &a, &b7, &c7, &d)) return f;
    if (a >= 1) __get_cpuid_count(7, 1, &a71, &b, &c, &d);
    const bool avx2 = has_all(c1, bit_FMA | bit_F16C) && has_all(b7, bit_AVX2);
    const bool avx512 = avx2 && (saved & zmm) == zmm &&
                        has_all(b7, bit_AVX512F | bit_AVX512BW | bit_AVX512VL | bit_AVX512DQ);
    if (avx2) f |= HAS_ISA(TG_ISA_ID_avx2);
    if (avx512) f |= HAS_ISA(TG_ISA_ID_avx512);
    if (avx512 && has_all(a71, 1u << 5)) f |= HAS_BF16; /* AVX512_BF16 */
    if (avx512 && has_all(c7, 1u << 11)) f |= HAS_VNNI; /* AVX512_VNNI */
    return f;
}
#elif defined(__aarch64__)
static uint32_t detect(void) { return HAS_ISA(TG_ISA_ID_scalar) | HAS_ISA(TG_ISA_ID_neon); }
#else
static uint32_t detect(void) { return HAS_ISA(0); }
#endif

/* A virtual machine may take 50 us for each CPUID, and a plan asks for each of its steps: so the
 * answer is kept. It is the same for all threads, so it does not matter who writes it. */
static uint32_t features(void) {
    static _Atomic uint32_t kept;
    uint32_t f = atomic_load_explicit(&kept, memory_order_relaxed);
    if (f) return f;
    f = detect() | ASKED;
    atomic_store_explicit(&kept, f, memory_order_relaxed);
    return f;
}

static const tg_isa_desc rows[TG_ISA_COUNT] = {
#define TG_ISA_ROW(name, fused, needs) { #name, TG_ISA_ID_##name, fused, needs },
#include "simd/isa.def"
#undef TG_ISA_ROW
};

const tg_isa_desc *tg_isa_list(size_t *n) {
    *n = TG_ISA_COUNT;
    return rows;
}

bool tg_isa_usable(const tg_isa_desc *isa) { return features() & HAS_ISA(isa->id); }

const tg_isa_desc *tg_isa_best(void) {
    size_t best = TG_ISA_COUNT - 1;
    while (!(features() & HAS_ISA(best))) best--;
    return &rows[best];
}

const tg_isa_desc *tg_isa_find(const char *name) {
    for (size_t i = 0; i < TG_ISA_COUNT; i++)
        if (strcmp(rows[i].name, name) == 0) return &rows[i];
    return NULL;
}

bool tg_cpu_has_bf16(void) { return features() & HAS_BF16; }
bool tg_cpu_has_vnni(void) { return features() & HAS_VNNI; }
