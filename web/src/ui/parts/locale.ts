// SPDX-License-Identifier: Apache-2.0
/**
 * locale.ts - to be imported before uPlot, which makes a formatter for `navigator.language` as it is
 * loaded, and is not there at all where that is no language: WebKitGTK says "C" of a system whose
 * locale is C.UTF-8. What the page itself formats is English (format.ts).
 */
try {
  new Intl.NumberFormat(navigator.language);
} catch {
  Object.defineProperty(navigator, 'language', { value: 'en', configurable: true });
}
