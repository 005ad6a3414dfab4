// SPDX-License-Identifier: Apache-2.0
// matmul_parts.wgsl - a workgroup makes a tile of one part of k, which is op.word long.
//
//     partial [parts of k][M][N]
@group(0) @binding(4) var<storage, read_write> partial: array<vec4<f32>>;

@compute @workgroup_size(THREADS)
fn parts(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
         @builtin(local_invocation_index) tid: u32) {
    let s = sizes();
    let across = (s.n + TILE - 1u) / TILE;
    let group = group_of(id, count);
    let down = (s.m + TILE - 1u) / TILE;
    let part = group / (down * across);
    let tile = tile_at(group % (down * across), down, across);
    let top = tile.x * TILE;
    let first = tile.y * TILE;
    let begin = part * op.word;
    if (begin >= s.k) { return; }
    var sums = product(0u, s, top, first, begin, min(s.k, begin + op.word), tid, false);
    let j0 = first + 4u * thread_x(tid);
    let j1 = j0 + 4u * HALF;
    for (var e = 0u; e < ROWS; e++) {
        let i = top + row_of(e, thread_y(tid));
        if (i < s.m) {
            let row = (part * s.m + i) * s.n;
            if (j0 < s.n) { partial[(row + j0) / 4u] = sums.s[2u * e]; }
            if (TILE > 32u && j1 < s.n) { partial[(row + j1) / 4u] = sums.s[2u * e + 1u]; }
        }
    }
}
