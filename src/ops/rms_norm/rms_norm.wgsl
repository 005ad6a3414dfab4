// SPDX-License-Identifier: Apache-2.0
// rms_norm.wgsl - y = x / rms(x) * w (+ r), a row a workgroup.
@group(0) @binding(2) var<storage, read_write> x: array<f32>;
@group(0) @binding(3) var<storage, read_write> w: array<f32>;
@group(0) @binding(4) var<storage, read_write> residual: array<f32>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let row = group_of(id, count);
    let cols = op.ins[0].cols;
    if (row >= in_rows(0u)) { return; }
    let start = row * cols;
    var square = 0.0;
    for (var c = lane; c < cols; c += 64u) { square = fma(x[start + c], x[start + c], square); }
    let scale = 1.0 / sqrt(group_sum(lane, square) / f32(cols) + op.f0);
    for (var c = lane; c < cols; c += 64u) {
        var v = x[start + c] * scale * w[c];
        if (is_here(2u)) { v += residual[start + c]; }
        y[start + c] = v;
    }
}
