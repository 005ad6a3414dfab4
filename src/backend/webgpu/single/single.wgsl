// SPDX-License-Identifier: Apache-2.0
// single.wgsl - a whole plan in one dispatch: all workgroups walk one list of phases, and each waits
// for what it reads of others until it is there. See single.h.
//
//     list   vec4 0               phases, workgroups, how often one may look for what is not there
//                                 yet, words of a half of flow
//            11 vec4 a phase      (function, 1: meet before it, op.word, op.share) (f0 ..)
//                                 (i0 .. i3) (operand 0) .. (operand 7)
//     an operand                  (home and place, rows, cols, dim0): the home in the upper 4 bits
//
// What passes from one workgroup to another does so through atomics alone: WGSL promises nothing
// for other memory within a dispatch. Each word of flow is written once, and 0 says that it is not
// yet: a float 0 is written as -0. So a word needs no order with any other one, and who reads it
// waits for nobody but who writes it. A dispatch has one half of flow, and clears the other one for
// the next. What the host reads lies in work, which is used again within a dispatch: there phases
// meet, and who hands a number on waits until it is where all see it: it asks what was there before,
// and looks at the answer before the barrier. A state that the dispatch writes is read where only
// earlier dispatches have written. The text before this one says THREADS, ROW, ROUNDED and SOFTWARE.

struct Op { word: u32 }
var<private> op: Op; // of the phase that runs: what packed.wgsl looks at

@group(0) @binding(0) var<uniform> list: array<vec4<u32>, 4096>;
// Arrived, through the list, half of flow, threads that gave up.
@group(0) @binding(2) var<storage, read_write> sync: array<atomic<u32>>;
@group(0) @binding(3) var<storage, read_write> work: array<atomic<u32>>;
@group(0) @binding(4) var<storage, read_write> flow: array<atomic<u32>>;
@group(0) @binding(5) var<storage, read_write> written: array<vec4<u32>>;
@group(0) @binding(6) var<storage, read_write> states_0: array<vec4<u32>>;
@group(0) @binding(7) var<storage, read_write> states_1: array<vec4<u32>>;
@group(0) @binding(8) var<storage, read_write> states_2: array<vec4<u32>>;
@group(0) @binding(9) var<storage, read_write> states_3: array<vec4<u32>>;

// Homes: 0 .. 3 are states_0 .. states_3, 4 is written, 6 is work; places in states count vec4.
const IN_ROW = 5u; // a value that every workgroup has computed for itself
const IN_FLOW = 7u;
const ABSENT = 8u;
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

// How often this thread may still look, and where the half of flow is that this dispatch has.
var<private> patience: u32;
var<private> flow_begin: u32;

// What computes on the CPU may take a plain load out of a loop.
fn look(at: u32) -> u32 {
    if (SOFTWARE) { return atomicAdd(&flow[at], 0u); }
    return atomicLoad(&flow[at]);
}
// One thread that gives up is enough: the others see it, too.
fn lose_patience() {
    patience -= 1u;
    if (patience % 1024u == 0u) {
        if (patience == 0u) { atomicAdd(&sync[3], 1u); }
        if (atomicLoad(&sync[3]) != 0u) { patience = 0u; }
    }
}

// Elements of values of the plan come in two steps, so that a thread can ask for several before it
// waits for one: what peek finds, sure looks for again where it is not there yet. A four has columns
// 4 i .. 4 i + 3.
fn peek(o: Operand, i: u32) -> u32 {
    if (o.home == IN_ROW) { return bitcast<u32>(row[i / 4u][i % 4u]); }
    if (o.home == IN_FLOW) { return look(flow_begin + o.at + i); }
    return atomicLoad(&work[o.at + i]);
}
fn peek_four(o: Operand, i: u32) -> vec4<u32> {
    if (o.home == IN_ROW) { return bitcast<vec4<u32>>(row[i]); }
    return vec4<u32>(peek(o, 4u * i), peek(o, 4u * i + 1u), peek(o, 4u * i + 2u),
                     peek(o, 4u * i + 3u));
}
fn sure(o: Operand, i: u32, seen: u32) -> f32 {
    var x = seen;
    while (o.home == IN_FLOW && x == 0u && patience > 0u) {
        lose_patience();
        x = peek(o, i);
    }
    return as_float(x);
}
fn sure_four(o: Operand, i: u32, seen: vec4<u32>) -> vec4<f32> {
    var x = seen;
    while (o.home == IN_FLOW && any(x == vec4<u32>()) && patience > 0u) {
        lose_patience();
        x = peek_four(o, i);
    }
    return bitcast<vec4<f32>>(x);
}
fn value_of(o: Operand, i: u32) -> f32 { return sure(o, i, peek(o, i)); }
fn value_four(o: Operand, i: u32) -> vec4<f32> { return sure_four(o, i, peek_four(o, i)); }
// Of what the host has written.
fn value_i32(o: Operand, i: u32) -> i32 { return bitcast<i32>(atomicLoad(&work[o.at + i])); }

var<private> was_there: u32;
fn put(o: Operand, i: u32, x: f32) {
    let bits = bitcast<u32>(x);
    if (o.home == IN_FLOW) {
        atomicStore(&flow[flow_begin + o.at + i], select(bits, 0x80000000u, bits == 0u));
    } else {
        was_there ^= atomicExchange(&work[o.at + i], bits);
    }
}
fn put_four(o: Operand, i: u32, x: vec4<f32>) {
    if (o.home == IN_ROW) {
        row[i] = x;
    } else {
        for (var e = 0u; e < 4u; e++) { put(o, 4u * i + e, x[e]); }
    }
}
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

// What the list says of the phase after the next, which no processor has at hand yet: a few threads
// ask for it while the others wait.
var<private> seen: u32;
fn look_ahead(p: u32, lane: u32) {
    if (lane + 32u < THREADS) { return; }
    for (var i = 0u; i < 11u; i += 4u) { seen ^= list[min(p + i, 4095u)].x; }
}

// Who has come.
fn arrived() -> u32 {
    if (SOFTWARE) { return atomicAdd(&sync[0], 0u); }
    return atomicLoad(&sync[0]);
}

// False: one of the workgroups did not come in time, and all give up.
fn meet(want: u32, looks: u32, lane: u32) -> bool {
    if (was_there == 0x9e3779b9u) { told = 1u; } // what this thread put has arrived
    storageBarrier();
    workgroupBarrier();
    if (lane == 0u) {
        var there = atomicAdd(&sync[0], 1u) + 1u;
        for (var i = 0u; there < want && i < looks; i++) { there = arrived(); }
        if (there < want) { atomicStore(&sync[0], GIVEN_UP); }
        all_met = select(0u, 1u, there >= want && there < GIVEN_UP);
    }
    return workgroupUniformLoad(&all_met) != 0u;
}

fn clear_other_half(group: u32, lane: u32) {
    let words = list[0].w;
    for (var i = group * THREADS + lane; i < words; i += groups() * THREADS) {
        atomicStore(&flow[words - flow_begin + i], 0u);
    }
}
