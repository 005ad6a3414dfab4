// SPDX-License-Identifier: Apache-2.0
// short_conv_grad.wgsl - dz by elements; dw by 64 rows a part, then over the parts.
@group(0) @binding(2) var<storage, read_write> z: array<f32>;
@group(0) @binding(3) var<storage, read_write> w: array<f32>;
@group(0) @binding(4) var<storage, read_write> dy: array<f32>;
@group(0) @binding(5) var<storage, read_write> dz: array<f32>;
@group(0) @binding(6) var<storage, read_write> dw: array<f32>;
@group(0) @binding(7) var<storage, read_write> partial: array<f32>;

@compute @workgroup_size(256)
fn rows(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let cols = op.ins[2].cols;
    let taps = op.ins[1].cols;
    let n = in_rows(2u) * cols;
    let first = group_of(id, count) * 1024u + lane;
    for (var i = first; i < min(n, first + 1024u); i += 256u) {
        let r = i / cols;
        let c = i % cols;
        let t = r % op.ins[0].dim1;
        let own = r * 3u * cols + c;
        var sum = 0.0;
        var du = 0.0;
        for (var k = 0u; k < taps; k++) {
            let tap = w[c * taps + taps - 1u - k];
            if (k <= t) {
                let source = own - k * 3u * cols;
                sum = fma(tap, z[source] * z[source + 2u * cols], sum);
            }
            if (t + k < op.ins[0].dim1) {
                du = fma(tap, dy[i + k * cols] * z[own + (3u * k + 1u) * cols], du);
            }
        }
        dz[own] = du * z[own + 2u * cols];
        dz[own + cols] = dy[i] * sum;
        dz[own + 2u * cols] = du * z[own];
    }
}

@compute @workgroup_size(64)
fn parts(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
         @builtin(local_invocation_index) lane: u32) {
    let cols = op.ins[2].cols;
    let taps = op.ins[1].cols;
    let across = (cols * taps + 63u) / 64u;
    let group = group_of(id, count);
    let part = group / across;
    let at = group % across * 64u + lane;
    let n = op.ins[2].rows;
    if (part * 64u >= n || at >= cols * taps) { return; }
    let c = at / taps;
    let back = taps - 1u - at % taps;
    var sum = 0.0;
    for (var r = part * 64u; r < min(n, part * 64u + 64u); r++) {
        if (back > r % op.ins[0].dim1) { continue; }
        let source = (r - back) * 3u * cols + c;
        sum = fma(dy[r * cols + c] * z[(3u * r + 1u) * cols + c], z[source] * z[source + 2u * cols], sum);
    }
    partial[part * cols * taps + at] = sum;
}

@compute @workgroup_size(64)
fn total(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
         @builtin(local_invocation_index) lane: u32) {
    let n = op.ins[2].cols * op.ins[1].cols;
    let at = group_of(id, count) * 64u + lane;
    if (at >= n) { return; }
    var sum = 0.0;
    for (var part = 0u; part * 64u < op.ins[2].rows; part++) { sum += partial[part * n + at]; }
    if (adds(1u)) { sum += dw[at]; }
    dw[at] = sum;
}
