// SPDX-License-Identifier: Apache-2.0
// attention_rows.wgsl - queries of rows whose keys and values the cache holds already.
@group(0) @binding(2) var<storage, read_write> qkv: array<Four>;

fn begin_row(tid: u32, row: u32, head: u32, k: Keys, tile: u32, last: u32) {
    let fours = u32(op.i2) / 4u;
    let query = row * (op.ins[0].cols / 4u) + head * fours;
    q[tid] = vec4<f32>();
    if (tid < fours) { q[tid] = as_vec4(qkv[query + tid]); }
}

fn cached_end(last: u32) -> u32 { return last + 1u; }
fn newest_key(i: u32) -> vec4<f32> { return vec4<f32>(); }
fn newest_value(i: u32) -> vec4<f32> { return vec4<f32>(); }
