// SPDX-License-Identifier: Apache-2.0
// embedding_phase.wgsl - y = scale * table[id,:] of one token: 32 columns a thread.
fn PHASE_embedding(p: u32, group: u32, lane: u32) {
    let table = PHASE_operand(p, 1u);
    let y = PHASE_operand(p, 2u);
    let f0 = PHASE_f(p, 0u);
    let times = select(f0, 1.0, f0 == 0.0);
    let id = clamp_id(value_i32(PHASE_operand(p, 0u), 0u), table.rows);
    op.word = PHASE_word(p);
    matrices[0] = table;
    for (var block = group * THREADS + lane; 32u * block < table.cols; block += groups() * THREADS) {
        take_block(0u, id, table.cols, block);
        for (var k = 0u; k < 32u && 32u * block + k < table.cols; k++) {
            put(y, 32u * block + k, times * block_four(k / 4u)[k % 4u]);
        }
    }
}
