// SPDX-License-Identifier: Apache-2.0
// matmul_values_fours.wgsl - a for those that read it in whole fours.
@group(0) @binding(2) var<storage, read_write> a: array<Four>;

const NORMED = false; // norm_matmul.wgsl says what this and `square` are
var<private> square: f32;

// What a four of f(a) is made of, the i-th of a row, and what becomes of both.
fn first_of(row: u32, i: u32, depth: u32) -> vec4<f32> {
    return as_vec4(a[select(2u, 1u, op.i3 == 0) * row * depth / 4u + i]);
}
fn second_of(row: u32, i: u32, depth: u32) -> vec4<f32> {
    if (op.i3 == 0) { return vec4<f32>(); }
    return as_vec4(a[(2u * row + 1u) * depth / 4u + i]);
}
fn both_of(x: vec4<f32>, by: vec4<f32>) -> vec4<f32> {
    if (op.i3 == 0) { return x; }
    if (op.i3 == 1) { return vec4<f32>(silu(x.x), silu(x.y), silu(x.z), silu(x.w)) * by; }
    return vec4<f32>(gelu_tanh(x.x), gelu_tanh(x.y), gelu_tanh(x.z), gelu_tanh(x.w)) * by;
}
fn values(row: u32, m: u32, k: u32, depth: u32) -> vec4<f32> {
    if (k >= depth) { return vec4<f32>(); }
    return both_of(first_of(row, k / 4u, depth), second_of(row, k / 4u, depth));
}
