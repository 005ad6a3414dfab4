/* SPDX-License-Identifier: Apache-2.0 */
/*
 * train_log.c - the log of a run, a line or a record a step (see train_log.h).
 */
#define _POSIX_C_SOURCE 200809L /* fseeko, getline, clock_gettime */
#include "train/train_log.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* --------------------------------------------------------------------------------- what is told
 */

/* The numbers of a step, once for all three forms. Losses are printed to the bit (decimals below
 * 0), timings as far as they can be told apart. */
typedef struct number {
    const char *key; /* of JSON and CSV */
    const char *tag; /* of TensorBoard */
    size_t at;       /* in tg_step_report; of pairs in tg_preferences */
    int decimals;
} number;
static const number numbers[] = {
    { "loss", "loss", offsetof(tg_step_report, loss), -1 },
    { "val", "val_loss", offsetof(tg_step_report, val_loss), -1 },
    { "lr", "lr", offsetof(tg_step_report, lr), -1 },
    { "grad_norm", "grad_norm", offsetof(tg_step_report, grad_norm), -1 },
    { "ms", "ms", offsetof(tg_step_report, ms), 3 },
    { "tok_per_s", "tok_per_s", offsetof(tg_step_report, tok_per_s), 1 },
    { "mfu", "mfu", offsetof(tg_step_report, share_of_peak), 4 },
    { "accuracy", "accuracy", offsetof(tg_preferences, accuracy), -1 },
    { "margin", "margin", offsetof(tg_preferences, margin), -1 },
    { "val_accuracy", "val_accuracy", offsetof(tg_preferences, val_accuracy), -1 },
    { "val_margin", "val_margin", offsetof(tg_preferences, val_margin), -1 },
};
enum { N_NUMBERS = 7, N_WITH_PAIRS = sizeof numbers / sizeof *numbers };

static int count_of(bool of_pairs) { return of_pairs ? N_WITH_PAIRS : N_NUMBERS; }

static double value_of(const tg_step_report *r, const tg_preferences *pairs, int i) {
    double value;
    memcpy(&value, (i < N_NUMBERS ? (const char *)r : (const char *)pairs) + numbers[i].at,
           sizeof value);
    return value;
}

static void put_number(tg_jout *j, const char *key, double value, int decimals) {
    if (decimals < 0) {
        tg_jout_double(j, key, value);
    } else {
        tg_jout_rounded(j, key, value, decimals);
    }
}

/* The hash goes out as a string: 64 bits do not fit into the doubles that most JSON readers have.
 */
void tg_trainlog_open_step(tg_jout *j, const tg_step_report *r, const tg_preferences *pairs) {
    char hash[20];
    snprintf(hash, sizeof hash, "%016" PRIx64, r->loss_hash);
    tg_jout_open(j, NULL, '{');
    tg_jout_int(j, "step", r->step);
    for (int i = 0; i < count_of(pairs); i++)
        put_number(j, numbers[i].key, value_of(r, pairs, i), numbers[i].decimals);
    tg_jout_text(j, "hash", hash);
    if (r->bits_per_byte > 0) tg_jout_double(j, "bits_per_byte", r->bits_per_byte);
    if (r->val_bits_per_byte > 0) tg_jout_double(j, "val_bits_per_byte", r->val_bits_per_byte);
    if (r->skipped) {
        tg_jout_bool(j, "skipped", true);
        tg_jout_text(j, "bad_tensor", r->bad_tensor);
    }
}

/* ------------------------------------------------------------------------------------------ CSV
 */

/* A row has a column for everything that a step can have. The whole line is what a file is known
 * by: rows of other columns cannot follow those that are there. */
enum { CSV_HEADER_BYTES = 256 };
static const char *csv_header(char out[CSV_HEADER_BYTES], bool of_pairs) {
    int n = snprintf(out, CSV_HEADER_BYTES, "step");
    for (int i = 0; i < count_of(of_pairs); i++) {
        n += snprintf(out + n, (size_t)(CSV_HEADER_BYTES - n), ",%s", numbers[i].key);
    }
    snprintf(out + n, (size_t)(CSV_HEADER_BYTES - n), ",hash,skipped,bad_tensor\n");
    return out;
}

/* What a step does not have is an empty field: readers of CSV know no null. The name of a tensor is
 * put in quotes, as RFC 4180 has them, whatever is in it. */
static void put_csv_row(FILE *f, const tg_step_report *r, const tg_preferences *pairs) {
    tg_jout j = tg_jout_to(f);
    tg_jout_int(&j, NULL, r->step);
    for (int i = 0; i < count_of(pairs); i++) {
        const double value = value_of(r, pairs, i);
        fputc(',', f);
        if (isfinite(value)) put_number(&j, NULL, value, numbers[i].decimals);
    }
    fprintf(f, ",%016" PRIx64 ",", r->loss_hash);
    if (r->skipped) {
        fputs("true,\"", f);
        for (const char *c = r->bad_tensor; *c; c++) {
            if (*c == '"') fputc('"', f);
            fputc(*c, f);
        }
        fputc('"', f);
    } else {
        fputc(',', f);
    }
    fputc('\n', f);
}

/* ----------------------------------------------------------------------------------- TensorBoard
 *
 * A file of TFRecords, each of them
 *
 *     uint64 n    uint32 masked CRC-32C of n    n bytes    uint32 masked CRC-32C of the bytes
 *
 * in little-endian order. The bytes are a message Event of TensorFlow's event.proto, of which these
 * fields are written:
 *
 *     double wall_time = 1;  int64 step = 2;  string file_version = 3;
 *     Summary summary = 5 { repeated Value value = 1 { string tag = 1; float simple_value = 2; } }
 *     SourceMetadata source_metadata = 10 { string writer = 1; }
 *
 * Fields may come in any order. The step comes first, where tg_trainlog_begin finds it, and the
 * first record begins with what never changes, by which a file is known as ours.
 */

enum { HEAD_BYTES = 12, CRC_BYTES = 4, EVENT_BYTES = 512 };
enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 }; /* how a field of protobuf is stored */
static const char file_version[] = "brain.Event:2", writer_name[] = "tinygpt";

typedef struct event {
    size_t n;
    unsigned char bytes[EVENT_BYTES]; /* ours have 200 at most */
} event;

/* Bit by bit: a record has some hundred bytes. The library has a quick one for its files, which is
 * no part of what a host sees: nobody but this log would call it. A test holds the two together. */
static uint32_t masked_crc(const void *bytes, size_t n_bytes) {
    const unsigned char *b = bytes;
    uint32_t crc = ~0u;
    for (size_t i = 0; i < n_bytes; i++) {
        crc ^= b[i];
        for (int k = 0; k < 8; k++) {
            crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78u : 0);
        }
    }
    crc = ~crc;
    return (crc >> 15 | crc << 17) + 0xA282EAD8u;
}

static void put_little_endian(unsigned char *out, uint64_t value, int n_bytes) {
    for (int i = 0; i < n_bytes; i++) {
        out[i] = (unsigned char)(value >> 8 * i);
    }
}

static uint64_t little_endian(const unsigned char *bytes, int n_bytes) {
    uint64_t value = 0;
    for (int i = n_bytes; i-- > 0;) {
        value = value << 8 | bytes[i];
    }
    return value;
}

static void add_varint(event *e, uint64_t value) {
    for (; value > 0x7F; value >>= 7) {
        e->bytes[e->n++] = (unsigned char)(value | 0x80);
    }
    e->bytes[e->n++] = (unsigned char)value;
}

static void add_key(event *e, int field, int kind) { add_varint(e, (uint64_t)(field << 3 | kind)); }

static void add_bytes(event *e, int field, const void *bytes, size_t n_bytes) {
    add_key(e, field, BYTES);
    add_varint(e, n_bytes);
    memcpy(e->bytes + e->n, bytes, n_bytes);
    e->n += n_bytes;
}

static void add_wall_time(event *e) {
    struct timespec now;
    uint64_t bits;
    clock_gettime(CLOCK_REALTIME, &now);
    const double seconds = (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
    memcpy(&bits, &seconds, sizeof bits);
    add_key(e, 1, FIXED64);
    put_little_endian(e->bytes + e->n, bits, 8);
    e->n += 8;
}

static void add_value(event *summary, const char *tag, double value) {
    event v = { 0 };
    const float narrow = (float)value;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    add_bytes(&v, 1, tag, strlen(tag));
    add_key(&v, 2, FIXED32);
    put_little_endian(v.bytes + v.n, bits, 4);
    v.n += 4;
    add_bytes(summary, 1, v.bytes, v.n);
}

/* What every file of ours begins with, time apart; the length is that of the whole record. */
static void first_event(event *e) {
    event source = { 0 };
    add_bytes(&source, 1, writer_name, sizeof writer_name - 1);
    add_bytes(e, 3, file_version, sizeof file_version - 1);
    add_bytes(e, 10, source.bytes, source.n);
}
enum { WALL_TIME_BYTES = 9 };

static void record_head(unsigned char head[HEAD_BYTES], size_t n_bytes) {
    put_little_endian(head, n_bytes, 8);
    put_little_endian(head + 8, masked_crc(head, 8), CRC_BYTES);
}

static void put_record(FILE *f, const event *e) {
    unsigned char head[HEAD_BYTES], tail[CRC_BYTES];
    record_head(head, e->n);
    put_little_endian(tail, masked_crc(e->bytes, e->n), CRC_BYTES);
    fwrite(head, 1, sizeof head, f);
    fwrite(e->bytes, 1, e->n, f);
    fwrite(tail, 1, sizeof tail, f);
}

/* Numbers that a step does not have are left out: TensorBoard draws a gap. */
static void put_step_event(FILE *f, const tg_step_report *r, const tg_preferences *pairs) {
    event e = { 0 }, summary = { 0 };
    add_key(&e, 2, VARINT);
    add_varint(&e, (uint64_t)r->step);
    add_wall_time(&e);
    for (int i = 0; i < count_of(pairs); i++) {
        const double value = value_of(r, pairs, i);
        if (isfinite(value)) add_value(&summary, numbers[i].tag, value);
    }
    if (r->skipped) add_value(&summary, "skipped", 1);
    add_bytes(&e, 5, summary.bytes, summary.n);
    put_record(f, &e);
}

/* The next record, if it is whole and no longer than ours are. */
static bool next_record(FILE *f, event *e) {
    unsigned char head[HEAD_BYTES], tail[CRC_BYTES];
    if (fread(head, 1, sizeof head, f) != sizeof head) return false;
    const uint64_t n = little_endian(head, 8);
    if (n == 0 || n > EVENT_BYTES || little_endian(head + 8, CRC_BYTES) != masked_crc(head, 8))
        return false;
    e->n = (size_t)n;
    return fread(e->bytes, 1, e->n, f) == e->n && fread(tail, 1, sizeof tail, f) == sizeof tail &&
           little_endian(tail, CRC_BYTES) == masked_crc(e->bytes, e->n);
}

/* The step that a record of put_step_event begins with; 0 if it is none of those. */
static int64_t step_of(const event *e) {
    uint64_t step = 0;
    if (e->bytes[0] != (2 << 3 | VARINT)) return 0;
    for (size_t i = 1; i < e->n && i <= 9; i++) { /* 63 bits at most */
        step |= (uint64_t)(e->bytes[i] & 0x7F) << 7 * (i - 1);
        if (e->bytes[i] < 0x80) return (int64_t)step;
    }
    return 0;
}

/* As kept_lines below, of records: the first has no step. */
static off_t kept_records(FILE *f, int64_t steps_done) {
    event e;
    off_t kept = 0;
    for (bool first = true; next_record(f, &e); first = false) {
        const int64_t step = step_of(&e);
        if (!first && (step < 1 || step > steps_done)) break;
        kept += (off_t)(HEAD_BYTES + e.n + CRC_BYTES);
    }
    return kept;
}

/* ------------------------------------------------------------------------------------- the forms
 */

tg_logform tg_trainlog_form(const char *path) {
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    const size_t n = strlen(name);
    if (n >= 4 && strcasecmp(name + n - 4, ".csv") == 0) return TG_LOG_CSV;
    return strstr(name, "tfevents") ? TG_LOG_EVENTS : TG_LOG_JSON;
}

void tg_trainlog_step(FILE *f, tg_logform form, const tg_step_report *r,
                      const tg_preferences *pairs) {
    if (form == TG_LOG_CSV) {
        put_csv_row(f, r, pairs);
    } else if (form == TG_LOG_EVENTS) {
        put_step_event(f, r, pairs);
    } else {
        tg_jout j = tg_jout_to(f);
        tg_trainlog_open_step(&j, r, pairs);
        tg_jout_close(&j);
        fputc('\n', f);
    }
    fflush(f); /* a crash loses at most what is being written */
}

/* What a file begins with before the first step. */
static void put_beginning(FILE *f, tg_logform form, bool of_pairs) {
    char header[CSV_HEADER_BYTES];
    if (form == TG_LOG_CSV) fputs(csv_header(header, of_pairs), f);
    if (form != TG_LOG_EVENTS) return;
    event e = { 0 };
    first_event(&e);
    add_wall_time(&e);
    put_record(f, &e);
}

/* Opens the file by the rule of its form, which is what its beginning is checked against. */
static tg_status open_by_rule(tg_context *ctx, const char *path, tg_logform form, bool of_pairs,
                              tg_outfile *out) {
    static const char json[] = "{\"step\":";
    char csv[CSV_HEADER_BYTES];
    tg_output_rule rule = { .kind = TG_OUTPUT_OTHER, .what = "the log of a run", .stream = true };
    unsigned char begins[HEAD_BYTES + EVENT_BYTES];
    rule.begins = form == TG_LOG_CSV ? csv_header(csv, of_pairs) : json;
    rule.begins_bytes = strlen(rule.begins);
    if (form == TG_LOG_CSV) rule.what = "the log of a run as CSV";
    if (form == TG_LOG_EVENTS) {
        event e = { 0 };
        first_event(&e);
        record_head(begins, e.n + WALL_TIME_BYTES);
        memcpy(begins + HEAD_BYTES, e.bytes, e.n);
        rule.what = "the log of a run for TensorBoard";
        rule.begins = (const char *)begins;
        rule.begins_bytes = HEAD_BYTES + e.n;
    }
    return tg_outfile_open(ctx, path, &rule, out);
}

/* --------------------------------------------------------------------------------- to be continued
 */

/* Is this a whole line of ours, for a step that the save holds? A row of CSV is whole if it has all
 * of its commas; no name of a tensor of ours has one. */
static bool is_kept(tg_logform form, const char *line, size_t n_bytes, int64_t steps_done) {
    static const char json[] = "{\"step\":", csv[] = "step,";
    const size_t head = form == TG_LOG_JSON ? sizeof json - 1 : 0;
    size_t commas = 0;
    for (size_t i = 0; i < n_bytes; i++) {
        commas += line[i] == ',';
    }
    if (n_bytes <= head || memcmp(line, json, head) != 0) return false;
    if (form == TG_LOG_JSON ? line[n_bytes - 1] != '}'
                            : commas != N_NUMBERS + 3 && commas != N_WITH_PAIRS + 3)
        return false;
    if (form == TG_LOG_CSV && memcmp(line, csv, sizeof csv - 1) == 0) return true; /* the header */
    char *end;
    errno = 0;
    const long long step = strtoll(line + head, &end, 10);
    return errno == 0 && *end == ',' && step >= 1 && step <= steps_done;
}

/* Steps only grow in a log, so what is to be cut is one piece at its end. */
size_t tg_trainlog_keep(tg_logform form, const char *text, size_t n_bytes, int64_t steps_done) {
    size_t kept = 0;
    while (kept < n_bytes) {
        const char *line = text + kept;
        const char *end = memchr(line, '\n', n_bytes - kept);
        if (!end || !is_kept(form, line, (size_t)(end - line), steps_done)) break;
        kept += (size_t)(end - line) + 1;
    }
    return kept;
}

/* The length to cut the log to, read line by line: a log may be longer than memory. A log of a run
 * that crashed can end in half a line; it is cut off with the steps that the save does not have.
 * What is not ours, from the first strange line on, is cut as well. */
static off_t kept_lines(FILE *f, tg_logform form, int64_t steps_done) {
    char *line = NULL;
    size_t cap = 0;
    off_t kept = 0;
    for (;;) {
        const ssize_t n = getline(&line, &cap, f);
        if (n < 0 || tg_trainlog_keep(form, line, (size_t)n, steps_done) != (size_t)n) break;
        kept += n;
    }
    free(line);
    return kept;
}

/* Copies the first bytes of the log that is there. */
static bool copy(FILE *from, FILE *to, off_t bytes) {
    char block[65536];
    for (off_t left = bytes; left > 0;) {
        const size_t n = left < (off_t)sizeof block ? (size_t)left : sizeof block;
        if (fread(block, 1, n, from) != n || fwrite(block, 1, n, to) != n) return false;
        left -= (off_t)n;
    }
    return true;
}

/* What is there of the steps that the save holds, if a log is; else the beginning of one. */
static bool take_over(const char *path, tg_logform form, int64_t steps_done, bool of_pairs,
                      FILE *to) {
    struct stat info;
    off_t keep = 0;
    bool right = true;
    if (steps_done > 0 && stat(path, &info) == 0 && S_ISREG(info.st_mode)) {
        FILE *from = fopen(path, "rb");
        if (!from) return false;
        keep = form == TG_LOG_EVENTS ? kept_records(from, steps_done)
                                     : kept_lines(from, form, steps_done);
        right = !ferror(from) && fseeko(from, 0, SEEK_SET) == 0 && copy(from, to, keep);
        fclose(from);
    }
    if (keep == 0) put_beginning(to, form, of_pairs);
    return right;
}

/* TensorBoard reads every file of a folder that has "tfevents" in its name: with the log before a
 * resume beside it, each step would be drawn twice. Only the very file that was continued goes. */
static void remove_previous(const char *path, const struct stat *old) {
    char previous[4096];
    struct stat info;
    const int n = snprintf(previous, sizeof previous, "%s.prev", path);
    if (n > 0 && n < (int)sizeof previous && lstat(previous, &info) == 0 &&
        info.st_ino == old->st_ino && info.st_dev == old->st_dev)
        unlink(previous);
}

/* Of two runs that write one log the later one would take the name from the other; a FIFO or a
 * device is nobody's alone. TensorBoard would read the lock of an event log as another log, so that
 * is the lock of a name with one letter less: events.out.tfevent.1.lock. */
static tg_status lock(tg_context *ctx, const char *path, tg_logform form, tg_lock **out) {
    struct stat info;
    char name[4096];
    *out = NULL;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode)) return TG_OK;
    if (form != TG_LOG_EVENTS || strlen(path) >= sizeof name) return tg_lock_new(ctx, path, out);
    memcpy(name, path, strlen(path) + 1);
    const size_t base = strrchr(name, '/') ? (size_t)(strrchr(name, '/') - name) : 0;
    for (char *word; (word = strstr(name + base, "tfevents")) != NULL;)
        memmove(word + 7, word + 8, strlen(word + 8) + 1);
    return tg_lock_new(ctx, name, out);
}

/* Written anew beside the old one and published when it has what is kept: a log is never half cut.
 */
tg_status tg_trainlog_begin(tg_context *ctx, const char *path, int64_t steps_done, bool of_pairs,
                            tg_outfile *out) {
    const tg_logform form = tg_trainlog_form(path);
    struct stat old;
    const bool continued = steps_done > 0 && stat(path, &old) == 0;
    tg_lock *mine;
    *out = (tg_outfile) { .ctx = ctx };
    tg_status s = lock(ctx, path, form, &mine);
    if (s != TG_OK) return s;
    s = open_by_rule(ctx, path, form, of_pairs, out);
    out->lock = mine;
    if (s != TG_OK) return s;
    if (!take_over(path, form, steps_done, of_pairs, out->file)) return TG_E_IO;
    s = tg_outfile_publish(out);
    if (s == TG_OK && continued && form == TG_LOG_EVENTS) remove_previous(path, &old);
    return s;
}
