// SPDX-License-Identifier: Apache-2.0
// drop.wgsl - dropout of attention's weights, behind mask.wgsl. What stays of a cell is 16 bits, which
// cost one register: of four queries from t on by four keys, a row of four bits a query, so that a
// draw, which is ten rounds, stands in the text once and is made once for all that asks for it.
fn kept_cell(p: Place, t: u32, key: u32) -> u32 {
    let tokens = op.ins[0].dim1;
    let head = p.lse / tokens;
    var bits = 0u;
    for (var r = 0u; r < 4u; r++) {
        let four = stay(op.f1, head / u32(op.i0), u32(op.i4) + ((head % u32(op.i0)) << 16u),
                        (t + r) * ((tokens + 3u) / 4u) + key / 4u);
        bits |= dot(select(vec4<u32>(), vec4<u32>(1u, 2u, 4u, 8u), four), vec4<u32>(1u)) << (4u * r);
    }
    return bits;
}
// Of the two cells of a pair, the second above the first. They lie side by side in keys, or in
// queries, where a row of the cells is a key.
fn kept_of(p: Place, t: u32, key: u32, of_keys: bool) -> u32 {
    let beside = select(vec2<u32>(0u, 32u), vec2<u32>(32u, 0u), of_keys);
    return kept_cell(p, t, key) | (kept_cell(p, t + beside.x, key + beside.y) << 16u);
}
fn dropped_row(v: vec4<f32>, kept: u32, at: vec4<u32>) -> vec4<f32> {
    return v * select(vec4<f32>(), vec4<f32>(1.0 / (1.0 - op.f1)),
                      (vec4<u32>(kept) & (vec4<u32>(1u) << at)) != vec4<u32>());
}
fn dropped_cell(c: Cell, kept: u32, of_keys: bool) -> Cell {
    let at = select(vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(0u, 4u, 8u, 12u), of_keys);
    let next = select(4u, 1u, of_keys);
    return Cell(dropped_row(c.r0, kept, at), dropped_row(c.r1, kept, at + next),
                dropped_row(c.r2, kept, at + 2u * next), dropped_row(c.r3, kept, at + 3u * next));
}
fn dropped(c: Pair, kept: u32, of_keys: bool) -> Pair {
    return Pair(dropped_cell(c.a, kept, of_keys), dropped_cell(c.b, kept >> 16u, of_keys));
}
