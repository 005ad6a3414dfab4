// SPDX-License-Identifier: Apache-2.0
// single_main.wgsl - the walk over the list. The text before this one has phase() and ask_ahead(),
// which single.c writes: switches over the functions.
@compute @workgroup_size(THREADS)
fn single(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    var met = 0u;
    for (var n = 0u; n < list[0].x; n++) {
        let p = 1u + 11u * n;
        let head = list[p];
        if ((head.y & 1u) != 0u) {
            met += groups();
            let next = head.y >> 1u;
            if (next != 0u) { ask_ahead(list[next].x, next, id.x, lane); }
            if (!meet(p, met, list[0].z, lane)) { return; }
        } else {
            workgroupBarrier();
        }
        phase(head.x, p, id.x, lane);
    }
    if (lane == 0u) { atomicAdd(&sync[1], 1u); }
    if (seen == 0x9e3779b9u) { atomicAdd(&sync[2], 1u); } // so that somebody wants to know
}
