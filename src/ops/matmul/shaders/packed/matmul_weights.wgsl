// SPDX-License-Identifier: Apache-2.0
// matmul_weights.wgsl - what products with weights of files share: where the rows of up to three
// matrices lie in y.

fn rows_of(part: u32) -> u32 { return op.ins[select(part + 3u, 1u, part == 0u)].rows; }
// Column j of a row, of all matrices side by side.
fn place_in_y(row: u32, j: u32) -> u32 {
    return row * (rows_of(0u) + rows_of(1u) + rows_of(2u)) + j;
}

// Columns of f(a).
fn depth_of_a() -> u32 { return select(op.ins[0].cols / 2u, op.ins[0].cols, op.i3 == 0); }

// Groups of `each` rows of the matrices, one matrix after the other.
fn groups_in(part: u32, each: u32) -> u32 { return (rows_of(part) + each - 1u) / each; }
fn groups_across(each: u32) -> u32 {
    return groups_in(0u, each) + groups_in(1u, each) + groups_in(2u, each);
}

// Where a group lies: in which matrix, its number there, and the first column of y that the matrix
// has.
struct Place {
    matrix: u32,
    group: u32,
    begin: u32,
}

fn place_of(group: u32, each: u32) -> Place {
    let first = groups_in(0u, each);
    let second = first + groups_in(1u, each);
    if (group >= second) { return Place(2u, group - second, rows_of(0u) + rows_of(1u)); }
    if (group >= first) { return Place(1u, group - first, rows_of(0u)); }
    return Place(0u, group, 0u);
}
