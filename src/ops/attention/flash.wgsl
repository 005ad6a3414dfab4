// flash.wgsl - tiles of attention: what forward, backward and cached attention share.
//
// A workgroup of 64 threads has 32 rows, queries or keys, and goes through what they meet, the
// columns, 32 at a time. All products are of the same kind, over 32 terms:
//
//     left, right    [32 columns of a head][8 fours of rows]     rows by columns: the scores
//     square, right  [32 columns][8 fours of rows], [32 columns][8 fours of a head]
//                                        what is made of the scores times the columns' own rows
//
// which is 12 KiB, less than the 16 that every adapter has. Heads are taken in pieces of 32 columns.
// Thread (y, x) = (tid / 8, tid % 8) has a cell of each product, rows 4 y .. by columns 4 x ..: 16
// products for two fours read. It loads a cell of four rows, too, and turns it on its way to left
// and right, where a head's columns come first: fours of these are xored into the place of a four,
// so that neither turned blocks nor the others meet in a bank. A square lies the same way.
//
// A result's columns are in pieces as well, a cell each: PIECES of them, D <= 32 PIECES.

var<workgroup> left: array<vec4<f32>, 256>;
var<workgroup> right: array<vec4<f32>, 256>;
var<workgroup> square: array<vec4<f32>, 256>;

const LOWEST = -0x1p127f;

struct Heads { n_q: u32, n_kv: u32, size: u32, group: u32, q_row: u32, row: u32 }

fn heads() -> Heads {
    let h = u32(op.i0);
    let k = u32(op.i1);
    let d = u32(op.i2);
    return Heads(h, k, d, h / k, h * d, (h + 2u * k) * d);
}

// Four columns of a head from d on, the last one again beyond it; and what was read there, zeros
// beyond it.
fn columns(s: Heads, d: u32) -> vec4<u32> {
    return min(vec4<u32>(d) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(s.size - 1u));
}
fn within(s: Heads, d: u32, v: vec4<f32>) -> vec4<f32> {
    let all = vec4<u32>(d) + vec4<u32>(0u, 1u, 2u, 3u);
    return select(vec4<f32>(), v, all < vec4<u32>(s.size));
}

// Four rows of four columns.
struct Cell { r0: vec4<f32>, r1: vec4<f32>, r2: vec4<f32>, r3: vec4<f32> }

fn turned(c: Cell) -> Cell {
    return Cell(vec4<f32>(c.r0.x, c.r1.x, c.r2.x, c.r3.x), vec4<f32>(c.r0.y, c.r1.y, c.r2.y, c.r3.y),
                vec4<f32>(c.r0.z, c.r1.z, c.r2.z, c.r3.z), vec4<f32>(c.r0.w, c.r1.w, c.r2.w, c.r3.w));
}

fn turned_place(tid: u32) -> u32 { return tid % 8u * 32u + ((tid / 8u) ^ (tid % 8u)); }

fn turn_left(tid: u32, block: Cell) {
    let c = turned(block);
    let at = turned_place(tid);
    left[at] = c.r0;
    left[at + 8u] = c.r1;
    left[at + 16u] = c.r2;
    left[at + 24u] = c.r3;
}
fn turn_right(tid: u32, block: Cell) {
    let c = turned(block);
    let at = turned_place(tid);
    right[at] = c.r0;
    right[at + 8u] = c.r1;
    right[at + 16u] = c.r2;
    right[at + 24u] = c.r3;
}
fn turn_square(tid: u32, block: Cell) {
    let c = turned(block);
    let at = turned_place(tid);
    square[at] = c.r0;
    square[at + 8u] = c.r1;
    square[at + 16u] = c.r2;
    square[at + 24u] = c.r3;
}
fn put_right(tid: u32, c: Cell) {
    let at = tid / 8u * 32u + tid % 8u;
    right[at] = c.r0;
    right[at + 8u] = c.r1;
    right[at + 16u] = c.r2;
    right[at + 24u] = c.r3;
}

fn added(cell: Cell, weights: vec4<f32>, v: vec4<f32>) -> Cell {
    return Cell(fma(vec4<f32>(weights.x), v, cell.r0), fma(vec4<f32>(weights.y), v, cell.r1),
                fma(vec4<f32>(weights.z), v, cell.r2), fma(vec4<f32>(weights.w), v, cell.r3));
}
fn scaled(cell: Cell, rows: vec4<f32>) -> Cell {
    return Cell(rows.x * cell.r0, rows.y * cell.r1, rows.z * cell.r2, rows.w * cell.r3);
}

// This thread's cell of left by right, added to one; of square by right.
fn left_right(tid: u32, start: Cell) -> Cell {
    var cell = start;
    for (var quad = 0u; quad < 8u; quad++) {
        let at_l = quad * 32u + ((tid / 8u) ^ quad);
        let at_r = quad * 32u + ((tid % 8u) ^ quad);
        cell = added(cell, left[at_l], right[at_r]);
        cell = added(cell, left[at_l + 8u], right[at_r + 8u]);
        cell = added(cell, left[at_l + 16u], right[at_r + 16u]);
        cell = added(cell, left[at_l + 24u], right[at_r + 24u]);
    }
    return cell;
}
fn square_right(tid: u32, start: Cell) -> Cell {
    var cell = start;
    for (var quad = 0u; quad < 8u; quad++) {
        let at_l = quad * 32u + ((tid / 8u) ^ quad);
        let at_r = quad * 32u + tid % 8u;
        cell = added(cell, square[at_l], right[at_r]);
        cell = added(cell, square[at_l + 8u], right[at_r + 8u]);
        cell = added(cell, square[at_l + 16u], right[at_r + 16u]);
        cell = added(cell, square[at_l + 24u], right[at_r + 24u]);
    }
    return cell;
}
