// SPDX-License-Identifier: Apache-2.0
// route_grad.wgsl - the gradient of route's weights, a row a thread.
@group(0) @binding(2) var<storage, read_write> logits: array<f32>;
@group(0) @binding(3) var<storage, read_write> weights: array<f32>;
@group(0) @binding(4) var<storage, read_write> ids: array<i32>;
@group(0) @binding(5) var<storage, read_write> dweights: array<f32>;
@group(0) @binding(6) var<storage, read_write> dlogits: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let t = group_of(id, count) * 64u + lane;
    if (t >= in_rows(0u)) { return; }
    let cols = op.ins[0].cols;
    let k = op.ins[1].cols;
    var s = 0.0;
    for (var j = 0u; j < k; j++) { s += weights[t * k + j] * dweights[t * k + j]; }
    var most = logits[t * cols];
    for (var e = 1u; e < cols; e++) { most = max(most, logits[t * cols + e]); }
    var sum = 0.0;
    for (var e = 0u; e < cols; e++) { sum += exp(logits[t * cols + e] - most); }
    for (var e = 0u; e < cols; e++) {
        dlogits[t * cols + e] = select(0.0, -s * exp(logits[t * cols + e] - most) / sum, op.i1 != 0);
    }
    for (var j = 0u; j < k; j++) {
        dlogits[t * cols + clamp_id(ids[t * k + j], cols)] = weights[t * k + j] * (dweights[t * k + j] - s);
    }
}
