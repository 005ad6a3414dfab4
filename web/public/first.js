// SPDX-License-Identifier: Apache-2.0
/*
 * first.js - what the page must know before its first paint, which comes before its scripts: the
 * colours that a person chose (src/ui/theme.ts keeps them), and whether the address names another
 * view than Start, whose words index.html has.
 */
try {
  const theme = localStorage.getItem('tinygpt-theme');
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
} catch {
  // Storage may be blocked; the system's colours are a fine answer.
}
if (!/^#?(start(\?.*)?)?$/.test(location.hash)) document.documentElement.dataset.view = 'other';
