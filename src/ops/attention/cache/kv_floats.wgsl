// SPDX-License-Identifier: Apache-2.0
// kv_floats.wgsl - four columns of a cache in floats: see kv_row.h.
@group(0) @binding(3) var<storage, read_write> cache: array<Four>;

fn cache_four(i: u32) -> vec4<f32> { return as_vec4(cache[i]); }
