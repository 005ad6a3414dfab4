// SPDX-License-Identifier: Apache-2.0
// rms_norm.wgsl - y = x / rms(x) * w (+ r), a row or a group of its columns a workgroup.
@group(0) @binding(2) var<storage, read_write> x: array<f32>;
@group(0) @binding(3) var<storage, read_write> w: array<f32>;
@group(0) @binding(4) var<storage, read_write> residual: array<f32>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;

// Columns that a thread takes at once: c, c + 64, + 128 and + 192. Those beyond the row's end are
// asked for at its last column.
fn columns(c: u32, cols: u32) -> vec4<u32> {
    return min(vec4<u32>(c, c + 64u, c + 128u, c + 192u), vec4<u32>(cols - 1u));
}

fn x_at(start: u32, c: vec4<u32>) -> vec4<f32> {
    return vec4<f32>(x[start + c.x], x[start + c.y], x[start + c.z], x[start + c.w]);
}

// No load is behind a store: a compiler cannot know that they don't meet, so each would be awaited.
@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let row = group_of(id, count);
    let groups = max(1u, u32(op.i0));
    let cols = op.ins[0].cols / groups;
    if (row >= in_rows(0u) * groups) { return; }
    let start = row * cols;
    let gain = row % groups * cols;
    var square = 0.0;
    for (var first = lane; first < cols; first += 256u) {
        let v = x_at(start, columns(first, cols));
        for (var e = 0u; e < 4u; e++) {
            if (first + 64u * e < cols) { square = fma(v[e], v[e], square); }
        }
    }
    let scale = 1.0 / sqrt(group_sum(lane, square) / f32(cols) + op.f0);
    for (var first = lane; first < cols; first += 256u) {
        let c = columns(first, cols);
        var v = x_at(start, c) * scale *
                vec4<f32>(w[gain + c.x], w[gain + c.y], w[gain + c.z], w[gain + c.w]);
        if (is_here(2u)) {
            v += vec4<f32>(residual[start + c.x], residual[start + c.y], residual[start + c.z],
                           residual[start + c.w]);
        }
        for (var e = 0u; e < 4u; e++) {
            if (first + 64u * e < cols) { y[start + c[e]] = v[e]; }
        }
    }
}
