// SPDX-License-Identifier: Apache-2.0
// matmul_packed_one.wgsl - products of one row with weights of files, or of rows one by one: what
// writing a token is made of, bound by how long memory takes to answer, so nobody waits for it twice. A workgroup
// has eight rows of one matrix. f(a) comes into its memory, 3,072 columns at a time; each of 32
// slices of threads takes every 32nd block of 32 columns, and asks for the next one before it
// multiplies the one that has come.

const ROWS = 8u;
const SLICES = 256u / ROWS;
const COLS = 3072u;
const STRIDE = 9u; // of a block in row_of_a, in fours: slices side by side meet other banks
var<workgroup> row_of_a: array<vec4<f32>, 864>; // [96 blocks][STRIDE]
var<workgroup> partial: array<f32, 256>; // [SLICES][ROWS]
var<workgroup> squares: array<f32, 256>; // what the threads have seen of the row, where NORMED
// Of this thread's block: products with the first and the last 16 columns, and sums of f(a) there,
// which only weights with offsets want. at: of its columns there.
var<private> at: u32;
var<private> wants_ones: bool;
var<private> products: vec2<f32>;
var<private> ones: vec2<f32>;

fn four(v: u32, q: vec4<f32>) {
    let columns = row_of_a[at + v];
    let p = dot(q, columns);
    var s = 0.0;
    if (wants_ones) { s = dot(vec4<f32>(1.0), columns); }
    if (v < 4u) {
        products.x += p;
        ones.x += s;
    } else {
        products.y += p;
        ones.y += s;
    }
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let depth = depth_of_a();
    let blocks = (depth + 31u) / 32u;
    let across = groups_across(ROWS);
    let number = group_of(id, count);
    let t = number / across;
    if (t >= in_rows(0u)) { return; }
    let place = place_of(number % across, ROWS);
    let kind = layout_of(place.matrix);
    let r = lane % ROWS;
    let slice = lane / ROWS;
    let row = place.group * ROWS + r;
    let is_row = row < rows_of(place.matrix);
    let numbers = has_numbers(kind);
    wants_ones = has_offsets(kind);
    var block = slice;
    var next = Packed();
    if (is_row && numbers && block < blocks) {
        next = fetch(place.matrix, row, depth, block, kind);
    }
    var sum = 0.0;
    for (var tile = 0u; tile < depth; tile += COLS) {
        workgroupBarrier();
        let end = min(blocks, (tile + COLS) / 32u);
        for (var i = lane; i < 8u * (end - tile / 32u); i += 256u) {
            row_of_a[i / 8u * STRIDE + i % 8u] = values(t, t + 1u, tile + 4u * i, depth);
        }
        workgroupBarrier();
        for (; block < end; block += SLICES) {
            if (!is_row) { continue; }
            at = (block - tile / 32u) * STRIDE;
            products = vec2<f32>();
            ones = vec2<f32>();
            if (numbers) {
                let now = next;
                if (block + SLICES < blocks) {
                    next = fetch(place.matrix, row, depth, block + SLICES, kind);
                }
                take_numbers(now, kind);
            } else {
                take_floats(place.matrix, row, depth, block, kind);
            }
            sum += dot(products, scale) + dot(ones, offset);
        }
    }
    partial[lane] = sum;
    if (NORMED) { squares[lane] = square; }
    workgroupBarrier();
    if (lane < 64u) {
        partial[lane] += (partial[lane + 64u] + partial[lane + 128u]) + partial[lane + 192u];
    } else if (NORMED && lane < 128u) {
        let i = lane - 64u;
        squares[i] += (squares[i + 64u] + squares[i + 128u]) + squares[i + 192u];
    }
    workgroupBarrier();
    if (slice == 0u && is_row) {
        var all = 0.0;
        for (var i = r; i < 64u; i += ROWS) { all += partial[i]; }
        if (NORMED) {
            var total = 0.0;
            for (var i = 0u; i < 64u; i++) { total += squares[i]; }
            all *= 1.0 / sqrt(total / f32(depth) + op.f0);
        }
        finish(t, place.begin + row, all);
    }
}
