// SPDX-License-Identifier: Apache-2.0
// packed.wgsl - weights of files: 32 columns of a row at a time, by the layouts that dtype/packed.h
// draws.
//
//     weight[k] = q[k] * scale[k / 16] + offset[k / 16]        q: whole numbers, or floats by 1
//
// Whoever includes it has word(part, i), 32 bits of a matrix, and is given q by four(v, q), columns
// 4 v .. 4 v + 3 of the block. op.word has eight bits a part: the layout, and of rows that are not
// packed what they are.

const PLAIN = 0u; const F32X16 = 1u; const F16X16 = 2u; const BF16X16 = 3u;
const C4 = 4u; const M4 = 5u; const C5 = 6u; const M5 = 7u; const C8 = 8u; const K4 = 9u;
const S8 = 10u;
const LAYOUT = 15u; const PLAIN_BF16 = 16u;

// Of the block that was taken last.
var<private> scale: vec2<f32>;
var<private> offset: vec2<f32>;

fn layout_of(part: u32) -> u32 { return (op.word >> (8u * part)) & 255u; }

// By bits: scales may be subnormal, which hardware may take for zeros.
fn half_of(bits: u32) -> f32 {
    let e = (bits >> 10u) & 31u;
    let m = bits & 1023u;
    var x = bitcast<f32>(((e + 112u) << 23u) | (m << 13u));
    if (e == 0u) { x = f32(m) * 0x1p-24f; }
    if (e == 31u) { x = bitcast<f32>(0x7f800000u | (m << 13u)); }
    return select(x, -x, (bits & 0x8000u) != 0u);
}

// Value `row` of sixteen that begin at word `at`.
fn half_at(part: u32, at: u32, row: u32) -> f32 {
    return half_of((word(part, at + row / 2u) >> (16u * (row & 1u))) & 0xffffu);
}
fn float_at(part: u32, at: u32, row: u32) -> f32 { return bitcast<f32>(word(part, at + row)); }
fn byte_at(part: u32, at: u32, row: u32) -> f32 {
    return f32((word(part, at + row / 4u) >> (8u * (row & 3u))) & 255u);
}

fn bytes_of(x: u32) -> vec4<f32> {
    return vec4<f32>(f32(x & 255u), f32((x >> 8u) & 255u), f32((x >> 16u) & 255u), f32(x >> 24u));
}

// Nibbles of four words, and a fifth bit where there is one.
fn take_nibbles(part: u32, at: u32, row: u32, fifth: u32, zero: f32) {
    for (var v = 0u; v < 4u; v++) {
        let x = word(part, at + 16u * v + row);
        let low = (x & 0x0f0f0f0fu) | (((fifth >> v) & 0x01010101u) << 4u);
        let high = ((x >> 4u) & 0x0f0f0f0fu) | (((fifth >> (v + 4u)) & 0x01010101u) << 4u);
        four(v, bytes_of(low) - zero);
        four(v + 4u, bytes_of(high) - zero);
    }
}

fn take_bytes(part: u32, at: u32, row: u32) {
    for (var v = 0u; v < 8u; v++) {
        four(v, bytes_of(word(part, at + 16u * v + row)) - 128.0);
    }
}

// One float of a row, of layouts that have no blocks; beyond the last column: 0.
fn one_float(part: u32, row: u32, cols: u32, col: u32, kind: u32) -> f32 {
    if (col >= cols) { return 0.0; }
    let at = (row / 16u * cols + col) * 16u + row % 16u;
    if (kind == F32X16) { return bitcast<f32>(word(part, at)); }
    let plain = (kind & LAYOUT) == PLAIN;
    let i = select(at, row * cols + col, plain);
    let bits = (word(part, i / 2u) >> (16u * (i & 1u))) & 0xffffu;
    if (kind == BF16X16 || (plain && (kind & PLAIN_BF16) != 0u)) {
        return bitcast<f32>(bits << 16u);
    }
    return half_of(bits);
}

fn take_floats(part: u32, row: u32, cols: u32, block: u32, kind: u32) {
    for (var v = 0u; v < 8u; v++) {
        let col = 32u * block + 4u * v;
        four(v, vec4<f32>(one_float(part, row, cols, col, kind),
                          one_float(part, row, cols, col + 1u, kind),
                          one_float(part, row, cols, col + 2u, kind),
                          one_float(part, row, cols, col + 3u, kind)));
    }
}

// Columns [32 * block, + 32) of a row.
fn take_block(part: u32, row: u32, cols: u32, block: u32) {
    let kind = layout_of(part);
    let r = row % 16u;
    let group = row / 16u * (cols / 32u) + block;
    offset = vec2<f32>();
    if (kind == C4) {
        let at = group * 72u;
        scale = vec2<f32>(half_at(part, at + 64u, r));
        take_nibbles(part, at, r, 0u, 8.0);
    } else if (kind == M4) {
        let at = group * 80u;
        scale = vec2<f32>(half_at(part, at + 64u, r));
        offset = vec2<f32>(half_at(part, at + 72u, r));
        take_nibbles(part, at, r, 0u, 0.0);
    } else if (kind == C5) {
        let at = group * 88u;
        scale = vec2<f32>(half_at(part, at + 80u, r));
        take_nibbles(part, at, r, word(part, at + 64u + r), 16.0);
    } else if (kind == M5) {
        let at = group * 96u;
        scale = vec2<f32>(half_at(part, at + 80u, r));
        offset = vec2<f32>(half_at(part, at + 88u, r));
        take_nibbles(part, at, r, word(part, at + 64u + r), 0.0);
    } else if (kind == C8) {
        let at = group * 136u;
        scale = vec2<f32>(half_at(part, at + 128u, r));
        take_bytes(part, at, r);
    } else if (kind == S8) {
        let at = group * 192u;
        scale = vec2<f32>(float_at(part, at + 128u, r), float_at(part, at + 144u, r));
        offset = vec2<f32>(float_at(part, at + 160u, r), float_at(part, at + 176u, r));
        take_bytes(part, at, r);
    } else if (kind == K4) {
        let at = (row / 16u * (cols / 256u) + block / 8u) * 592u;
        let b = at + 16u + 72u * (block % 8u);
        scale = vec2<f32>(half_at(part, at, r) * byte_at(part, b + 64u, r));
        offset = vec2<f32>(-half_at(part, at + 8u, r) * byte_at(part, b + 68u, r));
        take_nibbles(part, b, r, 0u, 0.0);
    } else {
        scale = vec2<f32>(1.0);
        take_floats(part, row, cols, block, kind);
    }
}
