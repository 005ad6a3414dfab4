// SPDX-License-Identifier: Apache-2.0
// matmul_phase.wgsl - products of one row with weights of files, up to three matrices side by side;
// with op.word's highest bit of what norm_matmul has a norm of.
//
// f(a) comes into row. A unit is eight rows of a matrix; eight threads have a block of 32 columns of
// it. A workgroup has some units at a time, and of a row as many blocks as op.share says, side by
// side and one after the other:
//
//     share     lower 16 bits: blocks of a unit side by side; then 8: turns; then 8: units together
//     nibbles   thread (v, j): columns 4 v .. 4 v + 3 and those 16 further, of four rows
//     others    a row a thread
//
// What a thread has of the next units is asked for before what it has of these is added up, and of
// the first ones before the workgroups meet in front of the phase.

// The matrix that a unit is of, its number there, and the first column of y that the matrix has.
fn PHASE_unit(p: u32, unit: u32) -> Unit {
    let b = PHASE_operand(p, 1u);
    let b1 = PHASE_operand(p, 4u);
    let b2 = PHASE_operand(p, 5u);
    let second = eights(b) + eights(b1);
    if (is_given(b2) && unit >= second) { return Unit(b2, 2u, unit - second, b.rows + b1.rows); }
    if (is_given(b1) && unit >= eights(b)) { return Unit(b1, 1u, unit - eights(b), b.rows); }
    return Unit(b, 0u, unit, 0u);
}
fn PHASE_units(p: u32) -> u32 {
    return eights(PHASE_operand(p, 1u)) + eights(PHASE_operand(p, 4u)) + eights(PHASE_operand(p, 5u));
}
fn PHASE_blocks(p: u32) -> u32 { return (PHASE_operand(p, 1u).cols + 31u) / 32u; }
fn PHASE_has_norm(p: u32) -> bool { return (PHASE_word(p) >> 31u) != 0u; }
fn PHASE_layout(p: u32, matrix: u32) -> u32 { return (PHASE_word(p) >> (8u * matrix)) & 127u; }

// Nothing where there is no such unit, or block.
fn PHASE_fetch(p: u32, unit: u32, block: u32, lane: u32) -> FourRows {
    let blocks = PHASE_blocks(p);
    var f = FourRows();
    if (unit >= PHASE_units(p) || block >= blocks) { return f; }
    let u = PHASE_unit(p, unit);
    let kind = PHASE_layout(p, u.matrix);
    if (!is_nibbles(kind)) { return f; }
    let j = lane % 2u + 2u * (u.eight & 1u);
    let at = (u.eight / 2u * blocks + block) * select(18u, 20u, kind == Q4MX16);
    f.x = state_four(u.m, at + 4u * (lane / 2u % 4u) + j);
    let scales = state_four(u.m, at + 16u + j / 2u);
    f.scales = select(scales.xy, scales.zw, (j & 1u) != 0u);
    if (kind == Q4MX16) {
        let offsets = state_four(u.m, at + 18u + j / 2u);
        f.offsets = select(offsets.xy, offsets.zw, (j & 1u) != 0u);
    }
    return f;
}

fn PHASE_fetch_turns(p: u32, unit: u32, lane: u32) -> Turns {
    let side = PHASE_share(p) & 0xffffu;
    let turns = (PHASE_share(p) >> 16u) & 255u;
    let block = lane / 8u % side;
    var t = Turns();
    t.a = PHASE_fetch(p, unit, block, lane);
    if (TURNS_AHEAD > 1u && turns > 1u) { t.b = PHASE_fetch(p, unit, block + side, lane); }
    if (TURNS_AHEAD > 2u && turns > 2u) { t.c = PHASE_fetch(p, unit, block + 2u * side, lane); }
    if (TURNS_AHEAD > 3u && turns > 3u) { t.d = PHASE_fetch(p, unit, block + 3u * side, lane); }
    return t;
}

// The unit of this thread among those that begin with `first`.
fn PHASE_unit_of(p: u32, first: u32, lane: u32) -> u32 {
    let which = lane / 8u / (PHASE_share(p) & 0xffffu);
    return select(0xffffffffu, first + which, which < (PHASE_share(p) >> 24u));
}

fn PHASE_product_ahead(p: u32, group: u32, lane: u32) {
    let first = group * (PHASE_share(p) >> 24u);
    ahead = PHASE_fetch_turns(p, PHASE_unit_of(p, first, lane), lane);
    if (PHASE_has_norm(p) && 4u * lane < PHASE_operand(p, 1u).cols) {
        ahead_gain = state_floats(PHASE_operand(p, 3u), lane);
    }
    ahead_p = p;
}

// What this thread finds of its unit: of four rows, or of one.
fn PHASE_part(p: u32, unit: u32, t: Turns, lane: u32) -> vec4<f32> {
    var sum = vec4<f32>();
    if (unit >= PHASE_units(p)) { return sum; }
    let side = PHASE_share(p) & 0xffffu;
    let turns = (PHASE_share(p) >> 16u) & 255u;
    let block = lane / 8u % side;
    let u = PHASE_unit(p, unit);
    let kind = PHASE_layout(p, u.matrix);
    if (is_nibbles(kind)) {
        let offsets = kind == Q4MX16;
        sum = take_four(t.a, lane, block, offsets);
        if (TURNS_AHEAD > 1u && turns > 1u) { sum += take_four(t.b, lane, block + side, offsets); }
        if (TURNS_AHEAD > 2u && turns > 2u) { sum += take_four(t.c, lane, block + 2u * side, offsets); }
        if (TURNS_AHEAD > 3u && turns > 3u) { sum += take_four(t.d, lane, block + 3u * side, offsets); }
        for (var turn = TURNS_AHEAD; turn < turns; turn++) {
            let f = PHASE_fetch(p, unit, block + turn * side, lane);
            sum += take_four(f, lane, block + turn * side, offsets);
        }
        return sum;
    }
    let at_row = 8u * u.eight + lane % 8u;
    op.word = PHASE_word(p) & 0x7fffffffu;
    matrices[u.matrix] = u.m;
    for (var b = block; b < PHASE_blocks(p) && at_row < u.m.rows; b += side) {
        take_block(u.matrix, at_row, u.m.cols, b);
        for (var v = 0u; v < 8u; v++) { sum.x += dot(block_four(v), row[8u * b + v]); }
    }
    return sum;
}

// f(a) into row, and behind it zeros up to a whole block; the factor of a norm, or 1.
fn PHASE_fill_row(p: u32, lane: u32) -> f32 {
    let a = PHASE_operand(p, 0u);
    let fours = PHASE_operand(p, 1u).cols / 4u;
    let read = PHASE_i(p, 3u);
    var square = 0.0;
    for (var i = lane; i < 8u * PHASE_blocks(p); i += THREADS) {
        var x = vec4<f32>();
        if (i < fours) {
            x = value_four(a, i);
            if (PHASE_has_norm(p)) {
                square += dot(x, x);
                if (i == lane && ahead_p == p) {
                    x *= ahead_gain;
                } else {
                    x *= state_floats(PHASE_operand(p, 3u), i);
                }
            } else if (read == 1) {
                x = value_four(a, fours + i) * vec4<f32>(silu(x.x), silu(x.y), silu(x.z), silu(x.w));
            } else if (read != 0) {
                x = value_four(a, fours + i) *
                    vec4<f32>(gelu_tanh(x.x), gelu_tanh(x.y), gelu_tanh(x.z), gelu_tanh(x.w));
            }
        }
        row[i] = x;
    }
    if (!PHASE_has_norm(p)) {
        workgroupBarrier();
        return 1.0;
    }
    return 1.0 / sqrt(all_sum(lane, square) / f32(4u * fours) + PHASE_f(p, 0u));
}

fn PHASE_product(p: u32, group: u32, lane: u32) {
    let bias = PHASE_operand(p, 2u);
    let residual = PHASE_operand(p, 3u);
    let y = PHASE_operand(p, 6u);
    let side = PHASE_share(p) & 0xffffu;
    let together = PHASE_share(p) >> 24u;
    // Of a row of a unit: so many threads add up some each, then one of them adds up theirs.
    let helpers = helpers_of(together);
    let which = lane / 8u / helpers;
    let r = lane / helpers % 8u;
    let units = PHASE_units(p);
    var next: Turns;
    if (ahead_p == p) {
        next = ahead;
    } else {
        next = PHASE_fetch_turns(p, PHASE_unit_of(p, group * together, lane), lane);
    }
    let factor = PHASE_fill_row(p, lane);
    for (var first = group * together; first < units; first += groups() * together) {
        let u = PHASE_unit(p, min(first + which, units - 1u));
        let out = 8u * u.eight + r;
        let is_out = which < together && first + which < units && lane % helpers == 0u &&
                     out < u.m.rows;
        var more = 0.0;
        if (is_out) {
            if (is_given(bias)) { more += state(bias, u.begin + out); }
            if (!PHASE_has_norm(p) && is_given(residual)) {
                more += value_of(residual, u.begin + out);
            }
        }
        let now = next;
        if (first + groups() * together < units) {
            next = PHASE_fetch_turns(p, PHASE_unit_of(p, first + groups() * together, lane), lane);
        }
        parts[lane] = PHASE_part(p, PHASE_unit_of(p, first, lane), now, lane);
        workgroupBarrier();
        var some = 0.0;
        if (which < together) {
            let from_slot = 8u * side * which;
            if (is_nibbles(PHASE_layout(p, u.matrix))) {
                for (var e = lane % helpers; e < 4u * side; e += helpers) {
                    some += parts[from_slot + 2u * e + r / 4u][r % 4u];
                }
            } else {
                for (var e = lane % helpers; e < side; e += helpers) {
                    some += parts[from_slot + 8u * e + r].x;
                }
            }
        }
        let sum = pack_sum(lane, some, helpers);
        if (is_out) { put(y, u.begin + out, fma(sum, factor, more)); }
        workgroupBarrier();
    }
}
