// SPDX-License-Identifier: Apache-2.0
// blend.wgsl - y = (p x + q z) / max(norm, floor).
@group(0) @binding(2) var<storage, read_write> x: array<f32>;
@group(0) @binding(3) var<storage, read_write> z: array<f32>;
@group(0) @binding(4) var<storage, read_write> stats: array<f32>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let n = in_rows(0u) * op.ins[0].cols;
    let first = group_of(id, count) * 1024u + lane;
    var norm = 1.0;
    if (is_here(2u)) { norm = max(stats[0], op.f2); }
    for (var i = first; i < min(n, first + 1024u); i += 256u) {
        var sum = op.f0 * x[i];
        if (is_here(1u)) { sum = fma(op.f1, z[i], sum); }
        y[i] = sum / norm;
    }
}
