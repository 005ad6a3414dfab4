// layer_norm.wgsl - y = (x - mean) * rstd * w + b, four rows a workgroup, 64 threads a row. The
// variance is summed in a pass of its own, as in the reference.
@group(0) @binding(2) var<storage, read_write> x: array<f32>;
@group(0) @binding(3) var<storage, read_write> w: array<f32>;
@group(0) @binding(4) var<storage, read_write> b: array<f32>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;
@group(0) @binding(6) var<storage, read_write> mean_out: array<f32>;
@group(0) @binding(7) var<storage, read_write> rstd_out: array<f32>;

var<workgroup> lanes: array<f32, 256>;

// The sum of this row's threads.
fn row_sum(lane: u32, value: f32) -> f32 {
    lanes[lane] = value;
    for (var half = 32u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if (lane % 64u < half) { lanes[lane] += lanes[lane + half]; }
    }
    workgroupBarrier();
    let sum = lanes[lane / 64u * 64u];
    workgroupBarrier();
    return sum;
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let row = group_of(id, count) * 4u + lane / 64u;
    let cols = op.ins[0].cols;
    let end = select(0u, cols, row < in_rows(0u)); // a row beyond the last has no columns
    let start = row * cols;
    var sum = 0.0;
    for (var c = lane % 64u; c < end; c += 64u) { sum += x[start + c]; }
    let mean = row_sum(lane, sum) / f32(cols);
    var square = 0.0;
    for (var c = lane % 64u; c < end; c += 64u) {
        let d = x[start + c] - mean;
        square = fma(d, d, square);
    }
    let rstd = 1.0 / sqrt(row_sum(lane, square) / f32(cols) + op.f0);
    for (var c = lane % 64u; c < end; c += 64u) {
        y[start + c] = fma((x[start + c] - mean) * rstd, w[c], b[c]);
    }
    if (lane % 64u == 0u && end > 0u) {
        mean_out[row] = mean;
        rstd_out[row] = rstd;
    }
}
