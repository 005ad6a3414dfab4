// SPDX-License-Identifier: Apache-2.0
// experts_x_grad.wgsl - gradients of rows by the matrices of their experts, 32 columns a thread.
@group(0) @binding(2) var<storage, read_write> dy: array<f32>;
@group(0) @binding(3) var<storage, read_write> ids: array<i32>;
@group(0) @binding(6) var<storage, read_write> dx: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let i = group_of(id, count) * 64u + lane;
    let k = op.ins[1].cols;
    let depth = op.ins[2].cols;
    let rows = op.ins[2].rows / u32(op.i0);
    let blocks = (depth + 31u) / 32u;
    let own = op.i1 != 0;
    let place = i / blocks; // a token, or one of its choices
    let block = i % blocks;
    if (place >= in_rows(1u) * select(1u, k, own)) { return; }
    let t = select(place, place / k, own);
    let first = select(0u, place % k, own);
    var sums = array<vec4<f32>, 8>();
    for (var j = first; j < select(k, first + 1u, own); j++) {
        let e = clamp_id(ids[t * k + j], u32(op.i0));
        for (var part = 0u; part < op.ins[0].cols / (k * rows); part++) {
            for (var n = 0u; n < rows; n++) {
                take_weights(part, e * rows + n, depth, block);
                let d = dy[t * op.ins[0].cols + (part * k + j) * rows + n];
                for (var v = 0u; v < 8u; v++) { sums[v] += d * taken[v]; }
            }
        }
    }
    for (var c = 0u; c < min(32u, depth - 32u * block); c++) {
        dx[place * depth + 32u * block + c] = sums[c / 4u][c % 4u];
    }
}
