// matmul_core.wgsl - a product of two matrices by tiles of TILE x TILE, a thread 8 x 8 elements, or
// 4 x 4 with TILE 32, where there is so little to do that it should be over soon.
//
//     tile_left, tile_right  [16 k][TILE]   in fours, k outermost however the operands lie
//
// A thread has fours of rows y and y + HALF, fours of columns x and x + HALF: sixteen fours of sums,
// 64 products for four loads; with TILE 32 the first of both alone. It loads a block of 4 x 4 from each operand, in fours as they lie in
// memory, and turns it where k is what is contiguous; the next blocks are on their way while these
// are multiplied. Fours of k are xored into the place of a four, so that neither the turned blocks
// nor the others meet in a bank.
//
// Of a warp, neighbours share rows or columns two by two: then half a warp reads no more than a line
// of 128 bytes at once. A workgroup of two warps is enough, if there are several on a core; one of
// eight with tiles of 128 was slower on an H100 at every size.
//
// The text before this one says TILE; that after it, what
// the operands are. `which` tells products of one dispatch apart:
//
//     left_by_k(which), right_by_k(which)   is k contiguous in memory?
//     fetch_left(which, at), fetch_right(which, at)   the four at this number

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

// k beyond `to` is 0; beyond the last row or column is the last one again: nobody keeps its sums.
fn take(which: u32, is_left: bool, row: u32, rows: u32, k: u32, to: u32, pitch: u32,
        by_k: bool) -> vec4<f32> {
    if (k >= to) { return vec4<f32>(); }
    let r = min(row, rows - select(4u, 1u, by_k));
    let at = select(k * pitch + r, r * pitch + k, by_k) / 4u;
    if (is_left) { return fetch_left(which, at); }
    return fetch_right(which, at);
}

// Four rows of four k, or four k of four rows.
fn take_block(which: u32, is_left: bool, block: u32, first: u32, rows: u32, k: u32, to: u32,
              pitch: u32, by_k: bool) -> Block {
    let quad = select(block / CHUNKS, block % 4u, by_k);
    let row = first + 4u * select(block % CHUNKS, block / 4u, by_k);
    let k0 = k + 4u * quad;
    let step_row = select(0u, 1u, by_k);
    let step_k = 1u - step_row;
    return Block(take(which, is_left, row, rows, k0, to, pitch, by_k),
                 take(which, is_left, row + step_row, rows, k0 + step_k, to, pitch, by_k),
                 take(which, is_left, row + 2u * step_row, rows, k0 + 2u * step_k, to, pitch, by_k),
                 take(which, is_left, row + 3u * step_row, rows, k0 + 3u * step_k, to, pitch, by_k));
}

fn turned(b: Block, by_k: bool) -> Block {
    if (!by_k) { return b; }
    return Block(vec4<f32>(b.v0.x, b.v1.x, b.v2.x, b.v3.x), vec4<f32>(b.v0.y, b.v1.y, b.v2.y, b.v3.y),
                 vec4<f32>(b.v0.z, b.v1.z, b.v2.z, b.v3.z), vec4<f32>(b.v0.w, b.v1.w, b.v2.w, b.v3.w));
}

// Where the block's four of k = 0 lies; the others follow CHUNKS apart.
fn place_of_block(block: u32, by_k: bool) -> u32 {
    let quad = select(block / CHUNKS, block % 4u, by_k);
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

// Rows top .. of left by columns .. begin `first` of right, over k in [begin, to). A barrier ends it.
fn product(which: u32, s: Sizes, top: u32, first: u32, begin: u32, to: u32, tid: u32,
           with_columns: bool) -> Sums {
    let by_k_l = left_by_k(which);
    let by_k_r = right_by_k(which);
    let pitch_l = select(s.m, s.k, by_k_l);
    let pitch_r = select(s.n, s.k, by_k_r);
    // With TILE 64 a thread loads a block of each, with 32 one of one.
    let one_each = TILE == 64u;
    let is_left = one_each || tid < TILE;
    let block = tid % TILE;
    let at_l = place_of_block(block, by_k_l);
    let at_r = place_of_block(block, by_k_r);
    let x = thread_x(tid);
    let y = thread_y(tid);
    var l: Block;
    var r: Block;
    if (is_left) { l = take_block(which, true, block, top, s.m, begin, to, pitch_l, by_k_l); }
    if (one_each || !is_left) {
        r = take_block(which, false, block, first, s.n, begin, to, pitch_r, by_k_r);
    }
    var s00 = vec4<f32>(); var s01 = vec4<f32>(); var s10 = vec4<f32>(); var s11 = vec4<f32>();
    var s20 = vec4<f32>(); var s21 = vec4<f32>(); var s30 = vec4<f32>(); var s31 = vec4<f32>();
    var s40 = vec4<f32>(); var s41 = vec4<f32>(); var s50 = vec4<f32>(); var s51 = vec4<f32>();
    var s60 = vec4<f32>(); var s61 = vec4<f32>(); var s70 = vec4<f32>(); var s71 = vec4<f32>();
    column_sum = vec4<f32>();
    for (var k = begin; k < to; k += 16u) {
        if (is_left) { put_left(at_l, turned(l, by_k_l)); }
        if (one_each || !is_left) {
            if (with_columns) { column_sum += r.v0 + r.v1 + r.v2 + r.v3; }
            put_right(at_r, turned(r, by_k_r));
        }
        workgroupBarrier();
        if (is_left) { l = take_block(which, true, block, top, s.m, k + 16u, to, pitch_l, by_k_l); }
        if (one_each || !is_left) {
            r = take_block(which, false, block, first, s.n, k + 16u, to, pitch_r, by_k_r);
        }
        for (var quad = 0u; quad < 4u; quad++) {
            let base = quad * 4u * CHUNKS;
            let at_y = base + (y ^ (2u * quad));
            let at_x = base + (x ^ (2u * quad));
            for (var e = 0u; e < 4u; e++) {
                let l0 = tile_left[at_y + e * CHUNKS];
                let r0 = tile_right[at_x + e * CHUNKS];
                s00 = fma(vec4<f32>(l0.x), r0, s00);
                s10 = fma(vec4<f32>(l0.y), r0, s10);
                s20 = fma(vec4<f32>(l0.z), r0, s20);
                s30 = fma(vec4<f32>(l0.w), r0, s30);
                if (TILE == 32u) { continue; }
                let l1 = tile_left[at_y + e * CHUNKS + HALF];
                let r1 = tile_right[at_x + e * CHUNKS + HALF];
                s01 = fma(vec4<f32>(l0.x), r1, s01);
                s11 = fma(vec4<f32>(l0.y), r1, s11);
                s21 = fma(vec4<f32>(l0.z), r1, s21);
                s31 = fma(vec4<f32>(l0.w), r1, s31);
                s40 = fma(vec4<f32>(l1.x), r0, s40);
                s41 = fma(vec4<f32>(l1.x), r1, s41);
                s50 = fma(vec4<f32>(l1.y), r0, s50);
                s51 = fma(vec4<f32>(l1.y), r1, s51);
                s60 = fma(vec4<f32>(l1.z), r0, s60);
                s61 = fma(vec4<f32>(l1.z), r1, s61);
                s70 = fma(vec4<f32>(l1.w), r0, s70);
                s71 = fma(vec4<f32>(l1.w), r1, s71);
            }
        }
        workgroupBarrier();
    }
    return Sums(array<vec4<f32>, 16>(s00, s01, s10, s11, s20, s21, s30, s31,
                                     s40, s41, s50, s51, s60, s61, s70, s71));
}

// Row e of a thread's eight: e and 4 + e of its two fours.
fn row_of(e: u32, y: u32) -> u32 { return 4u * y + e % 4u + select(0u, 4u * HALF, e >= 4u); }
