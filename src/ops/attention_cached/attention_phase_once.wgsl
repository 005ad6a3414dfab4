// SPDX-License-Identifier: Apache-2.0
// attention_phase_once.wgsl - what all layers of attention_phase.wgsl share.

const LOWEST_SCORE = -0x1p127f;

// Of the head that a workgroup is at, 64 fours each: query, own key, own value, as they came ...
var<workgroup> own: array<vec4<f32>, 192>;
var<workgroup> turned: array<f32, 512>; // ... and query and key turned, 256 each
// Cosines and sines, and from 256 and 512 on the norms of queries and keys.
var<workgroup> beside: array<f32, 768>;
var<workgroup> pack_tops: array<f32, THREADS>;
var<workgroup> pack_sums: array<f32, THREADS>;

struct Reach { begin: u32, end: u32, first: u32, tiles: u32, parts: u32 }

// Of the token at `position`, with a window or without: at most so many parts.
fn reach_of(position: u32, window: i32, most: u32) -> Reach {
    let end = position + 1u;
    let begin = select(0u, end - min(end, u32(window)), window > 0);
    let first = begin / 64u;
    let all = (end + 63u) / 64u - first;
    let tiles = (all + most - 1u) / most;
    return Reach(begin, end, first, tiles, (all + tiles - 1u) / tiles);
}

struct KeyValue { key: vec4<f32>, value: vec4<f32> }

// Of the token, and of its sequence the page that this thread was at last; the table in beside. Each
// with the place where it was found, so that layers that have the same do not ask again.
var<private> sequence_now: i32;
var<private> position_now: u32;
var<private> position_at: u32 = 0xffffffffu;
var<private> page_now: u32;
var<private> page_at: u32 = 0xffffffffu;
var<private> table_at: u32 = 0xffffffffu;

// The power of two that has all columns of a head.
fn pack_of(fours: u32) -> u32 {
    if (fours <= 4u) { return 4u; }
    if (fours <= 8u) { return 8u; }
    if (fours <= 16u) { return 16u; }
    return select(64u, 32u, fours <= 32u);
}

fn turned_four(which: u32, e: u32) -> vec4<f32> {
    let at = 256u * which + 4u * e;
    return vec4<f32>(turned[at], turned[at + 1u], turned[at + 2u], turned[at + 3u]);
}

// Of a part as it was found: the largest score and the sum, and four columns.
struct Seen { of_all: vec2<u32>, o: vec4<u32> }
struct Part { top: f32, sum: f32, o: vec4<f32> }
fn both_parts(a: Part, b: Part) -> Part {
    let top = max(a.top, b.top);
    let of_a = exp1(a.top - top);
    let of_b = exp1(b.top - top);
    return Part(top, fma(a.sum, of_a, b.sum * of_b), fma(a.o, vec4<f32>(of_a), b.o * of_b));
}
