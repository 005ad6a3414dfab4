/* SPDX-License-Identifier: Apache-2.0 */
/*
 * train_data.c - see train_data.h.
 */
#define _XOPEN_SOURCE 700 /* lstat, strdup */
#include "train/train_data.h"

#include "print/format.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* LOOK_BYTES is how far into a file a zero is looked for, which a text has none of. */
enum { PATH_BYTES = 4096, DEPTH_MAX = 64, LOOK_BYTES = 8192, SHOWN = 3 };

static const size_t standard_input_max = (size_t)1 << 40;

/* Why a file of a folder is passed over. */
typedef enum reason { TAKEN, BINARY, EMPTY, HIDDEN, OWN, OTHER, N_REASONS } reason;
static const char *const reasons[N_REASONS] = { "",       "binary",      "empty",
                                                "hidden", "of this run", "no regular files" };

typedef struct gathering {
    tg_app *app;
    const char *option; /* that names the texts */
    const char *const *written;
    size_t n_written;
    tg_text *text; /* NULL: nothing yet */
    size_t n_seen, n_passed[N_REASONS];
    char passed[N_REASONS][128]; /* the first names */
} gathering;

/* ------------------------------------------------------------------------------------- one text */

static int add(gathering *g, tg_status status, tg_text *next) {
    if (status == TG_OK && g->text) status = tg_text_join(g->text, next);
    if (status != TG_OK) return tg_app_failed(g->app, g->app->ctx, status, TG_READING);
    if (!g->text) g->text = next;
    return TG_ARGS_GO_ON;
}

static int add_file(gathering *g, const char *path) {
    tg_text *next = NULL;
    const tg_status status = tg_text_open(g->app->ctx, path, &next);
    return add(g, status, next);
}

static int add_standard_input(gathering *g) {
    char *bytes;
    size_t n;
    tg_text *next = NULL;
    const int code = tg_app_read_file(g->app, "-", standard_input_max, &bytes, &n);
    if (code != TG_ARGS_GO_ON) return code;
    const tg_status status = tg_text_from_memory(g->app->ctx, bytes, n, &next);
    free(bytes);
    return add(g, status, next);
}

/* --------------------------------------------------------------------------------------- folders
 */

static bool looks_binary(const char *path) {
    char bytes[LOOK_BYTES];
    FILE *f = fopen(path, "rb");
    if (!f) return false; /* the library says why it cannot be opened */
    const size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    return memchr(bytes, 0, n) != NULL;
}

static bool is_own(const gathering *g, const char *path) {
    for (size_t i = 0; i < g->n_written; i++)
        if (g->written[i] && g->written[i][0] && tg_app_same_file(g->written[i], path)) return true;
    return false;
}

static reason look_at(const gathering *g, const char *path, const struct stat *info) {
    if (!S_ISREG(info->st_mode)) return OTHER;
    if (info->st_size == 0) return EMPTY;
    if (is_own(g, path)) return OWN;
    return looks_binary(path) ? BINARY : TAKEN;
}

static void pass_over(gathering *g, reason why, const char *name) {
    char safe[48];
    const size_t used = strlen(g->passed[why]);
    if (g->n_passed[why]++ < SHOWN)
        snprintf(g->passed[why] + used, sizeof g->passed[why] - used, "%s%s", used ? ", " : "",
                 tg_fmt_safe(safe, sizeof safe, name));
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names of a folder, sorted; the caller frees them. False: see errno. */
static bool names_of(const char *folder, char ***out, size_t *n) {
    DIR *d = opendir(folder);
    size_t room = 0;
    *out = NULL;
    *n = 0;
    if (!d) return false;
    bool fine = true;
    for (const struct dirent *e; fine && (errno = 0, e = readdir(d)) != NULL;) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        if (*n == room) {
            room = 2 * room + 64;
            char **grown = realloc(*out, room * sizeof **out);
            if (grown) *out = grown;
            fine = grown != NULL;
        }
        if (fine) fine = ((*out)[*n] = strdup(e->d_name)) != NULL;
        *n += fine;
    }
    fine = fine && errno == 0;
    closedir(d);
    if (*n) qsort(*out, *n, sizeof **out, by_name);
    return fine;
}

static int add_folder(gathering *g, const char *folder, int depth);

/* A link to a file is the file; one to a folder is passed over, since it may lead back here. */
static int add_member(gathering *g, const char *folder, const char *name, int depth) {
    char path[PATH_BYTES];
    struct stat link, info;
    if ((size_t)snprintf(path, sizeof path, "%s%s%s", folder,
                         folder[strlen(folder) - 1] == '/' ? "" : "/", name) >= sizeof path) {
        tg_app_error(g->app, "%s %s: the name of a file in it is too long", g->option, folder);
        return TG_EXIT_USAGE;
    }
    if (name[0] == '.') {
        pass_over(g, HIDDEN, name);
        return TG_ARGS_GO_ON;
    }
    if (lstat(path, &link) != 0 || stat(path, &info) != 0) {
        const int code = tg_app_errno_code(errno);
        tg_app_error(g->app, "%s %s: %s", g->option, path, strerror(errno));
        return code;
    }
    if (S_ISDIR(info.st_mode) && !S_ISLNK(link.st_mode)) return add_folder(g, path, depth + 1);
    g->n_seen++;
    const reason why = look_at(g, path, &info);
    if (why == TAKEN) return add_file(g, path);
    pass_over(g, why, name);
    return TG_ARGS_GO_ON;
}

static int add_folder(gathering *g, const char *folder, int depth) {
    char **names;
    size_t n;
    int code = TG_ARGS_GO_ON;
    if (depth > DEPTH_MAX) {
        tg_app_error(g->app, "%s %s: want at most %d folders in each other", g->option, folder,
                     DEPTH_MAX);
        return TG_EXIT_USAGE;
    }
    if (!names_of(folder, &names, &n)) {
        code = tg_app_errno_code(errno);
        tg_app_error(g->app, "%s %s: %s", g->option, folder, strerror(errno));
    }
    for (size_t i = 0; i < n; i++) {
        if (code == TG_ARGS_GO_ON) code = add_member(g, folder, names[i], depth);
        free(names[i]);
    }
    free(names);
    return code;
}

/* ------------------------------------------------------------------------------------ everything
 */

/* mix NULL, or of the items of the list. */
static int add_all(gathering *g, const tg_args_list *list, tg_mix_part *mix) {
    for (size_t i = 0; i < list->n; i++) {
        const char *path = list->item[i];
        struct stat info;
        int code;
        if (strcmp(path, "-") == 0)
            code = add_standard_input(g);
        else if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
            code = add_folder(g, path, 0);
        else
            code = add_file(g, path);
        if (code != TG_ARGS_GO_ON) return code;
        if (!mix) continue;
        mix[i].end = tg_text_bytes(g->text);
        if (mix[i].end > (i ? mix[i - 1].end : 0)) continue;
        tg_app_error(g->app, "%s %s: want a text in it, as a part of the mix, have 0 bytes",
                     g->option, path);
        return TG_EXIT_USAGE;
    }
    return TG_ARGS_GO_ON;
}

static void say_passed(const gathering *g) {
    FILE *f = g->app->out.file;
    for (int i = BINARY; i < N_REASONS; i++)
        if (g->n_passed[i])
            fprintf(f, "  %-9s %s: %zu (%s%s)\n", "skipped", reasons[i], g->n_passed[i],
                    g->passed[i], g->n_passed[i] > SHOWN ? ", .." : "");
}

int tg_traindata_open(tg_app *app, const char *option, const tg_args_list *data,
                      const tg_args_list *val, tg_mix_part *mix, const char *const *written,
                      size_t n_written, bool quiet, tg_text **out) {
    gathering g = { .app = app, .option = option, .written = written, .n_written = n_written };
    int code = add_all(&g, data, mix);
    const uint64_t train_bytes = tg_text_bytes(g.text);
    if (code == TG_ARGS_GO_ON && !g.text) {
        tg_app_error(app, "%s %s: want a text in it, have %zu files that are none", option,
                     data->item[0], g.n_seen);
        code = TG_EXIT_USAGE;
    }
    if (code == TG_ARGS_GO_ON && val->n) {
        code = add_all(&g, val, NULL);
        if (code == TG_ARGS_GO_ON && tg_text_bytes(g.text) == train_bytes) {
            tg_app_error(app, "--val-data %s: want a text, have 0 bytes", val->item[0]);
            code = TG_EXIT_USAGE;
        }
        const tg_status status =
            code == TG_ARGS_GO_ON ? tg_text_hold_back(g.text, train_bytes) : TG_OK;
        if (status != TG_OK) code = tg_app_failed(app, app->ctx, status, TG_READING);
    }
    if (code == TG_ARGS_GO_ON && mix) {
        const tg_status status = tg_text_mix(g.text, mix, data->n);
        if (status != TG_OK) code = tg_app_failed(app, app->ctx, status, TG_READING);
    }
    if (code == TG_ARGS_GO_ON && !quiet) say_passed(&g);
    if (code != TG_ARGS_GO_ON) tg_text_free(g.text);
    *out = code == TG_ARGS_GO_ON ? g.text : NULL;
    return code;
}

/* ------------------------------------------------------------------------------------------- mix
 */

int tg_traindata_mix(tg_app *app, const char *text, const tg_args_list *data, tg_mix_part **out) {
    tg_mix_part *mix = *out = calloc(data->n, sizeof *mix);
    size_t n = 0;
    if (!mix) return tg_app_failed(app, NULL, TG_E_MEMORY, TG_READING);
    for (const char *at = text;; n++) {
        char *end;
        const double weight = strtod(at, &end);
        if (n == data->n || end == at || !(weight > 0 && weight <= 1e9)) break;
        mix[n].weight = weight;
        if (*end == '\0' && n + 1 == data->n) return TG_ARGS_GO_ON;
        if (*end != ',') break;
        at = end + 1;
    }
    free(mix);
    *out = NULL;
    return tg_args_refuse(&app->args,
                          "--mix: want a weight above 0 for each of the %zu --data, divided by "
                          "commas, have %.60s",
                          data->n, text);
}

void tg_traindata_tell_mix(FILE *f, const tg_args_list *data, const tg_mix_part *mix,
                           double epochs) {
    double sum = 0;
    for (size_t i = 0; i < data->n; i++) sum += mix[i].weight;
    const double all = (double)mix[data->n - 1].end;
    fprintf(f, "  %-9s", "mix");
    for (size_t i = 0; i < data->n; i++) {
        char safe[256];
        const double share = mix[i].weight / sum;
        const double bytes = (double)(mix[i].end - (i ? mix[i - 1].end : 0));
        fprintf(f, "%s %s %.3g %%", i ? "," : "", tg_fmt_safe(safe, sizeof safe, data->item[i]),
                100 * share);
        if (epochs > 0) fprintf(f, " (%.3g times)", epochs * share * all / bytes);
    }
    fputc('\n', f);
}
