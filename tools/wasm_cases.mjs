// SPDX-License-Identifier: Apache-2.0
/*
 * wasm_cases.mjs MODULE CASES - takes the ops' test cases out of a linked module, which has names.
 *
 * They lie in a data segment of their own, tg_cases (TG_CASE_TABLE). Its bytes become zeros, which
 * a download does not feel, and all addresses stay; what they were goes to CASES, for
 * tg_wasm_cases_set (src/ops/cases_wasm.c). Words are 32 bits, numbers little-endian:
 *
 *     words of the segment u32, then:  | words of zeros u16 | n u16 | n words |  until the end
 */
import { readFileSync, writeFileSync } from 'node:fs';

const [path, to] = process.argv.slice(2);
const bytes = readFileSync(path);
let at = 8;

/* LEB128, as all numbers of a module are. */
function number() {
    for (let value = 0, scale = 1;; scale *= 128) {
        const byte = bytes[at++];
        value += (byte & 127) * scale;
        if (byte < 128) return value;
    }
}
function string() {
    const n = number();
    at += n;
    return bytes.toString('utf8', at - n, at);
}

/* The address of an active segment is a constant expression; i32.const and i64.const alike. */
function segmentsOf() {
    return Array.from({ length: number() }, () => {
        const passive = number() === 1;
        if (!passive) {
            at++;
            number();
            at++;
        }
        const n = number();
        at += n;
        return bytes.subarray(at - n, at);
    });
}
const DATA = 11, CUSTOM = 0, DATA_NAMES = 9;
let segments = [], found = -1;
while (at < bytes.length) {
    const id = bytes[at++], end = number() + at;
    if (id === DATA) segments = segmentsOf();
    if (id === CUSTOM && string() === 'name')
        while (at < end) {
            const kind = bytes[at++], stop = number() + at;
            for (let left = kind === DATA_NAMES ? number() : 0; left > 0; left--) {
                const index = number();
                if (string() === 'tg_cases') found = index;
            }
            at = stop;
        }
    at = end;
}
const cases = segments[found];
if (!cases) throw new Error(`${path}: want a data segment named tg_cases`);

const words = Math.ceil(cases.length / 4), MOST = 65535, parts = [];
const whole = Buffer.alloc(words * 4);
cases.copy(whole);
const word = (i) => whole.readUInt32LE(4 * i);
const head = Buffer.alloc(4);
head.writeUInt32LE(words);
parts.push(head);
for (let i = 0; i < words;) {
    let first = i;
    while (first < words && first - i < MOST && word(first) === 0) first++;
    let last = first;
    while (last < words && last - first < MOST && word(last) !== 0) last++;
    const run = Buffer.alloc(4);
    run.writeUInt16LE(first - i, 0);
    run.writeUInt16LE(last - first, 2);
    parts.push(run, whole.subarray(4 * first, 4 * last));
    i = last;
}
cases.fill(0);
writeFileSync(to, Buffer.concat(parts));
writeFileSync(path, bytes);
