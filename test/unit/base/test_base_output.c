/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_base_output.c - folders that are saved as a whole, files that grow, files that were read,
 * and locks: base/os/os_posix_output.c, with every operation failing in turn.
 */
#include "base/os/os.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char top[200];
static tg_ctx ctx;

static const char *at(const char *name) {
    static char paths[8][512];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", top, name);
    return path;
}

static void run(const char *format) {
    char command[1024];
    snprintf(command, sizeof command, format, top);
    assert_int_equal(system(command), 0);
}

static int begin(void **state) {
    (void)state;
    const char *base = getenv("TMPDIR");
    snprintf(top, sizeof top, "%s/tinygpt-output-XXXXXX", base ? base : "/tmp");
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    return mkdtemp(top) ? 0 : -1;
}

static int end(void **state) {
    (void)state;
    tg_os_fault = NULL;
    run("rm -rf '%s'");
    return 0;
}

static void put(const char *path, const char *text) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
    assert_int_equal(fclose(f), 0);
}

static bool holds(const char *path, const char *text) {
    char have[256] = "";
    FILE *f = fopen(path, "rb");
    if (!f) return false;
    have[fread(have, 1, sizeof have - 1, f)] = 0;
    fclose(f);
    return strcmp(have, text) == 0;
}

static unsigned count(const char *part) {
    unsigned n = 0;
    DIR *dir = opendir(top);
    for (const struct dirent *e; (e = readdir(dir));)
        n += e->d_name[0] != '.' && strstr(e->d_name, part);
    closedir(dir);
    return n;
}

/* -------------------------------------------------------------------------------------- folders */

static unsigned calls, failing;
static bool sticky;
static char operations[512];

static int answer(const char *operation, const char *path) {
    (void)path;
    const size_t n = strlen(operations);
    snprintf(operations + n, sizeof operations - n, "%s ", operation);
    calls++;
    return failing && (calls == failing || (sticky && calls > failing)) ? EIO : 0;
}

static tg_status save_one(const char *folder, const char *name, const char *text) {
    char path[512];
    tg_save *save;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    TG_TRY(tg_save_begin(&ctx, path, &save));
    tg_save_write(save, text, strlen(text));
    return tg_save_commit(save, false);
}

static tg_status save_folder(const char *text) {
    tg_save_folder *f;
    TG_TRY(tg_save_folder_begin(&ctx, at("model"), &f));
    tg_status s = save_one(tg_save_folder_temp(f), "a", text);
    if (s == TG_OK) s = save_one(tg_save_folder_temp(f), "b", text);
    if (s == TG_OK) return tg_save_folder_commit(f);
    tg_save_folder_abort(f);
    return s;
}

static bool is_whole(const char *name, const char *text) {
    char a[64], b[64];
    snprintf(a, sizeof a, "%s/a", name);
    snprintf(b, sizeof b, "%s/b", name);
    return holds(at(a), text) && holds(at(b), text);
}

static void lay_out(bool with_older) {
    tg_os_fault = NULL;
    run("rm -rf '%s'/model*");
    tg_ctx_clear(&ctx);
    if (with_older) assert_int_equal(save_folder("older"), TG_OK);
    assert_int_equal(save_folder("old"), TG_OK);
    assert_int_equal(count("model.prev"), with_older);
    calls = 0;
    operations[0] = 0;
}

static void a_folder_is_swapped_as_a_whole(void **state) {
    (void)state;
    lay_out(true);
    failing = 0;
    tg_os_fault = answer;
    assert_int_equal(save_folder("new"), TG_OK);
    tg_os_fault = NULL;
    assert_true(is_whole("model", "new") && is_whole("model.prev", "old"));
    assert_int_equal(count(""), 2);
    const char *one = "opendir open lock write fsync close rename open fsync ";
    char want[512];
    snprintf(want, sizeof want,
             "opendir mkdir open lock %s%sfsync rename rename rename rename open fsync ", one, one);
    assert_string_equal(operations, want);
}

/* After each fault, once and from then on: the old folder or the new one, and nothing beside, but
 * for what can be moved neither on nor back. */
static void every_operation_fails(void **state) {
    (void)state;
    for (int pass = 0; pass < 4; pass++) {
        sticky = pass & 1;
        const bool with_older = pass & 2;
        for (unsigned n = 1;; n++) {
            lay_out(with_older);
            failing = n;
            tg_os_fault = answer;
            const tg_status s = save_folder("new");
            tg_os_fault = NULL;
            if (calls < n) {
                assert_int_equal(s, TG_OK);
                assert_true(n > 20);
                break;
            }
            const bool fresh = is_whole("model", "new");
            assert_true(fresh || is_whole("model", "old"));
            if (s == TG_OK) { /* a lock that is refused is no failure */
                assert_true(fresh && is_whole("model.prev", "old"));
            } else if (fresh) {
                assert_non_null(strstr(ctx.message, "is saved, but"));
            } else if (with_older) {
                assert_true(is_whole("model.prev", "older"));
            }
            const bool told = strstr(ctx.message, "have it as") != NULL;
            if (!told) assert_int_equal(count(".tmp-"), 0);
            assert_true(s == TG_OK || (s == TG_E_IO && ctx.by_machine));
        }
    }
}

static void other_things_are_no_folders(void **state) {
    (void)state;
    tg_save_folder *f;
    put(at("file"), "text");
    assert_int_equal(tg_save_folder_begin(&ctx, at("file"), &f), TG_E_ARG);
    tg_ctx_clear(&ctx);
    assert_int_equal(tg_save_folder_begin(&ctx, ".", &f), TG_E_ARG);
    tg_ctx_clear(&ctx);
    assert_int_equal(symlink("nowhere", at("link")), 0);
    assert_int_equal(tg_save_folder_begin(&ctx, at("link"), &f), TG_E_IO);
    assert_true(holds(at("file"), "text"));
}

/* What a killed save left goes with the next one of the same name; what a live one has stays. */
static void leftovers_go(void **state) {
    (void)state;
    tg_save_folder *f;
    lay_out(false);
    assert_int_equal(mkdir(at("model.tmp-1"), 0777), 0);
    assert_int_equal(mkdir(at("model.tmp-1/inner"), 0777), 0);
    put(at("model.tmp-1/x"), "x");
    put(at("model.tmp-1/inner/y"), "y");
    assert_int_equal(tg_save_folder_begin(&ctx, at("model"), &f), TG_OK);
    assert_int_equal(count(".tmp-"), 1);
    assert_int_equal(save_folder("new"), TG_OK);
    assert_int_equal(count(".tmp-"), 1);
    tg_save_folder_abort(f);
    assert_int_equal(count(".tmp-"), 0);
    assert_true(is_whole("model", "new"));
}

/* ------------------------------------------------------------------------ growing, read, locked */

static void a_file_grows(void **state) {
    (void)state;
    tg_save *save;
    put(at("log"), "old\n");
    assert_int_equal(tg_save_begin(&ctx, at("log"), &save), TG_OK);
    tg_save_write(save, "one\n", 4);
    assert_true(holds(at("log"), "old\n"));
    assert_int_equal(tg_save_publish(save, true), TG_OK);
    assert_true(holds(at("log"), "one\n") && holds(at("log.prev"), "old\n"));
    tg_save_write(save, "two\n", 4);
    assert_true(holds(at("log"), "one\ntwo\n"));
    assert_int_equal(tg_save_commit(save, true), TG_OK);
    assert_true(holds(at("log"), "one\ntwo\n") && holds(at("log.prev"), "old\n"));
    assert_int_equal(count(""), 2);
}

static void what_was_read_is_not_replaced(void **state) {
    (void)state;
    tg_os_seen seen;
    tg_os_file *file;
    tg_save *save;
    put(at("in"), "text");
    put(at("other"), "text");
    assert_int_equal(link(at("in"), at("hard")), 0);
    assert_int_equal(symlink("in", at("soft")), 0);
    tg_os_seen_begin(&ctx, &seen);
    assert_int_equal(tg_os_file_open(&ctx, at("in"), &file), TG_OK);
    tg_os_file_close(file);
    const char *const names[] = { "in", "hard", "soft" };
    for (int i = 0; i < 3; i++) {
        tg_ctx_clear(&ctx);
        assert_int_equal(tg_save_begin(&ctx, at(names[i]), &save), TG_E_ARG);
        assert_non_null(strstr(ctx.message, "have a file of the input"));
    }
    tg_ctx_clear(&ctx);
    assert_int_equal(tg_save_begin(&ctx, at("other"), &save), TG_OK);
    tg_save_abort(save);
    tg_os_seen_end(&ctx);
    assert_int_equal(tg_save_begin(&ctx, at("in"), &save), TG_OK);
    tg_save_abort(save);
    assert_int_equal(count(".tmp-"), 0);
}

static tg_status save_text(const char *name, bool keep) {
    tg_save *save;
    tg_ctx_clear(&ctx);
    TG_TRY(tg_save_begin(&ctx, at(name), &save));
    tg_save_write(save, "new", 3);
    return tg_save_commit(save, keep);
}

/* path.prev is replaced as path is; what the record's context wrote, or goes on with, is its own;
 * and an inner record knows nothing of that. */
static void what_was_read_is_not_lost_to_prev(void **state) {
    (void)state;
    tg_os_seen outer, inner;
    tg_buf text;
    put(at("a"), "old");
    put(at("a.prev"), "older");
    assert_int_equal(symlink("a", at("soft")), 0);
    tg_buf_init(&text, &ctx.mem);
    tg_os_seen_begin(&ctx, &outer);
    assert_int_equal(tg_os_read_all(&ctx, at("a.prev"), 99, &text), TG_OK);
    const char *const names[] = { "a", "soft" };
    for (int i = 0; i < 2; i++) {
        assert_int_equal(save_text(names[i], true), TG_E_ARG);
        assert_non_null(strstr(ctx.message, "a.prev: want an output that is not read"));
        assert_true(holds(at("a"), "old") && holds(at("a.prev"), "older"));
    }
    assert_int_equal(save_text("b", true), TG_OK);
    assert_int_equal(tg_os_read_all(&ctx, at("b"), 99, &text), TG_OK);
    assert_int_equal(save_text("b", true), TG_OK);
    assert_int_equal(tg_os_read_all(&ctx, at("b.prev"), 99, &text), TG_OK);
    assert_int_equal(save_text("b", true), TG_OK);
    tg_os_seen_begin(&ctx, &inner);
    assert_int_equal(tg_os_read_all(&ctx, at("b"), 99, &text), TG_OK);
    assert_int_equal(save_text("b", true), TG_E_ARG);
    tg_os_seen_end(&ctx);
    assert_int_equal(save_text("b", true), TG_OK);
    tg_os_own(&ctx, at("a"));
    assert_int_equal(save_text("a", true), TG_OK);
    assert_true(holds(at("a.prev"), "old"));
    tg_os_seen_end(&ctx);
    assert_null(ctx.files.seen);
    tg_buf_deinit(&text);
    assert_int_equal(count(".tmp-"), 0);
}

static tg_status refuse(void *user, const char *temp) {
    assert_true(holds(temp, "new"));
    *(bool *)user = true;
    return tg_fail(&ctx, TG_E_FORMAT, "not as it should be");
}

/* The check comes before the rename: what it refuses never takes the place of the old file. */
static void what_is_wrong_is_never_renamed(void **state) {
    (void)state;
    bool asked = false;
    put(at("model"), "old");
    ctx.files.check = refuse;
    ctx.files.check_user = &asked;
    assert_int_equal(save_one(top, "model", "new"), TG_E_FORMAT);
    ctx.files.check = NULL;
    assert_true(asked && holds(at("model"), "old"));
    assert_int_equal(count(""), 1);
}

static int stop(void *user) {
    (void)user;
    return 1;
}

static void a_cancelled_save_leaves_nothing(void **state) {
    (void)state;
    put(at("model"), "old");
    ctx.files.cancel = stop;
    assert_int_equal(save_one(top, "model", "new"), TG_STOPPED);
    ctx.files.cancel = NULL;
    assert_true(holds(at("model"), "old"));
    assert_int_equal(count(""), 1);
}

/* Whoever writes a file of a run asks for the run's lock; its own process may. */
static void a_run_has_its_files(void **state) {
    (void)state;
    int ready[2];
    char one;
    const char *const of_it[] = { "run", "run.best", "run.prev", "run.best.prev", "run.svg" };
    const char *const others[] = { "ru", "run.json", "other.best", "best" };
    assert_int_equal(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
        tg_os_lock *mine;
        const bool right = tg_os_lock_new(&ctx, at("run"), &mine) == TG_OK &&
                           tg_os_want_unlocked(&ctx, at("run.best")) == TG_OK;
        if (write(ready[1], right ? "1" : "0", 1) == 1) pause();
        _exit(0);
    }
    assert_int_equal(read(ready[0], &one, 1), 1);
    assert_int_equal(one, '1');
    for (size_t i = 0; i < sizeof of_it / sizeof of_it[0]; i++) {
        char want[32];
        tg_ctx_clear(&ctx);
        assert_int_equal(tg_os_want_unlocked(&ctx, at(of_it[i])), TG_E_IO);
        snprintf(want, sizeof want, "process %ld at work", (long)child);
        assert_non_null(strstr(ctx.message, want));
    }
    tg_ctx_clear(&ctx);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_int_equal(tg_os_want_unlocked(&ctx, at(others[i])), TG_OK);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(tg_os_want_unlocked(&ctx, at("run.best")), TG_OK);
    close(ready[0]);
    close(ready[1]);
}

/* Another process is refused while the lock is held, and told by whom; a dead one blocks nobody. */
static void one_process_at_a_time(void **state) {
    (void)state;
    tg_os_lock *lock, *second;
    char who[64];
    assert_int_equal(tg_os_lock_new(&ctx, at("run"), &lock), TG_OK);
    assert_int_equal(tg_os_lock_new(&ctx, at("run"), &second), TG_E_IO);
    assert_null(second);
    snprintf(who, sizeof who, "have process %ld at work on it", (long)getpid());
    assert_non_null(strstr(ctx.message, who));
    tg_ctx_clear(&ctx);
    tg_os_lock_free(lock);
    assert_int_equal(count(""), 0);
    const pid_t child = fork();
    if (child == 0) {
        tg_os_lock *mine;
        _exit(tg_os_lock_new(&ctx, at("run"), &mine) == TG_OK ? 7 : 8); /* dies with it */
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    assert_int_equal(count("run.lock"), 1);
    assert_int_equal(tg_os_lock_new(&ctx, at("run"), &lock), TG_OK);
    tg_os_lock_free(lock);
    assert_int_equal(count(""), 0);
}

/* A process of another container may have our number; and one that only asks is in nobody's way. */
static void a_number_proves_nothing(void **state) {
    (void)state;
    char own[24];
    snprintf(own, sizeof own, "%ld\n", (long)getpid());
    put(at("run.lock"), own);
    const int fd = open(at("run.lock"), O_RDONLY);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    assert_int_equal(tg_os_want_unlocked(&ctx, at("run")), TG_E_IO);
    tg_ctx_clear(&ctx);
    assert_int_equal(flock(fd, LOCK_SH), 0);
    assert_int_equal(tg_os_want_unlocked(&ctx, at("run")), TG_OK);
    close(fd);
    assert_int_equal(unlink(at("run.lock")), 0);
}

static void streams_are_not_waited_for(void **state) {
    (void)state;
    tg_os_stream *s;
    assert_int_equal(mkfifo(at("fifo"), 0600), 0);
    assert_int_equal(tg_os_stream_new(&ctx, at("fifo"), &s), TG_E_IO);
    assert_non_null(strstr(ctx.message, "one without a reader"));
    tg_ctx_clear(&ctx);
    assert_int_equal(tg_os_stream_new(&ctx, "/dev/null", &s), TG_OK);
    assert_int_equal(tg_os_stream_write(&ctx, s, "text", 4), TG_OK);
    tg_os_stream_free(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_folder_is_swapped_as_a_whole, begin, end),
        cmocka_unit_test_setup_teardown(every_operation_fails, begin, end),
        cmocka_unit_test_setup_teardown(other_things_are_no_folders, begin, end),
        cmocka_unit_test_setup_teardown(leftovers_go, begin, end),
        cmocka_unit_test_setup_teardown(a_file_grows, begin, end),
        cmocka_unit_test_setup_teardown(what_was_read_is_not_replaced, begin, end),
        cmocka_unit_test_setup_teardown(what_was_read_is_not_lost_to_prev, begin, end),
        cmocka_unit_test_setup_teardown(what_is_wrong_is_never_renamed, begin, end),
        cmocka_unit_test_setup_teardown(a_cancelled_save_leaves_nothing, begin, end),
        cmocka_unit_test_setup_teardown(one_process_at_a_time, begin, end),
        cmocka_unit_test_setup_teardown(a_number_proves_nothing, begin, end),
        cmocka_unit_test_setup_teardown(a_run_has_its_files, begin, end),
        cmocka_unit_test_setup_teardown(streams_are_not_waited_for, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
