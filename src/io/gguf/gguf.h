/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gguf.h - GGUF files, versions 2 and 3: metadata by name, and a table of tensors.
 *
 *   OFFSET    SIZE  MEANING                                        all little-endian
 *   0         4     "GGUF"
 *   4         4     version
 *   8         8     tensors
 *   16        8     metadata
 *   24        ..    metadata: key (u64 length, bytes), u32 type, value; an array is u32 type of its
 *                   elements, u64 count, elements; a string u64 length, bytes
 *   ..        ..    tensors: name (as a key), u32 dimensions 1..4, u64 each, the fastest first, u32
 *                   type (blocks.h), u64 offset in the data
 *   aligned   ..    data: each tensor at a multiple of general.alignment (32)
 *
 * A model may be split over files, MODEL-00001-of-00003.gguf and so on, each of which is a whole
 * GGUF file: split.count and split.no say which one it is, and the first has the metadata of all.
 *
 * What is read here is the form in which third-party models are known to this program: folders of
 * safetensors files are brought into it, too (hf.h), with metadata and names as a GGUF file would
 * have them. Where such a tensor lies otherwise than row by row in the file, its place says how.
 *
 * Nothing is believed: counts are held against the bytes that are left, sizes against overflow and
 * the file's end, types against the table, names against each other. What is opened can be used
 * without another look, but for what the values mean.
 */
#ifndef TG_IO_GGUF_H
#define TG_IO_GGUF_H

#include "dtype/blocks.h"
#include "io/reader.h"

/* Types of values; the numbers are those of the file. */
typedef enum tg_gguf_type {
    TG_GGUF_U8,
    TG_GGUF_I8,
    TG_GGUF_U16,
    TG_GGUF_I16,
    TG_GGUF_U32,
    TG_GGUF_I32,
    TG_GGUF_F32,
    TG_GGUF_BOOL,
    TG_GGUF_STRING,
    TG_GGUF_ARRAY,
    TG_GGUF_U64,
    TG_GGUF_I64,
    TG_GGUF_F64,
    TG_GGUF_TYPE_COUNT
} tg_gguf_type;

typedef struct tg_gguf_string {
    const char *bytes; /* not terminated */
    size_t n_bytes;
} tg_gguf_string;

typedef struct tg_gguf_value {
    const char *key;
    tg_gguf_type type;
    int64_t whole; /* of whole numbers and truth values; U64 above its range is held down to it */
    double real;   /* of all numbers */
    tg_gguf_string text;  /* of strings */
    tg_gguf_type element; /* of arrays */
    size_t count;
    const uint8_t *elements; /* as the file has them; strings: use tg_gguf_next_string */
    size_t elements_bytes;
} tg_gguf_value;

/* Rows up to `end`, behind those of the entry before, are multiplied with `by`. */
typedef struct tg_gguf_times {
    uint64_t end; /* UINT64_MAX ends a list */
    float by;
} tg_gguf_times;

/* Makes tensors whole when rows of them are asked for, in memory that all of its tensors share: so
 * one thread asks, for one tensor after the other. */
typedef struct tg_gguf_maker {
    tg_status (*make)(struct tg_gguf_maker *m, size_t number);
    const void *holds; /* the place whose tensor lies there; NULL: none */
} tg_gguf_maker;

struct tg_gguf_tensor;

/* How rows of such a tensor are read: as tg_gguf_read_rows_into. by_columns: they lie apart, and
 * many at once cost less. */
typedef struct tg_gguf_form {
    size_t (*scratch_bytes)(const struct tg_gguf_tensor *t, uint64_t n);
    tg_status (*read)(tg_ctx *ctx, const struct tg_gguf_tensor *t, uint64_t first, uint64_t n,
                      uint8_t *out, uint8_t *scratch);
    bool by_columns;
} tg_gguf_form;

/* What lies elsewhere in the files: scales, zero points. No rows: there is none. */
typedef struct tg_gguf_part {
    tg_reader reader;
    uint64_t offset, rows, cols;
    uint32_t n_dims;
    tg_dtype type;
} tg_gguf_part;
enum { TG_GGUF_PARTS = 3 };

/*
 * How a tensor lies in a file of safetensors, or in a run.
 *
 *   experts   of routed experts, each a tensor of its own
 *   times     what GGUF has multiplied with numbers of config.json (Falcon-H1), as f32
 *   turned    as [columns, rows], the way of GPT-2's linear layers
 *   plus_one  a vector of gains that are 1 + w (Gemma's norms), as f32
 *   form      quantised in another way than GGUF's (io/hf/hf_quant.h): rows are made of several
 *             parts of the file
 *   maker     a run's: somebody makes it whole first, in the memory that the reader has
 */
typedef struct tg_gguf_place {
    tg_reader reader;
    const struct tg_gguf_tensor *experts; /* [dim[2]] the matrix of each; NULL: they follow each
                                             other */
    const tg_gguf_times *times;           /* NULL: none */
    tg_gguf_maker *maker; /* of what the reader's memory has; NULL: nobody has to make it */
    size_t number;        /* the maker's */
    bool turned, plus_one;
    tg_dtype stored_type; /* of what becomes f32 */
    const tg_gguf_form *form;
    tg_gguf_part part[TG_GGUF_PARTS];
    uint32_t bits, group, group_rows; /* of a form: of a q; columns and rows with one scale */
    uint32_t zero_more;               /* is added to zero points */
    bool across;                      /* a word has q of several rows */
    const float *values;              /* what q stand for; in the arena */
} tg_gguf_place;

typedef struct tg_gguf_tensor {
    const char *name;
    tg_dtype type;
    uint32_t n_dims;
    uint64_t dim[4]; /* dim[0] the fastest: a row. Unused ones are 1 */
    uint64_t elems, bytes;
    uint64_t offset;            /* in the file, or in the place's */
    const tg_gguf_place *place; /* NULL: in the file itself, row by row */
} tg_gguf_tensor;

static inline size_t tg_gguf_row_bytes(const tg_gguf_tensor *t) {
    return (size_t)(t->bytes / (t->elems / t->dim[0]));
}

/* Of a file whose chunks have checksums (tgpt_v3_gguf.c). crc NULL: there are none. */
typedef struct tg_gguf_checks {
    const uint32_t *crc;
    size_t chunk_bytes;
    uint64_t offset, bytes; /* what the chunks cover */
    uint64_t hash_offset;
} tg_gguf_checks;

typedef struct tg_gguf {
    tg_ctx *ctx;
    const char *path;
    uint32_t version;
    tg_reader reader;
    tg_arena arena;
    const tg_gguf_value *values; /* [n_values] sorted by key */
    size_t n_values;
    bool *asked; /* [n_values] where somebody keeps a record: tg_gguf_find has found it */
    const tg_gguf_tensor *tensors; /* [n_tensors] sorted by name */
    size_t n_tensors;
    uint64_t total_bytes; /* of all files */
    size_t n_files;
    struct tg_gguf *others;     /* [n_files - 1] of a split model */
    struct tg_hf *hf;           /* of a folder of safetensors; NULL: GGUF */
    const char *method;         /* in which that was quantised ("gptq"); NULL: none, or GGUF's */
    bool heads_plain;           /* Llama's rows of queries and keys are not paired (rope.c) */
    const char *tokenizer_json; /* [tokenizer_bytes], in place of tokenizer.ggml..; or NULL */
    size_t tokenizer_bytes;
    tg_gguf_checks checks;
} tg_gguf;

/* A tokenizer.json as it was, where a file has it in its metadata. */
#define TG_GGUF_TOKENIZER_JSON "tokenizer.huggingface.json"

bool tg_gguf_probe(const uint8_t *first, size_t n_bytes);

/* path is borrowed until close. On failure *out is closed. Errors: TG_E_IO, TG_E_FORMAT,
 * TG_E_UNSUPPORTED (version, tensor type), TG_E_MEMORY. */
tg_status tg_gguf_open(tg_ctx *ctx, const char *path, tg_gguf *out);
/* The same for bytes in memory, borrowed until close. */
tg_status tg_gguf_open_memory(tg_ctx *ctx, const char *name, const void *bytes, size_t n_bytes,
                              tg_gguf *out);
void tg_gguf_close(tg_gguf *g);
/* One file, split or not, for gguf_split.c, which opens the others of a split model. */
tg_status tg_gguf_open_one(tg_ctx *ctx, const char *path, tg_gguf *out);
tg_status tg_gguf_open_others(tg_gguf *g);

/* A u32 number of values, then they: all that r has left, which is in memory. They lie in the
 * arena, and want tg_gguf_set_tables. */
tg_status tg_gguf_read_values(tg_gguf *g, const tg_reader *r, tg_gguf_value **out, size_t *n);

/* Bytes at a place of a reader, and n elements of a part of t as floats, through stored [n of its
 * type]: for forms, on any thread. */
tg_status tg_gguf_read_at(tg_ctx *ctx, const tg_reader *r, const tg_gguf_tensor *t, uint64_t offset,
                          void *out, size_t n_bytes);
tg_status tg_gguf_read_part(tg_ctx *ctx, const tg_gguf_tensor *t, const tg_gguf_part *part,
                            uint64_t first, size_t n, uint8_t *stored, float *out);

/* The open file that has a tensor row by row, in the bytes of its type, from t->offset on; NULL:
 * they lie otherwise, or in memory. */
const tg_os_file *tg_gguf_lies_in_rows(const tg_gguf *g, const tg_gguf_tensor *t);
/* The same of floats at a multiple of their size. */
const tg_os_file *tg_gguf_lies_plain(const tg_gguf *g, const tg_gguf_tensor *t);

/* Can a changed byte be told: by the chunks of a .tinygpt file, or by the members of a zip file? */
bool tg_gguf_checksummed(const tg_gguf *g);

/* "GGUF v3", "safetensors": for people; "gguf", "safetensors", "tinygpt v3": for programs. */
const char *tg_gguf_format(const tg_gguf *g);
const char *tg_gguf_kind(const tg_gguf *g);

/* Rows [first, first + n) of a tensor, all dimensions but the first one, as blocks of its type, row
 * by row, wherever they lie: out [n * bytes of a row]. */
tg_status tg_gguf_read_rows(const tg_gguf *g, const tg_gguf_tensor *t, uint64_t first, uint64_t n,
                            uint8_t *out);
/* The same for several threads at once: ctx is the thread's own and gets its errors, nothing is
 * allocated; scratch [tg_gguf_scratch_bytes(t, n)], aligned for floats, NULL where these are 0. */
tg_status tg_gguf_read_rows_into(tg_ctx *ctx, const tg_gguf *g, const tg_gguf_tensor *t,
                                 uint64_t first, uint64_t n, uint8_t *out, uint8_t *scratch);
size_t tg_gguf_scratch_bytes(const tg_gguf_tensor *t, uint64_t n);
/* The form of a tensor, or of its experts; NULL: it has none. */
const tg_gguf_form *tg_gguf_form_of(const tg_gguf_tensor *t);
/* All of a tensor as floats: out [elems], through a buffer [t->bytes]. */
tg_status tg_gguf_read_floats(const tg_gguf *g, const tg_gguf_tensor *t, uint8_t *buffer,
                              float *out);
/* The same with room of its own, for small ones: *out [elems], to be freed by the second. */
tg_status tg_gguf_new_floats(const tg_gguf *g, const tg_gguf_tensor *t, float **out);
void tg_gguf_free_floats(const tg_gguf *g, const tg_gguf_tensor *t, float *floats);

/* For whoever makes a table that was not in a file: sorts both lists, which lie in the arena, and
 * refuses names that are there twice. */
tg_status tg_gguf_set_tables(tg_gguf *g, tg_gguf_value *values, size_t n_values,
                             tg_gguf_tensor *tensors, size_t n_tensors);

/* NULL if there is none. */
const tg_gguf_value *tg_gguf_find(const tg_gguf *g, const char *key);
const tg_gguf_tensor *tg_gguf_tensor_find(const tg_gguf *g, const char *name);

/* Values of a given kind. *out is left as it is, and the answer TG_OK, where the key is absent; of
 * another type or out of [min, max] it is TG_E_FORMAT. */
tg_status tg_gguf_get_int(const tg_gguf *g, const char *key, int64_t min, int64_t max,
                          int32_t *out);
tg_status tg_gguf_get_float(const tg_gguf *g, const char *key, float *out);
tg_status tg_gguf_get_bool(const tg_gguf *g, const char *key, bool *out);
tg_status tg_gguf_get_string(const tg_gguf *g, const char *key, tg_gguf_string *out);

/* An array of elements of one type; NULL where it is absent. */
tg_status tg_gguf_get_array(const tg_gguf *g, const char *key, tg_gguf_type element,
                            const tg_gguf_value **out);
/* Every so many layers one sees all, the others a window: a whole number, or bools, one of
 * each of n_layers, which are true for layers with a window. E_FORMAT: those are fewer, or more;
 * E_UNSUPPORTED: they have another rhythm. */
tg_status tg_gguf_get_period(const tg_gguf *g, const char *key, size_t n_layers, int32_t *out);
/* Strings of an array, one after the other: *at begins as 0. */
tg_gguf_string tg_gguf_next_string(const tg_gguf_value *array, size_t *at);

/* Tensors that frequencies of rotary positions are divided by: Llama 3's, and those of longrope for
 * texts that are short and for longer ones. */
enum { TG_FACTORS_LLAMA3, TG_FACTORS_SHORT, TG_FACTORS_LONG, TG_FACTORS };
extern const char *const tg_gguf_factors[TG_FACTORS];
bool tg_gguf_is_factors(const char *name);

#endif
