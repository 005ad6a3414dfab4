// SPDX-License-Identifier: Apache-2.0
// matmul_packed_dx.wgsl - y = a b by weights of files [N, cols], the gradient of a product's left side:
// what is summed are rows of b. A workgroup has 32 columns of ROWS rows of y; each of its threads
// takes one row of b in 64, of all matrices, and the threads' sums are added up at the end.

const ROWS = 4u;
const THREADS = 64u;
var<workgroup> partial: array<vec4<f32>, 8u * THREADS>; // [THREADS][8 fours of columns]
// The block that was taken last, in fours.
var<private> w: array<vec4<f32>, 8>;

fn four(v: u32, q: vec4<f32>) { w[v] = q; }

// Adds the rows of one matrix; the first of them belongs to column `begin` of a.
fn add_rows(sums: ptr<function, array<vec4<f32>, 8u * ROWS>>, part: u32, begin: u32, first: u32,
            block: u32, lane: u32) {
    let depth = op.ins[0].cols;
    for (var row = lane; row < rows_of(part); row += THREADS) {
        take_block(part, row, op.ins[1].cols, block);
        for (var i = 0u; i < ROWS; i++) {
            if (first + i >= in_rows(0u)) { break; }
            let x = a[(first + i) * depth + begin + row];
            for (var v = 0u; v < 8u; v++) {
                let half = v / 4u;
                (*sums)[8u * i + v] += x * fma(w[v], vec4<f32>(scale[half]), vec4<f32>(offset[half]));
            }
        }
    }
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let m = in_rows(0u);
    let cols = op.ins[1].cols;
    let blocks = (cols + 31u) / 32u;
    let number = group_of(id, count);
    let first = number / blocks * ROWS;
    let block = number % blocks;
    if (first >= m) { return; }
    var sums = array<vec4<f32>, 8u * ROWS>();
    add_rows(&sums, 0u, 0u, first, block, lane);
    add_rows(&sums, 1u, rows_of(0u), first, block, lane);
    add_rows(&sums, 2u, rows_of(0u) + rows_of(1u), first, block, lane);
    for (var i = 0u; i < ROWS; i++) {
        for (var v = 0u; v < 8u; v++) { partial[8u * lane + v] = sums[8u * i + v]; }
        workgroupBarrier();
        let col = 32u * block + lane;
        if (lane < 32u && col < cols && first + i < m) {
            let at = (first + i) * cols + col;
            var all = 0.0;
            if (adds(0u)) { all = y[at]; }
            for (var t = 0u; t < THREADS; t++) { all += partial[8u * t + lane / 4u][lane % 4u]; }
            y[at] = all;
        }
        workgroupBarrier();
    }
}
