// SPDX-License-Identifier: Apache-2.0
/** markdown.test.tsx - what a model says becomes elements, and never HTML of its own. */
import { h, type VNode } from 'preact';
import { expect, it } from 'vitest';
import { Markdown } from './markdown';

/** The elements as text, components called; hooks need a browser, so code is left out here. */
function drawn(node: unknown): string {
  if (node === null || node === undefined || typeof node === 'boolean') return '';
  if (Array.isArray(node)) return node.map(drawn).join('');
  if (typeof node !== 'object') {
    return String(node).replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  }
  const { type, props } = node as VNode<Record<string, unknown>>;
  if (typeof type === 'function') {
    if (type.name === 'Code') return '<pre/>';
    return drawn((type as (p: unknown) => unknown)(props));
  }
  const href = props['href'] ? ` href=${String(props['href'])}` : '';
  return `<${type}${href}>${drawn(props['children'] as unknown)}</${type}>`;
}

const md = (text: string) => drawn(h(Markdown, { text }));

it('draws paragraphs, lists, tables and code', () => {
  expect(md('Hello **you** and `me`.\n\n- one\n- two')).toBe(
    '<p>Hello <strong>you</strong> and <code>me</code>.</p><ul><li>one</li><li>two</li></ul>',
  );
  expect(md('| a | b |\n|---|--:|\n| 1 | 2 |')).toContain('<td>2</td>');
  expect(md('```c\nint x;\n```')).toBe('<pre/>');
  expect(md('# Head\n> said')).toBe('<h3>Head</h3><blockquote><p>said</p></blockquote>');
});

it('shows HTML as text, and leads out by the web alone', () => {
  expect(md('a <img src=x onerror=alert(1)> b')).toBe(
    '<p>a &lt;img src=x onerror=alert(1)> b</p>',
  );
  expect(md('<script>alert(1)</script>')).not.toContain('<script>');
  expect(md('[x](javascript:alert(1))')).toBe('<p>x</p>');
  expect(md('[x](https://a.example/)')).toBe('<p><a href=https://a.example/>x</a></p>');
  expect(md('![pic](https://a.example/p.png)')).toBe('<p><a href=https://a.example/p.png>pic</a></p>');
  expect(md('1 < 2 & 3')).toBe('<p>1 &lt; 2 &amp; 3</p>');
});
