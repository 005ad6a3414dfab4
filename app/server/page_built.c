/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page_built.c - the page that is built into the program.
 *
 * tools/embed.py turns web/dist into two files when the program is built:
 *
 *     page.bin   the bytes of all files, plain ones and compressed ones, one behind the other
 *     page.def   TG_PAGE_FILE(path, entity tag, offset, bytes, gzip offset, gzip bytes), one a line
 *
 * The assembler copies page.bin in as it is. Arrays in C would say the same, but compiling some
 * megabytes of digits takes gcc and clang many seconds and much memory. Without web/dist both
 * files are empty.
 */
#include "server/site.h"

#include <stdio.h>
#include <string.h>

__asm__(".pushsection .rodata\n"
        ".balign 64\n"
        ".globl tg_page_bytes\n"
        ".hidden tg_page_bytes\n"
        ".type tg_page_bytes, %object\n"
        "tg_page_bytes:\n"
        ".incbin \"page.bin\"\n"
        ".byte 0\n"
        ".size tg_page_bytes, . - tg_page_bytes\n"
        ".popsection\n");

extern const unsigned char tg_page_bytes[];

static const struct page_file {
    const char *path, *etag;
    size_t offset, n_bytes, gzip_offset, n_gzip;
} page_files[] = {
#define TG_PAGE_FILE(path, etag, offset, n_bytes, gzip_offset, n_gzip)                             \
    { path, etag, offset, n_bytes, gzip_offset, n_gzip },
#include "page.def"
#undef TG_PAGE_FILE
    { NULL, NULL, 0, 0, 0, 0 }, /* C has no empty arrays */
};

bool tg_site_built(tg_site *site) {
    memset(site, 0, sizeof *site);
    for (const struct page_file *from = page_files; from->path; from++) {
        tg_site_file *file = tg_site_add(site);
        if (!file) {
            tg_site_free(site);
            return false;
        }
        file->path = from->path;
        file->type = tg_site_type(from->path);
        file->bytes = tg_page_bytes + from->offset;
        file->n_bytes = from->n_bytes;
        file->gzip = from->n_gzip ? tg_page_bytes + from->gzip_offset : NULL;
        file->n_gzip = from->n_gzip;
        snprintf(file->etag, sizeof file->etag, "\"%s\"", from->etag);
        site->n_bytes += from->n_bytes;
    }
    return true;
}
