// SPDX-License-Identifier: Apache-2.0
// norm_matmul.wgsl - a for products that norm it as they read it: y = scale * sum of a * gain * b,
// where the scale is known once the whole row has been seen. So no thread waits for it.
@group(0) @binding(2) var<storage, read_write> a: array<Four>;
@group(0) @binding(5) var<storage, read_write> gain: array<Four>;

const NORMED = true;
var<private> square: f32; // the sum of squares of all that this thread has read

// What a four of f(a) is made of, the i-th of a row, and what becomes of both.
fn first_of(row: u32, i: u32, depth: u32) -> vec4<f32> { return as_vec4(a[row * depth / 4u + i]); }
fn second_of(row: u32, i: u32, depth: u32) -> vec4<f32> { return as_vec4(gain[i]); }
fn both_of(x: vec4<f32>, by: vec4<f32>) -> vec4<f32> {
    square += dot(x, x);
    return x * by;
}
fn values(row: u32, m: u32, k: u32, depth: u32) -> vec4<f32> {
    if (k >= depth) { return vec4<f32>(); }
    return both_of(first_of(row, k / 4u, depth), second_of(row, k / 4u, depth));
}

// What is added to a sum that becomes y[row, j].
fn behind(row: u32, j: u32) -> f32 {
    if (!is_here(2u)) { return 0.0; }
    return bias[j];
}

fn finish(row: u32, j: u32, sum: f32) {
    y[place_in_y(row, j)] = sum + behind(row, j);
}
