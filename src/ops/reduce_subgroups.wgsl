// SPDX-License-Identifier: Apache-2.0
// reduce_subgroups.wgsl - the functions of reduce.wgsl by subgroups of 4 to 128 threads: each sums by
// itself, and every thread adds up what the subgroups leave, in their order. That threads are handed
// out to subgroups in a row is usual, and not promised: a device of which it does not hold fails the
// self-test (gpu_self_test.h). The text before this one says SLOTS, the threads of what is summed.

var<workgroup> reduce_lane: array<f32, 64>;
var<workgroup> reduce_two: array<vec2<f32>, 256>;

fn group_sum(lane: u32, x: f32) -> f32 {
    let size = subgroupAdd(1u);
    reduce_lane[lane] = subgroupAdd(x);
    workgroupBarrier();
    var sum = 0.0;
    for (var i = 0u; i < SLOTS; i += size) { sum += reduce_lane[i]; }
    workgroupBarrier();
    return sum;
}

fn group_max(lane: u32, x: f32) -> f32 {
    let size = subgroupAdd(1u);
    reduce_lane[lane] = subgroupMax(x);
    workgroupBarrier();
    var largest = reduce_lane[0];
    for (var i = size; i < SLOTS; i += size) { largest = max(largest, reduce_lane[i]); }
    workgroupBarrier();
    return largest;
}

// A subgroup of 128 has two quarters, and sums them apart.
fn quarter_sums(lane: u32, a: f32, b: f32) -> vec2<f32> {
    let size = min(subgroupAdd(1u), 64u);
    let odd = (lane & 64u) != 0u;
    let both = subgroupAdd(select(vec4<f32>(a, b, 0.0, 0.0), vec4<f32>(0.0, 0.0, a, b), odd));
    reduce_two[lane] = select(both.xy, both.zw, odd);
    workgroupBarrier();
    var sum = vec2<f32>();
    for (var i = 0u; i < SLOTS; i += size) { sum += reduce_two[lane / 64u * 64u + i]; }
    return sum;
}
