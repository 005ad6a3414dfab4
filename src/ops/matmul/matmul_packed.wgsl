// SPDX-License-Identifier: Apache-2.0
// matmul_packed.wgsl - y = f(a) b^T + bias + residual by weights of files, up to three matrices side
// by side. A workgroup has sixteen rows of one of them and four of a: sixteen slices of threads go
// through the columns in blocks of 32, and add up what they have.
@group(0) @binding(2) var<storage, read_write> a: array<f32>;
@group(0) @binding(3) var<storage, read_write> b: array<u32>;
@group(0) @binding(4) var<storage, read_write> bias: array<f32>;
@group(0) @binding(5) var<storage, read_write> residual: array<f32>;
@group(0) @binding(6) var<storage, read_write> b1: array<u32>;
@group(0) @binding(7) var<storage, read_write> b2: array<u32>;
@group(0) @binding(8) var<storage, read_write> y: array<f32>;

const ROWS = 4u;
var<workgroup> partial: array<f32, 1024>;

fn word(part: u32, i: u32) -> u32 {
    if (part == 0u) { return b[i]; }
    if (part == 1u) { return b1[i]; }
    return b2[i];
}

fn rows_of(part: u32) -> u32 { return op.ins[select(part + 3u, 1u, part == 0u)].rows; }

fn four_of_a(at: u32, k: u32, depth: u32) -> vec4<f32> {
    var x = vec4<f32>();
    for (var i = 0u; i < 4u; i++) {
        if (k + i >= depth) { break; }
        let v = a[at + k + i];
        if (op.i3 == 0) {
            x[i] = v;
        } else {
            x[i] = select(gelu_tanh(v), silu(v), op.i3 == 1) * a[at + depth + k + i];
        }
    }
    return x;
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let m = in_rows(0u);
    let a_cols = op.ins[0].cols;
    let depth = select(a_cols / 2u, a_cols, op.i3 == 0);
    var across = 0u;
    var n = 0u;
    for (var p = 0u; p < 3u; p++) {
        across += (rows_of(p) + 15u) / 16u;
        n += rows_of(p);
    }
    let number = group_of(id, count);
    let first = number / across * ROWS;
    if (first >= m) { return; }
    var group = number % across;
    var part = 0u;
    var begin = 0u;
    while (group >= (rows_of(part) + 15u) / 16u) {
        group -= (rows_of(part) + 15u) / 16u;
        begin += rows_of(part);
        part++;
    }
    let r = lane % 16u;
    let row = group * 16u + r;
    var sum = vec4<f32>();
    if (row < rows_of(part)) {
        for (var block = lane / 16u; block * 32u < depth; block += 16u) {
            take_block(part, row, depth, block);
            for (var i = 0u; i < ROWS && first + i < m; i++) {
                var products = vec2<f32>();
                var ones = vec2<f32>();
                for (var v = 0u; v < 8u; v++) {
                    let x = four_of_a((first + i) * a_cols, 32u * block + 4u * v, depth);
                    products[v / 4u] += dot(w[v], x);
                    ones[v / 4u] += dot(vec4<f32>(1.0), x);
                }
                sum[i] += dot(products, scale) + dot(ones, offset);
            }
        }
    }
    for (var i = 0u; i < ROWS; i++) { partial[(lane / 16u * ROWS + i) * 16u + r] = sum[i]; }
    workgroupBarrier();
    let i = lane / 16u;
    if (i < ROWS && first + i < m && row < rows_of(part)) {
        var all = 0.0;
        for (var s = 0u; s < 16u; s++) { all += partial[(s * ROWS + i) * 16u + r]; }
        let j = begin + row;
        let at = (first + i) * n + j;
        if (adds(0u)) { all += y[at]; }
        if (is_here(2u)) { all += bias[j]; }
        if (is_here(3u)) { all += residual[at]; }
        y[at] = all;
    }
}
