// SPDX-License-Identifier: Apache-2.0
// carry.wgsl - one word of a plan's last run, as an input of its next one.

@group(0) @binding(2) var<storage, read_write> next: array<u32>;
@group(0) @binding(3) var<storage, read_write> last: array<u32>;

@compute @workgroup_size(1)
fn main() { next[0] = last[0]; }
