/* SPDX-License-Identifier: Apache-2.0 */
/*
 * family.h - a family of models: its sizes, its tensors, and its graph. One file a family
 * (llama.c, ...), one line in families.def.
 *
 * The graph is written once, in the words of net.h. Whether its weights are floats of one flat
 * array (layout.h), which can be trained, or states of their own as a file has them (tensors.h),
 * and whether its rows are whole sequences or go on behind a cache, is what the words decide.
 */
#ifndef TG_MODEL_FAMILY_H
#define TG_MODEL_FAMILY_H

#include "base/parts.h"
#include "io/gguf/gguf.h"
#include "ir/graph.h"
#include "tinygpt.h"

/* Sizes of a tensor, by what they follow from. */
typedef enum tg_size {
    TG_SIZE_ONE,
    TG_SIZE_WIDTH,
    TG_SIZE_MLP,
    TG_SIZE_VOCAB,
    TG_SIZE_HEAD,
    TG_SIZE_QUERIES, /* heads * head_size */
    TG_SIZE_KEYS,    /* kv_heads * head_size */
    TG_SIZE_QKV,     /* queries and twice the keys */
    TG_SIZE_GATE_UP, /* twice the MLP */
    TG_SIZE_CTX,
    TG_SIZE_TWO,
    TG_SIZE_CONV_IN,   /* three times the width */
    TG_SIZE_TAPS,      /* of a short convolution */
    TG_SIZE_SSM_IN,    /* gates, columns of the convolution, steps */
    TG_SIZE_SSM_CONV,  /* heads, and twice the groups' states */
    TG_SIZE_SSM_INNER, /* ssm_heads * ssm_head_size */
    TG_SIZE_SSM_HEADS,
    TG_SIZE_DELTA_HEAD,    /* ssm_head_size */
    TG_SIZE_GATED_QUERIES, /* twice the queries */
    TG_SIZE_EXPERTS,
    TG_SIZE_EXPERTS_MLP,   /* experts times the MLP of each */
    TG_SIZE_EXPERTS_WIDTH, /* experts times the width */
    TG_SIZE_LAYER_INPUTS,  /* of what one layer takes in from a second table */
    TG_SIZE_ALL_INPUTS,    /* of all layers */
    TG_SIZE_ANY            /* as the file has it; the product that follows wants the same */
} tg_size;
/* In a layer, since some sizes differ from layer to layer; -1: of the model, which has the sizes of
 * layers that see all and have keys of their own. */
size_t tg_size_of(const tg_model_config *c, tg_size size, int layer);

enum {
    TG_WANT_OPTIONAL = 1,
    TG_WANT_ROPE_PAIRS = 2,     /* rows pair (2i, 2i + 1) where GGUF has them: see rope.c */
    TG_WANT_FLOATS = 4,         /* a matrix that is kept as floats, row by row */
    TG_WANT_TABLE = 8,          /* rows that are looked up; but for encoders and where there is an
                                   output.weight, they are multiplied with, too */
    TG_WANT_IN_OUT = 16,        /* [in,out]: y = x W; others are [out,in]: y = x W^T */
    TG_WANT_BRANCH = 32,        /* ends a branch: fresh values are smaller by sqrt(2L) */
    TG_WANT_TAPS = 64,          /* fresh values are N(0, 1 / columns) */
    TG_WANT_IN_ATTENTION = 128, /* in layers of this kind alone */
    TG_WANT_IN_CONV = 256,
    TG_WANT_IN_MAMBA2 = 512,
    TG_WANT_COLUMN = 1024,                /* a vector, which is a column in GGUF */
    TG_WANT_LOGS = 2048,                  /* kept as logs of what GGUF has, times -1 */
    TG_WANT_BIAS_QKV = TG_BIAS_QKV << 12, /* there if the model's biases have this bit */
    TG_WANT_BIAS_OUT = TG_BIAS_OUT << 12,
    TG_WANT_BIAS_MLP = TG_BIAS_MLP << 12,
    TG_WANT_IN_DELTA = 1 << 15,
    TG_WANT_IN_TURNS = 1 << 16,  /* heads of values, which files of GGUF have in another order:
                                   tensors.h */
    TG_WANT_EXPERTS = 1 << 17,   /* the matrices of all experts one below the other, which files of
                                    GGUF have in a third dimension */
    TG_WANT_NOT_FIRST = 1 << 18, /* in all layers but the first */
    TG_WANT_IN_MLP = 1 << 19,    /* in layers that are an MLP alone */
    TG_WANT_GROUPS = 1 << 20,    /* a vector, which GGUF has as a row for each of ssm_groups */
    TG_WANT_LOOKED_UP = 1 << 21, /* a table that is never multiplied with */
    TG_WANT_OWN_KEYS = 1 << 22   /* in layers that have keys and values of their own; files have
                                    some in others, too, which nobody needs */
};
/* Bits of biases that the want hangs on; 0: on none. */
#define TG_WANT_BIASES(want) ((int32_t)((want)->flags >> 12 & 7))

/*
 * A tensor that a family wants. "%d" in a name is the layer. rows TG_SIZE_ONE: a vector.
 * Fresh values: gains (vectors that end in "weight") 1, biases 0, matrices N(0, 0.02).
 * Tensors of the same part serve one product: its rows (or columns, of [in,out]) lie side by side.
 */
typedef struct tg_want {
    const char *name; /* in files, and of its state */
    tg_size rows, cols;
    unsigned flags;
    const char *part; /* in files' manner: "blk.%d.attn_qkv.weight"; NULL: its name */
    const char *role; /* what the graph calls the part; NULL: the part's name behind "blk.%d." */
} tg_want;

/* What the graph calls it. */
const char *tg_want_role(const tg_want *want);
/* Whether it is of layers, and not of the model. */
bool tg_want_in_layers(const tg_want *want);
/* Whether this layer has one; -1: whether the model has. */
bool tg_want_is_in(const tg_want *want, const tg_model_config *c, int layer);
/* Whether such a model has it: a tied one has no head of its own, and others hang on its biases. */
bool tg_want_is_made(const tg_want *want, const tg_model_config *c);

/* Values of a block at which somebody may look, or put another one in their place, while a graph
 * is built: what an experiment needs to know of a family, and all that it may. */
typedef enum tg_site {
    TG_SITE_HEADS,     /* [.., H*D] what the heads gather, side by side: out 0 of attention */
    TG_SITE_ATTENTION, /* [.., C] what attention adds to the stream */
    TG_SITE_MLP,       /* [.., C] what the MLP adds to the stream */
    TG_SITE_STREAM,    /* [.., C] the stream behind the block; behind none where layer is -1 */
    TG_SITE_COUNT
} tg_site;

typedef struct tg_tap {
    /* What the graph goes on with: x, or another value of its type. */
    tg_value *(*at)(void *user, tg_graph *g, tg_site site, int layer, tg_value *x);
    void *user;
} tg_tap;

struct tg_net;
struct tg_metadata;

/* What an encoder reads: several texts, one behind the other, T tokens together; T is dynamic. */
typedef struct tg_net_texts {
    tg_value *tokens;    /* [T] */
    tg_value *positions; /* [T] in its text */
    tg_value *kinds;     /* [T] 0, or 1 in the second text of a pair */
    tg_value *spans;     /* [T,2] the first token of its text, and the one behind its last */
} tg_net_texts;

enum { TG_FAMILY_CLASSES = 2 };

/* The head of a reranker that a file of the family may have: engine/rank.c. */
typedef enum tg_rank_form { TG_RANK_NONE, TG_RANK_TANH, TG_RANK_GELU_NORM } tg_rank_form;
enum { TG_RANK_TENSORS = 5 };
#define TG_RANK_WANTS                                                                              \
    { "cls.weight", TG_SIZE_WIDTH, TG_SIZE_WIDTH, TG_WANT_OPTIONAL },                              \
        { "cls.bias", TG_SIZE_ONE, TG_SIZE_WIDTH, TG_WANT_OPTIONAL },                              \
        { "cls.norm.weight", TG_SIZE_ONE, TG_SIZE_WIDTH, TG_WANT_OPTIONAL },                       \
        { "cls.output.weight", TG_SIZE_ANY, TG_SIZE_WIDTH, TG_WANT_OPTIONAL }, {                   \
        "cls.output.bias", TG_SIZE_ONE, TG_SIZE_ANY, TG_WANT_OPTIONAL                              \
    }

typedef struct tg_family {
    const char *name, *doc; /* the name is GGUF's general.architecture, too */
    const char *label;      /* what people call it, short: for lists */
    const char *gguf;       /* its architecture in GGUF, where its tensors have other names; NULL:
                               both are the same */
    const tg_want *wants;   /* by GGUF's names */
    size_t n_wants;
    /* transformers' names, sizes and options (io/hf/hf.h), of each class that runs such models;
     * NULL behind the last. */
    const struct tg_hf_family *hf[TG_FAMILY_CLASSES];
    bool fresh;            /* can be made with fresh weights, and trained */
    bool bytes;            /* its tokens are bytes, so it has no vocabulary */
    bool windows;          /* its layers may see a window alone; */
    bool first_sees_all;   /* of so many, the first does not, and else the last */
    bool linear_behind;    /* what stands behind the pooling is applied before it, to each token */
    tg_rank_form rank;     /* what stands behind its pooling, in files that rerank */
    bool layer_norms;      /* its norms are layer norms, whether or not they have a shift */
    bool caps;             /* its scores and logits may have soft caps */
    bool scales;           /* what is added to its stream, and its logits, may be scaled */
    int32_t experts_weigh; /* its MLPs are routed, and their experts weigh so unless a file says
                              another thing; 0: they are not */
    tg_layer_kind other;   /* what layers may be besides attention; 0: nothing */
    tg_layer_kind beside;  /* what each layer has beside attention, out of the same norm and added
                              to the same stream; 0: nothing */
    int32_t attention_every; /* of a fresh one: so many layers make one of attention, as does the
                                last; 0: all are */
    bool alone;              /* a layer may be an MLP alone: of a fresh one each second is, and the
                                number above counts the others */
    bool partial;            /* the first elements of its heads may turn alone */
    bool proportional;   /* and of layers that see all they do so within the whole head: pairs are
                            as far apart as in one that turns, by the same frequencies */
    bool by_layer;       /* keys and values may be shared, and sizes differ by layer */
    int32_t still_every; /* of so many layers, the last does not turn; 0: all do */
    /* Sizes of a model of this family that follow from the others, where they are 0. */
    void (*complete)(tg_model_config *c);
    /* Of complete ones, in the place of the limits that hold for all others; NULL: those. */
    tg_status (*check)(tg_ctx *ctx, const char *where, const tg_model_config *c);
    /* Sizes that are this family's own, after the common ones were read from a file; NULL: there
     * are no such files. */
    tg_status (*config)(const tg_gguf *g, tg_model_config *c);
    /* The way back, in the words of metadata_put.h: all keys that follow the heads of queries;
     * NULL: those of most decoders. */
    void (*put)(struct tg_metadata *m);
    /* Appends the model and returns the logits [.., V] of tokens [B,T], or with caches those that
     * follow tokens [T] of dynamic rows. */
    tg_value *(*graph)(struct tg_net *n, tg_value *tokens);
    /* Of encoders, in graph's place: the vectors [T,C] of the tokens of net's texts. */
    tg_value *(*encode)(struct tg_net *n);
} tg_family;

extern const tg_family *const tg_families[];
extern const size_t tg_n_families;
/* Whether encoders train: the modules for the web lack the gradient of their attention. */
enum { TG_TRAIN_MASKS = TG_OP_attention_spans_grad != TG_OP_COUNT };
/* Whether float weights of it can be trained. */
static inline bool tg_family_trains(const tg_family *f) {
    return f->fresh || (TG_TRAIN_MASKS && f->encode);
}
/* NULL if there is none; that of NULL is TG_META_OWN. */
const tg_family *tg_family_find(const char *name);
const tg_family *tg_family_of(const tg_model_config *c);

/* Fills in what follows from other sizes, and checks all: E_RANGE, E_UNSUPPORTED; the message
 * begins with where. The family's name is a static one afterwards. */
tg_status tg_config_complete(tg_ctx *ctx, const char *where, tg_model_config *c);
/* Layers that share keys, and sizes of some layers: of a file, too. */
tg_status tg_config_check_layers(tg_ctx *ctx, const char *where, const tg_model_config *c);
/* Are they the same, once both are complete? */
bool tg_config_same(const tg_model_config *a, const tg_model_config *b);
/* Of a complete one: all weights; those that take part in one token, of whose experts some do not;
 * and those of layers that a row is multiplied with. */
uint64_t tg_config_params(const tg_model_config *c);
uint64_t tg_config_active_params(const tg_model_config *c);
double tg_config_products(const tg_model_config *c);

static inline tg_layer_kind tg_layer_kind_of(const tg_model_config *c, int layer) {
    return c->layer_kind[layer] ? (tg_layer_kind)c->layer_kind[layer] : TG_LAYER_ATTENTION;
}

static inline bool tg_layer_has_state(tg_layer_kind kind) {
    return kind == TG_LAYER_MAMBA2 || kind == TG_LAYER_DELTA;
}

/* What a gated MLP, of three matrices in place of two, has for as many weights as 4*C (Shazeer
 * 2020), in whole vectors. */
static inline int32_t tg_gated_mlp(int32_t width) {
    return width <= 65536 ? (8 * width / 3 + 15) / 16 * 16 : 0;
}

/* Sizes of recurrent layers that nobody gave: 4 taps, and heads that are together twice as wide as
 * the model, of head_size columns or the next smaller number that divides them. */
static inline void tg_config_complete_states(tg_model_config *c, int32_t head_size) {
    const int32_t inner = c->width > 0 && c->width <= 65536 ? 2 * c->width : 2;
    if (c->conv_taps == 0) c->conv_taps = 4;
    if (c->ssm_head_size == 0)
        for (c->ssm_head_size = head_size; inner % c->ssm_head_size != 0;) c->ssm_head_size--;
    if (c->ssm_heads == 0 && c->ssm_head_size > 0) c->ssm_heads = inner / c->ssm_head_size;
}

/* Does this layer of attention see a window alone? */
static inline bool tg_windowed(const tg_model_config *c, int layer) {
    const int number = layer + !tg_family_of(c)->first_sees_all;
    return c->window > 0 && (c->window_every == 0 || number % c->window_every != 0);
}

/* Of the family: sizes may differ by layer, layers may be an MLP alone, pairs turn within the whole
 * head. */
static inline bool tg_differs_by_layer(const tg_model_config *c) {
    return TG_NATIVE_PARTS && tg_family_of(c)->by_layer;
}
static inline bool tg_has_mlps_alone(const tg_model_config *c) {
    return TG_NATIVE_PARTS && tg_family_of(c)->alone;
}
static inline bool tg_turns_in_proportion(const tg_model_config *c) {
    return TG_NATIVE_PARTS && tg_family_of(c)->proportional;
}

/* Does it read the keys and values of an earlier one? */
static inline bool tg_shares_keys(const tg_model_config *c, int layer) {
    return TG_NATIVE_PARTS && layer >= c->layers - c->kv_shared;
}
/* Elements of its heads, and the width of its MLP. */
static inline int32_t tg_layer_head_size(const tg_model_config *c, int layer) {
    const bool windowed = TG_NATIVE_PARTS && layer >= 0 && c->window_head_size > 0;
    return windowed && tg_windowed(c, layer) ? c->window_head_size : c->head_size;
}
static inline int32_t tg_layer_mlp(const tg_model_config *c, int layer) {
    return c->mlp_shared > 0 && tg_shares_keys(c, layer) ? c->mlp_shared : c->mlp;
}

/* ------------------------------------------------------------------- metadata.c: sizes of a file
 */

/* The configuration of a file; a key of its architecture that is not known is refused. */
tg_status tg_config_read(const tg_gguf *g, tg_arena *arena, tg_model_config *c);

/* A key of the architecture: "llama.block_count" of "block_count". Returns out. */
#define TG_KEY_BYTES 160
const char *tg_config_key(const tg_model_config *c, const char *name, char out[TG_KEY_BYTES]);

/* A size of 1..max under <arch>.<name>, which must be there. */
tg_status tg_config_want_int(const tg_gguf *g, const tg_model_config *c, const char *name,
                             int64_t max, int32_t *out);
/* tg_family.config of encoders: refuses a file whose attention is causal. */
tg_status tg_config_want_encoder(const tg_gguf *g, tg_model_config *c);
/* Of families whose embeddings, stream and logits are scaled. */
tg_status tg_config_read_scales(const tg_gguf *g, tg_model_config *c);
/* Scaled positions, for families that turn: rope.scaling.type, which is linear where it is missing,
 * with its factor under either key; YaRN; and factors by the length of texts (longrope). Other
 * kinds are refused. */
tg_status tg_config_read_scaling(const tg_gguf *g, tg_model_config *c);

/* Frequencies of rotary positions come in up to three tables of rope_size / 2: of all layers but
 * those with a window, of these, and of all layers where a text may grow longer than what the model
 * was trained on at first. The first and the last may be divided by factors of a file. */
enum { TG_FREQ_ALL, TG_FREQ_WINDOW, TG_FREQ_LONG, TG_FREQ_TABLES };
#define TG_FREQ_NAME "rope.%d"
/* Twice as many as a table has: elements of a head that turn. */
size_t tg_config_turned(const tg_model_config *c, int table);
void tg_config_freq(const tg_model_config *c, int table, const float *factors, float *out);
/* Whether tables differ by the length of texts. */
bool tg_config_longrope(const tg_model_config *c);

#endif
