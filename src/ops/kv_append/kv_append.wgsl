// SPDX-License-Identifier: Apache-2.0
// kv_append.wgsl - keys and values of the call's rows go into the cache, from pos on, a ring.
//
//     qkv [T,(H+2K)*D]      cache [2,K,Tmax,D]: dim0 is 2, dim1 K; rows are 2 * K * Tmax
@group(0) @binding(2) var<storage, read_write> qkv: array<f32>;
@group(0) @binding(3) var<storage, read_write> cache: array<f32>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let size = u32(op.i2);
    let heads = 2u * u32(op.i1); // keys, then values
    let t_max = op.outs[0].rows / heads;
    let row = op.ins[1].cols;
    let n = in_rows(1u) * heads * size;
    let first = group_of(id, count) * 1024u + lane;
    for (var i = first; i < min(n, first + 1024u); i += 256u) {
        let t = i / (heads * size);
        let in_row = i % (heads * size);
        cache[(in_row / size * t_max + (rt.pos + t) % t_max) * size + in_row % size] =
            qkv[t * row + u32(op.i0) * size + in_row];
    }
}
