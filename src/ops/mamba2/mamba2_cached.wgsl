// SPDX-License-Identifier: Apache-2.0
// mamba2_cached.wgsl - mamba2.wgsl over rows of sessions: what a sequence goes on from is in one
// state, what it leaves goes to another one.
@group(0) @binding(2) var<storage, read_write> z: array<f32>;
@group(0) @binding(3) var<storage, read_write> at: array<i32>;
@group(0) @binding(4) var<storage, read_write> slots: array<i32>;
@group(0) @binding(5) var<storage, read_write> first_in: array<f32>; // w, or heads
@group(0) @binding(6) var<storage, read_write> second: array<f32>; // biases, or y
@group(0) @binding(7) var<storage, read_write> states: array<f32>;
@group(0) @binding(8) var<storage, read_write> u: array<f32>; // [T,K]

// Where the state is that the sequence of a row goes on from (0), or leaves (1).
fn state_of(r: u32, which: u32) -> u32 {
    let s = clamp_id(at[2u * r], op.ins[3].rows);
    return clamp_id(slots[2u * s + which], op.ins[1].dim0) * op.ins[1].cols;
}
// The first row of the call that is of the sequence of row r, or one that no tap reaches beyond.
fn first_of(r: u32, taps: u32) -> u32 {
    var first = r;
    while (first > 0u && r - first < taps && at[2u * first - 2u] == at[2u * r]) { first--; }
    return first;
}

// Column c that the convolution sees `back` rows before row r; r may be the row behind the last.
fn seen(r: u32, first: u32, back: u32, c: u32, taps: u32) -> f32 {
    if (back + first <= r) { return z[(r - back) * op.ins[0].cols + inner() + c]; }
    if (at[2u * first + 1u] == 0) { return 0.0; }
    return states[state_of(first, 0u) + (taps - 1u + r - first - back) * columns() + c];
}

@compute @workgroup_size(256)
fn conv(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let cols = columns();
    let taps = op.ins[4].cols;
    let n = in_rows(0u) * cols;
    let first = group_of(id, count) * 1024u + lane;
    for (var i = first; i < min(n, first + 1024u); i += 256u) {
        let r = i / cols;
        let c = i % cols;
        let begin = first_of(r, taps);
        var sum = second[c];
        for (var back = taps; back > 0u; back--) {
            sum = fma(first_in[c * taps + taps - back], seen(r, begin, back - 1u, c, taps), sum);
        }
        u[i] = silu(sum);
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
    let h = group / across;
    if (h >= H || p >= P) { return; }
    let own = h * P + p;
    let from_b = inner() + h / (H / u32(op.i2)) * N;
    let block = p / 16u * 16u;
    let wide = min(16u, P - block);
    let inside = (op.ins[4].cols - 1u) * cols + (h * P + block) * N + p - block;
    let decay = -exp1(first_in[H + h]);
    for (var r = 0u; r < in_rows(0u); r++) {
        let begins = r == 0u || at[2u * r] != at[2u * max(r, 1u) - 2u];
        let to = state_of(r, 1u) + inside;
        let from_state = select(to, state_of(r, 0u) + inside, begins);
        let zero = begins && at[2u * r + 1u] == 0;
        let x = u[r * cols + own];
        let step = softplus(z[r * op.ins[0].cols + inner() + cols + h] + first_in[h]);
        let kept = select(exp1(step * decay), 0.0, zero);
        var sum = first_in[2u * H + h] * x;
        for (var n = 0u; n < N; n++) {
            var s = u[r * cols + from_b + n] * step * x;
            if (!zero) { s = fma(kept, states[from_state + n * wide], s); }
            states[to + n * wide] = s;
            sum = fma(u[r * cols + from_b + u32(op.i2) * N + n], s, sum);
        }
        second[r * inner() + own] = sum * silu(z[r * op.ins[0].cols + own]);
    }
}

// The newest rows that the convolution saw, for each sequence of the call; a thread has a column.
@compute @workgroup_size(64)
fn keep(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let cols = columns();
    let taps = op.ins[4].cols;
    let c = group_of(id, count) * 64u + lane;
    if (c >= cols) { return; }
    var first = 0u;
    for (var end = 1u; end <= in_rows(0u); end++) {
        if (end < in_rows(0u) && at[2u * min(end, in_rows(0u) - 1u)] == at[2u * first]) { continue; }
        let to = state_of(first, 1u) + c;
        for (var j = 0u; j + 1u < taps; j++) {
            states[to + j * cols] = seen(end, first, taps - 1u - j, c, taps);
        }
        first = end;
    }
}
