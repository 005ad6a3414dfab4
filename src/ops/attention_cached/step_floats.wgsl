// SPDX-License-Identifier: Apache-2.0
// step_floats.wgsl - see attention_step.wgsl; a cache of floats.
fn keep(tid: u32, to: u32, row: u32, writes: bool) {
    let fours = u32(op.i2) / 4u;
    for (var e = tid; e < fours; e += 64u) {
        let x = turned_four(e);
        kept[to + e] = x;
        if (writes) { cache[row * fours + e] = Four(x.x, x.y, x.z, x.w); }
    }
}
