/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tinygpt.h - train, fine-tune and run small GPTs: the one public header.
 *
 * A whole program: train on a text for 200 steps, then let the model write.
 *
 *     tg_context *ctx; tg_text *text; tg_model *model; tg_trainer *trainer;
 *     tg_context_new(NULL, &ctx);
 *     tg_text_open(ctx, "shakespeare.txt", &text);
 *     tg_model_new(ctx, &tg_preset_find("small")->config, 42, &model);
 *     tg_train_options o = tg_train_options_default();
 *     o.steps = 200;
 *     if (tg_trainer_new(ctx, model, text, &o, &trainer)) puts(tg_context_error(ctx));
 *     tg_trainer_run(trainer, NULL, NULL);
 *     tg_generate(ctx, model, "ROMEO:", 6, NULL, 100, print_piece, NULL);
 *     tg_trainer_free(trainer); tg_model_free(model); tg_text_free(text); tg_context_free(ctx);
 *
 * Three tiers. SIMPLE, a run, a conversation or a vector in a few calls, is what a program sees.
 * ADVANCED (steps, sessions, files, settings) is there with -DTG_ADVANCED, and UNSTABLE (what
 * doctor, dump and bench need; may change with any version) with -DTG_UNSTABLE, which brings both.
 *
 * Versions. While the major version is 0, a minor version may change calls and structs, of the
 * SIMPLE tier, too; the soname is libtinygpt.so.MAJOR.MINOR then, so a program keeps the library
 * that it was built with. A patch version changes neither.
 *
 * Conventions. Every call that can fail returns a tg_status: TG_OK is 0, errors are negative, and
 * tg_context_error() then says what, where, what was wanted and what was found. Nothing here
 * prints, exits or aborts. The floating-point environment of the calling thread (rounding mode,
 * flush flags) changes no result: a call that computes sets the default, also for its callbacks,
 * and leaves it as it was. Objects are made by _new or _open and given back by _free, which takes
 * NULL. A context and everything made from it is used by one thread at a time. Several sessions may
 * use one model, also from several contexts (and so threads), as long as nobody trains it
 * meanwhile. Letters in shapes: B batch, T tokens of context, C width, H heads, L layers, V
 * vocabulary.
 */
#ifndef TINYGPT_H
#define TINYGPT_H

#if defined(TG_UNSTABLE) && !defined(TG_ADVANCED)
#define TG_ADVANCED
#endif

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TG_VERSION_MAJOR 0
#define TG_VERSION_MINOR 2
#define TG_VERSION_PATCH 0
#define TG_VERSION_TEXT  "0.2.0"

#if defined(__GNUC__) && !defined(TG_NO_VISIBILITY)
#define TG_API __attribute__((visibility("default")))
#else
#define TG_API
#endif

/* name, value, sentence */
#define TG_STATUS_LIST(X)                                                                          \
    X(OK, 0, "done")                                                                               \
    X(PENDING, 1, "not finished yet: call again")                                                  \
    X(STOPPED, 2, "stopped on request, in a state that can be saved")                              \
    X(E_ARG, -1, "an argument is outside its stated range")                                        \
    X(E_MEMORY, -2, "not enough memory")                                                           \
    X(E_IO, -3, "a file could not be read or written")                                             \
    X(E_FORMAT, -4, "a file does not follow its format")                                           \
    X(E_CHECKSUM, -5, "a file is damaged: a checksum does not match")                              \
    X(E_RANGE, -6, "a number or token id is out of range")                                         \
    X(E_FULL, -7, "no room is left in the context window")                                         \
    X(E_SHAPE, -8, "shapes do not fit together")                                                   \
    X(E_UNSUPPORTED, -9, "this is not supported")                                                  \
    X(E_DEVICE, -10, "the device failed or is missing")                                            \
    X(E_NUMBER, -11, "a loss, gradient or logit is not a finite number")                           \
    X(E_DATA, -12, "the text cannot be used for training")                                         \
    X(E_INTERNAL, -13, "an invariant of tinygpt itself is broken: please report it")

typedef enum tg_status {
#define TG_STATUS_ENUM(name, value, sentence) TG_##name = value,
    TG_STATUS_LIST(TG_STATUS_ENUM)
#undef TG_STATUS_ENUM
        TG_STATUS_LAST = TG_E_INTERNAL /* no comma may stand here in C++98 */
} tg_status;

/* One English sentence for a status; never NULL. */
TG_API const char *tg_status_text(tg_status status);

/* The version of the linked library, such as "0.2.0". */
TG_API const char *tg_version(void);

/*
 * Allocator, in Lua's manner: ptr NULL allocates new_bytes, new_bytes 0 frees ptr (old_bytes long),
 * else resizes. Returns NULL when there is no memory; then ptr is still valid.
 */
typedef void *(*tg_alloc_fn)(void *user, void *ptr, size_t old_bytes, size_t new_bytes);

/* Log lines: level 0 error, 1 warning, 2 information. The text is borrowed for the call. */
typedef void (*tg_log_fn)(void *user, int level, const char *text);

/* Receives a piece of text (not zero-terminated); a non-zero answer stops the producer. */
typedef int (*tg_text_fn)(void *user, const char *bytes, size_t n_bytes);

/* Asked often; a non-zero answer stops the work at the next safe point. */
typedef int (*tg_cancel_fn)(void *user);

/*
 * Options. The first member of each such struct is its size, which the _default call fills in. A
 * library that knows more options than the program that calls it takes their defaults; one that
 * knows fewer refuses (E_ARG).
 */
#define TG_OPTIONS(name)                                                                           \
    TG_API void name##_init(name *options, size_t struct_bytes);                                   \
    static inline name name##_default(void) {                                                      \
        name options;                                                                              \
        name##_init(&options, sizeof options);                                                     \
        return options;                                                                            \
    }

/* ------------------------------------------------------------------------------ SIMPLE: context */

typedef struct tg_context tg_context; /* allocator, log, threads, ISA, levers, last error */

typedef struct tg_context_options {
    size_t struct_bytes;
    unsigned threads; /* 0: min(affinity, cgroup quota); otherwise 1..256 */
    const char
        *isa; /* NULL: the best this CPU has; else a name of tg_isa_at(), borrowed for the call */
    /* NULL or "cpu"; or "webgpu": the best adapter that can be opened, else E_DEVICE says what is
     * missing. A run on a device that is lost goes on from a copy on another one, after three
     * losses on the CPU; the log tells. In WebAssembly the host prepares the device before, and
     * only jobs and polls can wait for it. */
    const char *device;
    const char *levers; /* NULL, or "-flash_attention,+bf16": switches off and on by name */
    tg_alloc_fn alloc;  /* NULL: the C library's */
    void *alloc_user;
    tg_log_fn log; /* NULL: silent */
    void *log_user;
} tg_context_options;
TG_OPTIONS(tg_context_options)

/* NULL options are the defaults. On failure *out is NULL (with no memory there is no message). If
 * an option is wrong, *out is a context that can only be asked for its error and freed. */
TG_API tg_status tg_context_new(const tg_context_options *options, tg_context **out);
TG_API void tg_context_free(tg_context *ctx);

/* The message of the last failed call on this context or anything made from it; "" if there was
 * none. Valid until the next call on the context. */
TG_API const char *tg_context_error(const tg_context *ctx);

/* What is in use and why: one line for the banner. Valid as long as the context. */
TG_API const char *tg_context_banner(const tg_context *ctx);
TG_API unsigned tg_context_threads(const tg_context *ctx);
TG_API const char *tg_context_isa(const tg_context *ctx);

/* ------------------------------------------------------------------------------- SIMPLE: models */

/*
 * What a model is made of, whatever its family. The first five are always given; of the others 0
 * (or NULL) means what the family makes of them, and models answer with all of them filled in.
 * Limits: layers 1..512, width 1..65536, heads 1..1024, ctx 1..2^24, vocab 1..2^26; of the family
 * tinygpt layers 1..256, width 1..16384 and a multiple of heads, ctx 1..65536, vocab 256, mlp = 4 *
 * width.
 */
typedef struct tg_model_config {
    int32_t layers;        /* L */
    int32_t width;         /* C */
    int32_t heads;         /* H, of queries */
    int32_t ctx;           /* T */
    int32_t vocab;         /* V; 256: tokens are bytes, unless the model has a vocabulary */
    int32_t mlp;           /* M, width inside of the MLP; 0: 4*C, or 8*C/3 where it is gated */
    const char *family;    /* tg_family_at(); NULL: "tinygpt" */
    int32_t kv_heads;      /* K, of keys and values, divides H; 0: H */
    int32_t head_size;     /* D; 0: C/H */
    int32_t window;        /* positions that a layer with a window sees; 0: all see all */
    int32_t window_every;  /* every so many layers, one sees all; 0: none does */
    int32_t tied;          /* 1: the embedding is the head, too */
    int32_t gelu_erf;      /* 1: the exact gelu, not the one by tanh */
    float eps;             /* of norms */
    float score_scale;     /* of dot products of queries and keys; 0: 1/sqrt(D) */
    float embed_scale;     /* of embeddings */
    float rope_base[2];    /* of rotary positions; [1]: of layers with a window */
    float rope_factor;     /* positions are divided by it */
    int32_t biases;        /* of TG_BIAS_..: those that the family may have, and need not */
    int32_t rope_size;     /* elements of a head that turn; 0: all */
    int32_t rope_original; /* positions of the training before they were stretched: by rope_factor
                              as YaRN does, or where that is 1 by longrope's factors; 0: neither */
    float rope_scale;      /* of the cosines and sines; 0: none */
    float score_cap;       /* scaled scores s become cap tanh(s / cap); 0: they stay, or in a fresh
                              gemma2 the published one's caps */
    float logit_cap;       /* logits likewise */
    int32_t conv_taps;     /* positions that a short convolution sees; 0: the family's */
    char layer_kind[512];  /* a letter of tg_layer_kind for each layer; "": the family's order */
    int32_t ssm_heads;     /* of layers with states; these four 0: the family's */
    int32_t ssm_head_size; /* columns of such a head */
    int32_t ssm_groups;    /* of heads that read and write by the same keys; divides ssm_heads */
    int32_t ssm_state;     /* rows of a head's state */
    float residual_scale;  /* of what is added to the stream; 0: 1 */
    float logit_scale;     /* logits are divided by it; 0: 1 */
    int32_t experts;       /* E, of an MLP that is routed, each of the width mlp; 0: the family's */
    int32_t experts_used;  /* k, of those that each token goes through; 0: the family's */
    int32_t experts_weigh; /* one of TG_EXPERTS_..; 0: the family's */
    int32_t kv_shared;  /* of the last so many layers, none has keys and values: each reads those of
                           the last layer of its kind that has */
    int32_t mlp_shared; /* M of these layers; 0: that of the others */
    int32_t window_head_size; /* D of layers with a window; 0: that of the others */
    int32_t layer_inputs; /* P, of what each layer takes in from a second table of tokens, of L*P
                             columns; 0: the family's */
} tg_model_config;

/* How what the chosen experts give is weighted. */
typedef enum tg_experts_weigh {
    TG_EXPERTS_SUM_TO_1 = 1, /* by a softmax of the router's k greatest logits */
    TG_EXPERTS_SHARES = 2    /* by their shares in the softmax of all */
} tg_experts_weigh;

typedef enum tg_biases {
    TG_BIAS_QKV = 1, /* of queries, keys and values */
    TG_BIAS_OUT = 2, /* of what leaves attention */
    TG_BIAS_MLP = 4  /* of the three matrices of the MLP */
} tg_biases;

/* How rows of a layer meet those before them. */
typedef enum tg_layer_kind {
    TG_LAYER_ATTENTION = 'a', /* over all positions, or over a window */
    TG_LAYER_CONV = 'c',      /* by a gated short convolution: ops/short_conv */
    TG_LAYER_MAMBA2 = 'm',    /* by a state that each row goes on with: ops/mamba2 */
    TG_LAYER_DELTA = 'd',     /* by one that rows recall from and write to: ops/delta_net */
    TG_LAYER_MLP = 'f'        /* not at all: the layer is an MLP alone */
} tg_layer_kind;

/* Families whose models can be made and trained, "tinygpt" first; NULL beyond the end. */
TG_API const char *tg_family_at(size_t i);

typedef struct tg_preset {
    const char *name;
    tg_model_config config;
    int32_t batch;   /* rows of T tokens a step */
    int32_t steps;   /* suggested length of a run */
    const char *doc; /* one sentence */
} tg_preset;

TG_API size_t tg_preset_count(void);
TG_API const tg_preset *tg_preset_at(size_t i);           /* NULL beyond the end */
TG_API const tg_preset *tg_preset_find(const char *name); /* NULL if there is none */

/* Heads that suit a width: C/32 where it divides, else 3 where that divides, else 1. */
TG_API int32_t tg_default_heads(int32_t width);

/* Parameters of a configuration; 0 if it makes no model. */
TG_API uint64_t tg_param_count(const tg_model_config *config);

typedef struct tg_model tg_model; /* configuration, weights, tokenizer, how it was trained */

/* A model with fresh weights. Same seed, same weights, on every machine and backend. */
TG_API tg_status tg_model_new(tg_context *ctx, const tg_model_config *config, uint64_t seed,
                              tg_model **out);
/* Opens the weights of a .tinygpt file (v1, v2 or v3; f32, f16 or int4), or of a .safetensors file
 * with a GPT-2 of transformers whose vocabulary is bytes. Moments are not read. If the file is
 * damaged and its predecessor (PATH.prev) is whole, that one is opened, with a warning in the log.
 * A .safetensors file that tinygpt did not write needs its config.json in the same folder.
 * A .gguf file (the first, if it is split), a folder as transformers and MLX write them
 * (config.json, model.safetensors or its parts and their index, tokenizer.json), or a .zip file of
 * such a folder can be run, if the family is known (the error names those that are): its weights
 * stay in the types that it has them in, and tg_model_open_floats is for training.
 * model.safetensors stands for its folder, unless it is a GPT-2 of bytes. Weights are read in
 * pieces of some MiB, each once, which are packed into place: there is no second copy. In
 * WebAssembly these come from the host's files (base/os/os_wasm.h). */
TG_API tg_status tg_model_open(tg_context *ctx, const char *path, tg_model **out);
/* The same with weights that can be trained, saved and looked into: those of a third-party file
 * become f32 in memory, 4 bytes each, and its tokenizer, chat template and sizes go along with the
 * model into all its saves. E_UNSUPPORTED names the first tensor that is neither f32, f16 nor bf16,
 * or a family that cannot be trained. An encoder learns to find masked tokens. */
TG_API tg_status tg_model_open_floats(tg_context *ctx, const char *path, tg_model **out);
TG_API void tg_model_free(tg_model *model);

typedef struct tg_model_info {
    const char *family; /* that of config */
    tg_model_config config;
    uint64_t params;
    uint64_t weight_bytes;
    const char *format;    /* "new", "tinygpt v1" .. "tinygpt v3", "safetensors", "gguf" */
    const char *dtype;     /* of the weights as stored: "f32", "f16", "bf16", "int4" */
    int64_t step;          /* training steps done, 0 for fresh weights */
    double loss, val_loss; /* last known, NaN if unknown */
    bool has_moments;      /* the file holds the optimizer's state: it can be resumed */
    bool used_prev;        /* the file was missing or damaged: this is what PATH.prev holds */
} tg_model_info;

/* Strings are valid as long as the model. */
TG_API tg_status tg_model_get_info(const tg_model *model, tg_model_info *out);

/* What may be done with a model; the calls themselves say why one may not. */
typedef enum tg_ability {
    TG_CAN_WRITE, /* text: sessions */
    TG_CAN_EMBED, /* texts: an embedder */
    TG_CAN_CHAT,  /* there is a chat template that is known */
    TG_CAN_TRAIN, /* floats that may change: a trainer; where it writes, an evaluation, a probe */
    TG_CAN_SAVE,  /* tg_model_save; what cannot be saved can be converted */
    TG_CAN_RANK   /* texts beside a query: an embedder with TG_POOLING_RANK */
} tg_ability;
TG_API bool tg_model_can(const tg_model *model, tg_ability what);

/* Forms of a model's files. */
typedef enum tg_file_kind {
    TG_FILE_V3,     /* .tinygpt: every byte is covered by a checksum; runs are kept in it */
    TG_FILE_V2_F32, /* the original's training layout; moments are zero if the model has none */
    TG_FILE_V2_F16, /* the original's gallery layouts */
    TG_FILE_V2_INT4,
    TG_FILE_V1_F32,
    TG_FILE_SAFETENSORS, /* one file, f32, named and shaped as a GPT-2 of transformers; no moments
                          */
    TG_FILE_FOLDER,      /* as transformers opens it: f32, f16 or bf16; tg_model_convert alone */
    TG_FILE_GGUF         /* for llama.cpp and for us; tg_model_convert alone */
} tg_file_kind;

/* Writes atomically: a temporary file, fsync, rename, fsync of the folder. */
TG_API tg_status tg_model_save(tg_model *model, const char *path, tg_file_kind kind);

/* Describes a file without loading it: format, configuration, tensors, history; as lines of text
 * (json false) or as one JSON object. */
TG_API tg_status tg_file_info(tg_context *ctx, const char *path, bool json, tg_text_fn write,
                              void *user);
/* Checks every checksum and range of a file; of a third-party model its tables and sizes, the
 * checksums where there are some (.tinygpt files, members of a zip file), and that every weight is
 * a finite number: E_NUMBER. */
TG_API tg_status tg_file_check(tg_context *ctx, const char *path);

/* Types that weights are written in. The last two are mixtures, made as llama.cpp makes those of
 * these names: matrices of Q4_K or Q5_K, and some that matter more in Q6_K. */
typedef enum tg_weight_type {
    TG_WEIGHT_F32,
    TG_WEIGHT_F16,
    TG_WEIGHT_BF16,
    TG_WEIGHT_Q8_0,
    TG_WEIGHT_Q4_0,
    TG_WEIGHT_Q4_K,
    TG_WEIGHT_Q5_0,
    TG_WEIGHT_IQ4_NL,
    TG_WEIGHT_Q5_K,
    TG_WEIGHT_Q6_K,
    TG_WEIGHT_Q4_K_M,
    TG_WEIGHT_Q5_K_M
} tg_weight_type;

typedef struct tg_convert_report {
    uint64_t in_bytes, out_bytes; /* of all files of the model */
    size_t n_tensors, n_finer;    /* matrices; those of them whose rows wanted a finer type */
    char finer[1024];             /* which, by kind: "blk.N.attn_q.weight Q8_0 (30), .." */
    size_t n_positions;           /* tokens of a page of English at which both were asked what
                                     follows; any ids, where the file has no tokenizer */
    double max_error;             /* of a logit */
    double tanh_error;            /* the same where llama.cpp runs a GPT-2 of ours, whose gelu is
                                     not the one by tanh; 0: of another model */
    double mean_kl, max_kl;       /* Kullback-Leibler divergence, nats, of the new from the old */
    double same_best;             /* share of positions with the same likeliest token */
    size_t n_texts, n_texts_same; /* that were cut into tokens by both; alike */
    size_t n_vectors;             /* of an encoder: texts whose vectors, of length 1, were compared;
                                     max_error is then of an element, and there is no divergence.
                                     Of a reranker: scores, all together one vector */
    double min_cosine;            /* of a new vector and the old one */
    size_t n_weighed;             /* matrices that a calibration told the columns of */
    uint64_t n_calibration;       /* tokens of its text; 0: it was a file */
} tg_convert_report;

/* Any model that can be opened, in another form. Moments and history of a run go along where the
 * form has a place for them (v3, v2 and v1 in f32).
 * GGUF, folders, and .tinygpt v3 but of a run in f32 have matrices of `type` or, where its
 * blocks do not divide their rows, of the next finer one, and vectors in f32 but for folders; type
 * is not looked at for other forms. A tokenizer.json goes along with a folder or a .tinygpt file,
 * or becomes the metadata of a GGUF file; out of such metadata, and of a vocabulary of bytes, it is
 * made for a folder. FOLDER/model.safetensors as path_out of a folder
 * is FOLDER.
 * Of these forms what was written is opened and held against the original, without the rounding of
 * activations, before it takes its name; a folder is written beside path_out and swapped with it as
 * a whole. report may be NULL.
 * Nothing is written if path_out, or a file in it, is a file of the model, or (tg_context_force)
 * if something else than such an output of tinygpt is there: E_ARG. What is replaced becomes
 * PATH.prev. E_UNSUPPORTED: a vocabulary, or a rule, that the form cannot state; in WebAssembly:
 * the forms that are held against the original. */
TG_API tg_status tg_model_convert(tg_context *ctx, const char *path_in, const char *path_out,
                                  tg_file_kind kind, tg_weight_type type,
                                  tg_convert_report *report);

typedef struct tg_text tg_text; /* a file or memory that batches are read from, as needed */

/* By what the columns of a matrix matter, one of the two. */
typedef struct tg_calibration {
    tg_text *text;       /* windows of 512 tokens of it go through the model, which writes text: the
                            mean square of what a column is multiplied with, of a routed expert by
                            the tokens that go through it */
    const char *imatrix; /* the same out of a GGUF file of llama.cpp's llama-imatrix */
} tg_calibration;
/* As tg_model_convert into blocks of 4 to 6 bits, whose scales are those with the smallest error
 * by these columns, as llama.cpp weighs it. Matrices that the calibration knows nothing of, as the
 * embedding, are written as without. The file says so (quantize.imatrix.* as llama-quantize writes
 * them). E_ARG: another type, a folder, or not one of the two; E_UNSUPPORTED: no tokenizer, or a
 * model that does not write text; E_DATA: a text of fewer than two tokens, a file that has none of
 * the tensors; E_FORMAT: one of another size, by its name. */
TG_API tg_status tg_model_convert_calibrated(tg_context *ctx, const char *path_in,
                                             const char *path_out, tg_file_kind kind,
                                             tg_weight_type type, const tg_calibration *calibration,
                                             tg_convert_report *report);

/* ------------------------------------------------------------- SIMPLE: tokens and conversations */

typedef struct tg_tokenizer tg_tokenizer; /* a vocabulary and its rules, and a chat template */

/* The model's own, as long as the model lives. */
TG_API const tg_tokenizer *tg_model_tokenizer(const tg_model *model);
/* From a GGUF file, tokenizer.json, or a file of tinygpt, without weights. E_UNSUPPORTED names what
 * of it is not known. */
TG_API tg_status tg_tokenizer_open(tg_context *ctx, const char *path, tg_tokenizer **out);
TG_API void tg_tokenizer_free(tg_tokenizer *tokenizer);
/* A model with fresh weights, as of tg_model_new, and this vocabulary, which goes into its saves;
 * config->vocab 0: as many tokens as the tokenizer has. E_RANGE: fewer; E_UNSUPPORTED: the family
 * tinygpt, whose tokens are bytes. */
TG_API tg_status tg_model_new_vocabulary(tg_context *ctx, const tg_model_config *config,
                                         const tg_tokenizer *tokenizer, uint64_t seed,
                                         tg_model **out);

/* Flags, to be added up. */
typedef enum tg_encode_flag {
    TG_ENCODE_ENDS = 1,   /* with the tokens that the file asks for at the ends */
    TG_ENCODE_SPECIAL = 2 /* special tokens that the text spells are taken as such */
} tg_encode_flag;
/* The ids of a text; ids may be NULL to count. Special tokens in it are text unless flags ask.
 * E_FULL: cap is too small, *n is what is wanted. After an error what ids hold means nothing.
 * Threads may share a tokenizer, each with its own ctx, which has the errors. */
TG_API tg_status tg_tokenizer_encode(tg_context *ctx, const tg_tokenizer *tok, const char *text,
                                     size_t n_bytes, unsigned flags, int32_t *ids, size_t cap,
                                     size_t *n);
TG_API size_t tg_tokenizer_count(const tg_tokenizer *tokenizer);
/* The bytes that a token adds to a text ("" of a special one), and the token as the file spells it;
 * NULL: there is none. A zero stands behind; n_bytes, which may be NULL, counts zeros within. */
TG_API const char *tg_tokenizer_bytes(const tg_tokenizer *tokenizer, int32_t id, size_t *n_bytes);
TG_API const char *tg_tokenizer_piece(const tg_tokenizer *tokenizer, int32_t id, size_t *n_bytes);

/* Text of ids [n] in whole characters, others as U+FFFD. held [4], zeros at first, keeps a begun
 * one for the next call; n = 0 ends it; NULL: none. E_RANGE: no such id; nothing is written. */
TG_API tg_status tg_tokenizer_decode(tg_context *ctx, const tg_tokenizer *tok, const int32_t *ids,
                                     size_t n, uint8_t *held, tg_text_fn write, void *user);

typedef enum tg_role { TG_SYSTEM, TG_USER, TG_ASSISTANT } tg_role;
typedef struct tg_turn {
    tg_role role;
    const char *text;
    size_t n_bytes;
} tg_turn;

/* Names of the chat templates that are built in; NULL behind the last. */
TG_API const char *tg_chat_template_at(size_t i);

/* The text of the file's own, in Jinja, as long as the tokenizer; NULL: none. */
TG_API const char *tg_tokenizer_template(const tg_tokenizer *tokenizer);

typedef enum tg_chat_flag {
    TG_NO_THINKING = 1, /* where the template can say so */
    TG_CONTINUE = 2     /* the last turn is the model's, and goes on where it ends */
} tg_chat_flag;
typedef enum tg_chat_limit {
    TG_ENDS_MAX = 32 /* tokens that end an answer */
} tg_chat_limit;
/* A conversation, whose last turn is the user's, as ids up to where the answer begins. name: NULL
 * for the file's own template, one that is built in, or the text of a template. Templates are run
 * as transformers runs them, within limits. Turns are text: special tokens come from the template
 * alone. E_UNSUPPORTED: there is no template, or one with what is not known here, by its name;
 * E_FORMAT: it is no Jinja, or the vocabulary lacks its token; E_ARG: it refuses the conversation;
 * E_RANGE: it takes too long, or too much. ids, cap and n as for tg_tokenizer_encode. */
TG_API tg_status tg_tokenizer_chat(tg_context *ctx, const tg_tokenizer *tok, const char *name,
                                   const tg_turn *turns, size_t n_turns, unsigned flags,
                                   int32_t *ids, size_t cap, size_t *n);
/* The tokens that end an answer: ends [TG_ENDS_MAX], *n of them. */
TG_API tg_status tg_tokenizer_ends(tg_context *ctx, const tg_tokenizer *tok, const char *name,
                                   int32_t *ends, size_t *n);

/* -------------------------------------------------------------------------------- SIMPLE: texts */

/* A regular file of any size; it is read with pread while training and may be larger than memory.
 * E_IO for a folder, pipe, device or missing permission. */
TG_API tg_status tg_text_open(tg_context *ctx, const char *path, tg_text **out);
/* A copy of the bytes is kept. */
TG_API tg_status tg_text_from_memory(tg_context *ctx, const char *bytes, size_t n_bytes,
                                     tg_text **out);
/* Puts `more` behind the text, with nothing between them; more is the text's from then on. More
 * than 64 files are opened as they are needed. After an error both are as they were. */
TG_API tg_status tg_text_join(tg_text *text, tg_text *more);
/* The bytes from train_bytes on are the validation part, in place of options.val_fraction. E_ARG:
 * want 1..tg_text_bytes. */
TG_API tg_status tg_text_hold_back(tg_text *text, uint64_t train_bytes);
/* One of the parts that a training text is mixed of. */
typedef struct tg_mix_part {
    uint64_t end;  /* byte where it ends and the next one begins; the last: where training ends */
    double weight; /* > 0, its share of the rows is that of the sum of all */
} tg_mix_part;
/*
 * Rows of training are drawn from n parts of the text by their weights, each within one part, in
 * place of evenly; what is drawn follows from seed and row. The last val_fraction of each part
 * validates, unless a part is held back, and a mean counts the parts' windows as they are: an end
 * that is shorter than a window has none, which tg_text_lint says. For a text that is whole:
 * tg_text_join refuses it afterwards, and trainers that it has stay without the mix. E_ARG: a part
 * is empty, or a weight is no number above 0. A trainer wants a row's length and one token of each
 * part (E_DATA says which has it not), and a resumed run the same mix. Not in WebAssembly. */
TG_API tg_status tg_text_mix(tg_text *text, const tg_mix_part *parts, size_t n);
TG_API void tg_text_free(tg_text *text);
TG_API uint64_t tg_text_bytes(const tg_text *text);

/* A target that counts for nothing: losses are means over the others. */
typedef enum tg_no_target { TG_NO_TARGET = -1 } tg_no_target;
/* Fills in row number n: ids [T] in [0, V), and targets [T], what each of them is to predict, or
 * TG_NO_TARGET. A non-zero answer is E_DATA. */
typedef int (*tg_row_fn)(void *user, uint64_t n, size_t T, int32_t *ids, int32_t *targets);
/*
 * Rows of the caller's own in a text's place, of T = options.row_tokens tokens: for training on
 * ids, with masks, in an order of one's own. train is asked for row (s * accum + m) * batch + b of
 * the run: row b of micro-step m of step s, from 0; a step may be asked for again, and a resumed
 * run goes on with the numbers behind its last one, so that it is the same run if a row follows
 * from its number alone. val has rows 0..n_val-1; n_val 0: no validation. mark is compared when the
 * run is resumed, say a checksum of the data. E_RANGE in a step: an id or target of no token. Not
 * in WebAssembly.
 */
TG_API tg_status tg_text_of_rows(tg_context *ctx, tg_row_fn train, tg_row_fn val, uint64_t n_val,
                                 uint32_t mark, void *user, tg_text **out);

typedef struct tg_chats_info {
    uint64_t conversations, rows;
    uint64_t tokens, targets; /* of all rows; of these, what is predicted */
    uint64_t longest;         /* tokens of a row; steps cut rows to row_tokens */
} tg_chats_info;
/*
 * Conversations in a text's place: bytes [n_bytes] of JSON Lines, each line an object with
 * "messages" as tg_tokenizer_chat_json takes it. What the role "assistant" says is predicted, with
 * the token that ends it, all else is read alone. Each conversation is a row of its own, or several
 * where the template writes earlier turns anew; the order of an epoch follows from the run's seed.
 * template_name as for tg_tokenizer_chat; name is for messages, which say the line. Lines from
 * val_from on validate; 0: the last val_fraction of the rows. Nothing is borrowed; info may be
 * NULL. A template that asks gets tg_context_date's day, else that of tg_tokenizer_open's run, else
 * today's. E_FORMAT, E_DATA: a broken line, or no answer. Not in WebAssembly.
 */
TG_API tg_status tg_text_of_chats(tg_context *ctx, const tg_tokenizer *tok,
                                  const char *template_name, const char *name, const char *bytes,
                                  size_t n_bytes, uint64_t val_from, tg_chats_info *info,
                                  tg_text **out);
/*
 * Pairs of answers in a text's place, for direct preference optimisation (Rafailov et al. 2023) of
 * a model that is there: the loss is the mean of -log(sigmoid(margin)), and a margin beta times by
 * how much the log-probability of "chosen" has grown more than that of "rejected" since the run's
 * first step. Each line is an object with both: strings behind a string "prompt"; or lists of
 * messages, either one answer behind a list "prompt", or whole conversations that end in the
 * answer. A pair is two rows of a batch, which has to be even; info counts pairs as conversations.
 * beta: > 0, 0.1 as a rule; a resumed run has its own. Everything else as for tg_text_of_chats. Not
 * in WebAssembly.
 */
TG_API tg_status tg_text_of_pairs(tg_context *ctx, const tg_tokenizer *tok,
                                  const char *template_name, const char *name, const char *bytes,
                                  size_t n_bytes, uint64_t val_from, double beta,
                                  tg_chats_info *info, tg_text **out);

/* ----------------------------------------------------------------------------- SIMPLE: training */

typedef enum tg_schedule { TG_CONSTANT, TG_COSINE, TG_WSD } tg_schedule;

/* TG_MUON: matrices of layers by orthogonalised momentum, everything else by AdamW. */
typedef enum tg_optimizer { TG_ADAMW, TG_MUON } tg_optimizer;

typedef struct tg_train_options {
    size_t struct_bytes;
    int64_t steps;            /* 1000   optimizer steps of the whole run, >= 1 */
    int32_t batch;            /* 0: the preset's, or 16, or 4 of a vocabulary other than bytes;
                                 rows of T tokens a micro-step */
    int32_t accum;            /* 1      micro-steps a step */
    double lr;                /* 3e-4   peak rate, > 0 */
    double min_lr_ratio;      /* 0.1    floor of cosine and wsd, as a share of lr */
    tg_schedule schedule;     /* TG_CONSTANT */
    int64_t warmup;           /* 0      steps of linear warm-up */
    double decay_fraction;    /* 0.2    last part of a wsd run in which the rate falls */
    double weight_decay;      /* 0.1    on 2-D tensors */
    double beta1, beta2, eps; /* 0.9 0.95 1e-8 */
    double clip;              /* 1.0    global gradient norm; 0 = off */
    uint64_t seed;        /* 42     weights are seeded by tg_model_new; this one seeds batches */
    double val_fraction;  /* 0.1    contiguous end of the text; 0 = none */
    int64_t eval_every;   /* 100    steps between validations; 0 = only at the end */
    int32_t eval_windows; /* 64     windows of T tokens a validation; 0 = all */
    int32_t patience; /* 0      validations without a better loss before an early stop; 0 = off */
    bool
        skip_bad_steps; /* false  go on with the next batch when a loss or gradient is not finite */
    bool keep_best;     /* true   keep a copy of the weights with the best validation loss */
    int64_t hold_lr_after; /* 0: the schedule ends with the run; else it ends at this step, and the
                              rate stays what it is there */
    int32_t row_tokens; /* 0: the model's context, of a vocabulary other than bytes at most 512; T
                           of a row, up to the context */
    double dropout;     /* 0      rate of embeddings, attention's weights and ends of branches; in
                           training alone. What falls follows from seed, row and place */
    tg_optimizer optimizer; /* TG_ADAMW */
    double momentum;        /* 0.95   of Muon */
    double ema; /* 0: none; else <= 0.9999, as smaller steps are lost in the rounding of f32: the
                   model is a running average of the weights that are trained, which the trainer
                   keeps to itself, and so is all that reads the model: validation, samples, saves.
                   A step takes 1 - ema of the difference, the t-th one at least 9 / (10 + t) */
} tg_train_options;

TG_OPTIONS(tg_train_options)

typedef struct tg_trainer tg_trainer;

/* Borrows model and text until tg_trainer_free; the model is trained in place.
 * E_DATA: the text (or its training part) is shorter than T+1 bytes. E_ARG names the option. */
TG_API tg_status tg_trainer_new(tg_context *ctx, tg_model *model, tg_text *text,
                                const tg_train_options *options, tg_trainer **out);
/* Continues the very run that a save holds: weights, moments, options, step, history. The text
 * must be the one it was trained on: size, a checksum of all bytes of up to 64 MB or else of
 * samples, and where its validation part begins are compared. steps > 0 sets a new total number of
 * steps, as tg_trainer_set_steps does. What computes other bits than the run was begun with (class,
 * levers, device) is said in the log, with both values. The trainer owns the model it opened
 * (tg_trainer_model). */
TG_API tg_status tg_trainer_open(tg_context *ctx, const char *path, tg_text *text, int64_t steps,
                                 tg_trainer **out);
TG_API void tg_trainer_free(tg_trainer *trainer);

TG_API tg_model *tg_trainer_model(tg_trainer *trainer); /* borrowed, lives as long as the trainer or
                                                           the caller's own model */

typedef struct tg_step_report {
    int64_t step;    /* steps done, this one included */
    double loss;     /* mean cross entropy of the step's tokens, nats */
    double val_loss; /* NaN when no validation was due */
    bool val_is_best;
    double lr;
    double grad_norm; /* before clipping */
    double ms;        /* of this step, validation excluded */
    double tok_per_s;
    double share_of_peak; /* achieved FLOP/s over the measured peak of the context, 0 if not
                             measured; "mfu" in logs and JSON */
    uint64_t
        loss_hash; /* FNV-1a over the bits of all losses so far: two runs are one run when equal */
    bool skipped;  /* the update was refused for a number that is not finite: if skip_bad_steps asks
                      for that, or for a gradient alone that was scaled to be rounded to f16 */
    bool early_stop;      /* patience is used up: the run is over */
    char bad_tensor[128]; /* with skipped, or after E_NUMBER: the first tensor that held NaN or
                             infinity; of a scaled gradient how often that was, and the new scale */
    double bits_per_byte, val_bits_per_byte; /* of loss and val_loss, by the bytes that the tokens
                             of that part of the text stand for; NaN where tokens are bytes, or
                             there is no loss */
} tg_step_report;

/* Of pairs (tg_text_of_pairs): the share whose margin is positive, and the mean margin; NaN before
 * there is one. */
typedef struct tg_preferences {
    double accuracy, margin;         /* of the last step's pairs */
    double val_accuracy, val_margin; /* of the last validation's */
} tg_preferences;
/* E_ARG where the trainer has no pairs. Not in WebAssembly. */
TG_API tg_status tg_trainer_preferences(const tg_trainer *trainer, tg_preferences *out);

typedef struct tg_callbacks {
    void (*progress)(void *user, const tg_step_report *report); /* after every step */
    tg_cancel_fn cancel;                                        /* asked every few milliseconds */
    void *user;
} tg_callbacks;

/* Steps until the run is done. save_path may be NULL; else the run is saved there at its
 * end, and when it is cancelled (TG_STOPPED). */
TG_API tg_status tg_trainer_run(tg_trainer *trainer, const tg_callbacks *callbacks,
                                const char *save_path);

/* Saves the whole run (v3), atomically; the save before becomes PATH.prev. Neither this nor
 * tg_trainer_save_best asks what stood there: tg_output_check does. */
TG_API tg_status tg_trainer_save(tg_trainer *trainer, const char *path);
/* Mean loss over eval_windows windows (0: all) of the validation part, or of the whole text if
 * val_fraction is 0. E_DATA: that part is shorter than a window. */
TG_API tg_status tg_trainer_eval(tg_trainer *trainer, double *loss);

/* ------------------------------------------------------------------------- SIMPLE: writing text */

/*
 * A draw takes the logits through a chain; what a link does not leave is no candidate any more:
 *
 *     bias -> banned texts -> mask -> repeat, frequency and presence penalties -> typical_p
 *          -> temperature -> top_k -> softmax -> top_p -> min_p -> the draw
 */
typedef struct tg_sample_options {
    size_t struct_bytes;
    double temperature; /* 0.8; 0 = greedy */
    int32_t top_k;      /* 0 = off */
    double top_p;       /* 1 = off */
    double min_p;       /* 0 = off: drops what is less likely than min_p * the likeliest */
    double
        repeat_penalty; /* 1 = off; divides positive logits of recent tokens, multiplies negative */
    int32_t repeat_last; /* 64: how many tokens back the penalty looks */
    uint64_t seed;       /* 42; same seed and logits, same tokens, on every backend */
    double typical_p; /* 0 = off; keeps what is about as surprising as the average, to this sum */
    double frequency_penalty; /* 0 = off; taken off a logit for each time among repeat_last */
    double presence_penalty;  /* 0 = off; taken off once */
} tg_sample_options;

TG_OPTIONS(tg_sample_options)

/* Continues a prompt by n_tokens, hands out text as it comes, and slides when the window is full.
 * options NULL: the defaults. */
TG_API tg_status tg_generate(tg_context *ctx, tg_model *model, const char *prompt,
                             size_t prompt_bytes, const tg_sample_options *options, size_t n_tokens,
                             tg_text_fn write, void *user);

typedef struct tg_session tg_session; /* a KV cache over one model */

/* ctx_tokens 0: the model's own; else 1..T. Borrows the model. Several sessions may share it. */
TG_API tg_status tg_session_new(tg_context *ctx, tg_model *model, int32_t ctx_tokens,
                                tg_session **out);
TG_API void tg_session_free(tg_session *session);

/* Answers a conversation, whose last turn is the user's, by the model's own chat template. What the
 * session has of it from earlier answers is not computed again. options NULL: the defaults. E_FULL:
 * the window is full before the answer has ended. Other errors: tg_tokenizer_chat. */
TG_API tg_status tg_chat(tg_session *session, const tg_turn *turns, size_t n_turns,
                         const tg_sample_options *options, size_t n_tokens, tg_text_fn write,
                         void *user);

/* --------------------------------------------------------------------------- SIMPLE: embeddings */

/* How the vectors of a text's n tokens become one, as in sentence-transformers. */
typedef enum tg_pooling {
    TG_POOLING_MODEL, /* as the model's files say, which may name several: their results lie one
                         behind the other. Where they say nothing, the mean of an encoder's tokens,
                         and the last one of a decoder's */
    TG_POOLING_MEAN,
    TG_POOLING_CLS,           /* that of the first token */
    TG_POOLING_LAST,          /* that of the last one, which ends the text in many models */
    TG_POOLING_MAX,           /* the largest of each number */
    TG_POOLING_MEAN_SQRT_LEN, /* the sum, divided by sqrt(n) */
    TG_POOLING_WEIGHTED_MEAN, /* with weights 1..n in the order of tokens */
    TG_POOLING_RANK /* no vector: how well the text answers tg_embedder_query, by the head of a
                       reranker (TG_CAN_RANK), whose files say so */
} tg_pooling;

typedef struct tg_embed_options {
    size_t struct_bytes;
    tg_pooling pooling; /* TG_POOLING_MODEL */
    bool raw;           /* false: vectors have length 1, so that dot products are cosines */
    bool cut;           /* false; true: of a text that is too long only the beginning counts, and
                           the log says how much was cut (a warning for each) */
    const char *prompt; /* NULL; goes in front of every text */
    const char *prompt_name; /* NULL; of the prompts in the model's files, the one of this name.
                                Neither of the two: the one that the files say, or none */
} tg_embed_options;

TG_OPTIONS(tg_embed_options)

typedef struct tg_embed_text {
    const char *text;
    size_t n_bytes;
} tg_embed_text;

typedef struct tg_embedder tg_embedder; /* a model, ready to run over texts */

/* Borrows the model: an encoder, or one that writes text, whose last hidden states are pooled.
 * options NULL: the defaults. E_UNSUPPORTED: a pooling_type of its file that gives no vector. */
TG_API tg_status tg_embedder_new(tg_context *ctx, tg_model *model, const tg_embed_options *options,
                                 tg_embedder **out);
TG_API void tg_embedder_free(tg_embedder *embedder);
/* Floats of a vector, W: config.width for each way of pooling; 1 of a reranker. */
TG_API size_t tg_embedder_width(const tg_embedder *embedder);
/* Texts [n] to vectors, out [n, W], each by itself. E_FULL: a text has more tokens than the model
 * sees (config.ctx), or than its files allow. Messages count texts from 1. */
TG_API tg_status tg_embedder_run(tg_embedder *embedder, const tg_embed_text *texts, size_t n,
                                 float *out);

/* Of a reranker: what the texts of the runs that follow are to answer; copied. The larger a score,
 * the better; it is the head's number as it is, which some libraries put through a sigmoid. */
TG_API tg_status tg_embedder_query(tg_embedder *embedder, const char *query);

#ifdef TG_ADVANCED

/* ---------------------------------------------------------------------------- ADVANCED: context */

/* Keeps the packed weights of third-party models in files of this folder, which is made if need be:
 * 100 MB and more each; a later tg_model_open maps them instead of packing anew. One file for a
 * model's path; what is stale or damaged is replaced, which the log says. NULL: no longer. E_ARG: a
 * path of 1024 bytes or more. */
TG_API tg_status tg_context_pack_cache(tg_context *ctx, const char *folder);

/* Did the last call that failed fail because of the machine: a full or broken disk, no memory, no
 * more open files? Else a path, a file or an argument was wrong. */
TG_API bool tg_context_machine_failed(const tg_context *ctx);

/* "YYYY-MM-DD", for chat templates that say a date; NULL: their own, or today's, UTC. */
TG_API tg_status tg_context_date(tg_context *ctx, const char *date);

/* ------------------------------------------------------------- ADVANCED: models and their files */

/*
 * A file in memory: a model that came over a network, or with the program. Its path, "memory:NAME",
 * can be given to whatever opens or describes a file, in any context, until it is freed; a name may
 * have folders in it, so that "memory:m" is the folder of "memory:m/config.json". bytes are
 * borrowed until then, and what was opened from them goes first. E_ARG: another one has the name.
 * Not in WebAssembly, where all files are such.
 */
typedef struct tg_memory_file tg_memory_file;
TG_API tg_status tg_memory_file_new(tg_context *ctx, const char *name, const void *bytes,
                                    size_t n_bytes, tg_memory_file **out);
TG_API const char *tg_memory_file_path(const tg_memory_file *file);
TG_API void tg_memory_file_free(tg_memory_file *file);

/* What opening a third-party model took: its head; reading its weights and packing them for the
 * kernels or, with a cache of packed weights, mapping and checking these, with all workers; and the
 * tokenizer, which one worker made meanwhile: its share of the workers' time is not in pack_ms.
 * Zeros of other models. */
typedef struct tg_load_times {
    double open_ms, tok_ms, pack_ms;
    uint64_t bytes; /* that were read and packed, or checked */
    bool mapped;
} tg_load_times;
TG_API tg_status tg_model_load_times(const tg_model *model, tg_load_times *out);

/* The bytes of a tensor by its name in the file ("blocks.0.attn.q_proj.weight"), as f32 in the
 * file's [in,out] order, copied to out[n_elems]; E_ARG names the nearest one, or the size. */
TG_API tg_status tg_model_tensor(const tg_model *model, const char *name, float *out,
                                 size_t n_elems);
/* The name of tensor i, and its size if n_elems is not NULL; NULL behind the last one, and of
 * third-party models. It lives as long as the model. */
TG_API const char *tg_model_tensor_at(const tg_model *model, size_t i, uint64_t *n_elems);

/* How the makers of a third-party model would draw its tokens (generation_config.json of a folder,
 * general.sampling.* of a GGUF file): such values of temperature, top_k, top_p, min_p, typical_p,
 * repeat_penalty and repeat_last as it has replace those in options; the rest stays. said: which,
 * as "temperature 0.7, top-k 20"; "": none. A value that tg_session_sample would refuse is left
 * out. */
TG_API tg_status tg_model_sampling(const tg_model *model, tg_sample_options *options, char *said,
                                   size_t said_bytes);

/* The sizes of the model in a file of any kind, complete, without loading it. */
TG_API tg_status tg_file_config(tg_context *ctx, const char *path, tg_model_config *out);
/* Whether there are checksums in a file, so that tg_file_check has seen all its bytes to be right.
 * Not in WebAssembly. */
TG_API tg_status tg_file_has_checksums(tg_context *ctx, const char *path, bool *has);
/* Of two runs tensors, then step, options and history; else whether both files are one model: sizes
 * and weights. write gets a line: the first difference (tensor, element, values), or equality. */
TG_API tg_status tg_file_compare(tg_context *ctx, const char *path_a, const char *path_b,
                                 bool *equal, tg_text_fn write, void *user);

/* The config.json that transformers wants beside a TG_FILE_SAFETENSORS of this configuration: then
 * AutoModelForCausalLM.from_pretrained(folder) is this model, if the file's name is
 * model.safetensors. tg_model_convert makes the whole folder, with the tokenizer's files. */
TG_API tg_status tg_transformers_config(tg_context *ctx, const tg_model_config *config,
                                        tg_text_fn write, void *user);

/* ------------------------------------------------------------------------------ ADVANCED: texts */

/* The vocabulary that a model will meet the text with: from then on lint and tg_forecast_run count
 * in its tokens, by samples of a long text. Trainers go by their model's own. Borrowed; NULL:
 * tokens are bytes. */
TG_API tg_status tg_text_set_tokenizer(tg_text *text, const tg_tokenizer *tokenizer);

/*
 * Trains a vocabulary on a text; write gets it as a tokenizer.json, which tg_tokenizer_open and the
 * library `tokenizers` give the same ids with. kind, one of tg_tokenizer_kind_at:
 *   "bpe"        byte-level, cut into words as GPT-2 does; any bytes have tokens
 *   "wordpiece"  BERT's, in lower case; what it has no piece for becomes an unknown token
 *   "chars"      every character of the text, in the order of their numbers, and an unknown one
 * n_tokens is the number of all of them; 0 with "chars": as many as there are. E_DATA: the text is
 * empty, or gives fewer tokens, and the message says how many; E_RANGE: too few for its characters,
 * or more than 2^20; E_MEMORY: too many different words. STOPPED: write asked for it.
 */
TG_API tg_status tg_tokenizer_train(tg_text *text, const char *kind, size_t n_tokens,
                                    tg_text_fn write, void *user);
TG_API const char *tg_tokenizer_kind_at(size_t i); /* NULL beyond the end */

/* SHA-256 of all its bytes. */
TG_API tg_status tg_text_sha256(tg_text *text, uint8_t digest[32]);

typedef struct tg_lint {
    int level;        /* 0 error (cannot train), 1 warning, 2 remark */
    const char *code; /* "empty" "short" "utf16" "bom" "nul" "cr_only" "crlf" "invalid_utf8"
                         "repeated" "few_symbols" "binary" "utf8" "tokens" "unknown_tokens" */
    char text[256];   /* what was found, where, and what to do */
} tg_lint;
typedef void (*tg_lint_fn)(void *user, const tg_lint *finding);

/* Reads the text once (at most the first 256 MiB) and reports what a model would stumble over.
 * ctx_tokens and val_fraction as for training, 0 if not known. */
TG_API tg_status tg_text_lint(tg_text *text, int32_t ctx_tokens, double val_fraction,
                              tg_lint_fn report, void *user);

/* Small stories from a grammar (data/stories.txt), the same for the same seed; a longer text only
 * extends. A WebAssembly module answers E_UNSUPPORTED until its host has set the grammar. */
TG_API tg_status tg_stories(uint64_t seed, uint64_t n_bytes, tg_text_fn write, void *user);

/* ------------------------------------------------------------- ADVANCED: training, step by step */

/* What a run will need, known before it starts. */
typedef struct tg_forecast {
    uint64_t params;
    uint64_t memory_bytes; /* peak resident memory of the process */
    uint64_t weights_bytes, moments_bytes, gradients_bytes, workspace_bytes, best_bytes;
    uint64_t memory_available_bytes;
    uint64_t save_bytes;  /* one save */
    uint64_t disk_bytes;  /* the newest two, the best, and a temporary file */
    double flop_per_step; /* 6*N*(12*L*C*C + V*C) + 6*L*N*T*C */
    double peak_gflops;   /* measured on this machine, in this context */
    double ms_per_step;   /* expected; trained steps correct it; 0 on a GPU: not known */
    double seconds;       /* of the whole run */
    uint64_t train_bytes, val_bytes;
    double bytes_per_param; /* train_bytes / params */
    double epochs;          /* steps * tokens a step / train_tokens; 0: these are not known */
    char advice[1024];      /* plain words, a line each; "" if there is nothing to say */
    uint64_t train_tokens, val_tokens; /* as many as bytes where tokens are bytes; else counted by
                                          a trainer. Before there is one they are an estimate by
                                          tg_text_set_tokenizer's vocabulary, 0 without one */
} tg_forecast;

TG_API tg_status tg_trainer_forecast(tg_trainer *trainer, tg_forecast *out);
/* The same before anything is allocated; text may be NULL. */
TG_API tg_status tg_forecast_run(tg_context *ctx, const tg_model_config *config, tg_text *text,
                                 const tg_train_options *options, tg_forecast *out);
/* Into options that tg_train_options_default made. */
TG_API tg_status tg_trainer_options(const tg_trainer *trainer, tg_train_options *out);

/* One optimizer step (accum micro-steps, clip, AdamW) and, when due, a validation. TG_STOPPED when
 * the run's steps are done. E_NUMBER: the update was refused, weights are those before the step. */
TG_API tg_status tg_trainer_step(tg_trainer *trainer, tg_step_report *out);
/* The same in slices: works for about budget_ms (0: to the end) and returns TG_PENDING until the
 * step is done. In between the run may be saved, and the weights read while they are steady.
 * E_ARG while another job is pending on the trainer or its model; the step waits. */
TG_API tg_status tg_trainer_poll(tg_trainer *trainer, double budget_ms, tg_step_report *out);
/* False only between two slices of the update, when some weights are those of the next step. Calls
 * that read the model then are E_ARG; saves of the run finish the update first. */
TG_API bool tg_trainer_steady(const tg_trainer *trainer);
/* A new total number of steps, for going on beyond the end: at least 1 and the steps done. The
 * schedule follows it from the next step on, so cosine and wsd rise again where they had come to
 * their floor, unless tg_trainer_hold_lr was called. After an early stop patience counts anew. */
TG_API tg_status tg_trainer_set_steps(tg_trainer *trainer, int64_t steps);
/* The schedule ends where it ends now, whatever the steps will be. Kept in saves. */
TG_API tg_status tg_trainer_hold_lr(tg_trainer *trainer);
/* The learning rate of a step, 1 being the first, by the options as they are. */
TG_API double tg_trainer_lr(const tg_trainer *trainer, int64_t step);
/* The learning rate of a step, 1 being the first: at least 0 and finite, else the step is E_ARG. */
typedef double (*tg_rate_fn)(void *user, int64_t step);
/* A schedule of the caller's own, asked once for each step from the next one on, also in its
 * warm-up; NULL: the options' again. It is not kept in saves, which tell that there was one:
 * whoever resumes sets it anew, and until then the log warns. */
TG_API tg_status tg_trainer_set_rate(tg_trainer *trainer, tg_rate_fn rate, void *user);
/* A table in its place, which saves keep, so that a resumed run goes on by it: rates [n], finite
 * and at least 0, of steps [n], which rise; straight lines between them, level before and behind. n
 * 0: the options' again. E_ARG. tg_trainer_rates gives it back, the trainer's own until it is set.
 */
enum { TG_RATES_MAX = 64 };
TG_API tg_status tg_trainer_set_rates(tg_trainer *trainer, const int64_t *steps,
                                      const double *rates, size_t n);
TG_API size_t tg_trainer_rates(const tg_trainer *trainer, const int64_t **steps,
                               const double **rates);
/* Other values of options.eval_every and .patience, from the next step on; below 0: as they are.
 * They change no weight; after an early stop a patience of 0 lets the run go on. */
TG_API tg_status tg_trainer_set_validation(tg_trainer *trainer, int64_t eval_every,
                                           int32_t patience);
/* The same of a model without a trainer, to the bit, with the memory of a forward pass and the
 * logits of a batch: the mean loss on the last val_fraction of a text, 0..0.9 (0: all of it). What
 * is behind the last whole window is left out, unless there is none and the model has a vocabulary.
 * Of a model whose weights are as a file has them, windows have row_tokens in all, as llama.cpp's
 * have, at most 512, and the last one may be shorter. E_DATA as above. */
TG_API tg_status tg_model_eval(tg_context *ctx, tg_model *model, tg_text *text, double val_fraction,
                               int32_t eval_windows, double *loss);
/* A token that was predicted: its number in what is evaluated, from 0, and its loss in nats. Not 0:
 * no more, and TG_STOPPED is the end. */
typedef int (*tg_token_loss_fn)(void *user, uint64_t token, int32_t id, double loss);
/* The same, telling of each token in their order. Not in WebAssembly. */
TG_API tg_status tg_model_eval_tokens(tg_context *ctx, tg_model *model, tg_text *text,
                                      double val_fraction, int32_t eval_windows,
                                      tg_token_loss_fn told, void *user, double *loss);
TG_API int64_t tg_trainer_steps_done(const tg_trainer *trainer);

/* Saves the weights with the best validation loss so far (v3 without moments); what stood there
 * becomes PATH.prev. E_ARG if none yet. */
TG_API tg_status tg_trainer_save_best(tg_trainer *trainer, const char *path);

typedef struct tg_history_point {
    int64_t step;
    double loss, val_loss; /* val_loss NaN if none */
} tg_history_point;
/* Thinned to at most 4096 points; valid until the next step. */
TG_API const tg_history_point *tg_trainer_history(const tg_trainer *trainer, size_t *n);

/* ------------------------------------------------------------------ ADVANCED: chat templates */

/* A conversation as JSON, for tools, tool calls and what else a template knows: an object with
 * "messages", a list of objects as those of OpenAI's interface, and other variables of the template
 * ("tools", "enable_thinking", ..). All of its texts but the known roles are somebody's words, and
 * never special tokens. name, flags and errors as for tg_tokenizer_chat; E_FORMAT for what is no
 * JSON. The first gives ids, the second the text, in one piece. */
TG_API tg_status tg_tokenizer_chat_json(tg_context *ctx, const tg_tokenizer *tok, const char *name,
                                        const char *json, size_t n_bytes, unsigned flags,
                                        int32_t *ids, size_t cap, size_t *n);
TG_API tg_status tg_tokenizer_render(tg_context *ctx, const tg_tokenizer *tok, const char *name,
                                     const char *json, size_t n_bytes, unsigned flags,
                                     tg_text_fn write, void *user);

/* --------------------------------------------------------------------------- ADVANCED: sessions */

/* What keys and values are kept in. f16 takes half the memory of f32, int8 a quarter and four bytes
 * for each token, head and side, and each reading costs their conversion. */
typedef enum tg_kv_type { TG_KV_F32, TG_KV_F16, TG_KV_INT8 } tg_kv_type;
/* The same with a choice; E_UNSUPPORTED for anything but f32 where a GPU computes. */
TG_API tg_status tg_session_new_kv(tg_context *ctx, tg_model *model, int32_t ctx_tokens,
                                   tg_kv_type kv, tg_session **out);

/*
 * Feeds tokens; gets the logits that follow the last one.
 *   tokens  [n]  ids in [0, V), borrowed for the call
 *   logits  out [V], owned by the session, valid until its next call; may be NULL
 * The session keeps the KV cache: send each token once.
 * Errors: E_RANGE (bad id), E_FULL (no room), E_NUMBER (logits that are not finite; the message
 * names the layer they come from): the session is unchanged.
 */
TG_API tg_status tg_session_eval(tg_session *session, const int32_t *tokens, size_t n,
                                 const float **logits);
/* What the last eval gave, [V], owned by the session, valid until its next call; NULL if nothing
 * has been fed. */
TG_API const float *tg_session_logits(const tg_session *session);
/* The next token after the last eval, by the options; index is the number of the draw in this
 * generation (0, 1, ...). The penalty looks at what the session was fed. */
TG_API tg_status tg_session_sample(tg_session *session, const tg_sample_options *options,
                                   uint64_t index, int32_t *token);
typedef struct tg_logit_bias {
    int32_t id;
    double bias; /* added to the logit; -inf: never drawn */
} tg_logit_bias;

/* What holds for all later draws of a session; copied, and n = 0 takes it back. Biases come before
 * the penalties. E_RANGE: an id beyond the vocabulary; E_ARG: a bias that is NaN or +inf. */
TG_API tg_status tg_session_set_bias(tg_session *session, const tg_logit_bias *bias, size_t n);
/* Texts that are never written, however they may be cut into tokens: up to 64, of up to 256 bytes
 * of UTF-8 each, or special tokens. If nothing is left to be drawn, sampling answers E_ARG. */
TG_API tg_status tg_session_set_banned(tg_session *session, const char *const *texts, size_t n);
/* Asked before each draw what may follow tokens [n], all that the session holds: clears bit id % 32
 * of allowed[id / 32] of every token that may not. All are set at first. A grammar is such a mask.
 * It depends on the tokens alone: with drafts it is asked of some that are taken back. */
typedef void (*tg_mask_fn)(void *user, const int32_t *tokens, size_t n, uint32_t *allowed);
TG_API tg_status tg_session_set_mask(tg_session *session, tg_mask_fn mask, void *user);
/* Texts that generation ends at, and does not hand out: as many and as long. */
TG_API tg_status tg_session_set_stops(tg_session *session, const char *const *texts, size_t n);
/* The n likeliest tokens after the last eval, likeliest first (equal ones by rising id), and the
 * natural logarithms of their probabilities, before options and biases; *have is how many there
 * are. E_ARG if nothing was fed. */
TG_API tg_status tg_session_best(tg_session *session, size_t n, int32_t *ids, double *logprobs,
                                 size_t *have);
/* Forgets all but the first n tokens. Layers with a window keep it and little more: of a session
 * that has gone far beyond n, the n tokens are computed again before whatever is fed next, to the
 * same bits. Layers with states have a few of them: tokens behind the newest one that is not beyond
 * n are computed again. */
TG_API tg_status tg_session_rewind(tg_session *session, size_t n);
/* Rewinds to the longest beginning that the session has in common with tokens [n], a conversation
 * that may have changed anywhere; *same is its length, below n: feed the tokens from there on. 0 if
 * the weights have changed since the session was fed. */
TG_API tg_status tg_session_reuse(tg_session *session, const int32_t *tokens, size_t n,
                                  size_t *same);
TG_API size_t tg_session_tokens(const tg_session *session);
/* How many of these need not be computed again: all of them, none, or those that a state has
 * (above). */
TG_API size_t tg_session_held(const tg_session *session);
TG_API size_t tg_session_capacity(const tg_session *session);
/*
 * A session in a file: its tokens, its cache, what the last eval gave, and a note of the caller's,
 * such as the texts and seed that go with it; loaded, it goes on to the bit. Biases and texts of
 * tg_session_set_.. stay with the session. The file is replaced as a whole or not at all. Loading
 * wants the same weights, the same kind of cache and room for the tokens; else, and if the file is
 * damaged, it is refused and the session is as it was. note, which may be NULL, gets the note in
 * pieces; a non-zero answer leaves an empty session. E_UNSUPPORTED where a GPU computes.
 */
TG_API tg_status tg_session_save(tg_session *session, const char *path, const void *note,
                                 size_t note_bytes);
TG_API tg_status tg_session_load(tg_session *session, const char *path, tg_text_fn note,
                                 void *user);
/* Makes room: keeps the newest half of the window, behind the token that began the text (BOS), and
 * evaluates it anew, since learned positions are absolute. */
TG_API tg_status tg_session_slide(tg_session *session);

/* ------------------------------------------------------------------------- ADVANCED: generation */

/* A token and the natural logarithm of its probability: of the softmax of the model's own logits,
 * before options, biases, bans and masks. */
typedef struct tg_likely {
    int32_t id;
    double logprob;
} tg_likely;

/* The parts of an answer, which models mark by texts of their own, such as <think>. */
typedef enum tg_answer_part {
    TG_ANSWER_TEXT,
    TG_ANSWER_THINKING, /* what comes before it */
    TG_ANSWER_TOOL_CALL /* the tools that are called, as the model writes them */
} tg_answer_part;

/* A token that was drawn, borrowed for the call. */
typedef struct tg_token {
    int32_t id;       /* -1: none, but text that was held back: at the end of the generation, or of
                         another part than the token */
    const char *text; /* [n_bytes] the characters that are whole with it: UTF-8, often none; a token
                         that ends the text has none of its own */
    size_t n_bytes;
    double logprob;        /* of the token; 0 unless asked for */
    const tg_likely *best; /* [n_best] the likeliest first, equal ones by rising id */
    size_t n_best;
    tg_answer_part part; /* of the answer that the text is of */
} tg_token;
/* A non-zero answer cancels. */
typedef int (*tg_token_fn)(void *user, const tg_token *token);

/*
 * The window is full, with n_made tokens of this generation at its end. Answers how many ids take
 * the place of what stands before them, and where they are: borrowed until the next call. They and
 * the n_made tokens must leave a place free. 0: the text ends here.
 */
typedef size_t (*tg_room_fn)(void *user, size_t n_made, const int32_t **ids);

/* What happens when the window is full. */
typedef enum tg_full {
    TG_FULL_SLIDE, /* the newest half stays, behind the token that began the text (BOS); a prompt
                      that is too long is cut in the same manner, to all that there is room for */
    TG_FULL_STOP   /* the text ends; a prompt that is too long is E_FULL */
} tg_full;

/* Why a text ended; of several reasons the first in this list. */
typedef enum tg_end {
    TG_END_TOKEN,     /* the model drew a token that ends a text */
    TG_END_STOP,      /* one of the session's stops came */
    TG_END_CANCELLED, /* a callback asked for it: the call is TG_STOPPED, too */
    TG_END_LIMIT,     /* n_tokens were drawn */
    TG_END_FULL       /* the window is full */
} tg_end;

typedef struct tg_generate_stats {
    size_t prompt_tokens, prompt_dropped, new_tokens, slides;
    double prompt_ms, first_token_ms, tok_per_s; /* tok_per_s of the new tokens alone */
    tg_end end;                                  /* once the call has ended */
    size_t prompt_kept;       /* tokens of the prompt that the session had already */
    size_t slid_tokens;       /* tokens that slides have dropped */
    size_t drafted, accepted; /* tokens that were guessed, and of them, guessed right */
} tg_generate_stats;

/* What to generate. As tg_generation_default gives it, it continues an empty prompt by nothing. */
typedef struct tg_generation {
    size_t struct_bytes;
    const char *prompt; /* [prompt_bytes] a text, which an empty one begins with a newline; or */
    size_t prompt_bytes;
    const int32_t *ids; /* [n_ids] >= 1, as of tg_tokenizer_chat */
    size_t n_ids;
    const tg_sample_options *sample; /* NULL: the defaults */
    uint64_t first_draw;             /* the number of the first draw, as of tg_session_sample */
    size_t n_tokens;                 /* at most so many; the last one is not fed any more */
    const int32_t *ends; /* [n_ends] <= TG_ENDS_MAX, as of tg_tokenizer_ends; none: the */
    size_t n_ends;       /* vocabulary's, all of them */
    tg_full full;
    tg_room_fn make_room; /* NULL, or asked instead of what full says */
    bool logprobs;        /* those of tokens are wanted: a pass over the vocabulary each */
    size_t n_best;        /* how many of the likeliest are wanted with each token */
    /* NULL, or called with user. token hears of every token, write of every text that is not
     * empty, cancel is asked between tokens and within the prompt. */
    tg_token_fn token;
    tg_text_fn write;
    tg_cancel_fn cancel;
    void *user;
    int32_t *new_ids; /* [n_tokens] out, or NULL */
    /* Speculative decoding: at most so many tokens, up to TG_DRAFT_MAX, are guessed and then read
     * at once. The text is that of 0, none, to the bit. What followed the same tokens before is
     * guessed; or what another session writes: of a smaller model with the same vocabulary, in the
     * same context. E_UNSUPPORTED where a GPU computes. */
    size_t draft;
    tg_session *draft_session; /* borrowed, or NULL */
    /* Parts of an answer are told apart. Their marks are no text, and write hears of the answer
     * alone. Those marks count that the chat template spells, or that are tokens; name as of
     * tg_tokenizer_chat, NULL: the file's own template, if there is one. */
    bool parts;
    const char *chat_template; /* borrowed for the call, as prompt and ids */
} tg_generation;
typedef enum tg_draft_limit { TG_DRAFT_MAX = 15 } tg_draft_limit;

TG_OPTIONS(tg_generation)

/*
 * Continues a prompt: the one engine that the calls below, the programs and the page are made of.
 * What the session has of the prompt already is kept, unless the weights have changed since; the
 * rest is fed. Then tokens are drawn and fed until the text ends (tg_end). Text is handed out in
 * whole characters; what never becomes one goes out at the end as U+FFFD. Of a stop's beginning
 * nothing goes out until it is known to be none. stats may be NULL.
 * Errors: E_ARG, E_RANGE (a bad id), E_FULL (TG_FULL_STOP or make_room, and a prompt that leaves no
 * place), E_NUMBER. TG_STOPPED: cancelled; cancelled within the prompt, no token was drawn.
 */
TG_API tg_status tg_session_continue(tg_session *session, const tg_generation *what,
                                     tg_generate_stats *stats);

/* ---------------------------------------------------------------------------- ADVANCED: batches */

/*
 * Sessions of one model that compute together: weights are read once for all of them, which is what
 * a token costs most of. Each has, to the bit, what it would have alone, whatever the others do.
 *
 *     tg_batch_new(ctx, model, 8, 0, TG_KV_F32, &batch);
 *     tg_session *first = tg_batch_session(batch, 0);          // any call of tg_session_.. is fine
 *     tg_batch_entry e[] = { { first, a, n_a }, { tg_batch_session(batch, 1), b, n_b } };
 *     tg_status s = tg_batch_eval(batch, e, 2);                // tg_session_logits(first) ..
 */
typedef struct tg_batch tg_batch;
typedef enum tg_batch_limit { TG_BATCH_MAX = 64 } tg_batch_limit; /* sessions */

/* n_sessions 1..TG_BATCH_MAX, empty; the rest as tg_session_new_kv. The sessions are the batch's,
 * and go with it: tg_session_free leaves them. While a job is pending on one of them, all wait. On
 * a GPU single tokens are fed together, and longer entries one after the other. */
TG_API tg_status tg_batch_new(tg_context *ctx, tg_model *model, size_t n_sessions,
                              int32_t ctx_tokens, tg_kv_type kv, tg_batch **out);
TG_API void tg_batch_free(tg_batch *batch);
/* Session i, borrowed; NULL if there is none. */
TG_API tg_session *tg_batch_session(tg_batch *batch, size_t i);

typedef struct tg_batch_entry {
    tg_session *session;   /* of the batch; in one entry at most */
    const int32_t *tokens; /* [n] borrowed for the call */
    size_t n;
    tg_status status; /* out */
} tg_batch_entry;

/*
 * tg_session_eval of all entries [n]. E_RANGE, E_FULL, E_ARG: one of them would be refused; none is
 * fed, and the message counts entries from 0. E_NUMBER: the logits of some are not finite; these
 * sessions are unchanged, and the others are fed. status of each entry says which.
 */
TG_API tg_status tg_batch_eval(tg_batch *batch, tg_batch_entry *entries, size_t n);
/* Makes session `to` of the batch what session `from` is; what several texts begin with is computed
 * and kept once, in pages of 64 tokens. What tg_session_set_.. has set stays with each. */
TG_API tg_status tg_batch_copy(tg_batch *batch, size_t to, size_t from);
/* tg_session_continue of sessions 0 .. n - 1, by what[i] each; stats [n] and statuses [n] may be
 * NULL. Answers the first status that is not OK. Each is cancelled by its own `cancel`. */
TG_API tg_status tg_batch_continue(tg_batch *batch, const tg_generation *const *what, size_t n,
                                   tg_generate_stats *stats, tg_status *statuses);

/* --------------------------------------------------------------------- ADVANCED: looking inside */

/* The parts of a block that can be looked at and changed while the model runs:
 *
 *     x ----+--> ln1, heads --> projection --+--> + --> ln2, MLP --+--> + --> x of the next block
 *                HEAD           ATTENTION    |          MLP        |          BLOCK
 */
typedef enum tg_model_part {
    TG_PART_HEAD,      /* what one head gathers, before the projection */
    TG_PART_ATTENTION, /* what all heads add to the stream, bias included */
    TG_PART_MLP,       /* what the MLP adds to the stream */
    TG_PART_BLOCK      /* the stream behind the block */
} tg_model_part;

typedef enum tg_edit_kind {
    TG_EDIT_ZERO, /* the part gives zeros; a whole block is left out: the stream passes by */
    TG_EDIT_DONOR /* the part gives what it gave in the donor's last run */
} tg_edit_kind;

/* A change to one part in one block, at one position or at all of them. Of edits of the same part
 * and place the last one counts. */
typedef struct tg_edit {
    int32_t layer;    /* 0..L-1 */
    int32_t head;     /* of TG_PART_HEAD, 0..H-1; else not looked at */
    int32_t position; /* 0..n-1, or -1: all */
    tg_model_part part;
    tg_edit_kind kind;
} tg_edit;

typedef struct tg_probe tg_probe; /* one text of n tokens through a model, with everything kept */

/* Room and a plan for texts of n_tokens, 1..T; they serve any number of runs. Borrows the model,
 * which may be in training: a run sees the weights of that moment. */
TG_API tg_status tg_probe_new(tg_context *ctx, tg_model *model, size_t n_tokens, tg_probe **out);
TG_API void tg_probe_free(tg_probe *probe);

/*
 * Runs the model over tokens [n_tokens], with edits [n_edits] (NULL if there are none).
 *   donor   a probe of a model of the same sizes and of as many tokens, which has run, other than
 *           this one; NULL if no edit takes from it. Borrowed for the call.
 * Without edits lens L has the bits of tg_session_eval. E_RANGE names a bad token or edit.
 */
TG_API tg_status tg_probe_run(tg_probe *probe, const int32_t *tokens, const tg_edit *edits,
                              size_t n_edits, const tg_probe *donor);

/* The following are owned by the probe and valid until its next run; NULL before the first one and
 * outside of the stated ranges. */

/* [n,n] of a head: how much token t (row) takes from token j (column); 0 for j > t, rows sum to
 * 1. NULL of a layer that is not attention. */
TG_API const float *tg_probe_attention(const tg_probe *probe, int32_t layer, int32_t head);
/* [n,V] logits as if the model ended behind `layer` blocks, 0..L: the stream there through the last
 * norm and the head. L is the model's own answer. */
TG_API const float *tg_probe_lens(const tg_probe *probe, int32_t layer);

/* ------------------------------------------------------------- ADVANCED: files that are written */

/*
 * One rule for outputs. In the place of one, and of its PATH.prev, there may be nothing, an empty
 * file, or a file of the same kind that tinygpt wrote, which stays as PATH.prev. Anything else is
 * E_ARG, unless the context was told to force it. What a link names counts, and is replaced.
 * tg_model_convert, tg_file_convert, tg_session_save and tg_writer_new keep the rule themselves.
 * E_IO: another process has the lock of the file (tg_lock_new), or of the run whose .best it is.
 */
typedef enum tg_output_kind {
    TG_OUTPUT_MODEL,       /* .tinygpt of any version: a run, or a model */
    TG_OUTPUT_GGUF,        /* of tinygpt's making */
    TG_OUTPUT_SAFETENSORS, /* of tinygpt's making */
    TG_OUTPUT_SESSION,     /* of tg_session_save */
    TG_OUTPUT_OTHER        /* what begins with `begins` */
} tg_output_kind;

typedef struct tg_output_rule {
    tg_output_kind kind;
    /* These are for TG_OUTPUT_OTHER, and borrowed for the call. */
    const char *what;   /* "a log of steps", for messages */
    const char *begins; /* NULL: no file is of this kind */
    size_t begins_bytes;
    bool stream; /* a FIFO that is being read, or a device, is written to as it is */
} tg_output_rule;

/* Whether such an output may take the place of what is at path. E_ARG says what is there; E_IO: it
 * is no regular file. */
TG_API tg_status tg_output_check(tg_context *ctx, const char *path, const tg_output_rule *output);
/* Outputs replace what is there, if `force`, but not what ctx reads after the last call: E_ARG. */
TG_API tg_status tg_context_force(tg_context *ctx, bool force);
/* Asked while the context writes a file, and while tg_model_convert compares; a non-zero answer
 * ends the call with TG_STOPPED, and nothing of it is left. NULL: never. */
TG_API tg_status tg_context_cancel(tg_context *ctx, tg_cancel_fn cancel, void *user);

/*
 * A file of the caller's own, written as saves are: a temporary file beside path, synced, renamed
 * at the end. Until then path holds what it held. The first error sticks, and every later call
 * returns it. E_ARG and E_IO as above.
 */
typedef struct tg_writer tg_writer;
TG_API tg_status tg_writer_new(tg_context *ctx, const char *path, const tg_output_rule *output,
                               tg_writer **out);
TG_API tg_status tg_writer_write(tg_writer *writer, const char *bytes, size_t n_bytes);
/* For a file that grows, such as a log: it takes its name now and stays open; from then on each
 * write goes out at once. */
TG_API tg_status tg_writer_publish(tg_writer *writer);
/* Both free the writer, which may be NULL. */
TG_API tg_status tg_writer_commit(tg_writer *writer);
TG_API void tg_writer_abort(tg_writer *writer);

/* One process at a time works on a file: the lock (PATH.lock) is held until it is freed, or the
 * process ends, however it does. E_IO: another process has it; the message says which. */
typedef struct tg_lock tg_lock;
TG_API tg_status tg_lock_new(tg_context *ctx, const char *path, tg_lock **out);
TG_API void tg_lock_free(tg_lock *lock);

/* Removes the temporary files of saves that are under way: for a signal handler that is about to
 * end the process, and for nothing else. */
TG_API void tg_drop_temporary_files(void);

/* ------------------------------------------------------------------------------- ADVANCED: jobs */

/*
 * A job is a call in slices, for programs that may not block: a page, a window, a server.
 *
 *     tg_job *job;
 *     tg_status s = tg_session_eval_job(session, tokens, n, &job);
 *     while (s == TG_OK && (s = tg_job_poll(job, 20)) == TG_PENDING) handle_events();
 *     tg_job_free(job);
 *     if (s == TG_OK) use(tg_session_logits(session));
 *
 * The blocking call is the same job in a loop: same results, same bits, same errors. A form named
 * tg_X_job takes what tg_X takes and does its checks, but no work: *job is NULL if it refuses.
 *
 *   Arguments   strings, tokens, options are copied. Objects and texts to embed are borrowed; out
 *               is written by the poll that returns TG_OK, callbacks come from within polls.
 *   Slices      end after about budget_ms, 0: when the job is done. A slice gets something done,
 *               however small its budget is; it overruns by the smallest unit of work (some
 *               milliseconds), or by what the system takes to put a saved file on the disk.
 *   Errors      end the job, and later polls repeat the status. Except E_ARG for what has to wait
 *               (below): then the job is as it was, and may be polled again.
 *   Free        at any time, before the objects that it borrows; NULL is fine. An unfinished job is
 *               abandoned, and its objects are as if it had not begun: a session is rewound, a file
 *               keeps its old content. (A slide leaves an empty session. Of a batch, a session
 *               that was fed whole stays so. The next step or poll goes on with a training step.)
 *
 * While a job is pending on a trainer, session, probe or embedder, other work on that object is
 * E_ARG; asking (tokens, history, options) is fine. A step is no such job: between its slices the
 * trainer can be saved or evaluated, and the model be read, if tg_trainer_steady().
 * While a save is pending, the trainer does not step: what is written is one moment of the run.
 */
typedef struct tg_job tg_job;

TG_API tg_status tg_job_poll(tg_job *job, double budget_ms);
TG_API void tg_job_free(tg_job *job);

TG_API tg_status tg_model_new_job(tg_context *ctx, const tg_model_config *config, uint64_t seed,
                                  tg_model **out, tg_job **job);
TG_API tg_status tg_model_new_vocabulary_job(tg_context *ctx, const tg_model_config *config,
                                             const tg_tokenizer *tokenizer, uint64_t seed,
                                             tg_model **out, tg_job **job);
TG_API tg_status tg_model_open_job(tg_context *ctx, const char *path, tg_model **out, tg_job **job);
TG_API tg_status tg_model_open_floats_job(tg_context *ctx, const char *path, tg_model **out,
                                          tg_job **job);
/* The trainer of the model does not step meanwhile. */
TG_API tg_status tg_model_save_job(tg_model *model, const char *path, tg_file_kind kind,
                                   tg_job **job);
/* Ends with TG_STOPPED if write asked for it. */
TG_API tg_status tg_stories_job(tg_context *ctx, uint64_t seed, uint64_t n_bytes, tg_text_fn write,
                                void *user, tg_job **job);
TG_API tg_status tg_text_lint_job(tg_text *text, int32_t ctx_tokens, double val_fraction,
                                  tg_lint_fn report, void *user, tg_job **job);
TG_API tg_status tg_tokenizer_train_job(tg_text *text, const char *kind, size_t n_tokens,
                                        tg_text_fn write, void *user, tg_job **job);
TG_API tg_status tg_text_sha256_job(tg_text *text, uint8_t digest[32], tg_job **job);
TG_API tg_status tg_forecast_run_job(tg_context *ctx, const tg_model_config *config, tg_text *text,
                                     const tg_train_options *options, tg_forecast *out,
                                     tg_job **job);
TG_API tg_status tg_trainer_new_job(tg_context *ctx, tg_model *model, tg_text *text,
                                    const tg_train_options *options, tg_trainer **out,
                                    tg_job **job);
TG_API tg_status tg_trainer_open_job(tg_context *ctx, const char *path, tg_text *text,
                                     int64_t steps, tg_trainer **out, tg_job **job);
/* out may be NULL. Ends with TG_STOPPED when the run's steps are done. */
TG_API tg_status tg_trainer_step_job(tg_trainer *trainer, tg_step_report *out, tg_job **job);
/* Like tg_trainer_eval it drops the micro-steps of an unfinished step; they are replayed. */
TG_API tg_status tg_trainer_eval_job(tg_trainer *trainer, double *loss, tg_job **job);
TG_API tg_status tg_trainer_save_job(tg_trainer *trainer, const char *path, tg_job **job);
TG_API tg_status tg_trainer_save_best_job(tg_trainer *trainer, const char *path, tg_job **job);
/* The logits are those of tg_session_logits afterwards. */
TG_API tg_status tg_session_eval_job(tg_session *session, const int32_t *tokens, size_t n,
                                     tg_job **job);
TG_API tg_status tg_session_slide_job(tg_session *session, tg_job **job);
/* Callbacks come from within polls; prompt, ends and options are copied, new_ids is borrowed.
 * Abandoned, it leaves the session with the prompt and the tokens that were fed so far. */
TG_API tg_status tg_session_continue_job(tg_session *session, const tg_generation *what,
                                         tg_generate_stats *stats, tg_job **job);
/* entries are borrowed, their tokens copied. Pending on one session, a job is pending on all. */
TG_API tg_status tg_batch_eval_job(tg_batch *batch, tg_batch_entry *entries, size_t n,
                                   tg_job **job);
TG_API tg_status tg_batch_continue_job(tg_batch *batch, const tg_generation *const *what, size_t n,
                                       tg_generate_stats *stats, tg_status *statuses, tg_job **job);
/* donor is borrowed until the job ends. Meanwhile, and if it is abandoned, there is nothing to look
 * at. */
TG_API tg_status tg_probe_run_job(tg_probe *probe, const int32_t *tokens, const tg_edit *edits,
                                  size_t n_edits, const tg_probe *donor, tg_job **job);
/* Between slices the trainer of the model may step, if it is steady when the job goes on: then the
 * loss is a mean over moments of the run. */
TG_API tg_status tg_model_eval_job(tg_context *ctx, tg_model *model, tg_text *text,
                                   double val_fraction, int32_t eval_windows, double *loss,
                                   tg_job **job);
TG_API tg_status tg_embedder_run_job(tg_embedder *embedder, const tg_embed_text *texts, size_t n,
                                     float *out, tg_job **job);
TG_API tg_status tg_file_check_job(tg_context *ctx, const char *path, tg_job **job);
/* Of .tinygpt and .safetensors files of trained models; GGUF gets their weights as floats.
 * E_UNSUPPORTED for a folder: that, and all that is held against the original, has the blocking
 * call. */
TG_API tg_status tg_model_convert_job(tg_context *ctx, const char *path_in, const char *path_out,
                                      tg_file_kind kind, tg_job **job);

#endif
#ifdef TG_UNSTABLE

/* ------------------------------------------------------------------------------------- UNSTABLE */

typedef struct tg_isa_info {
    const char *name;  /* "scalar" "avx2" "avx512" "neon" */
    const char *needs; /* CPU features */
    bool built;        /* compiled into this library */
    bool usable;       /* this CPU has what it needs */
    bool fused;        /* class of the build: fused multiply-add or not */
} tg_isa_info;
TG_API size_t tg_isa_count(void);
TG_API const tg_isa_info *tg_isa_at(size_t i);
typedef struct tg_lever_info {
    const char *name, *doc;
    bool default_on, keeps_bits;
    bool gpu_only;     /* changes nothing where the CPU computes */
    bool cpu_only;     /* changes nothing where a GPU computes */
    const char *state; /* "shipped", "optional", "blocked: ...": this CPU has nothing for it, or
                          "withdrawn: ...": cannot be switched on */
} tg_lever_info;
TG_API size_t tg_lever_count(void);
TG_API const tg_lever_info *tg_lever_at(size_t i);
TG_API bool tg_context_lever(const tg_context *ctx, const char *name); /* is it on? */
typedef struct tg_machine_info {
    unsigned cpus, affinity_cpus;
    double cgroup_cpus; /* 0: no quota */
    uint64_t memory_bytes, memory_available_bytes, process_peak_bytes;
    char cpu_name[128];
} tg_machine_info;
TG_API tg_status tg_machine(tg_context *ctx, tg_machine_info *out);
/* The best of a few runs of the context's own f32 multiply-add ceiling (registers only) with all
 * its threads, in GFLOP/s; kept for share_of_peak. The CPU's, wherever plans run. */
TG_API tg_status tg_measure_peak(tg_context *ctx, double *gflops);
TG_API tg_status tg_measure_peak_job(tg_context *ctx, double *gflops, tg_job **job);
/* Reading bandwidth of a block in huge pages, all threads, in bytes a second. */
TG_API tg_status tg_measure_read(tg_context *ctx, size_t n_bytes, double *bytes_per_s);
/* The GPU that a context computes on; E_UNSUPPORTED where it is the CPU. Strings live until the
 * context is freed or loses its device. */
typedef struct tg_gpu_facts {
    const char *adapter, *driver, *api, *library;
    const char *matrices; /* of a subgroup, for f16 with sums in f32: the shapes that there are,
                             "16x16x16 16x8x16", or why there are none */
    bool software;        /* computes on the CPU: good for tests, never timed */
    bool f16, subgroups, timestamps, has_matrices;
    uint64_t max_buffer_bytes, max_binding_bytes;
    uint32_t max_group_bytes, max_group_threads;
} tg_gpu_facts;
TG_API tg_status tg_context_gpu(tg_context *ctx, tg_gpu_facts *out);
/* Gives the GPU's memory back while nothing computes: what it holds comes to the host, and goes up
 * again with the next step. Nothing else on the context may be pending. */
TG_API tg_status tg_context_rest(tg_context *ctx);
TG_API tg_status tg_context_rest_job(tg_context *ctx, tg_job **job);
/* What its kernels reach: bytes a second of an addition that streams, GFLOP/s of a large product in
 * f32. E_UNSUPPORTED for software. */
TG_API tg_status tg_measure_gpu(tg_context *ctx, double *bytes_per_s, double *gflops);
TG_API tg_status tg_measure_gpu_job(tg_context *ctx, double *bytes_per_s, double *gflops,
                                    tg_job **job);
/* C[M,N] = A B by the matmul op; trans 1: A is [K,M], 2: B is [N,K]. ms [n_times]: of each run. */
TG_API tg_status tg_bench_matmul(tg_context *ctx, int32_t m, int32_t n, int32_t k, int trans,
                                 size_t n_times, double *ms);
/* Every op's cases on this context's ISA and levers against the references. One call of report a
 * case. filter NULL or part of an op's name. *n_failed counts. */
typedef struct tg_check {
    const char *op, *what; /* "layer_norm", "case 3 [2,17]" */
    double error, tolerance;
    bool passed;
} tg_check;
typedef void (*tg_check_fn)(void *user, const tg_check *check);
TG_API tg_status tg_check_kernels(tg_context *ctx, const char *filter, tg_check_fn report,
                                  void *user, size_t *n_failed);
/* A case a slice, or several; n_failed counts up as it goes. */
TG_API tg_status tg_check_kernels_job(tg_context *ctx, const char *filter, tg_check_fn report,
                                      void *user, size_t *n_failed, tg_job **job);
/* Finite differences in double against the gradient graphs: every op, then a whole tiny model. In
 * native builds alone. */
TG_API tg_status tg_check_gradients(tg_context *ctx, const char *filter, tg_check_fn report,
                                    void *user, size_t *n_failed);
/* The plans as text: "train" (gradient, update), "eval", "decode", "prefill". batch 0: 16. */
TG_API tg_status tg_dump(tg_context *ctx, const tg_model_config *config, const char *which,
                         int32_t batch, tg_text_fn write, void *user);
/* The same of a model that is open. One that cannot be trained has "decode" and "prefill", with the
 * types and layouts that its weights have in memory: q4_1[576,1536] q4mx16. */
TG_API tg_status tg_model_dump(tg_model *model, const char *which, int32_t batch, tg_text_fn write,
                               void *user);
/* Where the time of n_steps training steps goes: one call of report a row, which is a kind of steps
 * of the plans, costliest first; or, with each, a step, in their order. A GPU that has timestamps
 * takes the times with them, in one run; else each step is repeated, and the host's clock is read.
 * Strings of a row live as long as the trainer, whose moments have changed: free it afterwards. */
typedef struct tg_profile_row {
    const char *op, *variant;
    size_t count;
    double ms, gflop, gbytes; /* a training step; bytes if each operand were moved once */
    const char *step;         /* its name in the plan; NULL where a row is a kind of steps */
} tg_profile_row;
typedef void (*tg_profile_fn)(void *user, const tg_profile_row *row);
TG_API tg_status tg_trainer_profile(tg_trainer *trainer, int n_steps, int each,
                                    tg_profile_fn report, void *user);
/* The same of n_times runs of a session's plan that takes n_rows tokens behind those that the
 * session has: 1 decodes, up to 512 are a piece of a prompt. A run stands for a training step;
 * strings live as long as the session, which is empty afterwards. E_FULL: no room for so many. */
TG_API tg_status tg_session_profile(tg_session *session, size_t n_rows, int n_times, int each,
                                    tg_profile_fn report, void *user);
/*
 * Times every way to compute the products of a training step on the context's GPU, in so many
 * rounds, and keeps the fastest of each for this adapter and driver: whatever is compiled from then
 * on takes it, in later processes as well, unless the lever tuned_tiles is off. One call of report
 * a product; strings live until it returns. The trainer goes on to the same weights as before, in
 * another order of sums. E_UNSUPPORTED: the CPU, software, WebAssembly, or no folder to keep it in.
 */
typedef struct tg_tile_row {
    const char *what;        /* "matmul 512x384 384x1536, trans 0, 1 in one" */
    const char *rule, *best; /* shaders */
    double rule_ms, best_ms; /* medians, each */
    int32_t count;           /* such products in a gradient */
} tg_tile_row;
typedef void (*tg_tile_fn)(void *user, const tg_tile_row *row);
TG_API tg_status tg_trainer_tune(tg_trainer *trainer, int rounds, tg_tile_fn report, void *user);
/* Until the device has done all that it was given: the next step's gradient may be on its way when
 * a step returns. For whoever times several of them. Not in WebAssembly. */
TG_API tg_status tg_context_wait(tg_context *ctx);

#undef TG_OPTIONS
#endif

#ifdef __cplusplus
}
#endif
#endif
