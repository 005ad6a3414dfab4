// attention_cached.wgsl - where attention of new tokens to the KV cache finds its rows.
//
//     qkv [T,(H+2K)*D]      cache [2,K,Tmax,D], rows 2 * K * Tmax: keys, then values
@group(0) @binding(2) var<storage, read_write> qkv: array<f32>;
@group(0) @binding(3) var<storage, read_write> cache: array<f32>;
@group(0) @binding(4) var<storage, read_write> o_out: array<f32>;

struct Place { first: u32, queries: u32, ahead: u32, q: u32, k: u32, v: u32 }

fn place_of(s: Heads, group: u32) -> Place {
    let rows = in_rows(0u);
    let blocks = (rows + 31u) / 32u;
    let head = group / blocks;
    if (head >= s.n_q) { return Place(); }
    let t_max = op.ins[1].rows / (2u * s.n_kv);
    let kv = head / s.group;
    return Place(group % blocks * 32u, rows, rt.pos, head * s.size, kv * t_max * s.size,
                 (s.n_kv + kv) * t_max * s.size);
}

// As in attention.wgsl: beyond what is there is the last row again.
fn load_q(s: Heads, p: Place, t: u32, d: u32) -> vec4<f32> {
    let i = vec4<u32>(p.q + min(t, p.queries - 1u) * s.row) + columns(s, d);
    return within(s, d, vec4<f32>(qkv[i.x], qkv[i.y], qkv[i.z], qkv[i.w]));
}

fn of_cache(s: Heads, p: Place, at: u32, t: u32, d: u32) -> vec4<f32> {
    let i = vec4<u32>(at + min(t, p.queries + p.ahead - 1u) * s.size) + columns(s, d);
    return within(s, d, vec4<f32>(cache[i.x], cache[i.y], cache[i.z], cache[i.w]));
}
fn load_k(s: Heads, p: Place, t: u32, d: u32) -> vec4<f32> { return of_cache(s, p, p.k, t, d); }
fn load_v(s: Heads, p: Place, t: u32, d: u32) -> vec4<f32> { return of_cache(s, p, p.v, t, d); }

fn write_o(s: Heads, p: Place, t: u32, d: u32, x: f32) { o_out[t * s.q_row + p.q + d] = x; }
fn write_lse(p: Place, t: u32, x: f32) {}
