// SPDX-License-Identifier: Apache-2.0
// gates_copy.wgsl - split_gates and join_gates, by elements of x: see gates_rules.h. H, K, D are i0 ..
// i2; entries differ in the way that they copy.
@group(0) @binding(2) var<storage, read_write> x: array<f32>;
@group(0) @binding(3) var<storage, read_write> qkv: array<f32>;
@group(0) @binding(4) var<storage, read_write> gates: array<f32>;

fn copy(id: vec3<u32>, count: vec3<u32>, lane: u32, rows: u32, joins: bool) {
    let d = u32(op.i2);
    let queries = u32(op.i0) * d;
    let row = queries + 2u * u32(op.i1) * d;
    let n = rows * (row + queries);
    let first = group_of(id, count) * 1024u + lane;
    for (var at = first; at < min(n, first + 1024u); at += 256u) {
        let r = at / (row + queries);
        let i = at % (row + queries);
        let own = i / (2u * d) * d + i % d;
        let gate = i < 2u * queries && i / d % 2u == 1u;
        let to = select(r * row + select(own, i - queries, i >= 2u * queries), r * queries + own,
                        gate);
        if (joins) {
            if (!gate) { x[at] = qkv[to]; } else if (is_here(1u)) { x[at] = gates[to]; } else { x[at] = 0.0; }
        } else {
            if (gate) { gates[to] = x[at]; } else { qkv[to] = x[at]; }
        }
    }
}

@compute @workgroup_size(256)
fn split(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
         @builtin(local_invocation_index) lane: u32) {
    copy(id, count, lane, in_rows(0u), false);
}

@compute @workgroup_size(256)
fn join(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    copy(id, count, lane, in_rows(0u), true);
}
