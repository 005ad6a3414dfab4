// SPDX-License-Identifier: Apache-2.0
/**
 * errors.ts - the one error class of the package.
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
