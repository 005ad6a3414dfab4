// SPDX-License-Identifier: Apache-2.0
// matmul_values.wgsl - a for those that read it float by float.
@group(0) @binding(2) var<storage, read_write> a: array<f32>;

fn value(row: u32, k: u32, depth: u32) -> f32 {
    if (k >= depth) { return 0.0; }
    if (op.i3 == 0) { return a[row * depth + k]; }
    let i = 2u * row * depth + k;
    return select(gelu_tanh(a[i]), silu(a[i]), op.i3 == 1) * a[i + depth];
}

// f(a)[row, k .. k + 3], zeros beyond what there is.
fn values(row: u32, m: u32, k: u32, depth: u32) -> vec4<f32> {
    if (row >= m) { return vec4<f32>(); }
    return vec4<f32>(value(row, k, depth), value(row, k + 1u, depth), value(row, k + 2u, depth),
                     value(row, k + 3u, depth));
}
