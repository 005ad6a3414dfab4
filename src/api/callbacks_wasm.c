/* SPDX-License-Identifier: Apache-2.0 */
/*
 * callbacks_wasm.c - how JavaScript receives what C hands to a function pointer.
 *
 * A function pointer is an index into the module's table, and JavaScript cannot put a plain
 * function there. So for each type of callback there is one C function that forwards to an import,
 * and an export that tells its index. user is passed through: the page numbers its listeners and
 * passes the number.
 *
 *     const onText = tg_wasm_on_text();                tg_stories(seed, n, onText, 7)
 *     imports.on_text = (user, bytes, n) => listeners[user](...)              user is 7
 */
#include "base/os/os_wasm.h"
#include "tinygpt.h"

/* type of the callback, name, its result, how the result is forwarded, parameters, arguments */
#define CALLBACKS(X)                                                                               \
    X(tg_text_fn, text, int, return, (void *user, const char *bytes, size_t n), (user, bytes, n))  \
    X(tg_token_fn, token, int, return, (void *user, const tg_token *token), (user, token))         \
    X(tg_room_fn, room, size_t, return, (void *user, size_t n_made, const int32_t **ids),          \
      (user, n_made, ids))                                                                         \
    X(tg_mask_fn, mask, void, , (void *user, const int32_t *tokens, size_t n, uint32_t *allowed),  \
      (user, tokens, n, allowed))                                                                  \
    X(tg_cancel_fn, cancel, int, return, (void *user), (user))                                     \
    X(tg_log_fn, log, void, , (void *user, int level, const char *text), (user, level, text))      \
    X(tg_lint_fn, lint, void, , (void *user, const tg_lint *finding), (user, finding))             \
    X(tg_check_fn, check, void, , (void *user, const tg_check *check), (user, check))              \
    X(tg_profile_fn, profile, void, , (void *user, const tg_profile_row *row), (user, row))        \
    X(tg_progress_fn, progress, void, , (void *user, const tg_step_report *report), (user, report))

/* The type of tg_callbacks.progress, which tinygpt.h does not name. */
typedef void (*tg_progress_fn)(void *user, const tg_step_report *report);

#define CALLBACK(type, name, result, forward, parameters, arguments)                               \
    TG_IMPORT("on_" #name) result tg_js_on_##name parameters;                                      \
    static result forward_##name parameters { forward tg_js_on_##name arguments; }                 \
    TG_API type tg_wasm_on_##name(void);                                                           \
    type tg_wasm_on_##name(void) { return forward_##name; }
CALLBACKS(CALLBACK)
