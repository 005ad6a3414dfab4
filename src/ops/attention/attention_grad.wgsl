// SPDX-License-Identifier: Apache-2.0
// attention_grad.wgsl - the gradient of attention: for all rows delta = do . o, then dk and dv of 32
// keys by a workgroup each, and in the same dispatch dq of 32 queries. p comes from the saved lse;
// nothing is T x T.
@group(0) @binding(2) var<storage, read_write> qkv: array<Four>;
@group(0) @binding(3) var<storage, read_write> o: array<Four>;
@group(0) @binding(4) var<storage, read_write> lse: array<f32>;
@group(0) @binding(5) var<storage, read_write> dout: array<Four>;
@group(0) @binding(6) var<storage, read_write> dqkv: array<f32>;
@group(0) @binding(7) var<storage, read_write> delta: array<f32>;

fn row_places(s: Heads, r: Rows, t: vec4<u32>) -> vec4<u32> { return vec4<u32>(r.at) + t * r.step; }
fn take(which: u32, at: u32) -> vec4<f32> {
    if (which == 0u) { return as_vec4(qkv[at]); }
    if (which == 1u) { return as_vec4(dout[at]); }
    return as_vec4(o[at]);
}

// One query head of one sequence.
struct Place { q: Rows, k: Rows, v: Rows, dout: Rows, lse: u32 }

fn head_of(s: Heads, b: u32, h: u32) -> Place {
    let tokens = op.ins[0].dim1;
    let row = b * tokens * s.row;
    let kv = h / s.group;
    return Place(Rows(0u, row + h * s.size, s.row, tokens),
                Rows(0u, row + (s.n_q + kv) * s.size, s.row, tokens),
                Rows(0u, row + (s.n_q + s.n_kv + kv) * s.size, s.row, tokens),
                Rows(1u, b * tokens * s.q_row + h * s.size, s.q_row, tokens),
                (b * s.n_q + h) * tokens);
}

@compute @workgroup_size(256)
fn deltas(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
          @builtin(local_invocation_index) tid: u32) {
    let s = heads();
    let i = group_of(id, count) * 256u + tid; // of [B,T,H], as the rows of o lie
    if (i >= op.ins[1].rows * s.n_q) { return; }
    var sum = vec4<f32>();
    for (var d = 0u; d < s.size; d += 4u) {
        sum = fma(four(s, 1u, i * s.size, d), four(s, 2u, i * s.size, d), sum);
    }
    let tokens = op.ins[0].dim1;
    let h = i % s.n_q;
    let t = i / s.n_q % tokens;
    delta[(i / s.n_q / tokens * s.n_q + h) * tokens + t] = (sum.x + sum.y) + (sum.z + sum.w);
}

// ds = p (dp - delta), dp being what dropout has left of it. Of what is masked, p is 0.
fn slopes(p: Cell, dp: Cell, less: Cell) -> Cell {
    return Cell(p.r0 * (dp.r0 - less.r0), p.r1 * (dp.r1 - less.r1), p.r2 * (dp.r2 - less.r2),
                p.r3 * (dp.r3 - less.r3));
}

// Times the slope of a cap at capped scores; without one, as they are: CAPS is known when the shader
// is compiled, so that no register keeps scores for it.
fn bent4(ds: vec4<f32>, score: vec4<f32>) -> vec4<f32> {
    let t = op.f0 / op.f2 * score;
    return ds * (vec4<f32>(1.0) - t * t);
}
fn bent(ds: Cell, score: Cell) -> Cell {
    if (!CAPS) { return ds; }
    return Cell(bent4(ds.r0, score.r0), bent4(ds.r1, score.r1), bent4(ds.r2, score.r2),
                bent4(ds.r3, score.r3));
}

// What four queries from t on have.
fn lse_of(h: Place, t: u32) -> vec4<f32> {
    let at = vec4<u32>(h.lse) + min(four_from(t), vec4<u32>(h.q.n - 1u));
    return vec4<f32>(lse[at.x], lse[at.y], lse[at.z], lse[at.w]);
}
fn delta_of(h: Place, t: u32) -> vec4<f32> {
    let at = vec4<u32>(h.lse) + min(four_from(t), vec4<u32>(h.q.n - 1u));
    return vec4<f32>(delta[at.x], delta[at.y], delta[at.z], delta[at.w]);
}
fn down(columns: vec4<f32>) -> Cell { return Cell(columns, columns, columns, columns); }

// Queries below this one see a key, if they do not come before it.
fn end_of(key: u32) -> u32 {
    return select(op.ins[0].dim1, min(op.ins[0].dim1, key + u32(op.i3)), op.i3 > 0);
}
// Scores of a key with four queries from t on.
fn seen_by(score: vec4<f32>, key: u32, t: u32) -> vec4<f32> {
    let seen = (four_from(t) >= vec4<u32>(key)) & (four_from(t) < vec4<u32>(end_of(key)));
    return select(vec4<f32>(LOWEST), score, seen);
}
fn cell_seen_by(score: Cell, key: u32, t: u32) -> Cell {
    return Cell(seen_by(score.r0, key, t), seen_by(score.r1, key + 1u, t),
                seen_by(score.r2, key + 2u, t), seen_by(score.r3, key + 3u, t));
}

// Rows t .. by columns d .. of dqkv.
fn write_row(s: Heads, r: Rows, t: u32, d: u32, v: vec4<f32>) {
    for (var e = 0u; e < 4u; e++) {
        if (t < r.n && d + e < s.size) { dqkv[r.at + t * r.step + d + e] = v[e]; }
    }
}
fn write_cell(s: Heads, r: Rows, t: u32, d: u32, scale: f32, c: Cell) {
    write_row(s, r, t, d, scale * c.r0);
    write_row(s, r, t + 1u, d, scale * c.r1);
    write_row(s, r, t + 2u, d, scale * c.r2);
    write_row(s, r, t + 3u, d, scale * c.r3);
}
fn write_pair(s: Heads, r: Rows, t: u32, d: u32, scale: f32, p: Pair) {
    write_cell(s, r, t, d, scale, p.a);
    write_cell(s, r, t, d + 32u, scale, p.b);
}

fn keys(s: Heads, b: u32, kv: u32, key: u32, tid: u32) {
    let tokens = op.ins[0].dim1;
    let y = 4u * thread_y(tid);
    let x = 4u * thread_x(tid);
    var dk: array<Pair, PAIRS>;
    var dv: array<Pair, PAIRS>;
    for (var g = 0u; g < s.group; g++) {
        let h = head_of(s, b, kv * s.group + g);
        for (var t = key; t < end_of(key + 31u); t += 64u) {
            var p = scores(s, h.k, key, h.q, t, tid);
            if (CAPS) { p = capped(p); }
            let score = p;
            if (t < key + 32u || t + 64u > tokens || op.i3 > 0) {
                p = Pair(cell_seen_by(p.a, key + y, t + x),
                         cell_seen_by(p.b, key + y, t + 32u + x));
            }
            p = Pair(weights(p.a, down(lse_of(h, t + x))),
                     weights(p.b, down(lse_of(h, t + 32u + x))));
            let kept = kept_of(h, t + x, key + y, true);
            add_rows(&dv, dropped(p, kept, true), s, h.dout, t, tokens, tid);
            let dp = dropped(scores(s, h.v, key, h.dout, t, tid), kept, true);
            let ds = Pair(bent(slopes(p.a, dp.a, down(delta_of(h, t + x))), score.a),
                          bent(slopes(p.b, dp.b, down(delta_of(h, t + 32u + x))), score.b));
            add_rows(&dk, ds, s, h.q, t, tokens, tid);
        }
    }
    let h = head_of(s, b, kv * s.group);
    for (var i = 0u; i < PAIRS; i++) {
        write_pair(s, h.k, key + y, 64u * i + x, op.f0, dk[i]);
        write_pair(s, h.v, key + y, 64u * i + x, 1.0, dv[i]);
    }
}

fn queries(s: Heads, h: Place, first: u32, tid: u32) {
    let y = first + 4u * thread_y(tid);
    let x = 4u * thread_x(tid);
    let end = min(first + 32u, h.q.n);
    let row_lse = along(lse_of(h, y));
    let row_delta = along(delta_of(h, y));
    var dq: array<Pair, PAIRS>;
    for (var key = begin_of(first + 1u) / 64u * 64u; key < end; key += 64u) {
        var p = scores(s, h.q, first, h.k, key, tid);
        if (CAPS) { p = capped(p); }
        let score = p;
        if (key + 63u > first || op.i3 > 0) {
            p = Pair(masked_cell(p.a, key + x, y + 1u), masked_cell(p.b, key + 32u + x, y + 1u));
        }
        p = Pair(weights(p.a, row_lse), weights(p.b, row_lse));
        let dp = dropped(scores(s, h.dout, first, h.v, key, tid),
                         kept_of(h, y, key + x, false), false);
        let ds = Pair(bent(slopes(p.a, dp.a, row_delta), score.a),
                      bent(slopes(p.b, dp.b, row_delta), score.b));
        add_rows(&dq, ds, s, h.k, key, end, tid);
    }
    for (var i = 0u; i < PAIRS; i++) { write_pair(s, h.q, y, 64u * i + x, op.f0, dq[i]); }
}

// Blocks that meet the most others begin first.
@compute @workgroup_size(64)
fn both(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) tid: u32) {
    let s = heads();
    let group = group_of(id, count);
    let blocks = (op.ins[0].dim1 + 31u) / 32u;
    let kvs = op.ins[0].dim0 * s.n_kv;
    if (group < kvs * blocks) {
        keys(s, group % kvs / s.n_kv, group % s.n_kv, group / kvs * 32u, tid);
        return;
    }
    let of_queries = group - kvs * blocks;
    let qs = op.ins[0].dim0 * s.n_q;
    if (of_queries >= qs * blocks) { return; }
    queries(s, head_of(s, of_queries % qs / s.n_q, of_queries % s.n_q),
            (blocks - 1u - of_queries / qs) * 32u, tid);
}
