/* SPDX-License-Identifier: Apache-2.0 */
/* pieces.c - bytes of a token as characters, or as <0xNN> where they are none. */
#include "print/pieces.h"

#include "print/format.h"

#include <stdio.h>
#include <string.h>

void tg_piece_text(const tg_tokenizer *tok, int32_t id, char out[TG_PIECE_BYTES]) {
    size_t n = 0, used = 0;
    const char *piece = tg_tokenizer_bytes(tok, id, &n);
    if (n == 0) piece = tg_tokenizer_piece(tok, id, &n);
    /* Goes on while there is room for one more item of either kind, and the end. */
    for (size_t i = 0; piece && i < n && used + 8 < TG_PIECE_BYTES;) {
        const size_t length = tg_fmt_utf8_length(piece + i, n - i);
        if (length == 0) {
            used += (size_t)snprintf(out + used, 8, "<0x%02X>", (unsigned char)piece[i++]);
        } else {
            memcpy(out + used, piece + i, length);
            used += length;
            i += length;
        }
    }
    out[used] = '\0';
}

void tg_piece_visible(const tg_tokenizer *tok, int32_t id, char safe[TG_PIECE_BYTES]) {
    char piece[TG_PIECE_BYTES];
    tg_piece_text(tok, id, piece);
    if (strcmp(piece, "\n") == 0) snprintf(piece, sizeof piece, "\\n");
    if (strcmp(piece, "\t") == 0) snprintf(piece, sizeof piece, "\\t");
    if (strcmp(piece, " ") == 0) snprintf(piece, sizeof piece, "' '");
    tg_fmt_safe(safe, TG_PIECE_BYTES, *piece ? piece : "\\x00");
}
