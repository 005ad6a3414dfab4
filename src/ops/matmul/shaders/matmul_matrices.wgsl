// SPDX-License-Identifier: Apache-2.0
// matmul_matrices.wgsl - products of halves, which lie in scratch as matmul_padded.wgsl says, by
// matrices of subgroups: four subgroups make a tile of 128 x 128, each 4 x 4 matrices of its quarter.
//
// A tile of 32 k goes through the workgroup's memory, its rows eight halves longer, so that rows do
// not meet in banks; the next one is on its way while this one is multiplied. Sums are variables of
// their own: in an array that a loop goes through they are two to seven times slower.
@group(0) @binding(2) var<storage, read_write> halves: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read_write> bias: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> residual: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> y: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read_write> z: array<vec4<f32>>;
@group(0) @binding(7) var<storage, read_write> scales: array<f32>;

// What operands that are gradients are multiplied with, as loss_scale.c says; 1 elsewhere.
fn scaling() -> f32 {
    if (!is_here(6u)) { return 1.0; }
    return scales[0];
}

// Eights of a row of a tile, and how many eights further a thread's next one lies.
const LEFT_ROW = select(16u, 4u, LEFT_BY_K);
const RIGHT_ROW = select(16u, 4u, RIGHT_BY_K);

// Where a thread's eights begin, and how far apart they are: in scratch for k = 0, in the tile, and
// from one tile to the next. It has four of each operand.
struct Way { begin: u32, step: u32, at: u32, at_step: u32, next: u32 }
fn way_of(tid: u32, start: u32, first: u32, pitch: u32, row: u32, tile_pitch: u32,
          by_k: bool) -> Way {
    let begin_at = start + select(first / 8u, first * (pitch / 8u), by_k);
    return Way(begin_at + tid / row * (pitch / 8u) + tid % row, 128u / row * (pitch / 8u),
               tid / row * tile_pitch + tid % row * 8u, 128u / row * tile_pitch,
               select(4u * pitch, 4u, by_k));
}

// One matrix of sums, by way of the workgroup's memory: a thread has half a row of it.
fn put(s: Sizes, top: u32, first: u32, tid: u32) {
    let row = top + tid % 32u / 2u;
    let col = first + tid % 2u * 8u;
    let at = tid / 32u * 256u + tid % 32u * 8u;
    let scale = 1.0 / (scale_of(op.f0) * scale_of(op.f1));
    if (row >= s.m) { return; }
    for (var c = 0u; c < 8u; c += 4u) {
        if (col + c < s.n) {
            let here = at + c;
            finish(s, row, col + c,
                   scale * vec4<f32>(kept_sums[here], kept_sums[here + 1u], kept_sums[here + 2u],
                                     kept_sums[here + 3u]));
        }
    }
}

@compute @workgroup_size(128)
fn products(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
            @builtin(local_invocation_index) tid: u32) {
    let s = sizes();
    let p = padded(s);
    let across = p.n / 128u;
    let down = p.m / 128u;
    let group = group_of(id, count);
    if (group >= across * down) { return; }
    begin_matrices(tid);
    // Bands of eight rows of tiles: what runs at one time shares operands.
    let band = group / (8u * across);
    let width = min(8u, down - 8u * band);
    let rest = group - band * 8u * across;
    let top = (8u * band + rest % width) * 128u;
    let first = rest / width * 128u;
    let l = way_of(tid, 0u, top, select(p.m, p.k, LEFT_BY_K), LEFT_ROW, LEFT_PITCH, LEFT_BY_K);
    let r = way_of(tid, p.m * (p.k / 8u), first, select(p.n, p.k, RIGHT_BY_K), RIGHT_ROW,
                   RIGHT_PITCH, RIGHT_BY_K);
    // This subgroup's quarter, and how far the next of its matrices and the next k are.
    let down_at = tid / 64u * 64u;
    let across_at = tid / 32u % 2u * 64u;
    let left_first = select(down_at, down_at * LEFT_PITCH, LEFT_BY_K);
    let left_step = select(16u, 16u * LEFT_PITCH, LEFT_BY_K);
    let left_k = select(LEFT_PITCH, 1u, LEFT_BY_K);
    let right_first = select(across_at, across_at * RIGHT_PITCH, RIGHT_BY_K);
    let right_step = select(16u, 16u * RIGHT_PITCH, RIGHT_BY_K);
    let right_k = select(RIGHT_PITCH, 1u, RIGHT_BY_K);
    var c00: Sums; var c01: Sums; var c02: Sums; var c03: Sums;
    var c10: Sums; var c11: Sums; var c12: Sums; var c13: Sums;
    var c20: Sums; var c21: Sums; var c22: Sums; var c23: Sums;
    var c30: Sums; var c31: Sums; var c32: Sums; var c33: Sums;
    var l0 = halves[l.begin];
    var l1 = halves[l.begin + l.step];
    var l2 = halves[l.begin + 2u * l.step];
    var l3 = halves[l.begin + 3u * l.step];
    var r0 = halves[r.begin];
    var r1 = halves[r.begin + r.step];
    var r2 = halves[r.begin + 2u * r.step];
    var r3 = halves[r.begin + 3u * r.step];
    for (var k = 0u; k < p.k; k += 32u) {
        store_left(l.at, l0);
        store_left(l.at + l.at_step, l1);
        store_left(l.at + 2u * l.at_step, l2);
        store_left(l.at + 3u * l.at_step, l3);
        store_right(r.at, r0);
        store_right(r.at + r.at_step, r1);
        store_right(r.at + 2u * r.at_step, r2);
        store_right(r.at + 3u * r.at_step, r3);
        workgroupBarrier();
        // Of the last tile itself again, so that no load is under a condition.
        let next = min(k + 32u, p.k - 32u) / 32u;
        l0 = halves[l.begin + next * l.next];
        l1 = halves[l.begin + next * l.next + l.step];
        l2 = halves[l.begin + next * l.next + 2u * l.step];
        l3 = halves[l.begin + next * l.next + 3u * l.step];
        r0 = halves[r.begin + next * r.next];
        r1 = halves[r.begin + next * r.next + r.step];
        r2 = halves[r.begin + next * r.next + 2u * r.step];
        r3 = halves[r.begin + next * r.next + 3u * r.step];
        for (var q = 0u; q < 32u; q += 16u) {
            let a = left_first + q * left_k;
            let b = right_first + q * right_k;
            let a0 = left_at(a);
            let a1 = left_at(a + left_step);
            let a2 = left_at(a + 2u * left_step);
            let a3 = left_at(a + 3u * left_step);
            let b0 = right_at(b);
            let b1 = right_at(b + right_step);
            let b2 = right_at(b + 2u * right_step);
            let b3 = right_at(b + 3u * right_step);
            c00 = multiplied(a0, b0, c00);
            c01 = multiplied(a0, b1, c01);
            c02 = multiplied(a0, b2, c02);
            c03 = multiplied(a0, b3, c03);
            c10 = multiplied(a1, b0, c10);
            c11 = multiplied(a1, b1, c11);
            c12 = multiplied(a1, b2, c12);
            c13 = multiplied(a1, b3, c13);
            c20 = multiplied(a2, b0, c20);
            c21 = multiplied(a2, b1, c21);
            c22 = multiplied(a2, b2, c22);
            c23 = multiplied(a2, b3, c23);
            c30 = multiplied(a3, b0, c30);
            c31 = multiplied(a3, b1, c31);
            c32 = multiplied(a3, b2, c32);
            c33 = multiplied(a3, b3, c33);
        }
        workgroupBarrier();
    }
    // The sixteen matrices leave one after the other through 1 KB for each subgroup, since a matrix of
    // a subgroup can be stored as a whole alone, and y's rows may end within it.
    let at = tid / 32u * 256u;
    let i = top + down_at;
    let j = first + across_at;
    keep_sums(at, c00, tid % 32u);
    workgroupBarrier();
    put(s, i, j, tid);
    workgroupBarrier();
    keep_sums(at, c01, tid % 32u);
    workgroupBarrier();
    put(s, i, j + 16u, tid);
    workgroupBarrier();
    keep_sums(at, c02, tid % 32u);
    workgroupBarrier();
    put(s, i, j + 32u, tid);
    workgroupBarrier();
    keep_sums(at, c03, tid % 32u);
    workgroupBarrier();
    put(s, i, j + 48u, tid);
    workgroupBarrier();
    keep_sums(at, c10, tid % 32u);
    workgroupBarrier();
    put(s, i + 16u, j, tid);
    workgroupBarrier();
    keep_sums(at, c11, tid % 32u);
    workgroupBarrier();
    put(s, i + 16u, j + 16u, tid);
    workgroupBarrier();
    keep_sums(at, c12, tid % 32u);
    workgroupBarrier();
    put(s, i + 16u, j + 32u, tid);
    workgroupBarrier();
    keep_sums(at, c13, tid % 32u);
    workgroupBarrier();
    put(s, i + 16u, j + 48u, tid);
    workgroupBarrier();
    keep_sums(at, c20, tid % 32u);
    workgroupBarrier();
    put(s, i + 32u, j, tid);
    workgroupBarrier();
    keep_sums(at, c21, tid % 32u);
    workgroupBarrier();
    put(s, i + 32u, j + 16u, tid);
    workgroupBarrier();
    keep_sums(at, c22, tid % 32u);
    workgroupBarrier();
    put(s, i + 32u, j + 32u, tid);
    workgroupBarrier();
    keep_sums(at, c23, tid % 32u);
    workgroupBarrier();
    put(s, i + 32u, j + 48u, tid);
    workgroupBarrier();
    keep_sums(at, c30, tid % 32u);
    workgroupBarrier();
    put(s, i + 48u, j, tid);
    workgroupBarrier();
    keep_sums(at, c31, tid % 32u);
    workgroupBarrier();
    put(s, i + 48u, j + 16u, tid);
    workgroupBarrier();
    keep_sums(at, c32, tid % 32u);
    workgroupBarrier();
    put(s, i + 48u, j + 32u, tid);
    workgroupBarrier();
    keep_sums(at, c33, tid % 32u);
    workgroupBarrier();
    put(s, i + 48u, j + 48u, tid);
}
