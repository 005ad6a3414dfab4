// SPDX-License-Identifier: Apache-2.0
/**
 * drop.ts - files dropped anywhere on the page: a model is opened under Files, a third-party one under
 * Chat, anything else is the text. Without this a browser would leave the page, and the run, to show the file.
 */
import { isChatModelName, isModelName } from '../files/model_file';
import { openModelFile } from './files';
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
    const model = files.find((f) => isModelName(f.name));
    if (model) {
      openView('files');
      void openModelFile(model);
      return;
    }
    const chat = files.find((f) => isChatModelName(f.name));
    if (chat) {
      openView('chat');
      void import('../chat/models').then(({ addFile }) => addFile(chat));
      return;
    }
    if (view.get() !== 'start' && view.get() !== 'text') openView('text');
    void takeFiles(files);
  });
}
