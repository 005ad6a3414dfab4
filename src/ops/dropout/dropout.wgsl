// SPDX-License-Identifier: Apache-2.0
// dropout.wgsl - y = x * mask (+ around). A thread has a block of four elements of a sequence.
@group(0) @binding(2) var<storage, read_write> x: array<f32>;
@group(0) @binding(3) var<storage, read_write> around: array<f32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let sequences = op.ins[0].dim0;
    let n = op.ins[0].rows * op.ins[0].cols / sequences;
    let blocks = (n + 3u) / 4u;
    let all = group_of(id, count) * 256u + lane;
    let sequence = all / blocks;
    if (sequence >= sequences) { return; }
    let index = all % blocks;
    let m = mask_of(op.f0, sequence, u32(op.i0), index);
    for (var e = 0u; e < min(4u, n - 4u * index); e++) {
        let at = sequence * n + 4u * index + e;
        var kept = x[at] * m[e];
        if (is_here(1u)) { kept += around[at]; }
        y[at] = kept;
    }
}
