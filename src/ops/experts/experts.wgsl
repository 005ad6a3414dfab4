// SPDX-License-Identifier: Apache-2.0
// experts.wgsl - rows times the matrices of their experts, an element of y a thread.
@group(0) @binding(2) var<storage, read_write> x: array<f32>;
@group(0) @binding(3) var<storage, read_write> ids: array<i32>;
@group(0) @binding(6) var<storage, read_write> y: array<f32>;

// Four columns from c on; zeros beyond the last.
fn four_of_x(at: u32, c: u32, depth: u32) -> vec4<f32> {
    var v = vec4<f32>();
    for (var i = 0u; i < min(4u, depth - min(c, depth)); i++) { v[i] = x[at + c + i]; }
    return v;
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let i = group_of(id, count) * 64u + lane;
    let across = op.outs[0].cols;
    if (i >= out_rows(0u) * across) { return; }
    let k = op.ins[1].cols;
    let depth = op.ins[2].cols;
    let rows = op.ins[2].rows / u32(op.i0); // of an expert
    let t = i / across;
    let choice = i % across / rows; // and those of the second matrix behind those of the first
    let row = clamp_id(ids[t * k + choice % k], u32(op.i0)) * rows + i % rows;
    let at = t * op.ins[0].cols + select(0u, choice % k * depth, op.i1 != 0);
    var sum = 0.0;
    for (var block = 0u; 32u * block < depth; block++) {
        take_weights(choice / k, row, depth, block);
        var parts = vec4<f32>();
        for (var v = 0u; v < 8u; v++) {
            parts = fma(taken[v], four_of_x(at, 32u * block + 4u * v, depth), parts);
        }
        sum += (parts.x + parts.y) + (parts.z + parts.w);
    }
    y[i] = sum;
}
