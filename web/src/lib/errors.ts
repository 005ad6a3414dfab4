// SPDX-License-Identifier: Apache-2.0
/**
 * errors.ts - the one error class of the package, and names that may be misspelt.
 */
import type { ErrorCode } from './types.js';

/** A failed call. `message` is the C core's own: what, where, what was wanted, what was found. */
export class TinygptError extends Error {
  override readonly name = 'TinygptError';

  constructor(
    /** Why, for programs: the status of tinygpt.h without `TG_E_`, or `TRAP` or `CLOSED`. */
    readonly code: ErrorCode,
    message: string,
  ) {
    super(message);
  }
}

/** The value behind a name that a caller may have misspelt. */
export function choose(table: Record<string, number>, name: string, what: string): number {
  const value = table[name];
  if (value !== undefined) return value;
  const names = Object.keys(table).join(', ');
  throw new TinygptError('ARG', `${what}: want one of ${names}, have ${name}`);
}
