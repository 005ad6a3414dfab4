// SPDX-License-Identifier: Apache-2.0
// delta_net_rows.wgsl - the first pass of delta_net's shaders: u [rows,K], of which queries and keys
// are unit vectors. A workgroup has a head of queries or keys of a row; those behind have values by
// elements. conv_sum(r, c) and work are the shader's own, and note(r, g, scale), which is told
// what a head was multiplied with.

@compute @workgroup_size(64)
fn rows(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let n_heads = 2u * u32(op.i2);
    let N = u32(op.i3);
    let n_rows = in_rows(0u);
    let group = group_of(id, count);
    if (group < n_rows * n_heads) {
        let r = group / n_heads;
        let g = group % n_heads;
        var sum = 0.0;
        for (var n = lane; n < N; n += 64u) {
            let x = silu(conv_sum(r, g * N + n));
            work[r * columns() + g * N + n] = x;
            sum = fma(x, x, sum);
        }
        var scale = inverseSqrt(group_sum(lane, sum) + 1e-6);
        if (g < n_heads / 2u) { scale /= sqrt(f32(N)); }
        for (var n = lane; n < N; n += 64u) { work[r * columns() + g * N + n] *= scale; }
        if (lane == 0u) { note(r, g, scale); }
        return;
    }
    let all = n_rows * inner();
    let first = (group - n_rows * n_heads) * 1024u + lane;
    for (var i = first; i < min(all, first + 1024u); i += 64u) {
        let r = i / inner();
        let c = n_heads * N + i % inner();
        work[r * columns() + c] = silu(conv_sum(r, c));
    }
}
