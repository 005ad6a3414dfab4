// SPDX-License-Identifier: Apache-2.0
// cross_entropy_grad.wgsl - dlogits = (exp(logits - lse) - [target]) * dloss * scale / rows with a
// target; 0 in the others.
@group(0) @binding(2) var<storage, read_write> logits: array<f32>;
@group(0) @binding(3) var<storage, read_write> targets: array<i32>;
@group(0) @binding(4) var<storage, read_write> lse: array<f32>;
@group(0) @binding(5) var<storage, read_write> dloss: array<f32>;
@group(0) @binding(6) var<storage, read_write> dlogits: array<f32>;

@group(0) @binding(7) var<storage, read_write> counted: array<f32>;

// How many rows have a target.
@compute @workgroup_size(64)
fn count(@builtin(local_invocation_index) lane: u32) {
    var some = 0.0;
    for (var r = lane; r < op.ins[0].rows; r += 64u) { some += select(0.0, 1.0, targets[r] >= 0); }
    let all = group_sum(lane, some);
    if (lane == 0u) { counted[0] = max(all, 1.0); }
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let cols = op.ins[0].cols;
    let n = op.ins[0].rows * cols;
    let factor = dloss[0] * op.f0 / counted[0];
    let first = group_of(id, count) * 1024u + lane;
    for (var i = first; i < min(n, first + 1024u); i += 256u) {
        let row = i / cols;
        let hit = clamp_id(targets[row], cols) == i % cols;
        let value = (exp1(logits[i] - lse[row]) - select(0.0, 1.0, hit)) * factor;
        dlogits[i] = select(value, 0.0, targets[row] < 0);
    }
}
