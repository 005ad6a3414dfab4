// SPDX-License-Identifier: Apache-2.0
// cross_entropy.wgsl - lse and loss of each row, then the mean of the losses by one workgroup.
@group(0) @binding(2) var<storage, read_write> logits: array<f32>;
@group(0) @binding(3) var<storage, read_write> targets: array<i32>;
@group(0) @binding(4) var<storage, read_write> loss: array<f32>;
@group(0) @binding(5) var<storage, read_write> lse: array<f32>;
@group(0) @binding(6) var<storage, read_write> row_loss: array<f32>;

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
        let value = top + log1(all);
        lse[row] = value;
        row_loss[row] = select(value - logits[start + clamp_id(targets[row], cols)], 0.0,
                               targets[row] < 0);
    }
}

@compute @workgroup_size(64)
fn mean(@builtin(local_invocation_index) lane: u32) {
    let n = op.ins[0].rows;
    var sum = 0.0;
    var some = 0.0;
    for (var r = lane; r < n; r += 64u) {
        sum += row_loss[r];
        some += select(0.0, 1.0, targets[r] >= 0);
    }
    let all = group_sum(lane, sum);
    let counted = group_sum(lane, some);
    if (lane == 0u) {
        var value = select(0.0, all / max(counted, 1.0) * op.f0, counted > 0.0);
        if (adds(0u)) { value += loss[0]; }
        loss[0] = value;
    }
}
