// SPDX-License-Identifier: Apache-2.0
// matmul_phase_once.wgsl - what all products of matmul_phase.wgsl share.
//
// With the lever int8_activations f(a) is rounded by the rule of packed_x.h, as in
// matmul_one_row_int8.wgsl, which has the arithmetic.

// Turns that are asked for at once; what computes on the CPU has nothing to wait for.
const TURNS_AHEAD = select(4u, 1u, SOFTWARE);

// Of four rows what a thread has of a block of nibbles; scales and offsets of eight rows.
struct FourRows { x: vec4<u32>, scales: vec4<u32>, offsets: vec4<u32> }
struct Turns { a: FourRows, b: FourRows, c: FourRows, d: FourRows }
struct Unit { m: Operand, matrix: u32, eight: u32, begin: u32 }

fn eights(m: Operand) -> u32 { return (m.rows + 7u) / 8u; }

// Bytes as floats, less `zero`: 2^23 and a number below it are a float with these bits.
fn small_numbers(x: u32, zero: f32) -> vec4<f32> {
    let bytes = vec4<u32>(x, x >> 8u, x >> 16u, x >> 24u) & vec4<u32>(255u);
    return bitcast<vec4<f32>>(bytes | vec4<u32>(0x4b000000u)) - vec4<f32>(8388608.0 + zero);
}

fn is_nibbles(kind: u32) -> bool { return kind == Q4X16 || kind == Q4MX16; }

struct Asked { a: vec4<u32>, by: vec4<u32>, gain: vec4<f32> }
var<private> norm_square: f32;

// f(a) in 8 bits, eight words a block, and what a block's are multiplied by.
var<workgroup> rounded: array<u32, max(ROUNDED, 4u) / 4u>;
var<workgroup> rounded_by: array<f32, max(ROUNDED, 32u) / 32u>;

// Four i of n, which the eight threads that have a block call at once; nothing behind n.
fn round_four(i: u32, x: vec4<f32>, lane: u32, n: u32) {
    let bits = bitcast<vec4<u32>>(x) & vec4<u32>(0x7fffffffu);
    let most = eight_most(lane, max(max(bits.x, bits.y), max(bits.z, bits.w)));
    let m = bitcast<f32>(most);
    var inverse = 0.0;
    if (most != 0u) { inverse = 127.0 / m; }
    let q = bitcast<vec4<u32>>(x * inverse + vec4<f32>(0x1.8p+23f)) & vec4<u32>(255u);
    if (i >= n) { return; }
    rounded[i] = q.x | (q.y << 8u) | (q.z << 16u) | (q.w << 24u);
    if (i % 8u == 0u) {
        rounded_by[i / 8u] = select(m / 127.0, bitcast<f32>(most | 0x400000u), most >= 0x7f800000u);
    }
}

// Scales of the four rows of a thread, out of eight. Subnormal ones are exact where op_test says so.
fn of_four(x: vec4<u32>, lane: u32) -> vec4<f32> {
    let mine = select(x.xy, x.zw, (lane & 1u) != 0u);
    return vec4<f32>(unpack2x16float(mine.x), unpack2x16float(mine.y));
}

// Of rounded columns, at word `at` and 16 columns further.
fn take_rounded(f: FourRows, at: u32, block: u32, lane: u32, offsets: bool) -> vec4<f32> {
    let low = rounded[at];
    let high = rounded[at + 4u];
    let a = ((f.x << vec4<u32>(4u)) & vec4<u32>(0xf0f0f0f0u)) ^ vec4<u32>(0x80808080u);
    let b = (f.x & vec4<u32>(0xf0f0f0f0u)) ^ vec4<u32>(0x80808080u);
    let products = vec4<i32>(dot4I8Packed(a.x, low), dot4I8Packed(a.y, low),
                             dot4I8Packed(a.z, low), dot4I8Packed(a.w, low)) +
                   vec4<i32>(dot4I8Packed(b.x, high), dot4I8Packed(b.y, high),
                             dot4I8Packed(b.z, high), dot4I8Packed(b.w, high));
    let d = rounded_by[block];
    if (!offsets) { return of_four(f.scales, lane) * vec4<f32>(products) * (d * 0.0625); }
    let ones = f32(dot4I8Packed(0x01010101u, low) + dot4I8Packed(0x01010101u, high));
    return d * (of_four(f.scales, lane) * (vec4<f32>(products) * 0.0625 + 8.0 * ones) +
                of_four(f.offsets, lane) * ones);
}

fn take_four(f: FourRows, at: u32, lane: u32, offsets: bool) -> vec4<f32> {
    let low = row[at];
    let high = row[at + 4u];
    let zero = select(8.0, 0.0, offsets);
    var products: vec4<f32>;
    products.x = dot(small_numbers(f.x.x & 0x0f0f0f0fu, zero), low) +
                 dot(small_numbers((f.x.x >> 4u) & 0x0f0f0f0fu, zero), high);
    products.y = dot(small_numbers(f.x.y & 0x0f0f0f0fu, zero), low) +
                 dot(small_numbers((f.x.y >> 4u) & 0x0f0f0f0fu, zero), high);
    products.z = dot(small_numbers(f.x.z & 0x0f0f0f0fu, zero), low) +
                 dot(small_numbers((f.x.z >> 4u) & 0x0f0f0f0fu, zero), high);
    products.w = dot(small_numbers(f.x.w & 0x0f0f0f0fu, zero), low) +
                 dot(small_numbers((f.x.w >> 4u) & 0x0f0f0f0fu, zero), high);
    var sum = products * of_four(f.scales, lane);
    if (offsets) {
        let ones = dot(low, vec4<f32>(1.0)) + dot(high, vec4<f32>(1.0));
        sum += ones * of_four(f.offsets, lane);
    }
    return sum;
}

// The largest power of two of threads that each row of so many units can have, up to sixteen.
fn helpers_of(together: u32) -> u32 {
    let most = min(16u, THREADS / 8u / together);
    if (most >= 16u) { return 16u; }
    if (most >= 8u) { return 8u; }
    if (most >= 4u) { return 4u; }
    return select(1u, 2u, most >= 2u);
}
