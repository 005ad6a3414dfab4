// SPDX-License-Identifier: Apache-2.0
// sigmoid_gate.wgsl - y = x / (1 + exp(-gate)), by elements.
@group(0) @binding(2) var<storage, read_write> x: array<f32>;
@group(0) @binding(3) var<storage, read_write> gate: array<f32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let n = out_rows(0u) * op.outs[0].cols;
    let first = group_of(id, count) * 1024u + lane;
    for (var i = first; i < min(n, first + 1024u); i += 256u) {
        y[i] = x[i] / (1.0 + exp1(-clamp(gate[i], -80.0, 80.0)));
    }
}
