// SPDX-License-Identifier: Apache-2.0
// mask.wgsl - what four elements side by side are multiplied by: see mask.h.

// The high half of a product, by halves of both.
fn high(a: u32, b: u32) -> u32 {
    let low = (a & 0xffffu) * (b & 0xffffu);
    let mid = (a >> 16u) * (b & 0xffffu) + (low >> 16u);
    let cross = (a & 0xffffu) * (b >> 16u) + (mid & 0xffffu);
    return (a >> 16u) * (b >> 16u) + (mid >> 16u) + (cross >> 16u);
}

// Which of the four stay.
fn stay(rate: f32, sequence: u32, stream: u32, index: u32) -> vec4<bool> {
    var x = vec4<u32>(index, rt.draw_lo + sequence, 3u, stream);
    var key = vec2<u32>(rt.seed_lo, rt.seed_hi);
    for (var round = 0; round < 10; round++) {
        x = vec4<u32>(high(0xCD9E8D57u, x.z) ^ x.y ^ key.x, 0xCD9E8D57u * x.z,
                      high(0xD2511F53u, x.x) ^ x.w ^ key.y, 0xD2511F53u * x.x);
        key += vec2<u32>(0x9E3779B9u, 0xBB67AE85u);
    }
    return x >= vec4<u32>(u32(rate * 4294967296.0));
}
fn mask_of(rate: f32, sequence: u32, stream: u32, index: u32) -> vec4<f32> {
    return select(vec4<f32>(), vec4<f32>(1.0 / (1.0 - rate)), stay(rate, sequence, stream, index));
}
