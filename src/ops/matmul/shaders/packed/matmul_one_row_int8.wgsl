// SPDX-License-Identifier: Apache-2.0
// matmul_one_row_int8.wgsl - f(a) of matmul_one_row.wgsl rounded to 8 bits (lever int8_activations), by
// the rule of packed_x.h: 32 columns share d = max |f(a)| / 127. What a thread has read it rounds,
// once it knows the largest of the eight threads that have the block.
//
// A nibble n becomes the byte 16 (n - 8) by its bits alone, and four of them are one instruction:
//
//     sum of (scale n + offset) f(a)  =  d (scale (S / 16 + 8 ones) + offset ones)
//     S: sum of 16 (n - 8) q,  ones: sum of q,  f(a) = d q; q4x16 has the offset -8 scale

const COLS = 4096u;
var<workgroup> bytes_of_a: array<u32, 1024>; // q, [128 blocks][8]
var<workgroup> scale_of_a: array<f32, 128>; // d
var<workgroup> largest: array<u32, 1024>; // of each four the largest, as bits
var<workgroup> found: array<vec4<f32>, 256>; // four rows of each thread

// By bits, so that a NaN is the largest.
fn most_of(x: vec4<f32>) -> u32 {
    let bits = bitcast<vec4<u32>>(x) & vec4<u32>(0x7fffffffu);
    return max(max(bits.x, bits.y), max(bits.z, bits.w));
}
// Four i of the tile, to nearest even: what is added leaves whole numbers in the lowest bits. A driver
// may fuse the two, and round a tie otherwise than the CPU does.
fn round_four(i: u32, x: vec4<f32>) {
    var most = 0u;
    for (var k = 0u; k < 8u; k++) { most = max(most, largest[i / 8u * 8u + k]); }
    let m = bitcast<f32>(most);
    var inverse = 0.0;
    if (most != 0u) { inverse = 127.0 / m; }
    let q = bitcast<vec4<u32>>(x * inverse + vec4<f32>(0x1.8p+23f)) & vec4<u32>(255u);
    bytes_of_a[i] = q.x | (q.y << 8u) | (q.z << 16u) | (q.w << 24u);
    // Bits of an infinity become those of a NaN.
    if (i % 8u == 0u) {
        scale_of_a[i / 8u] = select(m / 127.0, bitcast<f32>(most | 0x400000u), most >= 0x7f800000u);
    }
}

// f(a) from column `tile` on, nothing behind its end. All is asked for before anything is computed: a
// branch around each would have every thread wait for memory four times.
fn fill_tile(t: u32, tile: u32, depth: u32, lane: u32) {
    let fours = min(COLS, depth - tile) / 4u;
    let last = depth / 4u - 1u;
    let k = tile / 4u + lane;
    let a0 = first_of(t, min(k, last), depth);
    let a1 = first_of(t, min(k + 256u, last), depth);
    let a2 = first_of(t, min(k + 512u, last), depth);
    let a3 = first_of(t, min(k + 768u, last), depth);
    let by0 = second_of(t, min(k, last), depth);
    let by1 = second_of(t, min(k + 256u, last), depth);
    let by2 = second_of(t, min(k + 512u, last), depth);
    let by3 = second_of(t, min(k + 768u, last), depth);
    var x0 = vec4<f32>();
    var x1 = vec4<f32>();
    var x2 = vec4<f32>();
    var x3 = vec4<f32>();
    if (lane < fours) { x0 = both_of(a0, by0); }
    if (lane + 256u < fours) { x1 = both_of(a1, by1); }
    if (lane + 512u < fours) { x2 = both_of(a2, by2); }
    if (lane + 768u < fours) { x3 = both_of(a3, by3); }
    largest[lane] = most_of(x0);
    largest[lane + 256u] = most_of(x1);
    largest[lane + 512u] = most_of(x2);
    largest[lane + 768u] = most_of(x3);
    workgroupBarrier();
    round_four(lane, x0);
    if (fours > 256u) { round_four(lane + 256u, x1); }
    if (fours > 512u) { round_four(lane + 512u, x2); }
    if (fours > 768u) { round_four(lane + 768u, x3); }
}

// Products of four rows with the columns 4 v .. 4 v + 3 of a block, and with those 16 further.
var<private> products: vec4<i32>;
var<private> ones: i32;
fn multiply(x: vec4<u32>, at: u32, has_offset: bool) {
    let low = bytes_of_a[at];
    let high = bytes_of_a[at + 4u];
    let a = ((x << vec4<u32>(4u)) & vec4<u32>(0xf0f0f0f0u)) ^ vec4<u32>(0x80808080u);
    let b = (x & vec4<u32>(0xf0f0f0f0u)) ^ vec4<u32>(0x80808080u);
    products += vec4<i32>(dot4I8Packed(a.x, low), dot4I8Packed(a.y, low),
                          dot4I8Packed(a.z, low), dot4I8Packed(a.w, low));
    products += vec4<i32>(dot4I8Packed(b.x, high), dot4I8Packed(b.y, high),
                          dot4I8Packed(b.z, high), dot4I8Packed(b.w, high));
    if (has_offset) { ones += dot4I8Packed(0x01010101u, low) + dot4I8Packed(0x01010101u, high); }
}

// Scales of four rows. Subnormal ones are exact where op_test says so: a case has some.
fn halves_by_unpacking(x: vec2<u32>) -> vec4<f32> {
    return vec4<f32>(unpack2x16float(x.x), unpack2x16float(x.y));
}

// block: of the tile.
fn take(n: Nibbles, j: u32, block: u32, v: u32, kind: u32) -> vec4<f32> {
    products = vec4<i32>();
    ones = 0;
    let has_offset = kind != Q4X16;
    let at = 8u * block + EACH * v;
    multiply(n.x0, at, has_offset);
    if (EACH > 1u) { multiply(n.x1, at + 1u, has_offset); }
    if (EACH > 2u) { multiply(n.x2, at + 2u, has_offset); }
    if (EACH > 2u) { multiply(n.x3, at + 3u, has_offset); }
    let d = scale_of_a[block];
    let odd = (j & 1u) != 0u && kind != Q4KX16;
    var scale = halves_by_unpacking(select(n.scales.xy, n.scales.zw, odd));
    if (!has_offset) { return scale * vec4<f32>(products) * (d * 0.0625); }
    var offset = halves_by_unpacking(select(n.offsets.xy, n.offsets.zw, odd));
    if (kind == Q4KX16) {
        scale *= bytes_of(n.scales.z);
        offset *= -bytes_of(n.scales.w);
    }
    let sum = f32(ones);
    return d * (scale * (vec4<f32>(products) * 0.0625 + 8.0 * sum) + offset * sum);
}
