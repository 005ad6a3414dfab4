// SPDX-License-Identifier: Apache-2.0
/** copy.ts - a text into the clipboard, and a word about it. */
import { notify } from '../state/notices';

export async function copyText(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    notify('good', 'The text is in the clipboard.');
  } catch {
    notify('warning', 'The browser did not allow copying. Select the text and copy it by hand.');
  }
}
