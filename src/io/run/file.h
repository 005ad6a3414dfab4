/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file.h - a model file, whatever its format: what is in it, and parts of its tensors as f32.
 *
 * Opening reads and checks the head of a file; the tensors stay on disk. They are read in pieces,
 * through a window of at most one chunk, so that no second copy of the weights ever exists, and
 * nothing is mapped, so that a file that shrinks is an error rather than a signal.
 *
 *     tg_file *f;
 *     TG_TRY(tg_file_open_newest(ctx, path, &f, &used_prev));
 *     const tg_file_tensor *t = tg_file_find(f, "ln_final.weight");
 *     tg_status s = tg_file_read_f32(f, t, dst, 0, (size_t)t->elems);
 *     tg_file_close(f);
 *
 * A format is one line in formats.def: a probe that looks at the first bytes, and an open that
 * fills a tg_file. The layouts themselves are drawn in tgpt.h and docs/format-tgpt.md.
 */
#ifndef TG_IO_FILE_H
#define TG_IO_FILE_H

#include "base/codec/json.h"
#include "base/codec/sha256.h"
#include "base/err.h"
#include "base/libc.h"
#include "base/mem.h"
#include "io/reader.h"
#include "io/run/manifest.h"

/* ------------------------------------------------------------------------------------- elements */

/*
 * Element types of files: suffix, code in a v3 table, name, elements of a block, bytes of a block.
 * int4 is the block type of the original's gallery: 64 elements share an f16 scale (quant.h). Its
 * scales and its nibbles lie apart, so a tensor of it has two places.
 */
#define TG_FILE_DTYPE_LIST(X)                                                                      \
    X(F32, 1, "f32", 1, 4)                                                                         \
    X(F16, 2, "f16", 1, 2)                                                                         \
    X(BF16, 3, "bf16", 1, 2)                                                                       \
    X(INT4, 4, "int4", 64, 34)

typedef enum tg_file_dtype {
#define TG_FILE_DTYPE_ENUM(suffix, code, name, block_elems, block_bytes) TG_FILE_##suffix = (code),
    TG_FILE_DTYPE_LIST(TG_FILE_DTYPE_ENUM)
#undef TG_FILE_DTYPE_ENUM
} tg_file_dtype;

const char *tg_file_dtype_name(tg_file_dtype dtype); /* "f32" ...; "?" for what is none */
bool tg_file_dtype_known(uint32_t code);
/* Bytes that n elements take, scales and the padding of the last block included. */
uint64_t tg_file_dtype_bytes(tg_file_dtype dtype, uint64_t n_elems);

#define TG_FILE_MAX_DIMS 4

/* "[256,96]" for messages: four dimensions of up to 20 digits. Returns out. */
#define TG_SHAPE_BYTES 96
const char *tg_file_shape_text(uint32_t n_dims, const uint64_t *dim, char out[TG_SHAPE_BYTES]);

typedef struct tg_file_tensor {
    const char *name; /* as in manifest.h, or that with "adam_m." or "adam_v." */
    tg_file_dtype dtype;
    uint32_t n_dims;
    uint64_t dim[TG_FILE_MAX_DIMS]; /* of the bytes, so [in, out]; unused ones are 1 */
    uint64_t elems;
    uint64_t offset, bytes; /* of the elements in the file; for int4: of the nibbles */
    uint64_t scale_offset;  /* int4 alone: of the f16 scales, one a block */
    /* A tensor that lies in the columns of a wider one: so many elements together, and the bytes
     * from one such row to the next. row_elems 0: all elements lie together. */
    uint64_t row_elems, row_step_bytes;
    const char *stored_as; /* its name in the file, or of the one that it is part of; NULL: name */
} tg_file_tensor;

/* ----------------------------------------------------------------------------------------- file */

/* What stands before a tensor's name, by tg_part: the weights themselves, the optimizer's moments
 * of them, and what is trained where the weights are its average. */
#define TG_ADAM_M "adam_m."
#define TG_ADAM_V "adam_v."
#define TG_RAW    "raw."
enum { TG_PARTS = 4 };
extern const char *const tg_part_prefix[TG_PARTS];

/* The part of the file that was read last: at most one chunk. */
typedef struct tg_file_window {
    uint8_t *bytes; /* [room], NULL until the first read */
    size_t room;
    uint64_t offset; /* of bytes[0] in the file */
    size_t length;   /* 0: nothing is in it */
} tg_file_window;

/* Everything above the line may be read by anybody; nothing may be written. */
typedef struct tg_file {
    tg_ctx *ctx; /* for the errors and memory of every later call */
    const char *path;
    const char *format; /* "tinygpt v1" ... "tinygpt v3", "safetensors" */
    uint32_t version;   /* whose keys the header has: 1, 2 or 3; 0: it is empty */
    uint64_t total_bytes;
    tg_model_config config; /* checked: within tg_gpt_config_check */
    tg_manifest manifest;
    int64_t step;            /* training steps done, >= 0 */
    tg_file_dtype dtype;     /* of the weights (v3: of the first one) */
    bool has_moments;        /* adam_m.* and adam_v.* are there for every weight, as f32 */
    bool has_raw;            /* and raw.* */
    const tg_json *header;   /* the JSON header: an object */
    const char *header_text; /* its text [header_bytes], not terminated */
    size_t header_bytes;
    const uint8_t *keys; /* [keys_bytes] metadata as GGUF has it (load/keys.h); NULL: none */
    size_t keys_bytes;
    /* Weights in manifest order [manifest.n], then all m, then all v if has_moments, then all raw
     * ones if has_raw. */
    const tg_file_tensor *tensor;
    size_t n_tensors; /* 1, 3 or 4 times manifest.n */
    bool checksummed; /* a CRC for each chunk and a SHA-256 over all (v3) */
    /* ---- */
    tg_arena arena;
    tg_reader reader;
    tg_file_window window[2];         /* elements, scales */
    const uint32_t *by_name;          /* [n_tensors] numbers of tensors, sorted by name */
    uint64_t data_offset, data_bytes; /* v3: what the chunks cover */
    uint64_t hash_offset;             /* v3: of the SHA-256 */
    size_t chunk_bytes;
    const uint32_t *chunk_crc; /* [ceil(data_bytes / chunk_bytes)] */
} tg_file;

/* Opens by content, never by the file's name. On failure *out is NULL.
 * Errors: TG_E_IO, TG_E_FORMAT, TG_E_CHECKSUM, TG_E_UNSUPPORTED ("needs tinygpt >= x"), TG_E_RANGE
 * (configuration out of limits), TG_E_MEMORY. */
tg_status tg_file_open(tg_ctx *ctx, const char *path, tg_file **out);
/* The same for bytes in memory, borrowed until the file is closed, as is name. */
tg_status tg_file_open_memory(tg_ctx *ctx, const char *name, const void *bytes, size_t n_bytes,
                              tg_file **out);
void tg_file_close(tg_file *file); /* NULL is fine */

/*
 * Opens path if it is whole. If it is missing or damaged and path.prev is whole, opens that one,
 * sets *used_prev and puts a warning into the log that says what was wrong. Whole means, for a file
 * with checksums, that all of its chunks were read and agree (and, for path.prev, the SHA-256 too).
 * If neither can be used, the error is that of path, with what is wrong with path.prev behind it.
 */
tg_status tg_file_open_newest(tg_ctx *ctx, const char *path, tg_file **out, bool *used_prev);

/* The same in slices, for files that take long to read. path is borrowed until deinit, which may
 * come at any time: what was opened and not taken (out) is closed. */
typedef struct tg_opening tg_opening;
tg_status tg_opening_new(tg_ctx *ctx, const char *path, tg_opening **out);
/* TG_PENDING: call again. Deadlines are on tg_time_ms's clock, 0: none. */
tg_status tg_opening_go_on(tg_opening *o, double deadline_ms, tg_file **out, bool *used_prev);
void tg_opening_free(tg_opening *o); /* NULL is fine */

/* NULL if there is none. O(log n). Valid as long as the file. */
const tg_file_tensor *tg_file_find(const tg_file *file, const char *name);

/*
 * Elements [first_elem, first_elem + n_elems) of a tensor, as f32 in the order of the file, to
 * dst [n_elems]. Reading onwards in file order reads each byte of the file once.
 * Not for two threads at once: the windows are shared.
 * Errors: TG_E_ARG (outside the tensor), TG_E_CHECKSUM (names chunk and tensor), TG_E_IO.
 */
tg_status tg_file_read_f32(tg_file *file, const tg_file_tensor *tensor, float *dst,
                           uint64_t first_elem, size_t n_elems);

/* Loads a chunk into a window and checks it; tensor (or NULL) is for the message. For file*.c. */
tg_status tg_file_load_chunk(tg_file *file, tg_file_window *window, uint64_t chunk,
                             const char *tensor);

/* Reads every chunk and compares its CRC. TG_OK at once for a file without checksums. */
tg_status tg_file_check_chunks(tg_file *file);
/*
 * All that can be checked: chunks, SHA-256, and that every number is in range: finite, and no
 * negative second moment. TG_E_NUMBER names tensor, element and value.
 */
tg_status tg_file_check_all(tg_file *file);

/* Both in slices. Zero-initialised it has not begun; deinit at any time, before the file closes. */
typedef struct tg_checking {
    enum { TG_CHECKING_CHUNKS, TG_CHECKING_HASH, TG_CHECKING_NUMBERS, TG_CHECKING_DONE } stage;
    uint64_t next; /* chunk, byte or element, by the stage */
    size_t tensor; /* whose element it is */
    tg_sha256 sha;
    float *piece; /* room for what is read at once */
} tg_checking;
/* Goes through the stages before `until`: TG_CHECKING_HASH means the chunks alone. */
tg_status tg_checking_go_on(tg_checking *c, tg_file *file, int until, double deadline_ms);
void tg_checking_deinit(tg_checking *c, tg_file *file);

/* --------------------------------------------------------------- for the formats of this folder */

/* One line of formats.def makes one of these, and the prototypes of its two functions. */
typedef struct tg_format {
    const char *name;
    bool (*probe)(const uint8_t *first, size_t n_bytes); /* the first 16 bytes, or all of fewer */
    tg_status (*open)(tg_file *file); /* ctx, path, reader, arena are set; fills the rest */
} tg_format;

#define TG_FORMAT(id, name)                                                                        \
    bool tg_##id##_probe(const uint8_t *first, size_t n_bytes);                                    \
    tg_status tg_##id##_open(tg_file *file);
#include "io/formats.def"
#undef TG_FORMAT

/* Parses the JSON header, which must be an object; text [n_bytes] lies in the file's arena. */
tg_status tg_file_set_header(tg_file *file, const char *text, size_t n_bytes);

/* Sets a config that was checked, and the manifest that follows from it. */
tg_status tg_file_set_config(tg_file *file, const tg_model_config *config);

/* The same where what the configuration asks for is not known here: the manifest is what the table
 * [n] holds but for moments, in its order. Whoever knows the family holds it against that. */
tg_status tg_file_set_own_table(tg_file *file, const tg_model_config *config,
                                const tg_file_tensor *table, size_t n);

/*
 * All that is wrong with a table, for one message: the first ones by name, the rest by number. One
 * error that lists ten missing tensors says "another architecture"; the first of ten errors would
 * say "a broken file". Zero-initialised: nothing is wrong.
 */
typedef struct tg_complaints {
    char text[640];
    size_t length, n, n_left_out;
} tg_complaints;
TG_PRINTF(2, 3) void tg_complain(tg_complaints *c, const char *format, ...);
/* TG_OK if there are none, else one TG_E_FORMAT. */
tg_status tg_complaints_status(const tg_file *file, const tg_complaints *c);

/*
 * Sets tensor, n_tensors, has_moments, dtype and by_name out of a table [n] in any order. Checks
 * that it is exactly what the manifest asks for, and lists what is missing, extra or of another
 * shape in one TG_E_FORMAT. Needs ctx, path, arena and manifest; names lie in the arena.
 */
tg_status tg_file_set_tensors(tg_file *file, const tg_file_tensor *table, size_t n);

#endif
