// SPDX-License-Identifier: Apache-2.0
// rope_grad.wgsl - gradients of rope: dqkv, a head a workgroup, which leaves 1 / rms of its head;
// then those of the norms, in partial sums of 64 rows, and the sum of those. See rope_grad.c.
//
//     scratch [rows][H+K]   1 / rms      [parts][2][D]   sums of dz * h of queries, of keys; where a norm
//                                        is of all heads together, [parts][H+K][D]
@group(0) @binding(2) var<storage, read_write> dy: array<f32>;
@group(0) @binding(3) var<storage, read_write> table: array<f32>;
@group(0) @binding(4) var<storage, read_write> x: array<f32>;
@group(0) @binding(5) var<storage, read_write> q_norm: array<f32>;
@group(0) @binding(6) var<storage, read_write> k_norm: array<f32>;
@group(0) @binding(7) var<storage, read_write> first: array<f32>;
@group(0) @binding(8) var<storage, read_write> second: array<f32>;
@group(0) @binding(9) var<storage, read_write> scratch: array<f32>;

// Element i of a head's dy, turned back.
fn back(at: u32, angle: u32, i: u32) -> f32 {
    let half = op.ins[1].cols / 2u;
    if (i >= 2u * half) { return dy[at + i]; }
    if (i < half) {
        return dy[at + i] * table[angle + i] + dy[at + half + i] * table[angle + half + i];
    }
    let j = i - half;
    return dy[at + i] * table[angle + j] - dy[at + j] * table[angle + i];
}

@compute @workgroup_size(64)
fn by_head(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
           @builtin(local_invocation_index) lane: u32) {
    let d = u32(op.i2);
    let turned = u32(op.i0 + op.i1);
    let heads = turned + u32(op.i1);
    let group = group_of(id, count);
    let row = group / heads;
    let head = group % heads;
    if (row >= op.ins[0].rows) { return; }
    let at = group * d;
    let angle = row % op.ins[1].rows * op.ins[1].cols;
    let is_query = head < u32(op.i0);
    if (head >= turned) {
        for (var i = lane; i < d; i += 64u) { first[at + i] = dy[at + i]; }
        return;
    }
    if ((is_query && !is_here(3u)) || (!is_query && !is_here(4u))) {
        for (var i = lane; i < d; i += 64u) { first[at + i] = back(at, angle, i); }
        return;
    }
    // What the norm is of begins `gain` before this head.
    var gain = 0u;
    var n = d;
    if (op.i3 != 0) {
        gain = select(head - u32(op.i0), head, is_query) * d;
        n = u32(select(op.i1, op.i0, is_query)) * d;
    }
    let start = at - gain;
    var square = 0.0;
    for (var i = start + lane; i < start + n; i += 64u) { square = fma(x[i], x[i], square); }
    let s = 1.0 / sqrt(group_sum(lane, square) / f32(n) + op.f0);
    var sum = 0.0;
    for (var i = lane; i < n; i += 64u) {
        var w = 0.0;
        if (is_query) { w = q_norm[i]; } else { w = k_norm[i]; }
        sum = fma(back(start + i - i % d, angle, i % d) * w, x[start + i] * s, sum);
    }
    let mean = group_sum(lane, sum) / f32(n);
    for (var i = lane; i < d; i += 64u) {
        var w = 0.0;
        if (is_query) { w = q_norm[gain + i]; } else { w = k_norm[gain + i]; }
        first[at + i] = s * (back(at, angle, i) * w - x[at + i] * s * mean);
    }
    if (lane == 0u) { scratch[row * turned + head] = s; }
}

// Elements of the norm of queries, and of both.
fn of_queries() -> u32 { return u32(op.i2) * select(1u, u32(op.i0), op.i3 != 0); }
fn of_both() -> u32 { return of_queries() + u32(op.i2) * select(1u, u32(op.i1), op.i3 != 0); }

@compute @workgroup_size(64)
fn parts(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
         @builtin(local_invocation_index) lane: u32) {
    let d = u32(op.i2);
    let turned = u32(op.i0 + op.i1);
    let heads = turned + u32(op.i1);
    let rows = op.ins[0].rows;
    let across = (of_both() + 63u) / 64u;
    let part = group_of(id, count) / across;
    let c = group_of(id, count) % across * 64u + lane;
    if (part * 64u >= rows || c >= of_both()) { return; }
    let is_key = c >= of_queries();
    let i = c % d;
    var head = 0u;
    var end = u32(op.i0);
    if (is_key) {
        head = end;
        end = turned;
    }
    if (op.i3 != 0) {
        head = c / d;
        end = head + 1u;
    }
    if ((!is_key && !is_here(3u)) || (is_key && !is_here(4u))) { end = head; }
    var sum = 0.0;
    for (var r = part * 64u; r < min(rows, part * 64u + 64u); r++) {
        for (var h = head; h < end; h++) {
            let at = (r * heads + h) * d;
            sum = fma(back(at, r % op.ins[1].rows * op.ins[1].cols, i), x[at + i] * scratch[r * turned + h], sum);
        }
    }
    scratch[rows * turned + part * of_both() + c] = sum;
}

@compute @workgroup_size(64)
fn total(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
         @builtin(local_invocation_index) lane: u32) {
    let d = of_queries();
    let rows = op.ins[0].rows;
    let c = group_of(id, count) * 64u + lane;
    if (c >= of_both()) { return; }
    let start = rows * u32(op.i0 + op.i1);
    var sum = 0.0;
    for (var part = 0u; part * 64u < rows; part++) { sum += scratch[start + part * of_both() + c]; }
    if (c < d) {
        if (adds(1u)) { sum += first[c]; }
        first[c] = sum;
    } else {
        if (adds(2u)) { sum += second[c - d]; }
        second[c - d] = sum;
    }
}
