// SPDX-License-Identifier: Apache-2.0
// matmul_back_finish.wgsl - what becomes of the sums of matmul_back.wgsl, at a four of the result.
fn slope(v: vec4<f32>) -> vec4<f32> {
    return vec4<f32>(gelu_erf_d(v.x), gelu_erf_d(v.y), gelu_erf_d(v.z), gelu_erf_d(v.w));
}
fn finish_dx(at: u32, v: vec4<f32>) {
    if (GELU == 1) { dx[at] = v * slope(z[at]); } else { dx[at] = v; }
}
fn finish_dw(at: u32, v: vec4<f32>) {
    if (member_adds(1u)) { dw[at] += v; } else { dw[at] = v; }
}
fn finish_db(at: u32, v: vec4<f32>) {
    if (member_adds(2u)) { db[at] += v; } else { db[at] = v; }
}
