// SPDX-License-Identifier: Apache-2.0
/** glossary.ts - the words of the field that the page uses, each in a sentence or two. Loaded behind
 *  the first paint (terms.ts), which marks them wherever they stand. */
export interface Meaning {
  means: string;
  /** Other forms under which it stands in the page; a plural with s is known. */
  forms?: readonly string[];
}

export const GLOSSARY: Readonly<Record<string, Meaning>> = {
  token: {
    means: 'What a model reads and writes one by one, as a number: a byte, a character, or a piece of a word.',
  },
  byte: {
    means: 'The smallest piece of a text: one of 256. A letter of English is one byte, a letter of Arabic two, a Chinese character three.',
  },
  character: { means: 'A letter, a digit, a sign: what is one in the eyes of a reader.' },
  piece: {
    means: 'A part of a word, or a whole short one, that comes up often in the text, and so got a number of its own.',
  },
  vocabulary: { means: 'All tokens that a model knows, each with its number.', forms: ['vocabularies'] },
  embedding: {
    means: 'The row of numbers that stands for a token inside the model. It begins at random and is learnt.',
  },
  stream: {
    means: 'The row of numbers that goes through the model for each token. Every layer adds something to it.',
  },
  activation: { means: 'A number, or a row of them, that a model computes on its way to an answer.' },
  layer: { means: 'One round of work: first attention, then the MLP. A model has several of them in a row.' },
  width: { means: 'How many numbers stand for one token inside the model.' },
  attention: {
    means: 'The part that looks back: for each token it weighs all tokens before it, and takes along something of those that matter.',
  },
  head: { means: 'One of several attentions side by side in a layer. Each looks for something of its own.' },
  'query and key': {
    means: 'What a token looks for, and what a token has on offer: two rows of numbers. Their product, q·k, is the score of the one for the other.',
    forms: ['q·k'],
  },
  'keys and values': {
    means: 'What the model remembers of the tokens that it has read, so that it need not read them again: a row of each in every layer.',
    forms: ['heads of keys', 'keys’ types'],
  },
  MLP: {
    means: 'The part that thinks about each token alone: two products with learnt numbers, and a bend between them. Most of what a model knows is stored here.',
  },
  logit: {
    means: 'The score of a possible next token, before scores are made into probabilities. Any number; higher is likelier.',
  },
  softmax: {
    means: 'What makes scores into probabilities: each is raised to the power of e, then all are divided by their sum.',
  },
  temperature: {
    means: 'What scores are divided by before softmax. Below 1 the likeliest gets likelier still, above 1 all become more alike.',
  },
  'top-k': { means: 'Only so many of the likeliest tokens may be drawn.' },
  'top-p': { means: 'Only the likeliest tokens may be drawn, as many as have this share together.' },
  'min-p': { means: 'Tokens less likely than this share of the likeliest may not be drawn.' },
  'repeat penalty': { means: 'What makes tokens that came up lately less likely.' },
  'logit lens': { means: 'A look at what the model would answer if it ended after an earlier layer.' },
  loss: {
    means: 'The surprise about the next token, averaged (in nats). 0 is knowing it; guessing among 256 bytes is ln 256 = 5.545.',
  },
  'new text': { means: 'The end of the text, which is kept for checking and never practised on: how well the model does there shows what it has understood, and not only learnt by heart.' },
  parameter: { means: 'One learnt number of the model. All that it knows is in these.', forms: ['weight'] },
  step: {
    means: 'The model guesses the next token at many places of the text, and all of its parameters are moved a little towards better guesses.',
  },
  batch: { means: 'The passages that are read in one step.', forms: ['batches'] },
  accumulation: { means: 'Several batches for one step, read one behind the other to save memory.' },
  context: { means: 'How many tokens back a model sees. What is further back it does not know any more.' },
  'rotary base': { means: 'One number that sets how a model of this kind tells near places in the text from far ones.', forms: ['rotary positions'] },
  'learning rate': { means: 'How far parameters are moved in a step. Too little takes long; too much makes the model forget.' },
  schedule: { means: 'How the learning rate changes during a run: mostly it rises quickly and falls slowly.' },
  'warm-up': { means: 'The first steps, in which the learning rate rises from nothing.' },
  decay: { means: 'The part of a run in which the learning rate falls.' },
  'weight decay': { means: 'Parameters that are not needed are pulled towards zero.' },
  gradient: {
    means: 'In which direction each parameter has to move, and how strongly, to make the loss smaller. Its norm is the length of all that together.',
    forms: ['gradient norm'],
  },
  clip: { means: 'Gradients that are longer than this are made shorter: one odd passage must not spoil the model.' },
  moments: { means: 'What the optimizer remembers of earlier gradients: two numbers for each parameter.' },
  optimizer: { means: 'The rule by which parameters are moved, here AdamW: by the gradients of this step and of earlier ones.' },
  patience: { means: 'After so many checks without a better one, a run ends by itself.' },
  workspace: { means: 'Memory for what is computed on the way, and thrown away after each step.' },
  seed: { means: 'The number that chance begins with. The same seed gives the same chance.' },
  preset: { means: 'A size of a model with settings that suit it.' },
  family: { means: 'How the layers of a model are built: GPT-2, Llama, Qwen and others do it in their own ways.', forms: ['families'] },
  fingerprint: { means: 'Some digits that are computed of all of a text or a curve: if one sign differs, so do they.', forms: ['SHA-256'] },
  GGUF: { means: 'The file that llama.cpp and its relatives keep models in.', forms: ['.gguf'] },
  safetensors: { means: 'The file that Python programs mostly keep models in.', forms: ['.safetensors'] },
  template: { means: 'How the turns of a conversation are written, so that the model knows who says what.' },
  'system prompt': { means: 'What the model is told before the conversation begins.' },
  prompt: { means: 'The beginning that a model is given, and goes on from.' },
  'fine-tuning': { means: 'Training a model that has learnt already, on another text.', forms: ['fine-tune'] },
  build: { means: 'The engine, translated for processors of a certain kind: plain, with SIMD, with threads.' },
  SIMD: { means: 'Instructions of a processor that compute several numbers at once.' },
  thread: { means: 'A part of a program that computes at the same time as others, on another core of the processor.' },
  WebGPU: { means: 'The way by which pages compute on the graphics card.' },
  adapter: { means: 'A graphics card, as the browser shows it to pages.' },
  drift: { means: 'How far the loss of one build is from that of another after the same steps.' },
  'GFLOP/s': { means: 'A billion additions or multiplications a second.' },
  CORS: { means: 'The leave that a host gives to other pages to read what it has.' },
};
