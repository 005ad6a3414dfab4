// SPDX-License-Identifier: Apache-2.0
// single.wgsl - a whole plan in one dispatch: all workgroups walk one list of phases, and meet where
// a phase reads what others have written since they last met. See single.h.
//
//     list   vec4 0               phases, workgroups, how often one may look whether all are there
//            11 vec4 a phase      (function, 1: meet before it, op.word, op.share) (f0 ..)
//                                 (i0 .. i3) (operand 0) .. (operand 7)
//            the second number of a phase has in its upper bits where in the list the next phase is
//            that asks for memory before the barrier; 0: none
//     an operand                  (home and place, rows, cols, dim0): the home in the upper 3 bits
//
// What passes from one workgroup to another does so through atomics alone: WGSL promises nothing
// for other memory within a dispatch. Who hands a number on waits until it is where all see it: it
// asks what was there before, and looks at the answer before the barrier. A state that the dispatch
// writes is read where only earlier dispatches have written. The text before this one says THREADS,
// ROW and SOFTWARE.

struct Op { word: u32 }
var<private> op: Op; // of the phase that runs: what packed.wgsl looks at

@group(0) @binding(0) var<uniform> list: array<vec4<u32>, 4096>;
@group(0) @binding(2) var<storage, read_write> sync: array<atomic<u32>>; // arrived, through the list
@group(0) @binding(3) var<storage, read_write> work: array<atomic<u32>>;
@group(0) @binding(4) var<storage, read_write> scratch: array<atomic<u32>>;
@group(0) @binding(5) var<storage, read_write> written: array<vec4<u32>>;
@group(0) @binding(6) var<storage, read_write> states_0: array<vec4<u32>>;
@group(0) @binding(7) var<storage, read_write> states_1: array<vec4<u32>>;
@group(0) @binding(8) var<storage, read_write> states_2: array<vec4<u32>>;
@group(0) @binding(9) var<storage, read_write> states_3: array<vec4<u32>>;

// Homes: 0 .. 3 are states_0 .. states_3, 4 is written, 6 is work; places in states count vec4.
const IN_ROW = 5u; // a value that every workgroup has computed for itself
const ABSENT = 7u;
const GIVEN_UP = 0x80000000u;

struct Operand { at: u32, rows: u32, cols: u32, dim0: u32, home: u32 }

// Fours: what stores to one component of a vector may touch the others.
var<workgroup> row: array<vec4<f32>, ROW / 4u>;
var<workgroup> parts: array<vec4<f32>, THREADS>; // of whoever wants them, between two barriers
var<workgroup> sums: array<f32, THREADS>;
var<workgroup> all_met: u32;
var<workgroup> told: u32;

fn groups() -> u32 { return list[0].y; }
fn is_given(o: Operand) -> bool { return o.home != ABSENT; }
fn as_float(x: u32) -> f32 { return bitcast<f32>(x); }

// Elements of values of the plan.
fn value_of(o: Operand, i: u32) -> f32 {
    if (o.home == IN_ROW) { return row[i / 4u][i % 4u]; }
    return as_float(atomicLoad(&work[o.at + i]));
}
fn value_i32(o: Operand, i: u32) -> i32 { return bitcast<i32>(atomicLoad(&work[o.at + i])); }
// Columns 4 i .. 4 i + 3.
fn value_four(o: Operand, i: u32) -> vec4<f32> {
    if (o.home == IN_ROW) { return row[i]; }
    let at = o.at + 4u * i;
    return vec4<f32>(as_float(atomicLoad(&work[at])), as_float(atomicLoad(&work[at + 1u])),
                     as_float(atomicLoad(&work[at + 2u])), as_float(atomicLoad(&work[at + 3u])));
}

var<private> was_there: u32;
fn put(o: Operand, i: u32, x: f32) {
    was_there ^= atomicExchange(&work[o.at + i], bitcast<u32>(x));
}
fn put_four(o: Operand, i: u32, x: vec4<f32>) {
    if (o.home == IN_ROW) {
        row[i] = x;
    } else {
        for (var e = 0u; e < 4u; e++) { put(o, 4u * i + e, x[e]); }
    }
}
fn put_scratch(i: u32, x: f32) {
    was_there ^= atomicExchange(&scratch[i], bitcast<u32>(x));
}
fn scratch_float(i: u32) -> f32 { return as_float(atomicLoad(&scratch[i])); }
// Whether this workgroup is to compute all of a value: each does where it is one in row.
fn is_mine(o: Operand, group: u32) -> bool { return o.home == IN_ROW || group == 0u; }

fn state_four(o: Operand, i: u32) -> vec4<u32> {
    let at = o.at + i;
    switch o.home {
        case 0u: { return states_0[at]; }
        case 1u: { return states_1[at]; }
        case 2u: { return states_2[at]; }
        case 3u: { return states_3[at]; }
        default: { return written[at]; }
    }
}
fn state_word(o: Operand, i: u32) -> u32 { return state_four(o, i / 4u)[i % 4u]; }
fn state(o: Operand, i: u32) -> f32 { return as_float(state_word(o, i)); }
fn state_floats(o: Operand, i: u32) -> vec4<f32> { return bitcast<vec4<f32>>(state_four(o, i)); }

// A number of one thread that all threads go by.
fn tell(lane: u32, x: u32) -> u32 {
    if (lane == 0u) { told = x; }
    return workgroupUniformLoad(&told);
}

// Who has come. What computes on the CPU may take a plain load out of a loop.
fn look() -> u32 {
    if (SOFTWARE) { return atomicAdd(&sync[0], 0u); }
    return atomicLoad(&sync[0]);
}

// Those who do not look for the others read what the list says of the next phases, which no
// processor has at hand yet.
var<private> seen: u32;
fn look_ahead(p: u32) {
    for (var i = 0u; i < 44u; i += 4u) { seen ^= list[min(p + i, 4095u)].x; }
}

// False: one of the workgroups did not come in time, and all give up.
fn meet(p: u32, want: u32, looks: u32, lane: u32) -> bool {
    if (was_there == 0x9e3779b9u) { told = 1u; } // what this thread put has arrived
    storageBarrier();
    workgroupBarrier();
    if (lane == 0u) {
        var there = atomicAdd(&sync[0], 1u) + 1u;
        for (var i = 0u; there < want && i < looks; i++) { there = look(); }
        if (there < want) { atomicStore(&sync[0], GIVEN_UP); }
        all_met = select(0u, 1u, there >= want && there < GIVEN_UP);
    } else if (lane >= 64u) {
        look_ahead(p);
    }
    return workgroupUniformLoad(&all_met) != 0u;
}
