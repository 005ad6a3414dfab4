// SPDX-License-Identifier: Apache-2.0
// single_main.wgsl - the walk over the list. The text before this one has phase(), which single.c
// writes: a switch over the functions.
@compute @workgroup_size(THREADS)
fn single(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    var met = 0u;
    patience = list[0].z;
    flow_begin = atomicLoad(&sync[2]) * list[0].w;
    clear_other_half(id.x, lane);
    for (var n = 0u; n < list[0].x; n++) {
        let p = 1u + 11u * n;
        let head = list[p];
        if (head.y != 0u) {
            met += groups();
            if (!meet(met, list[0].z, lane)) { return; }
        } else {
            workgroupBarrier();
        }
        phase(head.x, p, id.x, lane);
        look_ahead(p + 22u, lane);
    }
    if (lane == 0u) { atomicAdd(&sync[1], 1u); }
    if (seen == 0x9e3779b9u) { atomicAdd(&sync[1], 0u); } // so that somebody wants to know
}
