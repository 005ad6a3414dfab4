// SPDX-License-Identifier: Apache-2.0
/**
 * drop.ts - files dropped anywhere on the page: a model is opened under Files, a third-party one, or
 * a folder of one, under Chat, anything else is the text. Without this a browser would leave the page,
 * and the run, to show the file.
 */
import { BESIDE_BYTES, isChatModelName, isModelName } from '../files/model_file';
import { plainError } from '../plain_error';
import { openModelFile } from './files';
import { notify } from './notices';
import { openView, view } from './route';
import { takeFiles } from './text';

export function startDrop(): void {
  window.addEventListener('dragover', (e) => {
    if (e.dataTransfer?.types.includes('Files')) e.preventDefault();
  });
  window.addEventListener('drop', (e) => {
    const files = [...(e.dataTransfer?.files ?? [])];
    if (files.length === 0) return;
    e.preventDefault();
    const entry = e.dataTransfer?.items[0]?.webkitGetAsEntry?.();
    if (entry?.isDirectory) {
      filesOf(entry as FileSystemDirectoryEntry).then(takeFolder).catch(lost);
      return;
    }
    // Where models are opened, a zip file is a folder of one.
    const zips = view.get() === 'files';
    const model = files.find((f) => isModelName(f.name) || (zips && /\.zip$/i.test(f.name)));
    if (model) {
      openView('files');
      void openModelFile(model);
      return;
    }
    const chat = files.find((f) => isChatModelName(f.name));
    // Where models are opened or write, a third-party one is to write there, if it is small enough.
    if (chat && chat.size <= BESIDE_BYTES && ['files', 'write'].includes(view.get())) {
      void openModelFile(chat);
      return;
    }
    if (chat) {
      openView('chat');
      import('../chat/models').then(({ addFile }) => addFile(chat)).catch(lost);
      return;
    }
    if (view.get() !== 'start' && view.get() !== 'text') openView('text');
    void takeFiles(files);
  });
}

/** It cannot be read, or the script for it did not come. */
function lost(e: unknown): void {
  notify('error', plainError(e));
}

/** A model's folder is one for Chat, any other holds texts. */
async function takeFolder(files: File[]): Promise<void> {
  const { isModelFolder } = await import('../../lib/models/index');
  if (isModelFolder(files)) {
    openView('chat');
    await (await import('../chat/models')).addFolder(files);
    return;
  }
  if (view.get() !== 'start' && view.get() !== 'text') openView('text');
  await takeFiles(files);
}

/** The files of a dropped folder and of those in it, with paths from its name on, as a picked folder's
 *  files have them. */
async function filesOf(folder: FileSystemDirectoryEntry): Promise<File[]> {
  const reader = folder.createReader();
  const files: File[] = [];
  for (;;) {
    // A hundred at a time, and none at the end.
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) =>
      reader.readEntries(resolve, reject));
    if (some.length === 0) return files;
    for (const entry of some) {
      if (entry.isDirectory) files.push(...(await filesOf(entry as FileSystemDirectoryEntry)));
      if (!entry.isFile) continue;
      const file = await new Promise<File>((resolve, reject) =>
        (entry as FileSystemFileEntry).file(resolve, reject));
      Object.defineProperty(file, 'webkitRelativePath', { value: entry.fullPath.slice(1) });
      files.push(file);
    }
  }
}
