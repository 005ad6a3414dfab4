// SPDX-License-Identifier: Apache-2.0
// matmul_one_row_floats.wgsl - f(a) of matmul_one_row.wgsl as floats.
//
// A nibble n becomes the float 1 + n / 16 by its bits alone, so that sums of columns are taken off
// at the end of a block:   sum of n a = 16 (sum of (1 + n / 16) a - sum of a)

const COLS = 3072u;
const STRIDE = 9u; // of a block, in fours: neighbours meet other banks
// f(a), [96 blocks][STRIDE]; behind the last tile what the threads have found, four rows each.
var<workgroup> found: array<vec4<f32>, 864>;

// f(a) from column `tile` on.
fn fill_tile(t: u32, tile: u32, depth: u32, lane: u32) {
    for (var i = lane; i < min(COLS, depth - tile) / 4u; i += 256u) {
        found[i / 8u * STRIDE + i % 8u] = values(t, t + 1u, tile + 4u * i, depth);
    }
}

// 1 + n / 16 of the nibbles whose lowest bits are at 0, 8, 16 and 24.
fn lower(x: u32) -> vec4<f32> {
    let at_19 = vec4<u32>(x << 19u, x << 11u, x << 3u, x >> 5u);
    return bitcast<vec4<f32>>((at_19 & vec4<u32>(0x780000u)) | vec4<u32>(0x3f800000u));
}
fn upper(x: u32) -> vec4<f32> {
    let at_19 = vec4<u32>(x << 15u, x << 7u, x >> 1u, x >> 9u);
    return bitcast<vec4<f32>>((at_19 & vec4<u32>(0x780000u)) | vec4<u32>(0x3f800000u));
}

// Products of four rows with the columns 4 v .. 4 v + 3 of a block, and with those 16 further.
var<private> products: vec4<f32>;
var<private> ones: f32;
fn multiply(x: vec4<u32>, at: u32) {
    let low = found[at];
    let high = found[at + 4u];
    ones += dot(low + high, vec4<f32>(1.0));
    products += vec4<f32>(dot(lower(x.x), low) + dot(upper(x.x), high),
                          dot(lower(x.y), low) + dot(upper(x.y), high),
                          dot(lower(x.z), low) + dot(upper(x.z), high),
                          dot(lower(x.w), low) + dot(upper(x.w), high));
}

// block: of the tile. v: the thread's first columns of it, in fours.
fn take(n: Nibbles, j: u32, block: u32, v: u32, kind: u32) -> vec4<f32> {
    let at = block * STRIDE + EACH * v;
    products = vec4<f32>();
    ones = 0.0;
    multiply(n.x0, at);
    if (EACH > 1u) { multiply(n.x1, at + 1u); }
    if (EACH > 2u) { multiply(n.x2, at + 2u); }
    if (EACH > 2u) { multiply(n.x3, at + 3u); }
    let odd = (j & 1u) != 0u && kind != Q4KX16;
    let halves = select(n.scales.xy, n.scales.zw, odd);
    var scale = halves_of(halves);
    if (kind == Q4X16) { return 16.0 * scale * (products - 1.5 * ones); }
    let more = select(n.offsets.xy, n.offsets.zw, odd);
    var offset = halves_of(more);
    if (kind == Q4KX16) {
        scale *= bytes_of(n.scales.z);
        offset *= -bytes_of(n.scales.w);
    }
    return 16.0 * scale * (products - ones) + offset * ones;
}
