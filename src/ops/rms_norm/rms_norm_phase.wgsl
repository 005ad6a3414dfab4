// SPDX-License-Identifier: Apache-2.0
// rms_norm_phase.wgsl - y = x / rms(x) * w (+ r) of one row of whole fours.
fn PHASE_rms_norm(p: u32, group: u32, lane: u32) {
    let x = PHASE_operand(p, 0u);
    let w = PHASE_operand(p, 1u);
    let residual = PHASE_operand(p, 2u);
    let y = PHASE_operand(p, 3u);
    if (!is_mine(y, group)) { return; }
    var square = 0.0;
    for (var i = lane; i < x.cols / 4u; i += THREADS) {
        let v = value_four(x, i);
        square += dot(v, v);
    }
    let scale = 1.0 / sqrt(all_sum(lane, square) / f32(x.cols) + PHASE_f(p, 0u));
    for (var i = lane; i < x.cols / 4u; i += THREADS) {
        var v = value_four(x, i) * scale * state_floats(w, i);
        if (is_given(residual)) { v += value_four(residual, i); }
        put_four(y, i, v);
    }
}
