// SPDX-License-Identifier: Apache-2.0
/** token.tsx - one byte or token as it is drawn: blanks as signs, what is no character as digits. */
import { visibleToken, type VisibleToken } from './bytes';

export function Token({ id, piece }: { id: number; piece?: string }) {
  return <Mark token={visibleToken(id, piece)} />;
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
