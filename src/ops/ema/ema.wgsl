// SPDX-License-Identifier: Apache-2.0
// ema.wgsl - a step of an average, in place; nothing is written when stats' ok is 0.
@group(0) @binding(2) var<storage, read_write> average: array<f32>;
@group(0) @binding(3) var<storage, read_write> w: array<f32>;
@group(0) @binding(4) var<storage, read_write> stats: array<f32>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    if (stats[2] == 0.0) { return; }
    let n = op.ins[0].rows * op.ins[0].cols;
    let r = max(op.f0, 9.0 / (10.0 + f32(rt.step)));
    let first = group_of(id, count) * 1024u + lane;
    for (var e = first; e < min(n, first + 1024u); e += 256u) {
        average[e] = fma(r, w[e] - average[e], average[e]);
    }
}
