/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io_folder.h - a temporary folder and two saved models for the tests that need files; cmocka's
 * setup and teardown for it.
 */
#ifndef TG_TEST_IO_FOLDER_H
#define TG_TEST_IO_FOLDER_H

#include "io_util.h"

#include "base/os/os.h"

#include <setjmp.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[64] = "/tmp/tgio-XXXXXX";
static char path[128], path_prev[160], path_b[128];

static inline int setup(void **state) {
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/a.tinygpt", folder);
    snprintf(path_prev, sizeof path_prev, "%s.prev", path);
    snprintf(path_b, sizeof path_b, "%s/b.tinygpt", folder);
    return 0;
}

static inline int clear_folder(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s/*", folder);
    tg_os_fault = NULL;
    return system(command);
}

static inline int teardown(void **state) {
    clear_folder(state);
    return rmdir(folder);
}

/* The smallest model, whose whole run is 8 KB; and one whose data is more than one chunk. */
static inline tg_model_config tiny(void) { return config_of(1, 1, 1, 1); }
static inline tg_model_config large(void) { return config_of(2, 64, 2, 8); }

static inline file_bytes saved(const tg_model_config *config, bool moments) {
    tg_ctx ctx;
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    if (model_save_v3(&ctx, path, config, moments, false) != TG_OK) {
        fail_msg("%s", ctx.message);
    }
    return bytes_read(path);
}

#endif
