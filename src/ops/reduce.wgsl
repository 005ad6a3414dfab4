// SPDX-License-Identifier: Apache-2.0
// reduce.wgsl - sums and maxima over the 64 threads of a workgroup, in one order. The same functions by
// subgroups are in reduce_subgroups.wgsl.

var<workgroup> reduce_lane: array<f32, 64>;
var<workgroup> reduce_one: array<f32, 256>;
var<workgroup> reduce_two: array<f32, 256>;

// All threads get the result, and may call again at once.
fn group_sum(lane: u32, x: f32) -> f32 {
    reduce_lane[lane] = x;
    for (var half = 32u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if (lane < half) { reduce_lane[lane] += reduce_lane[lane + half]; }
    }
    workgroupBarrier();
    let result = reduce_lane[0];
    workgroupBarrier();
    return result;
}

fn group_max(lane: u32, x: f32) -> f32 {
    reduce_lane[lane] = x;
    for (var half = 32u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if (lane < half) { reduce_lane[lane] = max(reduce_lane[lane], reduce_lane[lane + half]); }
    }
    workgroupBarrier();
    let result = reduce_lane[0];
    workgroupBarrier();
    return result;
}

// Of a workgroup of 256, each quarter for itself: both sums. To be called once.
fn quarter_sums(lane: u32, a: f32, b: f32) -> vec2<f32> {
    reduce_one[lane] = a;
    reduce_two[lane] = b;
    for (var half = 32u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if (lane % 64u < half) {
            reduce_one[lane] += reduce_one[lane + half];
            reduce_two[lane] += reduce_two[lane + half];
        }
    }
    workgroupBarrier();
    return vec2<f32>(reduce_one[lane / 64u * 64u], reduce_two[lane / 64u * 64u]);
}
