// SPDX-License-Identifier: Apache-2.0
// step_packed.wgsl - see attention_step.wgsl; a packed cache, with the bits of kv_append_packed.wgsl.
fn keep_halves(tid: u32, to: u32, row: u32, writes: bool) {
    let fours = u32(op.i2) / 4u;
    for (var e = tid; e < fours; e += 64u) {
        let x = turned_four(e);
        let low = (half_bits(x.y) << 16u) | half_bits(x.x);
        let high = (half_bits(x.w) << 16u) | half_bits(x.z);
        kept[to + e] = vec4<f32>(unpack2x16float(low), unpack2x16float(high));
        if (writes) {
            cache[2u * (row * fours + e)] = low;
            cache[2u * (row * fours + e) + 1u] = high;
        }
    }
}

fn keep(tid: u32, to: u32, row: u32, writes: bool) {
    let size = u32(op.i2);
    if (op.ins[1].cols == size) {
        keep_halves(tid, to, row, writes);
        return;
    }
    var largest = 0.0;
    var bad = 0.0;
    for (var i = tid; i < size; i += 64u) {
        let x = turned[i];
        if (is_finite(x)) { largest = max(largest, abs(x)); } else { bad = 1.0; }
    }
    largest = group_max(tid, largest);
    bad = group_max(tid, bad);
    let inverse = inverse_of(largest);
    let scale = scale_bits(largest, bad);
    let fours = size / 4u;
    for (var e = tid; e < fours; e += 64u) {
        let x = turned_four(e) * inverse;
        let word = whole_bits(x.x) | (whole_bits(x.y) << 8u) | (whole_bits(x.z) << 16u) |
                   (whole_bits(x.w) << 24u);
        kept[to + e] = bitcast<f32>(scale) * whole_numbers(word);
        if (writes) { cache[row * (fours + 1u) + e] = word; }
    }
    if (writes && tid == 0u) { cache[row * (fours + 1u) + fours] = scale; }
}
