// SPDX-License-Identifier: Apache-2.0
// matmul_packed.wgsl - y = f(a) b^T + bias + residual by weights of files, up to three matrices side
// by side. A workgroup has sixteen rows of one of them and ROWS of a, 1 or 4. It goes through the
// columns 512 at a time: f(a) of them comes into its memory, and each of sixteen slices of threads
// takes a block of 32.
@group(0) @binding(2) var<storage, read_write> a: array<f32>;
@group(0) @binding(3) var<storage, read_write> b: array<u32>;
@group(0) @binding(4) var<storage, read_write> bias: array<f32>;
@group(0) @binding(5) var<storage, read_write> residual: array<f32>;
@group(0) @binding(6) var<storage, read_write> b1: array<u32>;
@group(0) @binding(7) var<storage, read_write> b2: array<u32>;
@group(0) @binding(8) var<storage, read_write> y: array<f32>;

const COLS = 512u;
var<workgroup> x: array<vec4<f32>, 128u * ROWS>; // [ROWS][128]
var<workgroup> partial: array<f32, 256u * ROWS>; // [16 slices][ROWS][16]
// Of this thread's block, rows of a in the lanes: products with the first and the last 16 columns,
// and sums of f(a) there. at: of its columns in x.
var<private> at: u32;
var<private> products: array<vec4<f32>, 2>;
var<private> ones: array<vec4<f32>, 2>;

fn word(part: u32, i: u32) -> u32 {
    if (part == 0u) { return b[i]; }
    if (part == 1u) { return b1[i]; }
    return b2[i];
}

fn rows_of(part: u32) -> u32 { return op.ins[select(part + 3u, 1u, part == 0u)].rows; }

// Four columns of all rows of a, multiplied with these and added up.
fn dots(q: vec4<f32>, i: u32) -> vec4<f32> {
    if (ROWS == 1u) { return vec4<f32>(dot(q, x[i]), 0.0, 0.0, 0.0); }
    return vec4<f32>(dot(q, x[i]), dot(q, x[i + 128u % (128u * ROWS)]),
                     dot(q, x[i + 256u % (128u * ROWS)]), dot(q, x[i + 384u % (128u * ROWS)]));
}

fn four(v: u32, q: vec4<f32>) {
    let p = dots(q, at + v);
    let s = dots(vec4<f32>(1.0), at + v);
    if (v < 4u) {
        products[0] += p;
        ones[0] += s;
    } else {
        products[1] += p;
        ones[1] += s;
    }
}

// f(a)[row, k], zeros beyond what there is.
fn value(row: u32, m: u32, k: u32, depth: u32) -> f32 {
    if (row >= m || k >= depth) { return 0.0; }
    if (op.i3 == 0) { return a[row * depth + k]; }
    let i = 2u * row * depth + k;
    return select(gelu_tanh(a[i]), silu(a[i]), op.i3 == 1) * a[i + depth];
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let m = in_rows(0u);
    let depth = select(op.ins[0].cols / 2u, op.ins[0].cols, op.i3 == 0);
    let groups0 = (rows_of(0u) + 15u) / 16u;
    let groups1 = (rows_of(1u) + 15u) / 16u;
    let across = groups0 + groups1 + (rows_of(2u) + 15u) / 16u;
    let number = group_of(id, count);
    let first = number / across * ROWS;
    if (first >= m) { return; }
    var group = number % across;
    var matrix = 0u;
    var begin = 0u;
    if (group >= groups0 + groups1) {
        group -= groups0 + groups1;
        begin = rows_of(0u) + rows_of(1u);
        matrix = 2u;
    } else if (group >= groups0) {
        group -= groups0;
        begin = rows_of(0u);
        matrix = 1u;
    }
    let r = lane % 16u;
    let slice = lane / 16u;
    let row = group * 16u + r;
    let is_row = row < rows_of(matrix);
    var sum = vec4<f32>();
    for (var tile = 0u; tile < depth; tile += COLS) {
        for (var i = lane; i < 128u * ROWS; i += 256u) {
            let k = tile + 4u * (i % 128u);
            let t = first + i / 128u;
            x[i] = vec4<f32>(value(t, m, k, depth), value(t, m, k + 1u, depth),
                             value(t, m, k + 2u, depth), value(t, m, k + 3u, depth));
        }
        workgroupBarrier();
        let block = tile / 32u + slice;
        if (is_row && block * 32u < depth) {
            at = 8u * slice;
            products = array<vec4<f32>, 2>();
            ones = array<vec4<f32>, 2>();
            take_block(matrix, row, depth, block);
            sum += (products[0] * scale.x + products[1] * scale.y) +
                   (ones[0] * offset.x + ones[1] * offset.y);
        }
        workgroupBarrier();
    }
    for (var i = 0u; i < ROWS; i++) { partial[(slice * ROWS + i) * 16u + r] = sum[i]; }
    workgroupBarrier();
    if (slice < ROWS && first + slice < m && is_row) {
        var all = 0.0;
        for (var s = 0u; s < 16u; s++) { all += partial[(s * ROWS + slice) * 16u + r]; }
        let j = begin + row;
        let out = (first + slice) * (rows_of(0u) + rows_of(1u) + rows_of(2u)) + j;
        if (adds(0u)) { all += y[out]; }
        if (is_here(2u)) { all += bias[j]; }
        if (is_here(3u)) { all += residual[out]; }
        y[out] = all;
    }
}
