// SPDX-License-Identifier: Apache-2.0
// matmul_back_gather.wgsl - dx, dw and db from the parts that matmul_back.wgsl made, where it made any.
@group(0) @binding(2) var<storage, read_write> partial: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> dx: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> z: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> dw: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read_write> db: array<vec4<f32>>;

fn sum_of(start: u32, parts: u32, fours: u32, at: u32) -> vec4<f32> {
    var sum = vec4<f32>();
    for (var part = 0u; part < parts; part++) { sum += partial[start + part * fours + at]; }
    return sum;
}

@compute @workgroup_size(64)
fn gather(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
          @builtin(local_invocation_index) tid: u32) {
    let rows = op.ins[0].rows;
    let n_out = op.ins[0].cols;
    let n_in = op.ins[1].rows;
    let parts_x = (n_out + op.word - 1u) / op.word;
    let parts_w = (rows + op.word - 1u) / op.word;
    let of_x = select(0u, rows * n_in / 4u, parts_x > 1u);
    let of_w = select(0u, n_in * n_out / 4u, parts_w > 1u);
    let fours = of_w + select(0u, n_out / 4u, parts_w > 1u);
    let at = group_of(id, count) * 64u + tid;
    if (at < of_x) {
        finish_dx(at, sum_of(0u, parts_x, of_x, at));
    } else if (at < of_x + fours) {
        let sum = sum_of(parts_x * of_x, parts_w, fours, at - of_x);
        if (at < of_x + of_w) { finish_dw(at - of_x, sum); } else { finish_db(at - of_x - of_w, sum); }
    }
}
