// SPDX-License-Identifier: Apache-2.0
/** address.ts - an address that a person typed, as one that a model file can be fetched from. */
import { cleanAddress } from '../text/fetch_text';

/** The page about a file on Hugging Face is HTML; the file itself lies beside it. */
export function modelAddress(typed: string, pageIsSecure: boolean): URL {
  const url = cleanAddress(typed, pageIsSecure);
  if (url.hostname === 'huggingface.co') {
    url.pathname = url.pathname.replace(/^(\/[^/]+\/[^/]+)\/blob\//, '$1/resolve/');
  }
  return url;
}
