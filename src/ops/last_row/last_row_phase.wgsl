// SPDX-License-Identifier: Apache-2.0
// last_row_phase.wgsl - y = x, which has one row, of whole fours.
fn PHASE_last_row(p: u32, group: u32, lane: u32) {
    let x = PHASE_operand(p, 0u);
    let y = PHASE_operand(p, 1u);
    if (!is_mine(y, group)) { return; }
    for (var i = lane; i < x.cols / 4u; i += THREADS) { put_four(y, i, value_four(x, i)); }
}
