// SPDX-License-Identifier: Apache-2.0
// submit_check.wgsl - the last dispatch of every submit: one more is done.

@group(0) @binding(2) var<storage, read_write> done: array<u32>;

@compute @workgroup_size(1)
fn main() { done[0] += 1u; }
