// SPDX-License-Identifier: Apache-2.0
// matmul_core.wgsl - a product of two matrices by tiles of TILE x TILE, a thread 8 x 8 elements, or
// 4 x 4 with TILE 32, where there is so little to do that it should be over soon.
//
//     tile_left, tile_right  [16 k][TILE]   in fours, k outermost however the operands lie
//
// A thread has fours of rows y and y + HALF, fours of columns x and x + HALF: sixteen fours of sums,
// 64 products for four loads; with TILE 32 the first of both alone. It loads a block of 4 x 4 from
// each operand, in fours as they lie in memory, and turns it where k is what is contiguous; the next
// blocks are on their way while these are multiplied. Fours of k are xored into the place of a four,
// so that neither the turned blocks nor the others meet in a bank.
//
// Of a warp, neighbours share rows or columns two by two: then half a warp reads no more than a line
// of 128 bytes at once. A workgroup of two warps is enough, if there are several on a core.
//
// Sixteen k are written out, and no load is under a condition: with a loop over them, and zeros in
// place of what is beyond the end of k, an H200 makes 33 of 44 TFLOP/s. What is beyond is the end
// again, and cleared before the last k, which are fewer than sixteen.
//
// The text before this one says TILE; that after it, what the operands are. `which` tells products
// of one dispatch apart:
//
//     left_by_k(which), right_by_k(which)   is k contiguous in memory?
//     fetch_left(which, at)                 the four at this number
//
// and of the right, which may come packed, matmul_right.wgsl or what stands in its place:
//
//     Right                                 a block as it comes from memory
//     right_rows(block, first, rows, pitch, by_k), fetch_right_block(which, rows, k, to, pitch, by_k)
//     right_block(r, k, by_k)               four k of four rows
//     right_sum(r)                          the sum of a block's rows, where k is not contiguous

const CHUNKS = TILE / 4u;
const HALF = TILE / 8u;
const ROWS = min(8u, TILE / 8u); // of a thread
var<workgroup> tile_left: array<vec4<f32>, 16u * CHUNKS>;
var<workgroup> tile_right: array<vec4<f32>, 16u * CHUNKS>;

const THREADS = 64u;
struct Sizes { m: u32, n: u32, k: u32 }
struct Block { v0: vec4<f32>, v1: vec4<f32>, v2: vec4<f32>, v3: vec4<f32> }
// Sums: row e of the first four of rows is s[2e] and s[2e + 1], of the second s[8 + 2e] ..
struct Sums { s: array<vec4<f32>, 16> }

// The sums of the columns of right, this thread's part, where somebody wants them.
var<private> column_sum: vec4<f32>;

// Where the four rows of a block lie, in fours without k: rows are next to each other, or, where k
// is, a pitch apart. Beyond the last row is the last one again: nobody keeps its sums.
fn rows_of_block(block: u32, first: u32, rows: u32, pitch: u32, by_k: bool) -> vec4<u32> {
    let row = first + 4u * select(block % CHUNKS, block / 4u, by_k);
    if (!by_k) { return vec4<u32>(min(row, rows - 4u) / 4u); }
    return min(vec4<u32>(row) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(rows - 1u)) * (pitch / 4u);
}
fn quad_of_block(block: u32, by_k: bool) -> u32 { return select(block / CHUNKS, block % 4u, by_k); }

// Four rows of four k, or four k of four rows: where their fours lie. k from `to` on is to - 1 again.
fn fours_of_block(rows: vec4<u32>, k: u32, to: u32, pitch: u32, by_k: bool) -> vec4<u32> {
    let ks = min(vec4<u32>(k) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(to - 1u)) * (pitch / 4u);
    return rows + select(ks, vec4<u32>(min(k, to - 4u) / 4u), by_k);
}
fn fetch_left_block(which: u32, rows: vec4<u32>, k: u32, to: u32, pitch: u32, by_k: bool) -> Block {
    let at = fours_of_block(rows, k, to, pitch, by_k);
    return Block(fetch_left(which, at.x), fetch_left(which, at.y), fetch_left(which, at.z),
                 fetch_left(which, at.w));
}

// A turned block without k from `to` on.
fn cleared(b: Block, k: u32, to: u32) -> Block {
    let zero = vec4<f32>();
    return Block(select(b.v0, zero, k >= to), select(b.v1, zero, k + 1u >= to),
                 select(b.v2, zero, k + 2u >= to), select(b.v3, zero, k + 3u >= to));
}

fn turned(b: Block, by_k: bool) -> Block {
    if (!by_k) { return b; }
    return Block(vec4<f32>(b.v0.x, b.v1.x, b.v2.x, b.v3.x), vec4<f32>(b.v0.y, b.v1.y, b.v2.y, b.v3.y),
                 vec4<f32>(b.v0.z, b.v1.z, b.v2.z, b.v3.z), vec4<f32>(b.v0.w, b.v1.w, b.v2.w, b.v3.w));
}

// Where the block's four of k = 0 lies; the others follow CHUNKS apart.
fn place_of_block(block: u32, by_k: bool) -> u32 {
    let quad = quad_of_block(block, by_k);
    let chunk = select(block % CHUNKS, block / 4u, by_k);
    return quad * 4u * CHUNKS + (chunk ^ (2u * quad));
}

fn put_left(at: u32, b: Block) {
    tile_left[at] = b.v0;
    tile_left[at + CHUNKS] = b.v1;
    tile_left[at + 2u * CHUNKS] = b.v2;
    tile_left[at + 3u * CHUNKS] = b.v3;
}
fn put_right(at: u32, b: Block) {
    tile_right[at] = b.v0;
    tile_right[at + CHUNKS] = b.v1;
    tile_right[at + 2u * CHUNKS] = b.v2;
    tile_right[at + 3u * CHUNKS] = b.v3;
}

// This thread's first four of columns and of rows: a warp of 32 has 8 by 4 of them.
fn thread_x(tid: u32) -> u32 { return tid / 2u % 8u; }
fn thread_y(tid: u32) -> u32 { return tid / 16u % 2u * 2u + tid % 2u + tid / 32u * 4u; }

// The tile with this number, its row and column in tiles: bands of 16 columns, so that what runs at
// one time reads as few rows and columns of the operands as can be.
fn tile_at(number: u32, down: u32, across: u32) -> vec2<u32> {
    let band = number / (16u * down);
    let width = min(16u, across - 16u * band);
    let rest = number - band * 16u * down;
    return vec2<u32>(rest / width, 16u * band + rest % width);
}

// Adds the products of one k, whose fours are at these places.
fn add_k(sums: ptr<function, Sums>, at_y: u32, at_x: u32) {
    let l0 = tile_left[at_y];
    let r0 = tile_right[at_x];
    (*sums).s[0] = fma(vec4<f32>(l0.x), r0, (*sums).s[0]);
    (*sums).s[2] = fma(vec4<f32>(l0.y), r0, (*sums).s[2]);
    (*sums).s[4] = fma(vec4<f32>(l0.z), r0, (*sums).s[4]);
    (*sums).s[6] = fma(vec4<f32>(l0.w), r0, (*sums).s[6]);
    if (TILE == 32u) { return; }
    let l1 = tile_left[at_y + HALF];
    let r1 = tile_right[at_x + HALF];
    (*sums).s[1] = fma(vec4<f32>(l0.x), r1, (*sums).s[1]);
    (*sums).s[3] = fma(vec4<f32>(l0.y), r1, (*sums).s[3]);
    (*sums).s[5] = fma(vec4<f32>(l0.z), r1, (*sums).s[5]);
    (*sums).s[7] = fma(vec4<f32>(l0.w), r1, (*sums).s[7]);
    (*sums).s[8] = fma(vec4<f32>(l1.x), r0, (*sums).s[8]);
    (*sums).s[9] = fma(vec4<f32>(l1.x), r1, (*sums).s[9]);
    (*sums).s[10] = fma(vec4<f32>(l1.y), r0, (*sums).s[10]);
    (*sums).s[11] = fma(vec4<f32>(l1.y), r1, (*sums).s[11]);
    (*sums).s[12] = fma(vec4<f32>(l1.z), r0, (*sums).s[12]);
    (*sums).s[13] = fma(vec4<f32>(l1.z), r1, (*sums).s[13]);
    (*sums).s[14] = fma(vec4<f32>(l1.w), r0, (*sums).s[14]);
    (*sums).s[15] = fma(vec4<f32>(l1.w), r1, (*sums).s[15]);
}

// Four k: the places of their fours are xored with the number of the four.
fn add_four_k(sums: ptr<function, Sums>, quad: u32, y: u32, x: u32) {
    let at_y = quad * 4u * CHUNKS + (y ^ (2u * quad));
    let at_x = quad * 4u * CHUNKS + (x ^ (2u * quad));
    add_k(sums, at_y, at_x);
    add_k(sums, at_y + CHUNKS, at_x + CHUNKS);
    add_k(sums, at_y + 2u * CHUNKS, at_x + 2u * CHUNKS);
    add_k(sums, at_y + 3u * CHUNKS, at_x + 3u * CHUNKS);
}

// Rows top .. of left by columns first .. of right, over k in [begin, to). A barrier ends it.
fn product(which: u32, s: Sizes, top: u32, first: u32, begin: u32, to: u32, tid: u32,
           with_columns: bool) -> Sums {
    let by_k_l = left_by_k(which);
    let by_k_r = right_by_k(which);
    let pitch_l = select(s.m, s.k, by_k_l);
    let pitch_r = select(s.n, s.k, by_k_r);
    // With TILE 64 a thread loads a block of each, with 32 one of one.
    let one_each = TILE == 64u;
    let is_left = one_each || tid < TILE;
    let is_right = one_each || tid >= TILE;
    let block = tid % TILE;
    let at_l = place_of_block(block, by_k_l);
    let at_r = place_of_block(block, by_k_r);
    let rows_l = rows_of_block(block, top, s.m, pitch_l, by_k_l);
    let rows_r = right_rows(block, first, s.n, pitch_r, by_k_r);
    let quad_l = 4u * quad_of_block(block, by_k_l);
    let quad_r = 4u * quad_of_block(block, by_k_r);
    let x = thread_x(tid);
    let y = thread_y(tid);
    var l: Block;
    var r: Right;
    if (is_left) { l = fetch_left_block(which, rows_l, begin + quad_l, to, pitch_l, by_k_l); }
    if (is_right) { r = fetch_right_block(which, rows_r, begin + quad_r, to, pitch_r, by_k_r); }
    var sums: Sums;
    column_sum = vec4<f32>();
    let whole = begin + (to - begin) / 16u * 16u;
    for (var k = begin; k < whole; k += 16u) {
        if (is_left) { put_left(at_l, turned(l, by_k_l)); }
        if (is_right) {
            if (with_columns) { column_sum += right_sum(r); }
            put_right(at_r, right_block(r, k + quad_r, by_k_r));
        }
        workgroupBarrier();
        let next = k + 16u;
        if (is_left) { l = fetch_left_block(which, rows_l, next + quad_l, to, pitch_l, by_k_l); }
        if (is_right) { r = fetch_right_block(which, rows_r, next + quad_r, to, pitch_r, by_k_r); }
        add_four_k(&sums, 0u, y, x);
        add_four_k(&sums, 1u, y, x);
        add_four_k(&sums, 2u, y, x);
        add_four_k(&sums, 3u, y, x);
        workgroupBarrier();
    }
    if (whole == to) { return sums; }
    let tail = cleared(right_block(r, whole + quad_r, by_k_r), whole + quad_r, to);
    if (is_left) { put_left(at_l, cleared(turned(l, by_k_l), whole + quad_l, to)); }
    if (is_right) {
        if (with_columns) { column_sum += tail.v0 + tail.v1 + tail.v2 + tail.v3; }
        put_right(at_r, tail);
    }
    workgroupBarrier();
    for (var quad = 0u; quad < 4u; quad++) { add_four_k(&sums, quad, y, x); }
    workgroupBarrier();
    return sums;
}

// Row e of a thread's eight: e and 4 + e of its two fours.
fn row_of(e: u32, y: u32) -> u32 { return 4u * y + e % 4u + select(0u, 4u * HALF, e >= 4u); }
