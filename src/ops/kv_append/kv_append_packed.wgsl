// SPDX-License-Identifier: Apache-2.0
// kv_append_packed.wgsl - keys and values of the call's rows, packed, go into pages of the cache: a
// workgroup for a head of a row. Rounded as the CPU does it, in ops/attention/kv_row.h.
@group(0) @binding(2) var<storage, read_write> qkv: array<f32>;
@group(0) @binding(3) var<storage, read_write> at: array<i32>;
@group(0) @binding(4) var<storage, read_write> pages: array<i32>;
@group(0) @binding(5) var<storage, read_write> cache: array<u32>;

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

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let size = u32(op.i2);
    let c = cache_of(op.outs[0], op.ins[3]);
    let group = group_of(id, count);
    let t = group / c.heads;
    let head = group % c.heads;
    if (t >= in_rows(1u)) { return; }
    let table = clamp_id(at[2u * t], op.ins[3].rows) * c.n_cols;
    let row = cache_row(c, table, head, u32(at[2u * t + 1u]));
    let base = t * op.ins[1].cols + (u32(op.i0) + head) * size;
    if (op.outs[0].cols == size) {
        for (var i = lane; i < size / 2u; i += 64u) {
            let high = half_bits(qkv[base + 2u * i + 1u]) << 16u;
            cache[row * (size / 2u) + i] = high | half_bits(qkv[base + 2u * i]);
        }
        return;
    }
    var largest = 0.0;
    var bad = 0.0;
    for (var i = lane; i < size; i += 64u) {
        let x = qkv[base + i];
        if (is_finite(x)) { largest = max(largest, abs(x)); } else { bad = 1.0; }
    }
    largest = group_max(lane, largest);
    bad = group_max(lane, bad);
    var inverse = 0.0;
    if (largest > 0.0) { inverse = quotient(127.0, largest); }
    let fours = size / 4u;
    let to = row * (fours + 1u);
    for (var i = lane; i < fours; i += 64u) {
        var word = 0u;
        for (var e = 0u; e < 4u; e++) {
            word |= whole_bits(qkv[base + 4u * i + e] * inverse) << (8u * e);
        }
        cache[to + i] = word;
    }
    if (lane == 0u) {
        var scale = 0u;
        if (largest > 0.0) { scale = bitcast<u32>(quotient(largest, 127.0)); }
        cache[to + fours] = select(scale, 0x7fc00000u, bad > 0.0);
    }
}
