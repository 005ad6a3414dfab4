// SPDX-License-Identifier: Apache-2.0
/**
 * react.ts - a conversation in a component of React (18 or newer):
 *
 *     const { status, turns, send, stop } = useChat({ model: { stored: id } });
 *
 * The model is loaded when the component is mounted, and its memory given back when it is unmounted.
 */
import { useEffect, useState, useSyncExternalStore } from 'react';

import { type ChatState, ChatStore, type ChatStoreOptions } from './chat_store.js';

export type { ChatState, ChatStoreOptions };

export type Chat = ChatState & Pick<ChatStore, 'send' | 'stop' | 'reset'>;

/** Options count as they are when the component is mounted; a `key` makes another one. */
export function useChat(options: ChatStoreOptions): Chat {
  const [store] = useState(() => new ChatStore(options));
  useEffect(() => {
    void store.open();
    return () => void store.close();
  }, [store]);
  const state = useSyncExternalStore(store.subscribe, store.snapshot, store.snapshot);
  return { ...state, send: store.send, stop: store.stop, reset: store.reset };
}
