// SPDX-License-Identifier: Apache-2.0
// attention_one.wgsl - attention of new tokens to the KV cache, one by one: of each a workgroup for
// 64 keys of a head; attention_whole.wgsl has one for a head (flash decoding, Dao et al. 2023). See
// attention_cached.c and pages.h; the texts before this one have the cache as floats, or packed, and
// say where queries come from: begin_row fills q; of a tile's keys the cache has those before
// cached_end, and the one behind them, if it is seen, newest_key and newest_value. Memory is asked
// for sixteen times before anybody waits for it. What a token adds up depends on its own sequence alone.
//
//     part [T][H][op.word][D + 2]   of 64 keys: values by their weights, the largest score, and the
//                                   sum of the weights
var<workgroup> q: array<vec4<f32>, 64>;
var<workgroup> weights: array<f32, 64>;
var<workgroup> sums: array<vec4<f32>, 64>;

// Of a key, eight fours from i on with the query's, which is 0 behind the last.
fn eight_products(key: u32, i: u32, last: u32) -> f32 {
    let k0 = cache_four(key + min(i, last));
    let k1 = cache_four(key + min(i + 1u, last));
    let k2 = cache_four(key + min(i + 2u, last));
    let k3 = cache_four(key + min(i + 3u, last));
    let k4 = cache_four(key + min(i + 4u, last));
    let k5 = cache_four(key + min(i + 5u, last));
    let k6 = cache_four(key + min(i + 6u, last));
    let k7 = cache_four(key + min(i + 7u, last));
    return ((dot(q[i], k0) + dot(q[i + 1u], k1)) + (dot(q[i + 2u], k2) + dot(q[i + 3u], k3))) +
           ((dot(q[i + 4u], k4) + dot(q[i + 5u], k5)) + (dot(q[i + 6u], k6) + dot(q[i + 7u], k7)));
}

// The four of a value at `values` of every `step`th key from t on, eight of them, before `end`.
fn value_at(values: u32, fours: u32, t: u32, end: u32) -> vec4<f32> {
    return cache_four(values + min(t, end - 1u) * fours);
}
fn weight_at(t: u32, end: u32) -> f32 { return select(0.0, weights[min(t, 63u)], t < end); }
fn eight_values(values: u32, fours: u32, t: u32, step: u32, end: u32) -> vec4<f32> {
    let v0 = value_at(values, fours, t, end);
    let v1 = value_at(values, fours, t + step, end);
    let v2 = value_at(values, fours, t + 2u * step, end);
    let v3 = value_at(values, fours, t + 3u * step, end);
    let v4 = value_at(values, fours, t + 4u * step, end);
    let v5 = value_at(values, fours, t + 5u * step, end);
    let v6 = value_at(values, fours, t + 6u * step, end);
    let v7 = value_at(values, fours, t + 7u * step, end);
    return (weight_at(t, end) * v0 + weight_at(t + step, end) * v1) +
           (weight_at(t + 2u * step, end) * v2 + weight_at(t + 3u * step, end) * v3) +
           (weight_at(t + 4u * step, end) * v4 + weight_at(t + 5u * step, end) * v5) +
           (weight_at(t + 6u * step, end) * v6 + weight_at(t + 7u * step, end) * v7);
}

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

    let cached = cached_end(last);
    var score = 0.0;
    if (min(tid, last) < cached) {
        let key = place_of(k, tile, kv, size) / 4u + min(tid, last) * fours;
        for (var i = 0u; i < fours; i += 16u) {
            score += eight_products(key, i, fours - 1u) + eight_products(key, i + 8u, fours - 1u);
        }
    } else {
        for (var i = 0u; i < fours; i++) { score += dot(q[i], newest_key(i)); }
    }
    let seen = tid <= last && 64u * tile + tid >= k.begin;
    score *= op.f0;
    if (op.f2 > 0.0) { score = soft_cap(score, op.f2); }
    score = select(LOWEST, score, seen);
    let top = group_max(tid, score);
    let weight = exp1(score - top);
    let sum = group_sum(tid, weight);
    weights[tid] = weight;
    workgroupBarrier();

    // A four of columns and every so many keys a thread. Those before the window are left alone: in a
    // ring they may be under way to be others.
    let slices = 64u / fours;
    let begin = max(k.begin, 64u * tile) - 64u * tile;
    let values = place_of(k, tile, u32(op.i1) + kv, size) / 4u + tid % fours;
    var o = vec4<f32>();
    if (tid < slices * fours) {
        for (var t = begin + tid / fours; t < cached; t += 16u * slices) {
            o += eight_values(values, fours, t, slices, cached) +
                 eight_values(values, fours, t + 8u * slices, slices, cached);
        }
        if (tid < fours && cached <= last) { o += weights[cached] * newest_value(tid); }
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
