// SPDX-License-Identifier: Apache-2.0
// position_grad.wgsl - dp[t,:] = sum over b of dy[b,t,:]; rows beyond the tokens get 0.
@group(0) @binding(2) var<storage, read_write> dy: array<f32>;
@group(0) @binding(3) var<storage, read_write> dp: array<f32>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let cols = op.ins[0].cols;
    let rows = op.ins[0].rows;
    let tokens = select(rows, op.ins[0].dim1, in_dims(0u) == 3u); // of [T,C] or [B,T,C]
    let n = op.outs[0].rows * cols;
    let first = group_of(id, count) * 1024u + lane;
    for (var i = first; i < min(n, first + 1024u); i += 256u) {
        var sum = 0.0;
        if (i / cols < tokens) {
            for (var r = i / cols; r < rows; r += tokens) { sum += dy[r * cols + i % cols]; }
        }
        if (adds(0u)) { sum += dp[i]; }
        dp[i] = sum;
    }
}
