// SPDX-License-Identifier: Apache-2.0
// attention_step.wgsl - of one token whose key and value are not in the cache yet: heads are turned as
// in rope.wgsl, to the bit, and the workgroups whose tile ends with the token's own position have its
// key and value at hand. One of those that share a key head keeps them for later tokens; nobody
// reads that row of the cache. The text before this one has keep(), which leaves in `kept` what the
// cache gives for what is in `turned`.
@group(0) @binding(2) var<storage, read_write> qkv: array<f32>;
@group(0) @binding(6) var<storage, read_write> table: array<f32>;
@group(0) @binding(8) var<storage, read_write> q_norm: array<f32>;
@group(0) @binding(9) var<storage, read_write> k_norm: array<f32>;

var<workgroup> turned: array<f32, 256>;
var<workgroup> kept: array<vec4<f32>, 128>; // the key, and from 64 on the value
var<private> newest: u32; // the number of the token's own position in this tile; 64: it is elsewhere

fn normed(i: u32, at: u32, scale: f32, is_query: bool) -> f32 {
    let x = qkv[at + i];
    if (is_query && is_here(5u)) { return x * scale * q_norm[i]; }
    if (!is_query && is_here(6u)) { return x * scale * k_norm[i]; }
    return x;
}

// Queries, keys and values are numbered through.
fn turn(tid: u32, head: u32) {
    let size = u32(op.i2);
    let at = head * size;
    if (head >= u32(op.i0 + op.i1) || !is_here(4u)) {
        for (var i = tid; i < size; i += 64u) { turned[i] = qkv[at + i]; }
        return;
    }
    let is_query = head < u32(op.i0);
    var scale = 1.0;
    if (is_here(5u) || is_here(6u)) {
        var square = 0.0;
        for (var i = tid; i < size; i += 64u) { square = fma(qkv[at + i], qkv[at + i], square); }
        scale = 1.0 / sqrt(group_sum(tid, square) / f32(size) + op.f1);
    }
    let half = size / 2u;
    for (var i = tid; i < half; i += 64u) {
        let p = normed(i, at, scale, is_query);
        let q = normed(half + i, at, scale, is_query);
        let c = table[i];
        let s = table[half + i];
        turned[i] = fma(p, c, -(q * s));
        turned[half + i] = fma(q, c, p * s);
    }
}

fn turned_four(e: u32) -> vec4<f32> {
    return vec4<f32>(turned[4u * e], turned[4u * e + 1u], turned[4u * e + 2u], turned[4u * e + 3u]);
}

fn begin_row(tid: u32, row: u32, head: u32, k: Keys, tile: u32, last: u32) {
    let queries = u32(op.i0);
    let kv_heads = u32(op.i1);
    turn(tid, head);
    workgroupBarrier();
    q[tid] = vec4<f32>();
    if (tid < u32(op.i2) / 4u) { q[tid] = turned_four(tid); }
    newest = 64u;
    if (64u * tile + last + 1u == k.end) {
        newest = last;
        let each = queries / kv_heads;
        let c = cache_of(op.ins[1], op.ins[3]);
        for (var i = 0u; i < 2u; i++) {
            let here = i * kv_heads + head / each;
            workgroupBarrier();
            turn(tid, queries + here);
            workgroupBarrier();
            keep(tid, 64u * i, cache_row(c, k.table, here, k.end - 1u), head % each == 0u);
        }
    }
}

fn cached_end(last: u32) -> u32 { return min(newest, last + 1u); }
fn newest_key(i: u32) -> vec4<f32> { return kept[i]; }
fn newest_value(i: u32) -> vec4<f32> { return kept[64u + i]; }
