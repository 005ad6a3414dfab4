// SPDX-License-Identifier: Apache-2.0
// flash.wgsl - tiles of attention: what forward, backward and cached attention share.
//
// A workgroup of 64 threads has 32 rows, queries or keys, and goes through what they meet, the
// columns, 64 at a time. All products are of the same kind, over 32 terms:
//
//     left    [32 terms][8 fours of rows]
//     right   [2][32 terms][8 fours of columns]
//
// which is 12 KiB, less than the 16 that every adapter has. The terms of scores are 32 columns of a
// head; then what is made of the scores, 32 columns of it, is the left side of a product with these
// columns' own rows, 64 columns of a head at a time: PAIRS of 32, D <= 64 PAIRS. With NARROW,
// D <= 32, such a product is made of the first half of right alone.
//
// Thread (y, x) has a cell of 4 x 4 in each half, rows 4 y .. by columns 4 x .. and 32 + 4 x ..: 32
// products for three fours read. Of a warp, neighbours share rows or columns two by two: then half a
// warp reads no more than a line of 128 bytes at once. When it loads, a thread has a cell of four
// rows as they lie in memory, eight threads a line, and turns it where the rows are to come first in
// left and right. Fours of a term are xored with the number of the four of terms, so that neither
// turned cells nor the others meet in a bank.
//
// Four terms are written out, not sixteen: on an H200 it is as fast or faster by up to 3 %, and the
// gradient is compiled in a second less.
//
// The text before this one says PAIRS, NARROW and FOURS: are all rows whole fours? That after it has
// take(which, at), the four, or without FOURS the number, at this place of an operand, and
// row_places.

var<workgroup> left: array<vec4<f32>, 256>;
var<workgroup> right: array<vec4<f32>, 512>;

const LOWEST = -0x1p127f;

struct Heads { n_q: u32, n_kv: u32, size: u32, group: u32, q_row: u32, row: u32 }

fn heads() -> Heads {
    let h = u32(op.i0);
    let k = u32(op.i1);
    let d = u32(op.i2);
    return Heads(h, k, d, h / k, h * d, (h + 2u * k) * d);
}

// n rows of a head in an operand: where row 0 begins, and how far they are apart. Where four rows
// begin, the text after this one says: row_places(s, rows, t).
struct Rows { which: u32, at: u32, step: u32, n: u32 }
// Four rows of four columns, and two of these next to each other in left and right.
struct Cell { r0: vec4<f32>, r1: vec4<f32>, r2: vec4<f32>, r3: vec4<f32> }
struct Pair { a: Cell, b: Cell }

fn four_from(i: u32) -> vec4<u32> { return vec4<u32>(i) + vec4<u32>(0u, 1u, 2u, 3u); }

// Four columns of a head from d on, zeros beyond it, of the row that begins at this place.
fn four(s: Heads, which: u32, at: u32, d: u32) -> vec4<f32> {
    if (FOURS) {
        return select(vec4<f32>(), take(which, at / 4u + min(d, s.size - 4u) / 4u), d < s.size);
    }
    let i = vec4<u32>(at) + min(four_from(d), vec4<u32>(s.size - 1u));
    let lower = vec2<f32>(take(which, i.x).x, take(which, i.y).x);
    let v = vec4<f32>(lower, take(which, i.z).x, take(which, i.w).x);
    return select(vec4<f32>(), v, four_from(d) < vec4<u32>(s.size));
}
// Four rows of that. Beyond the last row is the last one again, which nobody sees: no load is under
// a condition.
fn block(s: Heads, r: Rows, t: u32, d: u32) -> Cell {
    let at = row_places(s, r, min(four_from(t), vec4<u32>(r.n - 1u)));
    return Cell(four(s, r.which, at.x, d), four(s, r.which, at.y, d), four(s, r.which, at.z, d),
                four(s, r.which, at.w, d));
}

fn turned(c: Cell) -> Cell {
    return Cell(
        vec4<f32>(c.r0.x, c.r1.x, c.r2.x, c.r3.x), vec4<f32>(c.r0.y, c.r1.y, c.r2.y, c.r3.y),
        vec4<f32>(c.r0.z, c.r1.z, c.r2.z, c.r3.z), vec4<f32>(c.r0.w, c.r1.w, c.r2.w, c.r3.w));
}

// Where a four lies in the first of four terms; the others follow 8 apart.
fn place(terms: u32, four: u32) -> u32 { return terms * 32u + (four ^ terms); }

fn put_left(at: u32, c: Cell) {
    left[at] = c.r0;
    left[at + 8u] = c.r1;
    left[at + 16u] = c.r2;
    left[at + 24u] = c.r3;
}
fn put_right(at: u32, c: Cell) {
    right[at] = c.r0;
    right[at + 8u] = c.r1;
    right[at + 16u] = c.r2;
    right[at + 24u] = c.r3;
}

// Rows from l and r on, 32 of left and 64 of right, whose terms are their columns from d on.
fn load_rows(s: Heads, l_rows: Rows, l: u32, r_rows: Rows, r: u32, d: u32, tid: u32) {
    let at = place(tid % 8u, tid / 8u);
    let t = tid / 8u * 4u;
    let c = d + tid % 8u * 4u;
    put_left(at, turned(block(s, l_rows, l + t, c)));
    put_right(at, turned(block(s, r_rows, r + t, c)));
    put_right(256u + at, turned(block(s, r_rows, r + 32u + t, c)));
}
// 32 rows from t on, which are terms of right, and their columns from d on.
fn load_terms(s: Heads, rows: Rows, t: u32, d: u32, tid: u32) {
    let at = place(tid / 8u, tid % 8u);
    let c = d + tid % 8u * 4u;
    put_right(at, block(s, rows, t + tid / 8u * 4u, c));
    if (!NARROW) { put_right(256u + at, block(s, rows, t + tid / 8u * 4u, 32u + c)); }
}

fn thread_x(tid: u32) -> u32 { return tid / 2u % 8u; }
fn thread_y(tid: u32) -> u32 { return tid / 16u % 2u * 2u + tid % 2u + tid / 32u * 4u; }

fn added(cell: Cell, weights: vec4<f32>, v: vec4<f32>) -> Cell {
    return Cell(fma(vec4<f32>(weights.x), v, cell.r0), fma(vec4<f32>(weights.y), v, cell.r1),
                fma(vec4<f32>(weights.z), v, cell.r2), fma(vec4<f32>(weights.w), v, cell.r3));
}
fn scaled(cell: Cell, rows: vec4<f32>) -> Cell {
    return Cell(rows.x * cell.r0, rows.y * cell.r1, rows.z * cell.r2, rows.w * cell.r3);
}

fn add_term(p: Pair, at_l: u32, at_r: u32, narrow: bool) -> Pair {
    let l = left[at_l];
    let a = added(p.a, l, right[at_r]);
    if (narrow) { return Pair(a, p.b); }
    return Pair(a, added(p.b, l, right[256u + at_r]));
}
fn add_four(p: Pair, terms: u32, tid: u32, narrow: bool) -> Pair {
    let at_l = place(terms, thread_y(tid));
    let at_r = place(terms, thread_x(tid));
    let p0 = add_term(p, at_l, at_r, narrow);
    let p1 = add_term(p0, at_l + 8u, at_r + 8u, narrow);
    let p2 = add_term(p1, at_l + 16u, at_r + 16u, narrow);
    return add_term(p2, at_l + 24u, at_r + 24u, narrow);
}
// This thread's cells of left by right, added to some: the first n <= 32 terms, in fours. A loop of
// always 8 would be written out, to be compiled in twice the time.
fn product(start: Pair, n: u32, tid: u32, narrow: bool) -> Pair {
    var p = start;
    for (var terms = 0u; 4u * terms < min(n, 32u); terms++) { p = add_four(p, terms, tid, narrow); }
    return p;
}

// Of 32 rows by 64 columns, queries by keys or keys by queries: scores; dout . v likewise.
fn scores(s: Heads, rows: Rows, r: u32, columns: Rows, c: u32, tid: u32) -> Pair {
    var p = Pair();
    for (var d = 0u; d < s.size; d += 32u) {
        load_rows(s, rows, r, columns, c, d, tid);
        workgroupBarrier();
        p = product(p, s.size - d, tid, false);
        workgroupBarrier();
    }
    return p;
}

// Adds what is made of scores, times the rows from t up to `end` that belong to their columns: at
// most 64.
fn add_rows(sums: ptr<function, array<Pair, PAIRS>>, made: Pair, s: Heads, rows: Rows, t: u32,
            end: u32, tid: u32) {
    // Heads beyond 128 are seldom, and a loop that nobody writes out is compiled sooner.
    let pairs = select((s.size + 63u) / 64u, PAIRS, PAIRS < 4u);
    var cell = made.a;
    for (var first = t; first < min(end, t + 64u); first += 32u) {
        put_left(place(thread_x(tid), thread_y(tid)), turned(cell));
        for (var i = 0u; i < pairs; i++) {
            load_terms(s, rows, first, 64u * i, tid);
            workgroupBarrier();
            (*sums)[i] = product((*sums)[i], end - first, tid, NARROW);
            workgroupBarrier();
        }
        cell = made.b;
    }
}

// The first column that is seen by a row that sees those below `seen`: with a window, i3 of them.
fn begin_of(seen: u32) -> u32 { return select(0u, seen - min(seen, u32(op.i3)), op.i3 > 0); }

// Scores of a row that sees columns below `seen`, the first of these four being c.
fn masked(score: vec4<f32>, c: u32, seen: u32) -> vec4<f32> {
    let column = four_from(c);
    return select(vec4<f32>(LOWEST), score,
                  (column < vec4<u32>(seen)) & (column >= vec4<u32>(begin_of(seen))));
}
fn masked_cell(score: Cell, c: u32, seen: u32) -> Cell {
    return Cell(masked(score.r0, c, seen), masked(score.r1, c, seen + 1u),
                masked(score.r2, c, seen + 2u), masked(score.r3, c, seen + 3u));
}

// What a cap, f2, leaves of scores, which are scaled behind it, too: see cap.h.
fn cap4(v: vec4<f32>) -> vec4<f32> {
    let c = op.f2 / op.f0;
    return vec4<f32>(soft_cap(v.x, c), soft_cap(v.y, c), soft_cap(v.z, c), soft_cap(v.w, c));
}
fn capped(p: Pair) -> Pair {
    return Pair(Cell(cap4(p.a.r0), cap4(p.a.r1), cap4(p.a.r2), cap4(p.a.r3)),
                Cell(cap4(p.b.r0), cap4(p.b.r1), cap4(p.b.r2), cap4(p.b.r3)));
}

// exp of scaled scores less something.
fn exp4(v: vec4<f32>) -> vec4<f32> { return vec4<f32>(exp1(v.x), exp1(v.y), exp1(v.z), exp1(v.w)); }
fn weights(score: Cell, less: Cell) -> Cell {
    return Cell(exp4(op.f0 * score.r0 - less.r0), exp4(op.f0 * score.r1 - less.r1),
                exp4(op.f0 * score.r2 - less.r2), exp4(op.f0 * score.r3 - less.r3));
}
// What the rows of a cell have, all along them.
fn along(rows: vec4<f32>) -> Cell {
    return Cell(vec4<f32>(rows.x), vec4<f32>(rows.y), vec4<f32>(rows.z), vec4<f32>(rows.w));
}
