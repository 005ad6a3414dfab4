// SPDX-License-Identifier: Apache-2.0
// layer_norm_grad.wgsl - gradients of layer_norm. In one dispatch, the first workgroups make dx of four
// rows each, 64 threads a row; the others make partial sums of 64 rows of 64 columns, four threads a
// column, that layer_norm_grad_w.wgsl adds up. See layer_norm_grad.c.
//
//     partial [parts][2][C]   sums of dy * h, of dy
@group(0) @binding(2) var<storage, read_write> x: array<f32>;
@group(0) @binding(3) var<storage, read_write> w: array<f32>;
@group(0) @binding(4) var<storage, read_write> mean: array<f32>;
@group(0) @binding(5) var<storage, read_write> rstd: array<f32>;
@group(0) @binding(6) var<storage, read_write> dy: array<f32>;
@group(0) @binding(7) var<storage, read_write> res: array<f32>;
@group(0) @binding(8) var<storage, read_write> dx: array<f32>;
@group(0) @binding(9) var<storage, read_write> partial: array<f32>;

var<workgroup> one: array<f32, 256>;
var<workgroup> two: array<f32, 256>;

fn rows_of(group: u32, lane: u32) {
    let row = group * 4u + lane / 64u;
    let cols = op.ins[0].cols;
    let here = row < op.ins[0].rows;
    let start = row * cols;
    var m = 0.0;
    var s = 0.0;
    var sum_e = 0.0;
    var sum_eh = 0.0;
    if (here) {
        m = mean[row];
        s = rstd[row];
        for (var c = lane % 64u; c < cols; c += 64u) {
            let e = dy[start + c] * w[c];
            sum_e += e;
            sum_eh = fma(e, (x[start + c] - m) * s, sum_eh);
        }
    }
    let means = quarter_sums(lane, sum_e, sum_eh) / f32(cols);
    if (!here) { return; }
    for (var c = lane % 64u; c < cols; c += 64u) {
        let h = (x[start + c] - m) * s;
        var d = s * (dy[start + c] * w[c] - means.x - h * means.y);
        if (is_here(5u)) { d += res[start + c]; }
        dx[start + c] = d;
    }
}

fn columns_of(group: u32, lane: u32) {
    let cols = op.ins[0].cols;
    let rows = op.ins[0].rows;
    let across = (cols + 63u) / 64u;
    let part = group / across;
    let c = group % across * 64u + lane % 64u;
    var sum_w = 0.0;
    var sum_b = 0.0;
    if (c < cols) {
        for (var r = part * 64u + lane / 64u; r < min(rows, part * 64u + 64u); r += 4u) {
            let d = dy[r * cols + c];
            sum_w = fma(d, (x[r * cols + c] - mean[r]) * rstd[r], sum_w);
            sum_b += d;
        }
    }
    one[lane] = sum_w;
    two[lane] = sum_b;
    workgroupBarrier();
    if (lane >= 64u || c >= cols || part * 64u >= rows) { return; }
    let at = part * 2u * cols + c;
    partial[at] = one[lane] + one[lane + 64u] + one[lane + 128u] + one[lane + 192u];
    partial[at + cols] = two[lane] + two[lane + 64u] + two[lane + 128u] + two[lane + 192u];
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let group = group_of(id, count);
    let of_rows = (op.ins[0].rows + 3u) / 4u;
    if (group < of_rows) { rows_of(group, lane); } else { columns_of(group - of_rows, lane); }
}
