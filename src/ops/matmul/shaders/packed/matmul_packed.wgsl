// SPDX-License-Identifier: Apache-2.0
// matmul_packed.wgsl - products with weights of files. A workgroup has sixteen rows of one matrix
// and ROWS of a. It goes through the columns 512 at a time: f(a) of them comes into its memory, and
// each of sixteen slices of threads takes a block of 32.

const ROWS = 4u;
const COLS = 512u;
var<workgroup> rows_of_a: array<vec4<f32>, 128u * ROWS>; // [ROWS][128]
var<workgroup> partial: array<f32, 256u * ROWS>; // [16 slices][ROWS][16]
// Of this thread's block, rows of a in the lanes: products with the first and the last 16 columns,
// and sums of f(a) there. at: of its columns there.
var<private> at: u32;
var<private> products: array<vec4<f32>, 2>;
var<private> ones: array<vec4<f32>, 2>;

// Four columns of all rows of a, multiplied with these and added up.
fn dots(q: vec4<f32>, i: u32) -> vec4<f32> {
    return vec4<f32>(dot(q, rows_of_a[i]), dot(q, rows_of_a[i + 128u]), dot(q, rows_of_a[i + 256u]), dot(q, rows_of_a[i + 384u]));
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

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let m = in_rows(0u);
    let depth = depth_of_a();
    let number = group_of(id, count);
    let first = number / groups_across(16u) * ROWS;
    if (first >= m) { return; }
    let place = place_of(number % groups_across(16u), 16u);
    let r = lane % 16u;
    let slice = lane / 16u;
    let row = place.group * 16u + r;
    let is_row = row < rows_of(place.matrix);
    var sum = vec4<f32>();
    for (var tile = 0u; tile < depth; tile += COLS) {
        for (var i = lane; i < 128u * ROWS; i += 256u) {
            let k = tile + 4u * (i % 128u);
            rows_of_a[i] = values(first + i / 128u, m, k, depth);
        }
        workgroupBarrier();
        let block = tile / 32u + slice;
        if (is_row && block * 32u < depth) {
            at = 8u * slice;
            products = array<vec4<f32>, 2>();
            ones = array<vec4<f32>, 2>();
            take_block(place.matrix, row, depth, block);
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
        finish(first + slice, place.begin + row, all);
    }
}
