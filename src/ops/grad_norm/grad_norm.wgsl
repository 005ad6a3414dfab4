// SPDX-License-Identifier: Apache-2.0
// grad_norm.wgsl - the norm of all gradients, without overflow and without doubles.
//
// A square of an f32 may be out of range, so that each is added to one of three sums, scaled by a
// power of two: large ones by 2^-90, small ones by 2^70, before they are squared (J. Blue 1978).
// No sum of up to 2^31 of them can leave the range. A NaN counts as large, and stays.
@group(0) @binding(2) var<storage, read_write> grads: array<f32>;
@group(0) @binding(3) var<storage, read_write> loss: array<f32>;
@group(0) @binding(4) var<storage, read_write> stats: array<f32>;
@group(0) @binding(5) var<storage, read_write> partial: array<f32>;

const LARGE = 0x1p50f;
const SMALL = 0x1p-50f;
const DOWN = 0x1p-90f;
const UP = 0x1p70f;

// Workgroup w sums the elements 64 w + lane + k * 64 * parts. Four of them are on their way at once,
// and the scaled sums are for the rare ones: a branch that a whole warp mostly leaves out.
@compute @workgroup_size(64)
fn parts(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
         @builtin(local_invocation_index) lane: u32) {
    let n = op.ins[0].cols;
    let stride = count.x * 64u;
    var large = 0.0;
    var middle = 0.0;
    var small = 0.0;
    for (var i = id.x * 64u + lane; i < n; i += 4u * stride) {
        var four = vec4<f32>(grads[i], 0.0, 0.0, 0.0);
        if (i + stride < n) { four.y = grads[i + stride]; }
        if (i + 2u * stride < n) { four.z = grads[i + 2u * stride]; }
        if (i + 3u * stride < n) { four.w = grads[i + 3u * stride]; }
        let size = abs(four);
        let usual = (size >= vec4<f32>(SMALL)) & (size <= vec4<f32>(LARGE));
        let kept = select(vec4<f32>(), four, usual);
        middle += dot(kept, kept);
        if (!all(usual)) {
            for (var e = 0u; e < 4u; e++) {
                let x = four[e];
                if (abs(x) < SMALL) {
                    small = fma(x * UP, x * UP, small);
                } else if (!usual[e]) {
                    large = fma(x * DOWN, x * DOWN, large);
                }
            }
        }
    }
    let all_large = group_sum(lane, large);
    let all_middle = group_sum(lane, middle);
    let all_small = group_sum(lane, small);
    if (lane == 0u) {
        partial[3u * id.x] = all_large;
        partial[3u * id.x + 1u] = all_middle;
        partial[3u * id.x + 2u] = all_small;
    }
}

@compute @workgroup_size(64)
fn total(@builtin(local_invocation_index) lane: u32) {
    let n = op.groups;
    var large = 0.0;
    var middle = 0.0;
    var small = 0.0;
    for (var i = lane; i < n; i += 64u) {
        large += partial[3u * i];
        middle += partial[3u * i + 1u];
        small += partial[3u * i + 2u];
    }
    let all_large = group_sum(lane, large);
    let all_middle = group_sum(lane, middle);
    let all_small = group_sum(lane, small);
    if (lane != 0u) { return; }
    var norm = 0.0;
    if (all_large > 0.0 || is_nan(all_large)) {
        norm = sqrt(all_large + all_middle * DOWN * DOWN) / DOWN;
    } else if (all_middle > 0.0) {
        norm = sqrt(all_middle + all_small / UP / UP);
    } else {
        norm = sqrt(all_small) / UP;
    }
    let coefficient = op.f0 / (norm + 1e-6);
    stats[0] = norm;
    stats[1] = select(1.0, coefficient, op.f0 > 0.0 && coefficient < 1.0);
    stats[2] = select(0.0, 1.0, is_finite(norm) && is_finite(loss[0]));
    stats[3] = loss[0];
}
