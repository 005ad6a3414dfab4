// SPDX-License-Identifier: Apache-2.0
// attention_rows.wgsl - queries of rows whose keys and values the cache holds already.
@group(0) @binding(2) var<storage, read_write> qkv: array<Four>;

fn begin_row(tid: u32, row: u32, head: u32, k: Keys, tile: u32, last: u32) {
    let fours = u32(op.i2) / 4u;
    let query = row * (op.ins[0].cols / 4u) + head * fours;
    for (var e = tid; e < fours; e += 64u) { q[e] = as_vec4(qkv[query + e]); }
}

fn key_four(t: u32, i: u32, place: u32) -> vec4<f32> { return cache_four(place); }
fn value_four(t: u32, i: u32, place: u32) -> vec4<f32> { return cache_four(place); }
