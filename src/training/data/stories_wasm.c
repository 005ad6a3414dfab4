/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stories_wasm.c - the grammar of stories in a module is what its host fetched: a page that never
 * asks for a story does without these 300 KB.
 */
#include "base/os/os_wasm.h"
#include "training/data/stories.h"

static const char *grammar;

void tg_wasm_stories_set(const char *text) { grammar = text; }

const char *tg_stories_grammar(void) { return grammar; }
