// attention_forward.wgsl - o and lse of 32 queries: the keys once, with a running maximum and sum of
// each row (Dao et al. 2022). The text before this one says where queries, keys and values are:
//
//     struct Place { q, k, v: of row 0 of this head; o; q_step, kv_step, o_step: rows apart;
//                    queries, keys: how many; ahead: keys before query 0; lse }
//     place_of(group) and load_q/k/v, write_o, write_lse

fn block_q(s: Heads, p: Place, t: u32, d: u32) -> Cell {
    return Cell(load_q(s, p, t, d), load_q(s, p, t + 1u, d), load_q(s, p, t + 2u, d),
                load_q(s, p, t + 3u, d));
}
fn block_k(s: Heads, p: Place, t: u32, d: u32) -> Cell {
    return Cell(load_k(s, p, t, d), load_k(s, p, t + 1u, d), load_k(s, p, t + 2u, d),
                load_k(s, p, t + 3u, d));
}
fn block_v(s: Heads, p: Place, t: u32, d: u32) -> Cell {
    return Cell(load_v(s, p, t, d), load_v(s, p, t + 1u, d), load_v(s, p, t + 2u, d),
                load_v(s, p, t + 3u, d));
}

fn largest(v: vec4<f32>) -> f32 { return max(max(v.x, v.y), max(v.z, v.w)); }
fn sum_of(v: vec4<f32>) -> f32 { return (v.x + v.y) + (v.z + v.w); }
fn exp4(v: vec4<f32>) -> vec4<f32> { return vec4<f32>(exp1(v.x), exp1(v.y), exp1(v.z), exp1(v.w)); }

// Scores of a row that sees keys below `seen`, the first of these four being `key`.
fn masked(score: vec4<f32>, key: u32, seen: u32) -> vec4<f32> {
    let keys = vec4<u32>(key) + vec4<u32>(0u, 1u, 2u, 3u);
    return select(vec4<f32>(LOWEST), op.f0 * score, keys < vec4<u32>(seen));
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) tid: u32) {
    let s = heads();
    let p = place_of(s, group_of(id, count));
    if (p.first >= p.queries) { return; }
    let row = p.first + tid / 8u * 4u; // of this thread's four
    let x = tid % 8u * 4u;
    // The largest score so far is the same in all threads of a row; sums are of a thread's columns.
    var top = vec4<f32>(LOWEST);
    var sum = vec4<f32>();
    var o: array<Cell, PIECES>;
    // The last query of the block sees this many keys. Every query sees key 0.
    let end = min(p.first + 32u, p.queries) + p.ahead;
    for (var key = 0u; key < end; key += 32u) {
        var c = Cell();
        for (var d = 0u; d < s.size; d += 32u) {
            turn_left(tid, block_q(s, p, row, d + x));
            turn_right(tid, block_k(s, p, key + tid / 8u * 4u, d + x));
            workgroupBarrier();
            c = left_right(tid, c);
            workgroupBarrier();
        }
        let seen = p.ahead + row + 1u;
        c = Cell(masked(c.r0, key + x, seen), masked(c.r1, key + x, seen + 1u),
                 masked(c.r2, key + x, seen + 2u), masked(c.r3, key + x, seen + 3u));
        left[tid] = vec4<f32>(largest(c.r0), largest(c.r1), largest(c.r2), largest(c.r3));
        workgroupBarrier();
        var new_top = top;
        for (var e = 0u; e < 8u; e++) { new_top = max(new_top, left[tid / 8u * 8u + e]); }
        c = Cell(exp4(c.r0 - new_top.x), exp4(c.r1 - new_top.y), exp4(c.r2 - new_top.z),
                 exp4(c.r3 - new_top.w));
        let scale = exp4(top - new_top);
        top = new_top;
        sum = sum * scale + vec4<f32>(sum_of(c.r0), sum_of(c.r1), sum_of(c.r2), sum_of(c.r3));
        turn_square(tid, c);
        for (var i = 0u; i < PIECES; i++) {
            if (32u * i >= s.size) { break; }
            put_right(tid, block_v(s, p, key + tid / 8u * 4u, 32u * i + x));
            workgroupBarrier();
            o[i] = square_right(tid, scaled(o[i], scale));
            workgroupBarrier();
        }
    }
    left[tid] = sum;
    workgroupBarrier();
    var all = vec4<f32>();
    for (var e = 0u; e < 8u; e++) { all += left[tid / 8u * 8u + e]; }
    for (var e = 0u; e < 4u; e++) {
        if (x == 0u && row + e < p.queries) { write_lse(p, row + e, top[e] + log1(all[e])); }
    }
    for (var i = 0u; i < PIECES; i++) {
        if (32u * i >= s.size) { break; }
        let c = scaled(o[i], 1.0 / all);
        for (var e = 0u; e < 4u; e++) {
            let d = 32u * i + x + e;
            if (d >= s.size) { continue; }
            if (row < p.queries) { write_o(s, p, row, d, c.r0[e]); }
            if (row + 1u < p.queries) { write_o(s, p, row + 1u, d, c.r1[e]); }
            if (row + 2u < p.queries) { write_o(s, p, row + 2u, d, c.r2[e]); }
            if (row + 3u < p.queries) { write_o(s, p, row + 3u, d, c.r3[e]); }
        }
    }
}
