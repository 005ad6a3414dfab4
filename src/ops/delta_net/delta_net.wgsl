// SPDX-License-Identifier: Apache-2.0
// delta_net.wgsl - a column of a head's state a thread, row by row, behind delta_net_rows.wgsl and
// before delta_net_gate.wgsl.
@group(0) @binding(2) var<storage, read_write> z: array<f32>; // or ba
@group(0) @binding(3) var<storage, read_write> w: array<f32>; // or heads
@group(0) @binding(4) var<storage, read_write> y: array<f32>;
@group(0) @binding(5) var<storage, read_write> work: array<f32>; // u [rows,K], then states [B,H,N,P]

fn conv_sum(r: u32, c: u32) -> f32 {
    let taps = op.ins[2].cols;
    var sum = 0.0;
    for (var back = min(r % op.ins[0].dim1, taps - 1u) + 1u; back > 0u; back--) {
        sum = fma(w[c * taps + taps - back], z[row_of_z(r + 1u - back) + inner() + c], sum);
    }
    return sum;
}
fn note(r: u32, g: u32, scale: f32) {}
fn gate_at(i: u32) -> f32 { return z[i]; }
fn gain_at(p: u32) -> f32 { return w[2u * u32(op.i0) + p]; }

@compute @workgroup_size(64)
fn scan(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let H = u32(op.i0);
    let P = u32(op.i1);
    let N = u32(op.i3);
    let across = (P + 63u) / 64u;
    let group = group_of(id, count);
    let p = group % across * 64u + lane;
    let h = group / across % H;
    let b = group / across / H;
    if (b >= op.ins[0].dim0 || p >= P) { return; }
    let state = in_rows(0u) * columns() + (b * H + h) * N * P + p;
    let decay = -exp1(w[H + h]);
    for (var n = 0u; n < N; n++) { work[state + n * P] = 0.0; }
    for (var t = 0u; t < op.ins[0].dim1; t++) {
        let r = b * op.ins[0].dim1 + t;
        let q = r * columns() + query_of(h);
        let k = q + keys_behind();
        let kept = exp1(softplus(z[r * 2u * H + H + h] + w[h]) * decay);
        var recalled = 0.0;
        for (var n = 0u; n < N; n++) { recalled = fma(work[k + n], work[state + n * P], recalled); }
        let v = work[r * columns() + value_of(h) + p];
        let more = sigmoid(z[r * 2u * H + h]) * fma(-kept, recalled, v);
        var sum = 0.0;
        for (var n = 0u; n < N; n++) {
            let s = fma(work[k + n], more, kept * work[state + n * P]);
            work[state + n * P] = s;
            sum = fma(work[q + n], s, sum);
        }
        y[r * inner() + h * P + p] = sum;
    }
}
