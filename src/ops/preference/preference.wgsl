// SPDX-License-Identifier: Apache-2.0
// preference.wgsl - lse and log-probability of each row, then the margin of each pair, then the
// mean of their losses by one workgroup.
@group(0) @binding(2) var<storage, read_write> logits: array<f32>;
@group(0) @binding(3) var<storage, read_write> targets: array<i32>;
@group(0) @binding(4) var<storage, read_write> reference: array<f32>;
@group(0) @binding(5) var<storage, read_write> loss: array<f32>;
@group(0) @binding(6) var<storage, read_write> lse: array<f32>;
@group(0) @binding(7) var<storage, read_write> margin: array<f32>;
@group(0) @binding(8) var<storage, read_write> row_logp: array<f32>;

@compute @workgroup_size(64)
fn rows(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let row = group_of(id, count);
    let cols = op.ins[0].cols;
    if (row >= op.ins[0].rows) { return; }
    let start = row * cols;
    var largest = logits[start];
    for (var c = lane; c < cols; c += 64u) { largest = max(largest, logits[start + c]); }
    let top = group_max(lane, largest);
    var sum = 0.0;
    for (var c = lane; c < cols; c += 64u) { sum += exp1(logits[start + c] - top); }
    let all = group_sum(lane, sum);
    if (lane == 0u) {
        let counts = targets[row] >= 0;
        let value = top + log1(all);
        lse[row] = select(0.0, value, counts);
        row_logp[row] = select(0.0, logits[start + clamp_id(targets[row], cols)] - value, counts);
    }
}

// A workgroup a pair. What its answers gained is summed row by row, so that the two sums of
// log-probabilities, which are large, do not round what lies between them.
@compute @workgroup_size(64)
fn pairs(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
         @builtin(local_invocation_index) lane: u32) {
    let pair = group_of(id, count);
    let T = op.ins[1].cols;
    if (pair >= op.outs[2].cols) { return; }
    let start = 2u * pair * T;
    var sum = 0.0;
    for (var t = lane; t < T; t += 64u) { sum += row_logp[start + t] - row_logp[start + T + t]; }
    let gained = group_sum(lane, sum);
    if (lane == 0u) {
        margin[pair] = op.f1 * (gained - (reference[2u * pair] - reference[2u * pair + 1u]));
    }
}

@compute @workgroup_size(64)
fn mean(@builtin(local_invocation_index) lane: u32) {
    let n = op.outs[2].cols;
    var sum = 0.0;
    for (var p = lane; p < n; p += 64u) {
        sum += max(-margin[p], 0.0) + log1(1.0 + exp1(-abs(margin[p])));
    }
    let all = group_sum(lane, sum);
    if (lane == 0u) {
        var value = all / f32(n) * op.f0;
        if (adds(0u)) { value += loss[0]; }
        loss[0] = value;
    }
}
