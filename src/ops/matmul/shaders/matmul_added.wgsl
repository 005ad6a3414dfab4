// SPDX-License-Identifier: Apache-2.0
// matmul_added.wgsl - what follows the sum in products with weights of files.
@group(0) @binding(5) var<storage, read_write> residual: array<f32>;

// What is added to a sum that becomes y[row, j].
fn behind(row: u32, j: u32) -> f32 {
    let out = place_in_y(row, j);
    var all = 0.0;
    if (adds(0u)) { all += y[out]; }
    if (is_here(2u)) { all += bias[j]; }
    if (is_here(3u)) { all += residual[out]; }
    return all;
}

fn finish(row: u32, j: u32, sum: f32) {
    y[place_in_y(row, j)] = sum + behind(row, j);
}
