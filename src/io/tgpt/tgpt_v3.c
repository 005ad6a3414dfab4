/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tgpt_v3.c - opening a .tinygpt v3 file.
 *
 * Each step trusts only what the step before has proven:
 *
 *     header   its size and CRC, then version and features, then the file's length
 *     table    sections tile the file, with zeros in the gaps; known ids once each
 *     META     CRC, then JSON, then family, configuration, step
 *     KEYS     CRC alone, if there are any: load/keys.c reads them
 *     TNSR     CRC, then each entry inside DATA, tiling it; then the list against the configuration
 *     CHNK     CRC, then one number for each chunk of DATA
 *
 * A CRC finds accidents, not intent: every range check runs although the CRC agreed. DATA itself is
 * checked chunk by chunk when it is read (file.c), and the SHA-256 when somebody asks
 * (file_check.c).
 */
#include "io/tgpt/tgpt_v3.h"

#include "base/codec/crc.h"
#include "base/codec/sha256.h"
#include "base/str.h"
#include "io/run/meta.h"
#include "io/run/quant.h"

/* All eight bytes: one flipped bit makes it another file, which tgpt_v2.c then refuses. */
bool tg_tgpt3_probe(const uint8_t *first, size_t n_bytes) {
    return n_bytes >= TGPT3_MAGIC_BYTES && memcmp(first, TGPT3_MAGIC, TGPT3_MAGIC_BYTES) == 0;
}

/* --------------------------------------------------------------------------------------- header */

/* The file says itself which version can read it: this one cannot know. */
static tg_status fail_newer(const tg_reader *r, uint64_t offset, const char *field, uint32_t needs,
                            const char *what) {
    return tg_reader_fail(r, TG_E_UNSUPPORTED, offset, field,
                          "%s: needs tinygpt >= %u.%u.%u, this is " TG_VERSION_TEXT, what,
                          (unsigned)(needs >> 16), (unsigned)(needs >> 8 & 255),
                          (unsigned)(needs & 255));
}

/*
 * Reads header and section table as a whole. Their sizes and the place of the CRC are promised to
 * stay in all later versions, so that damage is told from novelty: the CRC comes first.
 */
static tg_status read_header(tg_file *f, tgpt3_head *h, const uint8_t **bytes) {
    const tg_reader *r = &f->reader;
    uint8_t fixed[TGPT3_HEAD_BYTES];
    TG_TRY(tg_read_at(r, 0, "header", fixed, sizeof fixed));
    h->header_bytes = tg_get_u32(fixed + 12);
    h->n_sections = tg_get_u32(fixed + 40);
    if (h->n_sections < 1 || h->n_sections > TGPT3_SECTIONS_MAX) {
        return tg_reader_fail(r, TG_E_FORMAT, 40, "sections", "want 1..%u, have %" PRIu32,
                              TGPT3_SECTIONS_MAX, h->n_sections);
    }
    if (h->header_bytes != TGPT3_HEAD_BYTES + TGPT3_ENTRY_BYTES * h->n_sections) {
        return tg_reader_fail(r, TG_E_FORMAT, 12, "header length",
                              "want %" PRIu32 " bytes for %" PRIu32 " sections, have %" PRIu32,
                              TGPT3_HEAD_BYTES + TGPT3_ENTRY_BYTES * h->n_sections, h->n_sections,
                              h->header_bytes);
    }
    tg_reader whole;
    TG_TRY(tg_reader_need(r, "header", h->header_bytes));
    TG_TRY(tg_reader_load(r, &f->arena, "header", 0, h->header_bytes, &whole));
    *bytes = whole.memory;

    uint32_t crc = tg_crc32c(0, *bytes, TGPT3_HEAD_CRC);
    crc = tg_crc32c(crc, *bytes + TGPT3_HEAD_BYTES, h->header_bytes - TGPT3_HEAD_BYTES);
    const uint32_t want = tg_get_u32(*bytes + TGPT3_HEAD_CRC);
    if (crc != want) {
        return tg_reader_fail(r, TG_E_CHECKSUM, TGPT3_HEAD_CRC, "header",
                              "want CRC %08" PRIx32 ", have %08" PRIx32, want, crc);
    }
    return TG_OK;
}

/* Called once the CRC agreed, so a wrong value is somebody's intent, or another version's. */
static tg_status check_header(const tg_reader *r, tgpt3_head *h, const uint8_t *bytes) {
    const uint32_t needs = tg_get_u32(bytes + 44);
    if (tg_get_u32(bytes + 8) != TGPT3_VERSION) {
        return fail_newer(r, 8, "version", needs, "want 3, have another one");
    }
    if (tg_get_u64(bytes + 16) != 0) {
        return fail_newer(r, 16, "required features", needs, "want none, have some");
    }
    const uint64_t total_bytes = tg_get_u64(bytes + 32);
    if (total_bytes != r->end) {
        return tg_reader_fail(r, TG_E_FORMAT, 32, "file length",
                              "want %" PRIu64 " bytes, have %" PRIu64, total_bytes, r->end);
    }
    h->chunk_bytes = tg_get_u32(bytes + 48);
    if (h->chunk_bytes < TGPT3_CHUNK_MIN || h->chunk_bytes > TGPT3_CHUNK_MAX ||
        (h->chunk_bytes & (h->chunk_bytes - 1)) != 0) {
        return tg_reader_fail(r, TG_E_FORMAT, 48, "chunk length",
                              "want a power of two in 4096..16777216, have %" PRIu32,
                              h->chunk_bytes);
    }
    if (tg_get_u64(bytes + 52) != 0) {
        return tg_reader_fail(r, TG_E_FORMAT, 52, "reserved", "want 0, have something else");
    }
    return TG_OK;
}

/* ---------------------------------------------------------------------------- table of sections */

/* NULL for an id of another version. */
static tgpt3_section *known_section(tgpt3_head *h, uint32_t id) {
    switch (id) {
    case TGPT3_META: return &h->meta;
    case TGPT3_KVAL: return &h->kval;
    case TGPT3_KEYS: return &h->keys;
    case TGPT3_TNSR: return &h->tnsr;
    case TGPT3_DATA: return &h->data;
    case TGPT3_CHNK: return &h->chnk;
    case TGPT3_HASH: return &h->hash;
    default: return NULL;
    }
}

/*
 * One entry, whose section must begin where the one before ended (*end), up to alignment. So
 * sections cannot overlap, leave holes, run backwards or reach beyond the file, and one comparison
 * says all of it: the place is not chosen by the file but computed here. end never exceeds the
 * file's length, so aligning it cannot wrap.
 */
static tg_status read_entry(tg_file *f, tgpt3_head *h, const uint8_t *bytes, uint32_t i,
                            uint64_t *end) {
    const uint64_t at = TGPT3_HEAD_BYTES + (uint64_t)i * TGPT3_ENTRY_BYTES;
    const uint8_t *entry = bytes + at;
    const uint32_t id = tg_get_u32(entry);
    const tgpt3_section s = { tg_get_u64(entry + 8), tg_get_u64(entry + 16) };
    tg_reader *r = &f->reader;
    if (s.offset != tgpt3_align(*end) || s.offset > r->end) {
        return tg_reader_fail(r, TG_E_FORMAT, at + 8, "section offset",
                              "want %" PRIu64 ", have %" PRIu64, tgpt3_align(*end), s.offset);
    }
    if (s.bytes > r->end - s.offset) {
        return tg_reader_fail(r, TG_E_FORMAT, at + 16, "section length",
                              "want at most %" PRIu64 " bytes, have %" PRIu64, r->end - s.offset,
                              s.bytes);
    }
    if (tg_get_u64(entry + 24) != 0) {
        return tg_reader_fail(r, TG_E_FORMAT, at + 24, "reserved", "want 0, have something else");
    }
    r->offset = *end;
    TG_TRY(tg_read_zeros(r, "gap between sections", s.offset));
    *end = s.offset + s.bytes;

    tgpt3_section *known = known_section(h, id);
    if (!known) {
        if (tg_get_u32(entry + 4) & TGPT3_MUST_KNOW) {
            return fail_newer(r, at, "section", tg_get_u32(bytes + 44),
                              "a required one of an unknown kind");
        }
        return TG_OK;
    }
    if (known->offset) {
        return tg_reader_fail(r, TG_E_FORMAT, at, "section", "want one %.4s, have two",
                              (const char *)entry);
    }
    *known = s;
    return TG_OK;
}

/* Least lengths: a CRC, and something in front of it. DATA of no byte would make no chunk. */
static tg_status read_sections(tg_file *f, tgpt3_head *h, const uint8_t *bytes) {
    uint64_t end = h->header_bytes;
    for (uint32_t i = 0; i < h->n_sections; i++) {
        TG_TRY(read_entry(f, h, bytes, i, &end));
    }
    const struct {
        const char *name;
        const tgpt3_section *at;
        uint64_t least_bytes;
    } needed[] = {
        { "META", &h->meta, TGPT3_CRC_BYTES },
        { "TNSR", &h->tnsr, 4 + TGPT3_CRC_BYTES },
        { "DATA", &h->data, 1 },
        { "CHNK", &h->chnk, 4 + TGPT3_CRC_BYTES },
        { "HASH", &h->hash, TG_SHA256_BYTES },
    };
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
        if (needed[i].at->offset == 0 || needed[i].at->bytes < needed[i].least_bytes) {
            return tg_reader_fail(&f->reader, TG_E_FORMAT, TGPT3_HEAD_BYTES, "section table",
                                  "want a section %s of %" PRIu64 " bytes or more, have %" PRIu64,
                                  needed[i].name, needed[i].least_bytes, needed[i].at->bytes);
        }
    }
    if (h->hash.bytes != TG_SHA256_BYTES || h->hash.offset + h->hash.bytes != f->reader.end) {
        return tg_reader_fail(&f->reader, TG_E_FORMAT, TGPT3_HEAD_BYTES, "section table",
                              "want HASH of %u bytes at the end of the file, have it elsewhere",
                              TG_SHA256_BYTES);
    }
    return TG_OK;
}

/* A section that ends with its CRC, read into memory and checked; *out ends before the CRC. Its
 * length was compared with the file's and is at least four. */
tg_status tg_tgpt3_section(tg_file *f, const char *name, tgpt3_section s, tg_reader *out) {
    TG_TRY(tg_reader_load(&f->reader, &f->arena, name, s.offset, s.offset + s.bytes, out));
    out->end -= TGPT3_CRC_BYTES;
    const size_t n = (size_t)(s.bytes - TGPT3_CRC_BYTES);
    const uint32_t want = tg_get_u32(out->memory + n), have = tg_crc32c(0, out->memory, n);
    if (want != have) {
        return tg_reader_fail(&f->reader, TG_E_CHECKSUM, s.offset, name,
                              "want CRC %08" PRIx32 ", have %08" PRIx32, want, have);
    }
    return TG_OK;
}

/* ----------------------------------------------------------------------------- table of tensors */

/* Printable UTF-8: names end up in messages and terminals. */
static bool is_good_name(const char *name, size_t n_bytes) {
    for (size_t i = 0; i < n_bytes; i++) {
        if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f) {
            return false;
        }
    }
    return n_bytes >= 1 && n_bytes <= TGPT3_NAME_MAX && tg_utf8_valid(name, n_bytes) == n_bytes;
}

/* A dimension of 0 is refused here, so that nobody above divides by one. */
static tg_status read_dims(tg_reader *r, uint32_t n_dims, tg_file_tensor *t) {
    t->n_dims = n_dims;
    t->elems = 1;
    for (uint32_t i = 0; i < TG_FILE_MAX_DIMS; i++) {
        const uint64_t at = r->offset;
        t->dim[i] = 1;
        if (i < n_dims) {
            TG_TRY(tg_read_u64(r, "dimension", &t->dim[i]));
        }
        /* Elements stay far below 2^64 / 34, so that their bytes cannot wrap either. */
        if (t->dim[i] == 0 || !tg_mul_u64(t->elems, t->dim[i], &t->elems) ||
            t->elems > UINT64_MAX >> 8) {
            return tg_reader_fail(r, TG_E_FORMAT, at, "dimension",
                                  "want 1 or more and a product that fits, have %" PRIu64,
                                  t->dim[i]);
        }
    }
    return TG_OK;
}

/*
 * *end is where the tensor before ended, in DATA. As with sections, the place is computed and only
 * compared: tensors tile DATA, so no two of them share a byte and none is left over.
 */
static tg_status read_tensor(tg_file *f, tg_reader *r, tgpt3_section data, tgpt3_bytes_fn bytes_of,
                             uint64_t *end, tg_file_tensor *t) {
    const uint64_t at = r->offset;
    uint16_t name_bytes;
    uint8_t dtype, n_dims;
    uint64_t offset;
    TG_TRY(tg_read_u16(r, "name length", &name_bytes));
    TG_TRY(tg_read_u8(r, "element type", &dtype));
    TG_TRY(tg_read_u8(r, "dimensions", &n_dims));
    TG_TRY(tg_read_u64(r, "tensor offset", &offset));
    TG_TRY(tg_read_u64(r, "tensor length", &t->bytes));
    if (n_dims > TG_FILE_MAX_DIMS) {
        return tg_reader_fail(r, TG_E_FORMAT, at + 3, "dimensions", "want 0..%d, have %u",
                              TG_FILE_MAX_DIMS, (unsigned)n_dims);
    }
    TG_TRY(read_dims(r, n_dims, t));
    uint64_t want_bytes;
    if (!bytes_of(dtype, t, &want_bytes)) {
        return tg_reader_fail(r, TG_E_UNSUPPORTED, at + 2, "element type",
                              "want a known one in whole blocks, have %u", (unsigned)dtype);
    }
    TG_TRY(tg_read_text(r, &f->arena, "name", name_bytes, &t->name));
    if (!is_good_name(t->name, name_bytes)) {
        return tg_reader_fail(r, TG_E_FORMAT, r->offset - name_bytes, "name",
                              "want 1..%u bytes of printable UTF-8, have something else",
                              TGPT3_NAME_MAX);
    }
    t->dtype = (tg_file_dtype)dtype;
    if (t->bytes != want_bytes) {
        return tg_reader_fail(r, TG_E_FORMAT, at + 12, "tensor length",
                              "%s: want %" PRIu64 " bytes, have %" PRIu64, t->name, want_bytes,
                              t->bytes);
    }
    if (offset != tgpt3_align(*end) || offset > data.bytes || t->bytes > data.bytes - offset) {
        return tg_reader_fail(r, TG_E_FORMAT, at + 4, "tensor offset",
                              "%s: want %" PRIu64 " in %" PRIu64 " bytes of data, have %" PRIu64,
                              t->name, tgpt3_align(*end), data.bytes, offset);
    }
    *end = offset + t->bytes;
    t->offset = data.offset + offset;
    if (t->dtype == TG_FILE_INT4) { /* scales first, then nibbles */
        const uint64_t scale_bytes = TG_INT4_SCALE_BYTES * tg_int4_blocks(t->elems);
        t->scale_offset = t->offset;
        t->offset += scale_bytes;
        t->bytes -= scale_bytes;
    }
    return TG_OK;
}

static bool bytes_of_own(uint32_t code, const tg_file_tensor *t, uint64_t *bytes) {
    const bool known = tg_file_dtype_known(code);
    if (known) *bytes = tg_file_dtype_bytes((tg_file_dtype)code, t->elems);
    return known;
}

/* The count is held against the bytes that are there before the table is allocated: an entry has at
 * least 21. */
tg_status tg_tgpt3_table(tg_file *f, const tgpt3_head *h, tgpt3_bytes_fn bytes_of,
                         tg_file_tensor **out, uint32_t *n_out) {
    tg_reader r;
    uint32_t n;
    TG_TRY(tg_tgpt3_section(f, "table of tensors", h->tnsr, &r));
    TG_TRY(tg_read_u32(&r, "tensors", &n));
    if (n > TGPT3_TENSORS_MAX || n > tg_reader_left(&r) / (TGPT3_TENSOR_BYTES + 1)) {
        return tg_reader_fail(&r, TG_E_FORMAT, h->tnsr.offset, "tensors",
                              "want at most %" PRIu32 " in %" PRIu64 " bytes, have %" PRIu32,
                              TGPT3_TENSORS_MAX, tg_reader_left(&r), n);
    }
    tg_file_tensor *table = tg_arena_array(&f->arena, n, sizeof *table);
    if (!table) {
        return tg_fail_memory(f->ctx, "table of tensors", n * sizeof *table);
    }
    uint64_t end = 0;
    for (uint32_t i = 0; i < n; i++) {
        TG_TRY(read_tensor(f, &r, h->data, bytes_of, &end, &table[i]));
    }
    if (tg_reader_left(&r) != 0) {
        return tg_reader_fail(&r, TG_E_FORMAT, r.offset, "table of tensors",
                              "want its end, have %" PRIu64 " more bytes", tg_reader_left(&r));
    }
    if (end != h->data.bytes) {
        return tg_reader_fail(&r, TG_E_FORMAT, h->data.offset, "data",
                              "want %" PRIu64 " bytes for %" PRIu32 " tensors, have %" PRIu64, end,
                              n, h->data.bytes);
    }
    *out = table;
    *n_out = n;
    return TG_OK;
}

/* Last of all: what stands in here is used by file.c for every element that is read. */
tg_status tg_tgpt3_chunks(tg_file *f, const tgpt3_head *h) {
    tg_reader r;
    TG_TRY(tg_tgpt3_section(f, "table of chunks", h->chnk, &r));
    const uint64_t n = (h->data.bytes - 1) / h->chunk_bytes + 1; /* at least one byte */
    if (tg_reader_left(&r) != 4 * n) {
        return tg_reader_fail(&r, TG_E_FORMAT, h->chnk.offset, "table of chunks",
                              "want %" PRIu64 " bytes for %" PRIu64 " chunks, have %" PRIu64, 4 * n,
                              n, tg_reader_left(&r));
    }
    uint32_t *crc = tg_arena_array(&f->arena, (size_t)n, sizeof *crc);
    if (!crc) {
        return tg_fail_memory(f->ctx, "table of chunks", (size_t)(4 * n));
    }
    for (uint64_t i = 0; i < n; i++) {
        crc[i] = tg_get_u32(r.memory + 4 * i);
    }
    f->chunk_crc = crc;
    f->chunk_bytes = h->chunk_bytes;
    f->data_offset = h->data.offset;
    f->data_bytes = h->data.bytes;
    f->hash_offset = h->hash.offset;
    f->checksummed = true;
    return TG_OK;
}

/* Header and sections. */
tg_status tg_tgpt3_head(tg_file *file, tgpt3_head *h) {
    const uint8_t *bytes = NULL;
    *h = (tgpt3_head) { .n_sections = 0 };
    TG_TRY(read_header(file, h, &bytes));
    TG_TRY(check_header(&file->reader, h, bytes));
    TG_TRY(read_sections(file, h, bytes));
    file->format = "tinygpt v3";
    file->version = TGPT3_VERSION;
    return TG_OK;
}

/* Of a model with a vocabulary of its own. */
static tg_status take_keys(tg_file *f, tgpt3_section keys) {
    tg_reader r;
    if (!keys.offset) {
        return TG_OK;
    }
    if (keys.bytes < TGPT3_CRC_BYTES) {
        return tg_reader_fail(&f->reader, TG_E_FORMAT, keys.offset, "KEYS",
                              "want %u bytes or more, have %" PRIu64, TGPT3_CRC_BYTES, keys.bytes);
    }
    TG_TRY(tg_tgpt3_section(f, "KEYS", keys, &r));
    f->keys = r.memory;
    f->keys_bytes = (size_t)tg_reader_left(&r);
    return TG_OK;
}

/* In the order of the list on top. Parsing JSON comes after its CRC: damage is told as damage. */
tg_status tg_tgpt3_open(tg_file *file) {
    tgpt3_head h;
    tg_reader meta;
    tg_model_config config;
    tg_file_tensor *table;
    uint32_t n;
    TG_TRY(tg_tgpt3_head(file, &h));
    TG_TRY(tg_tgpt3_section(file, "META", h.meta, &meta));
    TG_TRY(tg_file_set_header(file, (const char *)meta.memory, (size_t)tg_reader_left(&meta)));
    TG_TRY(tg_meta_get_v3(file->ctx, file->path, file->header, &config, &file->step));
    TG_TRY(take_keys(file, h.keys));
    TG_TRY(tg_tgpt3_table(file, &h, bytes_of_own, &table, &n));
    TG_TRY(tg_meta_is_own(&config) ? tg_file_set_config(file, &config)
                                   : tg_file_set_own_table(file, &config, table, n));
    TG_TRY(tg_file_set_tensors(file, table, n));
    return tg_tgpt3_chunks(file, &h);
}
