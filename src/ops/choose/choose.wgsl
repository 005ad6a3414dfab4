// SPDX-License-Identifier: Apache-2.0
// choose.wgsl - each piece of a row from x, a or b, or zeros, as mode says.
@group(0) @binding(2) var<storage, read_write> mode: array<i32>;
@group(0) @binding(3) var<storage, read_write> x: array<f32>;
@group(0) @binding(4) var<storage, read_write> a: array<f32>;
@group(0) @binding(5) var<storage, read_write> b: array<f32>;
@group(0) @binding(6) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let cols = op.outs[0].cols;
    let n = out_rows(0u) * cols;
    let piece = cols / op.ins[0].cols;
    let first = group_of(id, count) * 1024u + lane;
    for (var i = first; i < min(n, first + 1024u); i += 256u) {
        let start = mode[i / piece];
        var v = 0.0;
        if (start == 0 && is_here(1u)) { v = x[i]; }
        if (start == 1 && is_here(2u)) { v = a[i]; }
        if (start == 2 && is_here(3u)) { v = b[i]; }
        y[i] = v;
    }
}
