// SPDX-License-Identifier: Apache-2.0
// kv_packed.wgsl - four columns of a cache in floats of 16 bits, or in whole numbers of 8 bits with a
// scale behind each row: see kv_row.h. Rows of the latter are wider than a head, which tells them.
@group(0) @binding(3) var<storage, read_write> cache: array<u32>;

fn whole_numbers(word: u32) -> vec4<f32> {
    let bytes = vec4<u32>(word) << vec4<u32>(24u, 16u, 8u, 0u);
    return vec4<f32>(bitcast<vec4<i32>>(bytes) >> vec4<u32>(24u));
}

// i: counted in fours of columns, as if a row had nothing else.
fn cache_four(i: u32) -> vec4<f32> {
    if (op.ins[1].cols == u32(op.i2)) {
        return vec4<f32>(unpack2x16float(cache[2u * i]), unpack2x16float(cache[2u * i + 1u]));
    }
    let fours = u32(op.i2) / 4u;
    let row = i / fours;
    return bitcast<f32>(cache[(row + 1u) * (fours + 1u) - 1u]) * whole_numbers(cache[i + row]);
}
