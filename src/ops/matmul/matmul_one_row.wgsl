// SPDX-License-Identifier: Apache-2.0
// matmul_one_row.wgsl - products of one row, or of rows one by one, with weights of four bits: what
// writing a token is made of. A workgroup has 4 * QUADS rows of one matrix. f(a) comes into its
// memory, 3,072 columns at a time.
//
//     block of 32 columns     LANES threads, of which each has four rows and EACH * 8 columns; SLOTS
//                             blocks are under way at once, and each thread asks for its next block
//                             before it multiplies the one that has come
//
// A nibble n becomes the float 1 + n / 16 by its bits alone, so that sums of columns are taken off
// at the end of a block:   sum of n a = 16 (sum of (1 + n / 16) a - sum of a)

const ROWS = 4u * QUADS;
const LANES = 4u / EACH * QUADS;
const SLOTS = 256u / LANES;
const COLS = 3072u;
const SUMS = 16u * QUADS;
const SQUARES = 32u;
const STRIDE = 9u; // of a block in row_of_a, in fours: neighbours meet other banks
// f(a), [96 blocks][STRIDE]; behind the last tile what the threads have found, four rows each.
var<workgroup> row_of_a: array<vec4<f32>, 864>;
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
    var n = Nibbles();
    var at: u32;
    if (kind == Q4KX16) {
        let shared_at = (quad / 4u * (blocks / 8u) + block / 8u) * 148u;
        at = shared_at + 4u + 18u * (block % 8u);
        let half = select(vec2<u32>(0u, 1u), vec2<u32>(2u, 3u), (j & 1u) != 0u);
        let d = four_words_at(part, shared_at + j / 2u);
        let least = four_words_at(part, shared_at + 2u + j / 2u);
        n.scales = vec4<u32>(d[half.x], d[half.y], four_words_at(part, at + 16u)[j],
                             four_words_at(part, at + 17u)[j]);
        n.offsets = vec4<u32>(least[half.x], least[half.y], 0u, 0u);
    } else {
        at = (quad / 4u * blocks + block) * select(18u, 20u, kind == Q4MX16);
        n.scales = four_words_at(part, at + 16u + j / 2u);
        if (kind == Q4MX16) { n.offsets = four_words_at(part, at + 18u + j / 2u); }
    }
    at += j + 4u * v;
    n.x0 = four_words_at(part, at);
    if (EACH > 1u) {
        n.x1 = four_words_at(part, at + 4u);
        n.x2 = four_words_at(part, at + 8u);
        n.x3 = four_words_at(part, at + 12u);
    }
    return n;
}

// 1 + n / 16 of the nibbles whose lowest bits are at 0, 8, 16 and 24.
fn lower(x: u32) -> vec4<f32> {
    let at_19 = vec4<u32>(x << 19u, x << 11u, x << 3u, x >> 5u);
    return bitcast<vec4<f32>>((at_19 & vec4<u32>(0x780000u)) | vec4<u32>(0x3f800000u));
}
fn upper(x: u32) -> vec4<f32> {
    let at_19 = vec4<u32>(x << 15u, x << 7u, x >> 1u, x >> 9u);
    return bitcast<vec4<f32>>((at_19 & vec4<u32>(0x780000u)) | vec4<u32>(0x3f800000u));
}

// Products of four rows with the columns 4 v .. 4 v + 3 of a block, and with those 16 further.
var<private> products: vec4<f32>;
var<private> ones: f32;
fn multiply(x: vec4<u32>, at: u32) {
    let low = row_of_a[at];
    let high = row_of_a[at + 4u];
    ones += dot(low + high, vec4<f32>(1.0));
    products += vec4<f32>(dot(lower(x.x), low) + dot(upper(x.x), high),
                          dot(lower(x.y), low) + dot(upper(x.y), high),
                          dot(lower(x.z), low) + dot(upper(x.z), high),
                          dot(lower(x.w), low) + dot(upper(x.w), high));
}

// at: of the thread's first columns in row_of_a.
fn take(n: Nibbles, j: u32, at: u32, kind: u32) -> vec4<f32> {
    products = vec4<f32>();
    ones = 0.0;
    multiply(n.x0, at);
    if (EACH > 1u) {
        multiply(n.x1, at + 1u);
        multiply(n.x2, at + 2u);
        multiply(n.x3, at + 3u);
    }
    let odd = (j & 1u) != 0u && kind != Q4KX16;
    let halves = select(n.scales.xy, n.scales.zw, odd);
    var scale = halves_of(halves);
    if (kind == Q4X16) { return 16.0 * scale * (products - 1.5 * ones); }
    let more = select(n.offsets.xy, n.offsets.zw, odd);
    var offset = halves_of(more);
    if (kind == Q4KX16) {
        scale *= bytes_of(n.scales.z);
        offset *= -bytes_of(n.scales.w);
    }
    return 16.0 * scale * (products - ones) + offset * ones;
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let depth = depth_of_a();
    let blocks = depth / 32u;
    let across = groups_across(ROWS);
    let number = group_of(id, count);
    let t = number / across;
    if (t >= in_rows(0u)) { return; }
    let place = place_of(number % across, ROWS);
    let kind = layout_of(place.matrix);
    let quad = place.group * QUADS + lane % QUADS;
    let v = lane / QUADS % (4u / EACH);
    var block = lane / LANES;
    var next = Nibbles();
    if (block < blocks) { next = ask(place.matrix, quad, v, blocks, block, kind); }
    // Who finishes a row asks for what is added to it, too.
    let mine = place.group * ROWS + lane;
    let is_mine = lane < ROWS && mine < rows_of(place.matrix);
    var more = 0.0;
    if (is_mine) { more = behind(t, place.begin + mine); }

    var sum = vec4<f32>();
    for (var tile = 0u; tile < depth; tile += COLS) {
        workgroupBarrier();
        let end = min(blocks, (tile + COLS) / 32u);
        for (var i = lane; i < 8u * (end - tile / 32u); i += 256u) {
            row_of_a[i / 8u * STRIDE + i % 8u] = values(t, t + 1u, tile + 4u * i, depth);
        }
        workgroupBarrier();
        for (; block < end; block += SLOTS) {
            let now = next;
            if (block + SLOTS < blocks) {
                next = ask(place.matrix, quad, v, blocks, block + SLOTS, kind);
            }
            sum += take(now, quad % 4u, (block - tile / 32u) * STRIDE + v, kind);
        }
    }
    workgroupBarrier();
    row_of_a[lane] = sum;
    if (NORMED) { squares[lane] = square; }
    workgroupBarrier();
    // Sixteen threads for each four of rows add up some, and others squares; then one for each row
    // adds up theirs.
    let tid = lane - 128u;
    if (lane < SUMS) {
        for (var i = lane + SUMS; i < 256u; i += SUMS) { sum += row_of_a[i]; }
        row_of_a[lane] = sum;
    }
    if (NORMED) {
        if (tid < SQUARES) {
            var some = squares[tid];
            for (var i = tid + SQUARES; i < 256u; i += SQUARES) { some += squares[i]; }
            squares[tid] = some;
        }
    }
    workgroupBarrier();
    if (is_mine) {
        var all = 0.0;
        for (var i = 0u; i < 16u; i++) { all += row_of_a[lane / 4u + QUADS * i][lane % 4u]; }
        if (NORMED) {
            var some = 0.0;
            for (var i = 0u; i < SQUARES; i++) { some += squares[i]; }
            all *= 1.0 / sqrt(some / f32(depth) + op.f0);
        }
        y[place_in_y(t, place.begin + mine)] = all + more;
    }
}
