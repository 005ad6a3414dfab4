// SPDX-License-Identifier: Apache-2.0
// matmul_values.wgsl - a for those that read it float by float.
@group(0) @binding(2) var<storage, read_write> a: array<f32>;

const NORMED = false; // norm_matmul.wgsl says what this and `square` are
var<private> square: f32;

fn value(row: u32, k: u32, depth: u32) -> f32 {
    if (k >= depth) { return 0.0; }
    if (op.i3 == 0) { return a[row * depth + k]; }
    let i = 2u * row * depth + k;
    return select(gelu_tanh(a[i]), silu(a[i]), op.i3 == 1) * a[i + depth];
}

// f(a)[row, k .. k + 3], zeros beyond what there is. Where all four are there, they are asked for at
// once: a branch before each would have every thread wait for memory four times.
fn values(row: u32, m: u32, k: u32, depth: u32) -> vec4<f32> {
    if (row >= m) { return vec4<f32>(); }
    if (k + 3u >= depth) {
        return vec4<f32>(value(row, k, depth), value(row, k + 1u, depth),
                         value(row, k + 2u, depth), value(row, k + 3u, depth));
    }
    let i = select(2u, 1u, op.i3 == 0) * row * depth + k;
    let x = vec4<f32>(a[i], a[i + 1u], a[i + 2u], a[i + 3u]);
    if (op.i3 == 0) { return x; }
    let at = i + depth;
    let up = vec4<f32>(a[at], a[at + 1u], a[at + 2u], a[at + 3u]);
    if (op.i3 == 1) { return vec4<f32>(silu(x.x), silu(x.y), silu(x.z), silu(x.w)) * up; }
    return vec4<f32>(gelu_tanh(x.x), gelu_tanh(x.y), gelu_tanh(x.z), gelu_tanh(x.w)) * up;
}
