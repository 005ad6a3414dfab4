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

// Four columns from d on, zeros beyond the head and the sequence.
fn four(s: Heads, h: Head, at: u32, t: u32, d: u32) -> vec4<f32> {
    var v = vec4<f32>();
    if (t >= h.tokens) { return v; }
    for (var e = 0u; e < 4u; e++) {
        if (d + e < s.size) { v[e] = qkv[at + t * s.row + d + e]; }
    }
    return v;
}
fn four_dout(s: Heads, h: Head, t: u32, d: u32) -> vec4<f32> {
    var v = vec4<f32>();
    if (t >= h.tokens) { return v; }
    for (var e = 0u; e < 4u; e++) {
        if (d + e < s.size) { v[e] = dout[h.dout + t * s.q_row + d + e]; }
    }
    return v;
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

// p and ds of this thread's four pairs: queries first + (y, y + 16), keys key + (x, x + 16).
struct Pairs { p: vec4<f32>, ds: vec4<f32> }

fn pairs_of(s: Heads, h: Head, first: u32, key: u32, tid: u32) -> Pairs {
    let y = tid / 16u;
    let x = tid % 16u;
    let r = tid / 8u;
    let c = tid % 8u;
    var score = vec4<f32>();
    var dp = vec4<f32>();
    for (var d = 0u; d < s.size; d += 32u) {
        left[r * 9u + c] = four(s, h, h.q, first + r, d + 4u * c);
        right[r * 9u + c] = four(s, h, h.k, key + r, d + 4u * c);
        workgroupBarrier();
        score += piece_product(y, x);
        workgroupBarrier();
        left[r * 9u + c] = four_dout(s, h, first + r, d + 4u * c);
        right[r * 9u + c] = four(s, h, h.v, key + r, d + 4u * c);
        workgroupBarrier();
        dp += piece_product(y, x);
        workgroupBarrier();
    }
    let q0 = first + y;
    let q1 = q0 + 16u;
    let k0 = key + x;
    let k1 = k0 + 16u;
    let at0 = h.lse + min(q0, h.tokens - 1u);
    let at1 = h.lse + min(q1, h.tokens - 1u);
    let row_lse = vec4<f32>(lse[at0], lse[at0], lse[at1], lse[at1]);
    let row_delta = vec4<f32>(delta[at0], delta[at0], delta[at1], delta[at1]);
    let z = op.f0 * score - row_lse;
    let seen = vec4<bool>(q0 < h.tokens && k0 <= q0, q0 < h.tokens && k1 <= q0,
                          q1 < h.tokens && k0 <= q1, q1 < h.tokens && k1 <= q1);
    let p = select(vec4<f32>(), vec4<f32>(exp1(z.x), exp1(z.y), exp1(z.z), exp1(z.w)), seen);
    return Pairs(p, select(vec4<f32>(), p * (dp - row_delta), seen));
}

fn keys(s: Heads, group: u32, tid: u32) {
    let tokens = op.ins[0].dim1;
    let blocks = (tokens + 31u) / 32u;
    let key = group % blocks * 32u;
    let kv = group / blocks % s.n_kv;
    let batch = group / blocks / s.n_kv;
    if (batch >= op.ins[0].dim0) { return; }
    let y = tid / 16u;
    let x = tid % 16u;
    let r = tid / 8u;
    let c = tid % 8u;
    var dk: array<Cell, PIECES>;
    var dv: array<Cell, PIECES>;
    for (var g = 0u; g < s.group; g++) {
        let h = head_of(s, batch, kv * s.group + g);
        for (var first = key; first < tokens; first += 32u) {
            let pairs = pairs_of(s, h, first, key, tid);
            store_square(y, x, pairs.p);
            for (var i = 0u; i < PIECES; i++) {
                if (32u * i >= s.size) { break; }
                right[r * 9u + c] = four_dout(s, h, first + r, 32u * i + 4u * c);
                workgroupBarrier();
                dv[i] = turned_square_right(tid, dv[i]);
                workgroupBarrier();
            }
            store_square(y, x, pairs.ds);
            for (var i = 0u; i < PIECES; i++) {
                if (32u * i >= s.size) { break; }
                right[r * 9u + c] = four(s, h, h.q, first + r, 32u * i + 4u * c);
                workgroupBarrier();
                dk[i] = turned_square_right(tid, dk[i]);
                workgroupBarrier();
            }
        }
    }
    let h = head_of(s, batch, kv * s.group);
    let row = key + gathered_row(tid);
    for (var i = 0u; i < PIECES; i++) {
        if (32u * i >= s.size) { break; }
        let all_k = gathered(tid, dk[i]);
        let all_v = gathered(tid, dv[i]);
        for (var e = 0u; e < 4u; e++) {
            let d = 32u * i + 4u * c + e;
            if (d < s.size && row < tokens) {
                dqkv[h.k + row * s.row + d] = op.f0 * all_k[e];
                dqkv[h.v + row * s.row + d] = all_v[e];
            }
        }
    }
}

fn queries(s: Heads, group: u32, tid: u32) {
    let tokens = op.ins[0].dim1;
    let blocks = (tokens + 31u) / 32u;
    let first = (blocks - 1u - group % blocks) * 32u;
    let batch = group / blocks / s.n_q;
    if (batch >= op.ins[0].dim0) { return; }
    let h = head_of(s, batch, group / blocks % s.n_q);
    let r = tid / 8u;
    let c = tid % 8u;
    var dq: array<Cell, PIECES>;
    for (var key = 0u; key < min(tokens, first + 32u); key += 32u) {
        let pairs = pairs_of(s, h, first, key, tid);
        store_square(tid / 16u, tid % 16u, pairs.ds);
        for (var i = 0u; i < PIECES; i++) {
            if (32u * i >= s.size) { break; }
            right[r * 9u + c] = four(s, h, h.k, key + r, 32u * i + 4u * c);
            workgroupBarrier();
            dq[i] = square_right(tid, dq[i]);
            workgroupBarrier();
        }
    }
    let row = first + gathered_row(tid);
    for (var i = 0u; i < PIECES; i++) {
        if (32u * i >= s.size) { break; }
        let all = gathered(tid, dq[i]);
        for (var e = 0u; e < 4u; e++) {
            let d = 32u * i + 4u * c + e;
            if (d < s.size && row < tokens) { dqkv[h.q + row * s.row + d] = op.f0 * all[e]; }
        }
    }
}

@compute @workgroup_size(256)
fn both(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) tid: u32) {
    let s = heads();
    let group = group_of(id, count);
    let of_keys = op.ins[0].dim0 * s.n_kv * ((op.ins[0].dim1 + 31u) / 32u);
    if (group < of_keys) { keys(s, group, tid); } else { queries(s, group - of_keys, tid); }
}
