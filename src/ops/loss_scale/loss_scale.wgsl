// SPDX-License-Identifier: Apache-2.0
// loss_scale.wgsl - the next scale of gradients, in place; loss_scale.c says what is what.
@group(0) @binding(2) var<storage, read_write> scaling: array<f32>;
@group(0) @binding(3) var<storage, read_write> stats: array<f32>;
@group(0) @binding(4) var<storage, read_write> told: array<f32>;

@compute @workgroup_size(1)
fn main() {
    var scale = scaling[0];
    let ok = stats[2] != 0.0;
    let answer = !ok && is_finite(stats[3]) && scale > LEAST;
    var good = select(0.0, scaling[1] + 1.0, ok);
    if (answer) {
        scale *= 0.5;
    } else if (good >= GOOD && scale < 1.0) {
        scale *= 2.0;
        good = 0.0;
    }
    let next = vec4<f32>(scale, min(good, GOOD), scaling[2] + select(0.0, 1.0, answer),
                         select(0.0, 1.0, answer));
    for (var i = 0u; i < 4u; i++) {
        scaling[i] = next[i];
        told[i] = next[i];
    }
}
