/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lm.h - families of language models as third-party files have them: sizes, tensors, a graph.
 *
 * One file a family (llama.c, gemma3.c, gpt2.c, bert.c), listed in lms.def. A family says where its
 * sizes are in the metadata, which tensors it wants, and what it computes. Weights stay in the
 * types that the file has them in; each matrix is a state of the graph by its name in the file,
 * packed (dtype/packed.h), and each vector a state of floats.
 */
#ifndef TG_MODEL_LM_H
#define TG_MODEL_LM_H

#include "dtype/packed.h"
#include "io/gguf.h"
#include "ir/graph.h"
#include "ops/build.h"

typedef struct tg_lm_family tg_lm_family;

typedef struct tg_lm_config {
    const tg_lm_family *family;
    int32_t layers, width, heads, kv_heads, head_size, mlp, vocab, ctx;
    int32_t window;       /* positions that a layer with a window sees; 0: all layers see all */
    int32_t window_every; /* every so many layers, one sees all */
    float eps;
    float score_scale;  /* of dot products of queries and keys */
    float embed_scale;  /* of embeddings */
    float rope_base[2]; /* [1]: of layers with a window */
    float rope_factor;  /* positions are divided by it; 1 */
    bool gelu_erf;      /* GPT-2: the exact gelu, not the one by tanh */
    int32_t pooling;    /* of embeddings: TG_POOL_.. */
    int32_t embed_ctx;  /* tokens of a text that count for its embedding; 0: not said */
} tg_lm_config;

/* Does this layer see a window alone? */
static inline bool tg_lm_windowed(const tg_lm_config *c, int layer) {
    return c->window > 0 && (layer + 1) % c->window_every != 0;
}

/* Positions that a layer's cache has room for, in a context of so many, if calls have up to so many
 * rows: a window needs itself and the rows, in whole tiles (ops/attention_cached). */
static inline int32_t tg_lm_cache_room(const tg_lm_config *c, int layer, int32_t positions,
                                       int32_t rows) {
    if (!tg_lm_windowed(c, layer) || positions <= rows) return positions;
    const int32_t ring = (c->window - 1 + rows + 63) / 64 * 64;
    return ring < positions ? ring : positions;
}

/* How the vectors of a text's tokens become one; numbers are those of GGUF's pooling_type. */
enum { TG_POOL_MEAN = 1, TG_POOL_CLS = 2, TG_POOL_LAST = 3 };

/* Sizes of a tensor, by what they follow from. */
typedef enum tg_lm_size {
    TG_LM_ONE,
    TG_LM_WIDTH,
    TG_LM_MLP,
    TG_LM_VOCAB,
    TG_LM_HEAD,
    TG_LM_QUERIES, /* heads * head_size */
    TG_LM_KEYS,    /* kv_heads * head_size */
    TG_LM_QKV,     /* queries and twice the keys */
    TG_LM_CTX,
    TG_LM_TWO
} tg_lm_size;

enum {
    TG_LM_OPTIONAL = 1,
    TG_LM_ROPE_PAIRS = 2, /* rows pair (2i, 2i + 1) where GGUF has them: see rope.c */
    TG_LM_FLOATS = 4,     /* a matrix that is kept as floats, row by row */
    TG_LM_TABLE = 8       /* rows that are looked up; but for encoders and where there is an
                             output.weight, they are multiplied with, too */
};

/* A tensor that a family wants; "%d" in the name is the layer. rows TG_LM_ONE: a vector. */
typedef struct tg_lm_want {
    const char *name;
    tg_lm_size rows, cols;
    unsigned flags;
} tg_lm_want;

/* A tensor as the graph sees it. */
typedef struct tg_lm_tensor {
    const char *name;
    const tg_gguf_tensor *source;
    tg_packing packing;
    bool is_floats; /* vectors, and some matrices, are not packed */
    bool turns;     /* its rows are heads that rotate */
    bool pairs;     /* and pair (2i, 2i + 1) in the file */
    size_t rows, cols;
    bool stays;                 /* in the file, which is mapped (tg_gguf_lies_plain) */
    size_t offset_bytes, bytes; /* in the model's block, or in the tensor's file */
} tg_lm_tensor;

/* What a graph answers with. */
typedef enum tg_lm_answers {
    TG_LM_LAST_LOGITS,   /* [1,V] of the last token alone */
    TG_LM_LOGITS,        /* [T,V] */
    TG_LM_HIDDEN_STATES, /* [T,C] behind the final norm */
} tg_lm_answers;

typedef struct tg_lm {
    tg_lm_config config;
    const tg_lm_tensor *tensors; /* [n_tensors] in the order of the family's list */
    size_t n_tensors;
    size_t bytes;          /* of all of them that do not stay in the file */
    uint64_t elems;        /* parameters */
    tg_lm_answers answers; /* of graphs */
} tg_lm;

/* What an encoder reads: several texts, one behind the other, T tokens together; T is dynamic. */
typedef struct tg_lm_texts {
    tg_value *tokens;    /* [T] */
    tg_value *positions; /* [T] in its text */
    tg_value *kinds;     /* [T] 0, or 1 in the second text of a pair */
    tg_value *spans;     /* [T,2] the first token of its text, and the one behind its last */
} tg_lm_texts;

struct tg_lm_family {
    const char *name, *doc; /* general.architecture */
    const tg_lm_want *wants;
    size_t n_wants;
    /* Sizes that are this family's own, after the common ones were read. */
    tg_status (*config)(const tg_gguf *g, tg_lm_config *c);
    /* Appends the model to g and returns what lm->answers says of tokens [T], T dynamic; caches
     * [layers] states [2,K,Tmax,D]. */
    tg_value *(*graph)(tg_graph *g, const tg_lm *lm, tg_value *tokens, tg_value *const *caches);
    /* Of encoders, in graph's place: the vectors [T,C] of tokens. */
    tg_value *(*encode)(tg_graph *g, const tg_lm *lm, const tg_lm_texts *in);
};

extern const tg_lm_family *const tg_lm_families[];
extern const size_t tg_n_lm_families;

/* Reads sizes and the table of tensors; all that is missing or misshapen is listed in one error.
 * Tables are in the arena, and point into g. stay: floats whose rows are looked up and never
 * multiplied with stay in the file. */
tg_status tg_lm_read(const tg_gguf *g, tg_arena *arena, bool stay, tg_lm *out);

/* A key of the architecture: "llama.block_count" of "block_count". Valid until the next call. */
#define TG_LM_KEY_BYTES 160
const char *tg_lm_key(const tg_lm_config *c, const char *name, char out[TG_LM_KEY_BYTES]);

/* Positions that are divided by a factor, for families that turn: rope.scaling.type, which is
 * linear where it is missing, with its factor under either key. Other kinds are refused. */
tg_status tg_lm_read_scaling(const tg_gguf *g, tg_lm_config *c);

/* ------------------------------------------------------------------------ for graphs of families
 */

/* What a part of a graph needs to find its weights. */
typedef struct tg_lm_scope {
    tg_graph *g;
    const tg_lm *lm;
    int layer; /* -1 outside of the blocks */
} tg_lm_scope;

/* A vector by its short name ("attn_norm.weight"); NULL if the file has none, which only those may
 * miss that are optional. */
tg_value *tg_lm_vector(const tg_lm_scope *s, const char *name);
/* The same of a matrix that is wanted as floats. */
tg_value *tg_lm_floats(const tg_lm_scope *s, const char *name);
/* norm(x) by the layer norm NAME.weight and NAME.bias. */
tg_value *tg_lm_layer_norm(const tg_lm_scope *s, tg_value *x, const char *name);
tg_packed_value tg_lm_matrix(const tg_lm_scope *s, const char *name);
/* f(x) times up to three matrices, side by side, named without ".weight"; their biases if there are
 * any. b and c may be NULL. */
tg_value *tg_lm_linear(const tg_lm_scope *s, tg_value *x, const char *a, const char *b,
                       const char *c, tg_value *residual, int read);
/* The rows that an answer is wanted of: all, or the last one. */
tg_value *tg_lm_asked(const tg_lm_scope *s, tg_value *x);
/* The answer out of those rows behind the final norm: as they are, or their logits by the head,
 * which is the embedding where the file has none. */
tg_value *tg_lm_answer(const tg_lm_scope *s, tg_value *x);
/* Frequencies of rotary positions, by the number of their base. */
tg_value *tg_lm_freq(const tg_lm_scope *s, int base);
/* The other way about, for whoever binds the states: fills out [head_size / 2]. factors: of the
 * file's tensor rope_freqs, or NULL. */
void tg_lm_fill_freq(const tg_lm_config *c, int base, const float *factors, float *out);
#define TG_LM_FREQ_NAME "rope.%d"

#endif
