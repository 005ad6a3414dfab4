// SPDX-License-Identifier: Apache-2.0
// sigmoid_gate_grad.wgsl - dx = dy s, dgate = dy x s (1 - s), by elements.
@group(0) @binding(2) var<storage, read_write> x: array<f32>;
@group(0) @binding(3) var<storage, read_write> gate: array<f32>;
@group(0) @binding(4) var<storage, read_write> dy: array<f32>;
@group(0) @binding(5) var<storage, read_write> dx: array<f32>;
@group(0) @binding(6) var<storage, read_write> dgate: array<f32>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let n = in_rows(0u) * op.ins[0].cols;
    let first = group_of(id, count) * 1024u + lane;
    for (var i = first; i < min(n, first + 1024u); i += 256u) {
        let e = exp1(-clamp(gate[i], -80.0, 80.0));
        let s = 1.0 / (1.0 + e);
        dx[i] = dy[i] * s;
        dgate[i] = dy[i] * x[i] * s * e * s;
    }
}
