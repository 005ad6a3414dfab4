// SPDX-License-Identifier: Apache-2.0
// attention_rows.wgsl - queries of rows whose keys and values the cache holds already.
@group(0) @binding(2) var<storage, read_write> qkv: array<Four>;

var<private> newest: u32; // as in attention_step.wgsl
var<private> newest_at: vec2<u32>; // where its key and its value begin

fn begin_row(tid: u32, row: u32, head: u32, k: Keys, tile: u32, last: u32) {
    let fours = u32(op.i2) / 4u;
    let query = row * (op.ins[0].cols / 4u) + head * fours;
    newest = 64u;
    if (64u * tile + last + 1u == k.end) {
        let kv = head / (u32(op.i0) / u32(op.i1));
        newest = last;
        newest_at = vec2<u32>(place_of(k, tile, kv, u32(op.i2)) / 4u + last * fours,
                              place_of(k, tile, u32(op.i1) + kv, u32(op.i2)) / 4u + last * fours);
    }
    q[tid] = vec4<f32>();
    if (tid < fours) { q[tid] = as_vec4(qkv[query + tid]); }
}

// The row's own key is taken apart, as attention_step.wgsl has to: their bits are the same.
fn cached_end(last: u32) -> u32 { return min(newest, last + 1u); }
fn newest_key(i: u32) -> vec4<f32> { return cache_four(newest_at.x + i); }
fn newest_value(i: u32) -> vec4<f32> { return cache_four(newest_at.y + i); }
