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
    for (var i = first; i < min(n, first + 1024u); i += 256u) {
        let g = grads[i] * stats[1];
        let new_m = fma(op.f0, m[i], (1.0 - op.f0) * g);
        let new_v = fma(op.f1, v[i], (1.0 - op.f1) * g * g);
        let kept = w[i] - select(0.0, rt.lr * op.f3 * w[i], i < decayed);
        w[i] = kept - rt.lr * (new_m / bias1) / (sqrt(new_v / bias2) + op.f2);
        m[i] = new_m;
        v[i] = new_v;
    }
}
