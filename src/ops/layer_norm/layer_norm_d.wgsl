// layer_norm_d.wgsl - dx of layer_norm, a workgroup for each row. See layer_norm_d.c.
@group(0) @binding(2) var<storage, read_write> x: array<f32>;
@group(0) @binding(3) var<storage, read_write> w: array<f32>;
@group(0) @binding(4) var<storage, read_write> mean: array<f32>;
@group(0) @binding(5) var<storage, read_write> rstd: array<f32>;
@group(0) @binding(6) var<storage, read_write> dy: array<f32>;
@group(0) @binding(7) var<storage, read_write> res: array<f32>;
@group(0) @binding(8) var<storage, read_write> dx: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let row = group_of(id, count);
    let cols = op.ins[0].cols;
    if (row >= in_rows(0u)) { return; }
    let start = row * cols;
    let m = mean[row];
    let s = rstd[row];
    var sum_e = 0.0;
    var sum_eh = 0.0;
    for (var c = lane; c < cols; c += 64u) {
        let e = dy[start + c] * w[c];
        sum_e += e;
        sum_eh = fma(e, (x[start + c] - m) * s, sum_eh);
    }
    let mean_e = group_sum(lane, sum_e) / f32(cols);
    let mean_eh = group_sum(lane, sum_eh) / f32(cols);
    for (var c = lane; c < cols; c += 64u) {
        let h = (x[start + c] - m) * s;
        var d = s * (dy[start + c] * w[c] - mean_e - h * mean_eh);
        if (is_here(5u)) { d += res[start + c]; }
        dx[start + c] = d;
    }
}
