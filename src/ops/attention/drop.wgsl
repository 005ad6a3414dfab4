// SPDX-License-Identifier: Apache-2.0
// drop.wgsl - dropout of attention's weights, behind mask.wgsl. A cell is of four queries from t on
// by four keys, a row a query; or with `down` a row is a key.
fn keep(p: Place, t: u32, key: u32) -> vec4<f32> {
    let tokens = op.ins[0].dim1;
    let head = p.lse / tokens;
    return mask_of(op.f1, head / u32(op.i0), u32(op.i4) + ((head % u32(op.i0)) << 16u),
                   t * ((tokens + 3u) / 4u) + key / 4u);
}
fn dropped(c: Cell, p: Place, t: u32, key: u32, down: bool) -> Cell {
    var m = Cell(keep(p, t, key), keep(p, t + 1u, key), keep(p, t + 2u, key), keep(p, t + 3u, key));
    if (down) { m = turned(m); }
    return Cell(c.r0 * m.r0, c.r1 * m.r1, c.r2 * m.r2, c.r3 * m.r3);
}
