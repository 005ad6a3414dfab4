/* SPDX-License-Identifier: Apache-2.0 */
/*
 * site.c - reads a folder into the table of files, and looks files up (see site.h).
 */
#define _XOPEN_SOURCE 700 /* lstat, opendir, strdup */
#include "server/site.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Limits of a folder that somebody names by mistake: a home folder should end in a message soon. */
enum { FILES_MAX = 4096, DEPTH_MAX = 8, PATH_BYTES = 4096 };
#define SITE_BYTES_MAX ((uint64_t)512 << 20)

/* Browsers compile a module while it arrives only if it comes as application/wasm, and under
 * nosniff they run no script of another type. */
static const struct media_type {
    const char *end, *type;
} types[] = {
    { ".html", "text/html; charset=utf-8" },
    { ".js", "text/javascript; charset=utf-8" },
    { ".mjs", "text/javascript; charset=utf-8" },
    { ".css", "text/css; charset=utf-8" },
    { ".json", "application/json" },
    { ".map", "application/json" },
    { ".webmanifest", "application/manifest+json" },
    { ".wasm", "application/wasm" },
    { ".svg", "image/svg+xml" },
    { ".png", "image/png" },
    { ".ico", "image/x-icon" },
    { ".woff2", "font/woff2" },
    { ".txt", "text/plain; charset=utf-8" },
};

const char *tg_site_type(const char *name) {
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < sizeof types / sizeof types[0]; i++) {
        if (!strcmp(dot, types[i].end)) return types[i].type;
    }
    return "application/octet-stream";
}

/* Entries move when the table grows, so an address from here is good up to the next call; requests
 * see the table only when it is whole. */
tg_site_file *tg_site_add(tg_site *site) {
    if (site->n == site->cap) {
        const size_t cap = site->cap ? 2 * site->cap : 32;
        tg_site_file *files = realloc(site->files, cap * sizeof *files);
        if (!files) return NULL;
        site->files = files;
        site->cap = cap;
    }
    tg_site_file *file = &site->files[site->n++];
    memset(file, 0, sizeof *file);
    return file;
}

/* A few dozen entries: a loop is as good as anything. Names are compared byte by byte, since there
 * is no other spelling of one that would have to be found: "/../x" is just not in the table. */
const tg_site_file *tg_site_find(const tg_site *site, const char *path) {
    if (!strcmp(path, "/")) path = "/index.html";
    for (size_t i = 0; i < site->n; i++) {
        if (!strcmp(path, site->files[i].path)) return &site->files[i];
    }
    return NULL;
}

/* Texts and bytes are const because those of a built page lie in read-only memory; a folder's are
 * ours. */
void tg_site_free(tg_site *site) {
    for (size_t i = 0; site->owns && i < site->n; i++) {
        free((void *)(uintptr_t)site->files[i].path);
        free((void *)(uintptr_t)site->files[i].bytes);
    }
    free(site->files);
    memset(site, 0, sizeof *site);
}

/* --------------------------------------------------------------------------- reading a folder */

typedef struct reading {
    tg_site *site;         /* NULL: names, sizes and times are enough */
    uint64_t stamp;        /* of the files so far, in whatever order they came */
    char path[PATH_BYTES]; /* of the file or folder at hand */
    size_t n_root;         /* bytes of path that are the folder that was named */
    char *why;
    size_t why_bytes;
} reading;

/* path is what the message names, so whoever fails leaves it as it is. */
static bool failed(reading *r, const char *reason) {
    snprintf(r->why, r->why_bytes, "%s: %s", r->path, reason);
    return false;
}

/* FNV-1a: tells two states of a file apart, which is all that a tag from a local folder is for. */
static uint64_t hash_of(const unsigned char *bytes, size_t n_bytes) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n_bytes; i++) hash = (hash ^ bytes[i]) * 0x100000001b3u;
    return hash;
}

/* The size is that of a moment ago. A file that has shrunk since is refused; one that has grown is
 * cut, and its new stamp brings the rest with the next look at the folder. */
static bool read_file(reading *r, uint64_t size) {
    if (r->site->n == FILES_MAX) return failed(r, "more files than a page has");
    if (size > SITE_BYTES_MAX - r->site->n_bytes) return failed(r, "more bytes than a page has");
    FILE *f = fopen(r->path, "rb");
    if (!f) return failed(r, strerror(errno));
    /* One byte more than the size, so that an empty file has memory of its own, too. */
    unsigned char *bytes = malloc((size_t)size + 1);
    char *path = strdup(r->path + r->n_root);
    tg_site_file *file = bytes && path ? tg_site_add(r->site) : NULL;
    if (!file) {
        free(bytes);
        free(path);
        fclose(f);
        return failed(r, "out of memory");
    }
    file->path = path;
    file->bytes = bytes;
    file->n_bytes = fread(bytes, 1, (size_t)size, f);
    const bool whole = file->n_bytes == size && !ferror(f);
    fclose(f);
    if (!whole) return failed(r, "cannot be read to its end");
    file->type = tg_site_type(path);
    snprintf(file->etag, sizeof file->etag, "\"%016" PRIx64 "\"", hash_of(bytes, file->n_bytes));
    r->site->n_bytes += size;
    return true;
}

/* All that a build changes about a file. The order of files does not matter to a sum. */
static uint64_t stamp_of(const reading *r, const struct stat *info) {
    const uint64_t parts[] = { (uint64_t)info->st_size,        (uint64_t)info->st_ino,
                               (uint64_t)info->st_mtim.tv_sec, (uint64_t)info->st_mtim.tv_nsec,
                               (uint64_t)info->st_ctim.tv_sec, (uint64_t)info->st_ctim.tv_nsec };
    return hash_of((const unsigned char *)parts, sizeof parts) ^
           hash_of((const unsigned char *)r->path, strlen(r->path));
}

static bool read_folder(reading *r, unsigned depth);

/* What path names: a file, a folder, or something that no page consists of. A link is that, too: it
 * could lead out of the folder, or round in it. */
static bool read_entry(reading *r, unsigned depth) {
    struct stat info;
    if (lstat(r->path, &info) != 0) return failed(r, strerror(errno));
    if (S_ISDIR(info.st_mode)) return read_folder(r, depth + 1);
    if (!S_ISREG(info.st_mode)) return true;
    /* Before the file is read: what changes meanwhile has another stamp afterwards. */
    r->stamp += stamp_of(r, &info);
    return !r->site || read_file(r, (uint64_t)info.st_size);
}

/* Names with a dot are those of version control and editors; with an underscore those that a static
 * host reads itself (_headers). Neither is to be seen from outside. */
static bool read_folder(reading *r, unsigned depth) {
    if (depth > DEPTH_MAX) return failed(r, "folders are nested deeper than those of a page");
    DIR *folder = opendir(r->path);
    if (!folder) return failed(r, strerror(errno));
    const size_t n_path = strlen(r->path);
    bool ok = true;
    for (const struct dirent *entry; ok && (entry = readdir(folder)) != NULL;) {
        if (entry->d_name[0] == '.' || entry->d_name[0] == '_') continue;
        const int n = snprintf(r->path + n_path, sizeof r->path - n_path, "/%s", entry->d_name);
        ok = (size_t)n < sizeof r->path - n_path ? read_entry(r, depth)
                                                 : failed(r, "the path is too long");
        if (ok) r->path[n_path] = '\0'; /* a failure has quoted the path already */
    }
    closedir(folder);
    return ok;
}

/* "web/dist/" and "web/dist" are one folder; "/" is refused by the limits. */
static bool walk(reading *r, const char *folder) {
    const int n = snprintf(r->path, sizeof r->path, "%s", folder);
    if ((size_t)n >= sizeof r->path) return failed(r, "the path is too long");
    while (r->path[0] && r->path[strlen(r->path) - 1] == '/') r->path[strlen(r->path) - 1] = '\0';
    r->n_root = strlen(r->path);
    return read_folder(r, 0);
}

bool tg_site_read(tg_site *site, const char *folder, char *why, size_t why_bytes) {
    memset(site, 0, sizeof *site);
    site->owns = true;
    reading r = { .site = site, .why = why, .why_bytes = why_bytes };
    bool ok = walk(&r, folder);
    if (ok && !tg_site_find(site, "/")) {
        ok = failed(&r, "want the folder of a built page, have no index.html in it");
    }
    site->stamp = r.stamp;
    if (!ok) tg_site_free(site);
    return ok;
}

/* Half a build is no state to compare: whoever asks keeps what was read before. */
uint64_t tg_site_stamp(const char *folder) {
    char why[1];
    reading r = { .why = why, .why_bytes = sizeof why };
    return walk(&r, folder) ? r.stamp : 0;
}
