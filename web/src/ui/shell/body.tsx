// SPDX-License-Identifier: Apache-2.0
/** body.tsx - the open view, whose scripts come when it is first opened: the one place that knows
 *  where each view is. */
import type { ComponentType } from 'preact';
import { Later } from '../parts/later';
import type { ViewId } from '../state/views';

const LOADERS: Record<ViewId, () => Promise<{ default: ComponentType }>> = {
  start: () => import('../start/start_view'),
  text: () => import('../text/text_view'),
  model: () => import('../model/model_view'),
  run: () => import('../run/run_view'),
  live: () => import('../live/live_view'),
  shelf: () => import('../shelf/shelf_view'),
  write: () => import('../write/write_view'),
  think: () => import('../think/think_view'),
  chat: () => import('../chat/chat_view'),
  files: () => import('../files/files_view'),
  machine: () => import('../machine/machine_view'),
  bench: () => import('../bench/bench_view'),
};

/** The scripts of all views, one after the other; for when there is nothing better to do. */
export async function preloadViews(): Promise<void> {
  for (const load of Object.values(LOADERS)) await load().catch(() => {});
}

/** Fetches the script of one view, which is about to be shown. */
export function preload(view: string): void {
  LOADERS[view as ViewId]().catch(() => {});
}

export function Body({ view }: { view: ViewId }) {
  const load = () => LOADERS[view]().then((module) => module.default);
  return <Later load={load} wait={<div class="shell-wait" aria-busy="true" />} />;
}
