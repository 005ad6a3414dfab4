// SPDX-License-Identifier: Apache-2.0
/** quota.ts - what a browser's answer about its storage is worth. */

const GIB = 2 ** 30;

/**
 * How many bytes a page may store in all; null if the browser does not tell. Chromium (since 140 or
 * so) answers with what is used and whole GiB above it, whatever there really is, so that no page
 * learns anything of the disk.
 */
export function toldQuota({ quota = 0, usage = 0 }: StorageEstimate): number | null {
  return quota === 0 || (quota - usage) % GIB === 0 ? null : quota;
}
