// SPDX-License-Identifier: Apache-2.0
// kv_append.wgsl - keys and values of the call's rows go into pages of the cache.
//
//     qkv [T,(H+2K)*D]      cache [P,2K,R,D]: dim0 is P, dim1 2K; rows are P * 2K * R
//     at [T,2]              pages [S,C]; see pages.h
@group(0) @binding(2) var<storage, read_write> qkv: array<f32>;
@group(0) @binding(3) var<storage, read_write> at: array<i32>;
@group(0) @binding(4) var<storage, read_write> pages: array<i32>;
@group(0) @binding(5) var<storage, read_write> cache: array<f32>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let size = u32(op.i2);
    let heads = op.outs[0].dim1; // keys, then values
    let page_rows = op.outs[0].rows / (op.outs[0].dim0 * heads);
    let row = op.ins[1].cols;
    let n_cols = op.ins[3].cols;
    let n = in_rows(1u) * heads * size;
    let first = group_of(id, count) * 1024u + lane;
    for (var i = first; i < min(n, first + 1024u); i += 256u) {
        let t = i / (heads * size);
        let in_row = i % (heads * size);
        let sequence = clamp_id(at[2u * t], op.ins[3].rows);
        let position = u32(at[2u * t + 1u]);
        let page = pages[sequence * n_cols + position / page_rows % n_cols];
        let head = clamp_id(page, op.outs[0].dim0) * heads + in_row / size;
        cache[(head * page_rows + position % page_rows) * size + in_row % size] =
            qkv[t * row + u32(op.i0) * size + in_row];
    }
}
