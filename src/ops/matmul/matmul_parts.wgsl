// matmul_parts.wgsl - a workgroup makes a tile of one part of k.
//
//     partial [parts of k][M][N]
@group(0) @binding(4) var<storage, read_write> partial: array<vec4<f32>>;

@compute @workgroup_size(THREADS)
fn parts(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
         @builtin(local_invocation_index) tid: u32) {
    let s = sizes();
    let across = (s.n + TILE - 1u) / TILE;
    let group = group_of(id, count);
    let part = group / tiles_of(s);
    let tile = group % tiles_of(s);
    let top = tile / across * TILE;
    let first = tile % across * TILE;
    if (part >= split_of(s)) { return; }
    let begin = min(s.k, part * part_of(s));
    var sums = product(0u, s, top, first, begin, min(s.k, begin + part_of(s)), tid, false);
    let j0 = first + 4u * thread_x(tid);
    let j1 = j0 + 4u * HALF;
    for (var e = 0u; e < 8u; e++) {
        let i = top + row_of(e, thread_y(tid));
        if (i < s.m) {
            let row = (part * s.m + i) * s.n;
            if (j0 < s.n) { partial[(row + j0) / 4u] = sums.s[2u * e]; }
            if (j1 < s.n) { partial[(row + j1) / 4u] = sums.s[2u * e + 1u]; }
        }
    }
}
