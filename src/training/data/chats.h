/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chats.h - conversations as rows of training, with a loss on what the model is to say.
 *
 *     {"messages": [{"role": "user", "content": ".."}, {"role": "assistant", "content": ".."}]}
 *
 *     <|im_start|>user\n..<|im_end|>\n<|im_start|>assistant\n H e l l o <|im_end|>
 *     read alone                                              predicted, and the end with it
 *
 * A line is a conversation and a row of its own, so that none sees another; it is as the model's
 * template writes it. Where a template writes earlier turns anew (without what was thought, say),
 * each answer that this changes begins a row of its own: the model learns from what it will be
 * asked with. Special tokens come from the template alone (chat/chat.h).
 *
 * Or pairs, of an answer that is preferred and one that is not; each is two rows, one behind the
 * other, which stay so in every order:
 *
 *     {"prompt": [{"role": "user", ..}], "chosen": [{"role": "assistant", ..}], "rejected": [..]}
 *     {"prompt": "..", "chosen": "..", "rejected": ".."}
 */
#ifndef TG_TRAINING_CHATS_H
#define TG_TRAINING_CHATS_H

#include "chat/chat.h"
#include "training/data/text.h"

/*
 * bytes [n_bytes], JSON Lines, are not needed afterwards; empty lines are passed over. Those that
 * begin at val_from or behind it validate; 0: as many at the end as a run wants. name is for
 * messages, which say the line. All is read before *out is made: one line that is broken is
 * an error, E_FORMAT, E_DATA for a conversation without an answer, or of the template. The day is
 * what a template writes that asks for one; 0: it does not, or has its own. It is of the text, so
 * that a run keeps it. beta is 0 of conversations, and what pairs weigh.
 */
tg_status tg_chats_new(tg_context *ctx, const tg_tok *tok, const tg_chat_template *chat,
                       tg_jinja_date date, const char *name, const char *bytes, size_t n_bytes,
                       uint64_t val_from, double beta, tg_chats_info *info, tg_text **out);

#endif
