// SPDX-License-Identifier: Apache-2.0
/**
 * cards.ts - the models that come with the page, trained by `make gallery` (tools/gallery.py). The
 * list is part of the page; a model's file is fetched when somebody wants it.
 */
import list from '../../../../data/gallery/gallery.json';

export interface GalleryCard {
  name: string;
  title: string;
  /** What it has read, and how much of it. */
  read: string;
  licence: string;
  /** Beginnings that suit it. */
  prompts: readonly string[];
  dtype: string;
  bytes: number;
  sha256: string;
  parameters: number;
  steps: number;
  /** Of the file, on the tenth of the text that was held back. */
  loss: number;
  excerpt: string;
  written: string;
}

export const CARDS: readonly GalleryCard[] = list;

const fetched = new Map<string, Promise<Blob>>();

/** The model's file, fetched once; a fetch that failed is tried again by the next call. */
export function galleryFile(card: GalleryCard): Promise<Blob> {
  let file = fetched.get(card.name);
  if (!file) {
    file = fetchFile(card);
    file.catch(() => fetched.delete(card.name));
    fetched.set(card.name, file);
  }
  return file;
}

async function fetchFile({ name, title, bytes }: GalleryCard): Promise<Blob> {
  const response = await fetch(new URL(`./gallery/${name}.tinygpt`, document.baseURI));
  const blob = response.ok ? await response.blob() : null;
  // A host that knows no such file may answer with a page of its own.
  if (blob?.size !== bytes) throw new Error(`The model “${title}” could not be fetched.`);
  return blob;
}
