// SPDX-License-Identifier: Apache-2.0
/** place.ts - where the store lies in the browser's private file system. */
export const STORE_FOLDER = 'tinygpt';
