/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chat.c - ask a model that was tuned for it: a line in, an answer out, token by token.
 *
 *     cc chat.c $(pkg-config --cflags --libs tinygpt) -o chat
 *     ./chat SmolLM2-135M-Instruct.Q4_1.gguf
 *
 * The file's own chat template is what the turns are put into. Here each line is a conversation of
 * its own; for one that goes on, put question and answer behind each other in an array of turns:
 * what the session has of them already is not computed again.
 */
#include "tinygpt.h"

#include <stdio.h>
#include <string.h>

static int print_piece(void *user, const char *bytes, size_t n_bytes) {
    (void)user;
    return fwrite(bytes, 1, n_bytes, stdout) != n_bytes;
}

int main(int argc, char **argv) {
    char line[4096];
    tg_context *ctx = NULL;
    tg_model *model = NULL;
    tg_session *session = NULL;
    tg_sample_options options = tg_sample_options_default();
    options.temperature = 0; /* the likeliest token */
    options.repeat_penalty = 1.2;
    if (argc != 2) return fprintf(stderr, "usage: chat MODEL\n"), 2;
    tg_status s = tg_context_new(NULL, &ctx);
    if (s == TG_OK) s = tg_model_open(ctx, argv[1], &model);
    if (s == TG_OK) s = tg_session_new(ctx, model, 2048, &session);
    while (s == TG_OK && fgets(line, sizeof line, stdin)) {
        const tg_turn turn = { TG_USER, line, strcspn(line, "\n") };
        s = tg_chat(session, &turn, 1, &options, 512, print_piece, NULL);
        putchar('\n');
    }
    if (s != TG_OK) fprintf(stderr, "chat: %s\n", tg_context_error(ctx));
    tg_session_free(session);
    tg_model_free(model);
    tg_context_free(ctx);
    return s != TG_OK;
}
