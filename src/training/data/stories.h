/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stories.h - an endless text of small stories, made from a grammar of this project's own.
 *
 * The text exists so that training can be shown, tested and timed without a download: it is plain
 * ASCII English in the past tense, with names, objects and promises that come back later, and it
 * is long enough for any run. Nothing in it was copied from anywhere.
 *
 *     The crooked kite                      a title line
 *     In a cottage with a green door ...    paragraphs, one a line
 *     "Do not run on the ice," said ...
 *                                           one empty line behind every story
 *
 * Story number k is a function of (seed, k) and nothing else, and the text of a seed is story 0,
 * story 1, story 2 and so on. So a seed names one text of any length: asking for more bytes only
 * extends it. Some 2.3 KB make a story. The words are those of this version of the grammar
 * (data/stories.txt): a change there changes every text, and the tests hold a checksum so that it
 * cannot happen unnoticed.
 *
 * Example: write a megabyte to a file.
 *
 *     static tg_status append(void *user, const char *bytes, size_t n) { ... return TG_OK; }
 *     TG_TRY(tg_stories_generate(42, 1000000, append, &file));
 */
#ifndef TG_TRAINING_STORIES_H
#define TG_TRAINING_STORIES_H

#include <stddef.h>
#include <stdint.h>

#include "tinygpt.h"

/*
 * Takes the next n bytes of the text, n >= 1.
 *   bytes  [n]  borrowed for the call, not terminated
 * Anything but TG_OK stops the generator, which hands the status on.
 */
typedef tg_status (*tg_stories_write)(void *user, const char *bytes, size_t n);

/*
 * Writes exactly `bytes` bytes, from the first byte of the text of this seed, in pieces of up to
 * 4 KiB; the last story is cut where the count ends. bytes 0 writes nothing.
 * Allocates nothing, keeps no state, may run on several threads at once; needs 100 KiB of stack.
 * Errors: what `write` returned, and those of tg_storyteller_begin.
 */
tg_status tg_stories_generate(uint64_t seed, uint64_t bytes, tg_stories_write write, void *user);

/* The text of data/stories.txt, which ends in a line end and a zero, for as long as the process
 * lives. Native builds carry it; a WebAssembly module has what its host handed over, and NULL
 * before that (tg_wasm_stories_set of os_wasm.h). */
const char *tg_stories_grammar(void);

/* A tg_stories_write for a receiver of the public header: user is a tg_stories_sink. */
typedef struct tg_stories_sink {
    tg_text_fn write;
    void *user;
} tg_stories_sink;
tg_status tg_stories_pass(void *user, const char *bytes, size_t n);

/* The same in slices, a story at least: TG_PENDING until all is written. Deadlines are on
 * tg_time_ms's clock; 0: none. The caller has its memory, so many bytes. */
typedef struct tg_storyteller tg_storyteller;
size_t tg_storyteller_bytes(void);
/* grammar: the text of data/stories.txt, borrowed. Errors: E_UNSUPPORTED, it is NULL; E_FORMAT, it
 * is not one that can be expanded. */
tg_status tg_storyteller_begin(tg_storyteller *t, const char *grammar, uint64_t seed,
                               uint64_t bytes, tg_stories_write write, void *user);
tg_status tg_storyteller_go_on(tg_storyteller *t, double deadline_ms);

#endif
