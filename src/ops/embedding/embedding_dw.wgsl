// embedding_dw.wgsl - dtable[v,:] = the sum of dy over the tokens v, in the order in which they
// come. First the tokens are sorted by id: the place of each is the number of those before it,
//
//     ids     3 1 3 0 1        ids[n] smaller, or equal and earlier
//     sorted  3 1 4 0 2        indices of tokens: those of v are neighbours, found by bisection
//
// which takes N^2 comparisons, but no atomics, and far less than a look at all tokens for each row.
@group(0) @binding(2) var<storage, read_write> ids: array<i32>;
@group(0) @binding(3) var<storage, read_write> dy: array<f32>;
@group(0) @binding(4) var<storage, read_write> dtable: array<f32>;
@group(0) @binding(5) var<storage, read_write> sorted: array<u32>;

var<workgroup> tile: array<u32, 256>;

@compute @workgroup_size(256)
fn sort(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let n = op.ins[1].rows;
    let vocab = op.outs[0].rows;
    let me = group_of(id, count) * 256u + lane;
    let mine = clamp_id(ids[min(me, n - 1u)], vocab);
    var place = 0u;
    for (var base = 0u; base < n; base += 256u) {
        tile[lane] = clamp_id(ids[min(base + lane, n - 1u)], vocab);
        workgroupBarrier();
        for (var j = 0u; j < min(256u, n - base); j++) {
            let before = tile[j] < mine || (tile[j] == mine && base + j < me);
            place += select(0u, 1u, before);
        }
        workgroupBarrier();
    }
    if (me < n) { sorted[place] = me; }
}

// The first place whose token is v or more.
fn lower(v: u32) -> u32 {
    var low = 0u;
    var high = op.ins[1].rows;
    while (low < high) {
        let mid = (low + high) / 2u;
        if (clamp_id(ids[sorted[mid]], op.outs[0].rows) < v) { low = mid + 1u; } else { high = mid; }
    }
    return low;
}

@compute @workgroup_size(64)
fn sum(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) count: vec3<u32>,
       @builtin(local_invocation_index) lane: u32) {
    let cols = op.outs[0].cols;
    let parts = (cols + 63u) / 64u;
    let group = group_of(id, count);
    let v = group / parts;
    let c = group % parts * 64u + lane;
    if (v >= op.outs[0].rows || c >= cols) { return; }
    let end = lower(v + 1u);
    var total = 0.0;
    for (var i = lower(v); i < end; i++) { total += dy[sorted[i] * cols + c]; }
    let at = v * cols + c;
    if (adds(0u)) { total += dtable[at]; }
    dtable[at] = total;
}
