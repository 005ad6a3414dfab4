// SPDX-License-Identifier: Apache-2.0
// cross_entropy_grad.wgsl - dlogits = (exp(logits - lse) - [target]) * dloss * scale / rows.
@group(0) @binding(2) var<storage, read_write> logits: array<f32>;
@group(0) @binding(3) var<storage, read_write> targets: array<i32>;
@group(0) @binding(4) var<storage, read_write> lse: array<f32>;
@group(0) @binding(5) var<storage, read_write> dloss: array<f32>;
@group(0) @binding(6) var<storage, read_write> dlogits: array<f32>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let cols = op.ins[0].cols;
    let n = op.ins[0].rows * cols;
    let factor = dloss[0] * op.f0 / f32(op.ins[0].rows);
    let first = group_of(id, count) * 1024u + lane;
    for (var i = first; i < min(n, first + 1024u); i += 256u) {
        let row = i / cols;
        let hit = clamp_id(targets[row], cols) == i % cols;
        dlogits[i] = (exp1(logits[i] - lse[row]) - select(0.0, 1.0, hit)) * factor;
    }
}
