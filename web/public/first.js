// SPDX-License-Identifier: Apache-2.0
/*
 * first.js - what the page must know before its first paint, which comes before its scripts: the
 * colours that a person chose (src/ui/theme.ts keeps them), and whether the address names another
 * view than Start, whose words index.html has; and what the page says if its scripts do not come.
 */
try {
  const theme = localStorage.getItem('tinygpt-theme');
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
} catch {
  // Storage may be blocked; the system's colours are a fine answer.
}
if (!/^#?(start(\?.*)?)?$/.test(location.hash)) document.documentElement.dataset.view = 'other';

addEventListener(
  'error',
  ({ target }) => {
    const place = document.querySelector('.messages');
    if (!(target instanceof HTMLScriptElement) || !place) return;
    const text = document.createElement('p');
    text.textContent = 'The scripts of this page could not be loaded. Is its server still there?';
    const again = document.createElement('button');
    again.className = 'button';
    again.textContent = 'Load the page again';
    again.onclick = () => location.reload();
    const body = document.createElement('div');
    body.className = 'notice-body';
    body.append(text, again);
    const notice = document.createElement('div');
    notice.className = 'notice notice-error';
    notice.setAttribute('role', 'alert');
    notice.append(body);
    place.replaceChildren(notice);
    document.querySelector('.engine-chip').textContent = 'Not loaded';
  },
  true,
);
