// SPDX-License-Identifier: Apache-2.0
// packed_rows.wgsl - 32 columns of a row of packed.wgsl at a time: first asked for, then taken. Who
// includes it has four(v, q), which is given the numbers of columns 4 v .. 4 v + 3.

// Of what was taken last.
var<private> scale: vec2<f32>;
var<private> offset: vec2<f32>;

// What a block of whole numbers has in memory for one row.
struct Packed {
    low: vec4<u32>,
    high: vec4<u32>, // of bytes, the last 16 columns
    fifth: u32,
    scales: Scales,
}

fn four_words(part: u32, at: u32) -> vec4<u32> {
    return vec4<u32>(word(part, at), word(part, at + 16u), word(part, at + 32u),
                     word(part, at + 48u));
}

fn fetch(part: u32, row: u32, cols: u32, block: u32, kind: u32) -> Packed {
    let at = numbers_at(row, cols, block, kind) + row % 16u;
    var p = Packed();
    p.low = four_words(part, at);
    if (has_bytes(kind)) { p.high = four_words(part, at + 64u); }
    if (has_fifth_bits(kind)) { p.fifth = word(part, at + 64u); }
    p.scales = scales_of(part, row, cols, block, kind);
    return p;
}

fn take_numbers(p: Packed, kind: u32) {
    let zero = zero_of(kind);
    scale = p.scales.scale;
    offset = p.scales.offset;
    for (var v = 0u; v < 4u; v++) {
        if (has_bytes(kind)) {
            four(v, bytes_of(p.low[v]) - zero);
            four(v + 4u, bytes_of(p.high[v]) - zero);
        } else {
            four(v, nibbles(p.low[v], p.fifth, v, false) - zero);
            four(v + 4u, nibbles(p.low[v], p.fifth, v, true) - zero);
        }
    }
}

// Columns [32 * block, + 32) of a row of floats.
fn take_floats(part: u32, row: u32, cols: u32, block: u32, kind: u32) {
    scale = vec2<f32>(1.0);
    offset = vec2<f32>();
    for (var v = 0u; v < 8u; v++) {
        let col = 32u * block + 4u * v;
        four(v, vec4<f32>(one_float(part, row, cols, col, kind),
                          one_float(part, row, cols, col + 1u, kind),
                          one_float(part, row, cols, col + 2u, kind),
                          one_float(part, row, cols, col + 3u, kind)));
    }
}

// Columns [32 * block, + 32) of a row, whatever its layout.
fn take_block(part: u32, row: u32, cols: u32, block: u32) {
    let kind = layout_of(part);
    if (has_numbers(kind)) {
        take_numbers(fetch(part, row, cols, block, kind), kind);
    } else {
        take_floats(part, row, cols, block, kind);
    }
}
