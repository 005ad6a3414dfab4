// SPDX-License-Identifier: Apache-2.0
// matmul_back.wgsl - what goes back through a linear layer y = x w + bias, in one dispatch:
//
//     0   dx = dy w^T      [rows, in]     or dz = dx gelu'(z), where x came out of a gelu
//     1   dw = x^T dy      [in, out]
//         db = column sums of dy, by the workgroups of the first row of tiles of dw
//
// Some workgroups make tiles of dx, the others tiles of dw: those with the longer k come first, since
// they would be alone at the end. With PARTS both k are cut into parts of op.word; what has more than
// one goes to partial, for matmul_back_gather.wgsl to add up:
//
//     partial   [parts][rows][in]   then   [parts][in + 1][out]   db last; either only if cut
//
// The text before this one says TILE, GELU and PARTS.
@group(0) @binding(2) var<storage, read_write> dy: array<Four>;
@group(0) @binding(3) var<storage, read_write> w: array<Four>;
@group(0) @binding(4) var<storage, read_write> dx: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> z: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read_write> x: array<Four>;
@group(0) @binding(7) var<storage, read_write> dw: array<vec4<f32>>;
@group(0) @binding(8) var<storage, read_write> db: array<vec4<f32>>;
@group(0) @binding(9) var<storage, read_write> partial: array<vec4<f32>>;

fn left_by_k(which: u32) -> bool { return which == 0u; }
fn right_by_k(which: u32) -> bool { return which == 0u; }
fn fetch_left(which: u32, at: u32) -> vec4<f32> {
    if (which == 0u) { return as_vec4(dy[at]); }
    return as_vec4(x[at]);
}
fn fetch_right(which: u32, at: u32) -> vec4<f32> {
    if (which == 0u) { return as_vec4(w[at]); }
    return as_vec4(dy[at]);
}

// What a product's parts are: how many, how long, where in partial (in fours).
struct Cut { parts: u32, length: u32, start: u32 }

fn cut_of(k: u32, start: u32) -> Cut {
    if (PARTS == 0) { return Cut(1u, k, 0u); }
    return Cut((k + op.word - 1u) / op.word, op.word, start);
}

fn put_dx(s: Sizes, c: Cut, part: u32, i: u32, j: u32, v: vec4<f32>) {
    if (i >= s.m || j >= s.n) { return; }
    let at = (i * s.n + j) / 4u;
    if (c.parts > 1u) { partial[c.start + part * (s.m * s.n / 4u) + at] = v; }
    else { finish_dx(at, v); }
}

fn put_dw(s: Sizes, c: Cut, part: u32, i: u32, j: u32, v: vec4<f32>) {
    if (i >= s.m || j >= s.n) { return; }
    let at = (i * s.n + j) / 4u;
    if (c.parts > 1u) { partial[c.start + part * ((s.m + 1u) * s.n / 4u) + at] = v; }
    else { finish_dw(at, v); }
}

fn put_db(s: Sizes, c: Cut, part: u32, j: u32, v: vec4<f32>) {
    if (c.parts > 1u) { partial[c.start + (part * (s.m + 1u) + s.m) * s.n / 4u + j / 4u] = v; }
    else { finish_db(j / 4u, v); }
}

@compute @workgroup_size(THREADS)
fn back(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) tid: u32) {
    let rows = op.ins[0].rows;
    let n_out = op.ins[0].cols;
    let n_in = op.ins[1].rows;
    let y0 = thread_y(tid);
    let x0 = 4u * thread_x(tid);
    let across = (n_in + TILE - 1u) / TILE;
    let down = (rows + TILE - 1u) / TILE;
    let right = (n_out + TILE - 1u) / TILE;
    let of_dx = down * across;
    let of_x = Sizes(rows, n_in, n_out);
    let cut_x = cut_of(n_out, 0u);
    let s = Sizes(n_in, n_out, rows);
    let cut = cut_of(rows, select(0u, cut_x.parts * (rows * n_in / 4u), cut_x.parts > 1u));
    let all_dx = of_dx * cut_x.parts;
    let all = all_dx + across * right * cut.parts;
    let number = group_of(id, count);
    if (number >= all) { return; }
    let group = select(number, (number + all_dx) % all, rows > n_out);
    if (group < all_dx) {
        let part = group / of_dx;
        let tile = tile_at(group % of_dx, down, across);
        let top = tile.x * TILE;
        let first = tile.y * TILE;
        let begin = part * cut_x.length;
        var sums = product(0u, of_x, top, first, begin, min(n_out, begin + cut_x.length), tid, false);
        for (var e = 0u; e < ROWS; e++) {
            let i = top + row_of(e, y0);
            put_dx(of_x, cut_x, part, i, first + x0, sums.s[2u * e]);
            if (TILE > 32u) {
                put_dx(of_x, cut_x, part, i, first + x0 + 4u * HALF, sums.s[2u * e + 1u]);
            }
        }
        return;
    }
    let part = (group - all_dx) / (across * right);
    let tile = tile_at((group - all_dx) % (across * right), across, right);
    let top = tile.x * TILE;
    let first = tile.y * TILE;
    let begin = part * cut.length;
    var sums = product(1u, s, top, first, begin, min(rows, begin + cut.length), tid, top == 0u);
    for (var e = 0u; e < ROWS; e++) {
        let i = top + row_of(e, y0);
        put_dw(s, cut, part, i, first + x0, sums.s[2u * e]);
        if (TILE > 32u) { put_dw(s, cut, part, i, first + x0 + 4u * HALF, sums.s[2u * e + 1u]); }
    }
    if (top != 0u) { return; }
    // Threads that loaded dy: with TILE 32 the upper half. CHUNKS columns in fours, four of each.
    let block = tid % TILE;
    if (TILE == 64u || tid >= TILE) { tile_left[block] = column_sum; }
    workgroupBarrier();
    if (tid < CHUNKS && first + 4u * tid < n_out) {
        put_db(s, cut, part, first + 4u * tid,
               tile_left[tid] + tile_left[tid + CHUNKS] + tile_left[tid + 2u * CHUNKS] +
               tile_left[tid + 3u * CHUNKS]);
    }
}
