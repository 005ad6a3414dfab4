// SPDX-License-Identifier: Apache-2.0
// muon_momentum.wgsl - momentum of a block; m stays when stats' ok is 0.
@group(0) @binding(2) var<storage, read_write> grads: array<f32>;
@group(0) @binding(3) var<storage, read_write> stats: array<f32>;
@group(0) @binding(4) var<storage, read_write> m: array<f32>;
@group(0) @binding(5) var<storage, read_write> u: array<f32>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let first = group_of(id, count) * 1024u + lane;
    for (var e = first; e < min(block_elems(), first + 1024u); e += 256u) {
        let at = block_at(e);
        let g = (1.0 - op.f0) * (stats[1] * grads[at]);
        let new_m = fma(op.f0, m[at], g);
        u[e] = fma(op.f0, new_m, g);
        if (stats[2] != 0.0) { m[at] = new_m; }
    }
}
