// SPDX-License-Identifier: Apache-2.0
// chat.mjs MODEL.gguf TEXT - prints an answer in the shape of OpenAI's API, or a continued text.
import { pathToFileURL } from 'node:url';
import { Engine } from 'tinygpt';
import { ChatClient } from 'tinygpt/openai';

const [path, content = 'Why is the sky blue?'] = process.argv.slice(2);
const engine = await Engine.open();
const model = await engine.openChatModel(pathToFileURL(path));
if (model.info.template === '') {
  const session = await model.session();
  const text = session.complete(content, { tokens: 16, temperature: 0 });
  for await (const piece of text) process.stdout.write(piece.text);
} else {
  const client = new ChatClient(model, { ctx: 1024 });
  const messages = [{ role: 'user', content }];
  const stream = await client.chat.completions.create({ messages, stream: true, max_tokens: 64 });
  for await (const chunk of stream) process.stdout.write(chunk.choices[0].delta.content ?? '');
}
process.stdout.write('\n');
await engine.close();
