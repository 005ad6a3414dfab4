// SPDX-License-Identifier: Apache-2.0
// attention_whole.wgsl - what attention_one.wgsl found of tiles of 64 keys, added up: a head of a token
// a workgroup.
@group(0) @binding(6) var<storage, read_write> o_out: array<f32>;

@compute @workgroup_size(64)
fn whole(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
         @builtin(local_invocation_index) tid: u32) {
    let size = u32(op.i2);
    let group = group_of(id, count);
    let head = group % u32(op.i0);
    let row = group / u32(op.i0);
    if (row >= in_rows(0u)) { return; }
    let k = keys_of(row, tid);
    let n = (k.end + 63u) / 64u - k.first;
    var top = LOWEST;
    for (var s = tid; s < n; s += 64u) { top = max(top, part[part_place(row, head, s, size) + size]); }
    top = group_max(tid, top);
    var sum = 0.0;
    for (var s = tid; s < n; s += 64u) {
        let base = part_place(row, head, s, size) + size;
        sum += part[base + 1u] * exp1(part[base] - top);
    }
    sum = group_sum(tid, sum);
    for (var d = tid; d < size; d += 64u) {
        var o = 0.0;
        for (var s = 0u; s < n; s++) {
            let base = part_place(row, head, s, size);
            o = fma(part[base + d], exp1(part[base + size] - top), o);
        }
        o_out[group * size + d] = o / sum;
    }
}
