// SPDX-License-Identifier: Apache-2.0
// embedding_grad.wgsl - dtable[v,:] = scale * the sum of dy over the tokens v.
//
// A workgroup has a row v and 64 columns of it. It goes through the tokens 2048 at a time, eight in
// a row for each thread, and lists those that are v, in their order: a thread writes behind what the
// threads before it have found. Then four threads a column sum dy over the list.
@group(0) @binding(2) var<storage, read_write> ids: array<i32>;
@group(0) @binding(3) var<storage, read_write> dy: array<f32>;
@group(0) @binding(4) var<storage, read_write> dtable: array<f32>;

var<workgroup> found: array<u32, 2048>;
var<workgroup> ends: array<u32, 256>; // how many the threads up to this one have found
var<workgroup> sums: array<f32, 256>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let cols = op.outs[0].cols;
    let rows = op.outs[0].rows;
    let n = op.ins[1].rows;
    let across = (cols + 63u) / 64u;
    let group = group_of(id, count);
    let v = group / across;
    let c = group % across * 64u + lane % 64u;
    if (v >= rows) { return; }
    var sum = 0.0;
    for (var base = 0u; base < n; base += 2048u) {
        let first = base + 8u * lane;
        var mine = 0u; // a bit for each of the eight
        for (var i = 0u; i < 8u; i++) {
            if (first + i < n && clamp_id(ids[min(first + i, n - 1u)], rows) == v) { mine |= 1u << i; }
        }
        ends[lane] = countOneBits(mine);
        for (var step = 1u; step < 256u; step *= 2u) {
            workgroupBarrier();
            var before = 0u;
            if (lane >= step) { before = ends[lane - step]; }
            workgroupBarrier();
            ends[lane] += before;
        }
        workgroupBarrier();
        var at = ends[lane] - countOneBits(mine);
        for (var i = 0u; i < 8u; i++) {
            if (((mine >> i) & 1u) != 0u) {
                found[at] = first + i;
                at++;
            }
        }
        let all = ends[255];
        workgroupBarrier();
        if (c < cols) {
            for (var i = lane / 64u; i < all; i += 4u) { sum += dy[found[i] * cols + c]; }
        }
    }
    sums[lane] = sum;
    workgroupBarrier();
    if (lane >= 64u || c >= cols) { return; }
    var total = sums[lane] + sums[lane + 64u] + sums[lane + 128u] + sums[lane + 192u];
    if (op.f0 != 0.0) { total *= op.f0; }
    if (adds(0u)) { total += dtable[v * cols + c]; }
    dtable[v * cols + c] = total;
}
