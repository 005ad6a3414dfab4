/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensor.c - types as text, for messages.
 */
#include "ir/tensor.h"

#include "base/str.h"

const char *tg_type_text(const tg_type *t, char text[TG_TYPE_TEXT_BYTES]) {
    snprintf(text, TG_TYPE_TEXT_BYTES, "%s [", tg_dtype_name(t->dtype));
    for (int i = 0; i < t->n_dims && i < TG_MAX_DIMS; i++)
        tg_str_append(text, TG_TYPE_TEXT_BYTES, i ? ", %zu" : "%zu", t->dim[i]);
    tg_str_append(text, TG_TYPE_TEXT_BYTES, "]%s%s", t->layout ? " " : "",
                  tg_packing_table[t->layout].text);
    return text;
}
