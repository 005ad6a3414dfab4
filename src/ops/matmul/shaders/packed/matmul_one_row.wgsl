// SPDX-License-Identifier: Apache-2.0
// matmul_one_row.wgsl - products of one row, or of rows one by one, with weights of four bits: what
// writing a token is made of. A workgroup has 4 * QUADS rows of one matrix. f(a) comes into its
// memory, COLS columns at a time: the text before this one has it as floats or rounded to 8 bits,
// and multiplies a thread's part of a block with it.
//
//     block of 32 columns     LANES threads, of which each has four rows and EACH * 8 columns; SLOTS
//                             blocks are under way at once. Threads that are many hide more of the
//                             wait for memory than blocks asked for ahead, which cost registers
//
// Where there are many such groups of rows, op.word says above its layouts how many a workgroup has,
// one after the other. Then f(a), which it finds once, is no longer than COLS. EARLY: the first block
// is asked for before f(a) is.
//
// Constants say what is known of the matrices: ONLY, the layout of all of them, or 0; LONE, that
// there is one. Without them each load asks which of three it is of.

const ROWS = 4u * QUADS;
const LANES = 4u / EACH * QUADS;
const SLOTS = 256u / LANES;
const SUMS = 16u * QUADS;
const SQUARES = 32u;
var<workgroup> squares: array<f32, 256>; // a thread's each, where NORMED

// Of a block what a thread reads: its words, and what scales and offsets are made of.
struct Nibbles {
    x0: vec4<u32>, x1: vec4<u32>, x2: vec4<u32>, x3: vec4<u32>,
    scales: vec4<u32>,
    offsets: vec4<u32>,
}

// Four rows of group / 4, from row 4 * (quad % 4) on; see packed.wgsl, in fours of words.
fn ask(part: u32, quad: u32, v: u32, blocks: u32, block: u32, kind: u32) -> Nibbles {
    let j = quad % 4u;
    if (kind == Q4KX16) {
        let shared_at = (quad / 4u * (blocks / 8u) + block / 8u) * 148u;
        let at = shared_at + 4u + 18u * (block % 8u);
        let half = select(vec2<u32>(0u, 1u), vec2<u32>(2u, 3u), (j & 1u) != 0u);
        var n = words_of_block(part, at + j + 4u * EACH * v, shared_at + j / 2u,
                               shared_at + 2u + j / 2u);
        n.scales = vec4<u32>(n.scales[half.x], n.scales[half.y], four_of(part, at + 16u)[j],
                             four_of(part, at + 17u)[j]);
        n.offsets = vec4<u32>(n.offsets[half.x], n.offsets[half.y], 0u, 0u);
        return n;
    }
    let at = (quad / 4u * blocks + block) * select(18u, 20u, kind == Q4MX16);
    return words_of_block(part, at + j + 4u * EACH * v, at + 16u + j / 2u,
                          select(0u, at + 18u + j / 2u, kind == Q4MX16));
}

fn kind_of(part: u32) -> u32 {
    if (ONLY != 0u) { return ONLY; }
    return layout_of(part);
}
fn four_of(part: u32, i: u32) -> vec4<u32> {
    if (LONE) { return four_words_at(0u, i); }
    return four_words_at(part, i);
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let depth = depth_of_a();
    let blocks = depth / 32u;
    let across = groups_across(ROWS);
    let turns = max(1u, op.word >> 24u);
    let step = (across + turns - 1u) / turns;
    let number = group_of(id, count);
    let t = number / step;
    if (t >= in_rows(0u)) { return; }
    let first = number % step;
    let slot = lane / LANES;
    let v = lane / QUADS % (4u / EACH);
    var n = Nibbles();
    if (EARLY && slot < blocks) {
        let place = place_of(first, ROWS);
        n = ask(place.matrix, place.group * QUADS + lane % QUADS, v, blocks, slot,
                kind_of(place.matrix));
    }
    var scale_of_row = 1.0;
    for (var group = first; group < across; group += step) {
        let place = place_of(group, ROWS);
        let kind = kind_of(place.matrix);
        let quad = place.group * QUADS + lane % QUADS;
        // Who finishes a row asks for what is added to it, too.
        let mine = place.group * ROWS + lane;
        let is_mine = lane < ROWS && mine < rows_of(place.matrix);
        var more = 0.0;
        if (is_mine) { more = behind(t, place.begin + mine); }

        var block = slot;
        var sum = vec4<f32>();
        for (var tile = 0u; tile < depth; tile += COLS) {
            if (group == first) {
                workgroupBarrier();
                fill_tile(t, tile, depth, lane);
                workgroupBarrier();
            }
            let end = min(blocks, (tile + COLS) / 32u);
            for (; block < end; block += SLOTS) {
                if (!EARLY || group != first || block != slot) {
                    n = ask(place.matrix, quad, v, blocks, block, kind);
                }
                sum += take(n, quad % 4u, block - tile / 32u, v, kind);
            }
        }
        workgroupBarrier();
        found[lane] = sum;
        if (NORMED) { squares[lane] = square; }
        workgroupBarrier();
        // Sixteen threads for each four of rows add up some, and others squares; then one for each
        // row adds up theirs.
        let tid = lane - 128u;
        if (lane < SUMS) {
            for (var i = lane + SUMS; i < 256u; i += SUMS) { sum += found[i]; }
            found[lane] = sum;
        }
        if (NORMED) {
            if (tid < SQUARES) {
                var some = squares[tid];
                for (var i = tid + SQUARES; i < 256u; i += SQUARES) { some += squares[i]; }
                squares[tid] = some;
            }
        }
        workgroupBarrier();
        if (NORMED) {
            if (group == first && lane < ROWS) {
                var some = 0.0;
                for (var i = 0u; i < SQUARES; i++) { some += squares[i]; }
                scale_of_row = 1.0 / sqrt(some / f32(depth) + op.f0);
            }
        }
        if (is_mine) {
            var all = 0.0;
            for (var i = 0u; i < 16u; i++) { all += found[lane / 4u + QUADS * i][lane % 4u]; }
            y[place_in_y(t, place.begin + mine)] = all * scale_of_row + more;
        }
    }
}
