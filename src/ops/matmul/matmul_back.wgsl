// matmul_back.wgsl - what goes back through a linear layer y = x w + bias, in one dispatch:
//
//     0   dx = dy w^T      [rows, in]     or dz = dx gelu'(z), where x came out of a gelu
//     1   dw = x^T dy      [in, out]
//         db = column sums of dy, by the workgroups of the first row of tiles of dw
//
// The first workgroups make tiles of dx, the others tiles of dw, whose k may be cut into parts: then
// partial [parts of k][in + 1][out] gets them, db last, and matmul_back_gather.wgsl adds them up.
// The text before this one says TILE, THREADS, GELU and PARTS.
@group(0) @binding(2) var<storage, read_write> dy: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> w: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> dx: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> z: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read_write> x: array<vec4<f32>>;
@group(0) @binding(7) var<storage, read_write> dw: array<vec4<f32>>; // or partial
@group(0) @binding(8) var<storage, read_write> db: array<vec4<f32>>;

fn left_by_k(which: u32) -> bool { return which == 0u; }
fn right_by_k(which: u32) -> bool { return which == 0u; }
fn fetch_left(which: u32, at: u32) -> vec4<f32> {
    if (which == 0u) { return dy[at]; }
    return x[at];
}
fn fetch_right(which: u32, at: u32) -> vec4<f32> {
    if (which == 0u) { return w[at]; }
    return dy[at];
}

// Words 0 and up of member 3 are not here: its kind of gelu is a constant.
fn slope(v: vec4<f32>) -> vec4<f32> {
    if (GELU == 1) {
        return vec4<f32>(gelu_erf_d(v.x), gelu_erf_d(v.y), gelu_erf_d(v.z), gelu_erf_d(v.w));
    }
    return vec4<f32>(gelu_tanh_d(v.x), gelu_tanh_d(v.y), gelu_tanh_d(v.z), gelu_tanh_d(v.w));
}

fn put_dx(s: Sizes, i: u32, j: u32, v: vec4<f32>) {
    if (i >= s.m || j >= s.n) { return; }
    let at = (i * s.n + j) / 4u;
    if (GELU != 0) { dx[at] = v * slope(z[at]); } else { dx[at] = v; }
}

fn put_dw(s: Sizes, part: u32, i: u32, j: u32, v: vec4<f32>) {
    if (i >= s.m || j >= s.n) { return; }
    if (PARTS == 1) {
        dw[((part * (s.m + 1u) + i) * s.n + j) / 4u] = v;
    } else {
        let at = (i * s.n + j) / 4u;
        if (member_adds(1u)) { dw[at] += v; } else { dw[at] = v; }
    }
}

fn put_db(s: Sizes, part: u32, j: u32, v: vec4<f32>) {
    if (PARTS == 1) {
        dw[((part * (s.m + 1u) + s.m) * s.n + j) / 4u] = v;
    } else {
        if (member_adds(2u)) { db[j / 4u] += v; } else { db[j / 4u] = v; }
    }
}

@compute @workgroup_size(THREADS)
fn back(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) tid: u32) {
    let rows = op.ins[0].rows;
    let n_out = op.ins[0].cols;
    let n_in = op.ins[1].rows;
    let y0 = thread_y(tid);
    let x0 = 4u * thread_x(tid);
    let group = group_of(id, count);
    let across = (n_in + TILE - 1u) / TILE;
    let of_dx = (rows + TILE - 1u) / TILE * across;
    if (group < of_dx) {
        let s = Sizes(rows, n_in, n_out);
        let top = group / across * TILE;
        let first = group % across * TILE;
        var sums = product(0u, s, top, first, 0u, s.k, tid, false);
        for (var e = 0u; e < 8u; e++) {
            let i = top + row_of(e, y0);
            put_dx(s, i, first + x0, sums.s[2u * e]);
            put_dx(s, i, first + x0 + 4u * HALF, sums.s[2u * e + 1u]);
        }
        return;
    }
    let s = Sizes(n_in, n_out, rows);
    let right = (n_out + TILE - 1u) / TILE;
    let tiles = across * right;
    let part = (group - of_dx) / tiles;
    let tile = (group - of_dx) % tiles;
    let top = tile / right * TILE;
    let first = tile % right * TILE;
    var parts = 1u;
    var length = s.k;
    if (PARTS == 1) {
        parts = split_of(s);
        length = part_of(s);
    }
    if (part >= parts) { return; }
    let begin = min(s.k, part * length);
    var sums = product(1u, s, top, first, begin, min(s.k, begin + length), tid, top == 0u);
    for (var e = 0u; e < 8u; e++) {
        let i = top + row_of(e, y0);
        put_dw(s, part, i, first + x0, sums.s[2u * e]);
        put_dw(s, part, i, first + x0 + 4u * HALF, sums.s[2u * e + 1u]);
    }
    if (top != 0u) { return; }
    // Threads that loaded dy: with TILE 128 the upper half. CHUNKS columns in fours, four of each.
    let block = tid % TILE;
    if (TILE == 64u || tid >= TILE) { tile_left[block] = column_sum; }
    workgroupBarrier();
    if (tid < CHUNKS && first + 4u * tid < n_out) {
        put_db(s, part, first + 4u * tid,
               tile_left[tid] + tile_left[tid + CHUNKS] + tile_left[tid + 2u * CHUNKS] +
               tile_left[tid + 3u * CHUNKS]);
    }
}
