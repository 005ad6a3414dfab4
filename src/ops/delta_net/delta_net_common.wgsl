// SPDX-License-Identifier: Apache-2.0
// delta_net_common.wgsl - places in rows, behind mamba2_common.wgsl. H, P, G, N are i0 .. i3, i4 the
// order of heads: delta_net_rules.h.
fn sigmoid(x: f32) -> f32 { return 1.0 / (1.0 + exp1(-clamp(x, -80.0, 80.0))); }

// Where the queries of head h begin among the convolution's columns; its keys are keys_behind() on.
fn query_of(h: u32) -> u32 {
    let g = u32(op.i2);
    return select(h / (u32(op.i0) / g), h % g, op.i4 == 1) * u32(op.i3);
}
fn keys_behind() -> u32 { return u32(op.i2 * op.i3); }
fn value_of(h: u32) -> u32 { return 2u * keys_behind() + h * u32(op.i1); }
fn row_of_z(r: u32) -> u32 { return r * (inner() + columns()); }
