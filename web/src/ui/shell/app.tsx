// SPDX-License-Identifier: Apache-2.0
/**
 * app.tsx - the shell: a skip link, the navigation with the brand, messages, the open view, and a
 * bar with the run in progress on every view but Live.
 */
import { useEffect, useRef } from 'preact/hooks';
import { Button, IconButton } from '../parts/button';
import { Icon } from '../parts/icon';
import { Notice } from '../parts/notice';
import { useEngine, whenEngine } from '../engine';
import { dismiss, notices } from '../state/notices';
import { openView, view } from '../state/route';
import { useStore } from '../store';
import { type View, VIEWS } from '../state/views';
import { Body } from './body';
import { ResumeOffer } from './resume_offer';
import { RunBar } from './run_bar';
import { nextTheme, theme } from '../theme';

const GROUPS: readonly View['group'][] = ['Train', 'Use', 'This machine'];

export function App() {
  const open = useStore(view);
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
          <ThemeButton />
        </div>
      </header>
      <main id="main" class="shell-main" tabIndex={-1}>
        <Messages />
        <ResumeOffer />
        <Title view={shown} />
        <Body key={shown.id} view={shown.id} />
      </main>
      <RunBar hidden={shown.id === 'live' || shown.id === 'start'} />
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
    const list = link?.closest('nav');
    if (link && list && list.scrollWidth > list.clientWidth) {
      list.scrollLeft = link.offsetLeft - (list.clientWidth - link.offsetWidth) / 2;
    }
  }, [open]);
  return (
    <nav class="nav" aria-label="Views">
      {GROUPS.filter((g) => VIEWS.some((v) => v.group === g)).map((group) => (
        <div class="nav-group" key={group}>
          <p class="nav-title">{group}</p>
          <ul>
            {VIEWS.filter((v) => v.group === group).map((v) => (
              <li key={v.id}>
                <a
                  ref={v.id === open ? current : null}
                  href={`./#${v.id}`}
                  aria-current={v.id === open ? 'page' : undefined}
                  onClick={(e) => {
                    if (e.ctrlKey || e.metaKey || e.shiftKey) return;
                    e.preventDefault();
                    openView(v.id);
                  }}
                >
                  <Icon name={v.icon} />
                  {v.title}
                </a>
              </li>
            ))}
          </ul>
        </div>
      ))}
    </nav>
  );
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
      <p>{start ? 'On this machine, from a text of yours. Nothing leaves it.' : shown.hint}</p>
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

/** What runs underneath, in three words. */
function EngineChip() {
  const engine = useEngine();
  if (engine.status === 'failed') {
    return (
      <div class="engine-chip engine-failed">
        <p>{engine.error}</p>
        <Button onClick={() => void whenEngine().catch(() => {})}>Try again</Button>
      </div>
    );
  }
  const info = engine.info;
  const words = info
    ? `${info.gpu ? 'GPU; ' : ''}${threads(info.threads)}, ${simd(info.build)}`
    : 'Getting ready';
  return (
    <p class="engine-chip" title={info?.banner}>
      <span class={info ? 'dot dot-on' : 'dot'} aria-hidden="true" />
      {words}
    </p>
  );
}

function threads(n: number): string {
  return n === 1 ? 'One thread' : `${n} threads`;
}

function simd(build: string): string {
  if (build.startsWith('scalar')) return 'no SIMD';
  return build.startsWith('relaxed') ? 'relaxed SIMD' : 'SIMD';
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
