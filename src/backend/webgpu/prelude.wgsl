// SPDX-License-Identifier: Apache-2.0
// prelude.wgsl - what stands before the text of every shader: the words of a step, the scalars of a
// call. Filled by shaders.c. functions.wgsl follows it.

struct Shape { rows: u32, cols: u32, dim0: u32, dim1: u32 }

struct Step {
    i0: i32, i1: i32, i2: i32, i3: i32, i4: i32, i5: i32,
    f0: f32, f1: f32, f2: f32, f3: f32,
    acc: u32,      // bit k: output k adds, if the call accumulates
    dynamic: u32,  // bit k: input k has the call's rows; bit 8 + k: output k has
    ins: array<Shape, 8>,
    outs: array<Shape, 4>,
    n_dims: u32,   // four bits an input
    acc_members: u32, word: u32,
    groups: u32,   // workgroups of the first pass, over all of its pieces
}

// tg_scalars of ir/op.h, member by member.
struct Call {
    rows: u32, accumulate: i32, step: u32,
    lr: f32, temperature: f32, top_p: f32, min_p: f32, repeat_penalty: f32,
    top_k: i32, n_recent: i32,
    seed_lo: u32, seed_hi: u32, draw_lo: u32, draw_hi: u32,
}

@group(0) @binding(0) var<uniform> op: Step;
@group(0) @binding(1) var<uniform> rt: Call;

fn is_here(k: u32) -> bool { return op.ins[k].rows != 0u; }
fn adds(k: u32) -> bool { return rt.accumulate != 0 && ((op.acc >> k) & 1u) != 0u; }

// Output 0 of a member of a merge, from 1 on.
fn member_adds(m: u32) -> bool {
    return rt.accumulate != 0 && ((op.acc_members >> (8u * (m - 1u))) & 1u) != 0u;
}

fn in_dims(k: u32) -> u32 { return (op.n_dims >> (4u * k)) & 15u; }

// Rows of this call.
fn in_rows(k: u32) -> u32 {
    return select(op.ins[k].rows, rt.rows, ((op.dynamic >> k) & 1u) != 0u);
}
fn out_rows(k: u32) -> u32 {
    return select(op.outs[k].rows, rt.rows, ((op.dynamic >> (8u + k)) & 1u) != 0u);
}

// The number of a workgroup: what is above the limit of one direction goes on in y.
fn group_of(id: vec3<u32>, count: vec3<u32>) -> u32 { return id.x + id.y * count.x; }
