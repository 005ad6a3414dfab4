// SPDX-License-Identifier: Apache-2.0
// attention_one.wgsl - attention of new tokens to the KV cache, one by one: of each a workgroup for
// 64 keys of a head, then one for a head (flash decoding, Dao et al. 2023). See attention_cached.c
// and pages.h; the text before this one has the cache as floats, or packed. What a token adds up depends on its own sequence alone.
//
//     part [T][H][op.word][D + 2]   of 64 keys: values by their weights, the largest score, and the
//                                   sum of the weights
@group(0) @binding(2) var<storage, read_write> qkv: array<Four>;
@group(0) @binding(4) var<storage, read_write> at: array<i32>;
@group(0) @binding(5) var<storage, read_write> pages: array<i32>;
@group(0) @binding(6) var<storage, read_write> o_out: array<f32>;
@group(0) @binding(7) var<storage, read_write> part: array<f32>;

const LOWEST = -0x1p127f;

var<workgroup> q: array<vec4<f32>, 64>;
var<workgroup> weights: array<f32, 64>;
var<workgroup> sums: array<vec4<f32>, 64>;

// Of a token: keys [begin, end) are seen; the first tile of 64 with such; where its sequence has its
// pages.
struct Keys { begin: u32, end: u32, first: u32, table: u32 }
var<workgroup> keys_here: Keys;

// What is in memory may not be the same for all threads, so one looks, and the others are told.
fn keys_of(row: u32, tid: u32) -> Keys {
    if (tid == 0u) {
        let end = u32(at[2u * row + 1u]) + 1u;
        let begin = select(0u, end - min(end, u32(op.i3)), op.i3 > 0);
        let table = clamp_id(at[2u * row], op.ins[3].rows) * op.ins[3].cols;
        keys_here = Keys(begin, end, begin / 64u, table);
    }
    return workgroupUniformLoad(&keys_here);
}

// Where the key or value of a tile's first position begins, of a head of the cache.
fn place_of(k: Keys, tile: u32, head: u32, size: u32) -> u32 {
    return cache_row(cache_of(op.ins[1], op.ins[3]), k.table, head, 64u * tile) * size;
}

fn part_place(row: u32, head: u32, slot: u32, size: u32) -> u32 {
    return ((row * u32(op.i0) + head) * op.word + slot) * (size + 2u);
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
    let query = row * (op.ins[0].cols / 4u) + head * fours;
    for (var e = tid; e < fours; e += 64u) { q[e] = as_vec4(qkv[query + e]); }
    workgroupBarrier();

    let key = place_of(k, tile, kv, size) / 4u + min(tid, last) * fours;
    var score = 0.0;
    for (var i = 0u; i < fours; i++) { score += dot(q[i], cache_four(key + i)); }
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
            o = fma(vec4<f32>(weights[t]), cache_four(values + t * fours), o);
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

@compute @workgroup_size(64)
fn whole(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
         @builtin(local_invocation_index) tid: u32) {
    let size = u32(op.i2);
    let group = group_of(id, count);
    let head = group % u32(op.i0);
    let row = group / u32(op.i0);
    if (row >= in_rows(0u)) { return; }
    let k = keys_of(row, tid);
    let n = (k.end + 63u) / 64u - k.first;
    var top = LOWEST;
    for (var s = tid; s < n; s += 64u) { top = max(top, part[part_place(row, head, s, size) + size]); }
    top = group_max(tid, top);
    var sum = 0.0;
    for (var s = tid; s < n; s += 64u) {
        let base = part_place(row, head, s, size) + size;
        sum += part[base + 1u] * exp1(part[base] - top);
    }
    sum = group_sum(tid, sum);
    for (var d = tid; d < size; d += 64u) {
        var o = 0.0;
        for (var s = 0u; s < n; s++) {
            let base = part_place(row, head, s, size);
            o = fma(part[base + d], exp1(part[base + size] - top), o);
        }
        o_out[group * size + d] = o / sum;
    }
}
