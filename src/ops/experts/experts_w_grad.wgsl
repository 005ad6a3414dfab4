// SPDX-License-Identifier: Apache-2.0
// experts_w_grad.wgsl - gradients of experts' matrices, an element a thread.
@group(0) @binding(2) var<storage, read_write> dy: array<f32>;
@group(0) @binding(3) var<storage, read_write> ids: array<i32>;
@group(0) @binding(4) var<storage, read_write> x: array<f32>;
@group(0) @binding(5) var<storage, read_write> dw: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let i = group_of(id, count) * 64u + lane;
    let depth = op.outs[0].cols;
    if (i >= op.outs[0].rows * depth) { return; }
    let k = op.ins[1].cols;
    let rows = u32(op.i3);
    let expert = i / depth / rows;
    let n = i / depth % rows;
    var sum = 0.0;
    if (adds(0u)) { sum = dw[i]; }
    for (var place = 0u; place < in_rows(1u) * k; place++) {
        if (clamp_id(ids[place], u32(op.i0)) != expert) { continue; }
        let t = place / k;
        let j = place % k;
        let at = t * op.ins[2].cols + select(0u, j * depth, op.i1 != 0);
        sum = fma(dy[t * op.ins[0].cols + (u32(op.i2) * k + j) * rows + n], x[at + i % depth], sum);
    }
    dw[i] = sum;
}
