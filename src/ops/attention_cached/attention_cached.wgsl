// SPDX-License-Identifier: Apache-2.0
// attention_cached.wgsl - where attention of new tokens to the KV cache finds its rows.
//
//     qkv [T,(H+2K)*D]      cache [2,K,Tmax,D], rows 2 * K * Tmax: keys, then values
@group(0) @binding(2) var<storage, read_write> qkv: array<Four>;
@group(0) @binding(3) var<storage, read_write> cache: array<Four>;
@group(0) @binding(4) var<storage, read_write> o_out: array<f32>;

struct Place { first: u32, ahead: u32, q: Rows, k: Rows, v: Rows }

fn place_of(s: Heads, group: u32) -> Place {
    let rows = in_rows(0u);
    let blocks = (rows + 31u) / 32u;
    let head = group / blocks;
    let t_max = op.ins[1].rows / (2u * s.n_kv);
    let kv = head / s.group;
    return Place(select(group % blocks * 32u, rows, head >= s.n_q), rt.pos,
                 Rows(0u, head * s.size, s.row, rows),
                 Rows(1u, kv * t_max * s.size, s.size, rows + rt.pos),
                 Rows(1u, (s.n_kv + kv) * t_max * s.size, s.size, rows + rt.pos));
}

fn take(which: u32, at: u32) -> vec4<f32> {
    if (which == 0u) { return as_vec4(qkv[at]); }
    return as_vec4(cache[at]);
}
fn write_o(s: Heads, p: Place, t: u32, d: u32, x: f32) { o_out[p.q.at + t * s.q_row + d] = x; }
fn write_lse(p: Place, t: u32, x: f32) {}
