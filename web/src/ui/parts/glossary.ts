// SPDX-License-Identifier: Apache-2.0
/** glossary.ts - the words of the field that the page uses, each in a sentence or two. */
export const GLOSSARY = {
  token: 'A piece of a text by its number in a vocabulary: a word, a part of one, or a sign.',
  byte: 'The smallest piece of a text: one of 256. A letter of English is one byte, a letter of Arabic two, a Chinese character three.',
  embedding:
    'The row of numbers that stands for a byte inside the model, one row for each of the 256. They begin at random and are learnt.',
  stream:
    'The row of numbers that goes through the model for each byte. Every layer adds something to it.',
  layer: 'One round of work: first attention, then the MLP. A model has several of them in a row.',
  attention:
    'The part that looks back: for each byte it weighs all bytes before it, and takes along something of those that matter.',
  head: 'One of several attentions side by side in a layer. Each looks for something of its own.',
  'query and key':
    'What a byte looks for, and what a byte has on offer: two rows of numbers. Their product, q·k, is the score of the one for the other.',
  MLP: 'The part that thinks about each byte alone: two products with learnt numbers, and a bend between them. Most of what a model knows is stored here.',
  logit:
    'The score of a possible next byte, before scores are made into probabilities. Any number; higher is likelier.',
  softmax:
    'What makes scores into probabilities: each is raised to the power of e, then all are divided by their sum.',
  temperature:
    'What scores are divided by before softmax. Below 1 the likeliest gets likelier still, above 1 all become more alike.',
  'logit lens':
    'A look at what the model would answer if it ended after an earlier layer.',
  loss: 'The surprise about the next byte, averaged. ln 256 = 5.545 is pure guessing, 0 is knowing it.',
  parameter: 'One learnt number of the model. All that it knows is in these.',
  step: 'The model guesses the next byte at many places of the text, and all of its parameters are moved a little towards better guesses.',
} as const;

export type TermName = keyof typeof GLOSSARY;
