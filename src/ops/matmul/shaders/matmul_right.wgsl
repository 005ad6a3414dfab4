// SPDX-License-Identifier: Apache-2.0
// matmul_right.wgsl - the right operand of matmul_core.wgsl where it lies in fours. The text with the
// operands has fetch_right(which, at), the four at this number.
alias Right = Block;

fn right_rows(block: u32, first: u32, rows: u32, pitch: u32, by_k: bool) -> vec4<u32> {
    return rows_of_block(block, first, rows, pitch, by_k);
}
fn fetch_right_block(which: u32, rows: vec4<u32>, k: u32, to: u32, pitch: u32, by_k: bool) -> Right {
    let at = fours_of_block(rows, k, to, pitch, by_k);
    return Block(fetch_right(which, at.x), fetch_right(which, at.y), fetch_right(which, at.z),
                 fetch_right(which, at.w));
}
fn right_block(r: Right, k: u32, by_k: bool) -> Block { return turned(r, by_k); }
fn right_sum(r: Right) -> vec4<f32> { return r.v0 + r.v1 + r.v2 + r.v3; }
