// SPDX-License-Identifier: Apache-2.0
// muon_step.wgsl - weights of a block go along x; nothing is written when stats' ok is 0.
@group(0) @binding(2) var<storage, read_write> w: array<f32>;
@group(0) @binding(3) var<storage, read_write> x: array<f32>;
@group(0) @binding(4) var<storage, read_write> stats: array<f32>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    if (stats[2] == 0.0) { return; }
    let first = group_of(id, count) * 1024u + lane;
    for (var e = first; e < min(block_elems(), first + 1024u); e += 256u) {
        let at = block_at(e);
        w[at] = w[at] - rt.lr * op.f1 * w[at] - rt.lr * op.f0 * x[e];
    }
}
