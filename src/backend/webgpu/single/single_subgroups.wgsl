// SPDX-License-Identifier: Apache-2.0
// single_subgroups.wgsl - single_sums.wgsl by subgroups of 32 threads in a row, which the self-test
// has tried (gpu_self_test.h).
fn all_sum(lane: u32, x: f32) -> f32 {
    let mine = subgroupAdd(x);
    if (lane % 32u == 0u) { sums[lane / 32u] = mine; }
    workgroupBarrier();
    var sum = 0.0;
    for (var i = 0u; i < THREADS / 32u; i++) { sum += sums[i]; }
    workgroupBarrier();
    return sum;
}
fn pack_sum(lane: u32, x: f32, n: u32) -> f32 {
    var sum = x;
    if (n > 1u) { sum += subgroupShuffleXor(sum, 1u); }
    if (n > 2u) { sum += subgroupShuffleXor(sum, 2u); }
    if (n > 4u) { sum += subgroupShuffleXor(sum, 4u); }
    if (n > 8u) { sum += subgroupShuffleXor(sum, 8u); }
    if (n > 16u) { sum += subgroupShuffleXor(sum, 16u); }
    if (n > 32u) {
        sums[lane] = sum;
        workgroupBarrier();
        sum += sums[lane ^ 32u];
        workgroupBarrier();
    }
    return sum;
}
// The largest of eight threads side by side, as bits of floats that are not negative.
fn eight_most(lane: u32, x: u32) -> u32 {
    var most = max(x, subgroupShuffleXor(x, 1u));
    most = max(most, subgroupShuffleXor(most, 2u));
    return max(most, subgroupShuffleXor(most, 4u));
}
