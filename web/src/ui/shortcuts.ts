// SPDX-License-Identifier: Apache-2.0
/** shortcuts.ts - the keys of the page: one table, by which they are bound, and listed behind "?". */
import { Store } from './store';

/** A key that does something: its id for who binds it, the keys, and what it does. */
export type Shortcut = readonly [id: string, keys: readonly string[], does: string];

/** By the place where they count. `page`: wherever nothing is being typed, and no dialog is open. */
export const SHORTCUTS = {
  page: [
    ['views', ['1', '2', '3', '4', '5'], 'Learn, Write, Watch it think, Chat, More'],
    ['pause', ['p'], 'Pause the run, or let it go on'],
    ['help', ['?'], 'This list'],
  ],
  write: [
    ['write', ['Ctrl+Enter'], 'Let the model go on'],
    ['stop', ['Escape'], 'Stop it'],
  ],
  chat: [
    ['send', ['Enter'], 'Send; with Shift a new line begins'],
    ['stop', ['Escape'], 'Stop the answer'],
  ],
  side: [['close', ['Escape'], 'Close the side']],
  picture: [
    ['left', ['ArrowLeft'], 'One to the left'],
    ['right', ['ArrowRight'], 'One to the right'],
    ['up', ['ArrowUp'], 'One up'],
    ['down', ['ArrowDown'], 'One down'],
    ['first', ['Home'], 'To the first of a row'],
    ['last', ['End'], 'To the last of a row'],
    ['top', ['PageUp'], 'To the first row'],
    ['bottom', ['PageDown'], 'To the last row'],
  ],
  tour: [['leave', ['Escape'], 'End the tour']],
} as const satisfies Readonly<Record<string, readonly Shortcut[]>>;

export type Place = keyof typeof SHORTCUTS;
type Id<P extends Place> = (typeof SHORTCUTS)[P][number][0];

/** Ctrl is also the Command key. Shift counts with keys that have a name: "?" needs it somewhere. */
function isPressed(e: KeyboardEvent, keys: string): boolean {
  const parts = keys.split('+');
  const key = parts.pop() ?? '';
  const shift = key.length === 1 || e.shiftKey === parts.includes('Shift');
  return e.key === key && shift && !e.altKey && (e.ctrlKey || e.metaKey) === parts.includes('Ctrl');
}

/** A listener of the keys of a place. What is not bound, or typed elsewhere, is let through. */
export function keys<P extends Place>(
  place: P,
  actions: Partial<Record<Id<P>, (key: string) => void>>,
): (e: KeyboardEvent) => void {
  return (e) => {
    if (e.isComposing || (place === 'page' && isTaken(e))) return;
    const table: readonly Shortcut[] = SHORTCUTS[place];
    const found = table.find(([, all]) => all.some((one) => isPressed(e, one)));
    const action = found && actions[found[0] as Id<P>];
    if (!action) return;
    e.preventDefault();
    action(e.key);
  };
}

/** Something is being typed, a dialog is open, or the key is only held down. */
function isTaken({ target, repeat }: KeyboardEvent): boolean {
  const at = target as Partial<Element> | null;
  if (repeat || at?.closest?.('input, textarea, select, dialog')) return true;
  return document.querySelector('dialog[open]') !== null;
}

export const helpOpen = new Store<boolean>(false);

export function openHelp(open: boolean): void {
  helpOpen.set(open);
}
