/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_api.h - what the targets that go through tinygpt.h share: a context of one thread that lives
 * as long as the process, its heap watched, and a smallest model in a file.
 */
#ifndef TG_TEST_FUZZ_API_H
#define TG_TEST_FUZZ_API_H

#include "fuzz.h"

#include "tinygpt.h"

static meter api_meter;
static tg_context *api_context;

static inline tg_context *fuzz_context(void) {
    if (api_context) return api_context;
    tg_context_options o = tg_context_options_default();
    api_meter.limit_bytes = SIZE_MAX;
    o.threads = 1;
    o.isa = "scalar"; /* the fewest lines that compute, and the same on every machine */
    o.alloc = metered;
    o.alloc_user = &api_meter;
    PROMISE(tg_context_new(&o, &api_context) == TG_OK);
    return api_context;
}

/* Every failure has a sentence. */
static inline bool api_ok(tg_status status) {
    PROMISE(status == TG_OK || tg_context_error(api_context)[0]);
    return status == TG_OK;
}

#endif
