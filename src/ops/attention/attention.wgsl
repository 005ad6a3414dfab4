// attention.wgsl - where attention of whole sequences finds its rows. See heads.h.
@group(0) @binding(2) var<storage, read_write> qkv: array<f32>;
@group(0) @binding(3) var<storage, read_write> o_out: array<f32>;
@group(0) @binding(4) var<storage, read_write> lse_out: array<f32>;

struct Place { first: u32, queries: u32, ahead: u32, q: u32, k: u32, v: u32, o: u32, lse: u32 }

fn place_of(s: Heads, group: u32) -> Place {
    let tokens = op.ins[0].dim1;
    let blocks = (tokens + 31u) / 32u;
    let head = group / blocks % s.n_q;
    let b = group / blocks / s.n_q;
    let row = b * tokens * s.row;
    let kv = head / s.group;
    // The last blocks have the most keys, so that they begin first.
    let first = (blocks - 1u - group % blocks) * 32u;
    if (b >= op.ins[0].dim0) { return Place(); }
    return Place(first, tokens, 0u, row + head * s.size, row + (s.n_q + kv) * s.size,
                 row + (s.n_q + s.n_kv + kv) * s.size, b * tokens * s.q_row + head * s.size,
                 (b * s.n_q + head) * tokens);
}

// Four columns from d on, zeros beyond the head. Beyond the sequence is its last row again, which
// nobody sees: no load is under a condition.
fn four(s: Heads, p: Place, at: u32, t: u32, d: u32) -> vec4<f32> {
    let row = at + min(t, p.queries - 1u) * s.row;
    let i = vec4<u32>(row) + columns(s, d);
    return within(s, d, vec4<f32>(qkv[i.x], qkv[i.y], qkv[i.z], qkv[i.w]));
}

fn load_q(s: Heads, p: Place, t: u32, d: u32) -> vec4<f32> { return four(s, p, p.q, t, d); }
fn load_k(s: Heads, p: Place, t: u32, d: u32) -> vec4<f32> { return four(s, p, p.k, t, d); }
fn load_v(s: Heads, p: Place, t: u32, d: u32) -> vec4<f32> { return four(s, p, p.v, t, d); }

fn write_o(s: Heads, p: Place, t: u32, d: u32, x: f32) { o_out[p.o + t * s.q_row + d] = x; }
fn write_lse(p: Place, t: u32, x: f32) { lse_out[p.lse + t] = x; }
