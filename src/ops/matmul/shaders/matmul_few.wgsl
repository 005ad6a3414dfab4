// SPDX-License-Identifier: Apache-2.0
// matmul_few.wgsl - for few rows, as in decoding: an element of y for each row of 16 threads, which
// go through k together and add up what they have.

var<workgroup> part: array<f32, 256>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let s = sizes();
    // Sixteen columns: neighbours in memory are neighbouring threads, columns or k.
    let across = (s.n + 15u) / 16u;
    let group = group_of(id, count);
    let i = group / across;
    if (i >= s.m) { return; }
    let column = select(lane % 16u, lane / 16u, op.i0 == 2);
    let slice = select(lane / 16u, lane % 16u, op.i0 == 2);
    let j = group % across * 16u + column;
    let a_row = select(s.k, 1u, op.i0 == 1);
    let a_k = select(1u, s.m, op.i0 == 1);
    let b_col = select(1u, s.k, op.i0 == 2);
    let b_k = select(s.n, 1u, op.i0 == 2);
    var sum = 0.0;
    if (j < s.n) {
        for (var k = slice; k < s.k; k += 16u) {
            sum = fma(a[i * a_row + k * a_k], b[j * b_col + k * b_k], sum);
        }
    }
    part[slice * 16u + column] = sum;
    workgroupBarrier();
    if (lane < 16u && group % across * 16u + lane < s.n) {
        var all = 0.0;
        for (var t = 0u; t < 16u; t++) { all += part[t * 16u + lane]; }
        finish(s, i, group % across * 16u + lane, all);
    }
}
