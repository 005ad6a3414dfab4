/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file.c - opening by content, and reading tensors through a window.
 *
 * Invariant: every tensor of an open file lies inside the file (the format's open has checked its
 * place), so reading one can only fail because the disk does, or because a checksum does.
 *
 *     file      | head | chunk 0 | chunk 1 | chunk 2 | ...   chunks begin at data_offset
 *     window                     [ chunk 1 ]                 one chunk, checked when it was loaded
 *     tensor                |------ x ------|                copied or converted out of windows
 *
 * A file without checksums is treated as one run of chunks from its first byte, so that there is
 * one way to read. Nothing above this layer knows where chunks begin.
 */
#include "io/run/file.h"

#include "base/codec/crc.h"
#include "base/str.h"
#include "dtype/dtype.h"
#include "io/run/quant.h"

/* All machines that this runs on are little-endian; code that swaps would be code nobody tests. */
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "elements are copied as they lie in the file, which is little-endian"
#endif

static const tg_format formats[] = {
#define TG_FORMAT(id, name) { name, tg_##id##_probe, tg_##id##_open },
#include "io/formats.def"
#undef TG_FORMAT
};

/* Chunks of files that have none of their own: what is read at once. Large enough that the calls
 * into the system cost nothing, small enough for a second-level cache. */
#define WINDOW_BYTES ((size_t)1 << 20)

/*
 * A header may hold a whole training text, so its length is generous; but its values are few: 4096
 * points of history and 4100 tensors make some 50000. 2^20 of them cost 40 MiB, which bounds what a
 * small file of "[0,0,0,..." can take.
 */
static const tg_json_limits header_limits = { .depth = 16, .values = 1u << 20 };
#define HEADER_MAX_BYTES ((size_t)128 << 20)

/* ------------------------------------------------------------------------------------- elements */

/* The X-macro as a table. It has four rows: looking through them beats any cleverer way. */
static const struct {
    uint32_t code;
    const char *name;
    uint32_t block_elems, block_bytes;
} dtypes[] = {
#define DTYPE_ROW(suffix, code, name, block_elems, block_bytes)                                    \
    { code, name, block_elems, block_bytes },
    TG_FILE_DTYPE_LIST(DTYPE_ROW)
#undef DTYPE_ROW
};
#define N_DTYPES (sizeof dtypes / sizeof dtypes[0])

/* N_DTYPES if there is none. */
static size_t dtype_index(uint32_t code) {
    size_t i = 0;
    while (i < N_DTYPES && dtypes[i].code != code) {
        i++;
    }
    return i;
}

bool tg_file_dtype_known(uint32_t code) { return dtype_index(code) < N_DTYPES; }

const char *tg_file_dtype_name(tg_file_dtype dtype) {
    const size_t i = dtype_index((uint32_t)dtype);
    return i < N_DTYPES ? dtypes[i].name : "?";
}

uint64_t tg_file_dtype_bytes(tg_file_dtype dtype, uint64_t n_elems) {
    const size_t i = dtype_index((uint32_t)dtype);
    TG_ASSERT(i < N_DTYPES);
    const uint64_t n_blocks =
        n_elems / dtypes[i].block_elems + (n_elems % dtypes[i].block_elems != 0);
    return n_blocks * dtypes[i].block_bytes;
}

const char *tg_file_shape_text(uint32_t n_dims, const uint64_t *dim, char out[TG_SHAPE_BYTES]) {
    snprintf(out, TG_SHAPE_BYTES, "[");
    for (uint32_t i = 0; i < n_dims; i++) {
        tg_str_append(out, TG_SHAPE_BYTES, "%s%" PRIu64, i ? "," : "", dim[i]);
    }
    tg_str_append(out, TG_SHAPE_BYTES, "]");
    return out;
}

/* -------------------------------------------------------------------------------------- opening */

/* Empty but closable: from here on every way out of opening is tg_file_close. */
static tg_file *file_new(tg_ctx *ctx) {
    tg_file *f = tg_alloc(&ctx->mem, sizeof *f);
    if (f) {
        f->ctx = ctx;
        tg_arena_init(&f->arena, &ctx->mem);
    }
    return f;
}

/* What probes look at: more than the longest magic of the formats in use. */
#define FIRST_BYTES 16

/* No format knows the file: says how it begins, as text where it is text ("<!DOCTYPE html>" says
 * more than its numbers do). */
static tg_status fail_unknown(const tg_reader *r, const uint8_t *first, size_t n_bytes) {
    char hex[3 * FIRST_BYTES + 1] = "", text[FIRST_BYTES + 3] = "\"";
    bool printable = true;
    for (size_t i = 0; i < n_bytes; i++) {
        printable = printable && first[i] >= ' ' && first[i] <= '~';
        tg_str_append(hex, sizeof hex, " %02x", (unsigned)first[i]);
        tg_str_append(text, sizeof text, "%c", printable ? first[i] : ' ');
    }
    tg_str_append(text, sizeof text, "\"");
    return tg_reader_fail(r, TG_E_FORMAT, 0, "magic",
                          "want a .tinygpt, GGUF or safetensors file, have %s",
                          n_bytes == 0 ? "an empty one"
                          : printable  ? text
                                       : hex + 1);
}

/* Reads the first bytes once; a probe that read for itself could fail in a way of its own. */
static tg_status open_by_content(tg_file *f) {
    uint8_t first[FIRST_BYTES];
    const size_t n = f->reader.end < sizeof first ? (size_t)f->reader.end : sizeof first;
    TG_TRY(tg_read_at(&f->reader, 0, "magic", first, n));
    f->total_bytes = f->data_bytes = f->reader.end;
    f->chunk_bytes = WINDOW_BYTES;
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        if (formats[i].probe(first, n)) {
            return formats[i].open(f);
        }
    }
    return fail_unknown(&f->reader, first, n);
}

tg_status tg_file_open(tg_ctx *ctx, const char *path, tg_file **out) {
    *out = NULL;
    tg_file *f = file_new(ctx);
    if (!f) {
        return tg_fail_memory(ctx, path, sizeof *f);
    }
    /* The caller's path may be gone before the file is closed. */
    f->path = tg_arena_strdup(&f->arena, path);
    tg_status status = f->path ? tg_reader_open(ctx, f->path, &f->reader)
                               : tg_fail_memory(ctx, path, strlen(path) + 1);
    if (status == TG_OK) {
        status = open_by_content(f);
    }
    if (status != TG_OK) {
        tg_file_close(f);
        return status;
    }
    *out = f;
    return TG_OK;
}

/* The same for memory: name outlives the file by contract, so nothing is copied. */
tg_status tg_file_open_memory(tg_ctx *ctx, const char *name, const void *bytes, size_t n_bytes,
                              tg_file **out) {
    *out = NULL;
    tg_file *f = file_new(ctx);
    if (!f) {
        return tg_fail_memory(ctx, name, sizeof *f);
    }
    f->path = name;
    tg_reader_open_memory(ctx, name, bytes, n_bytes, &f->reader);
    const tg_status status = open_by_content(f);
    if (status != TG_OK) {
        tg_file_close(f);
        return status;
    }
    *out = f;
    return TG_OK;
}

/* Also for a file whose opening failed half-way: what was not reached is still zero. */
void tg_file_close(tg_file *file) {
    if (!file) {
        return;
    }
    const tg_mem mem = file->ctx->mem;
    for (size_t i = 0; i < 2; i++) {
        tg_free(&mem, file->window[i].bytes, file->window[i].room);
    }
    tg_reader_close(&file->reader);
    tg_arena_deinit(&file->arena);
    tg_free(&mem, file, sizeof *file);
}

/* JSON errors begin with a name of our own making: "path: header: byte N" counts in the header. */
tg_status tg_file_set_header(tg_file *file, const char *text, size_t n_bytes) {
    if (n_bytes > HEADER_MAX_BYTES) {
        return tg_fail(file->ctx, TG_E_FORMAT, "%s: header: want at most %zu bytes, have %zu",
                       file->path, HEADER_MAX_BYTES, n_bytes);
    }
    const char *name = tg_arena_sprintf(&file->arena, "%s: header", file->path);
    if (!name) {
        return tg_fail_memory(file->ctx, file->path, strlen(file->path) + 16);
    }
    TG_TRY(
        tg_json_parse(file->ctx, &file->arena, name, text, n_bytes, &header_limits, &file->header));
    if (tg_json_kind(file->header) != TG_JSON_OBJECT) {
        return tg_fail(file->ctx, TG_E_FORMAT, "%s: want a JSON object, have another value", name);
    }
    file->header_text = text;
    file->header_bytes = n_bytes;
    return TG_OK;
}

tg_status tg_file_set_config(tg_file *file, const tg_model_config *config) {
    file->config = *config;
    return tg_manifest_new(file->ctx, &file->arena, config, &file->manifest);
}

/* -------------------------------------------------------------------------------------- reading */

/* The first tensor with bytes in [begin, end), for a message about a chunk that nobody asked for by
 * name. A gap between tensors is shorter than any chunk, so there is one. */
static const char *tensor_within(const tg_file *f, uint64_t begin, uint64_t end) {
    for (size_t i = 0; i < f->n_tensors; i++) {
        const tg_file_tensor *t = &f->tensor[i];
        const uint64_t start = t->dtype == TG_FILE_INT4 ? t->scale_offset : t->offset;
        if (start < end && t->offset + t->bytes > begin) {
            return t->name;
        }
    }
    return "none";
}

/*
 * The window is emptied before the read and filled after the check, so a chunk that was refused
 * once is refused again, and never taken for the one that was there before.
 */
tg_status tg_file_load_chunk(tg_file *f, tg_file_window *w, uint64_t chunk, const char *tensor) {
    const uint64_t first = chunk * f->chunk_bytes; /* within the data; chunk is one of the file's */
    const uint64_t left = f->data_bytes - first;
    const uint64_t offset = f->data_offset + first;
    const size_t length = left < f->chunk_bytes ? (size_t)left : f->chunk_bytes;
    if (!w->bytes) {
        const size_t room = f->data_bytes < f->chunk_bytes ? (size_t)f->data_bytes : f->chunk_bytes;
        w->bytes = tg_alloc(&f->ctx->mem, room);
        if (!w->bytes) {
            return tg_fail_memory(f->ctx, f->path, room);
        }
        w->room = room;
    }
    w->length = 0; /* what cannot be read or trusted must not be found here later */
    TG_TRY(tg_read_at(&f->reader, offset, "tensor data", w->bytes, length));
    if (f->chunk_crc) {
        const uint32_t crc = tg_crc32c(0, w->bytes, length);
        if (crc != f->chunk_crc[chunk]) {
            return tg_reader_fail(
                &f->reader, TG_E_CHECKSUM, offset, "tensor data",
                "chunk %" PRIu64 " (tensor %s): want CRC %08" PRIx32 ", have %08" PRIx32, chunk,
                tensor ? tensor : tensor_within(f, offset, offset + length), f->chunk_crc[chunk],
                crc);
        }
    }
    w->offset = offset;
    w->length = length;
    return TG_OK;
}

/* Bytes of a tensor, from as many chunks as they lie in. A v2 body is not aligned, so an element
 * may lie in two of them: everything is copied by bytes. */
static tg_status read_span(tg_file *f, tg_file_window *w, const char *tensor, uint64_t offset,
                           void *out, size_t n_bytes) {
    uint8_t *to = out;
    while (n_bytes > 0) {
        if (offset < w->offset || offset - w->offset >= w->length) {
            TG_TRY(tg_file_load_chunk(f, w, (offset - f->data_offset) / f->chunk_bytes, tensor));
        }
        const size_t skip = (size_t)(offset - w->offset);
        const size_t n = w->length - skip < n_bytes ? w->length - skip : n_bytes;
        memcpy(to, w->bytes + skip, n);
        to += n;
        offset += n;
        n_bytes -= n;
    }
    return TG_OK;
}

/* f16 and bf16 pass through a small piece of stack: at 2 KiB it stays in the first-level cache and
 * fits the 64 KiB stacks of WebAssembly. offset is of the first of them in the file. */
static tg_status read_halves(tg_file *f, const tg_file_tensor *t, float *dst, uint64_t offset,
                             size_t n_elems) {
    uint16_t bits[1024];
    while (n_elems > 0) {
        const size_t n = n_elems < 1024 ? n_elems : 1024;
        TG_TRY(read_span(f, &f->window[0], t->name, offset, bits, 2 * n));
        if (t->dtype == TG_FILE_F16) {
            tg_f16_to_f32_n(dst, bits, n);
        } else {
            tg_bf16_to_f32_n(dst, bits, n);
        }
        dst += n;
        offset += 2 * n;
        n_elems -= n;
    }
    return TG_OK;
}

/* Row by row where others lie between; a whole tensor that lies alone is one row. */
static tg_status read_rows(tg_file *f, const tg_file_tensor *t, float *dst, uint64_t first,
                           size_t n_elems) {
    const uint64_t elem_bytes = t->dtype == TG_FILE_F32 ? 4 : 2;
    const uint64_t row_elems = t->row_elems ? t->row_elems : t->elems;
    while (n_elems > 0) {
        const uint64_t row = first / row_elems, col = first % row_elems;
        const size_t n = row_elems - col < n_elems ? (size_t)(row_elems - col) : n_elems;
        const uint64_t offset = t->offset + row * t->row_step_bytes + col * elem_bytes;
        TG_TRY(t->dtype == TG_FILE_F32 ? read_span(f, &f->window[0], t->name, offset, dst, 4 * n)
                                       : read_halves(f, t, dst, offset, n));
        dst += n;
        first += n;
        n_elems -= n;
    }
    return TG_OK;
}

/* Block by block. Scales have a window of their own: they lie far from their nibbles, and one
 * window would be loaded anew for every block. */
static tg_status read_int4(tg_file *f, const tg_file_tensor *t, float *dst, uint64_t first,
                           size_t n_elems) {
    while (n_elems > 0) {
        const uint64_t block = first / TG_INT4_BLOCK;
        const size_t skip = (size_t)(first % TG_INT4_BLOCK);
        const size_t n = TG_INT4_BLOCK - skip < n_elems ? TG_INT4_BLOCK - skip : n_elems;
        uint8_t scale[TG_INT4_SCALE_BYTES], nibbles[TG_INT4_NIBBLE_BYTES];
        TG_TRY(read_span(f, &f->window[1], t->name, t->scale_offset + block * sizeof scale, scale,
                         sizeof scale));
        TG_TRY(read_span(f, &f->window[0], t->name, t->offset + block * sizeof nibbles, nibbles,
                         sizeof nibbles));
        tg_int4_decode(tg_get_u16(scale), nibbles, skip, n, dst);
        dst += n;
        first += n;
        n_elems -= n;
    }
    return TG_OK;
}

/* The one range check of reading. Offsets need none: they were checked against the file when it was
 * opened, for all elements of the tensor. */
tg_status tg_file_read_f32(tg_file *file, const tg_file_tensor *tensor, float *dst,
                           uint64_t first_elem, size_t n_elems) {
    const tg_file_tensor *t = tensor;
    if (first_elem > t->elems || n_elems > t->elems - first_elem) {
        return tg_fail(file->ctx, TG_E_ARG,
                       "%s: tensor %s: want elements within 0..%" PRIu64 ", have %zu from %" PRIu64,
                       file->path, t->name, t->elems, n_elems, first_elem);
    }
    switch (t->dtype) {
    case TG_FILE_F32:
    case TG_FILE_F16:
    case TG_FILE_BF16: return read_rows(file, t, dst, first_elem, n_elems);
    case TG_FILE_INT4: return read_int4(file, t, dst, first_elem, n_elems);
    }
    return tg_fail(file->ctx, TG_E_INTERNAL, "%s: tensor %s: an element type without a reader",
                   file->path, t->name);
}
