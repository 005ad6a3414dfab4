// SPDX-License-Identifier: Apache-2.0
// experts_sum_grad.wgsl - gradients of what is added up and of its weights, a choice a thread.
@group(0) @binding(2) var<storage, read_write> z: array<f32>;
@group(0) @binding(3) var<storage, read_write> w: array<f32>;
@group(0) @binding(4) var<storage, read_write> dy: array<f32>;
@group(0) @binding(5) var<storage, read_write> dz: array<f32>;
@group(0) @binding(6) var<storage, read_write> dw: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let i = group_of(id, count) * 64u + lane;
    let k = op.ins[1].cols;
    let cols = op.ins[2].cols;
    if (i >= in_rows(1u) * k) { return; }
    var sum = 0.0;
    for (var c = 0u; c < cols; c++) {
        let d = dy[i / k * cols + c];
        sum = fma(d, z[i * cols + c], sum);
        dz[i * cols + c] = w[i] * d;
    }
    dw[i] = sum;
}
