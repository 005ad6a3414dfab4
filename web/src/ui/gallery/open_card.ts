// SPDX-License-Identifier: Apache-2.0
/** open_card.ts - a model of the gallery becomes the current one. */
import { filesState, openModelFile } from '../state/files';
import { notify } from '../state/notices';
import { thinkState } from '../think/state';
import { writeState } from '../write/generation';
import { CARDS, type GalleryCard, galleryFile } from './cards';

export function fileNameOf(card: GalleryCard): string {
  return `${card.name}.tinygpt`;
}

/** The card's model is the current one; false if it could not be had, which is said. */
export async function openCard(card: GalleryCard): Promise<boolean> {
  const name = fileNameOf(card);
  const get = async () => new File([await galleryFile(card)], name);
  const opened = await openModelFile({ name, get });
  const { problem } = filesState.get();
  if (problem !== '') notify('error', problem);
  return opened;
}

/** openCard(), with beginnings that suit it in Write and Watch it think. */
export async function openToPlay(card: GalleryCard): Promise<boolean> {
  if (!(await openCard(card))) return false;
  const [prompt = ''] = card.prompts;
  writeState.patch({ prompt });
  thinkState.patch({ text: `${prompt}${card.written}`.slice(0, 48), position: 12 });
  return true;
}

/** A model to look at, for whoever has none. */
export async function openFirst(): Promise<void> {
  if (CARDS[0]) await openCard(CARDS[0]);
}
