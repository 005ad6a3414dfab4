// SPDX-License-Identifier: Apache-2.0
/**
 * app.tsx - the shell: a skip link, the navigation with the brand, messages, the open view, and a
 * bar with the run in progress on every view but Live.
 */
import { useEffect, useRef } from 'preact/hooks';
import { Button, IconButton } from '../parts/button';
import { Icon } from '../parts/icon';
import { Later } from '../parts/later';
import { Notice } from '../parts/notice';
import { Explained, P } from '../parts/term';
import { useEngine, whenEngine } from '../engine';
import { plainError } from '../plain_error';
import { dismiss, notices, notify } from '../state/notices';
import { openView, view } from '../state/route';
import { controller, runState } from '../state/run';
import { helpOpen, keys, openHelp } from '../shortcuts';
import { useStore } from '../store';
import { type Group, GROUP_ICONS, GROUPS, type View, VIEWS } from '../state/views';
import { Body } from './body';
import { ResumeOffer } from './resume_offer';
import { RunBar } from './run_bar';
import { Tour } from './tour';
import { nextTheme, theme } from '../theme';

export function App() {
  const open = useStore(view);
  usePageKeys();
  const shown = VIEWS.find((v) => v.id === open) ?? VIEWS[0];
  if (!shown) return null;
  return (
    <div class="shell">
      <a class="skip" href="#main" onClick={skip}>
        Skip to the page
      </a>
      <header class="shell-side">
        <p class="brand">
          <span class="brand-mark" aria-hidden="true" />
          tinygpt
        </p>
        <Nav open={shown.id} />
        <div class="shell-foot">
          <EngineChip />
          <IconButton icon="info" label="Keys and words: key ?" onClick={() => openHelp(true)} />
          <ThemeButton />
        </div>
      </header>
      <main id="main" class="shell-main" tabIndex={-1}>
        <Messages />
        <NoEngine />
        <ResumeOffer />
        <Title view={shown} />
        <Body key={shown.id} view={shown.id} />
      </main>
      <RunBar hidden={shown.id === 'live' || shown.id === 'start'} looking={shown.id === 'live'} />
      <Tour />
      <Explained />
      <Help />
    </div>
  );
}

/** The address belongs to the run, so the link must not change it. */
function skip(e: Event): void {
  e.preventDefault();
  document.getElementById('main')?.focus();
}

function Nav({ open }: { open: string }) {
  const current = useRef<HTMLAnchorElement>(null);
  useEffect(() => {
    // On a phone the links scroll sideways: show the one that is open.
    const link = current.current;
    const list = link?.closest('ul');
    if (link && list && list.scrollWidth > list.clientWidth) {
      list.scrollLeft = link.offsetLeft - (list.clientWidth - link.offsetWidth) / 2;
    }
  }, [open]);
  const group = VIEWS.find((v) => v.id === open)?.group;
  return (
    <nav class="nav" aria-label="Views">
      <ul>
        {GROUPS.map((g, i) => {
          const views = viewsOf(g);
          const first = views[0];
          const alone = views.length === 1;
          if (!first) return null;
          return (
            <li key={g} class="nav-group">
              <a
                href={`./#${first.id}`}
                title={`${g}: key ${i + 1}`}
                aria-keyshortcuts={String(i + 1)}
                aria-current={g !== group ? undefined : alone ? 'page' : 'true'}
                onClick={(e) => follow(e, first.id)}
              >
                <Icon name={GROUP_ICONS[g]} />
                {g}
              </a>
              {g === group && !alone && (
                <ul class="nav-views">
                  {views.map((v) => (
                    <li key={v.id}>
                      <a
                        ref={v.id === open ? current : null}
                        href={`./#${v.id}`}
                        aria-current={v.id === open ? 'page' : undefined}
                        onClick={(e) => follow(e, v.id)}
                      >
                        {v.title}
                      </a>
                    </li>
                  ))}
                </ul>
              )}
            </li>
          );
        })}
      </ul>
    </nav>
  );
}

function viewsOf(group: Group): readonly View[] {
  return VIEWS.filter((v) => v.group === group);
}

/** A link opens its view here; with a modifier the browser opens it elsewhere. */
function follow(e: MouseEvent, id: string): void {
  if (e.ctrlKey || e.metaKey || e.shiftKey) return;
  e.preventDefault();
  openView(id);
}

/** The keys that count everywhere. */
function usePageKeys(): void {
  useEffect(() => {
    const press = keys('page', {
      views: (key) => {
        const first = viewsOf(GROUPS[Number(key) - 1] ?? 'Learn')[0];
        if (first) openView(first.id);
      },
      pause: pauseOrGoOn,
      help: () => openHelp(true),
    });
    window.addEventListener('keydown', press);
    return () => window.removeEventListener('keydown', press);
  }, []);
}

function pauseOrGoOn(): void {
  const { phase } = runState();
  if (phase === 'running') void controller.pause();
  else if (phase === 'paused') void controller.unpause();
}

const loadHelp = () =>
  import('./help').then(
    (m) => m.Help,
    (e: unknown) => {
      openHelp(false);
      notify('error', plainError(e));
      throw e;
    },
  );

/** The list of keys and words. */
function Help() {
  return useStore(helpOpen) && <Later load={loadHelp} />;
}

function Title({ view: shown }: { view: View }) {
  const heading = useRef<HTMLHeadingElement>(null);
  const first = useRef(true);
  useEffect(() => {
    document.title = shown.id === 'start' ? 'tinygpt' : `${shown.title} – tinygpt`;
    // A screen reader learns of the new view by its heading; the first page is read by itself.
    if (!first.current) heading.current?.focus({ preventScroll: true });
    first.current = false;
  }, [shown.id]);
  const start = shown.id === 'start';
  return (
    <div class={start ? 'title title-start' : 'title'}>
      <h1 ref={heading} tabIndex={-1}>
        {start ? 'Teach a small language model' : shown.title}
      </h1>
      <P>
        {start ? 'On this machine, from a text of yours. Nothing leaves it.' : shown.hint}
      </P>
    </div>
  );
}

function Messages() {
  const list = useStore(notices);
  return (
    <div class="messages" aria-live="polite">
      {list.map((n) => (
        <div class="message" key={n.id}>
          <Notice kind={n.kind}>
            <p>{n.text}</p>
            {n.action && (
              <Button
                onClick={() => {
                  n.action?.run();
                  dismiss(n.id);
                }}
              >
                {n.action.label}
              </Button>
            )}
          </Notice>
          <IconButton icon="close" label="Close this message" onClick={() => dismiss(n.id)} />
        </div>
      ))}
    </div>
  );
}

/** Why there is no engine, and what can be done. */
function NoEngine() {
  const { status, error } = useEngine();
  if (status !== 'failed') return null;
  return (
    <div class="messages">
      <Notice kind="error">
        <P>{error}</P>
        <div class="row">
          <Button onClick={() => void whenEngine().catch(() => {})}>Try again</Button>
          <Button onClick={() => location.reload()}>Load the page again</Button>
        </div>
      </Notice>
    </div>
  );
}

/** What runs underneath, in three words. */
function EngineChip() {
  const engine = useEngine();
  const info = engine.info;
  const words = info
    ? `Ready${info.gpu ? ' on the GPU' : ''}, ${threads(info.threads)}${slowness(info.build)}`
    : engine.status === 'failed' ? 'Not started' : 'Getting ready';
  return (
    <p class="engine-chip" title={info?.banner}>
      <span class={info ? 'dot dot-on' : 'dot'} aria-hidden="true" />
      {words}
    </p>
  );
}

function threads(n: number): string {
  return n === 1 ? 'one thread' : `${n} threads`;
}

/** Machine says why. */
function slowness(build: string): string {
  return build.startsWith('scalar') ? ', slowly' : '';
}

const THEME_WORDS = { system: 'as the system', light: 'light', dark: 'dark' } as const;
const THEME_ICONS = { system: 'contrast', light: 'sun', dark: 'moon' } as const;

function ThemeButton() {
  const t = useStore(theme);
  return (
    <IconButton
      icon={THEME_ICONS[t]}
      label={`Colours: ${THEME_WORDS[t]}. Change`}
      onClick={nextTheme}
    />
  );
}
