// SPDX-License-Identifier: Apache-2.0
// matrices.wgsl - tiles of halves in a workgroup's memory, and products of 16 x 16 of them by a
// subgroup of 32, with sums in f32. matrices_plain.wgsl says the same without matrices.
//
// The text before this one says for each tile its number of halves (LEFT_SIZE, RIGHT_SIZE), how far
// apart its rows are (LEFT_PITCH, RIGHT_PITCH), and whether they go along k (LEFT_BY_K, RIGHT_BY_K).
alias Left = subgroup_matrix_left<f16, 16, 16>;
alias Right = subgroup_matrix_right<f16, 16, 16>;
alias Sums = subgroup_matrix_result<f32, 16, 16>;
var<workgroup> tile_left: array<f16, LEFT_SIZE>;
var<workgroup> tile_right: array<f16, RIGHT_SIZE>;
var<workgroup> kept_sums: array<f32, 1024>; // 256 of a subgroup

// Eight halves, as pack2x16float gives them, from half `at` on.
fn store_left(at: u32, v: vec4<u32>) {
    let h0 = bitcast<vec2<f16>>(v.x);
    let h1 = bitcast<vec2<f16>>(v.y);
    let h2 = bitcast<vec2<f16>>(v.z);
    let h3 = bitcast<vec2<f16>>(v.w);
    tile_left[at] = h0.x;
    tile_left[at + 1u] = h0.y;
    tile_left[at + 2u] = h1.x;
    tile_left[at + 3u] = h1.y;
    tile_left[at + 4u] = h2.x;
    tile_left[at + 5u] = h2.y;
    tile_left[at + 6u] = h3.x;
    tile_left[at + 7u] = h3.y;
}
fn store_right(at: u32, v: vec4<u32>) {
    let h0 = bitcast<vec2<f16>>(v.x);
    let h1 = bitcast<vec2<f16>>(v.y);
    let h2 = bitcast<vec2<f16>>(v.z);
    let h3 = bitcast<vec2<f16>>(v.w);
    tile_right[at] = h0.x;
    tile_right[at + 1u] = h0.y;
    tile_right[at + 2u] = h1.x;
    tile_right[at + 3u] = h1.y;
    tile_right[at + 4u] = h2.x;
    tile_right[at + 5u] = h2.y;
    tile_right[at + 6u] = h3.x;
    tile_right[at + 7u] = h3.y;
}

// The 16 x 16 that begin at half `at`.
fn left_at(at: u32) -> Left {
    return subgroupMatrixLoad<Left>(&tile_left, at, !LEFT_BY_K, LEFT_PITCH);
}
fn right_at(at: u32) -> Right {
    return subgroupMatrixLoad<Right>(&tile_right, at, RIGHT_BY_K, RIGHT_PITCH);
}
fn multiplied(l: Left, r: Right, sums: Sums) -> Sums {
    return subgroupMatrixMultiplyAccumulate(l, r, sums);
}
// Row after row into `kept_sums`, from `at` on.
fn keep_sums(at: u32, sums: Sums, lane: u32) {
    subgroupMatrixStore(&kept_sums, at, sums, false, 16u);
}
// Once, before the others.
fn begin_matrices(tid: u32) {}
