// SPDX-License-Identifier: Apache-2.0
// short_conv.wgsl - y[t] = c[t] * sum of w[j] u[t - L + 1 + j], u = b * x, an element a thread.
@group(0) @binding(2) var<storage, read_write> z: array<f32>;
@group(0) @binding(3) var<storage, read_write> w: array<f32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let cols = op.outs[0].cols;
    let taps = op.ins[1].cols;
    let n = out_rows(0u) * cols;
    let first = group_of(id, count) * 1024u + lane;
    for (var i = first; i < min(n, first + 1024u); i += 256u) {
        let r = i / cols;
        let c = i % cols;
        let t = r % op.ins[0].dim1;
        var sum = 0.0;
        for (var back = min(t, taps - 1u) + 1u; back > 0u; back--) {
            let source = (r + 1u - back) * 3u * cols + c;
            sum = fma(w[c * taps + taps - back], z[source] * z[source + 2u * cols], sum);
        }
        y[i] = z[(3u * r + 1u) * cols + c] * sum;
    }
}
