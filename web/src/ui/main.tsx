// SPDX-License-Identifier: Apache-2.0
/**
 * main.tsx - the page's first script: theme, address, first view; then, when that has been painted,
 * the engine, and in idle time the views that may come next.
 */
import './styles/tokens.css';
import './styles/base.css';
import './styles/parts.css';
import './styles/shell.css';
import { render } from 'preact';
import { whenEngine } from './engine';
import { App } from './shell/app';
import { preloadViews } from './shell/body';
import { loadTerms } from './parts/terms';
import { startTheme } from './theme';
import { startDrop } from './state/drop';
import { startFiles } from './state/files';
import { startForecast } from './state/forecast';
import { startKeeping } from './state/keeping';
import { startPwa } from './state/pwa';
import { startRouting } from './state/route';
import { startText } from './state/text';
import { startRun } from './state/run';

startTheme();
startRouting();
startDrop();

const place = document.getElementById('app');
if (!place) throw new Error('index.html has lost its #app');
place.textContent = '';
render(<App />, place);

/** After two frames the first view is on the screen; a hidden tab has none, so a timer, too. */
function afterPaint(work: () => void): void {
  let done = false;
  const once = () => {
    if (done) return;
    done = true;
    work();
  };
  requestAnimationFrame(() => requestAnimationFrame(once));
  setTimeout(once, 500);
}

afterPaint(() => {
  startKeeping();
  startText();
  startRun();
  startForecast();
  startFiles();
  // Failure is shown by the shell, with a way to try again.
  whenEngine().then(preloadSoon, preloadSoon);
  void startPwa();
});

/** The other views, one after the other, when there is nothing better to do. */
function preloadSoon(): void {
  const load = () => void loadTerms().catch(() => {}).then(preloadViews);
  if ('requestIdleCallback' in window) requestIdleCallback(load);
  else setTimeout(load, 2000);
}
