// SPDX-License-Identifier: Apache-2.0
// route.wgsl - the greatest logits of a row and their softmax, a row a thread.
@group(0) @binding(2) var<storage, read_write> logits: array<f32>;
@group(0) @binding(3) var<storage, read_write> weights: array<f32>;
@group(0) @binding(4) var<storage, read_write> ids: array<i32>;

fn is_chosen(first: u32, n: u32, e: u32) -> bool {
    for (var j = 0u; j < n; j++) {
        if (ids[first + j] == i32(e)) { return true; }
    }
    return false;
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let t = group_of(id, count) * 64u + lane;
    if (t >= in_rows(0u)) { return; }
    let cols = op.ins[0].cols;
    let k = op.outs[0].cols;
    for (var j = 0u; j < k; j++) {
        var best = cols;
        for (var e = 0u; e < cols; e++) {
            if (is_chosen(t * k, j, e)) { continue; }
            if (best == cols) {
                best = e;
            } else if (logits[t * cols + e] > logits[t * cols + best]) {
                best = e;
            }
        }
        ids[t * k + j] = i32(best);
    }
    let most = logits[t * cols + u32(ids[t * k])];
    var sum = 0.0;
    if (op.i1 != 0) {
        for (var e = 0u; e < cols; e++) { sum += exp(logits[t * cols + e] - most); }
    } else {
        for (var j = 0u; j < k; j++) { sum += exp(logits[t * cols + u32(ids[t * k + j])] - most); }
    }
    for (var j = 0u; j < k; j++) {
        weights[t * k + j] = exp(logits[t * cols + u32(ids[t * k + j])] - most) / sum;
    }
}
