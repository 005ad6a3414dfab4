// SPDX-License-Identifier: Apache-2.0
// attention_keys.wgsl - which keys a token sees, and where what was found of 64 of them is left: for
// those that go through rows one by one. See attention_one.wgsl.
@group(0) @binding(4) var<storage, read_write> at: array<i32>;
@group(0) @binding(5) var<storage, read_write> pages: array<i32>;
@group(0) @binding(7) var<storage, read_write> part: array<f32>;

const LOWEST = -0x1p127f;

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
