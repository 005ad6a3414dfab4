// SPDX-License-Identifier: Apache-2.0
// position_add.wgsl - y[b,t,:] = x[b,t,:] + p[pos[t],:].
@group(0) @binding(2) var<storage, read_write> x: array<f32>;
@group(0) @binding(3) var<storage, read_write> p: array<f32>;
@group(0) @binding(4) var<storage, read_write> at: array<i32>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let cols = op.ins[0].cols;
    let rows = in_rows(0u);
    let tokens = select(rows, op.ins[0].dim1, in_dims(0u) == 3u); // of [T,C] or [B,T,C]
    let first = group_of(id, count) * 1024u + lane;
    for (var i = first; i < min(rows * cols, first + 1024u); i += 256u) {
        var pos = i / cols % tokens;
        if (is_here(2u)) { pos = clamp_id(at[2u * (i / cols) + 1u], op.ins[1].rows); }
        let row = min(pos, op.ins[1].rows - 1u);
        y[i] = x[i] + p[row * cols + i % cols];
    }
}
