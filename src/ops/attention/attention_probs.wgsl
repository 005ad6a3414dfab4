// SPDX-License-Identifier: Apache-2.0
// attention_probs.wgsl - the matrix of attention, for people to look at: a workgroup for each row.
@group(0) @binding(2) var<storage, read_write> qkv: array<f32>;
@group(0) @binding(3) var<storage, read_write> p: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let tokens = op.ins[0].dim1;
    let n_q = u32(op.i0);
    let n_kv = u32(op.i1);
    let size = u32(op.i2);
    let row = group_of(id, count); // of [B,H,T]
    if (row >= op.ins[0].dim0 * n_q * tokens) { return; }
    let t = row % tokens;
    let h = row / tokens % n_q;
    let step = op.ins[0].cols;
    let base = row / tokens / n_q * tokens * step;
    let q = base + t * step + h * size;
    let k = base + (n_q + h / (n_q / n_kv)) * size;
    var first = 0u;
    if (op.i3 > 0) { first = t - min(t, u32(op.i3) - 1u); }
    var largest = -0x1p127f;
    for (var j = first + lane; j <= t; j += 64u) {
        var score = 0.0;
        for (var d = 0u; d < size; d++) { score = fma(qkv[q + d], qkv[k + j * step + d], score); }
        score *= op.f0;
        if (op.f2 > 0.0) { score = soft_cap(score, op.f2); }
        p[row * tokens + j] = score;
        largest = max(largest, score);
    }
    let top = group_max(lane, largest);
    var sum = 0.0;
    for (var j = first + lane; j <= t; j += 64u) {
        let e = exp1(p[row * tokens + j] - top);
        p[row * tokens + j] = e;
        sum += e;
    }
    let all = group_sum(lane, sum);
    for (var j = lane; j < tokens; j += 64u) {
        let at = row * tokens + j;
        if (j >= first && j <= t) { p[at] = p[at] / all; } else { p[at] = 0.0; }
    }
}
