// SPDX-License-Identifier: Apache-2.0
// delta_net_gate.wgsl - the last pass of delta_net and delta_net_cached: norm and gate of y in place,
// a head of a row a workgroup. gate_at(i) and gain_at(p) are the shader's own.

@compute @workgroup_size(64)
fn gate(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let H = u32(op.i0);
    let P = u32(op.i1);
    let group = group_of(id, count);
    if (group >= in_rows(0u) * H) { return; }
    let own = group * P;
    let from_z = row_of_z(group / H) + group % H * P;
    var sum = 0.0;
    for (var p = lane; p < P; p += 64u) { sum = fma(y[own + p], y[own + p], sum); }
    let scale = inverseSqrt(group_sum(lane, sum) / f32(P) + op.f0);
    for (var p = lane; p < P; p += 64u) {
        y[own + p] = y[own + p] * scale * gain_at(p) * silu(gate_at(from_z + p));
    }
}
