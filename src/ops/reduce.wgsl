// reduce.wgsl - sums and maxima over the 64 threads of a workgroup, in one order.

var<workgroup> reduce_lane: array<f32, 64>;

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
