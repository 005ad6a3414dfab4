// SPDX-License-Identifier: Apache-2.0
// attention.wgsl - where attention of whole sequences finds its rows. See heads.h.
@group(0) @binding(2) var<storage, read_write> qkv: array<Four>;
@group(0) @binding(3) var<storage, read_write> o_out: array<f32>;
@group(0) @binding(4) var<storage, read_write> lse_out: array<f32>;

struct Place { first: u32, ahead: u32, q: Rows, k: Rows, v: Rows, o: u32, lse: u32 }

fn place_of(s: Heads, group: u32, tid: u32) -> Place {
    let tokens = op.ins[0].dim1;
    let blocks = (tokens + 31u) / 32u;
    let all = s.n_q * op.ins[0].dim0;
    let b = group % all / s.n_q;
    let head = group % s.n_q;
    let row = b * tokens * s.row;
    let kv = head / s.group;
    // The last blocks of all heads have the most keys, so that they begin first.
    let first = (blocks - 1u - group / all) * 32u;
    return Place(select(first, tokens, group >= all * blocks), 0u,
                 Rows(0u, row + head * s.size, s.row, tokens),
                 Rows(0u, row + (s.n_q + kv) * s.size, s.row, tokens),
                 Rows(0u, row + (s.n_q + s.n_kv + kv) * s.size, s.row, tokens),
                 b * tokens * s.q_row + head * s.size, (b * s.n_q + head) * tokens);
}

fn row_places(s: Heads, r: Rows, t: vec4<u32>) -> vec4<u32> { return vec4<u32>(r.at) + t * r.step; }
fn take(which: u32, at: u32) -> vec4<f32> { return as_vec4(qkv[at]); }
fn write_o(s: Heads, p: Place, t: u32, d: u32, x: f32) { o_out[p.o + t * s.q_row + d] = x; }
fn write_lse(p: Place, t: u32, x: f32) { lse_out[p.lse + t] = x; }
