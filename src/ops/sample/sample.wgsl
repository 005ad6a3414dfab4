// SPDX-License-Identifier: Apache-2.0
// sample.wgsl - draws the next token, in two passes: keys, and the first of each tile of them, by
// many workgroups; then one of all. See sample.c for the rules.
//
// Ranks are found one by one: each is the largest (key, then lowest id) behind the last one, a
// reduction over the vocabulary but for the first. Mostly a few of them decide. Sums over ranks are
// kept in pairs of floats, the second one what the first has lost.
//
//     key [V] out 1      order [V] out 2: the ids by rank, as far as they were asked for
//     tops [tiles]       scratch: the bits of a tile's largest key, and its id
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
var<workgroup> shared_sum: f32;
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
    if (lane == 0u) { chosen = best_id[0]; }
    return workgroupUniformLoad(&chosen);
}

// The likeliest id behind (after_key, after).
fn next_rank(lane: u32, n: u32, after_key: f32, after: u32) -> u32 {
    var k = NONE;
    var at = n;
    for (var i = lane; i < n; i += 256u) {
        if (!likelier(after_key, after, key[i], i)) { continue; }
        if (at == n || likelier(key[i], i, k, at)) {
            k = key[i];
            at = i;
        }
    }
    return best_of_all(lane, n, k, at);
}

// The likeliest of all, out of what the tiles have left.
fn first_rank(lane: u32, n: u32) -> u32 {
    var k = NONE;
    var at = n;
    for (var i = lane; i < (n + TILE - 1u) / TILE; i += 256u) {
        let top = tops[i];
        if (at == n || likelier(bitcast<f32>(top.x), top.y, k, at)) {
            k = bitcast<f32>(top.x);
            at = top.y;
        }
    }
    return best_of_all(lane, n, k, at);
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
    if (lane == 0u) { tops[group] = vec2<u32>(bitcast<u32>(best_key[0]), first); }
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
    let first = first_rank(lane, n);
    if (lane == 0u) {
        token[0] = i32(first);
        shared_sum = key[first];
    }
    let top = workgroupUniformLoad(&shared_sum);
    if (!is_here(1u) || !(rt.temperature > 0.0) || top <= NONE) { return; }
    let limited = rt.top_k > 0 && u32(rt.top_k) < n;
    let k = select(n, u32(rt.top_k), limited);

    // What the ranks [0, k) weigh, and how many of them top_p and min_p leave.
    var total = vec2<f32>();
    if (limited) {
        var id = first;
        for (var j = 0u; j < k && id < n; j++) {
            if (lane == 0u) { shared_sum = key[id]; }
            let at = workgroupUniformLoad(&shared_sum);
            total = plus(total, weight(at, top));
            id = next_rank(lane, n, at, id);
        }
    } else {
        total = whole_mass(lane, n, top);
    }
    var mass = total.x + total.y;
    var kept = k;
    if (rt.top_p < 1.0 || rt.min_p > 0.0) {
        let enough = select(2.0 * mass, rt.top_p * mass, rt.top_p < 1.0);
        var sum = vec2<f32>(1.0, 0.0);
        var id = first;
        var last = top;
        kept = 1u;
        while (kept < k && sum.x + sum.y < enough) {
            id = next_rank(lane, n, last, id);
            if (id >= n) { break; }
            if (lane == 0u) { shared_sum = key[id]; }
            last = workgroupUniformLoad(&shared_sum);
            let w = weight(last, top);
            if (w <= 0.0 || (rt.min_p > 0.0 && w < rt.min_p)) { break; }
            sum = plus(sum, w);
            kept++;
        }
        mass = sum.x + sum.y;
    }

    // (x + 1/2) / 2^32 of the mass: the rank into whose part it falls.
    let target_mass = (f32(random() >> 8u) + 0.5) * 0x1p-24f * mass;
    var sum = vec2<f32>();
    var id = first;
    var last = first;
    for (var j = 0u; j < kept && id < n; j++) {
        if (lane == 0u) { shared_sum = key[id]; }
        let at = workgroupUniformLoad(&shared_sum);
        let w = weight(at, top);
        if (w <= 0.0) { break; }
        sum = plus(sum, w);
        last = id;
        if (lane == 0u) { order[j] = i32(id); }
        if (sum.x + sum.y > target_mass) { break; }
        id = next_rank(lane, n, at, id);
    }
    if (lane == 0u) { token[0] = i32(last); }
}
