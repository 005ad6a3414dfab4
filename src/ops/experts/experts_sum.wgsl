// SPDX-License-Identifier: Apache-2.0
// experts_sum.wgsl - what the experts of a row give, weighted and added up, an element a thread.
@group(0) @binding(2) var<storage, read_write> z: array<f32>;
@group(0) @binding(3) var<storage, read_write> w: array<f32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let cols = op.outs[0].cols;
    let k = op.ins[1].cols;
    let n = out_rows(0u) * cols;
    let first = group_of(id, count) * 1024u + lane;
    for (var i = first; i < min(n, first + 1024u); i += 256u) {
        let t = i / cols;
        var sum = 0.0;
        for (var j = 0u; j < k; j++) {
            sum = fma(w[t * k + j], z[(t * k + j) * cols + i % cols], sum);
        }
        y[i] = sum;
    }
}
