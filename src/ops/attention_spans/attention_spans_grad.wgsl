// SPDX-License-Identifier: Apache-2.0
// attention_spans_grad.wgsl - a workgroup for dq of a query of a head, or for dk and dv of a key: 64
// keys, or queries, at a time, a thread for each of them, then one for every 64th column.
@group(0) @binding(2) var<storage, read_write> qkv: array<f32>;
@group(0) @binding(3) var<storage, read_write> spans: array<i32>;
@group(0) @binding(4) var<storage, read_write> o: array<f32>;
@group(0) @binding(5) var<storage, read_write> lse: array<f32>;
@group(0) @binding(6) var<storage, read_write> dout: array<f32>;
@group(0) @binding(7) var<storage, read_write> dqkv: array<f32>;

var<workgroup> first: array<f32, 256>;  // the query, or the key
var<workgroup> second: array<f32, 256>; // its do, or its value
var<workgroup> ps: array<f32, 64>;
var<workgroup> slopes: array<f32, 64>;
var<workgroup> any_seen: f32;

// do . o of a query of a head, whose columns begin at `at`.
fn delta_at(at: u32, size: u32) -> f32 {
    var sum = 0.0;
    for (var i = 0u; i < size; i++) { sum = fma(dout[at + i], o[at + i], sum); }
    return sum;
}

fn queries(group: u32, rows: u32, tid: u32) {
    let n_q = u32(op.i0);
    let size = u32(op.i2);
    let step = op.ins[0].cols;
    let head = group % n_q;
    let row = group / n_q;
    let span = span_of(row, rows, tid);
    let keys = (n_q + head / (n_q / u32(op.i1))) * size;
    let values = keys + u32(op.i1) * size;
    var part = 0.0;
    for (var d = tid; d < size; d += 64u) {
        first[d] = qkv[row * step + head * size + d];
        second[d] = dout[group * size + d];
        part = fma(second[d], o[group * size + d], part);
    }
    let delta = group_sum(tid, part);

    var dq = vec4<f32>(); // columns tid, tid + 64, ..
    for (var tile = span.x; tile < span.y; tile += 64u) {
        let n = min(64u, span.y - tile);
        let key = (tile + min(tid, n - 1u)) * step;
        var score = 0.0;
        var dp = 0.0;
        for (var i = 0u; i < size; i++) {
            score = fma(first[i], qkv[key + keys + i], score);
            dp = fma(second[i], qkv[key + values + i], dp);
        }
        slopes[tid] = op.f0 * exp1(op.f0 * score - lse[group]) * (dp - delta);
        workgroupBarrier();
        for (var t = 0u; t < n; t++) {
            let at = (tile + t) * step + keys;
            for (var e = 0u; 64u * e + tid < size; e++) {
                dq[e] = fma(slopes[t], qkv[at + 64u * e + tid], dq[e]);
            }
        }
        workgroupBarrier();
    }
    for (var e = 0u; 64u * e + tid < size; e++) {
        dqkv[row * step + head * size + 64u * e + tid] = dq[e];
    }
}

fn keys(group: u32, rows: u32, tid: u32) {
    let n_q = u32(op.i0);
    let n_kv = u32(op.i1);
    let size = u32(op.i2);
    let step = op.ins[0].cols;
    let row = group / n_kv;
    let key = row * step + (n_q + group % n_kv) * size;
    let value = key + n_kv * size;
    for (var d = tid; d < size; d += 64u) {
        first[d] = qkv[key + d];
        second[d] = qkv[value + d];
    }
    var dk = vec4<f32>();
    var dv = vec4<f32>();
    let members = n_q / n_kv;
    for (var head = group % n_kv * members; head < (group % n_kv + 1u) * members; head++) {
        for (var tile = 0u; tile < rows; tile += 64u) {
            let n = min(64u, rows - tile);
            let t = tile + min(tid, n - 1u);
            let span = span_at(t, rows);
            let seen = tid < n && span.x <= row && row < span.y;
            let any = group_max(tid, select(0.0, 1.0, seen));
            if (tid == 0u) { any_seen = any; }
            if (workgroupUniformLoad(&any_seen) == 0.0) { continue; }
            let query = t * step + head * size;
            let at = (t * n_q + head) * size;
            var p = 0.0;
            var slope = 0.0;
            if (seen) {
                var score = 0.0;
                var dp = 0.0;
                for (var i = 0u; i < size; i++) {
                    score = fma(qkv[query + i], first[i], score);
                    dp = fma(dout[at + i], second[i], dp);
                }
                p = exp1(op.f0 * score - lse[t * n_q + head]);
                slope = op.f0 * p * (dp - delta_at(at, size));
            }
            ps[tid] = p;
            slopes[tid] = slope;
            workgroupBarrier();
            for (var i = 0u; i < n; i++) {
                let q = (tile + i) * step + head * size;
                let d = ((tile + i) * n_q + head) * size;
                for (var e = 0u; 64u * e + tid < size; e++) {
                    dk[e] = fma(slopes[i], qkv[q + 64u * e + tid], dk[e]);
                    dv[e] = fma(ps[i], dout[d + 64u * e + tid], dv[e]);
                }
            }
        }
    }
    for (var e = 0u; 64u * e + tid < size; e++) {
        dqkv[key + 64u * e + tid] = dk[e];
        dqkv[value + 64u * e + tid] = dv[e];
    }
}

@compute @workgroup_size(64)
fn both(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) tid: u32) {
    let group = group_of(id, count);
    let rows = in_rows(0u);
    let of_queries = rows * u32(op.i0);
    if (group < of_queries) {
        queries(group, rows, tid);
    } else if (group - of_queries < rows * u32(op.i1)) {
        keys(group - of_queries, rows, tid);
    }
}
