// SPDX-License-Identifier: Apache-2.0
/**
 * route.ts - which view is open, and the address. The fragment is written whenever the settings or
 * the text's fingerprint change (replaced: no history of keystrokes) and when another view is
 * opened (pushed: Back goes back). A fragment typed or followed later is read like the first one.
 */
import { Store } from '../store';
import { VIEWS } from './views';
import { defaultSettings, type Settings, settingsProblem, withGiven } from '../run/settings';
import { type Link, readLink, type TextRef, writeLink } from '../run/link';
import { notify } from './notices';

/** Marks the entries of the history that this page wrote itself. */
const OURS = { tinygpt: true };

function isOurs(): boolean {
  const state: unknown = history.state;
  return typeof state === 'object' && state !== null && 'tinygpt' in state;
}

function known(view: string): string {
  return VIEWS.some((v) => v.id === view) ? view : 'start';
}

const first: Link = readLink(location.hash);

export const view = new Store<string>(known(first.view));
export const settings = new Store<Settings>(defaultSettings());
/** The fingerprint of the text in hand; state/text.ts sets it. */
export const textRef = new Store<TextRef | null>(null);
/** The text that the link was made with, until a text with that fingerprint is in hand. */
export const wantedText = new Store<TextRef | null>(first.text);
/** True when the size was chosen by a person or a link, so that the page must not choose. */
export const sizeChosen = new Store<boolean>(first.settings.size !== undefined);

function adopt(link: Link): void {
  const next = withGiven(settings.get(), link.settings);
  const problem = settingsProblem(next);
  if (problem) link.problems.push(problem);
  else settings.set(next);
  for (const text of link.problems) notify('warning', `${text} The page's own setting is used.`);
}

function fragment(): string {
  return writeLink(view.get(), settings.get(), textRef.get() ?? wantedText.get());
}

/** The address that gives this run to somebody else. */
export function shareLink(): string {
  return new URL(writeLink('start', settings.get(), textRef.get()), location.href).href;
}

export function openView(id: string): void {
  if (id === view.get()) return;
  view.set(known(id));
  history.pushState(OURS, '', fragment());
  window.scrollTo(0, 0);
}

export function startRouting(): void {
  adopt(first);
  let timer = 0;
  const rewrite = () => {
    clearTimeout(timer);
    timer = window.setTimeout(() => history.replaceState(OURS, '', fragment()), 250);
  };
  settings.subscribe(rewrite);
  textRef.subscribe(rewrite);
  const follow = () => {
    // Back and Forward open a view again, but do not undo settings: only a foreign address does.
    if (isOurs()) return;
    const link = readLink(location.hash);
    view.set(known(link.view));
    if (Object.keys(link.settings).length > 0) adopt(link);
    if (link.text && link.text.sha256 !== textRef.get()?.sha256) wantedText.set(link.text);
  };
  window.addEventListener('popstate', () => view.set(known(readLink(location.hash).view)));
  window.addEventListener('hashchange', follow);
}
