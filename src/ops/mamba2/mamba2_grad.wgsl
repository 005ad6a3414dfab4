// SPDX-License-Identifier: Apache-2.0
// mamba2_grad.wgsl - the convolution again; a sequence at a head a workgroup, forwards and back; then
// the convolution's columns, and the heads, over all rows. See mamba2.simd.h, whose order this is.
@group(0) @binding(2) var<storage, read_write> z: array<f32>;
@group(0) @binding(3) var<storage, read_write> w: array<f32>; // or dheads
@group(0) @binding(4) var<storage, read_write> bias: array<f32>;
@group(0) @binding(5) var<storage, read_write> heads: array<f32>; // or dw
@group(0) @binding(6) var<storage, read_write> dy: array<f32>; // or dbias
@group(0) @binding(7) var<storage, read_write> dz: array<f32>;
@group(0) @binding(8) var<storage, read_write> work: array<f32>;

const STRIDE = 16u;

// work: u [rows,K] | of each sequence at a head: gradients of B and C [T,2N] | two sums | the
// state's gradient, STRIDE + 1 states, and every STRIDE-th one, [N,P] each.
fn all_rows() -> u32 { return op.ins[0].rows; }
fn length() -> u32 { return op.ins[0].dim1; }
fn pairs() -> u32 { return op.ins[0].dim0 * u32(op.i0); }
fn part_of(bh: u32) -> u32 { return all_rows() * columns() + bh * length() * 2u * u32(op.i3); }
fn sums_of(bh: u32) -> u32 { return part_of(pairs()) + 2u * bh; }
fn states_of(bh: u32) -> u32 {
    let n = STRIDE + 2u + (length() + STRIDE - 1u) / STRIDE;
    return sums_of(pairs()) + bh * n * u32(op.i1 * op.i3);
}

// Column c of row r before SiLU.
fn conv_sum(r: u32, c: u32, taps: u32) -> f32 {
    var sum = bias[c];
    for (var back = min(r % length(), taps - 1u) + 1u; back > 0u; back--) {
        let source = (r + 1u - back) * op.ins[0].cols + inner() + c;
        sum = fma(w[c * taps + taps - back], z[source], sum);
    }
    return sum;
}

@compute @workgroup_size(256)
fn conv(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let n = all_rows() * columns();
    let first = group_of(id, count) * 1024u + lane;
    for (var i = first; i < min(n, first + 1024u); i += 256u) {
        work[i] = silu(conv_sum(i / columns(), i % columns(), op.ins[1].cols));
    }
}

// A row at a head: where its x, B, C, gate and output lie; the step before and behind softplus, and
// what the state keeps of itself.
struct Row { u: u32, b: u32, c: u32, gate: u32, own: u32, step: f32, raw: f32, kept: f32 }

fn row_of(r: u32, h: u32, decay: f32) -> Row {
    let u = r * columns();
    let b = u + inner() + h / u32(op.i0 / op.i2) * u32(op.i3);
    let raw = z[r * op.ins[0].cols + inner() + columns() + h] + heads[h];
    let step = softplus(raw);
    return Row(u + h * u32(op.i1), b, b + u32(op.i2 * op.i3), r * op.ins[0].cols + h * u32(op.i1),
               r * inner() + h * u32(op.i1), step, raw, exp1(step * decay));
}
// Column p of a state goes on; what it gives.
fn advance(k: Row, p: u32, from_state: u32, to: u32, skip: f32) -> f32 {
    let x = work[k.u + p];
    var sum = skip * x;
    for (var n = 0u; n < u32(op.i3); n++) {
        let at = n * u32(op.i1) + p;
        let s = fma(work[k.b + n], k.step * x, k.kept * work[from_state + at]);
        work[to + at] = s;
        sum = fma(work[k.c + n], s, sum);
    }
    return sum;
}
fn gated(k: Row, p: u32) -> f32 { return dy[k.own + p] * silu(z[k.gate + p]); }

var<workgroup> of_step: array<f32, 64>;
var<workgroup> of_kept: array<f32, 64>;
var<workgroup> of_skip: array<f32, 64>;

// A lane has columns of the state, 64 apart, so that what goes along a column waits for nobody. B and
// C take sums over all columns, and the head's numbers over everything: those wait, twice a row.
@compute @workgroup_size(64)
fn back(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let bh = group_of(id, count);
    if (bh >= pairs()) { return; }
    let P = u32(op.i1);
    let N = u32(op.i3);
    let T = length();
    let h = bh % u32(op.i0);
    let first = bh / u32(op.i0) * T;
    let decay = -exp1(heads[u32(op.i0) + h]);
    let skip = heads[2u * u32(op.i0) + h];
    let d = states_of(bh);
    let state = d + P * N;
    let kept = state + (STRIDE + 1u) * P * N;
    var sum_decay = 0.0;
    var sum_skip = 0.0;
    // Forwards. Gates need the outputs alone; of the states every STRIDE-th one stays.
    for (var p = lane; p < P; p += 64u) {
        for (var n = 0u; n < N; n++) {
            work[d + n * P + p] = 0.0;
            work[state + n * P + p] = 0.0;
        }
        for (var t = 0u; t < T; t++) {
            let k = row_of(first + t, h, decay);
            if (t % STRIDE == 0u) {
                for (var n = 0u; n < N; n++) {
                    work[kept + t / STRIDE * P * N + n * P + p] = work[state + n * P + p];
                }
            }
            let y = advance(k, p, state, state, skip);
            dz[k.gate + p] = dy[k.own + p] * y * silu_d(z[k.gate + p]);
        }
    }
    // Back, STRIDE rows at a time, whose states are computed once more: T of them would be far too
    // many, and none can be had from the one behind it, since what a state keeps may be nothing.
    for (var end = T; end > 0u; end = (end - 1u) / STRIDE * STRIDE) {
        let begin = (end - 1u) / STRIDE * STRIDE;
        for (var p = lane; p < P; p += 64u) {
            for (var n = 0u; n < N; n++) {
                work[state + n * P + p] = work[kept + begin / STRIDE * P * N + n * P + p];
            }
            for (var t = begin; t < end; t++) {
                let from_state = state + (t - begin) * P * N;
                _ = advance(row_of(first + t, h, decay), p, from_state,
                                     from_state + P * N, skip);
            }
        }
        for (var t = end; t > begin; t--) {
            let r = first + t - 1u;
            let k = row_of(r, h, decay);
            let before = state + (t - 1u - begin) * P * N;
            // d becomes the gradient of the state behind this row: what the row behind it gave
            // back, and what the output gives.
            var step = 0.0;
            var q = 0.0;
            var x_g = 0.0;
            for (var p = lane; p < P; p += 64u) {
                let g = gated(k, p);
                var dx = 0.0;
                for (var n = 0u; n < N; n++) {
                    let at = n * P + p;
                    let own = fma(work[k.c + n], g, work[d + at]);
                    work[d + at] = own;
                    dx = fma(work[k.b + n], own, dx);
                    q = fma(own, work[before + at], q);
                }
                step = fma(work[k.u + p], dx, step);
                x_g = fma(g, work[k.u + p], x_g);
                dz[r * op.ins[0].cols + inner() + h * P + p] = fma(k.step, dx, skip * g);
            }
            of_step[lane] = step;
            of_kept[lane] = q;
            of_skip[lane] = x_g;
            storageBarrier();
            workgroupBarrier();
            for (var n = lane; n < N; n += 64u) {
                var db = 0.0;
                var dc = 0.0;
                for (var p = 0u; p < P; p++) {
                    db = fma(work[d + n * P + p], k.step * work[k.u + p], db);
                    dc = fma(work[before + P * N + n * P + p], gated(k, p), dc);
                }
                work[part_of(bh) + (t - 1u) * 2u * N + n] = db;
                work[part_of(bh) + (t - 1u) * 2u * N + N + n] = dc;
            }
            // In the order of lanes, so that no subgroup's size shows in the bits. The decay is
            // -exp of its number, whose slope is the decay itself.
            if (lane == 0u) {
                var all = vec3<f32>(0.0);
                for (var i = 0u; i < 64u; i++) {
                    all += vec3<f32>(of_step[i], of_kept[i], of_skip[i]);
                }
                let by_kept = all.y * k.kept * decay;
                sum_decay = fma(by_kept, k.step, sum_decay);
                sum_skip += all.z;
                dz[r * op.ins[0].cols + inner() + columns() + h] =
                    (all.x + by_kept) / (1.0 + exp1(-clamp(k.raw, -80.0, 80.0)));
            }
            storageBarrier();
            workgroupBarrier();
            // To the state in front of the row.
            for (var p = lane; p < P; p += 64u) {
                for (var n = 0u; n < N; n++) { work[d + n * P + p] *= k.kept; }
            }
        }
    }
    if (lane == 0u) {
        work[sums_of(bh)] = sum_decay;
        work[sums_of(bh) + 1u] = sum_skip;
    }
}

// What the heads of its group give back to column c of B and C; of x, what is there.
fn given(r: u32, c: u32) -> f32 {
    if (c < inner()) { return dz[r * op.ins[0].cols + inner() + c]; }
    let N = u32(op.i3);
    let G = u32(op.i2);
    let n = (c - inner()) % (G * N);
    let which = (c - inner()) / (G * N) * N + n % N;
    let each = u32(op.i0) / G;
    var sum = 0.0;
    for (var i = 0u; i < each; i++) {
        let bh = r / length() * u32(op.i0) + n / N * each + i;
        sum += work[part_of(bh) + r % length() * 2u * N + which];
    }
    return sum;
}

// A thread has a column of the convolution, through all rows: first the gradient before SiLU in
// place of the one behind it, then that of z, for which a row needs itself and up to L - 1 rows behind
// it. Rows rise, and none of the second loop reads one before it, so dz serves for both.
@compute @workgroup_size(64)
fn cols(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let taps = op.ins[1].cols;
    let c = group_of(id, count) * 64u + lane;
    if (c >= columns()) { return; }
    var of_bias = 0.0;
    var of_taps: array<f32, 8>;
    for (var r = 0u; r < all_rows(); r++) {
        let own = given(r, c) * silu_d(conv_sum(r, c, taps));
        dz[r * op.ins[0].cols + inner() + c] = own;
        of_bias += own;
        for (var back = 0u; back <= min(r % length(), taps - 1u); back++) {
            of_taps[taps - 1u - back] =
                fma(own, z[(r - back) * op.ins[0].cols + inner() + c], of_taps[taps - 1u - back]);
        }
    }
    for (var r = 0u; r < all_rows(); r++) {
        var sum = 0.0;
        for (var i = 0u; i < min(taps, length() - r % length()); i++) {
            sum = fma(w[c * taps + taps - 1u - i], dz[(r + i) * op.ins[0].cols + inner() + c], sum);
        }
        dz[r * op.ins[0].cols + inner() + c] = sum;
    }
    for (var i = 0u; i < taps; i++) {
        if (adds(1u)) { of_taps[i] += heads[c * taps + i]; }
        heads[c * taps + i] = of_taps[i];
    }
    if (adds(2u)) { of_bias += dy[c]; }
    dy[c] = of_bias;
}

// The three numbers of a head: its bias of steps, decay and skip.
@compute @workgroup_size(64)
fn numbers(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
           @builtin(local_invocation_index) lane: u32) {
    let H = u32(op.i0);
    let h = group_of(id, count) * 64u + lane;
    if (h >= H) { return; }
    var sum = vec3<f32>(0.0);
    for (var r = 0u; r < all_rows(); r++) {
        sum.x += dz[r * op.ins[0].cols + inner() + columns() + h];
    }
    for (var b = 0u; b < op.ins[0].dim0; b++) {
        sum.y += work[sums_of(b * H + h)];
        sum.z += work[sums_of(b * H + h) + 1u];
    }
    if (adds(3u)) { sum += vec3<f32>(w[h], w[H + h], w[2u * H + h]); }
    w[h] = sum.x;
    w[H + h] = sum.y;
    w[2u * H + h] = sum.z;
}
