// SPDX-License-Identifier: Apache-2.0
/**
 * tinygpt - train and run small GPTs in a browser tab or in Node.
 *
 *     import { Engine } from 'tinygpt';
 *
 *     const engine = await Engine.open();
 *     const text = await engine.text(await engine.stories(42, 60_000));
 *     const tiny = engine.info.presets.find((preset) => preset.name === 'tiny')!;
 *     const model = await engine.newModel(tiny.config);
 *     const trainer = await engine.newTrainer(model, text, { steps: 200, lr: 2e-3 });
 *     for await (const report of trainer.steps()) console.log(report.step, report.loss);
 *
 *     const session = await model.session();
 *     for await (const piece of session.generate('Once', { tokens: 100 })) console.log(piece.text);
 *     await engine.close();
 *
 * Everything happens in a worker that the engine owns; the page only ever waits for messages.
 * Failed calls reject with a TinygptError, whose `code` is for programs and whose message is for
 * people. Calls on one engine are served while its trainer steps, between slices of some
 * milliseconds.
 */
export {
  type Answer, Batch, type BatchAnswer, type BatchOptions, ChatModel, ChatSession,
} from './chat.js';
export { type ChatState, ChatStore, type ChatStoreOptions } from './chat_store.js';
export { Engine } from './engine.js';
export { TinygptError } from './errors.js';
export {
  type GenerateOptions, Model, Session, type StepsOptions, Text, Tokenizer, Trainer,
} from './objects.js';
export * from './types.js';
