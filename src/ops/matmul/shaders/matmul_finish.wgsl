// SPDX-License-Identifier: Apache-2.0
// matmul_finish.wgsl - what follows the product: four columns from j on.
fn finish(s: Sizes, i: u32, j: u32, product: vec4<f32>) {
    let at = (i * s.n + j) / 4u;
    var sum = product;
    if (adds(0u)) { sum += y[at]; }
    if (is_here(2u)) { sum += bias[j / 4u]; }
    if (op.i2 != 0) { z[at] = sum; }
    if (op.i1 != 0) {
        sum = vec4<f32>(activated(sum.x, op.i1), activated(sum.y, op.i1), activated(sum.z, op.i1),
                        activated(sum.w, op.i1));
    }
    if (is_here(3u)) { sum += residual[at]; }
    y[at] = sum;
}
