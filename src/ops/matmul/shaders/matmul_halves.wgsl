// SPDX-License-Identifier: Apache-2.0
// matmul_halves.wgsl - rounds the operands of a product, a thread eight of them: see
// matmul_padded.wgsl. What is too large for a half becomes the largest one, unless it is infinite, or
// overflows: a gradient whose scale follows the run is infinite then, which has the update left out.
fn rounded(v: vec4<f32>, scale: f32, overflows: bool) -> vec2<u32> {
    var x = v * scale;
    for (var c = 0u; c < 4u; c++) {
        if (is_finite(x[c]) && abs(x[c]) > 65504.0) {
            let sign_bit = bitcast<u32>(x[c]) & 0x80000000u;
            x[c] = bitcast<f32>(select(0x477fe000u, 0x7f800000u, overflows) | sign_bit);
        }
    }
    return vec2<u32>(pack2x16float(x.xy), pack2x16float(x.zw));
}

// Four of a row from `col` on, zeros beyond the end; cols is a multiple of four.
fn left_four(row: u32, col: u32, rows: u32, cols: u32) -> vec4<f32> {
    if (row >= rows || col >= cols) { return vec4<f32>(); }
    return fetch_left(0u, (row * cols + col) / 4u);
}

fn put_left_eight(s: Sizes, p: Sizes, i: u32) {
    let pitch = select(p.m, p.k, LEFT_BY_K) / 8u;
    let row = i / pitch;
    let col = i % pitch * 8u;
    let rows = select(s.k, s.m, LEFT_BY_K);
    let cols = select(s.m, s.k, LEFT_BY_K);
    let scale = scale_of(op.f0);
    let overflows = op.f0 != 0.0 && is_here(6u);
    halves[i] = vec4<u32>(rounded(left_four(row, col, rows, cols), scale, overflows),
                          rounded(left_four(row, col + 4u, rows, cols), scale, overflows));
}

@compute @workgroup_size(256)
fn round_halves(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
                @builtin(local_invocation_index) tid: u32) {
    let s = sizes();
    let p = padded(s);
    let i = group_of(id, count) * 256u + tid;
    let of_left = p.m * p.k / 8u;
    if (i < of_left) { put_left_eight(s, p, i); } else { put_right_eight(s, p, of_left, i - of_left); }
}
