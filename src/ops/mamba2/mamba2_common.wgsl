// SPDX-License-Identifier: Apache-2.0
// mamba2_common.wgsl - sizes, and the function of the steps, of all of Mamba2's shaders.
// H, P, G, N are i0 .. i3.
fn inner() -> u32 { return u32(op.i0 * op.i1); }
fn columns() -> u32 { return inner() + 2u * u32(op.i2 * op.i3); }
fn softplus(x: f32) -> f32 {
    let e = exp1(min(x, 20.0));
    return select(select(log1(1.0 + e), e * (1.0 - 0.5 * e), e < 1e-4), x, x > 20.0);
}
