// SPDX-License-Identifier: Apache-2.0
// layer_norm_grad_w.wgsl - dw and db of layer_norm from the partial sums of layer_norm_grad.wgsl.
@group(0) @binding(2) var<storage, read_write> dw: array<f32>;
@group(0) @binding(3) var<storage, read_write> db: array<f32>;
@group(0) @binding(4) var<storage, read_write> partial: array<f32>;

@compute @workgroup_size(64)
fn total(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
         @builtin(local_invocation_index) lane: u32) {
    let cols = op.ins[0].cols;
    let c = group_of(id, count) * 64u + lane;
    if (c >= cols) { return; }
    var sum_w = 0.0;
    var sum_b = 0.0;
    for (var part = 0u; part * 64u < op.ins[0].rows; part++) {
        sum_w += partial[part * 2u * cols + c];
        sum_b += partial[part * 2u * cols + cols + c];
    }
    if (adds(1u)) { sum_w += dw[c]; }
    if (adds(2u)) { sum_b += db[c]; }
    dw[c] = sum_w;
    db[c] = sum_b;
}
