// SPDX-License-Identifier: Apache-2.0
/** theme.ts - light, dark, or as the system says. Remembered where the browser lets us. */
import { Store } from './store';

export type Theme = 'system' | 'light' | 'dark';
const KEY = 'tinygpt-theme';
const ORDER: readonly Theme[] = ['system', 'light', 'dark'];

function remembered(): Theme {
  try {
    const text = localStorage.getItem(KEY);
    return ORDER.find((t) => t === text) ?? 'system';
  } catch {
    // Storage may be blocked; the system's theme is a fine answer.
    return 'system';
  }
}

export const theme = new Store<Theme>(remembered());

function apply(t: Theme): void {
  const root = document.documentElement;
  if (t === 'system') delete root.dataset['theme'];
  else root.dataset['theme'] = t;
}

export function startTheme(): void {
  apply(theme.get());
  theme.subscribe((t) => {
    apply(t);
    try {
      localStorage.setItem(KEY, t);
    } catch {
      // It holds for this visit.
    }
  });
}

export function nextTheme(): void {
  const at = ORDER.indexOf(theme.get());
  theme.set(ORDER[(at + 1) % ORDER.length] ?? 'system');
}
