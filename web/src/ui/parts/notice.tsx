// SPDX-License-Identifier: Apache-2.0
/** notice.tsx - a sentence in a box: information, good news, a warning or an error. */
import type { ComponentChildren } from 'preact';
import { Icon, type IconName } from './icon';

export type NoticeKind = 'info' | 'good' | 'warning' | 'error';

const ICONS: Record<NoticeKind, IconName> = {
  info: 'info',
  good: 'check',
  warning: 'warning',
  error: 'warning',
};

/** An error is read out at once; the others are not, unless they stand in a live region. */
export function Notice(p: { kind: NoticeKind; children: ComponentChildren }) {
  return (
    <div class={`notice notice-${p.kind}`} role={p.kind === 'error' ? 'alert' : undefined}>
      <Icon name={ICONS[p.kind]} />
      <div class="notice-body">{p.children}</div>
    </div>
  );
}
