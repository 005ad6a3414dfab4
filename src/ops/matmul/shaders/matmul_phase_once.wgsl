// SPDX-License-Identifier: Apache-2.0
// matmul_phase_once.wgsl - what all products of matmul_phase.wgsl share.

// Turns that are asked for at once; what computes on the CPU has nothing to wait for.
const TURNS_AHEAD = select(4u, 1u, SOFTWARE);

// Of four rows what a thread has of a block of nibbles.
struct FourRows { x: vec4<u32>, scales: vec2<u32>, offsets: vec2<u32> }
struct Turns { a: FourRows, b: FourRows, c: FourRows, d: FourRows }
struct Unit { m: Operand, matrix: u32, eight: u32, begin: u32 }

fn eights(m: Operand) -> u32 { return (m.rows + 7u) / 8u; }

// Bytes as floats, less `zero`: 2^23 and a number below it are a float with these bits.
fn small_numbers(x: u32, zero: f32) -> vec4<f32> {
    let bytes = vec4<u32>(x, x >> 8u, x >> 16u, x >> 24u) & vec4<u32>(255u);
    return bitcast<vec4<f32>>(bytes | vec4<u32>(0x4b000000u)) - vec4<f32>(8388608.0 + zero);
}

fn is_nibbles(kind: u32) -> bool { return kind == Q4X16 || kind == Q4MX16; }

// A thread's first blocks in the product at ahead_p of the list, and its first four of the gain.
var<private> ahead_p: u32;
var<private> ahead: Turns;
var<private> ahead_gain: vec4<f32>;

fn take_four(f: FourRows, lane: u32, block: u32, offsets: bool) -> vec4<f32> {
    let at = min(8u * block, ROW / 4u - 8u) + lane / 2u % 4u;
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
    var sum = products * halves_of(f.scales);
    if (offsets) {
        let ones = dot(low, vec4<f32>(1.0)) + dot(high, vec4<f32>(1.0));
        sum += ones * halves_of(f.offsets);
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
