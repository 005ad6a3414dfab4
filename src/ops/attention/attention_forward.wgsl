// attention_forward.wgsl - o and lse of 32 queries: the keys once, with a running maximum and sum of
// each row (Dao et al. 2022). The text before this one says where queries, keys and values are:
//
//     struct Place { q, k, v: of row 0 of this head; o; q_step, kv_step, o_step: rows apart;
//                    queries, keys: how many; ahead: keys before query 0; lse }
//     place_of(group) and load_q/k/v, write_o, write_lse

// Of each thread: the largest score of its four columns, their sum of exp(score - top).
var<workgroup> tops: array<f32, 256>;
var<workgroup> part_sums: array<f32, 256>;
var<workgroup> row_scale: array<f32, 32>; // of this square; in the end, of the whole row

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) tid: u32) {
    let s = heads();
    let p = place_of(s, group_of(id, count));
    if (p.first >= p.queries) { return; }
    let y = tid / 16u;
    let x = tid % 16u;
    let r = tid / 8u;
    let c = tid % 8u;
    // Of row r, the same in all eight threads that have it.
    var top = LOWEST;
    var sum = 0.0;
    var o: array<Cell, PIECES>;
    // The last query of the block sees this many keys.
    let end = min(p.first + 32u, p.queries) + p.ahead;
    for (var key = 0u; key < end; key += 32u) {
        var score = vec4<f32>();
        for (var d = 0u; d < s.size; d += 32u) {
            left[r * 9u + c] = load_q(s, p, p.first + r, d + 4u * c);
            right[r * 9u + c] = load_k(s, p, key + r, d + 4u * c);
            workgroupBarrier();
            score += piece_product(y, x);
            workgroupBarrier();
        }
        store_square(y, x, op.f0 * score);
        workgroupBarrier();
        // Query first + r sees the keys up to ahead + first + r: `n` of this square's. Thread c has
        // its columns 4 c to 4 c + 3.
        let seen = p.ahead + p.first + r + 1u;
        let n = select(0u, min(32u, seen - key), seen > key);
        var four = vec4<f32>(LOWEST);
        for (var e = 0u; e < 4u; e++) {
            if (4u * c + e < n) { four[e] = square[r * 33u + 4u * c + e]; }
        }
        tops[tid] = max(max(four.x, four.y), max(four.z, four.w));
        workgroupBarrier();
        var new_top = top;
        for (var e = 0u; e < 8u; e++) { new_top = max(new_top, tops[8u * r + e]); }
        var part = 0.0;
        for (var e = 0u; e < 4u; e++) {
            var weight = 0.0;
            if (4u * c + e < n) { weight = exp1(four[e] - new_top); }
            square[r * 33u + 4u * c + e] = weight;
            part += weight;
        }
        part_sums[tid] = part;
        workgroupBarrier();
        let scale = exp1(top - new_top);
        top = new_top;
        sum *= scale;
        for (var e = 0u; e < 8u; e++) { sum += part_sums[8u * r + e]; }
        if (c == 0u) { row_scale[r] = scale; }
        for (var i = 0u; i < PIECES; i++) {
            if (32u * i >= s.size) { break; }
            right[r * 9u + c] = load_v(s, p, key + r, 32u * i + 4u * c);
            workgroupBarrier();
            let four_rows = tid / 8u % 8u * 4u;
            let before = o[i];
            o[i] = square_right(tid, Cell(row_scale[four_rows] * before.r0,
                                          row_scale[four_rows + 1u] * before.r1,
                                          row_scale[four_rows + 2u] * before.r2,
                                          row_scale[four_rows + 3u] * before.r3));
            workgroupBarrier();
        }
    }
    if (c == 0u) {
        row_scale[r] = 1.0 / sum;
        if (p.first + r < p.queries) { write_lse(p, p.first + r, top + log1(sum)); }
    }
    workgroupBarrier();
    let row = gathered_row(tid);
    for (var i = 0u; i < PIECES; i++) {
        if (32u * i >= s.size) { break; }
        let all = row_scale[row] * gathered(tid, o[i]);
        for (var e = 0u; e < 4u; e++) {
            let d = 32u * i + 4u * c + e;
            if (d < s.size && p.first + row < p.queries) { write_o(s, p, p.first + row, d, all[e]); }
        }
    }
}
