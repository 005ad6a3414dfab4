// attention_forward.wgsl - o and lse of 32 queries: the keys once, with a running maximum and sum of
// each row (Dao et al. 2022). The text before this one says where queries, keys and values are:
//
//     struct Place { q, k, v: of row 0 of this head; o; q_step, kv_step, o_step: rows apart;
//                    queries, keys: how many; ahead: keys before query 0; lse }
//     place_of(group) and load_q/k/v, write_o, write_lse

var<workgroup> row_top: array<f32, 32>;
var<workgroup> row_sum: array<f32, 32>;
var<workgroup> row_scale: array<f32, 32>;

// Row r of the square: from scores to exp(score - top), top the largest so far.
fn soften(r: u32, n: u32) {
    var top = row_top[r];
    for (var c = 0u; c < n; c++) { top = max(top, square[r * 33u + c]); }
    let scale = exp1(row_top[r] - top);
    var sum = 0.0;
    for (var c = 0u; c < 32u; c++) {
        var p = 0.0;
        if (c < n) { p = exp1(square[r * 33u + c] - top); }
        square[r * 33u + c] = p;
        sum += p;
    }
    row_top[r] = top;
    row_sum[r] = row_sum[r] * scale + sum;
    row_scale[r] = scale;
}

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
    if (tid < 32u) {
        row_top[tid] = LOWEST;
        row_sum[tid] = 0.0;
    }
    var o: array<vec4<f32>, PIECES>;
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
        if (tid < 32u) {
            // Query first + tid sees the keys up to ahead + first + tid.
            let seen = p.ahead + p.first + tid + 1u;
            soften(tid, select(0u, min(32u, seen - key), seen > key));
        }
        workgroupBarrier();
        let scale = row_scale[r];
        for (var i = 0u; i < PIECES; i++) {
            if (32u * i >= s.size) { break; }
            right[r * 9u + c] = load_v(s, p, key + r, 32u * i + 4u * c);
            workgroupBarrier();
            var sum = scale * o[i];
            for (var k = 0u; k < 32u; k++) {
                sum = fma(vec4<f32>(square[r * 33u + k]), right[k * 9u + c], sum);
            }
            o[i] = sum;
            workgroupBarrier();
        }
    }
    let query = p.first + r;
    if (query >= p.queries) { return; }
    let sum = row_sum[r];
    for (var i = 0u; i < PIECES; i++) {
        for (var e = 0u; e < 4u; e++) {
            let d = 32u * i + 4u * c + e;
            if (d < s.size) { write_o(s, p, query, d, o[i][e] / sum); }
        }
    }
    if (c == 0u) { write_lse(p, query, row_top[r] + log1(sum)); }
}
