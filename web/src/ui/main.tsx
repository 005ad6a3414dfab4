// SPDX-License-Identifier: Apache-2.0
/**
 * main.tsx - the page's first script: theme and address at once; when index.html has been painted, the
 * engine and the first view in its place; and in idle time the views that may come next.
 */
import './styles/tokens.css';
import './styles/base.css';
import './styles/parts.css';
import './styles/shell.css';
import { render } from 'preact';
import { whenEngine } from './engine';
import { App } from './shell/app';
import { preload, preloadViews } from './shell/body';
import { loadTerms } from './parts/terms';
import { startTheme } from './theme';
import { startDrop } from './state/drop';
import { startFiles } from './state/files';
import { startForecast } from './state/forecast';
import { startKeeping } from './state/keeping';
import { startPwa } from './state/pwa';
import { startRouting, view } from './state/route';
import { startText } from './state/text';
import { startRun } from './state/run';

startTheme();
startRouting();
startDrop();

/**
 * index.html has the frame and Start's title: they are painted before the work here begins. A hidden
 * tab has no frames, so a timer, too.
 */
function afterPaint(work: () => void): void {
  let done = false;
  const once = () => {
    if (done) return;
    done = true;
    work();
  };
  requestAnimationFrame(() => setTimeout(once));
  setTimeout(once, 500);
}

afterPaint(() => {
  // The scripts of both are on their way while the app is drawn. Failure is shown by the shell, with
  // a way to try again.
  whenEngine().then(preloadSoon, preloadSoon);
  preload(view.get());
  const place = document.getElementById('app');
  if (!place) throw new Error('index.html has lost its #app');
  place.textContent = '';
  delete document.documentElement.dataset['view'];
  render(<App />, place);
  startKeeping();
  startText();
  startRun();
  startForecast();
  startFiles();
  void startPwa();
});

/** The other views, one after the other, when there is nothing better to do. */
function preloadSoon(): void {
  const load = () => void loadTerms().catch(() => {}).then(preloadViews);
  if ('requestIdleCallback' in window) requestIdleCallback(load);
  else setTimeout(load, 2000);
}
