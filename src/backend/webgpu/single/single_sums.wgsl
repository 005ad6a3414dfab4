// SPDX-License-Identifier: Apache-2.0
// single_sums.wgsl - sums over all threads of a workgroup, and over packs of n of them, a power of two
// up to 64, in one order.
fn all_sum(lane: u32, x: f32) -> f32 {
    sums[lane] = x;
    for (var half = THREADS / 2u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if (lane < half) { sums[lane] += sums[lane + half]; }
    }
    workgroupBarrier();
    let result = sums[0];
    workgroupBarrier();
    return result;
}
fn pack_sum(lane: u32, x: f32, n: u32) -> f32 {
    sums[lane] = x;
    workgroupBarrier();
    var sum = 0.0;
    for (var i = 0u; i < n; i++) { sum += sums[lane / n * n + i]; }
    workgroupBarrier();
    return sum;
}
