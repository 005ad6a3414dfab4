// SPDX-License-Identifier: Apache-2.0
// attention_whole.wgsl - what attention_one.wgsl found of tiles of 64 keys, added up: a head of a token
// a workgroup.
@group(0) @binding(6) var<storage, read_write> o_out: array<f32>;

var<workgroup> scales: array<f32, 64>; // of as many tiles

// A column of four tiles from s on; behind the last one the last one's.
fn four_parts(at: u32, s: u32, n: u32, size: u32) -> vec4<f32> {
    let each = size + 2u;
    return vec4<f32>(part[at + min(s, n - 1u) * each], part[at + min(s + 1u, n - 1u) * each],
                     part[at + min(s + 2u, n - 1u) * each], part[at + min(s + 3u, n - 1u) * each]);
}

fn four_scales(s: u32) -> vec4<f32> {
    return vec4<f32>(scales[s], scales[s + 1u], scales[s + 2u], scales[s + 3u]);
}

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
    var o = vec4<f32>(); // of columns tid, tid + 64 ..
    for (var first = 0u; first < n; first += 64u) {
        let mine = part_place(row, head, min(first + tid, n - 1u), size) + size;
        let scale = select(0.0, exp1(part[mine] - top), first + tid < n);
        sum += part[mine + 1u] * scale;
        workgroupBarrier();
        scales[tid] = scale;
        workgroupBarrier();
        for (var s = 0u; s < min(64u, n - first); s += 8u) {
            for (var e = 0u; e < 4u; e++) {
                if (64u * e + tid >= size) { break; }
                let at = part_place(row, head, 0u, size) + 64u * e + tid;
                o[e] += dot(four_parts(at, first + s, n, size), four_scales(s)) +
                        dot(four_parts(at, first + s + 4u, n, size), four_scales(s + 4u));
            }
        }
    }
    sum = group_sum(tid, sum);
    for (var e = 0u; e < 4u; e++) {
        if (64u * e + tid >= size) { break; }
        o_out[group * size + 64u * e + tid] = o[e] / sum;
    }
}
