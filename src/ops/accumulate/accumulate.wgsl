// SPDX-License-Identifier: Apache-2.0
// accumulate.wgsl - state = x, or state + x in later micro-steps.
@group(0) @binding(2) var<storage, read_write> x: array<f32>;
@group(0) @binding(3) var<storage, read_write> state: array<f32>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let n = op.ins[1].rows * op.ins[1].cols;
    let first = group_of(id, count) * 1024u + lane;
    for (var i = first; i < min(n, first + 1024u); i += 256u) {
        if (rt.accumulate != 0) { state[i] += x[i]; } else { state[i] = x[i]; }
    }
}
