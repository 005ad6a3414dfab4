// SPDX-License-Identifier: Apache-2.0
/**
 * abi.ts - turns the tables of abi.gen.ts into calls of the module and into values.
 *
 * Inside of this package a pointer is a number: every address fits, since the largest memory is far
 * below 2^53. The module wants it signed with 32 bits and as a BigInt with 64; that is hidden here.
 * Views of the memory are made anew for every access, because any call may have grown it.
 */
import {
  EXPORTS, type Exports, IMPORTS, type Imports, type Ptr, STATUS, STRUCTS,
} from './abi.gen.js';
import { TinygptError } from './errors.js';
import type { ErrorCode } from './types.js';

export type { Exports, Imports, Ptr };

export type StructName = keyof typeof STRUCTS;
type Members<S extends StructName> = (typeof STRUCTS)[S]['members'];
type Kind<M> = M extends readonly [infer K, ...unknown[]] ? K : never;

/** What a member reads as. Strings are copied out of the memory; NULL reads as ''. */
type Value<K> =
  K extends 'i64' | 'u64' ? bigint
  : K extends 'bool' ? boolean
  : K extends 'text' | 'chars' ? string
  : K extends StructName ? Struct<K>
  : number;
export type Struct<S extends StructName> = {
  -readonly [M in keyof Members<S>]: Value<Kind<Members<S>[M]>>;
};

/** What a member is written from: a string has to lie in the memory already. */
type Source<K> =
  K extends 'i64' | 'u64' ? bigint | number
  : K extends 'bool' ? boolean
  : K extends 'text' ? Ptr
  : K extends 'chars' ? never
  : K extends StructName ? Init<K>
  : number;
export type Init<S extends StructName> = {
  -readonly [M in keyof Members<S>]?: Source<Kind<Members<S>[M]>> | undefined;
};

/** The module stopped in the middle of something: nothing in its memory can be relied on. */
export class Trap extends Error {
  override readonly name = 'Trap';
}

/** The code of a status, without TG_E_. */
export function errorCode(status: number): ErrorCode {
  const [name] = Object.entries(STATUS).find(([, value]) => value === status) ?? [''];
  return name.startsWith('E_') ? (name.slice(2) as ErrorCode) : 'INTERNAL';
}

export const PENDING = 1;
export const STOPPED = 2;

const LIMITS: Record<string, readonly [bigint, bigint]> = {
  i: [-(2n ** 31n), 2n ** 31n - 1n],
  u: [0n, 2n ** 32n - 1n],
  l: [-(2n ** 63n), 2n ** 63n - 1n],
  L: [0n, 2n ** 64n - 1n],
};

/** A whole number that fits the C type; JavaScript would cut it to size without a word. */
function whole(letter: string, value: unknown, what: string): bigint {
  const [low, high] = LIMITS[letter]!;
  const exact =
    typeof value === 'bigint' ? value
    : typeof value === 'number' && Number.isSafeInteger(value) ? BigInt(value)
    : undefined;
  if (exact === undefined || exact < low || exact > high) {
    throw new TinygptError(
      'ARG', `${what}: want a whole number of ${low}..${high}, have ${String(value)}`,
    );
  }
  return exact;
}

/** A real number; NaN and infinities are for the core to judge. */
function real(value: unknown, what: string): number {
  if (typeof value === 'number') return value;
  throw new TinygptError('ARG', `${what}: want a number, have ${String(value)}`);
}

/* -------------------------------------------------------------------------------------- calls */

type Raw = (...args: (number | bigint)[]) => number | bigint | undefined;

function toC(letter: string, value: unknown, wide: boolean, what: string): number | bigint {
  switch (letter) {
    case 'p': return wide ? BigInt(value as number) : (value as number);
    case 'b': return value ? 1 : 0;
    case 'l':
    case 'L': return BigInt.asIntN(64, whole(letter, value, what));
    case 'i':
    case 'u': return Number(whole(letter, value, what));
    default: return real(value, what);
  }
}

type FromC = number | bigint | boolean | undefined;

function fromC(letter: string, value: number | bigint | undefined): FromC {
  switch (letter) {
    case 'p': return typeof value === 'bigint' ? Number(value) : Number(value) >>> 0;
    case 'u': return Number(value) >>> 0;
    case 'b': return value !== 0;
    case 'L': return BigInt.asUintN(64, value as bigint);
    case 'v': return undefined;
    default: return value;
  }
}

/**
 * The module's exports as functions of numbers. What leaves one in an exception is a Trap; onTrap
 * hears of it first, before anybody's `finally` can call C again.
 */
export function bindExports(
  exports: WebAssembly.Exports, wide: boolean, onTrap: (trap: Trap) => void,
): Exports {
  const bound: Record<string, unknown> = {};
  for (const [name, signature] of Object.entries(EXPORTS)) {
    const raw = exports[name] as Raw | undefined;
    const result = signature[0]!;
    const letters = [...signature.slice(2)];
    bound[name] = (...args: unknown[]) => {
      if (!raw) throw new TinygptError('UNSUPPORTED', `${name}: this build does not have it`);
      const given = letters.map((letter, i) => toC(letter, args[i], wide, name));
      let answer: number | bigint | undefined;
      try {
        answer = raw(...given);
      } catch (error) {
        const trap = new Trap(error instanceof Error ? error.message : String(error));
        onTrap(trap);
        throw trap;
      }
      return fromC(result, answer);
    };
  }
  return bound as unknown as Exports;
}

/** The other direction: functions of numbers as what the module imports. */
export function bindImports(functions: Imports, wide: boolean): Record<string, Raw> {
  const bound: Record<string, Raw> = {};
  for (const [name, signature] of Object.entries(IMPORTS)) {
    const inner = functions[name as keyof Imports] as (...args: unknown[]) => unknown;
    const result = signature[0]!;
    const letters = [...signature.slice(2)];
    bound[name] = (...args) => {
      const answer = inner(...letters.map((letter, i) => fromC(letter, args[i])));
      return result === 'v' ? undefined : toC(result, answer, wide, name);
    };
  }
  return bound;
}

/* ------------------------------------------------------------------------------------- memory */

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
const encoder = new TextEncoder();

/** The memory of an instance, and values in it. */
export class Memory {
  constructor(
    readonly memory: WebAssembly.Memory,
    /** Pointers have 64 bits. */
    readonly wide: boolean,
  ) {}

  /** A view, good until the next call. */
  bytes(at: Ptr, n: number): Uint8Array {
    return new Uint8Array(this.memory.buffer, at, n);
  }

  /** Bytes of its own: views of shared memory are refused by TextDecoder and many others. */
  copy(at: Ptr, n: number): Uint8Array<ArrayBuffer> {
    const copied = new Uint8Array(n);
    copied.set(this.bytes(at, n));
    return copied;
  }

  copyFloats(at: Ptr, n: number): Float32Array<ArrayBuffer> {
    return new Float32Array(this.copy(at, n * 4).buffer);
  }

  copyInts(at: Ptr, n: number): Int32Array<ArrayBuffer> {
    return new Int32Array(this.copy(at, n * 4).buffer);
  }

  /** UTF-8 of a known length. */
  utf8(at: Ptr, n: number): string {
    return decoder.decode(this.copy(at, n));
  }

  /** UTF-8 with a zero behind it; '' for NULL. */
  text(at: Ptr): string {
    if (at === 0) return '';
    const rest = new Uint8Array(this.memory.buffer, at);
    return this.utf8(at, rest.indexOf(0));
  }

  pointer(at: Ptr): Ptr {
    const view = this.#view();
    return this.wide ? Number(view.getBigUint64(at, true)) : view.getUint32(at, true);
  }

  /** Pointers, one behind the other. */
  setPointers(at: Ptr, list: readonly Ptr[]): void {
    const view = this.#view();
    list.forEach((value, i) => {
      if (this.wide) view.setBigUint64(at + 8 * i, BigInt(value), true);
      else view.setUint32(at + 4 * i, value, true);
    });
  }

  double(at: Ptr): number {
    return this.#view().getFloat64(at, true);
  }

  int32(at: Ptr): number {
    return this.#view().getInt32(at, true);
  }

  size(struct: StructName): number {
    return STRUCTS[struct].size[this.wide ? 1 : 0];
  }

  /** The address of a member. */
  member<S extends StructName>(struct: S, at: Ptr, member: keyof Members<S>): Ptr {
    const [, narrow, wide] = this.#member(struct, member as string);
    return at + (this.wide ? wide : narrow);
  }

  read<S extends StructName>(struct: S, at: Ptr): Struct<S> {
    const out: Record<string, unknown> = {};
    const view = this.#view();
    for (const name of Object.keys(STRUCTS[struct].members)) {
      const [kind, narrow, wide, length] = this.#member(struct, name);
      out[name] = this.#get(view, kind, at + (this.wide ? wide : narrow), length ?? 0);
    }
    return out as Struct<S>;
  }

  /** Writes the members that are given and leaves the others. */
  write<S extends StructName>(struct: S, at: Ptr, values: Init<S>): void {
    for (const [name, value] of Object.entries(values)) {
      if (value === undefined) continue;
      const [kind, narrow, wide] = this.#member(struct, name);
      this.#set(kind, at + (this.wide ? wide : narrow), value, name);
    }
  }

  #view(): DataView {
    return new DataView(this.memory.buffer);
  }

  #member(struct: StructName, name: string): [string, number, number, number?] {
    const members = STRUCTS[struct].members as Record<string, unknown>;
    const member = members[name];
    if (member) return member as [string, number, number, number?];
    const known = Object.keys(members).join(', ');
    throw new TinygptError('ARG', `${struct}: want one of ${known}, have ${name}`);
  }

  #get(view: DataView, kind: string, at: Ptr, length: number): unknown {
    switch (kind) {
      case 'i32': return view.getInt32(at, true);
      case 'u32': return view.getUint32(at, true);
      case 'i64': return view.getBigInt64(at, true);
      case 'u64': return view.getBigUint64(at, true);
      case 'f32': return view.getFloat32(at, true);
      case 'f64': return view.getFloat64(at, true);
      case 'bool': return view.getUint8(at) !== 0;
      case 'ptr': return this.pointer(at);
      case 'text': return this.text(this.pointer(at));
      case 'chars': {
        const bytes = this.copy(at, length);
        return decoder.decode(bytes.subarray(0, bytes.indexOf(0)));
      }
      default: return this.read(kind as StructName, at);
    }
  }

  #set(kind: string, at: Ptr, value: unknown, name: string): void {
    const view = this.#view();
    switch (kind) {
      case 'i32': view.setInt32(at, Number(whole('i', value, name)), true); break;
      case 'u32': view.setUint32(at, Number(whole('u', value, name)), true); break;
      case 'i64': view.setBigInt64(at, whole('l', value, name), true); break;
      case 'u64': view.setBigUint64(at, whole('L', value, name), true); break;
      case 'f32': view.setFloat32(at, real(value, name), true); break;
      case 'f64': view.setFloat64(at, real(value, name), true); break;
      case 'bool': view.setUint8(at, value ? 1 : 0); break;
      case 'ptr':
      case 'text':
        if (this.wide) view.setBigUint64(at, BigInt(value as number), true);
        else view.setUint32(at, value as number, true);
        break;
      default: this.write(kind as StructName, at, value as Init<StructName>);
    }
  }
}

/** UTF-8 of a string, with or without a zero behind it. */
export function utf8(text: string): Uint8Array<ArrayBuffer> {
  return encoder.encode(text);
}

/** 64-bit members as numbers: exact up to 2^53, which no count here comes near. */
export type Numbers<T> = {
  [K in keyof T]: T[K] extends bigint ? number : T[K] extends object ? Numbers<T[K]> : T[K];
};
export function numbers<T extends object>(struct: T): Numbers<T> {
  const out: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(struct)) {
    out[name] = typeof value === 'bigint' ? Number(value) : value;
  }
  return out as Numbers<T>;
}
