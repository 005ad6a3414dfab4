// SPDX-License-Identifier: Apache-2.0
// matmul_common.wgsl - sizes, operands by index and the epilogue: what all shaders of matmul share.
//
//     i0  0  a [M,K] b [K,N]    1  a [K,M] b [K,N]    2  a [M,K] b [N,K]
@group(0) @binding(2) var<storage, read_write> a: array<f32>;
@group(0) @binding(3) var<storage, read_write> b: array<f32>;
@group(0) @binding(4) var<storage, read_write> bias: array<f32>;
@group(0) @binding(5) var<storage, read_write> residual: array<f32>;
@group(0) @binding(6) var<storage, read_write> y: array<f32>;
@group(0) @binding(7) var<storage, read_write> z: array<f32>;

struct Sizes { m: u32, n: u32, k: u32 }

fn sizes() -> Sizes {
    let rows = in_rows(0u);
    let cols = op.ins[0].cols;
    return Sizes(select(rows, cols, op.i0 == 1),
                 select(op.ins[1].cols, op.ins[1].rows, op.i0 == 2),
                 select(cols, rows, op.i0 == 1));
}

fn finish(s: Sizes, i: u32, j: u32, product: f32) {
    let at = i * s.n + j;
    var sum = product;
    if (adds(0u)) { sum += y[at]; }
    if (is_here(2u)) { sum += bias[j]; }
    if (op.i2 != 0) { z[at] = sum; }
    sum = activated(sum, op.i1);
    if (is_here(3u)) { sum += residual[at]; }
    y[at] = sum;
}
