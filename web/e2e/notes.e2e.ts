// SPDX-License-Identifier: Apache-2.0
/**
 * notes.e2e.ts - Search my notes: with a model that makes vectors of texts the passage is found that
 * means what is asked, whatever its words are.
 *
 *   TG_MODELS   folder of tools/setup.sh's models; ../.cache/models
 */
import { join, resolve } from 'node:path';
import { expect, it } from 'vitest';
import { findings } from './looking';
import type { Playground } from './page';
import type { Site } from './servers';
import { onFreshStages } from './stage';

const web = resolve(import.meta.dirname, '..');
const MINILM = join(web, process.env['TG_MODELS'] ?? '../.cache/models', 'minilm.zip');
/** Another encoder, whose vectors are shorter. */
const SMALL = join(web, '../test/golden/lm/bert.zip');

const NOTES = [
  'The dentist moved my appointment to Thursday at nine. Bring the insurance card, and do not eat before it.',
  'Our cat Mina has learnt to open the kitchen door by jumping at the handle, so the butter is in the fridge.',
  'The train to the coast leaves at seven in the morning and takes four hours; buy the tickets in advance.',
];

let site: Site;
let p: Playground;

onFreshStages((stage) => ({ site, p } = stage));

async function pick(label: string, files: Parameters<import('playwright-core').FileChooser['setFiles']>[0]) {
  const chooser = p.page.waitForEvent('filechooser');
  await p.button(label).click();
  await (await chooser).setFiles(files);
}

async function ask(question: string): Promise<string> {
  await p.page.getByRole('searchbox', { name: 'Question' }).fill(question);
  await p.button('Search').click();
  const hits = p.page.getByRole('list', { name: 'What was found' }).getByRole('listitem');
  await p.page.getByText(`Nearest to “${question}”`).waitFor();
  return (await hits.first().locator('.chat-text').innerText()).trim();
}

it('notes are found by what they mean, refused where they are no text, and read anew by another model', async () => {
  await p.open(site.url, 'chat');
  await pick('Add a file', MINILM);
  await p.button('Load it').click();
  await p.page.getByRole('heading', { name: 'Search my notes' }).waitFor();
  const utf16 = Buffer.from(`\ufeff${NOTES[2]}`, 'utf16le');
  await pick('Add notes', [
    { name: 'mine.md', mimeType: 'text/markdown', buffer: Buffer.from(NOTES.slice(0, 2).join('\n\n')) },
    { name: 'windows.txt', mimeType: 'text/plain', buffer: utf16 },
    { name: 'scan.txt', mimeType: 'text/plain', buffer: Buffer.from('%PDF-1.7 and more of it') },
  ]);
  await p.page.getByRole('alert').getByText('scan.txt is a PDF, not a plain text.').waitFor();
  await p.page.getByText('3 passages of 2 files').waitFor();
  expect(await ask('When do I see the doctor for my teeth?')).toBe(NOTES[0]);
  expect(await ask('How did the pet get in?')).toBe(NOTES[1]);
  expect(await ask('departure of the railway')).toBe(NOTES[2]);
  expect(await findings(p.page)).toEqual([]);
  // Of another model all vectors are other ones: the notes are read again, and nothing else is asked for.
  await p.button('Models').click();
  await pick('Add a file', SMALL);
  await p.button('Load it').click();
  await p.page.getByText('bert.zip').first().waitFor();
  await p.page.getByText('3 passages of 2 files').waitFor();
  expect(await p.page.getByRole('list', { name: 'What was found' }).getByRole('listitem').count()).toBe(0);
  expect(await ask(NOTES[1]!)).toBe(NOTES[1]);
});
