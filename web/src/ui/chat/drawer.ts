// SPDX-License-Identifier: Apache-2.0
/** drawer.ts - what stands beside a conversation: the models, all conversations, or the settings. */
import { Store } from '../store';

export type Drawer = '' | 'models' | 'talks' | 'settings';

export const drawer = new Store<{ open: Drawer }>({ open: '' });

export function openDrawer(open: Drawer): void {
  drawer.set({ open });
}
