// SPDX-License-Identifier: Apache-2.0
// embedding_packed.wgsl - y[n,:] = scale * table[ids[n],:] of a table as model files have it: 32
// columns a thread.
@group(0) @binding(2) var<storage, read_write> ids: array<i32>;
@group(0) @binding(3) var<storage, read_write> table: array<u32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

// The block that was taken last, in fours.
var<private> w: array<vec4<f32>, 8>;

fn word(part: u32, i: u32) -> u32 { return table[i]; }
fn four(v: u32, q: vec4<f32>) { w[v] = q; }
fn weight(k: u32) -> f32 { return fma(w[k / 4u][k % 4u], scale[k / 16u], offset[k / 16u]); }

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let cols = op.ins[1].cols;
    let blocks = (cols + 31u) / 32u;
    let i = group_of(id, count) * 256u + lane;
    if (i >= out_rows(0u) * blocks) { return; }
    let token = i / blocks;
    let block = i % blocks;
    let times = select(op.f0, 1.0, op.f0 == 0.0);
    take_block(0u, clamp_id(ids[token], op.ins[1].rows), cols, block);
    for (var k = 0u; k < 32u && 32u * block + k < cols; k++) {
        y[token * cols + 32u * block + k] = times * weight(k);
    }
}
