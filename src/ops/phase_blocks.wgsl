// SPDX-License-Identifier: Apache-2.0
// phase_blocks.wgsl - packed_rows.wgsl for phases of a kernel that has all states in a few buffers:
// where its matrices lie, and the block that was taken last, in fours.

var<private> matrices: array<Operand, 3>;
var<private> block_of: array<vec4<f32>, 8>;

fn word(part: u32, i: u32) -> u32 { return state_word(matrices[part], i); }
fn four(v: u32, q: vec4<f32>) { block_of[v] = q; }
// Columns 4 v .. 4 v + 3 of that block.
fn block_four(v: u32) -> vec4<f32> {
    return fma(block_of[v], vec4<f32>(scale[v / 4u]), vec4<f32>(offset[v / 4u]));
}
