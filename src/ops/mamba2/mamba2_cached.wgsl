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

fn row_of_z(r: u32) -> u32 { return r * op.ins[0].cols; }

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
            sum = fma(first_in[c * taps + taps - back], seen(r, begin, back - 1u, c), sum);
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
