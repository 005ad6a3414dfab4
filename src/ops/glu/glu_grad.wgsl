// SPDX-License-Identifier: Apache-2.0
// glu_grad.wgsl - gradients of gates and values, of the function that i0 names.
@group(0) @binding(2) var<storage, read_write> x: array<f32>;
@group(0) @binding(3) var<storage, read_write> dy: array<f32>;
@group(0) @binding(4) var<storage, read_write> dx: array<f32>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let m = op.ins[1].cols;
    let n = in_rows(1u) * m;
    let first = group_of(id, count) * 1024u + lane;
    for (var i = first; i < min(n, first + 1024u); i += 256u) {
        let at = i / m * 2u * m + i % m;
        let gate = x[at];
        let value = x[at + m];
        if (op.i0 == 2) {
            dx[at] = dy[i] * value * gelu_tanh_d(gate);
            dx[at + m] = dy[i] * gelu_tanh(gate);
        } else if (op.i0 == 3) {
            dx[at] = dy[i] * value * gelu_erf_d(gate);
            dx[at + m] = dy[i] * gelu_erf(gate);
        } else {
            dx[at] = dy[i] * value * silu_d(gate);
            dx[at + m] = dy[i] * silu(gate);
        }
    }
}
