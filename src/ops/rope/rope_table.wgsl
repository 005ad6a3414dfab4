// SPDX-License-Identifier: Apache-2.0
// rope_table.wgsl - cosines and sines of rotary positions, a pair a thread.
@group(0) @binding(2) var<storage, read_write> like: array<i32>;
@group(0) @binding(3) var<storage, read_write> freq: array<f32>;
@group(0) @binding(4) var<storage, read_write> table: array<f32>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let half = op.outs[0].cols / 2u;
    let n = out_rows(0u) * half;
    let first = group_of(id, count) * 1024u + lane;
    for (var i = first; i < min(n, first + 1024u); i += 256u) {
        let t = i / half;
        let k = i % half;
        var pos = i32(t);
        if (op.i0 == 1) { pos = like[2u * t + 1u]; }
        if (op.i0 == 2) { pos = like[t]; }
        let both = cos_sin(f32(pos) * freq[k]) * select(1.0, op.f0, op.f0 > 0.0);
        table[2u * half * t + k] = both.x;
        table[2u * half * t + half + k] = both.y;
    }
}
