/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_io_save.c - files on machines that fail: no memory, full disks, broken ones, and the file
 * before the last one as a way out.
 */
#include "io_folder.h"

#include "fail_alloc.h"
#include "inspect/inspect.h"

#include <errno.h>
#include <sys/stat.h>

/* ----------------------------------------------------------------------------- failing machines */

/* Saves, opens, checks, describes, compares, opens the newest: everything that allocates. */
static tg_status use_everything(tg_ctx *ctx) {
    const tg_model_config config = tiny();
    tg_file *f;
    bool flag;
    tg_meta meta;
    TG_TRY(model_save_v3(ctx, path, &config, true, true));
    TG_TRY(check_file(ctx, path));
    TG_TRY(tg_inspect_file_info(ctx, path, true, NULL, NULL));
    TG_TRY(tg_inspect_file_info(ctx, path, false, NULL, NULL));
    TG_TRY(tg_io_compare(ctx, path, path, &flag, NULL, NULL));
    TG_TRY(tg_io_convert(ctx, path, path_b, TG_FILE_V2_INT4));
    TG_TRY(tg_file_open_newest(ctx, path, &f, &flag));
    const tg_status status = tg_meta_read(f, &meta);
    tg_file_close(f);
    return status;
}

static void survives_failing_allocations(void **state) {
    (void)state;
    const tg_model_config config = tiny();
    for (size_t sticky = 0; sticky < 2; sticky++) {
        bool done = false;
        size_t i = 1;
        for (; !done; i++) {
            bytes_free(&(file_bytes) { saved(&config, true).data, 0 });
            test_alloc a = { .fail_at = i, .sticky = sticky };
            const tg_mem mem = test_alloc_mem(&a);
            tg_ctx ctx;
            tg_ctx_init(&ctx, &mem, NULL, NULL);
            const tg_status status = use_everything(&ctx);
            done = a.requests < i;
            assert_int_equal(status, done ? TG_OK : TG_E_MEMORY);
            assert_int_equal(ctx.code, status);
            assert_int_equal(a.live_pieces, 0);
            tg_ctx_init(&ctx, NULL, NULL, NULL);
            assert_int_equal(check_file(&ctx, path), TG_OK); /* old or new, always whole */
        }
        assert_true(i > 50);
    }
}

static size_t fault_countdown; /* the operation that fails; 0: none */
static const char *fault_name; /* only operations of this name count */
static int fault_error;

static int fault(const char *operation, const char *name) {
    (void)name;
    if (fault_name && strcmp(operation, fault_name) != 0) {
        return 0;
    }
    return fault_countdown && --fault_countdown == 0 ? fault_error : 0;
}

/* The n-th operation of a kind fails, for every n and kind, while a run is saved over an older one.
 */
static void keeps_the_old_file_when_saving_fails(void **state) {
    (void)state;
    static const char *const operations[] = { "open",   "write", "fsync",   "close", "link",
                                              "rename", "fstat", "opendir", "lock",  "unlink" };
    enum { NEEDED = 6 }; /* without these there is no save; the others are a help */
    static const int errors[] = { EIO, ENOSPC, EDQUOT, EACCES };
    const tg_model_config old_config = tiny(), new_config = large();
    file_bytes new_file = saved(&new_config, true);
    file_bytes old_file = saved(&old_config, true);
    size_t n_failed = 0;
    for (size_t op = 0; op < sizeof operations / sizeof operations[0]; op++) {
        for (size_t n = 1; n < 200; n++) {
            tg_ctx ctx;
            tg_ctx_init(&ctx, NULL, NULL, NULL);
            bytes_write(path, old_file);
            fault_name = operations[op];
            fault_error = errors[n % 4];
            fault_countdown = n;
            tg_os_fault = fault;
            const tg_status status = model_save_v3(&ctx, path, &new_config, true, true);
            tg_os_fault = NULL;
            const bool reached = fault_countdown == 0;
            file_bytes b = bytes_read(path);
            const bool is_old = b.n == old_file.n && memcmp(b.data, old_file.data, b.n) == 0;
            const bool is_new = b.n == new_file.n && memcmp(b.data, new_file.data, b.n) == 0;
            assert_true(is_old || is_new);
            if (status == TG_OK) {
                assert_true(is_new && !(reached && op < NEEDED));
            } else {
                assert_int_equal(status, TG_E_IO);
                assert_true(reached && ctx.message[0]);
                /* Only the folder's fsync comes after the file is in place, and says so. */
                assert_true(is_old || strstr(ctx.message, "fsync of the folder"));
                n_failed++;
            }
            bytes_free(&b);
            char command[160];
            snprintf(command, sizeof command, "ls %s | grep -c tmp > /dev/null", folder);
            assert_true(status != TG_OK || system(command) != 0); /* nothing is left behind */
            if (!reached) {
                break;
            }
        }
    }
    assert_true(n_failed > 20);
    bytes_free(&old_file);
    bytes_free(&new_file);
}

/* Short writes and interrupted ones are no failures. */
static void goes_on_after_short_writes(void **state) {
    (void)state;
    const tg_model_config config = large();
    file_bytes want = saved(&config, true);
    static const int errors[] = { TG_FAULT_SHORT, EINTR };
    for (size_t k = 0; k < 2; k++) {
        for (size_t n = 1; n < 20; n++) {
            tg_ctx ctx;
            tg_ctx_init(&ctx, NULL, NULL, NULL);
            fault_name = "write";
            fault_error = errors[k];
            fault_countdown = n;
            tg_os_fault = fault;
            assert_int_equal(model_save_v3(&ctx, path, &config, true, false), TG_OK);
            tg_os_fault = NULL;
            file_bytes b = bytes_read(path);
            assert_int_equal(b.n, want.n);
            assert_memory_equal(b.data, want.data, b.n);
            bytes_free(&b);
        }
    }
    bytes_free(&want);
}

static void reports_failing_reads(void **state) {
    (void)state;
    const tg_model_config config = large();
    file_bytes b = saved(&config, true);
    static const char *const operations[] = { "open", "fstat", "pread" };
    for (size_t op = 0; op < 3; op++) {
        for (size_t n = 1;; n++) {
            test_alloc a = { 0 };
            const tg_mem mem = test_alloc_mem(&a);
            tg_ctx ctx;
            tg_ctx_init(&ctx, &mem, NULL, NULL);
            fault_name = operations[op];
            fault_error = EIO;
            fault_countdown = n;
            tg_os_fault = fault;
            const tg_status status = check_file(&ctx, path);
            tg_os_fault = NULL;
            assert_int_equal(a.live_pieces, 0);
            assert_int_equal(status, fault_countdown ? TG_OK : TG_E_IO);
            if (fault_countdown) {
                assert_true(op < 2 || n > 8);
                break;
            }
            assert_non_null(strstr(ctx.message, path));
        }
    }
    bytes_free(&b);
}

/* A file that becomes shorter while it is open is an error, not a signal. */
static void survives_a_shrinking_file(void **state) {
    (void)state;
    const tg_model_config config = large();
    file_bytes b = saved(&config, true);
    tg_ctx ctx;
    tg_file *f;
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    assert_int_equal(tg_file_open(&ctx, path, &f), TG_OK);
    assert_int_equal(truncate(path, 5000), 0);
    assert_int_equal(tg_file_check_all(f), TG_E_IO);
    tg_file_close(f);
    bytes_free(&b);
}

static void refuses_what_is_no_file(void **state) {
    (void)state;
    tg_ctx ctx;
    tg_file *f;
    bool used_prev;
    char fifo[160];
    snprintf(fifo, sizeof fifo, "%s/fifo", folder);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    const char *const names[] = { folder, fifo, "/dev/zero", "/dev/null", "/no/such/file", "" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        tg_ctx_init(&ctx, NULL, NULL, NULL);
        assert_int_equal(tg_file_open(&ctx, names[i], &f), TG_E_IO);
        assert_null(f);
        tg_ctx_init(&ctx, NULL, NULL, NULL);
        assert_int_equal(tg_file_open_newest(&ctx, names[i], &f, &used_prev), TG_E_IO);
        assert_null(f);
        assert_false(used_prev);
    }
}

/* ----------------------------------------------------------------------------------- the newest */

static char log_text[2 * TG_MESSAGE_BYTES];

static void keep_log(void *user, int level, const char *text) {
    (void)user;
    assert_int_equal(level, TG_LOG_WARNING);
    snprintf(log_text, sizeof log_text, "%s", text);
}

/* Which of the two was opened: 'n' newest, 'p' previous, '-' neither. */
static char newest(char message[TG_MESSAGE_BYTES]) {
    tg_ctx ctx;
    tg_file *f;
    bool used_prev;
    log_text[0] = 0;
    tg_ctx_init(&ctx, NULL, keep_log, NULL);
    const tg_status status = tg_file_open_newest(&ctx, path, &f, &used_prev);
    assert_true((status == TG_OK) == (f != NULL));
    assert_true((log_text[0] != 0) == used_prev);
    assert_int_equal(ctx.code, status);
    memcpy(message, ctx.message, TG_MESSAGE_BYTES);
    const char answer = status != TG_OK ? '-' : used_prev ? 'p' : 'n';
    if (f) { /* two configurations tell the two files apart */
        assert_int_equal(f->config.width, answer == 'p' ? 1 : 64);
    }
    tg_file_close(f);
    return answer;
}

static void falls_back_to_the_previous_file(void **state) {
    (void)state;
    char message[TG_MESSAGE_BYTES];
    const tg_model_config first = tiny(), second = large();
    tg_ctx ctx;
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    assert_int_equal(newest(message), '-'); /* nothing at all */
    assert_null(strstr(message, ".prev"));
    assert_int_equal(model_save_v3(&ctx, path, &first, true, true), TG_OK);
    assert_int_equal(access(path_prev, F_OK), -1);
    assert_int_equal(model_save_v3(&ctx, path, &second, true, true), TG_OK);
    assert_int_equal(newest(message), 'n');

    file_bytes good = bytes_read(path), old = bytes_read(path_prev);
    assert_non_null(old.data);
    file_bytes b = bytes_of(good.data, good.n);
    /* Damage of every kind: a bit in the last chunk, in the header, a cut, nothing, another file.
     */
    b.data[b.n - 200] ^= 1;
    bytes_write(path, b);
    assert_int_equal(newest(message), 'p');
    assert_non_null(strstr(log_text, path_prev));
    assert_non_null(strstr(log_text, "CRC"));
    bytes_write(path, (file_bytes) { good.data, good.n / 2 });
    assert_int_equal(newest(message), 'p');
    bytes_write(path, (file_bytes) { good.data, 0 });
    assert_int_equal(newest(message), 'p');
    bytes_write(path, (file_bytes) { (uint8_t *)(uintptr_t)"hello, world", 12 });
    assert_int_equal(newest(message), 'p');
    assert_int_equal(unlink(path), 0);
    assert_int_equal(newest(message), 'p');
    /* A file of a later version is no damage. */
    memcpy(b.data, good.data, good.n);
    tg_put_u32(b.data + 8, 4);
    v3_repair(b.data, b.n);
    bytes_write(path, b);
    assert_int_equal(newest(message), '-');
    assert_non_null(strstr(message, "needs tinygpt"));
    /* Both damaged: the message names both, and what is wrong with each. Even the hash counts. */
    bytes_write(path, (file_bytes) { good.data, good.n - 1 });
    old.data[old.n - 1] ^= 1;
    bytes_write(path_prev, old);
    assert_int_equal(newest(message), '-');
    assert_non_null(strstr(message, "file length"));
    assert_non_null(strstr(message, ".prev: byte"));
    assert_non_null(strstr(message, "SHA-256"));
    /* The newest one is whole: what lies beside it does not matter. */
    bytes_write(path, good);
    assert_int_equal(newest(message), 'n');
    bytes_free(&good);
    bytes_free(&old);
    bytes_free(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(survives_failing_allocations, clear_folder),
        cmocka_unit_test_teardown(keeps_the_old_file_when_saving_fails, clear_folder),
        cmocka_unit_test_teardown(goes_on_after_short_writes, clear_folder),
        cmocka_unit_test_teardown(reports_failing_reads, clear_folder),
        cmocka_unit_test_teardown(survives_a_shrinking_file, clear_folder),
        cmocka_unit_test_teardown(refuses_what_is_no_file, clear_folder),
        cmocka_unit_test_teardown(falls_back_to_the_previous_file, clear_folder),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
