// SPDX-License-Identifier: Apache-2.0
/**
 * broken_module.ts - a module in which one exported function traps at its first instruction, for
 * tests of what happens then. Only the bodies of functions are touched:
 *
 *     section 7   exports   name -> index among all functions, imports first
 *     section 10  code      count, then for each function: size, locals, instructions, 0x0b
 */
class Bytes {
  at = 0;

  constructor(readonly all: Uint8Array) {}

  byte(): number {
    return this.all[this.at++]!;
  }

  /** LEB128, as all numbers of the format are written. */
  number(): number {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = this.byte();
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
  }

  name(): string {
    const n = this.number();
    this.at += n;
    return new TextDecoder().decode(this.all.subarray(this.at - n, this.at));
  }
}

/** Where the content of each section begins. */
function sections(all: Uint8Array): Map<number, number> {
  const found = new Map<number, number>();
  const bytes = new Bytes(all);
  bytes.at = 8;
  while (bytes.at < all.length) {
    const id = bytes.byte();
    const size = bytes.number();
    found.set(id, bytes.at);
    bytes.at += size;
  }
  return found;
}

export function withTrap(module: Uint8Array, name: string): Uint8Array {
  const all = module.slice();
  const where = sections(all);
  const bytes = new Bytes(all);
  bytes.at = where.get(7)!;
  let index = -1;
  for (let n = bytes.number(); n > 0; n--) {
    const exported = bytes.name();
    const kind = bytes.byte();
    const i = bytes.number();
    if (kind === 0 && exported === name) index = i;
  }
  if (index < 0) throw new Error(`no export ${name}`);
  const imported = WebAssembly.Module.imports(new WebAssembly.Module(all as BufferSource));
  index -= imported.filter(({ kind }) => kind === 'function').length;

  bytes.at = where.get(10)!;
  bytes.number();
  for (; index > 0; index--) {
    const size = bytes.number();
    bytes.at += size;
  }
  const size = bytes.number();
  const end = bytes.at + size;
  for (let n = bytes.number(); n > 0; n--) {
    bytes.number();
    bytes.byte();
  }
  /* unreachable, and nops up to the last `end`. */
  all.fill(0x01, bytes.at, end - 1);
  all[bytes.at] = 0x00;
  return all;
}
