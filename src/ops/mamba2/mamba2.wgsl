// SPDX-License-Identifier: Apache-2.0
// mamba2.wgsl - the convolution by elements; then a column of a head's state a thread, row by row.
@group(0) @binding(2) var<storage, read_write> z: array<f32>;
@group(0) @binding(3) var<storage, read_write> w: array<f32>;
@group(0) @binding(4) var<storage, read_write> bias: array<f32>;
@group(0) @binding(5) var<storage, read_write> heads: array<f32>;
@group(0) @binding(6) var<storage, read_write> y: array<f32>;
@group(0) @binding(7) var<storage, read_write> work: array<f32>; // u [rows,K], then states [B,I,N]

@compute @workgroup_size(256)
fn conv(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let cols = columns();
    let taps = op.ins[1].cols;
    let n = in_rows(0u) * cols;
    let first = group_of(id, count) * 1024u + lane;
    for (var i = first; i < min(n, first + 1024u); i += 256u) {
        let r = i / cols;
        let c = i % cols;
        let t = r % op.ins[0].dim1;
        var sum = bias[c];
        for (var back = min(t, taps - 1u) + 1u; back > 0u; back--) {
            let source = (r + 1u - back) * op.ins[0].cols + inner() + c;
            sum = fma(w[c * taps + taps - back], z[source], sum);
        }
        work[i] = silu(sum);
    }
}

@compute @workgroup_size(64)
fn scan(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let H = u32(op.i0);
    let P = u32(op.i1);
    let N = u32(op.i3);
    let cols = columns();
    let across = (P + 63u) / 64u;
    let group = group_of(id, count);
    let p = group % across * 64u + lane;
    let h = group / across % H;
    let b = group / across / H;
    if (b >= op.ins[0].dim0 || p >= P) { return; }
    let own = h * P + p;
    let from_b = inner() + h / (H / u32(op.i2)) * N;
    let state = in_rows(0u) * cols + (b * inner() + own) * N;
    let decay = -exp1(heads[H + h]);
    for (var n = 0u; n < N; n++) { work[state + n] = 0.0; }
    for (var t = 0u; t < op.ins[0].dim1; t++) {
        let r = b * op.ins[0].dim1 + t;
        let u = r * cols;
        let x = work[u + own];
        let step = softplus(z[r * op.ins[0].cols + inner() + cols + h] + heads[h]);
        let kept = exp1(step * decay);
        var sum = heads[2u * H + h] * x;
        for (var n = 0u; n < N; n++) {
            let s = fma(work[u + from_b + n], step * x, kept * work[state + n]);
            work[state + n] = s;
            sum = fma(work[u + from_b + u32(op.i2) * N + n], s, sum);
        }
        y[r * inner() + own] = sum * silu(z[r * op.ins[0].cols + own]);
    }
}
