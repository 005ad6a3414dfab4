// SPDX-License-Identifier: Apache-2.0
// attention_spans.wgsl - attention both ways within each of several texts: a workgroup for a head of a
// token. It goes through the keys of the token's text 64 at a time, with a running maximum and sum
// (Dao et al. 2022): a thread for each key, then one for every 64th column of the values.
//
// Tiles begin with the text, or with the window, so that nothing depends on where it lies among the
// others.
@group(0) @binding(2) var<storage, read_write> qkv: array<f32>;
@group(0) @binding(3) var<storage, read_write> spans: array<i32>;
@group(0) @binding(4) var<storage, read_write> o_out: array<f32>;
@group(0) @binding(5) var<storage, read_write> lse_out: array<f32>;

const LOWEST = -0x1p127f;

var<workgroup> q: array<f32, 256>;
var<workgroup> weights: array<f32, 64>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) tid: u32) {
    let n_q = u32(op.i0);
    let n_kv = u32(op.i1);
    let size = u32(op.i2);
    let step = op.ins[0].cols;
    let rows = in_rows(0u);
    let group = group_of(id, count);
    let head = group % n_q;
    let row = group / n_q;
    if (row >= rows) { return; }
    let span = span_of(row, rows, tid);
    let keys = (n_q + head / (n_q / n_kv)) * size;
    let values = keys + n_kv * size;
    for (var d = tid; d < size; d += 64u) { q[d] = qkv[row * step + head * size + d]; }
    workgroupBarrier();

    var top = LOWEST;
    var sum = 0.0;
    var o = vec4<f32>(); // columns tid, tid + 64, ..
    for (var tile = span.x; tile < span.y; tile += 64u) {
        let n = min(64u, span.y - tile);
        let key = (tile + min(tid, n - 1u)) * step + keys;
        var score = 0.0;
        for (var i = 0u; i < size; i++) { score = fma(q[i], qkv[key + i], score); }
        score = select(LOWEST, op.f0 * score, tid < n);
        let new_top = max(top, group_max(tid, score));
        let weight = exp1(score - new_top);
        let keep = exp1(top - new_top);
        sum = sum * keep + group_sum(tid, weight);
        top = new_top;
        weights[tid] = weight;
        workgroupBarrier();
        o *= keep;
        for (var t = 0u; t < n; t++) {
            let value = (tile + t) * step + values;
            for (var e = 0u; 64u * e + tid < size; e++) {
                o[e] = fma(weights[t], qkv[value + 64u * e + tid], o[e]);
            }
        }
    }
    for (var e = 0u; 64u * e + tid < size; e++) {
        o_out[group * size + 64u * e + tid] = o[e] / sum;
    }
    if (tid == 0u) { lse_out[group] = top + log1(sum); }
}
