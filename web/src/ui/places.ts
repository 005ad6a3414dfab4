// SPDX-License-Identifier: Apache-2.0
/** places.ts - the names under which this page keeps things in a browser: all others are not its own. */

/** Caches of versions of the page (sw.ts), each with the version behind it. */
export const CACHE_PREFIX = 'tinygpt-page-';
