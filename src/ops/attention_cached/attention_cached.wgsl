// SPDX-License-Identifier: Apache-2.0
// attention_cached.wgsl - where attention of new tokens to the KV cache finds its rows.
//
//     qkv [T,(H+2K)*D]      cache [P,2K,R,D]: dim0 is P, dim1 2K; rows are P * 2K * R; the text
//                           before this one has it as floats, or packed
//     at [T,2]              pages [S,C]; see pages.h and pages.wgsl
//
// A block is up to 32 rows of one sequence; sequences stand behind each other.
@group(0) @binding(2) var<storage, read_write> qkv: array<Four>;
@group(0) @binding(4) var<storage, read_write> at: array<i32>;
@group(0) @binding(5) var<storage, read_write> pages: array<i32>;
@group(0) @binding(6) var<storage, read_write> o_out: array<f32>;

struct Place { first: u32, ahead: u32, q: Rows, k: Rows, v: Rows }

// Of a block: its first row, the row behind its sequence's last one, its sequence, and what is to be
// added to the number of a row for its position (below 0 it wraps around).
struct Block { first: u32, end: u32, sequence: u32, ahead: u32 }
var<workgroup> block_here: Block;

// What is in memory may not be the same for all threads, so one looks, and the others are told.
fn find_block(number: u32) -> Block {
    let rows = in_rows(0u);
    var left = number;
    var row = 0u;
    while (row < rows) {
        var end = rows;
        if (op.ins[3].rows > 1u) {
            end = row + 1u;
            while (end < rows && at[2u * end] == at[2u * row]) { end += 1u; }
        }
        let blocks = (end - row + 31u) / 32u;
        if (left < blocks) {
            return Block(row + 32u * left, end, clamp_id(at[2u * row], op.ins[3].rows),
                         u32(at[2u * row + 1u]) - row);
        }
        left -= blocks;
        row = end;
    }
    return Block(rows, rows, 0u, 0u);
}

fn place_of(s: Heads, group: u32, tid: u32) -> Place {
    let head = group % s.n_q;
    if (tid == 0u) { block_here = find_block(group / s.n_q); }
    let b = workgroupUniformLoad(&block_here);
    let kv = head / s.group;
    let table = b.sequence * op.ins[3].cols;
    return Place(b.first, b.ahead, Rows(0u, head * s.size, s.row, b.end),
                 Rows(1u, kv, table, b.end + b.ahead),
                 Rows(1u, s.n_kv + kv, table, b.end + b.ahead));
}

// Rows of the cache have the head of a page for `at`, and for `step` the place of their sequence in
// the table.
fn row_places(s: Heads, r: Rows, t: vec4<u32>) -> vec4<u32> {
    if (r.which == 0u) { return vec4<u32>(r.at) + t * r.step; }
    let c = cache_of(op.ins[1], op.ins[3]);
    var rows = vec4<u32>();
    for (var i = 0u; i < 4u; i++) { rows[i] = cache_row(c, r.step, r.at, t[i]); }
    return rows * s.size;
}

fn take(which: u32, i: u32) -> vec4<f32> {
    if (which == 0u) { return as_vec4(qkv[i]); }
    return cache_four(i);
}
fn write_o(s: Heads, p: Place, t: u32, d: u32, x: f32) { o_out[p.q.at + t * s.q_row + d] = x; }
fn write_lse(p: Place, t: u32, x: f32) {}
