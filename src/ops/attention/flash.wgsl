// flash.wgsl - tiles of attention: what forward, backward and cached attention share.
//
// A workgroup of 256 threads has 32 queries and goes through the keys 32 at a time, or the other
// way round. Products over the head size D are made in pieces of 32 columns, which both operands
// are loaded into:
//
//     left, right  [32 rows][8 fours of a piece], rows padded to 9       2 x 4608 bytes
//     square       [32][32] scores or what is made of them, padded to 33     4224 bytes
//
// together less than the 16 KiB that every adapter has. In a square, thread (tid / 16, tid % 16)
// has two rows and two columns. Sums of 32 products, square times right or its transpose, are cut
// into four slices of eight: of each, a thread has a cell of four rows by a four of columns, which is
// 16 products for 8 floats read, and the slices are added up when all squares are done:
//
//     tid   0 .. 63 slice 0 | 64 .. 127 slice 1 | ..      cell  tid / 8 % 8 rows, tid % 8 columns
//
// Of each piece a thread has such a cell: PIECES of them, D <= 32 PIECES.

var<workgroup> left: array<vec4<f32>, 288>;
var<workgroup> right: array<vec4<f32>, 288>;
var<workgroup> square: array<f32, 1056>;

const LOWEST = -0x1p127f;

struct Heads { n_q: u32, n_kv: u32, size: u32, group: u32, q_row: u32, row: u32 }

fn heads() -> Heads {
    let h = u32(op.i0);
    let k = u32(op.i1);
    let d = u32(op.i2);
    return Heads(h, k, d, h / k, h * d, (h + 2u * k) * d);
}

// This thread's share of the product of left and right, rows (y, y + 16) by rows (x, x + 16):
// (y,x) (y,x+16) (y+16,x) (y+16,x+16).
fn piece_product(y: u32, x: u32) -> vec4<f32> {
    var sum = vec4<f32>();
    for (var c = 0u; c < 8u; c++) {
        let l0 = left[y * 9u + c];
        let l1 = left[(y + 16u) * 9u + c];
        let r0 = right[x * 9u + c];
        let r1 = right[(x + 16u) * 9u + c];
        sum += vec4<f32>(dot(l0, r0), dot(l0, r1), dot(l1, r0), dot(l1, r1));
    }
    return sum;
}

// The fours of a cell, and what is added to them for one term of the sum.
struct Cell { r0: vec4<f32>, r1: vec4<f32>, r2: vec4<f32>, r3: vec4<f32> }

fn added(cell: Cell, weights: vec4<f32>, v: vec4<f32>) -> Cell {
    return Cell(fma(vec4<f32>(weights.x), v, cell.r0), fma(vec4<f32>(weights.y), v, cell.r1),
                fma(vec4<f32>(weights.z), v, cell.r2), fma(vec4<f32>(weights.w), v, cell.r3));
}

// This thread's slice of square times right, or, for keys, of the transposed square.
fn square_right(tid: u32, start: Cell) -> Cell {
    let row = tid / 8u % 8u * 4u * 33u;
    var cell = start;
    for (var k = tid / 64u * 8u; k < tid / 64u * 8u + 8u; k++) {
        let at = row + k;
        let weights = vec4<f32>(square[at], square[at + 33u], square[at + 66u], square[at + 99u]);
        cell = added(cell, weights, right[k * 9u + tid % 8u]);
    }
    return cell;
}
fn turned_square_right(tid: u32, start: Cell) -> Cell {
    let column = tid / 8u % 8u * 4u;
    var cell = start;
    for (var k = tid / 64u * 8u; k < tid / 64u * 8u + 8u; k++) {
        let at = k * 33u + column;
        let weights = vec4<f32>(square[at], square[at + 1u], square[at + 2u], square[at + 3u]);
        cell = added(cell, weights, right[k * 9u + tid % 8u]);
    }
    return cell;
}

// The slices' sum: this thread gets row 4 (tid / 8 % 8) + tid / 64 of it.
fn of_slices(tid: u32, row: u32, mine: vec4<f32>, before: vec4<f32>) -> vec4<f32> {
    left[tid] = mine;
    workgroupBarrier();
    var sum = before;
    if (tid / 64u == row) {
        let cell = tid % 64u;
        sum = left[cell] + left[cell + 64u] + left[cell + 128u] + left[cell + 192u];
    }
    workgroupBarrier();
    return sum;
}
fn gathered(tid: u32, cell: Cell) -> vec4<f32> {
    var sum = of_slices(tid, 0u, cell.r0, vec4<f32>());
    sum = of_slices(tid, 1u, cell.r1, sum);
    sum = of_slices(tid, 2u, cell.r2, sum);
    return of_slices(tid, 3u, cell.r3, sum);
}
fn gathered_row(tid: u32) -> u32 { return tid / 8u % 8u * 4u + tid / 64u; }

fn store_square(y: u32, x: u32, v: vec4<f32>) {
    square[y * 33u + x] = v.x;
    square[y * 33u + x + 16u] = v.y;
    square[(y + 16u) * 33u + x] = v.z;
    square[(y + 16u) * 33u + x + 16u] = v.w;
}
