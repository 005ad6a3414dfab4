// SPDX-License-Identifier: Apache-2.0
// matmul_gather.wgsl - adds up the parts of k, and what follows the product.
@group(0) @binding(2) var<storage, read_write> partial: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> bias: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> residual: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> y: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read_write> z: array<vec4<f32>>;

struct Sizes { m: u32, n: u32, k: u32 }

fn sizes() -> Sizes {
    let rows = in_rows(0u);
    let cols = op.ins[0].cols;
    return Sizes(select(rows, cols, op.i0 == 1), select(op.ins[1].cols, op.ins[1].rows, op.i0 == 2),
                 select(cols, rows, op.i0 == 1));
}

@compute @workgroup_size(64)
fn gather(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
          @builtin(local_invocation_index) tid: u32) {
    let s = sizes();
    let fours = s.m * s.n / 4u;
    let at = group_of(id, count) * 64u + tid;
    if (at >= fours) { return; }
    var sum = vec4<f32>();
    for (var part = 0u; part * op.word < s.k; part++) { sum += partial[part * fours + at]; }
    finish(s, 4u * at / s.n, 4u * at % s.n, sum);
}
