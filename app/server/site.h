/* SPDX-License-Identifier: Apache-2.0 */
/*
 * site.h - the files that `tinygpt serve` can give out: a table that is whole before a request sees
 * it.
 *
 * A request names an entry of this table and never a path of the file system, so there is no path
 * to escape from. The table comes from the page that is built into the program (page_built.c) or
 * from a folder, which is read into a new table when it has changed. All pointers stay valid until
 * tg_site_free.
 */
#ifndef TG_APP_SERVER_SITE_H
#define TG_APP_SERVER_SITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TG_SITE_ETAG_BYTES 40 /* an entity tag in its quotes, and the zero */

typedef struct tg_site_file {
    const char *path;           /* "/assets/app.js", with the slash */
    const char *type;           /* "text/javascript; charset=utf-8" */
    const unsigned char *bytes; /* [n_bytes] */
    size_t n_bytes;
    const unsigned char *gzip; /* [n_gzip], the same file in gzip's format; NULL: not worth it */
    size_t n_gzip;
    char etag[TG_SITE_ETAG_BYTES]; /* of the plain bytes; the compressed ones have another one */
} tg_site_file;

typedef struct tg_site {
    tg_site_file *files;
    size_t n, cap;
    uint64_t n_bytes; /* of all files, uncompressed */
    bool owns;        /* paths and bytes are heap memory of this table */
    uint64_t stamp;   /* of the folder when it was read, see tg_site_stamp */
} tg_site;

/* The page in the program. Returns false when memory is out; a program built without the page
 * gives an empty table. */
bool tg_site_built(tg_site *site);

/*
 * All regular files below folder, but for names that begin with '.' or '_' and links. On failure
 * the reason is in why and the table is empty. A folder without an index.html is refused.
 */
bool tg_site_read(tg_site *site, const char *folder, char *why, size_t why_bytes);

/* A number that is another one after a file of the folder was written, added or taken away; made
 * of names, sizes and times alone. 0 if the folder cannot be looked through. */
uint64_t tg_site_stamp(const char *folder);

void tg_site_free(tg_site *site);

/* The file of a request's path, "/" being the index.html; NULL if there is none. */
const tg_site_file *tg_site_find(const tg_site *site, const char *path);

/* One entry more, of type and tag to be filled in by the caller; NULL when memory is out. */
tg_site_file *tg_site_add(tg_site *site);

/* The media type that the end of a name stands for. */
const char *tg_site_type(const char *name);

#endif
