// SPDX-License-Identifier: Apache-2.0
// block.wgsl - where element e of a block lies in its parameter, see block.h.
fn block_elems() -> u32 { return u32(op.i1) * u32(op.i3); }
fn block_at(e: u32) -> u32 {
    let cols = u32(op.i3);
    return (u32(op.i0) + e / cols) * op.ins[0].cols + u32(op.i2) + e % cols;
}
