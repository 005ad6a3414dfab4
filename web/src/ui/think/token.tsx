// SPDX-License-Identifier: Apache-2.0
/** token.tsx - one byte or token as it is drawn: blanks as signs, what is no character as digits. */
import { visibleToken } from './bytes';

export function Token({ id, piece }: { id: number; piece?: string }) {
  const token = visibleToken(id, piece);
  return (
    <span class={`think-token think-token-${token.kind}`}>
      <span aria-hidden="true">{token.mark}</span>
      <span class="unseen">{token.name}</span>
    </span>
  );
}
