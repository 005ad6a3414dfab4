// SPDX-License-Identifier: Apache-2.0
// layer_norm.wgsl - y = (x - mean) * rstd * w + b, a row a workgroup. The variance is summed in a
// pass of its own, as in the reference.
@group(0) @binding(2) var<storage, read_write> x: array<f32>;
@group(0) @binding(3) var<storage, read_write> w: array<f32>;
@group(0) @binding(4) var<storage, read_write> b: array<f32>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;
@group(0) @binding(6) var<storage, read_write> mean_out: array<f32>;
@group(0) @binding(7) var<storage, read_write> rstd_out: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let row = group_of(id, count);
    let cols = op.ins[0].cols;
    if (row >= in_rows(0u)) { return; }
    let start = row * cols;
    var sum = 0.0;
    for (var c = lane; c < cols; c += 64u) { sum += x[start + c]; }
    let mean = group_sum(lane, sum) / f32(cols);
    var square = 0.0;
    for (var c = lane; c < cols; c += 64u) {
        let d = x[start + c] - mean;
        square = fma(d, d, square);
    }
    let rstd = 1.0 / sqrt(group_sum(lane, square) / f32(cols) + op.f0);
    for (var c = lane; c < cols; c += 64u) {
        y[start + c] = fma((x[start + c] - mean) * rstd, w[c], b[c]);
    }
    if (lane == 0u) {
        mean_out[row] = mean;
        rstd_out[row] = rstd;
    }
}
