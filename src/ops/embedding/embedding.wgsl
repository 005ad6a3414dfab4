// SPDX-License-Identifier: Apache-2.0
// embedding.wgsl - y[n,:] = scale * table[ids[n],:].
@group(0) @binding(2) var<storage, read_write> ids: array<i32>;
@group(0) @binding(3) var<storage, read_write> table: array<f32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let cols = op.ins[1].cols;
    let n = out_rows(0u) * cols;
    let first = group_of(id, count) * 1024u + lane;
    let scale = select(op.f0, 1.0, op.f0 == 0.0);
    for (var i = first; i < min(n, first + 1024u); i += 256u) {
        y[i] = scale * table[clamp_id(ids[i / cols], op.ins[1].rows) * cols + i % cols];
    }
}
