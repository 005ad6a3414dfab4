// SPDX-License-Identifier: Apache-2.0
// rope_table_phase.wgsl - cosines and sines of the position of one row.
fn PHASE_rope_table(p: u32, group: u32, lane: u32) {
    let like = PHASE_operand(p, 0u);
    let freq = PHASE_operand(p, 1u);
    let table = PHASE_operand(p, 2u);
    let half = table.cols / 2u;
    let f0 = PHASE_f(p, 0u);
    let times = select(1.0, f0, f0 > 0.0);
    if (group != 0u) { return; }
    var position = 0;
    if (PHASE_i(p, 0u) != 0) { position = value_i32(like, 1u); }
    for (var k = lane; k < half; k += THREADS) {
        let both = cos_sin(f32(position) * state(freq, k)) * times;
        put(table, k, both.x);
        put(table, half + k, both.y);
    }
}
