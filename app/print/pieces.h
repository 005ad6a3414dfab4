/* SPDX-License-Identifier: Apache-2.0 */
/* pieces.h - what a token stands for, to be read by people. */
#ifndef TG_APP_PIECES_H
#define TG_APP_PIECES_H

#include "tinygpt.h"

/* Room for the longest token of a vocabulary with merges, at six characters a strange byte. */
enum { TG_PIECE_BYTES = 1024 };

/* What a token adds to the text, or a special one's own name; bytes that are no whole character as
 * <0xNN>. */
void tg_piece_text(const tg_tokenizer *tok, int32_t id, char out[TG_PIECE_BYTES]);

/* The same for a terminal: blanks and line ends get a visible form, or a table would fall apart. */
void tg_piece_visible(const tg_tokenizer *tok, int32_t id, char safe[TG_PIECE_BYTES]);

#endif
