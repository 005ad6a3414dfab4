// SPDX-License-Identifier: Apache-2.0
// rope.wgsl - heads turned by their positions, after a norm where there is one: a head a workgroup.
@group(0) @binding(2) var<storage, read_write> qkv: array<f32>;
@group(0) @binding(3) var<storage, read_write> table: array<f32>;
@group(0) @binding(4) var<storage, read_write> q_norm: array<f32>;
@group(0) @binding(5) var<storage, read_write> k_norm: array<f32>;
@group(0) @binding(6) var<storage, read_write> y: array<f32>;

// gain: where those of this head begin.
fn normed(is_query: bool, scale: f32, at: u32, gain: u32, i: u32) -> f32 {
    let x = qkv[at + i];
    if (is_query && is_here(2u)) { return x * scale * q_norm[gain + i]; }
    if (!is_query && is_here(3u)) { return x * scale * k_norm[gain + i]; }
    return x;
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let d = u32(op.i2);
    let heads = u32(op.i0 + 2 * op.i1);
    let group = group_of(id, count);
    let row = group / heads;
    let head = group % heads;
    if (row >= in_rows(0u)) { return; }
    let at = group * d;
    let is_query = head < u32(op.i0);
    // A norm is of this head, or of all heads of its kind together.
    var gain = 0u;
    var n = d;
    if (op.i3 != 0) {
        gain = select(head - u32(op.i0), head, is_query) * d;
        n = u32(select(op.i1, op.i0, is_query)) * d;
    }
    var square = 0.0;
    for (var i = at - gain + lane; i < at - gain + n; i += 64u) { square = fma(qkv[i], qkv[i], square); }
    let scale = 1.0 / sqrt(group_sum(lane, square) / f32(n) + op.f0);
    if (head >= u32(op.i0 + op.i1)) {
        for (var i = lane; i < d; i += 64u) { y[at + i] = qkv[at + i]; }
        return;
    }
    let size = op.ins[1].cols;
    let angle = row % in_rows(1u) * size;
    let half = size / 2u;
    for (var i = size + lane; i < d; i += 64u) { y[at + i] = normed(is_query, scale, at, gain, i); }
    for (var i = lane; i < half; i += 64u) {
        let p = normed(is_query, scale, at, gain, i);
        let q = normed(is_query, scale, at, gain, half + i);
        let c = table[angle + i];
        let s = table[angle + half + i];
        // As attention_step.wgsl has it, to the bit: no compiler may fuse it another way there.
        y[at + i] = fma(p, c, -(q * s));
        y[at + half + i] = fma(q, c, p * s);
    }
}
