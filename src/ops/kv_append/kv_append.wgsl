// SPDX-License-Identifier: Apache-2.0
// kv_append.wgsl - keys and values of the call's rows go into pages of the cache.
//
//     qkv [T,(H+2K)*D]      cache [P,2K,R,D]: dim0 is P, dim1 2K; rows are P * 2K * R
//     at [T,2]              pages [S,C]; see pages.h and pages.wgsl
@group(0) @binding(2) var<storage, read_write> qkv: array<f32>;
@group(0) @binding(3) var<storage, read_write> at: array<i32>;
@group(0) @binding(4) var<storage, read_write> pages: array<i32>;
@group(0) @binding(5) var<storage, read_write> cache: array<f32>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let size = u32(op.i2);
    let c = cache_of(op.outs[0], op.ins[3]);
    let row = op.ins[1].cols;
    let n = in_rows(1u) * c.heads * size;
    let first = group_of(id, count) * 1024u + lane;
    for (var i = first; i < min(n, first + 1024u); i += 256u) {
        let t = i / (c.heads * size);
        let in_row = i % (c.heads * size);
        let table = clamp_id(at[2u * t], op.ins[3].rows) * c.n_cols;
        let to = cache_row(c, table, in_row / size, u32(at[2u * t + 1u])) * size;
        cache[to + in_row % size] = qkv[t * row + u32(op.i0) * size + in_row];
    }
}
