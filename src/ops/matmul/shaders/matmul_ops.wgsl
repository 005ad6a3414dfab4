// SPDX-License-Identifier: Apache-2.0
// matmul_ops.wgsl - operands of matmul for matmul_core.wgsl. The text before this one says TRANS.
//
//     0  a [M,K] b [K,N]    1  a [K,M] b [K,N]    2  a [M,K] b [N,K]
@group(0) @binding(2) var<storage, read_write> a: array<Four>;
@group(0) @binding(3) var<storage, read_write> b: array<Four>;

fn left_by_k(which: u32) -> bool { return TRANS != 1; }
fn right_by_k(which: u32) -> bool { return TRANS == 2; }
fn fetch_left(which: u32, at: u32) -> vec4<f32> { return as_vec4(a[at]); }
fn fetch_right(which: u32, at: u32) -> vec4<f32> { return as_vec4(b[at]); }

fn sizes() -> Sizes {
    let rows = in_rows(0u);
    let cols = op.ins[0].cols;
    return Sizes(select(rows, cols, TRANS == 1), select(op.ins[1].cols, op.ins[1].rows, TRANS == 2),
                 select(cols, rows, TRANS == 1));
}
