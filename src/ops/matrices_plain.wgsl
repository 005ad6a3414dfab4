// SPDX-License-Identifier: Apache-2.0
// matrices_plain.wgsl - matrices.wgsl where there are none: the same tiles, rounded the same way, so
// that tests see the shaders that use them on any adapter. Nobody would want it for its speed.
//
// A matrix of an operand is the place where it begins. Of the sums, thread l of 32 has eight: row
// l / 2, columns from l % 2 * 8 on.
alias Left = u32;
alias Right = u32;
struct Sums { s: array<f32, 8> }
var<workgroup> tile_left: array<u32, LEFT_SIZE / 2u>;
var<workgroup> tile_right: array<u32, RIGHT_SIZE / 2u>;
var<workgroup> kept_sums: array<f32, 1024>;
var<private> thread: u32; // of the workgroup

fn store_left(at: u32, v: vec4<u32>) {
    for (var i = 0u; i < 4u; i++) { tile_left[at / 2u + i] = v[i]; }
}
fn store_right(at: u32, v: vec4<u32>) {
    for (var i = 0u; i < 4u; i++) { tile_right[at / 2u + i] = v[i]; }
}
fn left_half(at: u32) -> f32 { return unpack2x16float(tile_left[at / 2u])[at % 2u]; }
fn right_half(at: u32) -> f32 { return unpack2x16float(tile_right[at / 2u])[at % 2u]; }

fn left_at(at: u32) -> Left { return at; }
fn right_at(at: u32) -> Right { return at; }
fn multiplied(l: Left, r: Right, before: Sums) -> Sums {
    var sums = before;
    let row = thread % 32u / 2u;
    let col = thread % 2u * 8u;
    for (var k = 0u; k < 16u; k++) {
        let a = left_half(l + select(k * LEFT_PITCH + row, row * LEFT_PITCH + k, LEFT_BY_K));
        for (var c = 0u; c < 8u; c++) {
            let j = col + c;
            let b = right_half(r + select(k * RIGHT_PITCH + j, j * RIGHT_PITCH + k, RIGHT_BY_K));
            sums.s[c] = fma(a, b, sums.s[c]);
        }
    }
    return sums;
}
fn keep_sums(at: u32, sums: Sums, lane: u32) {
    for (var c = 0u; c < 8u; c++) { kept_sums[at + lane * 8u + c] = sums.s[c]; }
}
fn begin_matrices(tid: u32) { thread = tid; }
