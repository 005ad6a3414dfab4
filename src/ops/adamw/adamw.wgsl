// SPDX-License-Identifier: Apache-2.0
// adamw.wgsl - AdamW in place; nothing is written when stats' ok is 0.
@group(0) @binding(2) var<storage, read_write> w: array<f32>;
@group(0) @binding(3) var<storage, read_write> grads: array<f32>;
@group(0) @binding(4) var<storage, read_write> m: array<f32>;
@group(0) @binding(5) var<storage, read_write> v: array<f32>;
@group(0) @binding(6) var<storage, read_write> stats: array<f32>;

// 1 - b^t without cancellation: s(i + j) = s(i) + s(j) (1 - s(i)) for s(t) = 1 - b^t.
fn bias(b: f32, steps: u32) -> f32 {
    var power = 1.0 - b;
    var sum = 0.0;
    for (var t = steps; t > 0u; t /= 2u) {
        if ((t & 1u) != 0u) { sum += power * (1.0 - sum); }
        power += power * (1.0 - power);
    }
    return sum;
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    if (stats[2] == 0.0) { return; }
    let n = op.ins[0].cols;
    let decayed = u32(max(op.i0, 0));
    let bias1 = bias(op.f0, rt.step);
    let bias2 = bias(op.f1, rt.step);
    let first = group_of(id, count) * 1024u + lane;
    if (first >= n) { return; }
    // Four elements, 256 apart: all are read before one is written, so that the loads overlap.
    let at = vec4<u32>(first, first + 256u, first + 512u, first + 768u);
    let safe = min(at, vec4<u32>(n - 1u));
    let old_w = vec4<f32>(w[safe.x], w[safe.y], w[safe.z], w[safe.w]);
    let old_m = vec4<f32>(m[safe.x], m[safe.y], m[safe.z], m[safe.w]);
    let old_v = vec4<f32>(v[safe.x], v[safe.y], v[safe.z], v[safe.w]);
    let g = stats[1] * vec4<f32>(grads[safe.x], grads[safe.y], grads[safe.z], grads[safe.w]);
    let new_m = fma(vec4<f32>(op.f0), old_m, (1.0 - op.f0) * g);
    let new_v = fma(vec4<f32>(op.f1), old_v, (1.0 - op.f1) * g * g);
    let decay = select(vec4<f32>(), rt.lr * op.f3 * old_w, at < vec4<u32>(decayed));
    let new_w = old_w - decay - rt.lr * (new_m / bias1) / (sqrt(new_v / bias2) + op.f2);
    for (var e = 0u; e < 4u; e++) {
        if (at[e] >= n) { return; }
        w[at[e]] = new_w[e];
        m[at[e]] = new_m[e];
        v[at[e]] = new_v[e];
    }
}
