/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hf.h - model folders as transformers and MLX write them, or a zip file of one.
 *
 *     config.json                     what the model is, and its sizes
 *     model.safetensors               its tensors; or
 *     model.safetensors.index.json    which of model-00001-of-00003.safetensors, .. has which
 *                                     tensor
 *     tokenizer.json                  the vocabulary (tok/tok_json.c)
 *     tokenizer_config.json, chat_template.jinja    the chat template
 *     generation_config.json          the token that ends a text; how its makers draw tokens
 *
 * What comes out is a tg_gguf (gguf.h): of a family there is a table of names and of keys, each
 * with what llama.cpp's converter calls it (model/families/llama.c and its like). Tensors of other
 * names are kept under their own, so that model/tensors.c can list them as of no use; shapes are
 * checked there, too.
 */
#ifndef TG_IO_HF_H
#define TG_IO_HF_H

#include "base/codec/json.h"
#include "base/parts.h"
#include "io/folder.h"
#include "io/gguf/gguf.h"
#include "io/safetensors/safetensors_head.h"

typedef struct tg_hf {
    tg_folder folder;
} tg_hf;

/* Is it a folder, or a zip file? An error where it is there and cannot be read. */
tg_status tg_hf_probe(tg_ctx *ctx, const char *path, bool *is);

/* On failure *out is closed. TG_E_UNSUPPORTED names model types, dtypes and options that are not
 * known, with those that are. */
tg_status tg_hf_open(tg_ctx *ctx, const char *path, tg_gguf *out);
/* A zip file in memory, borrowed until the tg_gguf is closed. */
tg_status tg_hf_open_memory(tg_ctx *ctx, const char *name, const void *bytes, size_t n_bytes,
                            tg_gguf *out);
/* Whatever it is: a folder, a zip file, .tinygpt v3 with metadata, or GGUF. */
tg_status tg_gguf_open_any(tg_ctx *ctx, const char *path, tg_gguf *out);
void tg_hf_close(tg_hf *hf); /* NULL is fine */

/* ----------------------------------------------------------------------------- for hf*.c alone */

enum {
    TG_HF_TURNED = 1,
    TG_HF_PLUS_ONE = 2,
    TG_HF_CHANNELS = 4, /* [C,1,L] of a convolution that sees each column for itself */
    TG_HF_WHOLE = 8,    /* the names are whole ones; what GGUF has as a column is a vector */
    TG_HF_HALVES = 16,  /* rows of two tensors of GGUF, whose names are in this line and the next;
                           with a third dimension, of each expert */
    TG_HF_EXPERTS = 32, /* of one expert, whose number is the %d; GGUF has all in one tensor */
    TG_HF_WITHIN = 64   /* of a head that stands within the model's prefix */
};

/* Names without ".weight" and ".bias"; NULL ends a table. */
typedef struct tg_hf_name {
    const char *theirs, *ours;
    unsigned flags;
} tg_hf_name;

/* A size of config.json, and its key behind "llama.". fallback 0: it must be there; -1: it may be
 * missing, and is then left out; -4: it is then four times the width. */
typedef struct tg_hf_size {
    const char *theirs, *ours;
    int32_t fallback;
} tg_hf_size;

struct tg_hf_values;
typedef struct tg_hf_family {
    const char *model_type, *arch; /* of config.json, and of GGUF */
    const char *class;             /* of transformers, that runs it */
    const char *prefix, *layers;   /* "model.", which may be missing; "layers." before a number */
    const tg_hf_name *top, *block;
    const char *const *ignored; /* ends of names of tensors that nobody needs; NULL ends it */
    const char *const *beside;  /* beginnings of names of what stands beside the text model; NULL */
    const tg_hf_size *sizes;
    const char *eps_theirs, *eps_ours;
    double eps;
    const char *act_key;         /* the activation; NULL: it has no choice */
    const char *const *acts;     /* those that the family computes; NULL ends it */
    const char *const *switches; /* keys that must be false, null or missing; NULL ends it */
    bool tied;                   /* where tie_word_embeddings is missing */
    bool rope;
    int32_t window_every; /* of so many layers, one sees all, unless a file says another thing; 0:
                             they do not differ */
    bool lists_windows;   /* GGUF has a list of them, and no period */
    bool query_scalar;    /* scores are divided by the root of query_pre_attn_scalar */
    bool first_sees_all;  /* of so many, the first does, and else the last */
    /* config.json's words where they are not the common ones; NULL: they are. */
    const char *base_key;  /* of rope_theta */
    const char *local_key; /* of that of layers with a window */
    const char *every_key; /* of the period of windows */
    bool both_ways;        /* an encoder of a decoder's class: use_bidirectional_attention is on */
    bool local_rope;       /* layers with a window turn by a base of their own, and unstretched */
    double local_base;     /* that, where config.json has none */
    bool all_windowed;     /* all layers see the window, unless it is null */
    bool longrope;         /* factors by the length of texts */
    double part;           /* of a head, which turns where config.json does not say; 0: all does */
    bool says_biases;      /* attention_bias and mlp_bias say what its layers have */
    bool always_biases;    /* queries, keys and values have them */
    int32_t still_every;   /* of so many layers, the last does not turn; 0: all do */
    double proportional;   /* part of the pairs of a head that turn within the whole one, where
                              config.json does not say, in layers that see all; 0: all do */
    double rope_base;      /* where config.json has none; 0: 1e4 */
    bool encoder;          /* saved without the prefix; its texts begin with CLS and end with SEP */
    /* A reranker's head: names that stand beside the model proper, or within its prefix, where
     * there is a "classifier" (else they are of no use); transformers' class of such models; the
     * key that says how rows are pooled for it, NULL: the first. */
    const tg_hf_name *rank;
    const char *rank_class, *rank_pooling;
    const char
        *gelu_erf;    /* the activation that is not the family's own, but the exact gelu; NULL */
    const char *head; /* the output matrix, which a tied model repeats; or NULL */
    const char *other_layer; /* what layer_types calls those without attention; NULL: all have it */
    const char *attention_layer, *other_now; /* what it calls those with attention (NULL:
                                                full_attention), and the others since version 5 */
    bool recurrent;        /* GGUF lists layers without attention, and not the heads of keys */
    const char *positions; /* position_embedding_type; NULL: absolute */
    /* What no table can say, from config.json and to it; NULL: nothing. */
    tg_status (*read)(struct tg_hf_values *m);
    void (*write)(tg_json_writer *w, const tg_gguf *g);
} tg_hf_family;

/* hf_writer.c, for write(): "key": x */
void tg_hf_write_int(tg_json_writer *w, const char *key, int64_t x);

/* How a model's makers draw tokens: keys of generation_config.json, and whole ones of GGUF. */
typedef struct tg_hf_sampling_key {
    const char *theirs, *ours;
    bool whole;
} tg_hf_sampling_key;
enum { TG_HF_SAMPLING_KEYS = 6 };
extern const tg_hf_sampling_key tg_hf_sampling_keys[TG_HF_SAMPLING_KEYS];

/* The i-th family, by model/families.def; NULL beyond the last. */
const tg_hf_family *tg_hf_family_at(size_t i);

enum { TG_HF_VALUES = 64, TG_HF_TIMES = 12 };

/* Metadata while it is made; memory that was missing is remembered. */
typedef struct tg_hf_values {
    tg_gguf *g;
    const tg_hf_family *family;
    tg_gguf_value *v; /* [TG_HF_VALUES] */
    size_t n;
    bool failed;
    const char *where;          /* begins messages */
    const tg_json *root;        /* config.json */
    bool *asked;                /* of its values by place: somebody has looked at it */
    float *factors[TG_FACTORS]; /* [n_factors] each, of tg_gguf_factors, or NULL */
    size_t n_factors;
    struct {
        const char *ours;          /* the tensors' name in the family's table */
        const tg_gguf_times *rows; /* what is to be multiplied with what */
    } times[TG_HF_TIMES];
    size_t n_times;
} tg_hf_values;

/* key: behind the family's name and a dot, or with a dot in front: whole. */
void tg_hf_put_int(tg_hf_values *m, const char *key, int64_t value);
/* n of them: the place of their bytes, each 4, to be filled; NULL: no memory. */
uint8_t *tg_hf_put_ints(tg_hf_values *m, const char *key, size_t n);
/* Likewise, of n bytes that are 0 or 1. */
uint8_t *tg_hf_put_bools(tg_hf_values *m, const char *key, size_t n);
void tg_hf_put_bool(tg_hf_values *m, const char *key, bool value);
void tg_hf_put_float(tg_hf_values *m, const char *key, double value);
void tg_hf_put_text(tg_hf_values *m, const char *key, const char *text, size_t n_bytes);
/* Matrices whose name is `ours` in the family's table are read as products: see tg_gguf_times. The
 * list is copied up to its end; one of nothing but 1 is left out. */
void tg_hf_put_times(tg_hf_values *m, const char *ours, const tg_gguf_times *rows);

/* How weights are quantised (hf_quant.h). */
typedef struct tg_hf_method tg_hf_method;
typedef struct tg_hf_quant {
    const tg_hf_method *method; /* NULL: they are not */
    uint32_t bits;
    uint32_t group, group_rows; /* columns, and rows, with one scale; 0: all */
    uint32_t zero_more;         /* what zero points are stored without */
    bool symmetric, ordered;    /* GPTQ's sym and desc_act */
    bool mxfp4;                 /* MLX's mode */
} tg_hf_quant;

/* config.json (hf_config.c). Sets family and all values. *tied and *quant are for whoever reads the
 * tensors. where begins messages. */
tg_status tg_hf_config(tg_hf_values *m, const char *where, const tg_json *root, bool *tied,
                       tg_hf_quant *quant);

static inline bool tg_hf_ends_with(const char *text, const char *with) {
    const size_t n = strlen(text), k = strlen(with);
    return n >= k && strcmp(text + n - k, with) == 0;
}

/* A JSON file of the folder, which lives as long as g; *out is NULL where there is none. */
tg_status tg_hf_read_json(tg_gguf *g, tg_folder *folder, const char *name, const tg_json **out);

/* Does any of those files say true to it? */
static inline bool tg_hf_is_on(const tg_json *config, const char *key) {
    const tg_json *on = tg_json_get(config, key);
    return on && tg_json_kind(on) == TG_JSON_TRUE;
}

/* How texts become vectors (hf_embed.c). */
typedef struct tg_hf_embedding {
    tg_gguf *g;
    tg_folder *folder;
    bool embeds;          /* the folder says it */
    bool ranks;           /* config.json's class is that of the family's rerankers */
    const char *dense[2]; /* folders of matrices behind the pooling; NULL: none */
} tg_hf_embedding;
/* With g and folder set: the rest, and the values of m. */
tg_status tg_hf_put_embedding(tg_hf_embedding *o, tg_hf_values *m);

/* Of config.json, for the families: a member that is there and not null; a number of 1 or more,
 * which must be there; one above 0, which may be missing. */
const tg_json *tg_hf_member(tg_hf_values *m, const tg_json *v, const char *key);
tg_status tg_hf_get_int(tg_hf_values *m, const tg_json *root, const char *key, int64_t *out);
tg_status tg_hf_get_float(tg_hf_values *m, const tg_json *root, const char *key, double *out);

/* A member of config.json that changes nothing of what is computed: hf_keys.def. */
bool tg_hf_harmless(const tg_json *v);
/* The same by another list: hf_keys.def says what the values mean. */
typedef struct tg_hf_key {
    const char *key;
    enum { TG_HF_ANY, TG_HF_OFF, TG_HF_ON } value;
} tg_hf_key;
bool tg_hf_key_in(const tg_hf_key *list, size_t n, const tg_json *v);

/* generation_config.json, but for ends of texts. */
void tg_hf_sampling(tg_hf_values *m, const tg_json *generation);

#endif
