// SPDX-License-Identifier: Apache-2.0
// bias_grad.wgsl - column sums: partial sums of 64 rows, then the sum of those.
@group(0) @binding(2) var<storage, read_write> dy: array<f32>;
@group(0) @binding(3) var<storage, read_write> db: array<f32>;
@group(0) @binding(4) var<storage, read_write> partial: array<f32>;

@compute @workgroup_size(64)
fn parts(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
         @builtin(local_invocation_index) lane: u32) {
    let cols = op.ins[0].cols;
    let across = (cols + 63u) / 64u;
    let group = group_of(id, count);
    let part = group / across;
    let c = group % across * 64u + lane;
    let rows = op.ins[0].rows;
    if (part * 64u >= rows || c >= cols) { return; }
    var sum = 0.0;
    for (var r = part * 64u; r < min(rows, part * 64u + 64u); r++) { sum += dy[r * cols + c]; }
    partial[part * cols + c] = sum;
}

@compute @workgroup_size(64)
fn total(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
         @builtin(local_invocation_index) lane: u32) {
    let cols = op.ins[0].cols;
    let c = group_of(id, count) * 64u + lane;
    if (c >= cols) { return; }
    var sum = 0.0;
    for (var part = 0u; part * 64u < op.ins[0].rows; part++) { sum += partial[part * cols + c]; }
    if (adds(0u)) { sum += db[c]; }
    db[c] = sum;
}
