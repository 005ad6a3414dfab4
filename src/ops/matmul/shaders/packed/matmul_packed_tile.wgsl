// SPDX-License-Identifier: Apache-2.0
// matmul_packed_tile.wgsl - products of many rows with weights of files, by the tiles of
// matmul_core.wgsl: a thread asks for a word of four rows, and makes floats of its numbers only when
// they go into the tile.
@group(0) @binding(2) var<storage, read_write> a: array<Four>;

// Of the matrix that this workgroup's columns of y belong to.
var<private> matrix: u32;
var<private> kind: u32;

fn left_by_k(which: u32) -> bool { return true; }
fn right_by_k(which: u32) -> bool { return true; }

fn fetch_left(which: u32, at: u32) -> vec4<f32> {
    if (op.i3 == 0) { return as_vec4(a[at]); }
    let fours = op.ins[0].cols / 8u;
    let i = at + at / fours * fours;
    let gate = as_vec4(a[i]);
    var f: vec4<f32>;
    for (var c = 0u; c < 4u; c++) { f[c] = select(gelu_tanh(gate[c]), silu(gate[c]), op.i3 == 1); }
    return f * as_vec4(a[i + fours]);
}

// Four columns of four rows: numbers in a word a row, and what makes floats of them; or floats.
struct Right {
    numbers: vec4<u32>,
    fifth: vec4<u32>,
    scale: vec4<f32>,
    offset: vec4<f32>,
    floats: Block,
}

// The first of the four alone. Sixteen rows are a group, whole or not.
fn right_rows(block: u32, first: u32, rows: u32, pitch: u32, by_k: bool) -> vec4<u32> {
    let last = select(rows - 1u, (rows + 15u) / 16u * 16u - 4u, has_numbers(kind));
    return vec4<u32>(min(first + 4u * (block / 4u), last));
}

fn float_row(row: u32, k: u32) -> vec4<f32> {
    let cols = op.ins[1].cols;
    let r = min(row, rows_of(matrix) - 1u);
    return vec4<f32>(one_float(matrix, r, cols, k, kind), one_float(matrix, r, cols, k + 1u, kind),
                     one_float(matrix, r, cols, k + 2u, kind),
                     one_float(matrix, r, cols, k + 3u, kind));
}

fn fetch_right_block(which: u32, rows: vec4<u32>, any_k: u32, to: u32, pitch: u32,
                     by_k: bool) -> Right {
    let k = min(any_k, to - 4u);
    let row = rows.x;
    var b = Right();
    if (!has_numbers(kind)) {
        b.floats = Block(float_row(row, k), float_row(row + 1u, k), float_row(row + 2u, k),
                         float_row(row + 3u, k));
        return b;
    }
    let cols = op.ins[1].cols;
    let at = numbers_at(row, cols, k / 32u, kind) + row % 16u;
    let words = at + 16u * select(k / 4u % 4u, k / 4u % 8u, has_bytes(kind));
    for (var e = 0u; e < 4u; e++) {
        b.numbers[e] = word(matrix, words + e);
        if (has_fifth_bits(kind)) { b.fifth[e] = word(matrix, at + 64u + e); }
        let s = scales_of(matrix, row + e, cols, k / 32u, kind);
        b.scale[e] = s.scale[k / 16u % 2u];
        b.offset[e] = s.offset[k / 16u % 2u];
    }
    return b;
}

fn weights_of(r: Right, e: u32, k: u32) -> vec4<f32> {
    var q: vec4<f32>;
    if (has_bytes(kind)) {
        q = bytes_of(r.numbers[e]);
    } else {
        q = nibbles(r.numbers[e], r.fifth[e], k / 4u % 4u, k % 32u >= 16u);
    }
    return fma(q - zero_of(kind), vec4<f32>(r.scale[e]), vec4<f32>(r.offset[e]));
}

fn right_block(r: Right, k: u32, by_k: bool) -> Block {
    if (!has_numbers(kind)) { return turned(r.floats, true); }
    return turned(Block(weights_of(r, 0u, k), weights_of(r, 1u, k), weights_of(r, 2u, k),
                        weights_of(r, 3u, k)), true);
}
fn right_sum(r: Right) -> vec4<f32> { return vec4<f32>(); }

fn put(i: u32, begin: u32, j: u32, sums: vec4<f32>) {
    for (var c = 0u; c < 4u; c++) {
        if (j + c < rows_of(matrix)) { finish(i, begin + j + c, sums[c]); }
    }
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) tid: u32) {
    let m = in_rows(0u);
    let depth = depth_of_a();
    let across = groups_across(TILE);
    let down = (m + TILE - 1u) / TILE;
    let group = group_of(id, count);
    if (group >= down * across) { return; }
    let tile = tile_at(group, down, across);
    let place = place_of(tile.y, TILE);
    let top = tile.x * TILE;
    let first = place.group * TILE;
    matrix = place.matrix;
    kind = layout_of(matrix);
    var sums = product(0u, Sizes(m, rows_of(matrix), depth), top, first, 0u, depth, tid, false);
    let j = first + 4u * thread_x(tid);
    for (var e = 0u; e < ROWS; e++) {
        let i = top + row_of(e, thread_y(tid));
        if (i < m) {
            put(i, place.begin, j, sums.s[2u * e]);
            if (TILE > 32u) { put(i, place.begin, j + 4u * HALF, sums.s[2u * e + 1u]); }
        }
    }
}
