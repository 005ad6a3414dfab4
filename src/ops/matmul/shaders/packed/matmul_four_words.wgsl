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

// What a thread of matmul_one_row.wgsl reads of a block: EACH of its words from `at` on, its scales,
// and its offsets, unless more_at is 0. One branch has all of them: with one around each load those
// of products with several matrices took twice as long.
fn words_of_block(part: u32, at: u32, scales_at: u32, more_at: u32) -> Nibbles {
    var n = Nibbles();
    if (LONE || part == 0u) {
        n.x0 = b[at];
        if (EACH > 1u) { n.x1 = b[at + 4u]; }
        if (EACH > 2u) { n.x2 = b[at + 8u]; }
        if (EACH > 2u) { n.x3 = b[at + 12u]; }
        n.scales = b[scales_at];
        if (more_at != 0u) { n.offsets = b[more_at]; }
    } else if (part == 1u) {
        n.x0 = b1[at];
        if (EACH > 1u) { n.x1 = b1[at + 4u]; }
        if (EACH > 2u) { n.x2 = b1[at + 8u]; }
        if (EACH > 2u) { n.x3 = b1[at + 12u]; }
        n.scales = b1[scales_at];
        if (more_at != 0u) { n.offsets = b1[more_at]; }
    } else {
        n.x0 = b2[at];
        if (EACH > 1u) { n.x1 = b2[at + 4u]; }
        if (EACH > 2u) { n.x2 = b2[at + 8u]; }
        if (EACH > 2u) { n.x3 = b2[at + 12u]; }
        n.scales = b2[scales_at];
        if (more_at != 0u) { n.offsets = b2[more_at]; }
    }
    return n;
}
