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
// The largest of eight threads side by side, as bits of floats that are not negative.
fn eight_most(lane: u32, x: u32) -> u32 {
    sums[lane] = as_float(x);
    workgroupBarrier();
    var most = 0u;
    for (var i = 0u; i < 8u; i++) { most = max(most, bitcast<u32>(sums[lane / 8u * 8u + i])); }
    workgroupBarrier();
    return most;
}
