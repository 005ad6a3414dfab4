// SPDX-License-Identifier: Apache-2.0
// matmul_words.wgsl - up to three matrices of weights of files side by side, word by word. Binding 5 is
// of the text that finishes y.
@group(0) @binding(3) var<storage, read_write> b: array<u32>;
@group(0) @binding(4) var<storage, read_write> bias: array<f32>;
@group(0) @binding(6) var<storage, read_write> b1: array<u32>;
@group(0) @binding(7) var<storage, read_write> b2: array<u32>;
@group(0) @binding(8) var<storage, read_write> y: array<f32>;

fn word(part: u32, i: u32) -> u32 {
    if (part == 0u) { return b[i]; }
    if (part == 1u) { return b1[i]; }
    return b2[i];
}
