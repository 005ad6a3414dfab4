// SPDX-License-Identifier: Apache-2.0
// matmul_four_words.wgsl - the matrices of matmul_words.wgsl, four words at a time.
@group(0) @binding(3) var<storage, read_write> b: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read_write> bias: array<f32>;
@group(0) @binding(6) var<storage, read_write> b1: array<vec4<u32>>;
@group(0) @binding(7) var<storage, read_write> b2: array<vec4<u32>>;
@group(0) @binding(8) var<storage, read_write> y: array<f32>;

fn four_words_at(part: u32, i: u32) -> vec4<u32> {
    if (part == 0u) { return b[i]; }
    if (part == 1u) { return b1[i]; }
    return b2[i];
}
fn word(part: u32, i: u32) -> u32 { return four_words_at(part, i / 4u)[i % 4u]; }
