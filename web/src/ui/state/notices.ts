// SPDX-License-Identifier: Apache-2.0
/** notices.ts - messages that the shell shows above every view until they are closed. */
import type { NoticeKind } from '../parts/notice';
import { Store } from '../store';

export interface NoticeItem {
  id: number;
  kind: NoticeKind;
  text: string;
  /** An optional button. */
  action?: { label: string; run: () => void };
}

export const notices = new Store<readonly NoticeItem[]>([]);
let lastId = 0;

/** The same text replaces its older showing. Returns the id, for dismiss. */
export function notify(kind: NoticeKind, text: string, action?: NoticeItem['action']): number {
  const id = ++lastId;
  const others = notices.get().filter((n) => n.text !== text);
  notices.set([...others.slice(-3), { id, kind, text, ...(action ? { action } : {}) }]);
  return id;
}

export function dismiss(id: number): void {
  notices.set(notices.get().filter((n) => n.id !== id));
}
