// SPDX-License-Identifier: Apache-2.0
// delta_net_grad.wgsl - behind delta_net_rows.wgsl: a sequence at a head a workgroup, forwards and
// back; unit vectors; then the convolution's columns, and the heads' numbers, over all rows. See
// delta_net_grad.simd.h, whose order this is.
@group(0) @binding(2) var<storage, read_write> z: array<f32>;
@group(0) @binding(3) var<storage, read_write> w: array<f32>; // or ba
@group(0) @binding(4) var<storage, read_write> heads: array<f32>; // or dba
@group(0) @binding(5) var<storage, read_write> dy: array<f32>; // or dheads
@group(0) @binding(6) var<storage, read_write> dz: array<f32>;
@group(0) @binding(7) var<storage, read_write> dba: array<f32>; // or dw
@group(0) @binding(8) var<storage, read_write> work: array<f32>;

const STRIDE = 16u;

// work: u [rows,K] | scales [rows,2G] | of each sequence at a head: gradients of queries and keys
// [T,2N] | sums of gains [P] and of the decay | errors [STRIDE,P] | what comes back of values [P] | the
// state's gradient, STRIDE + 1 states, and every STRIDE-th one, [N,P] each.
fn all_rows() -> u32 { return op.ins[0].rows; }
fn length() -> u32 { return op.ins[0].dim1; }
fn pairs() -> u32 { return op.ins[0].dim0 * u32(op.i0); }
fn scales_of(r: u32) -> u32 { return all_rows() * columns() + r * 2u * u32(op.i2); }
fn part_of(bh: u32) -> u32 { return scales_of(all_rows()) + bh * length() * 2u * u32(op.i3); }
fn sums_of(bh: u32) -> u32 { return part_of(pairs()) + bh * u32(op.i1 + 1); }
fn errors_of(bh: u32) -> u32 { return sums_of(pairs()) + bh * (STRIDE + 1u) * u32(op.i1); }
fn states_of(bh: u32) -> u32 {
    let n = STRIDE + 2u + (length() + STRIDE - 1u) / STRIDE;
    return errors_of(pairs()) + bh * n * u32(op.i1 * op.i3);
}

// Column c of row r before SiLU.
fn conv_sum(r: u32, c: u32) -> f32 {
    let taps = op.ins[2].cols;
    var sum = 0.0;
    for (var back = min(r % length(), taps - 1u) + 1u; back > 0u; back--) {
        sum = fma(w[c * taps + taps - back], z[row_of_z(r + 1u - back) + inner() + c], sum);
    }
    return sum;
}
// What delta_net_rows.wgsl says of each head's length; see units.
fn note(r: u32, g: u32, scale: f32) { work[scales_of(r) + g] = scale; }

// A row at a head: places in work and dz, and its numbers.
struct Row { q: u32, k: u32, v: u32, z: u32, own: u32, raw: f32, write: f32, kept: f32 }

fn row_at(r: u32, h: u32, decay: f32) -> Row {
    let H = u32(op.i0);
    let q = r * columns() + query_of(h);
    let raw = w[r * 2u * H + H + h] + heads[h];
    return Row(q, q + keys_behind(), r * columns() + value_of(h), row_of_z(r) + h * u32(op.i1),
               row_of_z(r) + inner() + value_of(h), raw, sigmoid(w[r * 2u * H + h]),
               exp1(softplus(raw) * decay));
}

// Column p of a state goes on: what is read, and the error.
fn advance(k: Row, p: u32, from_state: u32, to: u32) -> vec2<f32> {
    let P = u32(op.i1);
    var recalled = 0.0;
    for (var n = 0u; n < u32(op.i3); n++) {
        recalled = fma(work[k.k + n], work[from_state + n * P + p], recalled);
    }
    let error = fma(-k.kept, recalled, work[k.v + p]);
    var sum = 0.0;
    for (var n = 0u; n < u32(op.i3); n++) {
        let s = fma(work[k.k + n], k.write * error, k.kept * work[from_state + n * P + p]);
        work[to + n * P + p] = s;
        sum = fma(work[k.q + n], s, sum);
    }
    return vec2<f32>(sum, error);
}

// Of row r, whose outputs are where the gates' gradients come: those, and do where values come.
fn back_norm(lane: u32, r: u32, h: u32, k: Row, gains: u32) {
    let P = u32(op.i1);
    let from_dy = r * inner() + h * P;
    var sum = 0.0;
    for (var p = lane; p < P; p += 64u) { sum = fma(dz[k.z + p], dz[k.z + p], sum); }
    let scale = inverseSqrt(group_sum(lane, sum) / f32(P) + op.f0);
    var both = 0.0;
    for (var p = lane; p < P; p += 64u) {
        let o = dz[k.z + p] * scale;
        let gain = heads[2u * u32(op.i0) + p];
        let open = dy[from_dy + p] * silu(z[k.z + p]);
        work[gains + p] = fma(open, o, work[gains + p]);
        both = fma(open * gain, o, both);
    }
    let mean = group_sum(lane, both) / f32(P);
    for (var p = lane; p < P; p += 64u) {
        let o = dz[k.z + p] * scale;
        let gain = heads[2u * u32(op.i0) + p];
        let d = dy[from_dy + p];
        dz[k.own + p] = scale * fma(-mean, o, d * silu(z[k.z + p]) * gain);
        dz[k.z + p] = d * o * gain * silu_d(z[k.z + p]);
    }
}

// A lane has columns of the state, 64 apart. With S the state, beta what is written and a what is
// kept, a row has  e = v - a S^T k,  S' = a S + k (beta e)^T,  out = S'^T q;  so with D the gradient
// of S' and g = D^T k
//
//     dv = beta g     dbeta = g . e     dk = D (beta e) - a S (beta g)     dS = a (D - k (beta g)^T)
//
// and da is the sum of S times what dS has without a.
@compute @workgroup_size(64)
fn back(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let bh = group_of(id, count);
    if (bh >= pairs()) { return; }
    let H = u32(op.i0);
    let P = u32(op.i1);
    let N = u32(op.i3);
    let T = length();
    let h = bh % H;
    let first = bh / H * T;
    let decay = -exp1(heads[H + h]);
    let sums = sums_of(bh);
    let errors = errors_of(bh);
    let backs = errors + STRIDE * P;
    let d = states_of(bh);
    let state = d + P * N;
    let kept = state + (STRIDE + 1u) * P * N;
    var sum_decay = 0.0;
    // Forwards: outputs lie where the gates' gradients come, every STRIDE-th state stays.
    for (var p = lane; p < P; p += 64u) {
        work[sums + p] = 0.0;
        for (var n = 0u; n < N; n++) {
            work[d + n * P + p] = 0.0;
            work[state + n * P + p] = 0.0;
        }
        for (var t = 0u; t < T; t++) {
            let k = row_at(first + t, h, decay);
            if (t % STRIDE == 0u) {
                for (var n = 0u; n < N; n++) {
                    work[kept + t / STRIDE * P * N + n * P + p] = work[state + n * P + p];
                }
            }
            dz[k.z + p] = advance(k, p, state, state).x;
        }
    }
    for (var t = 0u; t < T; t++) { back_norm(lane, first + t, h, row_at(first + t, h, decay), sums); }
    // Back, STRIDE rows at a time, whose states and errors are computed once more.
    for (var end = T; end > 0u; end = (end - 1u) / STRIDE * STRIDE) {
        let begin = (end - 1u) / STRIDE * STRIDE;
        for (var p = lane; p < P; p += 64u) {
            for (var n = 0u; n < N; n++) {
                work[state + n * P + p] = work[kept + begin / STRIDE * P * N + n * P + p];
            }
            for (var t = begin; t < end; t++) {
                let from_state = state + (t - begin) * P * N;
                work[errors + (t - begin) * P + p] =
                    advance(row_at(first + t, h, decay), p, from_state, from_state + P * N).y;
            }
        }
        for (var t = end; t > begin; t--) {
            let r = first + t - 1u;
            let k = row_at(r, h, decay);
            let before = state + (t - 1u - begin) * P * N;
            let error = errors + (t - 1u - begin) * P;
            var of_write = 0.0;
            for (var p = lane; p < P; p += 64u) {
                let out = dz[k.own + p];
                var g = 0.0;
                for (var n = 0u; n < N; n++) {
                    let own = fma(work[k.q + n], out, work[d + n * P + p]);
                    work[d + n * P + p] = own;
                    g = fma(work[k.k + n], own, g);
                }
                work[backs + p] = k.write * g;
                of_write = fma(g, work[error + p], of_write);
            }
            // Queries and keys take sums over all columns, of D as it is now.
            storageBarrier();
            for (var n = lane; n < N; n += 64u) {
                var dq = 0.0;
                var dk = 0.0;
                for (var p = 0u; p < P; p++) {
                    let i = n * P + p;
                    dq = fma(work[before + P * N + i], dz[k.own + p], dq);
                    dk += work[d + i] * k.write * work[error + p] -
                        k.kept * work[before + i] * work[backs + p];
                }
                work[part_of(bh) + (t - 1u) * 2u * N + n] = dq;
                work[part_of(bh) + (t - 1u) * 2u * N + N + n] = dk;
            }
            // D becomes dS, each lane's own columns.
            storageBarrier();
            var of_kept = 0.0;
            for (var p = lane; p < P; p += 64u) {
                for (var n = 0u; n < N; n++) {
                    let i = n * P + p;
                    let rest = fma(-work[k.k + n], work[backs + p], work[d + i]);
                    of_kept = fma(rest, work[before + i], of_kept);
                    work[d + i] = k.kept * rest;
                }
                dz[k.own + p] = work[backs + p];
            }
            let by_write = group_sum(lane, of_write);
            let by_kept = group_sum(lane, of_kept) * k.kept * decay;
            if (lane == 0u) {
                sum_decay = fma(by_kept, softplus(k.raw), sum_decay);
                dba[r * 2u * H + h] = by_write * k.write * (1.0 - k.write);
                dba[r * 2u * H + H + h] = by_kept * sigmoid(k.raw);
            }
        }
    }
    if (lane == 0u) { work[sums + P] = sum_decay; }
}

// A head of queries or keys of a row: what the heads of values give back, out of unit vectors.
@compute @workgroup_size(64)
fn units(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
         @builtin(local_invocation_index) lane: u32) {
    let H = u32(op.i0);
    let N = u32(op.i3);
    let n_heads = 2u * u32(op.i2);
    let group = group_of(id, count);
    if (group >= all_rows() * n_heads) { return; }
    let r = group / n_heads;
    let g = group % n_heads;
    let key = g >= n_heads / 2u;
    let from_u = r * columns() + g * N;
    let to = row_of_z(r) + inner() + g * N;
    var both = 0.0;
    for (var n = lane; n < N; n += 64u) {
        var sum = 0.0;
        for (var h = 0u; h < H; h++) {
            if (query_of(h) != g % (n_heads / 2u) * N) { continue; }
            let bh = r / length() * H + h;
            sum += work[part_of(bh) + r % length() * 2u * N + select(n, N + n, key)];
        }
        dz[to + n] = sum;
        both = fma(work[from_u + n], sum, both);
    }
    both = group_sum(lane, both);
    if (!key) { both *= f32(N); }
    let scale = work[scales_of(r) + g];
    for (var n = lane; n < N; n += 64u) {
        dz[to + n] = scale * fma(-both, work[from_u + n], dz[to + n]);
    }
}

// What the heads' numbers are given: here dba is in `heads`, and dheads in `dy`.
fn number(i: u32) {
    let H = u32(op.i0);
    let P = u32(op.i1);
    var sum = 0.0;
    if (i < H) {
        for (var r = 0u; r < all_rows(); r++) { sum += heads[r * 2u * H + H + i]; }
    } else if (i < 2u * H) {
        for (var b = 0u; b < op.ins[0].dim0; b++) { sum += work[sums_of(b * H + i - H) + P]; }
    } else {
        for (var bh = 0u; bh < pairs(); bh++) { sum += work[sums_of(bh) + i - 2u * H]; }
    }
    if (adds(3u)) { sum += dy[i]; }
    dy[i] = sum;
}

// A thread has a column of the convolution, through all rows, as in mamba2_grad.wgsl: rows rise, and
// none of the second loop reads one before it. The threads behind the columns have the heads' numbers.
// dw is in `dba`.
@compute @workgroup_size(64)
fn cols(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let taps = op.ins[2].cols;
    let c = group_of(id, count) * 64u + lane;
    let behind = (columns() + 63u) / 64u * 64u;
    if (c >= behind && c - behind < 2u * u32(op.i0) + u32(op.i1)) { number(c - behind); }
    if (c >= columns()) { return; }
    var of_taps: array<f32, 8>;
    for (var r = 0u; r < all_rows(); r++) {
        let to = row_of_z(r) + inner() + c;
        let own = dz[to] * silu_d(conv_sum(r, c));
        dz[to] = own;
        for (var back = 0u; back <= min(r % length(), taps - 1u); back++) {
            of_taps[taps - 1u - back] =
                fma(own, z[row_of_z(r - back) + inner() + c], of_taps[taps - 1u - back]);
        }
    }
    for (var r = 0u; r < all_rows(); r++) {
        var sum = 0.0;
        for (var i = 0u; i < min(taps, length() - r % length()); i++) {
            sum = fma(w[c * taps + taps - 1u - i], dz[row_of_z(r + i) + inner() + c], sum);
        }
        dz[row_of_z(r) + inner() + c] = sum;
    }
    for (var i = 0u; i < taps; i++) {
        if (adds(2u)) { of_taps[i] += dba[c * taps + i]; }
        dba[c * taps + i] = of_taps[i];
    }
}
