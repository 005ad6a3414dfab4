// SPDX-License-Identifier: Apache-2.0
/** place.ts - where stored models lie in the browser's private file system. */
export const MODELS_FOLDER = 'tinygpt-models';

export function modelFile(id: string): string {
  return `${id}.model`;
}

export function journalFile(id: string): string {
  return `${id}.journal`;
}
