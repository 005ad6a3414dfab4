// SPDX-License-Identifier: Apache-2.0
// short_conv_cached.wgsl - short_conv.wgsl over rows of sessions: what lies before the call's rows
// is in the cache, to which each thread adds its own.
@group(0) @binding(2) var<storage, read_write> z: array<f32>;
@group(0) @binding(3) var<storage, read_write> at: array<i32>;
@group(0) @binding(4) var<storage, read_write> pages: array<i32>;
@group(0) @binding(5) var<storage, read_write> w: array<f32>;
@group(0) @binding(6) var<storage, read_write> y: array<f32>;
@group(0) @binding(7) var<storage, read_write> cache: array<f32>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let cols = op.outs[0].cols;
    let taps = op.ins[4].cols;
    let k = cache_of(op.outs[1], op.ins[3]);
    let n = out_rows(0u) * cols;
    let first = group_of(id, count) * 1024u + lane;
    for (var i = first; i < min(n, first + 1024u); i += 256u) {
        let r = i / cols;
        let c = i % cols;
        let sequence = at[2u * r];
        let position = u32(at[2u * r + 1u]);
        let table = clamp_id(sequence, op.ins[3].rows) * k.n_cols;
        var sum = 0.0;
        for (var back = min(position, taps - 1u); back > 0u; back--) {
            var u = 0.0;
            if (back <= r && at[2u * (r - min(r, back))] == sequence) {
                let source = (r - back) * 3u * cols + c;
                u = z[source] * z[source + 2u * cols];
            } else {
                u = cache[cache_row(k, table, 0u, position - back) * cols + c];
            }
            sum = fma(w[c * taps + taps - 1u - back], u, sum);
        }
        let own = z[3u * r * cols + c] * z[(3u * r + 2u) * cols + c];
        cache[cache_row(k, table, 0u, position) * cols + c] = own;
        y[i] = z[(3u * r + 1u) * cols + c] * fma(w[c * taps + taps - 1u], own, sum);
    }
}
