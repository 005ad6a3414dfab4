// SPDX-License-Identifier: Apache-2.0
// packed.wgsl - weights of files, by the layouts that dtype/packed.h draws: 32 columns of sixteen
// rows are a block.
//
//     weight[k] = q[k] * scale[k / 16] + offset[k / 16]        q: whole numbers, or floats by 1
//
// Whoever includes it has word(part, i), 32 bits of a matrix. op.word has eight bits a part: the
// layout, and of rows that are not packed what they are.

const PLAIN = 0u; const F32X16 = 1u; const F16X16 = 2u; const BF16X16 = 3u;
const Q4X16 = 4u; const Q4MX16 = 5u; const Q5X16 = 6u; const Q5MX16 = 7u;
const Q8X16 = 8u; const Q4KX16 = 9u; const Q8MX16 = 10u;
const LAYOUT = 15u; const PLAIN_BF16 = 16u;

fn layout_of(part: u32) -> u32 { return (op.word >> (8u * part)) & 255u; }

fn has_numbers(kind: u32) -> bool { return kind >= Q4X16 && kind < PLAIN_BF16; }
fn has_bytes(kind: u32) -> bool { return kind == Q8X16 || kind == Q8MX16; }
fn has_fifth_bits(kind: u32) -> bool { return kind == Q5X16 || kind == Q5MX16; }
fn has_offsets(kind: u32) -> bool {
    return kind == Q4MX16 || kind == Q5MX16 || kind == Q4KX16 || kind == Q8MX16;
}
// What is taken off a number.
fn zero_of(kind: u32) -> f32 {
    if (has_bytes(kind)) { return 128.0; }
    return select(select(0.0, 8.0, kind == Q4X16), 16.0, kind == Q5X16);
}

// By bits: scales may be subnormal, which hardware may take for zeros.
fn half_of(bits: u32) -> f32 {
    let e = (bits >> 10u) & 31u;
    let m = bits & 1023u;
    var x = bitcast<f32>(((e + 112u) << 23u) | (m << 13u));
    if (e == 0u) { x = f32(m) * 0x1p-24f; }
    if (e == 31u) { x = bitcast<f32>(0x7f800000u | (m << 13u)); }
    return select(x, -x, (bits & 0x8000u) != 0u);
}
fn halves_of(x: vec2<u32>) -> vec4<f32> {
    return vec4<f32>(half_of(x.x & 0xffffu), half_of(x.x >> 16u), half_of(x.y & 0xffffu),
                     half_of(x.y >> 16u));
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

// Of a block that shares nothing.
fn words_of(kind: u32) -> u32 {
    if (has_bytes(kind)) { return select(136u, 192u, kind == Q8MX16); }
    return 72u + select(0u, 8u, has_offsets(kind)) + select(0u, 16u, has_fifth_bits(kind));
}

// Where the numbers of a block begin: 16 words for four columns each, a word a row. Nibbles have the
// first 16 columns in their lower halves, the others in their upper ones; q4kx16 has eight blocks
// behind scales that they share.
fn numbers_at(row: u32, cols: u32, block: u32, kind: u32) -> u32 {
    if (kind == Q4KX16) {
        return (row / 16u * (cols / 256u) + block / 8u) * 592u + 16u + 72u * (block % 8u);
    }
    return (row / 16u * (cols / 32u) + block) * words_of(kind);
}

struct Scales {
    scale: vec2<f32>,
    offset: vec2<f32>,
}

fn scales_of(part: u32, row: u32, cols: u32, block: u32, kind: u32) -> Scales {
    let r = row % 16u;
    let at = numbers_at(row, cols, block, kind);
    if (kind == Q4KX16) {
        let shared_at = at - 16u - 72u * (block % 8u);
        return Scales(vec2<f32>(half_at(part, shared_at, r) * byte_at(part, at + 64u, r)),
                      vec2<f32>(-half_at(part, shared_at + 8u, r) * byte_at(part, at + 68u, r)));
    }
    if (kind == Q8MX16) {
        return Scales(vec2<f32>(float_at(part, at + 128u, r), float_at(part, at + 144u, r)),
                      vec2<f32>(float_at(part, at + 160u, r), float_at(part, at + 176u, r)));
    }
    let behind = at + select(64u, 128u, kind == Q8X16) + select(0u, 16u, has_fifth_bits(kind));
    var s = Scales(vec2<f32>(half_at(part, behind, r)), vec2<f32>());
    if (has_offsets(kind)) { s.offset = vec2<f32>(half_at(part, behind + 8u, r)); }
    return s;
}

// Of a word of nibbles the four numbers of columns 4 v .. 4 v + 3, or with `upper` those 16 columns
// further.
fn nibbles(x: u32, fifth: u32, v: u32, upper: bool) -> vec4<f32> {
    let low = (x >> select(0u, 4u, upper)) & 0x0f0f0f0fu;
    return bytes_of(low | (((fifth >> (v + select(0u, 4u, upper))) & 0x01010101u) << 4u));
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
