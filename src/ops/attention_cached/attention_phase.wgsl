// SPDX-License-Identifier: Apache-2.0
// attention_phase.wgsl - attention_step in two phases: parts of the keys of a head by a workgroup
// each, then all parts of all heads added up.
//
// A part has whole tiles of 64 keys. A pack of threads has a key at a time, of which each has four
// columns; packs go through the keys side by side, keep what they have found by the largest score
// so far, and are added up at the end. The token's own key and value are taken from qkv, turned; of
// the workgroups that share a key head one keeps them for later tokens.
//
//     scratch [H][op.word][D + 2]   of a part: values by their weights, the largest score, and the
//                                   sum of the weights

fn PHASE_reach(p: u32, position: u32) -> Reach {
    let n_q = u32(PHASE_i(p, 0u));
    return reach_of(position, PHASE_i(p, 3u), min(PHASE_word(p), max(1u, groups() / n_q)));
}

// The four of the cache where a head (below 2K) has a position.
fn PHASE_place(p: u32, table: u32, head: u32, position: u32) -> u32 {
    let cache = PHASE_operand(p, 1u);
    let pages = PHASE_operand(p, 3u);
    let heads = 2u * u32(PHASE_i(p, 1u));
    let rows = cache.rows / (cache.dim0 * heads);
    let which = pages.at + table + position / rows % pages.cols;
    if (which != page_at) {
        page_now = clamp_id(bitcast<i32>(atomicLoad(&work[which])), cache.dim0);
        page_at = which;
    }
    return ((page_now * heads + head) * rows + position % rows) * (u32(PHASE_i(p, 2u)) / 4u);
}
fn PHASE_table(p: u32) -> u32 {
    let pages = PHASE_operand(p, 3u);
    return clamp_id(sequence_now, pages.rows) * pages.cols;
}

// A thread's columns of a key that earlier tokens have kept; of another one where there is no such
// key, or column.
fn PHASE_fetch_key(p: u32, table: u32, key_head: u32, key: u32, column: u32) -> KeyValue {
    let cache = PHASE_operand(p, 1u);
    let at = PHASE_place(p, table, key_head, min(key, max(position_now, 1u) - 1u)) +
             min(column, u32(PHASE_i(p, 2u)) / 4u - 1u);
    let rows = cache.rows / (cache.dim0 * 2u * u32(PHASE_i(p, 1u)));
    return KeyValue(state_floats(cache, at),
                    state_floats(cache, at + u32(PHASE_i(p, 1u)) * rows * (u32(PHASE_i(p, 2u)) / 4u)));
}

// What the squares of a head come to; 1 where it has no norm.
fn PHASE_head_scale(p: u32, which: u32) -> f32 {
    let fours = u32(PHASE_i(p, 2u)) / 4u;
    var square = 0.0;
    for (var e = 0u; e < fours; e++) { square += dot(own[64u * which + e], own[64u * which + e]); }
    return 1.0 / sqrt(square / f32(4u * fours) + PHASE_f(p, 1u));
}

// What heads are turned by, once for all that a workgroup is at; the table is the one of the layer
// before, as a rule.
fn PHASE_fill_beside(p: u32, lane: u32) {
    let size = u32(PHASE_i(p, 2u));
    let table = PHASE_operand(p, 4u);
    let turns = is_given(table) && table_at != table.at;
    for (var i = lane; i < size; i += THREADS) {
        if (is_given(PHASE_operand(p, 6u))) { beside[256u + i] = state(PHASE_operand(p, 6u), i); }
        if (is_given(PHASE_operand(p, 7u))) { beside[512u + i] = state(PHASE_operand(p, 7u), i); }
        if (turns) { beside[i] = value_of(table, i); }
    }
    if (turns) { table_at = table.at; }
}

fn PHASE_own_at(p: u32, head: u32, key_head: u32, i: u32) -> u32 {
    let fours = u32(PHASE_i(p, 2u)) / 4u;
    let n_q = u32(PHASE_i(p, 0u));
    let n_kv = u32(PHASE_i(p, 1u));
    let which = i / fours;
    let of_keys = select(n_q + key_head, n_q + n_kv + key_head, which == 2u);
    return select(of_keys, head, which == 0u) * fours + i % fours;
}

// The query and the own key of a head, from own into turned.
fn PHASE_turn(p: u32, lane: u32) {
    let half = u32(PHASE_i(p, 2u)) / 2u;
    for (var t = lane; t < 2u * half; t += THREADS) {
        let which = t / half;
        let i = t % half;
        var x = own[64u * which + i / 4u][i % 4u];
        var y = own[64u * which + (half + i) / 4u][(half + i) % 4u];
        if (is_given(PHASE_operand(p, 6u + which))) {
            let scale = PHASE_head_scale(p, which);
            x *= scale * beside[256u + 256u * which + i];
            y *= scale * beside[256u + 256u * which + half + i];
        }
        var c = 1.0;
        var s = 0.0;
        if (is_given(PHASE_operand(p, 4u))) {
            c = beside[i];
            s = beside[half + i];
        }
        turned[256u * which + i] = fma(x, c, -(y * s));
        turned[256u * which + half + i] = fma(y, c, x * s);
    }
}

// Of a part: from all packs into scratch.
fn PHASE_add_packs(p: u32, to: u32, lane: u32) {
    let scratch = PHASE_operand(p, 5u);
    let size = u32(PHASE_i(p, 2u));
    let pack = pack_of(size / 4u);
    let packs = THREADS / pack;
    var top = LOWEST_SCORE;
    for (var i = 0u; i < packs; i++) { top = max(top, pack_tops[i]); }
    for (var i = lane; i < packs; i += THREADS) { sums[i] = exp1(pack_tops[i] - top); }
    workgroupBarrier();
    for (var c = lane; c < size; c += THREADS) {
        var o = 0.0;
        for (var i = 0u; i < packs; i++) { o = fma(parts[i * pack + c / 4u][c % 4u], sums[i], o); }
        put(scratch, to + c, o);
    }
    if (lane == 0u) {
        var sum = 0.0;
        for (var i = 0u; i < packs; i++) { sum = fma(pack_sums[i], sums[i], sum); }
        put(scratch, to + size, top);
        put(scratch, to + size + 1u, sum);
    }
    workgroupBarrier();
}

// All layers of a plan read the same places.
fn PHASE_position(p: u32, lane: u32) -> u32 {
    let at = PHASE_operand(p, 2u);
    if (position_at != at.at) {
        sequence_now = value_i32(at, 0u);
        position_now = u32(value_i32(at, 1u));
        position_at = at.at;
    }
    return tell(lane, position_now);
}

fn PHASE_attention_parts(p: u32, group: u32, lane: u32) {
    let qkv = PHASE_operand(p, 0u);
    let cache = PHASE_operand(p, 1u);
    let n_q = u32(PHASE_i(p, 0u));
    let n_kv = u32(PHASE_i(p, 1u));
    let size = u32(PHASE_i(p, 2u));
    let fours = size / 4u;
    let pack = pack_of(fours);
    let packs = THREADS / pack;
    let column = lane % pack;
    let r = PHASE_reach(p, PHASE_position(p, lane));
    let table = PHASE_table(p);
    for (var unit = group; unit < n_q * r.parts; unit += groups()) {
        let head = unit / r.parts;
        let part = unit % r.parts;
        let key_head = head / (n_q / n_kv);
        let begin = 64u * (r.first + part * r.tiles);
        let end = min(r.end, begin + 64u * r.tiles);
        // The keys of earlier tokens are there already.
        var next = PHASE_fetch_key(p, table, key_head, begin + lane / pack, column);
        let first_own = PHASE_own_at(p, head, key_head, min(lane, 3u * fours - 1u));
        let asked = peek_four(qkv, first_own);
        if (unit == group) { PHASE_fill_beside(p, lane); }
        for (var i = lane; i < 3u * fours; i += THREADS) {
            let at = PHASE_own_at(p, head, key_head, i);
            var x = asked;
            if (i != lane) { x = peek_four(qkv, at); }
            own[64u * (i / fours) + i % fours] = sure_four(qkv, at, x);
        }
        workgroupBarrier();
        PHASE_turn(p, lane);
        workgroupBarrier();
        if (end == r.end && head % (n_q / n_kv) == 0u) {
            for (var i = lane; i < 2u * fours; i += THREADS) {
                let at = PHASE_place(p, table, key_head + i / fours * n_kv, end - 1u);
                var x = own[128u + i % fours];
                if (i < fours) { x = turned_four(1u, i); }
                written[cache.at + at + i % fours] = bitcast<vec4<u32>>(x);
            }
        }
        let query = turned_four(0u, min(column, fours - 1u));
        var top = LOWEST_SCORE;
        var sum = 0.0;
        var o = vec4<f32>();
        for (var keys = begin; keys < end; keys += packs) {
            var now = next;
            let key = keys + lane / pack;
            if (keys + packs < end) {
                next = PHASE_fetch_key(p, table, key_head, key + packs, column);
            }
            if (key + 1u == r.end && column < fours) {
                now = KeyValue(turned_four(1u, column), own[128u + column]);
            }
            let product = select(0.0, dot(query, now.key), column < fours);
            var score = pack_sum(lane, product, pack) * PHASE_f(p, 0u);
            if (PHASE_f(p, 2u) > 0.0) { score = soft_cap(score, PHASE_f(p, 2u)); }
            if (key >= end || key < r.begin) { score = LOWEST_SCORE; }
            let higher = max(top, score);
            let fade = exp1(top - higher);
            let weight = select(exp1(score - higher), 0.0, score == LOWEST_SCORE);
            top = higher;
            sum = fma(sum, fade, weight);
            if (weight == 0.0) { now.value = vec4<f32>(); } // what is there may be no number
            o = fma(vec4<f32>(weight), now.value, o * fade);
        }
        parts[lane] = o;
        if (column == 0u) {
            pack_tops[lane / pack] = top;
            pack_sums[lane / pack] = sum;
        }
        workgroupBarrier();
        PHASE_add_packs(p, (head * PHASE_word(p) + part) * (size + 2u), lane);
    }
}

// Four columns of part s of n, from `base` on; the last one again behind it, whose weight is 0.
fn PHASE_ask_part(p: u32, base: u32, column: u32, s: u32, n: u32) -> Seen {
    let scratch = PHASE_operand(p, 2u);
    let size = u32(PHASE_i(p, 2u));
    let at = base + min(s, n - 1u) * (size + 2u);
    return Seen(vec2<u32>(peek(scratch, at + size), peek(scratch, at + size + 1u)),
                vec4<u32>(peek(scratch, at + column), peek(scratch, at + column + 1u),
                          peek(scratch, at + column + 2u), peek(scratch, at + column + 3u)));
}
fn PHASE_part_at(p: u32, base: u32, column: u32, s: u32, n: u32, x: Seen) -> Part {
    if (s >= n) { return Part(LOWEST_SCORE, 0.0, vec4<f32>()); }
    let scratch = PHASE_operand(p, 2u);
    let size = u32(PHASE_i(p, 2u));
    let at = base + s * (size + 2u);
    return Part(sure(scratch, at + size, x.of_all.x), sure(scratch, at + size + 1u, x.of_all.y),
                vec4<f32>(sure(scratch, at + column, x.o.x), sure(scratch, at + column + 1u, x.o.y),
                          sure(scratch, at + column + 2u, x.o.z),
                          sure(scratch, at + column + 3u, x.o.w)));
}

fn PHASE_attention_whole(p: u32, group: u32, lane: u32) {
    let y = PHASE_operand(p, 1u);
    if (!is_mine(y, group)) { return; }
    let size = u32(PHASE_i(p, 2u));
    let r = PHASE_reach(p, tell(lane, position_now));
    for (var i = lane; i < u32(PHASE_i(p, 0u)) * size / 4u; i += THREADS) {
        let base = i / (size / 4u) * PHASE_word(p) * (size + 2u);
        let column = i % (size / 4u) * 4u;
        var all = Part(LOWEST_SCORE, 0.0, vec4<f32>());
        for (var s = 0u; s < r.parts; s += 4u) {
            let a = PHASE_ask_part(p, base, column, s, r.parts);
            let b = PHASE_ask_part(p, base, column, s + 1u, r.parts);
            let c = PHASE_ask_part(p, base, column, s + 2u, r.parts);
            let d = PHASE_ask_part(p, base, column, s + 3u, r.parts);
            all = both_parts(all, both_parts(
                both_parts(PHASE_part_at(p, base, column, s, r.parts, a),
                           PHASE_part_at(p, base, column, s + 1u, r.parts, b)),
                both_parts(PHASE_part_at(p, base, column, s + 2u, r.parts, c),
                           PHASE_part_at(p, base, column, s + 3u, r.parts, d))));
        }
        put_four(y, i, all.o / all.sum);
    }
}
