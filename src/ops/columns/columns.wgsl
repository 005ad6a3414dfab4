// SPDX-License-Identifier: Apache-2.0
// columns.wgsl - columns i0 .. i0 + i1 of x at column i2 of rows of i3, times f0, on top of base.
@group(0) @binding(2) var<storage, read_write> x: array<f32>;
@group(0) @binding(3) var<storage, read_write> base: array<f32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let all = u32(op.i3);
    let n = in_rows(0u) * all;
    let first = group_of(id, count) * 1024u + lane;
    let scale = select(op.f0, 1.0, op.f0 == 0.0);
    for (var i = first; i < min(n, first + 1024u); i += 256u) {
        let c = i % all;
        var v = 0.0;
        if (is_here(1u)) { v = base[i]; }
        if (c >= u32(op.i2) && c < u32(op.i2 + op.i1)) {
            v += scale * x[i / all * op.ins[0].cols + u32(op.i0) + c - u32(op.i2)];
        }
        y[i] = v;
    }
}
