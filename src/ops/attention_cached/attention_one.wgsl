// SPDX-License-Identifier: Apache-2.0
// attention_one.wgsl - attention of new tokens to the KV cache, one by one: of each a workgroup for
// 64 keys of a head; attention_whole.wgsl has one for a head (flash decoding, Dao et al. 2023). See
// attention_cached.c and pages.h; the texts before this one have the cache as floats, or packed, and
// say where queries come from: begin_row fills q, key_four and value_four read what the cache has of
// number t of the tile, its four i. What a token adds up depends on its own sequence alone.
//
//     part [T][H][op.word][D + 2]   of 64 keys: values by their weights, the largest score, and the
//                                   sum of the weights
var<workgroup> q: array<vec4<f32>, 64>;
var<workgroup> weights: array<f32, 64>;
var<workgroup> sums: array<vec4<f32>, 64>;

@compute @workgroup_size(64)
fn parts(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
         @builtin(local_invocation_index) tid: u32) {
    let size = u32(op.i2);
    let fours = size / 4u;
    let group = group_of(id, count);
    let head = group / op.word % u32(op.i0);
    let row = group / op.word / u32(op.i0);
    if (row >= in_rows(0u)) { return; }
    let k = keys_of(row, tid);
    let tile = k.first + group % op.word;
    if (64u * tile >= k.end) { return; }
    let kv = head / (u32(op.i0) / u32(op.i1));
    let last = min(63u, k.end - 1u - 64u * tile);
    begin_row(tid, row, head, k, tile, last);
    workgroupBarrier();

    let key = place_of(k, tile, kv, size) / 4u + min(tid, last) * fours;
    var score = 0.0;
    for (var i = 0u; i < fours; i++) { score += dot(q[i], key_four(min(tid, last), i, key + i)); }
    let seen = tid <= last && 64u * tile + tid >= k.begin;
    score = select(LOWEST, op.f0 * score, seen);
    let top = group_max(tid, score);
    let weight = exp1(score - top);
    let sum = group_sum(tid, weight);
    weights[tid] = weight;
    workgroupBarrier();

    // A four of columns and every so many keys a thread.
    let slices = 64u / fours;
    let values = place_of(k, tile, u32(op.i1) + kv, size) / 4u + tid % fours;
    var o = vec4<f32>();
    if (tid < slices * fours) {
        for (var t = tid / fours; t <= last; t += slices) {
            if (64u * tile + t < k.begin) { continue; } // in a ring it may be under way to be another
            let value = value_four(t, tid % fours, values + t * fours);
            o = fma(vec4<f32>(weights[t]), value, o);
        }
    }
    sums[tid] = o;
    workgroupBarrier();
    let to = part_place(row, head, group % op.word, size);
    if (tid < fours) {
        for (var s = 1u; s < slices; s++) { o += sums[s * fours + tid]; }
        for (var e = 0u; e < 4u; e++) { part[to + 4u * tid + e] = o[e]; }
    }
    if (tid == 0u) {
        part[to + size] = top;
        part[to + size + 1u] = sum;
    }
}
