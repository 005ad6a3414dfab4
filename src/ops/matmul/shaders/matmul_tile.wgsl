// SPDX-License-Identifier: Apache-2.0
// matmul_tile.wgsl - a workgroup makes 64 x 64 elements of y, a thread 4 x 4 of them.
//
//     tile_a [16 k][64 rows]  tile_b [16 k][64 columns]   in fours, a row of 16 padded to 17
//
// Both lie with k outermost, however the operands lie in memory: a thread reads four rows and four
// columns of one k, which is 16 products for two loads. Threads that load are numbered along what
// is contiguous in memory.

const PITCH = 17u;
var<workgroup> tile_a: array<vec4<f32>, 272>;
var<workgroup> tile_b: array<vec4<f32>, 272>;

fn load_a(s: Sizes, i: u32, k: u32) -> f32 {
    if (i >= s.m || k >= s.k) { return 0.0; }
    return a[select(i * s.k + k, k * s.m + i, op.i0 == 1)];
}

fn load_b(s: Sizes, j: u32, k: u32) -> f32 {
    if (j >= s.n || k >= s.k) { return 0.0; }
    return b[select(k * s.n + j, j * s.k + k, op.i0 == 2)];
}

fn finish4(s: Sizes, i: u32, j: u32, v: vec4<f32>) {
    if (i >= s.m) { return; }
    for (var c = 0u; c < 4u; c++) {
        if (j + c < s.n) { finish(s, i, j + c, v[c]); }
    }
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let s = sizes();
    let across = (s.n + 63u) / 64u;
    let group = group_of(id, count);
    let top = group / across * 64u;
    let left = group % across * 64u;
    if (top >= s.m) { return; }
    let slow = lane / 16u;
    let fast = lane % 16u;
    // Which four and which k of a tile this thread loads.
    let a4 = select(slow, fast, op.i0 == 1);
    let ak = select(fast, slow, op.i0 == 1);
    let b4 = select(fast, slow, op.i0 == 2);
    let bk = select(slow, fast, op.i0 == 2);
    let i0 = top + 4u * a4;
    let j0 = left + 4u * b4;
    var sum0 = vec4<f32>();
    var sum1 = vec4<f32>();
    var sum2 = vec4<f32>();
    var sum3 = vec4<f32>();
    for (var base = 0u; base < s.k; base += 16u) {
        let ka = base + ak;
        let kb = base + bk;
        tile_a[ak * PITCH + a4] = vec4<f32>(load_a(s, i0, ka), load_a(s, i0 + 1u, ka),
                                            load_a(s, i0 + 2u, ka), load_a(s, i0 + 3u, ka));
        tile_b[bk * PITCH + b4] = vec4<f32>(load_b(s, j0, kb), load_b(s, j0 + 1u, kb),
                                            load_b(s, j0 + 2u, kb), load_b(s, j0 + 3u, kb));
        workgroupBarrier();
        for (var k = 0u; k < 16u; k++) {
            let av = tile_a[k * PITCH + slow];
            let bv = tile_b[k * PITCH + fast];
            sum0 = fma(vec4<f32>(av.x), bv, sum0);
            sum1 = fma(vec4<f32>(av.y), bv, sum1);
            sum2 = fma(vec4<f32>(av.z), bv, sum2);
            sum3 = fma(vec4<f32>(av.w), bv, sum3);
        }
        workgroupBarrier();
    }
    let i = top + 4u * slow;
    let j = left + 4u * fast;
    finish4(s, i, j, sum0);
    finish4(s, i + 1u, j, sum1);
    finish4(s, i + 2u, j, sum2);
    finish4(s, i + 3u, j, sum3);
}
