// SPDX-License-Identifier: Apache-2.0
// kv_append_packed.wgsl - keys and values of the call's rows, packed, go into pages of the cache: a
// workgroup for a head of a row.
@group(0) @binding(2) var<storage, read_write> qkv: array<f32>;
@group(0) @binding(3) var<storage, read_write> at: array<i32>;
@group(0) @binding(4) var<storage, read_write> pages: array<i32>;
@group(0) @binding(5) var<storage, read_write> cache: array<u32>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let size = u32(op.i2);
    let c = cache_of(op.outs[0], op.ins[3]);
    let group = group_of(id, count);
    let t = group / c.heads;
    let head = group % c.heads;
    if (t >= in_rows(1u)) { return; }
    let table = clamp_id(at[2u * t], op.ins[3].rows) * c.n_cols;
    let row = cache_row(c, table, head, u32(at[2u * t + 1u]));
    let base = t * op.ins[1].cols + (u32(op.i0) + head) * size;
    if (op.outs[0].cols == size) {
        for (var i = lane; i < size / 2u; i += 64u) {
            let high = half_bits(qkv[base + 2u * i + 1u]) << 16u;
            cache[row * (size / 2u) + i] = high | half_bits(qkv[base + 2u * i]);
        }
        return;
    }
    var largest = 0.0;
    var bad = 0.0;
    for (var i = lane; i < size; i += 64u) {
        let x = qkv[base + i];
        if (is_finite(x)) { largest = max(largest, abs(x)); } else { bad = 1.0; }
    }
    largest = group_max(lane, largest);
    bad = group_max(lane, bad);
    let inverse = inverse_of(largest);
    let fours = size / 4u;
    let to = row * (fours + 1u);
    for (var i = lane; i < fours; i += 64u) {
        var word = 0u;
        for (var e = 0u; e < 4u; e++) {
            word |= whole_bits(qkv[base + 4u * i + e] * inverse) << (8u * e);
        }
        cache[to + i] = word;
    }
    if (lane == 0u) { cache[to + fours] = scale_bits(largest, bad); }
}
