// attention_d.wgsl - the gradient of attention: for all rows delta = do . o, then dk and dv of 32
// keys by a workgroup each, and in the same dispatch dq of 32 queries. p comes from the saved lse;
// nothing is T x T.
@group(0) @binding(2) var<storage, read_write> qkv: array<f32>;
@group(0) @binding(3) var<storage, read_write> o: array<f32>;
@group(0) @binding(4) var<storage, read_write> lse: array<f32>;
@group(0) @binding(5) var<storage, read_write> dout: array<f32>;
@group(0) @binding(6) var<storage, read_write> dqkv: array<f32>;
@group(0) @binding(7) var<storage, read_write> delta: array<f32>;

// One query head of one sequence: where its rows begin.
struct Head { tokens: u32, q: u32, k: u32, v: u32, dout: u32, lse: u32 }

fn head_of(s: Heads, b: u32, h: u32) -> Head {
    let tokens = op.ins[0].dim1;
    let row = b * tokens * s.row;
    let kv = h / s.group;
    return Head(tokens, row + h * s.size, row + (s.n_q + kv) * s.size,
                row + (s.n_q + s.n_kv + kv) * s.size, b * tokens * s.q_row + h * s.size,
                (b * s.n_q + h) * tokens);
}

// Four columns from d on, zeros beyond the head. Beyond the sequence is its last row again, which
// nobody sees: no load is under a condition.
fn four(s: Heads, h: Head, at: u32, t: u32, d: u32) -> vec4<f32> {
    let i = vec4<u32>(at + min(t, h.tokens - 1u) * s.row) + columns(s, d);
    return within(s, d, vec4<f32>(qkv[i.x], qkv[i.y], qkv[i.z], qkv[i.w]));
}
fn four_dout(s: Heads, h: Head, t: u32, d: u32) -> vec4<f32> {
    let i = vec4<u32>(h.dout + min(t, h.tokens - 1u) * s.q_row) + columns(s, d);
    return within(s, d, vec4<f32>(dout[i.x], dout[i.y], dout[i.z], dout[i.w]));
}

@compute @workgroup_size(256)
fn deltas(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
          @builtin(local_invocation_index) tid: u32) {
    let s = heads();
    let i = group_of(id, count) * 256u + tid; // of [B,T,H], as the rows of o lie
    if (i >= op.ins[1].rows * s.n_q) { return; }
    var sum = 0.0;
    for (var d = 0u; d < s.size; d++) { sum = fma(dout[i * s.size + d], o[i * s.size + d], sum); }
    let tokens = op.ins[0].dim1;
    let h = i % s.n_q;
    let t = i / s.n_q % tokens;
    delta[(i / s.n_q / tokens * s.n_q + h) * tokens + t] = sum;
}

// Four rows of four columns from d on.
fn block(s: Heads, h: Head, at: u32, t: u32, d: u32) -> Cell {
    return Cell(four(s, h, at, t, d), four(s, h, at, t + 1u, d), four(s, h, at, t + 2u, d),
                four(s, h, at, t + 3u, d));
}
fn block_dout(s: Heads, h: Head, t: u32, d: u32) -> Cell {
    return Cell(four_dout(s, h, t, d), four_dout(s, h, t + 1u, d), four_dout(s, h, t + 2u, d),
                four_dout(s, h, t + 3u, d));
}

// Of 32 rows by 32 columns, queries by keys or keys by queries: q . k and dout . v.
struct Products { score: Cell, dp: Cell }

fn products(s: Heads, h: Head, rows: u32, columns: u32, queries_first: bool, tid: u32) -> Products {
    let r = tid / 8u * 4u;
    let c = tid % 8u * 4u;
    var score = Cell();
    var dp = Cell();
    for (var d = 0u; d < s.size; d += 32u) {
        turn_left(tid, block(s, h, select(h.k, h.q, queries_first), rows + r, d + c));
        turn_right(tid, block(s, h, select(h.q, h.k, queries_first), columns + r, d + c));
        workgroupBarrier();
        score = left_right(tid, score);
        workgroupBarrier();
        if (queries_first) {
            turn_left(tid, block_dout(s, h, rows + r, d + c));
            turn_right(tid, block(s, h, h.v, columns + r, d + c));
        } else {
            turn_left(tid, block(s, h, h.v, rows + r, d + c));
            turn_right(tid, block_dout(s, h, columns + r, d + c));
        }
        workgroupBarrier();
        dp = left_right(tid, dp);
        workgroupBarrier();
    }
    return Products(score, dp);
}

// p and ds of four pairs, from what their queries have.
struct Pairs { p: vec4<f32>, ds: vec4<f32> }

fn pairs(score: vec4<f32>, dp: vec4<f32>, query_lse: vec4<f32>, query_delta: vec4<f32>,
         seen: vec4<bool>) -> Pairs {
    let z = op.f0 * score - query_lse;
    let p = select(vec4<f32>(), vec4<f32>(exp1(z.x), exp1(z.y), exp1(z.z), exp1(z.w)), seen);
    return Pairs(p, select(vec4<f32>(), p * (dp - query_delta), seen));
}

// A row of keys: columns are queries from `query` on.
fn pairs_of_key(h: Head, score: vec4<f32>, dp: vec4<f32>, key: u32, query: u32) -> Pairs {
    let queries = vec4<u32>(query) + vec4<u32>(0u, 1u, 2u, 3u);
    let at = vec4<u32>(h.lse) + min(queries, vec4<u32>(h.tokens - 1u));
    return pairs(score, dp, vec4<f32>(lse[at.x], lse[at.y], lse[at.z], lse[at.w]),
                 vec4<f32>(delta[at.x], delta[at.y], delta[at.z], delta[at.w]),
                 (queries < vec4<u32>(h.tokens)) & (vec4<u32>(key) <= queries));
}
// A row of queries: columns are keys from `key` on.
fn ds_of_query(h: Head, score: vec4<f32>, dp: vec4<f32>, query: u32, key: u32) -> vec4<f32> {
    let keys = vec4<u32>(key) + vec4<u32>(0u, 1u, 2u, 3u);
    let at = h.lse + min(query, h.tokens - 1u);
    return pairs(score, dp, vec4<f32>(lse[at]), vec4<f32>(delta[at]),
                 vec4<bool>(query < h.tokens) & (keys <= vec4<u32>(query))).ds;
}

// Rows t .. by columns d .. of dqkv, of which `at` is row 0 and column 0.
fn write_row(s: Heads, h: Head, at: u32, t: u32, d: u32, v: vec4<f32>) {
    if (t >= h.tokens) { return; }
    for (var e = 0u; e < 4u; e++) {
        if (d + e < s.size) { dqkv[at + t * s.row + d + e] = v[e]; }
    }
}
fn write_cell(s: Heads, h: Head, at: u32, t: u32, d: u32, scale: f32, c: Cell) {
    write_row(s, h, at, t, d, scale * c.r0);
    write_row(s, h, at, t + 1u, d, scale * c.r1);
    write_row(s, h, at, t + 2u, d, scale * c.r2);
    write_row(s, h, at, t + 3u, d, scale * c.r3);
}

fn keys(s: Heads, group: u32, tid: u32) {
    let tokens = op.ins[0].dim1;
    let blocks = (tokens + 31u) / 32u;
    let key = group % blocks * 32u;
    let kv = group / blocks % s.n_kv;
    let batch = group / blocks / s.n_kv;
    if (batch >= op.ins[0].dim0) { return; }
    let r = tid / 8u * 4u;
    let c = tid % 8u * 4u;
    var dk: array<Cell, PIECES>;
    var dv: array<Cell, PIECES>;
    for (var g = 0u; g < s.group; g++) {
        let h = head_of(s, batch, kv * s.group + g);
        for (var first = key; first < tokens; first += 32u) {
            let made = products(s, h, key, first, false, tid);
            let p0 = pairs_of_key(h, made.score.r0, made.dp.r0, key + r, first + c);
            let p1 = pairs_of_key(h, made.score.r1, made.dp.r1, key + r + 1u, first + c);
            let p2 = pairs_of_key(h, made.score.r2, made.dp.r2, key + r + 2u, first + c);
            let p3 = pairs_of_key(h, made.score.r3, made.dp.r3, key + r + 3u, first + c);
            turn_square(tid, Cell(p0.p, p1.p, p2.p, p3.p));
            for (var i = 0u; i < PIECES; i++) {
                if (32u * i >= s.size) { break; }
                put_right(tid, block_dout(s, h, first + r, 32u * i + c));
                workgroupBarrier();
                dv[i] = square_right(tid, dv[i]);
                workgroupBarrier();
            }
            turn_square(tid, Cell(p0.ds, p1.ds, p2.ds, p3.ds));
            for (var i = 0u; i < PIECES; i++) {
                if (32u * i >= s.size) { break; }
                put_right(tid, block(s, h, h.q, first + r, 32u * i + c));
                workgroupBarrier();
                dk[i] = square_right(tid, dk[i]);
                workgroupBarrier();
            }
        }
    }
    let h = head_of(s, batch, kv * s.group);
    for (var i = 0u; i < PIECES; i++) {
        if (32u * i >= s.size) { break; }
        write_cell(s, h, h.k, key + r, 32u * i + c, op.f0, dk[i]);
        write_cell(s, h, h.v, key + r, 32u * i + c, 1.0, dv[i]);
    }
}

fn queries(s: Heads, group: u32, tid: u32) {
    let tokens = op.ins[0].dim1;
    let blocks = (tokens + 31u) / 32u;
    let first = (blocks - 1u - group % blocks) * 32u;
    let batch = group / blocks / s.n_q;
    if (batch >= op.ins[0].dim0) { return; }
    let h = head_of(s, batch, group / blocks % s.n_q);
    let r = tid / 8u * 4u;
    let c = tid % 8u * 4u;
    var dq: array<Cell, PIECES>;
    for (var key = 0u; key < min(tokens, first + 32u); key += 32u) {
        let made = products(s, h, first, key, true, tid);
        turn_square(tid, Cell(ds_of_query(h, made.score.r0, made.dp.r0, first + r, key + c),
                              ds_of_query(h, made.score.r1, made.dp.r1, first + r + 1u, key + c),
                              ds_of_query(h, made.score.r2, made.dp.r2, first + r + 2u, key + c),
                              ds_of_query(h, made.score.r3, made.dp.r3, first + r + 3u, key + c)));
        for (var i = 0u; i < PIECES; i++) {
            if (32u * i >= s.size) { break; }
            put_right(tid, block(s, h, h.k, key + r, 32u * i + c));
            workgroupBarrier();
            dq[i] = square_right(tid, dq[i]);
            workgroupBarrier();
        }
    }
    for (var i = 0u; i < PIECES; i++) {
        if (32u * i >= s.size) { break; }
        write_cell(s, h, h.q, first + r, 32u * i + c, op.f0, dq[i]);
    }
}

@compute @workgroup_size(64)
fn both(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) tid: u32) {
    let s = heads();
    let group = group_of(id, count);
    let of_keys = op.ins[0].dim0 * s.n_kv * ((op.ins[0].dim1 + 31u) / 32u);
    if (group < of_keys) { keys(s, group, tid); } else { queries(s, group - of_keys, tid); }
}
