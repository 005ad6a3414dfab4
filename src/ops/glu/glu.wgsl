// SPDX-License-Identifier: Apache-2.0
// glu.wgsl - y = act(gates) * values, halves of a row; the function that i0 names.
@group(0) @binding(2) var<storage, read_write> x: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let m = op.outs[0].cols;
    let n = out_rows(0u) * m;
    let first = group_of(id, count) * 1024u + lane;
    for (var i = first; i < min(n, first + 1024u); i += 256u) {
        let at = i / m * 2u * m + i % m;
        var gate = silu(x[at]);
        if (op.i0 == 2) { gate = gelu_tanh(x[at]); }
        if (op.i0 == 3) { gate = gelu_erf(x[at]); }
        y[i] = gate * x[at + m];
    }
}
