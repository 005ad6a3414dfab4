/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_base_os.c - files and saves on a real file system, with every operation failing in turn,
 * transferring half, being interrupted, or killing the process.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "base/os/os.h"
#include "base/time.h"
#include "fail_alloc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* ------------------------------------------------------------------------------------- fixture */

static char folder[200];

/* A path in the folder of this test; several stay valid at once. */
static const char *at(const char *name) {
    static char paths[8][512];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static int make_folder(void **state) {
    (void)state;
    const char *base = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/tinygpt-os-XXXXXX", base ? base : "/tmp");
    return mkdtemp(folder) ? 0 : -1;
}

static unsigned count_files(const char *part) {
    unsigned n = 0;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (const struct dirent *e; (e = readdir(dir));)
        n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..") && strstr(e->d_name, part);
    closedir(dir);
    return n;
}

static int empty_folder(void **state) {
    (void)state;
    tg_os_fault = NULL;
    DIR *dir = opendir(folder);
    for (const struct dirent *e; dir && (e = readdir(dir));) (void)remove(at(e->d_name));
    if (dir) closedir(dir);
    return 0;
}

static int remove_folder(void **state) {
    empty_folder(state);
    return rmdir(folder);
}

static void put(const char *path, const char *text) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    assert_int_equal(fclose(file), 0);
}

static bool holds(const char *path, const char *text) {
    char content[1024];
    FILE *file = fopen(path, "rb");
    if (!file) return false;
    const size_t n = fread(content, 1, sizeof content, file);
    fclose(file);
    return n == strlen(text) && memcmp(content, text, n) == 0;
}

/* --------------------------------------------------------------------------------------- faults */

static struct {
    const char *operation; /* NULL: any */
    unsigned at;           /* number of the call that gets the answer, from 1; 0: all */
    unsigned calls;
    bool sticky;
    bool die;
    int answer;
    char refused[16]; /* the first operation that got the answer */
} fault;

static int answer_fault(const char *operation, const char *path) {
    assert_non_null(path);
    if (fault.operation && strcmp(operation, fault.operation) != 0) return 0;
    fault.calls++;
    const bool now =
        fault.at == 0 || fault.calls == fault.at || (fault.sticky && fault.calls > fault.at);
    if (now && fault.die) kill(getpid(), SIGKILL);
    if (now && !fault.refused[0]) snprintf(fault.refused, sizeof fault.refused, "%s", operation);
    return now ? fault.answer : 0;
}

/* ---------------------------------------------------------------------------------------- reads */

static void reads_what_is_there(void **state) {
    (void)state;
    tg_ctx ctx;
    tg_os_file *file;
    char bytes[32] = { 0 };
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    put(at("text"), "0123456789");
    assert_int_equal(tg_os_file_open(&ctx, at("text"), &file), TG_OK);
    assert_int_equal(tg_os_file_bytes(file), 10);
    assert_string_equal(tg_os_file_path(file), at("text"));
    assert_int_equal(tg_os_file_read(&ctx, file, 3, bytes, 4), TG_OK);
    assert_string_equal(bytes, "3456");
    assert_int_equal(tg_os_file_read(&ctx, file, 10, bytes, 0), TG_OK);
    assert_int_equal(tg_os_file_read(&ctx, file, 7, bytes, 4), TG_E_IO);
    assert_non_null(strstr(ctx.message, "want 4 bytes at offset 7, have a file of 10 bytes"));
    assert_int_equal(tg_os_file_read(&ctx, file, UINT64_MAX, bytes, 1), TG_E_IO);
    assert_int_equal(tg_os_file_read(&ctx, file, 1, bytes, SIZE_MAX), TG_E_IO);

    /* It became shorter behind our back: an error, not a fault. */
    assert_int_equal(truncate(at("text"), 5), 0);
    tg_ctx_clear(&ctx);
    assert_int_equal(tg_os_file_read(&ctx, file, 0, bytes, 10), TG_E_IO);
    assert_non_null(strstr(ctx.message, "have an end at offset 5"));
    tg_os_file_close(file);
    tg_os_file_close(NULL);
}

static void reads_through_interruptions(void **state) {
    (void)state;
    tg_ctx ctx;
    tg_os_file *file;
    char bytes[100], want[101];
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    for (int i = 0; i < 100; i++) want[i] = (char)('a' + i % 26);
    want[100] = 0;
    put(at("text"), want);
    assert_int_equal(tg_os_file_open(&ctx, at("text"), &file), TG_OK);
    memset(&fault, 0, sizeof fault);
    fault.operation = "pread";
    fault.answer = TG_FAULT_SHORT; /* 50, 25, 13, ... bytes */
    tg_os_fault = answer_fault;
    assert_int_equal(tg_os_file_read(&ctx, file, 0, bytes, 100), TG_OK);
    assert_memory_equal(bytes, want, 100);
    assert_true(fault.calls > 5);
    fault.calls = 0;
    fault.at = 1;
    fault.answer = EINTR;
    memset(bytes, 0, sizeof bytes);
    assert_int_equal(tg_os_file_read(&ctx, file, 0, bytes, 100), TG_OK);
    assert_memory_equal(bytes, want, 100);
    fault.calls = 0;
    fault.answer = EIO;
    assert_int_equal(tg_os_file_read(&ctx, file, 0, bytes, 100), TG_E_IO);
    assert_non_null(strstr(ctx.message, "text: want to read it, have: Input/output error"));
    tg_os_file_close(file);
}

static void refuses_what_is_no_file(void **state) {
    (void)state;
    tg_ctx ctx;
    tg_os_file *file;
    alarm(120); /* none of them may block */
    assert_int_equal(mkfifo(at("fifo"), 0600), 0);
    assert_int_equal(symlink("loop", at("loop")), 0);
    const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    snprintf(address.sun_path, sizeof address.sun_path, "%s", at("socket"));
    assert_int_equal(bind(listener, (const struct sockaddr *)&address, sizeof address), 0);
    const struct {
        const char *path, *want;
    } cases[] = {
        { folder, "want a regular file, have a folder" },
        { at("fifo"), "want a regular file, have a FIFO" },
        { at("socket"), "want a regular file, have a socket" },
        { "/dev/zero", "want a regular file, have a character device" },
        { at("missing"), "No such file or directory" },
        { at("loop"), "Too many levels of symbolic links" },
        { "", "No such file or directory" },
        { at("missing/file"), "No such file or directory" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tg_ctx_init(&ctx, NULL, NULL, NULL);
        assert_int_equal(tg_os_file_open(&ctx, cases[i].path, &file), TG_E_IO);
        assert_null(file);
        assert_non_null(strstr(ctx.message, cases[i].want));
        assert_memory_equal(ctx.message, cases[i].path, strlen(cases[i].path));
    }
    close(listener);
    alarm(0);
}

static void reads_whole_files(void **state) {
    (void)state;
    tg_ctx ctx;
    tg_buf buf;
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    tg_buf_init(&buf, &ctx.mem);
    put(at("text"), "hello");
    tg_buf_puts(&buf, "> ");
    assert_int_equal(tg_os_read_all(&ctx, at("text"), 5, &buf), TG_OK);
    assert_string_equal(tg_buf_text(&buf), "> hello");
    assert_int_equal(tg_os_read_all(&ctx, at("text"), 4, &buf), TG_E_FORMAT);
    assert_non_null(strstr(ctx.message, "want at most 4 bytes, have 5"));
    put(at("empty"), "");
    assert_int_equal(tg_os_read_all(&ctx, at("empty"), 0, &buf), TG_OK);
    assert_string_equal(tg_buf_text(&buf), "> hello");
    tg_buf_deinit(&buf);
}

/* ---------------------------------------------------------------------------------------- saves */

#define OLD   "the old content"
#define OLDER "the content before that"
#define FRESH "the new content, in two pieces"

static tg_status save(tg_ctx *ctx, const char *path, const char *text, bool keep_previous) {
    tg_save *s;
    const size_t half = strlen(text) / 2;
    TG_TRY(tg_save_begin(ctx, path, &s));
    (void)tg_save_write(s, text, half); /* a failure sticks: commit reports it */
    (void)tg_save_write(s, text + half, strlen(text) - half);
    return tg_save_commit(s, keep_previous);
}

static void saves_and_keeps_the_previous(void **state) {
    (void)state;
    tg_ctx ctx;
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    assert_int_equal(save(&ctx, at("model"), "1", true), TG_OK);
    assert_true(holds(at("model"), "1"));
    assert_int_equal(count_files(""), 1);
    assert_int_equal(save(&ctx, at("model"), "2", false), TG_OK);
    assert_true(holds(at("model"), "2"));
    assert_int_equal(count_files(""), 1);
    for (int i = 3; i < 6; i++) {
        char now[8], before[8];
        snprintf(now, sizeof now, "%d", i);
        snprintf(before, sizeof before, "%d", i - 1);
        assert_int_equal(save(&ctx, at("model"), now, true), TG_OK);
        assert_true(holds(at("model"), now) && holds(at("model.prev"), before));
        assert_int_equal(count_files(""), 2);
    }
    /* path and path.prev are one file after a death between the two renames. */
    assert_int_equal(unlink(at("model.prev")), 0);
    assert_int_equal(link(at("model"), at("model.prev")), 0);
    assert_int_equal(save(&ctx, at("model"), "6", true), TG_OK);
    assert_true(holds(at("model"), "6") && holds(at("model.prev"), "5"));
    assert_int_equal(count_files(""), 2);
}

static void saves_large_and_many_pieces(void **state) {
    (void)state;
    tg_ctx ctx;
    tg_save *s;
    tg_os_file *file;
    enum { BYTES = 300000 };
    unsigned char *bytes = malloc(2 * BYTES);
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    for (size_t i = 0; i < BYTES; i++) bytes[i] = (unsigned char)(i * 31 + (i >> 8));
    for (size_t piece = 1; piece <= BYTES; piece = piece * 7 + 13) {
        assert_int_equal(tg_save_begin(&ctx, at("large"), &s), TG_OK);
        for (size_t i = 0; i < BYTES; i += piece) {
            const size_t n = BYTES - i < piece ? BYTES - i : piece;
            assert_int_equal(tg_save_write(s, bytes + i, n), TG_OK);
            assert_int_equal(tg_save_offset(s), i + n);
        }
        assert_int_equal(tg_save_commit(s, false), TG_OK);
        assert_int_equal(tg_os_file_open(&ctx, at("large"), &file), TG_OK);
        assert_int_equal(tg_os_file_bytes(file), BYTES);
        assert_int_equal(tg_os_file_read(&ctx, file, 0, bytes + BYTES, BYTES), TG_OK);
        assert_memory_equal(bytes, bytes + BYTES, BYTES);
        tg_os_file_close(file);
    }
    free(bytes);
}

static void aborts_without_a_trace(void **state) {
    (void)state;
    tg_ctx ctx;
    tg_save *s;
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    put(at("model"), OLD);
    assert_int_equal(tg_save_begin(&ctx, at("model"), &s), TG_OK);
    assert_int_equal(tg_save_write(s, "half", 4), TG_OK);
    assert_int_equal(count_files("model.tmp-"), 1);
    tg_save_abort(s);
    tg_save_abort(NULL);
    assert_true(holds(at("model"), OLD));
    assert_int_equal(count_files(""), 1);
}

static void replaces_regular_files_only(void **state) {
    (void)state;
    tg_ctx ctx;
    tg_save *s;
    struct stat facts;
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    assert_int_equal(tg_save_begin(&ctx, folder, &s), TG_E_IO);
    assert_null(s);
    assert_non_null(strstr(ctx.message, "want a regular file to replace, have a folder"));
    assert_int_equal(tg_save_begin(&ctx, "/dev/null", &s), TG_E_IO);
    assert_int_equal(tg_save_begin(&ctx, at("nowhere/model"), &s), TG_E_IO);
    assert_int_equal(tg_save_begin(&ctx, "", &s), TG_E_IO);
    assert_int_equal(tg_save_begin(&ctx, at(""), &s), TG_E_IO);

    /* A link is followed, permissions are kept. */
    put(at("real"), OLD);
    assert_int_equal(chmod(at("real"), 0640), 0);
    assert_int_equal(symlink("real", at("alias")), 0);
    assert_int_equal(save(&ctx, at("alias"), FRESH, true), TG_OK);
    assert_true(holds(at("real"), FRESH) && holds(at("real.prev"), OLD));
    assert_true(lstat(at("alias"), &facts) == 0 && S_ISLNK(facts.st_mode));
    assert_true(stat(at("real"), &facts) == 0 && (facts.st_mode & 07777) == 0640);
    assert_int_equal(symlink("gone", at("dangling")), 0);
    assert_int_equal(tg_save_begin(&ctx, at("dangling"), &s), TG_E_IO);
}

static void saves_in_the_current_folder(void **state) {
    (void)state;
    tg_ctx ctx;
    char before[1024];
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(folder), 0);
    const tg_status status = save(&ctx, "model", FRESH, true);
    assert_int_equal(chdir(before), 0);
    assert_int_equal(status, TG_OK);
    assert_true(holds(at("model"), FRESH));
}

static void removes_leftovers_of_the_dead_only(void **state) {
    (void)state;
    tg_ctx ctx;
    tg_save *first, *second;
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    char own[64];
    snprintf(own, sizeof own, "model.tmp-%ld", (long)getpid()); /* a dead one with our id */
    put(at(own), "x");
    put(at("model.tmp-999999"), "x");
    put(at("model.tmp-1-3"), "x"); /* process 1 lives, but does not hold the lock */
    put(at("model.prev.tmp-999998"), "x");
    put(at("model.tmp-12x"), "not ours");
    put(at("model.tmp-"), "not ours");
    put(at("other.tmp-999999"), "not ours");
    put(at("model.tmporary"), "not ours");
    assert_int_equal(tg_save_begin(&ctx, at("model"), &first), TG_OK);
    assert_int_equal(count_files(""), 5);
    assert_int_equal(tg_save_begin(&ctx, at("model"), &second), TG_OK); /* two at once */
    assert_int_equal(count_files("model.tmp-"), 4);
    assert_int_equal(tg_save_write(first, "first", 5), TG_OK);
    assert_int_equal(tg_save_write(second, "second", 6), TG_OK);
    assert_int_equal(tg_save_commit(second, true), TG_OK);
    assert_true(holds(at("model"), "second"));
    assert_int_equal(tg_save_commit(first, true), TG_OK);
    assert_true(holds(at("model"), "first") && holds(at("model.prev"), "second"));
    assert_int_equal(count_files(""), 6);
}

/* Where files cannot be locked, the process id has to do. */
static void removes_leftovers_without_locks(void **state) {
    (void)state;
    tg_ctx ctx;
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    put(at("model.tmp-999999"), "dead");
    put(at("model.tmp-1"), "alive");
    memset(&fault, 0, sizeof fault);
    fault.operation = "lock";
    fault.answer = ENOLCK;
    tg_os_fault = answer_fault;
    assert_int_equal(save(&ctx, at("model"), FRESH, true), TG_OK);
    tg_os_fault = NULL;
    assert_true(holds(at("model"), FRESH));
    assert_int_equal(count_files("tmp-"), 1);
    assert_true(holds(at("model.tmp-1"), "alive"));
}

/* ----------------------------------------------------------------------------------- fault sweep
 */

static void lay_out_old_files(void) {
    empty_folder(NULL);
    put(at("model"), OLD);
    put(at("model.prev"), OLDER);
}

/* Every operation of a save fails in turn; a real program would see the disk fill up or break. */
static void sweep(int answer, bool sticky) {
    tg_ctx ctx;
    unsigned n = 1;
    for (;; n++) {
        lay_out_old_files();
        tg_ctx_init(&ctx, NULL, NULL, NULL);
        memset(&fault, 0, sizeof fault);
        fault.at = n;
        fault.sticky = sticky;
        fault.answer = answer;
        tg_os_fault = answer_fault;
        const tg_status status = save(&ctx, at("model"), FRESH, true);
        tg_os_fault = NULL;
        if (fault.calls < n) {
            assert_int_equal(status, TG_OK);
            break;
        }
        assert_int_equal(count_files("tmp-"), 0);
        const bool fresh = holds(at("model"), FRESH);
        if (status == TG_OK) { /* a lock that is refused is no failure; all else is */
            assert_string_equal(fault.refused, "lock");
            assert_true(fresh && holds(at("model.prev"), OLD));
            continue;
        }
        assert_int_equal(status, TG_E_IO);
        assert_true(ctx.message[0] && ctx.code == TG_E_IO);
        if (fresh) { /* the one exception: the folder's fsync */
            assert_non_null(strstr(ctx.message, "is saved, but"));
        } else {
            assert_true(holds(at("model"), OLD));
            assert_true(holds(at("model.prev"), OLDER) || holds(at("model.prev"), OLD));
        }
    }
    assert_int_equal(n - 1, 11); /* as every_operation_has_its_turn has them */
}

/* The operations of a whole save, in their order. The last one puts the name on the disk: without
 * it a power cut could bring the old file back after the save was told to be done. */
static char turns[512];
static const char *last_path;

static int note_turn(const char *operation, const char *path) {
    const size_t n = strlen(turns);
    snprintf(turns + n, sizeof turns - n, "%s ", operation);
    last_path = strcmp(path, folder) == 0 ? folder : NULL;
    return 0;
}

static void every_operation_has_its_turn(void **state) {
    (void)state;
    tg_ctx ctx;
    lay_out_old_files();
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    turns[0] = 0;
    tg_os_fault = note_turn;
    assert_int_equal(save(&ctx, at("model"), FRESH, true), TG_OK);
    tg_os_fault = NULL;
    assert_string_equal(turns,
                        "opendir open lock write fsync close link rename rename open fsync ");
    assert_ptr_equal(last_path, folder);
}

static void every_operation_fails(void **state) {
    (void)state;
    sweep(EIO, false);
    sweep(EIO, true);
    sweep(ENOSPC, true);
    sweep(EDQUOT, false);
}

/* Interruptions and half transfers are no failures. */
static void every_operation_is_disturbed(void **state) {
    (void)state;
    static const struct {
        const char *operation;
        int answer;
        unsigned at;
    } cases[] = { { "write", EINTR, 1 },
                  { "write", TG_FAULT_SHORT, 0 },
                  { "fsync", EINTR, 1 },
                  { "open", EINTR, 1 },
                  { "lock", EINTR, 1 } };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tg_ctx ctx;
        lay_out_old_files();
        tg_ctx_init(&ctx, NULL, NULL, NULL);
        memset(&fault, 0, sizeof fault);
        fault.operation = cases[i].operation;
        fault.answer = cases[i].answer;
        fault.at = cases[i].at;
        tg_os_fault = answer_fault;
        assert_int_equal(save(&ctx, at("model"), FRESH, true), TG_OK);
        tg_os_fault = NULL;
        assert_true(fault.calls > 0);
        assert_true(holds(at("model"), FRESH) && holds(at("model.prev"), OLD));
        assert_int_equal(count_files(""), 2);
    }
}

static void works_without_hard_links(void **state) {
    (void)state;
    static const int reasons[] = { EPERM, EOPNOTSUPP, ENOSYS, EMLINK };
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++) {
        tg_ctx ctx;
        lay_out_old_files();
        tg_ctx_init(&ctx, NULL, NULL, NULL);
        memset(&fault, 0, sizeof fault);
        fault.operation = "link";
        fault.answer = reasons[i];
        tg_os_fault = answer_fault;
        assert_int_equal(save(&ctx, at("model"), FRESH, true), TG_OK);
        tg_os_fault = NULL;
        assert_true(holds(at("model"), FRESH) && holds(at("model.prev"), OLD));
        assert_int_equal(count_files(""), 2);
    }
}

static void every_allocation_fails(void **state) {
    (void)state;
    for (size_t n = 1;; n++) {
        test_alloc a = { .fail_at = n };
        const tg_mem mem = test_alloc_mem(&a);
        tg_ctx ctx;
        lay_out_old_files();
        put(at("model.tmp-999999"), "dead");
        tg_ctx_init(&ctx, &mem, NULL, NULL);
        const tg_status status = save(&ctx, at("model"), FRESH, true);
        assert_int_equal(a.live_pieces, 0);
        if (status == TG_OK) {
            assert_true(n > 3); /* the save, its names, the names of leftovers */
            break;
        }
        assert_int_equal(status, TG_E_MEMORY);
        assert_true(holds(at("model"), OLD) && holds(at("model.prev"), OLDER));
    }
}

/* The process is killed at each operation in turn; the next save tidies up. */
static void killed_at_every_operation(void **state) {
    (void)state;
    for (unsigned n = 1; n < 40; n++) {
        tg_ctx ctx;
        lay_out_old_files();
        tg_ctx_init(&ctx, NULL, NULL, NULL);
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            memset(&fault, 0, sizeof fault);
            fault.at = n;
            fault.die = true;
            tg_os_fault = answer_fault;
            _exit(save(&ctx, at("model"), FRESH, true) == TG_OK ? 0 : 1);
        }
        int result;
        assert_int_equal(waitpid(child, &result, 0), child);
        const bool finished = WIFEXITED(result);
        if (finished) assert_int_equal(WEXITSTATUS(result), 0);
        assert_true(holds(at("model"), FRESH) || (!finished && holds(at("model"), OLD)));
        assert_true(holds(at("model.prev"), OLD) || holds(at("model.prev"), OLDER));
        assert_int_equal(save(&ctx, at("model"), "after", true), TG_OK);
        assert_true(holds(at("model"), "after") && !holds(at("model.prev"), OLDER));
        assert_int_equal(count_files(""), 2);
        if (finished) {
            assert_true(n > 8);
            return;
        }
    }
    fail_msg("a save with 40 operations");
}

/* -------------------------------------------------------------------------------------- the rest
 */

static void paths(void **state) {
    (void)state;
    tg_ctx ctx;
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    put(at("file"), "x");
    assert_int_equal(tg_os_kind_of(at("file")), TG_OS_FILE);
    assert_int_equal(tg_os_kind_of(folder), TG_OS_FOLDER);
    assert_int_equal(tg_os_kind_of("/dev/null"), TG_OS_OTHER);
    assert_int_equal(tg_os_kind_of(at("none")), TG_OS_NONE);
    assert_int_equal(tg_os_make_folder(&ctx, at("sub")), TG_OK);
    assert_int_equal(tg_os_make_folder(&ctx, at("sub")), TG_OK);
    assert_int_equal(tg_os_make_folder(&ctx, at("file")), TG_E_IO);
    assert_int_equal(rmdir(at("sub")), 0);
    assert_int_equal(tg_os_remove(&ctx, at("file")), TG_OK);
    tg_ctx_clear(&ctx);
    assert_int_equal(tg_os_remove(&ctx, at("file")), TG_E_IO);
    assert_non_null(strstr(ctx.message, "file: want to remove it, have: No such file"));
}

static void machine(void **state) {
    (void)state;
    tg_ctx ctx;
    tg_os_cpus cpus;
    tg_os_memory memory;
    char name[128], tiny[4];
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    tg_os_cpus_get(&cpus);
    assert_true(cpus.online >= 1 && cpus.affinity >= 1 && cpus.affinity <= cpus.online);
    assert_true(cpus.usable >= 1 && cpus.usable <= cpus.affinity && cpus.quota >= 0);
    assert_int_equal(tg_os_memory_get(&ctx, &memory), TG_OK);
    assert_true(memory.total_bytes > 64u << 20 && memory.available_bytes <= memory.total_bytes);
    assert_true(memory.limit_bytes == 0 || memory.limit_bytes >= memory.total_bytes);
    assert_int_equal(tg_os_page_bytes() & (tg_os_page_bytes() - 1), 0);
    tg_os_cpu_name(name, sizeof name);
    assert_true(name[0] && !strchr(name, '\n'));
    tg_os_cpu_name(tiny, sizeof tiny);
    assert_int_equal(strlen(tiny), 3);

    /* The peak follows what is touched. */
    tg_block block;
    const uint64_t before = tg_os_peak_rss_bytes();
    assert_int_equal(tg_block_new(&ctx, 64u << 20, &block), TG_OK);
    memset(block.data, 1, block.bytes);
    assert_true(tg_os_peak_rss_bytes() >= before + (32u << 20));
    tg_block_free(&block);

    const double start_ms = tg_time_ms();
    while (tg_time_ms() - start_ms < 2) {
    }
    assert_true(tg_time_unix() > 1700000000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(reads_what_is_there, empty_folder),
        cmocka_unit_test_teardown(reads_through_interruptions, empty_folder),
        cmocka_unit_test_teardown(refuses_what_is_no_file, empty_folder),
        cmocka_unit_test_teardown(reads_whole_files, empty_folder),
        cmocka_unit_test_teardown(saves_and_keeps_the_previous, empty_folder),
        cmocka_unit_test_teardown(saves_large_and_many_pieces, empty_folder),
        cmocka_unit_test_teardown(aborts_without_a_trace, empty_folder),
        cmocka_unit_test_teardown(replaces_regular_files_only, empty_folder),
        cmocka_unit_test_teardown(saves_in_the_current_folder, empty_folder),
        cmocka_unit_test_teardown(removes_leftovers_of_the_dead_only, empty_folder),
        cmocka_unit_test_teardown(removes_leftovers_without_locks, empty_folder),
        cmocka_unit_test_teardown(every_operation_has_its_turn, empty_folder),
        cmocka_unit_test_teardown(every_operation_fails, empty_folder),
        cmocka_unit_test_teardown(every_operation_is_disturbed, empty_folder),
        cmocka_unit_test_teardown(works_without_hard_links, empty_folder),
        cmocka_unit_test_teardown(every_allocation_fails, empty_folder),
        cmocka_unit_test_teardown(killed_at_every_operation, empty_folder),
        cmocka_unit_test_teardown(paths, empty_folder),
        cmocka_unit_test(machine),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
