// SPDX-License-Identifier: Apache-2.0
// matmul_packed_halves.wgsl - matmul_halves.wgsl of activations and weights of files. Sixteen rows,
// which are packed side by side, and two eights of k are a warp's.
@group(0) @binding(2) var<storage, read_write> a: array<Four>;
@group(0) @binding(9) var<storage, read_write> halves: array<vec4<u32>>;

// Activations are divided by this and weights multiplied: of activations some are large.
const SHARE = 16.0;

fn scaling() -> f32 { return 1.0; }

fn fetch_left(which: u32, at: u32) -> vec4<f32> {
    if (op.i3 == 0) { return as_vec4(a[at]) / SHARE; }
    let fours = op.ins[0].cols / 8u;
    let i = at + at / fours * fours;
    let gate = as_vec4(a[i]);
    var f: vec4<f32>;
    for (var c = 0u; c < 4u; c++) { f[c] = select(gelu_tanh(gate[c]), silu(gate[c]), op.i3 == 1); }
    return f * as_vec4(a[i + fours]) / SHARE;
}

// Four columns of a row of one of the matrices.
fn weights_at(matrix: u32, row: u32, k: u32, depth: u32) -> vec4<f32> {
    if (k >= depth) { return vec4<f32>(); }
    let kind = layout_of(matrix);
    if (!has_numbers(kind)) {
        return vec4<f32>(one_float(matrix, row, depth, k, kind),
                         one_float(matrix, row, depth, k + 1u, kind),
                         one_float(matrix, row, depth, k + 2u, kind),
                         one_float(matrix, row, depth, k + 3u, kind));
    }
    let at = numbers_at(row, depth, k / 32u, kind) + row % 16u;
    let number = word(matrix, at + 16u * select(k / 4u % 4u, k / 4u % 8u, has_bytes(kind)));
    var q: vec4<f32>;
    if (has_bytes(kind)) {
        q = bytes_of(number);
    } else {
        var fifth = 0u;
        if (has_fifth_bits(kind)) { fifth = word(matrix, at + 64u); }
        q = nibbles(number, fifth, k / 4u % 4u, k % 32u >= 16u);
    }
    let s = scales_of(matrix, row, depth, k / 32u, kind);
    return fma(q - zero_of(kind), vec4<f32>(s.scale[k / 16u % 2u]),
               vec4<f32>(s.offset[k / 16u % 2u]));
}

fn put_right_eight(s: Sizes, p: Sizes, start: u32, i: u32) {
    let group = i / (2u * p.k);
    if (group >= groups_across(16u)) { return; }
    let place = place_of(group, 16u);
    let row = place.group * 16u + i % 16u;
    let k = i / 16u % (p.k / 8u) * 8u;
    if (row >= rows_of(place.matrix)) { return; }
    halves[start + ((place.begin + row) * p.k + k) / 8u] =
        vec4<u32>(rounded(weights_at(place.matrix, row, k, s.k), SHARE, false),
                  rounded(weights_at(place.matrix, row, k + 4u, s.k), SHARE, false));
}
