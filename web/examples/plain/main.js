// SPDX-License-Identifier: Apache-2.0
// main.js - picks a model file, and writes what it answers.
import { Engine } from './tinygpt/bundle/tinygpt.js';

const at = (id) => document.getElementById(id);
// Whoever is quick may pick a file before the engine is there.
const whenEngine = Engine.open();
let session;
let chats = false;

at('file').addEventListener('change', async () => {
  const [file] = at('file').files;
  at('state').textContent = `Loading ${file.name}`;
  try {
    const engine = await whenEngine;
    const model = await engine.openChatModel(file);
    chats = model.info.template !== '';
    session = await (chats ? model.chat({ ctx: 1024 }) : model.session());
    at('state').textContent = `${file.name} is ready. Threads: ${engine.info.threads}.`;
  } catch (error) {
    at('state').textContent = error.message;
  }
});

at('form').addEventListener('submit', async (event) => {
  event.preventDefault();
  if (!session) return;
  const { value: text } = at('text');
  at('answer').textContent = chats ? '' : text;
  const options = { tokens: 64, temperature: 0.7 };
  const answer = chats
    ? session.answer([{ role: 'user', text }], options)
    : session.complete(text, options);
  for await (const piece of answer) at('answer').textContent += piece.text;
  at('state').textContent = `${(await answer.stats).newTokens} tokens`;
});
