// SPDX-License-Identifier: Apache-2.0
// experts_packed.wgsl - matrices of experts as files have them, 32 columns of a row at a time, in
// fours.
@group(0) @binding(4) var<storage, read_write> w: array<u32>;
@group(0) @binding(5) var<storage, read_write> w1: array<u32>;
var<private> taken: array<vec4<f32>, 8>;

fn word(part: u32, i: u32) -> u32 {
    if (part == 0u) { return w[i]; }
    return w1[i];
}
fn four(v: u32, q: vec4<f32>) { taken[v] = q; }

fn take_weights(part: u32, row: u32, cols: u32, block: u32) {
    take_block(part, row, cols, block);
    for (var v = 0u; v < 8u; v++) {
        taken[v] = fma(taken[v], vec4<f32>(scale[v / 4u]), vec4<f32>(offset[v / 4u]));
    }
}
