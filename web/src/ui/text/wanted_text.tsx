// SPDX-License-Identifier: Apache-2.0
/** wanted_text.tsx - says that a link was made with another text than the one in hand. */
import { Notice } from '../parts/notice';
import { P } from '../parts/term';
import { bytes } from '../format';
import { textRef, wantedText } from '../state/route';
import { useStore } from '../store';

export function WantedText() {
  const wanted = useStore(wantedText);
  const have = useStore(textRef);
  if (!wanted || (have && have.sha256 === wanted.sha256)) return null;
  if (!have) return null;
  return (
    <Notice kind="warning">
      <P>
        This link was made with a text of {bytes(wanted.bytes)} (fingerprint{' '}
        <code>{wanted.sha256.slice(0, 8)}</code>); the text here is another one (
        <code>{have.sha256.slice(0, 8)}</code>). With the same text, the curve comes out the same;
        with this one it will not. Open that text to reproduce it.
      </P>
    </Notice>
  );
}
