// matmul_back_gather.wgsl - dw and db from the parts that matmul_back.wgsl made.
@group(0) @binding(2) var<storage, read_write> partial: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> dw: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> db: array<vec4<f32>>;

struct Sizes { m: u32, n: u32, k: u32 }

@compute @workgroup_size(64)
fn gather(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
          @builtin(local_invocation_index) tid: u32) {
    let s = Sizes(op.ins[1].rows, op.ins[0].cols, op.ins[0].rows);
    let of_dw = s.m * s.n / 4u;
    let fours = of_dw + s.n / 4u;
    let at = group_of(id, count) * 64u + tid;
    if (at >= fours) { return; }
    var sum = vec4<f32>();
    for (var part = 0u; part < split_of(s); part++) { sum += partial[part * fours + at]; }
    if (at < of_dw) {
        if (member_adds(1u)) { sum += dw[at]; }
        dw[at] = sum;
    } else {
        if (member_adds(2u)) { sum += db[at - of_dw]; }
        db[at - of_dw] = sum;
    }
}
