// SPDX-License-Identifier: Apache-2.0
// attention_forward.wgsl - o and lse of 32 queries: the keys once, with a running maximum and sum of
// each row (Dao et al. 2022). The text before this one says where queries, keys and values are:
//
//     struct Place { first: query of this workgroup; q, k, v; ahead: keys before query 0 }
//     place_of(s, group, tid), and write_o, write_lse

var<workgroup> of_cells: array<vec4<f32>, 64>; // something of each cell's rows

fn largest(v: vec4<f32>) -> f32 { return max(max(v.x, v.y), max(v.z, v.w)); }
fn sum_of(v: vec4<f32>) -> f32 { return (v.x + v.y) + (v.z + v.w); }

fn largest_of(c: Cell) -> vec4<f32> {
    return vec4<f32>(largest(c.r0), largest(c.r1), largest(c.r2), largest(c.r3));
}
fn sums_of(c: Cell) -> vec4<f32> {
    return vec4<f32>(sum_of(c.r0), sum_of(c.r1), sum_of(c.r2), sum_of(c.r3));
}

fn write_row(s: Heads, p: Place, t: u32, d: u32, v: vec4<f32>) {
    for (var e = 0u; e < 4u; e++) {
        if (t < p.q.n && d + e < s.size) { write_o(s, p, t, d + e, v[e]); }
    }
}
fn write_cell(s: Heads, p: Place, t: u32, d: u32, c: Cell) {
    write_row(s, p, t, d, c.r0);
    write_row(s, p, t + 1u, d, c.r1);
    write_row(s, p, t + 2u, d, c.r2);
    write_row(s, p, t + 3u, d, c.r3);
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) tid: u32) {
    let s = heads();
    let p = place_of(s, group_of(id, count), tid);
    if (p.first >= p.q.n) { return; }
    let x = 4u * thread_x(tid);
    let row = p.first + 4u * thread_y(tid); // of this thread's four
    let cells = 8u * thread_y(tid);         // of the same rows, from here on
    // The largest score so far is the same in all threads of a row; sums are of a thread's columns.
    var top = vec4<f32>(LOWEST);
    var sum = vec4<f32>();
    var o: array<Pair, PAIRS>;
    // The last query of the block sees this many keys. What a query adds up before the first key
    // that it sees goes away there, as it is so much less.
    let end = min(p.first + 32u, p.q.n) + p.ahead;
    for (var key = begin_of(p.ahead + p.first + 1u) / 64u * 64u; key < end; key += 64u) {
        var c = scores(s, p.q, p.first, p.k, key, tid);
        if (op.f2 > 0.0) { c = capped(c); }
        let seen = p.ahead + row + 1u;
        if (key + 63u > p.ahead + p.first || op.i3 > 0) {
            c = Pair(masked_cell(c.a, key + x, seen), masked_cell(c.b, key + x + 32u, seen));
        }
        of_cells[cells + x / 4u] = max(largest_of(c.a), largest_of(c.b));
        workgroupBarrier();
        var new_top = of_cells[cells];
        for (var e = 1u; e < 8u; e++) { new_top = max(new_top, of_cells[cells + e]); }
        new_top = max(top, op.f0 * new_top);
        c = Pair(weights(c.a, along(new_top)), weights(c.b, along(new_top)));
        let scale = exp4(top - new_top);
        top = new_top;
        sum = sum * scale + sums_of(c.a) + sums_of(c.b);
        for (var i = 0u; i < PAIRS; i++) {
            o[i] = Pair(scaled(o[i].a, scale), scaled(o[i].b, scale));
        }
        c = dropped(c, kept_of(p, row, key + x, false), false);
        add_rows(&o, c, s, p.v, key, end, tid);
    }
    of_cells[cells + x / 4u] = sum;
    workgroupBarrier();
    var all = vec4<f32>();
    for (var e = 0u; e < 8u; e++) { all += of_cells[cells + e]; }
    for (var e = 0u; e < 4u; e++) {
        if (x == 0u && row + e < p.q.n) { write_lse(p, row + e, top[e] + log1(all[e])); }
    }
    for (var i = 0u; i < PAIRS; i++) {
        write_cell(s, p, row, 64u * i + x, scaled(o[i].a, 1.0 / all));
        write_cell(s, p, row, 64u * i + 32u + x, scaled(o[i].b, 1.0 / all));
    }
}
