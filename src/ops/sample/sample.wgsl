// SPDX-License-Identifier: Apache-2.0
// sample.wgsl - draws the next token, in two passes: keys, and the first of each tile of them, by
// many workgroups; then one of all. See sample.c for the rules.
//
// Ranks are found one by one: each is the largest (key, then lowest id) of what the tiles have left;
// then its tile is gone through again. Mostly a few ranks decide, and who asks again finds them in
// order. Sums over ranks are
// kept in pairs of floats, the second one what the first has lost.
//
//     key [V] out 1      order [V] out 2: the ids by rank, as far as they were asked for
//     tops [tiles]       scratch: the bits of a tile's largest key without a rank, and its id; n: none
@group(0) @binding(2) var<storage, read_write> logits: array<f32>;
@group(0) @binding(3) var<storage, read_write> recent: array<i32>;
@group(0) @binding(4) var<storage, read_write> token: array<i32>;
@group(0) @binding(5) var<storage, read_write> key: array<f32>;
@group(0) @binding(6) var<storage, read_write> order: array<i32>;
@group(0) @binding(7) var<storage, read_write> tops: array<vec2<u32>>;

const NONE = -0x1.fffffep+127f; // the key of a NaN, and of nothing
const MOST = 0x1.fffffep+127f;
const TILE = 2048u; // TILE of sample.c

var<workgroup> best_key: array<f32, 256>;
var<workgroup> best_id: array<u32, 256>;
var<workgroup> chosen: u32;
var<workgroup> shared_key: f32;
var<private> found: f32; // in thread 0: the key of the chosen one
var<workgroup> lane_sum: array<vec2<f32>, 256>;

fn likelier(key_a: f32, a: u32, key_b: f32, b: u32) -> bool {
    return key_a > key_b || (key_a == key_b && a < b);
}

// All threads get the likeliest of those that they bring; n where there is none.
fn best_of_all(lane: u32, n: u32, k: f32, at: u32) -> u32 {
    best_key[lane] = k;
    best_id[lane] = at;
    for (var half = 128u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if (lane < half) {
            let other = best_id[lane + half];
            if (other != n && (best_id[lane] == n || likelier(best_key[lane + half], other,
                                                              best_key[lane], best_id[lane]))) {
                best_key[lane] = best_key[lane + half];
                best_id[lane] = other;
            }
        }
    }
    workgroupBarrier();
    if (lane == 0u) {
        chosen = best_id[0];
        found = best_key[0];
    }
    return workgroupUniformLoad(&chosen);
}

// The likeliest of those that no rank has yet, out of what the tiles have left.
fn best_of_tiles(lane: u32, n: u32) -> u32 {
    var k = NONE;
    var at = n;
    for (var i = lane; i < (n + TILE - 1u) / TILE; i += 256u) {
        let top = tops[i];
        if (top.y >= n) { continue; }
        if (at == n || likelier(bitcast<f32>(top.x), top.y, k, at)) {
            k = bitcast<f32>(top.x);
            at = top.y;
        }
    }
    return best_of_all(lane, n, k, at);
}

// The tile of an id that has got its rank has the likeliest behind it left.
fn take_from_tile(lane: u32, n: u32, taken_key: f32, taken: u32) {
    let begin = taken / TILE * TILE;
    var k = NONE;
    var at = n;
    for (var i = begin + lane; i < min(n, begin + TILE); i += 256u) {
        if (!likelier(taken_key, taken, key[i], i)) { continue; }
        if (at == n || likelier(key[i], i, k, at)) {
            k = key[i];
            at = i;
        }
    }
    let left = best_of_all(lane, n, k, at);
    if (lane == 0u) { tops[taken / TILE] = vec2<u32>(bitcast<u32>(found), left); }
    storageBarrier();
}

// How many ranks are in order, and of the last of them the id and its key.
struct Ranked { n: u32, id: u32, key: f32 }
var<workgroup> in_order: Ranked;

// The id of rank j <= in_order.n, and its key; n: there is none.
struct Rank { id: u32, key: f32 }
fn ranked(lane: u32, n: u32, j: u32) -> Rank {
    let before = workgroupUniformLoad(&in_order);
    if (j < before.n) {
        if (lane == 0u) { chosen = u32(order[j]); }
    } else {
        if (j > 0u) { take_from_tile(lane, n, before.key, before.id); }
        _ = best_of_tiles(lane, n);
    }
    let id = workgroupUniformLoad(&chosen);
    if (lane == 0u) {
        shared_key = select(NONE, key[min(id, n - 1u)], id < n);
        if (j >= before.n && id < n) {
            order[j] = i32(id);
            in_order = Ranked(j + 1u, id, shared_key);
        }
    }
    return Rank(id, workgroupUniformLoad(&shared_key));
}

// Probability relative to the likeliest token.
fn weight(k: f32, top: f32) -> f32 {
    if (k <= NONE) { return 0.0; }
    return exp1((k - top) / rt.temperature);
}

// sum.x + sum.y + x, without loss (Knuth's two-sum).
fn plus(sum: vec2<f32>, x: f32) -> vec2<f32> {
    let s = sum.x + x;
    let b = s - sum.x;
    return vec2<f32>(s, sum.y + ((sum.x - (s - b)) + (x - b)));
}

// The logit of an id, with the penalty if it is among the recent ones.
fn penalized(x: f32, id: u32) -> f32 {
    let penalty = rt.repeat_penalty;
    if (!(penalty > 0.0) || penalty == 1.0 || !is_finite(penalty)) { return x; }
    for (var i = 0u; i < min(u32(max(rt.n_recent, 0)), op.ins[1].cols); i++) {
        if (recent[i] == i32(id)) { return select(x * penalty, x / penalty, x > 0.0); }
    }
    return x;
}

@compute @workgroup_size(256)
fn keys(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let n = op.outs[1].cols;
    let start = (in_rows(0u) - 1u) * n;
    let group = group_of(id, count);
    let begin = group * TILE;
    if (begin >= n) { return; }
    var k = NONE;
    var at = n;
    for (var i = begin + lane; i < min(n, begin + TILE); i += 256u) {
        let logit = logits[start + i];
        let x = select(clamp(penalized(logit, i), NONE, MOST), NONE, is_nan(logit));
        key[i] = x;
        if (at == n || likelier(x, i, k, at)) {
            k = x;
            at = i;
        }
    }
    let first = best_of_all(lane, n, k, at);
    if (lane == 0u) { tops[group] = vec2<u32>(bitcast<u32>(found), first); }
}

// x0 of Philox 4x32-10 at (draw, SAMPLE, 0), by products in halves of 16 bits.
fn high(a: u32, b: u32) -> u32 {
    let al = a & 0xffffu;
    let ah = a >> 16u;
    let bl = b & 0xffffu;
    let bh = b >> 16u;
    let mid = ah * bl + ((al * bl) >> 16u);
    let low = (mid & 0xffffu) + al * bh;
    return ah * bh + (mid >> 16u) + (low >> 16u);
}
fn random() -> u32 {
    var c = vec4<u32>(rt.draw_lo, rt.draw_hi, 4u, 0u);
    var k = vec2<u32>(rt.seed_lo, rt.seed_hi);
    for (var i = 0u; i < 10u; i++) {
        c = vec4<u32>(high(0xCD9E8D57u, c.z) ^ c.y ^ k.x, 0xCD9E8D57u * c.z,
                      high(0xD2511F53u, c.x) ^ c.w ^ k.y, 0xD2511F53u * c.x);
        k += vec2<u32>(0x9E3779B9u, 0xBB67AE85u);
    }
    return c.x;
}

// The sum of all weights, in one order.
fn whole_mass(lane: u32, n: u32, top: f32) -> vec2<f32> {
    var sum = vec2<f32>();
    for (var i = lane; i < n; i += 256u) { sum = plus(sum, weight(key[i], top)); }
    lane_sum[lane] = sum;
    for (var half = 128u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if (lane < half) {
            let other = lane_sum[lane + half];
            lane_sum[lane] = plus(lane_sum[lane], other.x) + vec2<f32>(0.0, other.y);
        }
    }
    return workgroupUniformLoad(&lane_sum[0]);
}

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) lane: u32) {
    let n = op.outs[1].cols;
    if (lane == 0u) { in_order = Ranked(0u, n, NONE); }
    let first = ranked(lane, n, 0u);
    let top = first.key;
    if (lane == 0u) { token[0] = i32(first.id); }
    if (!is_here(1u) || !(rt.temperature > 0.0) || top <= NONE) { return; }
    let limited = rt.top_k > 0 && u32(rt.top_k) < n;
    let k = select(n, u32(rt.top_k), limited);

    // What the ranks [0, k) weigh, and how many of them top_p and min_p leave.
    var total = vec2<f32>();
    if (limited) {
        for (var j = 0u; j < k; j++) { total = plus(total, weight(ranked(lane, n, j).key, top)); }
    } else {
        total = whole_mass(lane, n, top);
    }
    var mass = total.x + total.y;
    var kept = k;
    if (rt.top_p < 1.0 || rt.min_p > 0.0) {
        let enough = select(2.0 * mass, rt.top_p * mass, rt.top_p < 1.0);
        var sum = vec2<f32>(1.0, 0.0);
        kept = 1u;
        while (kept < k && sum.x + sum.y < enough) {
            let next = ranked(lane, n, kept);
            let w = weight(next.key, top);
            if (next.id >= n || w <= 0.0 || (rt.min_p > 0.0 && w < rt.min_p)) { break; }
            sum = plus(sum, w);
            kept++;
        }
        mass = sum.x + sum.y;
    }

    // (x + 1/2) / 2^32 of the mass: the rank into whose part it falls.
    let target_mass = (f32(random() >> 8u) + 0.5) * 0x1p-24f * mass;
    var sum = vec2<f32>();
    var last = first.id;
    for (var j = 0u; j < kept; j++) {
        let next = ranked(lane, n, j);
        let w = weight(next.key, top);
        if (next.id >= n || w <= 0.0) { break; }
        sum = plus(sum, w);
        last = next.id;
        if (sum.x + sum.y > target_mass) { break; }
    }
    if (lane == 0u) { token[0] = i32(last); }
}
