/* SPDX-License-Identifier: Apache-2.0 */
/*
 * split.h - how byte-level vocabularies cut a text into words, before anything is merged.
 *
 * The rules are regular expressions in the files; here they are written out by hand, so that no
 * pattern from a file runs. In them L, N and M are letters, numbers and marks, S white space.
 *
 *   GPT2    's|'t|'re|'ve|'m|'ll|'d | ?L+ | ?N+ | ?[^SLN]+ | S+(?!not S) | S+
 *   SMOLLM  every N alone; GPT2 on each stretch between, as if it were a text of its own
 *   LLAMA3  (?i:'s|..) | [^\r\nLN]?L+ | N{1,3} | ?[^SLN]+[\r\n]* | S*[\r\n]+ | S+(?!not S) | S+
 *   QWEN2   as LLAMA3, with N in place of N{1,3}
 *   QWEN35  as QWEN2, with [LM]+ in place of L+, and M no symbol
 *   GPT4O   [^\r\nLN]?[UM]*[DM]+(?i:'s|..)? | [^\r\nLN]?[UM]+[DM]*(?i:'s|..)? | N{1,3} |
 *            ?[^SLN]+[\r\n/]* | S*[\r\n]+ | S+(?!not S) | S+
 *           where U are letters that are not small, and D those that are no capitals
 *   TEKKEN  as GPT4O, with N in place of N{1,3}, and no 's behind a word
 *   NONE    the whole text
 */
#ifndef TG_TOK_SPLIT_H
#define TG_TOK_SPLIT_H

#include "tok/tok.h"

/* Zero-initialise, set the first three; at moves on. */
typedef struct tg_splitter {
    tg_tok_split rule;
    const char *text;
    size_t n;
    size_t at;
    size_t bound; /* SMOLLM: the stretch without numbers ends here */
} tg_splitter;

/* The next word is text[*from, s->at); false at the end. Words follow on each other without gaps,
 * and all of them together take time linear in the text. */
bool tg_split_next(tg_splitter *s, size_t *from);

#endif
