/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stories_data.c - data/stories.txt in the program, as it is.
 *
 * The assembler copies it in. An array in C would say the same, and take compilers seconds.
 */
#include "training/data/stories.h"

__asm__(".pushsection .rodata\n"
        ".globl tg_stories_text\n"
        ".hidden tg_stories_text\n"
        ".type tg_stories_text, %object\n"
        "tg_stories_text:\n"
        ".incbin \"data/stories.txt\"\n"
        ".byte 0\n"
        ".size tg_stories_text, . - tg_stories_text\n"
        ".popsection\n");

extern const char tg_stories_text[];

const char *tg_stories_grammar(void) { return tg_stories_text; }
