// SPDX-License-Identifier: Apache-2.0
// matmul_phase.wgsl - products of one row with weights of files, up to three matrices side by side;
// with op.word's highest bit of what norm_matmul has a norm of.
//
// f(a) comes into row, or, rounded to 8 bits, into rounded: PHASE_rounds. A unit is eight rows of a
// matrix; eight threads have a block of 32 columns of it. A workgroup has some units at a time, and of
// a row as many blocks as op.share says, side by side and one after the other:
//
//     share     lower 16 bits: blocks of a unit side by side; then 8: turns; then 8: units together
//     nibbles   thread (v, j): columns 4 v .. 4 v + 3 and those 16 further, of four rows
//     others    a row a thread
//
// What a thread has of the next units is asked for before what it has of these is added up, and of
// the first ones, with what is added behind, before it waits for a.

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

// Of all matrices: whether they have nibbles, one layout, and lie in one buffer.
fn PHASE_is_alike(p: u32, k: u32, matrix: u32) -> bool {
    let m = PHASE_operand(p, k);
    return !is_given(m) || (PHASE_layout(p, matrix) == PHASE_layout(p, 0u) &&
                            m.home == PHASE_operand(p, 1u).home);
}
fn PHASE_are_alike(p: u32) -> bool {
    return PHASE_is_alike(p, 4u, 1u) && PHASE_is_alike(p, 5u, 2u);
}
fn PHASE_are_nibbles(p: u32) -> bool {
    return is_nibbles(PHASE_layout(p, 0u)) &&
           (!is_given(PHASE_operand(p, 4u)) || is_nibbles(PHASE_layout(p, 1u))) &&
           (!is_given(PHASE_operand(p, 5u)) || is_nibbles(PHASE_layout(p, 2u)));
}
// As matmul_grid_rounds has it.
fn PHASE_rounds(p: u32) -> bool { return ROUNDED > 0u && PHASE_are_nibbles(p); }

// Of a unit and a block of it, or of the last ones: a branch around a load would have the thread wait
// for it, so who adds up leaves out what there is not. What all matrices share is one constant, where
// the text knows shapes.
fn PHASE_fetch(p: u32, unit: u32, block: u32, lane: u32) -> FourRows {
    let blocks = PHASE_blocks(p);
    let u = PHASE_unit(p, min(unit, PHASE_units(p) - 1u));
    var m = u.m;
    var kind = PHASE_layout(p, u.matrix);
    if (PHASE_are_alike(p)) {
        m.home = PHASE_operand(p, 1u).home;
        kind = PHASE_layout(p, 0u);
    }
    var f = FourRows();
    if (!is_nibbles(kind)) { return f; }
    let j = lane % 2u + 2u * (u.eight & 1u);
    let at = (u.eight / 2u * blocks + min(block, blocks - 1u)) * select(18u, 20u, kind == Q4MX16);
    f.x = state_four(m, at + 4u * (lane / 2u % 4u) + j);
    f.scales = state_four(m, at + 16u + j / 2u);
    if (kind == Q4MX16) { f.offsets = state_four(m, at + 18u + j / 2u); }
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

// Of a block what four rows come to, nothing behind the last one.
fn PHASE_take(p: u32, f: FourRows, lane: u32, block: u32, offsets: bool) -> vec4<f32> {
    let within = min(block, PHASE_blocks(p) - 1u);
    let at = 8u * within + lane / 2u % 4u;
    var sum: vec4<f32>;
    if (PHASE_rounds(p)) {
        sum = take_rounded(f, at, within, lane, offsets);
    } else {
        sum = take_four(f, at, lane, offsets);
    }
    return select(vec4<f32>(), sum, block < PHASE_blocks(p));
}

// What this thread finds of its unit: of four rows, or of one.
fn PHASE_part(p: u32, unit: u32, t: Turns, lane: u32) -> vec4<f32> {
    var sum = vec4<f32>();
    let side = PHASE_share(p) & 0xffffu;
    let turns = (PHASE_share(p) >> 16u) & 255u;
    let block = lane / 8u % side;
    let u = PHASE_unit(p, min(unit, PHASE_units(p) - 1u));
    let kind = select(PHASE_layout(p, u.matrix), PHASE_layout(p, 0u), PHASE_are_alike(p));
    if (is_nibbles(kind)) {
        let offsets = kind == Q4MX16;
        sum = PHASE_take(p, t.a, lane, block, offsets);
        if (TURNS_AHEAD > 1u && turns > 1u) { sum += PHASE_take(p, t.b, lane, block + side, offsets); }
        if (TURNS_AHEAD > 2u && turns > 2u) {
            sum += PHASE_take(p, t.c, lane, block + 2u * side, offsets);
        }
        if (TURNS_AHEAD > 3u && turns > 3u) {
            sum += PHASE_take(p, t.d, lane, block + 3u * side, offsets);
        }
        for (var turn = TURNS_AHEAD; turn < turns; turn++) {
            let f = PHASE_fetch(p, unit, block + turn * side, lane);
            sum += PHASE_take(p, f, lane, block + turn * side, offsets);
        }
        return select(vec4<f32>(), sum, unit < PHASE_units(p));
    }
    if (unit >= PHASE_units(p)) { return sum; }
    let at_row = 8u * u.eight + lane % 8u;
    op.word = PHASE_word(p) & 0x7fffffffu;
    matrices[u.matrix] = u.m;
    for (var b = block; b < PHASE_blocks(p) && at_row < u.m.rows; b += side) {
        take_block(u.matrix, at_row, u.m.cols, b);
        for (var v = 0u; v < 8u; v++) { sum.x += dot(block_four(v), row[8u * b + v]); }
    }
    return sum;
}

// Of a four of a what is asked for: the four, what it is multiplied by, or the gain of a norm; of the
// last one behind it.
fn PHASE_ask(p: u32, i: u32) -> Asked {
    let a = PHASE_operand(p, 0u);
    let fours = PHASE_operand(p, 1u).cols / 4u;
    let k = min(i, fours - 1u);
    var x = Asked();
    if (PHASE_has_norm(p)) { x.gain = state_floats(PHASE_operand(p, 3u), k); }
    x.a = peek_four(a, k);
    if (!PHASE_has_norm(p) && PHASE_i(p, 3u) != 0) { x.by = peek_four(a, fours + k); }
    return x;
}
// f(a); with a norm, its squares are added up in norm_square.
fn PHASE_four_of(p: u32, i: u32, asked: Asked) -> vec4<f32> {
    let a = PHASE_operand(p, 0u);
    let fours = PHASE_operand(p, 1u).cols / 4u;
    if (i >= fours) { return vec4<f32>(); }
    let x = sure_four(a, i, asked.a);
    if (PHASE_has_norm(p)) {
        norm_square += dot(x, x);
        return x * asked.gain;
    }
    if (PHASE_i(p, 3u) == 0) { return x; }
    let by = sure_four(a, fours + i, asked.by);
    if (PHASE_i(p, 3u) == 1) { return by * vec4<f32>(silu(x.x), silu(x.y), silu(x.z), silu(x.w)); }
    return by * vec4<f32>(gelu_tanh(x.x), gelu_tanh(x.y), gelu_tanh(x.z), gelu_tanh(x.w));
}

// f(a) into row or rounded, and behind it zeros up to a whole block; the factor of a norm, or 1. Two
// fours of a thread are asked for at once.
fn PHASE_fill_row(p: u32, lane: u32) -> f32 {
    let n = 8u * PHASE_blocks(p);
    norm_square = 0.0;
    for (var first = 0u; first < n; first += 2u * THREADS) {
        let i = first + lane;
        let asked = PHASE_ask(p, i);
        var more = Asked();
        if (n > THREADS) { more = PHASE_ask(p, i + THREADS); }
        let x = PHASE_four_of(p, i, asked);
        let y = PHASE_four_of(p, i + THREADS, more);
        if (PHASE_rounds(p)) {
            round_four(i, x, lane, n);
            if (first + THREADS < n) { round_four(i + THREADS, y, lane, n); }
        } else {
            if (i < n) { row[i] = x; }
            if (i + THREADS < n) { row[i + THREADS] = y; }
        }
    }
    if (!PHASE_has_norm(p)) {
        workgroupBarrier();
        return 1.0;
    }
    return 1.0 / sqrt(all_sum(lane, norm_square) / f32(PHASE_operand(p, 1u).cols) + PHASE_f(p, 0u));
}

fn PHASE_product(p: u32, group: u32, lane: u32) {
    let bias = PHASE_operand(p, 2u);
    let residual = PHASE_operand(p, 3u);
    let y = PHASE_operand(p, 6u);
    let adds = !PHASE_has_norm(p) && is_given(residual);
    let side = PHASE_share(p) & 0xffffu;
    let together = PHASE_share(p) >> 24u;
    // Of a row of a unit: so many threads add up some each, then one of them adds up theirs.
    let helpers = helpers_of(together);
    let which = lane / 8u / helpers;
    let r = lane / helpers % 8u;
    let units = PHASE_units(p);
    var next = PHASE_fetch_turns(p, PHASE_unit_of(p, group * together, lane), lane);
    var factor = 1.0;
    for (var first = group * together; first < units; first += groups() * together) {
        let u = PHASE_unit(p, min(first + which, units - 1u));
        let out = 8u * u.eight + r;
        let is_out = which < together && first + which < units && lane % helpers == 0u &&
                     out < u.m.rows;
        // Of all threads, since a branch would have them wait.
        var more = 0.0;
        var rest = 0u;
        if (is_given(bias)) { more = state(bias, min(u.begin + out, bias.cols - 1u)); }
        if (adds) { rest = peek(residual, min(u.begin + out, residual.cols - 1u)); }
        if (first == group * together) { factor = PHASE_fill_row(p, lane); }
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
        if (is_out) {
            if (adds) { more += sure(residual, u.begin + out, rest); }
            put(y, u.begin + out, fma(sum, factor, more));
        }
        workgroupBarrier();
    }
}
