// SPDX-License-Identifier: Apache-2.0
// rms_norm_grad.wgsl - gradients of rms_norm: dx, a row or a group of its columns a workgroup, which
// leaves 1 / rms of it;
// then dw, in partial sums of 64 rows, and the sum of those. See rms_norm_grad.c.
//
//     scratch [rows][groups]   1 / rms      [parts][C]   sums of dy * h
@group(0) @binding(2) var<storage, read_write> x: array<f32>;
@group(0) @binding(3) var<storage, read_write> w: array<f32>;
@group(0) @binding(4) var<storage, read_write> dy: array<f32>;
@group(0) @binding(5) var<storage, read_write> res: array<f32>;
@group(0) @binding(6) var<storage, read_write> dx: array<f32>;
@group(0) @binding(7) var<storage, read_write> dw: array<f32>;
@group(0) @binding(8) var<storage, read_write> scratch: array<f32>;

fn groups() -> u32 { return max(1u, u32(op.i0)); }

@compute @workgroup_size(64)
fn by_row(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
          @builtin(local_invocation_index) lane: u32) {
    let row = group_of(id, count);
    let cols = op.ins[0].cols / groups();
    if (row >= op.ins[0].rows * groups()) { return; }
    let start = row * cols;
    let gain = row % groups() * cols;
    var square = 0.0;
    for (var c = lane; c < cols; c += 64u) { square = fma(x[start + c], x[start + c], square); }
    let s = 1.0 / sqrt(group_sum(lane, square) / f32(cols) + op.f0);
    var sum = 0.0;
    for (var c = lane; c < cols; c += 64u) {
        sum = fma(dy[start + c] * w[gain + c], x[start + c] * s, sum);
    }
    let mean = group_sum(lane, sum) / f32(cols);
    for (var c = lane; c < cols; c += 64u) {
        var d = s * (dy[start + c] * w[gain + c] - x[start + c] * s * mean);
        if (is_here(3u)) { d += res[start + c]; }
        dx[start + c] = d;
    }
    if (lane == 0u) { scratch[row] = s; }
}

@compute @workgroup_size(64)
fn parts(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
         @builtin(local_invocation_index) lane: u32) {
    let cols = op.ins[0].cols;
    let rows = op.ins[0].rows;
    let across = (cols + 63u) / 64u;
    let part = group_of(id, count) / across;
    let c = group_of(id, count) % across * 64u + lane;
    if (part * 64u >= rows || c >= cols) { return; }
    var sum = 0.0;
    for (var r = part * 64u; r < min(rows, part * 64u + 64u); r++) {
        let s = scratch[r * groups() + c / (cols / groups())];
        sum = fma(dy[r * cols + c], x[r * cols + c] * s, sum);
    }
    scratch[rows * groups() + part * cols + c] = sum;
}

@compute @workgroup_size(64)
fn total(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
         @builtin(local_invocation_index) lane: u32) {
    let cols = op.ins[0].cols;
    let rows = op.ins[0].rows;
    let c = group_of(id, count) * 64u + lane;
    if (c >= cols) { return; }
    var sum = 0.0;
    for (var part = 0u; part * 64u < rows; part++) {
        sum += scratch[rows * groups() + part * cols + c];
    }
    if (adds(1u)) { sum += dw[c]; }
    dw[c] = sum;
}
