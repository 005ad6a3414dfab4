// SPDX-License-Identifier: Apache-2.0
// matmul_whole.wgsl - a workgroup makes a tile of y, from the product to what follows it.
@group(0) @binding(4) var<storage, read_write> bias: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> residual: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read_write> y: array<vec4<f32>>;
@group(0) @binding(7) var<storage, read_write> z: array<vec4<f32>>;

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) tid: u32) {
    let s = sizes();
    let across = (s.n + TILE - 1u) / TILE;
    let group = group_of(id, count);
    let down = (s.m + TILE - 1u) / TILE;
    if (group >= down * across) { return; }
    let tile = tile_at(group, down, across);
    let top = tile.x * TILE;
    let first = tile.y * TILE;
    var sums = product(0u, s, top, first, 0u, s.k, tid, false);
    let x = thread_x(tid);
    let y0 = thread_y(tid);
    let j0 = first + 4u * x;
    let j1 = j0 + 4u * HALF;
    for (var e = 0u; e < ROWS; e++) {
        let i = top + row_of(e, y0);
        if (i < s.m) {
            if (j0 < s.n) { finish(s, i, j0, sums.s[2u * e]); }
            if (TILE > 32u && j1 < s.n) { finish(s, i, j1, sums.s[2u * e + 1u]); }
        }
    }
}
