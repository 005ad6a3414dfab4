// SPDX-License-Identifier: Apache-2.0
// preference_grad.wgsl - dlogits = +-beta * sigmoid(-margin) * (exp(logits - lse) - [target]) *
// dloss * scale / pairs; 0 in rows without a target.
@group(0) @binding(2) var<storage, read_write> logits: array<f32>;
@group(0) @binding(3) var<storage, read_write> targets: array<i32>;
@group(0) @binding(4) var<storage, read_write> lse: array<f32>;
@group(0) @binding(5) var<storage, read_write> margin: array<f32>;
@group(0) @binding(6) var<storage, read_write> dloss: array<f32>;
@group(0) @binding(7) var<storage, read_write> dlogits: array<f32>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let cols = op.ins[0].cols;
    let n = op.ins[0].rows * cols;
    let all = dloss[0] * op.f0 * op.f1 / f32(op.ins[3].cols);
    let first = group_of(id, count) * 1024u + lane;
    for (var i = first; i < min(n, first + 1024u); i += 256u) {
        let row = i / cols;
        let sequence = row / op.ins[1].cols;
        let pull = all / (1.0 + exp1(min(margin[sequence / 2u], 80.0)));
        let hit = clamp_id(targets[row], cols) == i % cols;
        let value = (exp1(logits[i] - lse[row]) - select(0.0, 1.0, hit)) *
                    select(pull, -pull, sequence % 2u == 1u);
        dlogits[i] = select(value, 0.0, targets[row] < 0);
    }
}
