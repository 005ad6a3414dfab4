// SPDX-License-Identifier: Apache-2.0
/** token.tsx - one byte or token as it is drawn: blanks as signs, what is no character as digits. */
import type { VisibleToken } from './bytes';
import { useSpelling } from './spelling';

export function Token({ id }: { id: number }) {
  return <Mark token={useSpelling().visible(id)} />;
}

/** A byte in its place: the character that it begins, if it begins one. */
export function Mark({ token }: { token: VisibleToken }) {
  return (
    <span class={`think-token think-token-${token.kind}`}>
      <span aria-hidden="true">{token.mark}</span>
      <span class="unseen">{token.name}</span>
    </span>
  );
}
