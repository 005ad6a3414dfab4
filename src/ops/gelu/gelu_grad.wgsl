// SPDX-License-Identifier: Apache-2.0
// gelu_grad.wgsl - dx = dy * gelu'(x), of the form that i0 names.
@group(0) @binding(2) var<storage, read_write> x: array<f32>;
@group(0) @binding(3) var<storage, read_write> dy: array<f32>;
@group(0) @binding(4) var<storage, read_write> dx: array<f32>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let n = in_rows(0u) * op.ins[0].cols;
    let first = group_of(id, count) * 1024u + lane;
    for (var i = first; i < min(n, first + 1024u); i += 256u) {
        if (op.i0 == 1) {
            dx[i] = dy[i] * gelu_erf_d(x[i]);
        } else if (op.i0 == 4) {
            let t = tanh1(x[i] / op.f0);
            dx[i] = dy[i] * (1.0 - t * t);
        } else if (op.i0 == 3) {
            dx[i] = dy[i] * 2.0 * max(x[i], 0.0);
        } else {
            dx[i] = dy[i] * gelu_tanh_d(x[i]);
        }
    }
}
