// SPDX-License-Identifier: Apache-2.0
// mamba2_states.wgsl - states of sessions: where they are, what a convolution sees in them, and what
// it leaves there. Behind mamba2_common.wgsl; who includes it binds z, at, slots and states, has the
// taps in input 4, and row_of_z(r), where row r of z begins.

// Where the state is that the sequence of a row goes on from (0), or leaves (1).
fn state_of(r: u32, which: u32) -> u32 {
    let s = clamp_id(at[2u * r], op.ins[3].rows);
    return clamp_id(slots[2u * s + which], op.ins[1].dim0) * op.ins[1].cols;
}
// The first row of the call that is of the sequence of row r, or one that no tap reaches beyond.
fn first_of(r: u32, taps: u32) -> u32 {
    var first = r;
    while (first > 0u && r - first < taps && at[2u * first - 2u] == at[2u * r]) { first--; }
    return first;
}

// Column c that the convolution sees `back` rows before row r; r may be the row behind the last.
fn seen(r: u32, first: u32, back: u32, c: u32) -> f32 {
    if (back + first <= r) { return z[row_of_z(r - back) + inner() + c]; }
    if (at[2u * first + 1u] == 0) { return 0.0; }
    return states[state_of(first, 0u) + (op.ins[4].cols - 1u + r - first - back) * columns() + c];
}

// The newest rows that the convolution saw, for each sequence of the call; a thread has a column.
@compute @workgroup_size(64)
fn keep(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let taps = op.ins[4].cols;
    let c = group_of(id, count) * 64u + lane;
    if (c >= columns()) { return; }
    var first = 0u;
    for (var end = 1u; end <= in_rows(0u); end++) {
        if (end < in_rows(0u) && at[2u * min(end, in_rows(0u) - 1u)] == at[2u * first]) { continue; }
        let to = state_of(first, 1u) + c;
        for (var j = 0u; j + 1u < taps; j++) {
            states[to + j * columns()] = seen(end, first, taps - 1u - j, c);
        }
        first = end;
    }
}
