/* SPDX-License-Identifier: Apache-2.0 */
/*
 * folder.c - files of a folder or of a zip file. folder.h has the layout of a zip file.
 *
 * A zip file is read from its end: the end names the directory, the directory names the members,
 * and a member's own header is asked for one thing alone, where its bytes begin. Sizes and CRC
 * come from the directory, since a writer that streams (zip to a pipe) leaves zeros in the header
 * and puts them behind the bytes.
 *
 *     how a file comes           where its bytes are            when its CRC is compared
 *     of a folder                an open file                   never: there is none
 *     stored *.safetensors       the zip file, by a part of     tg_folder_check
 *                                its reader
 *     every other member         unpacked, in memory            as it is opened
 *
 * The list `open` owns files and unpacked memory until tg_folder_close; readers that are handed
 * out borrow from it. Nothing here knows what the files mean: hf.c does.
 */
#include "io/folder.h"

#include "base/codec/inflate.h"
#include "base/time.h"

enum { END_BYTES = 22, ENTRY_BYTES = 46, MEMBER_BYTES = 30, COMMENT_MAX = 65535 };
/* What is no tensors is text; the largest vocabularies take 35 MB. */
#define TEXT_MAX ((uint64_t)256 << 20)

/* A file that was opened, or a member that was unpacked. The struct lies in the arena, what it
 * owns does not. A stored member of tensors owns nothing, and its reader stays empty. */
struct tg_folder_open {
    struct tg_folder_open *next;
    const char *name;
    tg_reader reader;
    uint8_t *unpacked; /* [room] */
    size_t room;
};

bool tg_zip_probe(const uint8_t *first, size_t n_bytes) {
    return n_bytes >= 4 && memcmp(first, "PK\3\4", 4) == 0;
}

/* The end has a comment of unknown length, up to 65535 bytes, so it is looked for from behind.
 * The signature may stand within a comment, too: the comment's length must agree with the place. */
static tg_status find_end(tg_folder *f, uint8_t end[END_BYTES]) {
    const uint64_t total = f->zip.end;
    const size_t n = total < END_BYTES + COMMENT_MAX ? (size_t)total : END_BYTES + COMMENT_MAX;
    uint8_t *tail = tg_alloc(&f->ctx->mem, n);
    if (!tail) return tg_fail_memory(f->ctx, f->path, n);
    tg_status s = tg_read_at(&f->zip, total - n, "end of a zip file", tail, n);
    size_t at = n < END_BYTES ? 0 : n - END_BYTES + 1;
    bool found = false;
    while (s == TG_OK && !found && at > 0) {
        at--;
        found =
            memcmp(tail + at, "PK\5\6", 4) == 0 && tg_get_u16(tail + at + 20) == n - at - END_BYTES;
    }
    if (found) memcpy(end, tail + at, END_BYTES);
    if (s == TG_OK && !found)
        s = tg_fail(f->ctx, TG_E_FORMAT,
                    "%s: want the directory of a zip file at its end, have "
                    "none",
                    f->path);
    tg_free(&f->ctx->mem, tail, n);
    return s;
}

/* An entry of the directory. The terminated copy of the name stands for it from here on, so a
 * zero byte within it, which would make two names one, is refused. UINT32_MAX in a size or an
 * offset says that the true one is in an extra field of Zip64. */
static tg_status read_member(tg_folder *f, tg_reader *r, tg_folder_member *m) {
    uint8_t e[ENTRY_BYTES];
    const uint64_t at = r->offset;
    TG_TRY(tg_read_bytes(r, "entry of a zip file", e, sizeof e));
    if (memcmp(e, "PK\1\2", 4) != 0)
        return tg_reader_fail(r, TG_E_FORMAT, at, "directory", "want an entry, have another thing");
    *m = (tg_folder_member) { .method = tg_get_u16(e + 10),
                              .crc = tg_get_u32(e + 16),
                              .packed_bytes = tg_get_u32(e + 20),
                              .bytes = tg_get_u32(e + 24),
                              .offset = tg_get_u32(e + 42) };
    const size_t n_name = tg_get_u16(e + 28);
    const char *name;
    TG_TRY(tg_read_text(r, &f->arena, "name of a member", n_name, &name));
    m->name = name;
    if (strlen(name) != n_name)
        return tg_reader_fail(r, TG_E_FORMAT, at, "name", "want one without a zero byte");
    const uint64_t more = (uint64_t)tg_get_u16(e + 30) + tg_get_u16(e + 32);
    TG_TRY(tg_reader_need(r, "entry of a zip file", more));
    r->offset += more;
    if (m->packed_bytes == UINT32_MAX || m->bytes == UINT32_MAX || m->offset == UINT32_MAX)
        return tg_reader_fail(r, TG_E_UNSUPPORTED, at, name, "want less than 4 GiB, have Zip64");
    if (tg_get_u16(e + 8) & 1)
        return tg_reader_fail(r, TG_E_UNSUPPORTED, at, name, "want no encryption");
    return TG_OK;
}

/* Where config.json is, the others are: a name counts from there. Who zips a folder rather than
 * its files has the folder in front of all names. The shortest prefix wins, since folders of
 * sentence-transformers hold another config.json one folder below (1_Pooling). */
static void strip_folder(tg_folder *f) {
    static const char mark[] = "config.json";
    size_t prefix = SIZE_MAX;
    const char *folder = "";
    for (size_t i = 0; i < f->n_members; i++) {
        const char *slash = strrchr(f->members[i].name, '/');
        const char *base = slash ? slash + 1 : f->members[i].name;
        const size_t n = (size_t)(base - f->members[i].name);
        if (strcmp(base, mark) == 0 && n < prefix) {
            prefix = n;
            folder = f->members[i].name;
        }
    }
    for (size_t i = 0; prefix != SIZE_MAX && i < f->n_members; i++)
        if (strncmp(f->members[i].name, folder, prefix) == 0) f->members[i].name += prefix;
}

/* CRC-32 as zip files have it (reflected 04C11DB7), eight bytes at a time: it is not CRC-32C.
 * table[k][b]: what byte b does to a CRC that k more bytes follow. */
static void make_table(uint32_t table[8][256]) {
    for (uint32_t b = 0; b < 256; b++) {
        uint32_t crc = b;
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
        table[0][b] = crc;
    }
    for (int k = 1; k < 8; k++)
        for (uint32_t b = 0; b < 256; b++)
            table[k][b] = table[k - 1][b] >> 8 ^ table[0][table[k - 1][b] & 255];
}

/* crc is that of the bytes before, 0 of none. Eight tables break the chain from byte to byte,
 * which is what limits a CRC by one table. */
static uint32_t crc_more(const tg_folder *f, uint32_t crc, const uint8_t *bytes, size_t n) {
    crc = ~crc;
    for (; n >= 8; n -= 8, bytes += 8) {
        const uint32_t low = crc ^ tg_get_u32(bytes), high = tg_get_u32(bytes + 4);
        crc = 0;
        for (int k = 0; k < 4; k++) {
            crc ^= f->crc_table[7 - k][low >> 8 * k & 255];
            crc ^= f->crc_table[3 - k][high >> 8 * k & 255];
        }
    }
    for (; n > 0; n--) crc = crc >> 8 ^ f->crc_table[0][(crc ^ *bytes++) & 255];
    return ~crc;
}

/* The directory lies within the file and has room for n entries: that bounds n before the table
 * is allocated. A reader of that part alone keeps entries from running out of it. */
static tg_status read_directory(tg_folder *f) {
    uint8_t end[END_BYTES] = { 0 };
    make_table(f->crc_table);
    TG_TRY(find_end(f, end));
    const uint64_t n = tg_get_u16(end + 10), bytes = tg_get_u32(end + 12);
    const uint64_t begin = tg_get_u32(end + 16);
    if (begin > f->zip.end || bytes > f->zip.end - begin || n * ENTRY_BYTES > bytes)
        return tg_fail(f->ctx, TG_E_FORMAT,
                       "%s: directory: want %" PRIu64 " members in %" PRIu64 " bytes within the "
                       "file, have byte %" PRIu64,
                       f->path, n, bytes, begin);
    f->members = tg_arena_array(&f->arena, (size_t)n + 1, sizeof *f->members);
    if (!f->members) return tg_fail_memory(f->ctx, f->path, (size_t)n * sizeof *f->members);
    tg_reader r = tg_reader_part(&f->zip, begin, begin + bytes);
    for (uint64_t i = 0; i < n; i++) TG_TRY(read_member(f, &r, &f->members[f->n_members++]));
    strip_folder(f);
    return TG_OK;
}

/* The bytes are used as they lie: what is stored is not copied. */
tg_status tg_folder_open_memory(tg_ctx *ctx, const char *name, const void *bytes, size_t n_bytes,
                                tg_folder *out) {
    *out = (tg_folder) { .ctx = ctx, .path = name };
    tg_arena_init(&out->arena, &ctx->mem);
    tg_reader_open_memory(ctx, name, bytes, n_bytes, &out->zip);
    const tg_status s = read_directory(out);
    if (s != TG_OK) tg_folder_close(out);
    return s;
}

tg_status tg_folder_open(tg_ctx *ctx, const char *path, tg_folder *out) {
    *out = (tg_folder) { .ctx = ctx, .path = path };
    tg_arena_init(&out->arena, &ctx->mem);
    if (tg_os_kind_of(path) == TG_OS_FOLDER) return TG_OK;
    tg_status s = tg_reader_open(ctx, path, &out->zip);
    if (s == TG_OK) s = read_directory(out);
    if (s != TG_OK) tg_folder_close(out);
    return s;
}

/* For what was never opened, and for what is closed, too. */
void tg_folder_close(tg_folder *f) {
    if (!f->ctx) return;
    for (struct tg_folder_open *o = f->open; o; o = o->next) {
        tg_reader_close(&o->reader);
        tg_free(&f->ctx->mem, o->unpacked, o->room);
    }
    tg_reader_close(&f->zip);
    tg_arena_deinit(&f->arena);
    *f = (tg_folder) { .ctx = NULL };
}

/* A list of tens of files, asked a dozen times: no table is worth it. */
static const tg_folder_member *find_member(const tg_folder *f, const char *name) {
    for (size_t i = 0; i < f->n_members; i++)
        if (strcmp(f->members[i].name, name) == 0) return &f->members[i];
    return NULL;
}

/* A path that does not fit counts as a file that is not there. */
bool tg_folder_has(const tg_folder *f, const char *name) {
    if (f->members) return find_member(f, name) != NULL;
    char path[4096];
    const int n = snprintf(path, sizeof path, "%s/%s", f->path, name);
    return n > 0 && (size_t)n < sizeof path && tg_os_kind_of(path) == TG_OS_FILE;
}

static bool is_tensors(const tg_folder_member *m) {
    static const char tensors[] = ".safetensors";
    const size_t n = strlen(m->name), k = sizeof tensors - 1;
    return n >= k && strcmp(m->name + n - k, tensors) == 0;
}

/* What a member claims to unpack to is bounded by what deflate can do, 1032 bytes of one, and by
 * its kind; memory comes as its bytes do. So a small file that claims gigabytes (a zip bomb) is
 * refused before any memory is taken for it. */
static tg_status want_size(const tg_folder *f, const tg_folder_member *m) {
    const bool is_text = !is_tensors(m);
    if (m->method != 8 && m->method != 0)
        return tg_fail(f->ctx, TG_E_UNSUPPORTED,
                       "%s: %s: want a member that is stored or deflated, have method %u", f->path,
                       m->name, (unsigned)m->method);
    if (m->bytes / 1032 > m->packed_bytes || (is_text && m->bytes > TEXT_MAX) ||
        (m->method == 0 && m->bytes != m->packed_bytes))
        return tg_fail(f->ctx, TG_E_FORMAT,
                       "%s: %s: want a size that its %" PRIu64 " packed bytes could have%s, have "
                       "%" PRIu64,
                       f->path, m->name, m->packed_bytes,
                       is_text ? ", and a text of at most 256 MiB" : "", m->bytes);
    return TG_OK;
}

static tg_status compare_crc(const tg_folder *f, const tg_folder_member *m, uint32_t have) {
    if (have == m->crc) return TG_OK;
    return tg_fail(f->ctx, TG_E_CHECKSUM, "%s: %s: want the CRC %08x of the directory, have %08x",
                   f->path, m->name, (unsigned)m->crc, (unsigned)have);
}

/* A whole member in memory [*room], checked. *out may be set on failure, too: the caller has a
 * place for it that is freed in any case. */
static tg_status take_member(const tg_folder *f, const tg_folder_member *m, uint64_t data,
                             uint8_t **out, size_t *room) {
    const size_t n = (size_t)m->packed_bytes;
    uint8_t *packed = tg_alloc(&f->ctx->mem, n);
    *out = NULL;
    if (!packed) return tg_fail_memory(f->ctx, m->name, n);
    tg_status s = tg_read_at(&f->zip, data, m->name, packed, n);
    if (s == TG_OK && m->method == 0) {
        *out = packed;
        *room = n;
    } else {
        if (s == TG_OK) s = tg_inflate_new(f->ctx, m->name, packed, n, (size_t)m->bytes, out, room);
        tg_free(&f->ctx->mem, packed, n);
    }
    if (s == TG_OK) s = compare_crc(f, m, crc_more(f, 0, *out, (size_t)m->bytes));
    return s;
}

/* Where the bytes of a member begin. The lengths of name and extra are those of the member's
 * header, since its extra field need not be as long as the directory's (Info-ZIP's is longer). */
static tg_status find_data(const tg_folder *f, const tg_folder_member *m, uint64_t *data) {
    uint8_t head[MEMBER_BYTES];
    TG_TRY(tg_read_at(&f->zip, m->offset, m->name, head, sizeof head));
    *data = m->offset + MEMBER_BYTES + tg_get_u16(head + 26) + tg_get_u16(head + 28);
    if (memcmp(head, "PK\3\4", 4) == 0 && *data <= f->zip.end &&
        m->packed_bytes <= f->zip.end - *data)
        return TG_OK;
    return tg_fail(f->ctx, TG_E_FORMAT,
                   "%s: byte %" PRIu64 ": %s: want a member of %" PRIu64 " bytes within the file",
                   f->path, m->offset, m->name, m->packed_bytes);
}

/* Tensors that are stored are read where they lie. Their CRCs are for tg_folder_check, which
 * whoever loads all weights calls as well, and `info` does not: opening reads no gigabytes. */
static tg_status open_member(tg_folder *f, const char *name, struct tg_folder_open *o,
                             tg_reader *out) {
    const tg_folder_member *m = find_member(f, name);
    uint64_t data;
    if (!m) return tg_fail(f->ctx, TG_E_FORMAT, "%s: want a member %s, have none", f->path, name);
    TG_TRY(want_size(f, m));
    TG_TRY(find_data(f, m, &data));
    if (m->method == 0 && is_tensors(m)) {
        *out = tg_reader_part(&f->zip, data, data + m->packed_bytes);
        out->name = o->name;
        return tg_reader_want_no_pointer(out);
    }
    TG_TRY(take_member(f, m, data, &o->unpacked, &o->room));
    tg_reader_open_memory(f->ctx, o->name, o->unpacked, (size_t)m->bytes, &o->reader);
    *out = o->reader;
    return tg_reader_want_no_pointer(out);
}

/* By pieces, so that a member takes no memory of its size. The state in c is whole after each
 * piece, so that the next call goes on where this one stopped. */
static tg_status check_stored(const tg_folder *f, tg_folder_checking *c, uint64_t data,
                              double deadline_ms) {
    enum { PIECE_BYTES = 64 << 10 };
    const tg_folder_member *m = &f->members[c->member];
    uint8_t *piece = tg_alloc(&f->ctx->mem, PIECE_BYTES);
    if (!piece) return tg_fail_memory(f->ctx, m->name, PIECE_BYTES);
    tg_status s = TG_OK;
    while (s == TG_OK && c->done < m->bytes) {
        const uint64_t left = m->bytes - c->done;
        const size_t n = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
        s = tg_read_at(&f->zip, data + c->done, m->name, piece, n);
        if (s == TG_OK) c->crc = crc_more(f, c->crc, piece, n);
        c->done += n;
        if (s == TG_OK && tg_time_over(deadline_ms)) s = TG_PENDING;
    }
    tg_free(&f->ctx->mem, piece, PIECE_BYTES);
    return s == TG_OK ? compare_crc(f, m, c->crc) : s;
}

/* A packed member is unpacked at one go, as it is for whoever opens it. */
static tg_status check_member(const tg_folder *f, tg_folder_checking *c, double deadline_ms) {
    const tg_folder_member *m = &f->members[c->member];
    uint64_t data;
    uint8_t *unpacked = NULL;
    size_t room = 0;
    if (c->tensors && (m->method != 0 || !is_tensors(m))) return TG_OK;
    TG_TRY(want_size(f, m));
    TG_TRY(find_data(f, m, &data));
    if (m->method == 0) return check_stored(f, c, data, deadline_ms);
    const tg_status s = take_member(f, m, data, &unpacked, &room);
    tg_free(&f->ctx->mem, unpacked, room);
    return s;
}

tg_status tg_folder_check(const tg_folder *f, tg_folder_checking *c, double deadline_ms) {
    while (c->member < f->n_members) {
        TG_TRY(check_member(f, c, deadline_ms));
        *c = (tg_folder_checking) { .member = c->member + 1, .tensors = c->tensors };
        if (tg_time_over(deadline_ms)) return TG_PENDING;
    }
    return TG_OK;
}

/* Names are those of a format, or of an index file, which has been looked at; none may lead out
 * of the folder. A file that was opened before is handed out again. The new one is in the list
 * before it is opened: close then finds what a failure has left. */
tg_status tg_folder_file(tg_folder *f, const char *name, tg_reader *out) {
    for (struct tg_folder_open *o = f->open; o; o = o->next) {
        if (strcmp(o->name + strlen(f->path) + 1, name) != 0 || !o->reader.ctx) continue;
        *out = o->reader;
        return TG_OK;
    }
    if (strstr(name, "..") || !*name || *name == '/')
        return tg_fail(f->ctx, TG_E_FORMAT, "%s: want the name of a file in it, have \"%.60s\"",
                       f->path, name);
    struct tg_folder_open *o = tg_arena_alloc(&f->arena, sizeof *o);
    char *full = tg_arena_sprintf(&f->arena, "%s/%s", f->path, name);
    if (!o || !full) return tg_fail_memory(f->ctx, f->path, sizeof *o);
    o->name = full;
    o->next = f->open;
    f->open = o;
    if (f->members) return open_member(f, name, o, out);
    TG_TRY(tg_reader_open(f->ctx, full, &o->reader));
    *out = o->reader;
    return TG_OK;
}
