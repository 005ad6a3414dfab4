// SPDX-License-Identifier: Apache-2.0
// spans.wgsl - rows [x, y) that a token sees: see spans.h.
fn span_at(row: u32, rows: u32) -> vec2<u32> {
    let end = max(spans[2u * row + 1u], 0);
    var far = rows;
    if (op.i3 > 0) { far = u32(op.i3) / 2u; }
    return vec2<u32>(clamp(u32(max(spans[2u * row], 0)), row - min(row, far), row),
                     clamp(u32(end), row + 1u, min(rows, row + 1u + far)));
}

// What is in memory may not be the same for all threads, so one looks, and the others are told.
var<workgroup> span_here: vec2<u32>;
fn span_of(row: u32, rows: u32, tid: u32) -> vec2<u32> {
    if (tid == 0u) { span_here = span_at(row, rows); }
    return workgroupUniformLoad(&span_here);
}
