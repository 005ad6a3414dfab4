// SPDX-License-Identifier: Apache-2.0
// experts_floats.wgsl - matrices of experts as floats, 32 columns of a row at a time, in fours.
@group(0) @binding(4) var<storage, read_write> w: array<f32>;
@group(0) @binding(5) var<storage, read_write> w1: array<f32>;
var<private> taken: array<vec4<f32>, 8>;

// Zeros beyond the last column.
fn take_weights(part: u32, row: u32, cols: u32, block: u32) {
    for (var c = 0u; c < 32u; c++) {
        let col = 32u * block + c;
        var x = 0.0;
        if (col < cols) {
            if (part == 0u) { x = w[row * cols + col]; } else { x = w1[row * cols + col]; }
        }
        taken[c / 4u][c % 4u] = x;
    }
}
