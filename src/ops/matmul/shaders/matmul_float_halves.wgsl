// SPDX-License-Identifier: Apache-2.0
// matmul_float_halves.wgsl - matmul_halves.wgsl of two matrices of floats.
@group(0) @binding(2) var<storage, read_write> a: array<Four>;
@group(0) @binding(3) var<storage, read_write> b: array<Four>;
@group(0) @binding(4) var<storage, read_write> halves: array<vec4<u32>>;
@group(0) @binding(5) var<storage, read_write> scales: array<f32>;

fn scaling() -> f32 {
    if (!is_here(6u)) { return 1.0; }
    return scales[0];
}
fn fetch_left(which: u32, at: u32) -> vec4<f32> { return as_vec4(a[at]); }

fn right_four(row: u32, col: u32, rows: u32, cols: u32) -> vec4<f32> {
    if (row >= rows || col >= cols) { return vec4<f32>(); }
    return as_vec4(b[(row * cols + col) / 4u]);
}

fn put_right_eight(s: Sizes, p: Sizes, start: u32, i: u32) {
    let pitch = select(p.n, p.k, RIGHT_BY_K) / 8u;
    let row = i / pitch;
    if (row >= select(p.k, p.n, RIGHT_BY_K)) { return; }
    let col = i % pitch * 8u;
    let rows = select(s.k, s.n, RIGHT_BY_K);
    let cols = select(s.n, s.k, RIGHT_BY_K);
    let scale = scale_of(op.f1);
    let overflows = op.f1 != 0.0 && is_here(6u);
    halves[start + i] = vec4<u32>(rounded(right_four(row, col, rows, cols), scale, overflows),
                                  rounded(right_four(row, col + 4u, rows, cols), scale, overflows));
}
