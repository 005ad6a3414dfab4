// SPDX-License-Identifier: Apache-2.0
// packed.wgsl - weights of files: 32 columns of a row at a time, by the layouts that dtype/packed.h
// draws. Whoever includes it has word(part, i), 32 bits of a matrix.
//
//     weight[k] = w[k] * scale[k / 16] + offset[k / 16]        w: whole numbers, or floats by 1
//
// op.word has eight bits a part: the layout, and of rows that are not packed what they are.

const PLAIN = 0u; const F32X16 = 1u; const F16X16 = 2u; const BF16X16 = 3u;
const C4 = 4u; const M4 = 5u; const C5 = 6u; const M5 = 7u; const C8 = 8u; const K4 = 9u;
const S8 = 10u;
const LAYOUT = 15u; const PLAIN_BF16 = 16u;

// The block that was taken last, in fours.
var<private> w: array<vec4<f32>, 8>;
var<private> scale: vec2<f32>;
var<private> offset: vec2<f32>;

fn weight(k: u32) -> f32 { return fma(w[k / 4u][k % 4u], scale[k / 16u], offset[k / 16u]); }

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
fn take_nibbles(part: u32, at: u32, row: u32, fifth: u32, zero: f32, d: f32, m: f32) {
    scale = vec2<f32>(d);
    offset = vec2<f32>(m);
    for (var v = 0u; v < 4u; v++) {
        let x = word(part, at + 16u * v + row);
        let low = (x & 0x0f0f0f0fu) | (((fifth >> v) & 0x01010101u) << 4u);
        let high = ((x >> 4u) & 0x0f0f0f0fu) | (((fifth >> (v + 4u)) & 0x01010101u) << 4u);
        w[v] = bytes_of(low) - zero;
        w[v + 4u] = bytes_of(high) - zero;
    }
}

fn take_k4(part: u32, at: u32, row: u32, block: u32) {
    let b = at + 16u + 72u * block;
    let d = half_at(part, at, row) * byte_at(part, b + 64u, row);
    let m = half_at(part, at + 8u, row) * byte_at(part, b + 68u, row);
    take_nibbles(part, b, row, 0u, 0.0, d, -m);
}

fn take_bytes(part: u32, at: u32, row: u32, kind: u32) {
    for (var v = 0u; v < 8u; v++) {
        w[v] = bytes_of(word(part, at + 16u * v + row)) - 128.0;
    }
    if (kind == C8) {
        scale = vec2<f32>(half_at(part, at + 128u, row));
        offset = vec2<f32>();
    } else {
        scale = vec2<f32>(float_at(part, at + 128u, row), float_at(part, at + 144u, row));
        offset = vec2<f32>(float_at(part, at + 160u, row), float_at(part, at + 176u, row));
    }
}

// One float of a row, of layouts that have no blocks.
fn one_float(part: u32, row: u32, cols: u32, col: u32, kind: u32) -> f32 {
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

// Columns [32 * block, + 32) of a row go into w; beyond the last column: 0.
fn take_block(part: u32, row: u32, cols: u32, block: u32) {
    let kind = layout_of(part);
    let r = row % 16u;
    let group = row / 16u * (cols / 32u) + block;
    if (kind == C4) {
        let at = group * 72u;
        take_nibbles(part, at, r, 0u, 8.0, half_at(part, at + 64u, r), 0.0);
    } else if (kind == M4) {
        let at = group * 80u;
        take_nibbles(part, at, r, 0u, 0.0, half_at(part, at + 64u, r),
                     half_at(part, at + 72u, r));
    } else if (kind == C5) {
        let at = group * 88u;
        take_nibbles(part, at, r, word(part, at + 64u + r), 16.0, half_at(part, at + 80u, r), 0.0);
    } else if (kind == M5) {
        let at = group * 96u;
        take_nibbles(part, at, r, word(part, at + 64u + r), 0.0, half_at(part, at + 80u, r),
                     half_at(part, at + 88u, r));
    } else if (kind == C8) {
        take_bytes(part, group * 136u, r, kind);
    } else if (kind == S8) {
        take_bytes(part, group * 192u, r, kind);
    } else if (kind == K4) {
        take_k4(part, (row / 16u * (cols / 256u) + block / 8u) * 592u, r, block % 8u);
    } else {
        scale = vec2<f32>(1.0);
        offset = vec2<f32>();
        for (var k = 0u; k < 32u; k++) {
            let col = 32u * block + k;
            var x = 0.0;
            if (col < cols) { x = one_float(part, row, cols, col, kind); }
            w[k / 4u][k % 4u] = x;
        }
    }
}
