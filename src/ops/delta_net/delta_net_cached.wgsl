// SPDX-License-Identifier: Apache-2.0
// delta_net_cached.wgsl - delta_net.wgsl over rows of sessions: what a sequence goes on from is in one
// state, what it leaves goes to another one.
@group(0) @binding(2) var<storage, read_write> z: array<f32>; // or ba
@group(0) @binding(3) var<storage, read_write> at: array<i32>;
@group(0) @binding(4) var<storage, read_write> slots: array<i32>;
@group(0) @binding(5) var<storage, read_write> w: array<f32>; // or heads
@group(0) @binding(6) var<storage, read_write> states: array<f32>;
@group(0) @binding(7) var<storage, read_write> work: array<f32>; // u [T,K]
@group(0) @binding(8) var<storage, read_write> y: array<f32>;

fn conv_sum(r: u32, c: u32) -> f32 {
    let taps = op.ins[4].cols;
    let first = first_of(r, taps);
    var sum = 0.0;
    for (var back = taps; back > 0u; back--) {
        sum = fma(w[c * taps + taps - back], seen(r, first, back - 1u, c), sum);
    }
    return sum;
}
fn note(r: u32, g: u32, scale: f32) {}
fn gate_at(i: u32) -> f32 { return z[i]; }
fn gain_at(p: u32) -> f32 { return w[2u * u32(op.i0) + p]; }

// A workgroup has 16 columns of a head's state, 16 threads each, every 16th row a thread: loads of a
// token wait for memory, not for each other.
var<workgroup> recalls: array<f32, 256>;
var<workgroup> sums: array<f32, 256>;

@compute @workgroup_size(256)
fn scan(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let H = u32(op.i0);
    let P = u32(op.i1);
    let N = u32(op.i3);
    let blocks = (P + 15u) / 16u;
    let group = group_of(id, count);
    if (group >= H * blocks) { return; }
    let h = group / blocks;
    let block = group % blocks * 16u;
    let wide = min(16u, P - block);
    let column = lane % 16u;
    // Threads beyond the last column own no row.
    let first = select(N, lane / 16u, column < wide);
    let inside = (op.ins[4].cols - 1u) * columns() + (h * P + block) * N + column;
    let decay = -exp1(w[H + h]);
    for (var r = 0u; r < in_rows(0u); r++) {
        let begins = r == 0u || at[2u * r] != at[2u * max(r, 1u) - 2u];
        let to = state_of(r, 1u) + inside;
        let from_state = select(to, state_of(r, 0u) + inside, begins);
        let zero = begins && at[2u * r + 1u] == 0;
        let q = r * columns() + query_of(h);
        let k = q + keys_behind();
        let kept = exp1(softplus(z[r * 2u * H + H + h] + w[h]) * decay);
        var part = 0.0;
        for (var n = select(first, N, zero); n < N; n += 16u) {
            part = fma(work[k + n], states[from_state + n * wide], part);
        }
        recalls[lane] = part;
        workgroupBarrier();
        var recalled = 0.0;
        for (var i = column; i < 256u; i += 16u) { recalled += recalls[i]; }
        let v = work[r * columns() + value_of(h) + min(block + column, P - 1u)];
        let more = sigmoid(z[r * 2u * H + h]) * fma(-kept, recalled, v);
        part = 0.0;
        for (var n = first; n < N; n += 16u) {
            var s = work[k + n] * more;
            if (!zero) { s = fma(kept, states[from_state + n * wide], s); }
            states[to + n * wide] = s;
            part = fma(work[q + n], s, part);
        }
        sums[lane] = part;
        workgroupBarrier();
        if (lane < wide) {
            var sum = 0.0;
            for (var i = lane; i < 256u; i += 16u) { sum += sums[i]; }
            y[r * inner() + h * P + block + lane] = sum;
        }
    }
}
