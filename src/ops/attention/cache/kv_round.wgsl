// SPDX-License-Identifier: Apache-2.0
// kv_round.wgsl - how rows of a packed cache are rounded: as the CPU does it, in kv_row.h.

// To nearest, ties to even.
fn half_bits(x: f32) -> u32 {
    let sign = (bitcast<u32>(x) >> 16u) & 0x8000u;
    let a = bitcast<u32>(x) & 0x7fffffffu;
    if (a > 0x7f800000u) { return sign | 0x7e00u; }
    if (a >= 0x477ff000u) { return sign | 0x7c00u; }
    if (a < 0x38800000u) { return sign | u32(round(bitcast<f32>(a) * 0x1p24f)); }
    return sign | ((a - 0x38000000u + 0xfffu + ((a >> 13u) & 1u)) >> 13u);
}

// x / y of numbers above 0, rounded to nearest, ties to even: by bits, since a device's own division
// may err by some units in the last place. Beyond the normal numbers it is 0 or infinite.
fn quotient(x: f32, y: f32) -> f32 {
    let divisor = (bitcast<u32>(y) & 0x7fffffu) | 0x800000u;
    var rest = (bitcast<u32>(x) & 0x7fffffu) | 0x800000u;
    var exponent = 127 + i32(bitcast<u32>(x) >> 23u) - i32(bitcast<u32>(y) >> 23u);
    if (rest < divisor) {
        rest *= 2u;
        exponent -= 1;
    }
    var q = 0u;
    for (var bit = 0u; bit < 25u; bit++) {
        q *= 2u;
        if (rest >= divisor) {
            rest -= divisor;
            q += 1u;
        }
        rest *= 2u;
    }
    let up = (q & 1u) & ((q >> 1u) | select(0u, 1u, rest != 0u));
    q = (q >> 1u) - 0x800000u + up;
    if (exponent <= 0) { return 0.0; }
    return bitcast<f32>(min((u32(exponent) << 23u) + q, 0x7f800000u));
}

// The whole number nearest to x, halves upwards: x + 0.5 would be rounded.
fn whole_bits(x: f32) -> u32 {
    let low = floor(x);
    let q = select(low, low + 1.0, x - low >= 0.5);
    return u32(i32(select(0.0, q, abs(q) <= 127.0))) & 255u;
}

// Of a row whose largest absolute value this is: what its numbers are multiplied with, and the bits
// of what whole numbers are; bad: above 0 if one of the numbers is not finite.
fn inverse_of(largest: f32) -> f32 {
    if (largest > 0.0) { return quotient(127.0, largest); }
    return 0.0;
}

fn scale_bits(largest: f32, bad: f32) -> u32 {
    var scale = 0u;
    if (largest > 0.0) { scale = bitcast<u32>(quotient(largest, 127.0)); }
    return select(scale, 0x7fc00000u, bad > 0.0);
}
