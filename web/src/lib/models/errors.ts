// SPDX-License-Identifier: Apache-2.0
/**
 * errors.ts - what can go wrong while a model is stored, as a code for programs and a sentence for
 * people.
 */

export type StoreCode =
  /** There is no room: the browser's limit for this page, or the disk. */
  | 'QUOTA'
  /** The file or address could not be read; what came so far is kept. */
  | 'SOURCE'
  /** What came is no model, or not the one that was wanted. */
  | 'WRONG'
  /** Another tab, or an engine, has the file in use. */
  | 'BUSY'
  /** The browser has no place to keep models in. */
  | 'UNAVAILABLE'
  /** The call was cancelled. */
  | 'STOPPED'
  | 'FAILED';

export class StoreError extends Error {
  override readonly name = 'StoreError';

  constructor(
    readonly code: StoreCode,
    message: string,
  ) {
    super(message);
  }
}
