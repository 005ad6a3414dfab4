/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meta.c - configuration, training options and history: C structs to JSON members and back.
 *
 * The training options are one table (key, kind, place in the struct), which writes, reads and
 * compares them; a new option is one line of it. Values travel through a union, by memcpy at the
 * place that the table names: no option has code of its own.
 *
 * Numbers are never read through a double unless they are one: a seed has 64 bits.
 */
#include "io/run/meta.h"

#include "base/math.h"
#include "base/str.h"

/* ----------------------------------------------------------------------------- training options */

typedef enum field_kind { INT32, INT64, UINT64, DOUBLE, BOOL, SCHEDULE, OPTIMIZER } field_kind;

/* key and v2_key are part of file formats: a member of the struct may be renamed, they may not. */
typedef struct train_field {
    const char *key;    /* in a "train" object */
    const char *v2_key; /* in the "config" of a v1 or v2 header; NULL if that has no place for it */
    field_kind kind;
    size_t place;
} train_field;

/* Bit k of tg_meta.train_known is line k, so lines are added at the end. Six of them are what the
 * original writes, under keys of its own. */
#define FIELD(key, v2_key, kind, member) { key, v2_key, kind, offsetof(tg_train_options, member) }
static const train_field fields[] = {
    FIELD("steps", "maxSteps", INT64, steps),
    FIELD("batch", "batchSize", INT32, batch),
    FIELD("accum", NULL, INT32, accum),
    FIELD("lr", "learningRate", DOUBLE, lr),
    FIELD("minLrRatio", NULL, DOUBLE, min_lr_ratio),
    FIELD("schedule", NULL, SCHEDULE, schedule),
    FIELD("warmup", NULL, INT64, warmup),
    FIELD("decayFraction", NULL, DOUBLE, decay_fraction),
    FIELD("weightDecay", NULL, DOUBLE, weight_decay),
    FIELD("beta1", NULL, DOUBLE, beta1),
    FIELD("beta2", NULL, DOUBLE, beta2),
    FIELD("eps", NULL, DOUBLE, eps),
    FIELD("clip", "gradClip", DOUBLE, clip),
    FIELD("seed", "seed", UINT64, seed),
    FIELD("valFraction", NULL, DOUBLE, val_fraction),
    FIELD("evalEvery", "evalEvery", INT64, eval_every),
    FIELD("evalWindows", NULL, INT32, eval_windows),
    FIELD("patience", NULL, INT32, patience),
    FIELD("skipBadSteps", NULL, BOOL, skip_bad_steps),
    FIELD("keepBest", NULL, BOOL, keep_best),
    FIELD("holdLrAfter", NULL, INT64, hold_lr_after),
    FIELD("rowTokens", NULL, INT32, row_tokens),
    FIELD("dropout", NULL, DOUBLE, dropout),
    FIELD("optimizer", NULL, OPTIMIZER, optimizer),
    FIELD("momentum", NULL, DOUBLE, momentum),
    FIELD("ema", NULL, DOUBLE, ema),
};
#undef FIELD
#define N_FIELDS (sizeof fields / sizeof fields[0])

/* By name and not by number: an enumeration may be sorted anew, a file may not. */
static const char *const schedule_names[] = {
    [TG_CONSTANT] = "constant", [TG_COSINE] = "cosine", [TG_WSD] = "wsd", NULL
};
static const char *const optimizer_names[] = { [TG_ADAMW] = "adamw", [TG_MUON] = "muon", NULL };

/* Of a kind whose values have names. */
static const char *const *names_of(field_kind kind) {
    return kind == SCHEDULE ? schedule_names : optimizer_names;
}

/* A value of any kind on its way between a struct and JSON. All members begin at its first byte, so
 * copying kind_bytes() of it copies the right one. */
typedef union field_value {
    int32_t i32;
    int64_t i64;
    uint64_t u64;
    double f64;
    bool boolean;
} field_value;

/* An enumeration's value has the size that the compiler gives it, one for all of them. */
_Static_assert(sizeof(tg_schedule) == sizeof(int32_t) && sizeof(tg_optimizer) == sizeof(int32_t),
               "enumerations travel as int32_t");

/* Bytes of the member in tg_train_options. */
static size_t kind_bytes(field_kind kind) {
    switch (kind) {
    case INT32: return sizeof(int32_t);
    case INT64:
    case UINT64: return sizeof(int64_t);
    case DOUBLE: return sizeof(double);
    case BOOL: return sizeof(bool);
    case SCHEDULE:
    case OPTIMIZER: return sizeof(int32_t);
    }
    return 0;
}

/* Bytes beyond the kind's are zero, so the union can also be printed or compared whole. */
static field_value field_get(const train_field *f, const tg_train_options *train) {
    field_value v = { 0 };
    memcpy(&v, (const char *)train + f->place, kind_bytes(f->kind));
    return v;
}

/* NaN and infinity have no JSON and would come out as null; no option is one of them. */
static void put_value(tg_json_writer *w, field_kind kind, field_value v) {
    switch (kind) {
    case INT32: tg_json_put_int(w, v.i32); break;
    case INT64: tg_json_put_int(w, v.i64); break;
    case UINT64: tg_json_put_uint(w, v.u64); break;
    case DOUBLE: tg_json_put_double(w, v.f64); break;
    case BOOL: tg_json_put_bool(w, v.boolean); break;
    case SCHEDULE:
    case OPTIMIZER: tg_json_put_string(w, names_of(kind)[v.i32]); break;
    }
}

/* JSON's integers are read as 64 bits; what does not fit must not be cut to something that does. */
static tg_status get_int32(tg_ctx *ctx, const char *key, const tg_json *json, int32_t *out) {
    int64_t wide;
    TG_TRY(tg_json_int64(ctx, json, &wide));
    if (wide < INT32_MIN || wide > INT32_MAX) {
        return tg_fail(ctx, TG_E_RANGE, "header: %s: want a 32-bit number, have %" PRId64, key,
                       wide);
    }
    *out = (int32_t)wide;
    return TG_OK;
}

/* An unknown name must not pass for the default: the run would go on in another way. */
static tg_status get_named(tg_ctx *ctx, const char *key, field_kind kind, const tg_json *json,
                           int32_t *out) {
    const char *const *names = names_of(kind);
    char list[64] = "";
    for (int32_t i = 0; names[i]; i++) {
        if (tg_json_is(json, names[i])) {
            *out = i;
            return TG_OK;
        }
        tg_str_append(list, sizeof list, "%s\"%s\"", i > 0 ? ", " : "", names[i]);
    }
    return tg_fail(ctx, TG_E_FORMAT, "header: %s: want one of %s, have another value", key, list);
}

/* ctx NULL: only the answer counts, no message is recorded. */
static tg_status get_value(tg_ctx *ctx, const char *key, field_kind kind, const tg_json *json,
                           field_value *v) {
    switch (kind) {
    case INT32: return get_int32(ctx, key, json, &v->i32);
    case INT64: return tg_json_int64(ctx, json, &v->i64);
    case UINT64: return tg_json_uint64(ctx, json, &v->u64);
    case DOUBLE: return tg_json_double(ctx, json, &v->f64);
    case BOOL: return tg_json_bool(ctx, json, &v->boolean);
    case SCHEDULE:
    case OPTIMIZER: return get_named(ctx, key, kind, json, &v->i32);
    }
    return TG_E_INTERNAL;
}

/* Known fields in the order of the table. What is not known is left out and not written as its
 * default: a reader then knows that nobody knows. */
void tg_meta_put_train(tg_json_writer *w, const tg_train_options *train, uint32_t known) {
    tg_json_key(w, "train");
    tg_json_begin_object(w);
    for (size_t i = 0; i < N_FIELDS; i++) {
        if (known >> i & 1) {
            tg_json_key(w, fields[i].key);
            put_value(w, fields[i].kind, field_get(&fields[i], train));
        }
    }
    tg_json_end_object(w);
}

/* Each field is written only once its value was read whole: after an error *out holds the fields
 * before it, and no half of one. Fields that the file lacks keep what *out had, so a caller begins
 * with defaults. Keys that we do not know are passed over: a later version may have written them.
 * Types are checked here, ranges by tg_train_options_check. */
tg_status tg_meta_get_train(tg_ctx *ctx, const tg_json *train, tg_train_options *out,
                            uint32_t *known) {
    uint32_t found = 0;
    if (tg_json_kind(train) != TG_JSON_OBJECT) {
        return tg_fail(ctx, TG_E_FORMAT, "header: train: want an object, have another value");
    }
    for (size_t i = 0; i < N_FIELDS; i++) {
        const tg_json *json = tg_json_get(train, fields[i].key);
        if (json) {
            field_value v = { 0 };
            TG_TRY(get_value(ctx, fields[i].key, fields[i].kind, json, &v));
            memcpy((char *)out + fields[i].place, &v, kind_bytes(fields[i].kind));
            found |= UINT32_C(1) << i;
        }
    }
    if (known) {
        *known = found;
    }
    return TG_OK;
}

void tg_meta_take_train(const tg_meta *meta, tg_train_options *out) {
    for (size_t i = 0; i < N_FIELDS; i++)
        if (meta->train_known >> i & 1)
            memcpy((char *)out + fields[i].place, (const char *)&meta->train + fields[i].place,
                   kind_bytes(fields[i].kind));
}

/* By bits, as a resumed run would feel it: 0.1 and the double next to it are different rates. The
 * first key that differs, NULL if none does; the two buffers then hold the values as JSON. */
const char *tg_meta_train_difference(const tg_train_options *a, const tg_train_options *b,
                                     uint32_t known, tg_buf *value_a, tg_buf *value_b) {
    for (size_t i = 0; i < N_FIELDS; i++) {
        const field_value va = field_get(&fields[i], a), vb = field_get(&fields[i], b);
        if (known >> i & 1 && memcmp(&va, &vb, kind_bytes(fields[i].kind)) != 0) {
            tg_json_writer w;
            tg_json_writer_init(&w, value_a);
            put_value(&w, fields[i].kind, va);
            tg_json_writer_init(&w, value_b);
            put_value(&w, fields[i].kind, vb);
            return fields[i].key;
        }
    }
    return NULL;
}

/* ---------------------------------------------------------------------------- v1 and v2 options */

/* Values that do not fit, or are of another type, count as absent: many programs write these
 * headers, and a strange learning rate is no reason to refuse somebody's weights. */
static void read_v2_options(const tg_json *config, tg_meta *out) {
    for (size_t i = 0; i < N_FIELDS; i++) {
        const tg_json *json = fields[i].v2_key ? tg_json_get(config, fields[i].v2_key) : NULL;
        field_value v = { 0 };
        if (json && get_value(NULL, fields[i].v2_key, fields[i].kind, json, &v) == TG_OK) {
            memcpy((char *)&out->train + fields[i].place, &v, kind_bytes(fields[i].kind));
            out->train_known |= UINT32_C(1) << i;
        }
    }
}

/* Nothing is made up: an option that the source did not know is left out here, too. */
void tg_meta_put_v2_options(tg_json_writer *w, const tg_meta *meta) {
    for (size_t i = 0; i < N_FIELDS; i++) {
        if (fields[i].v2_key && meta->train_known >> i & 1) {
            tg_json_key(w, fields[i].v2_key);
            put_value(w, fields[i].kind, field_get(&fields[i], &meta->train));
        }
    }
}

/* --------------------------------------------------------------------------------------- config */

/* The sizes of a model. The first four have to be there; the first six are all that the byte GPT
 * has. Their names are the original's, in v3 as well, so that one function reads the configuration
 * of any version. */
static const struct {
    const char *key;
    size_t place;
    bool is_float;
} config_fields[] = {
    { "layers", offsetof(tg_model_config, layers), false },
    { "dModel", offsetof(tg_model_config, width), false },
    { "ctx", offsetof(tg_model_config, ctx), false },
    { "heads", offsetof(tg_model_config, heads), false },
    { "dMlp", offsetof(tg_model_config, mlp), false },
    { "vocabSize", offsetof(tg_model_config, vocab), false },
    { "kvHeads", offsetof(tg_model_config, kv_heads), false },
    { "headSize", offsetof(tg_model_config, head_size), false },
    { "window", offsetof(tg_model_config, window), false },
    { "windowEvery", offsetof(tg_model_config, window_every), false },
    { "tied", offsetof(tg_model_config, tied), false },
    { "geluErf", offsetof(tg_model_config, gelu_erf), false },
    { "eps", offsetof(tg_model_config, eps), true },
    { "scoreScale", offsetof(tg_model_config, score_scale), true },
    { "embedScale", offsetof(tg_model_config, embed_scale), true },
    { "ropeBase", offsetof(tg_model_config, rope_base), true },
    { "ropeBaseWindow", offsetof(tg_model_config, rope_base) + sizeof(float), true },
    { "ropeFactor", offsetof(tg_model_config, rope_factor), true },
    { "convTaps", offsetof(tg_model_config, conv_taps), false },
    { "biases", offsetof(tg_model_config, biases), false },
    { "ropeSize", offsetof(tg_model_config, rope_size), false },
    { "ropeOriginal", offsetof(tg_model_config, rope_original), false },
    { "ropeScale", offsetof(tg_model_config, rope_scale), true },
    { "scoreCap", offsetof(tg_model_config, score_cap), true },
    { "logitCap", offsetof(tg_model_config, logit_cap), true },
    { "ssmHeads", offsetof(tg_model_config, ssm_heads), false },
    { "ssmHeadSize", offsetof(tg_model_config, ssm_head_size), false },
    { "ssmGroups", offsetof(tg_model_config, ssm_groups), false },
    { "ssmState", offsetof(tg_model_config, ssm_state), false },
    { "residualScale", offsetof(tg_model_config, residual_scale), true },
    { "logitScale", offsetof(tg_model_config, logit_scale), true },
    { "experts", offsetof(tg_model_config, experts), false },
    { "expertsUsed", offsetof(tg_model_config, experts_used), false },
    { "expertsWeigh", offsetof(tg_model_config, experts_weigh), false },
    { "kvShared", offsetof(tg_model_config, kv_shared), false },
    { "mlpShared", offsetof(tg_model_config, mlp_shared), false },
    { "windowHeadSize", offsetof(tg_model_config, window_head_size), false },
    { "layerInputs", offsetof(tg_model_config, layer_inputs), false },
};
#define N_CONFIG_FIELDS        (sizeof config_fields / sizeof config_fields[0])
#define N_CONFIG_FIELDS_OWN    6
#define N_CONFIG_FIELDS_NEEDED 4  /* the others follow: four times the width, and bytes */
#define N_CONFIG_FIELDS_ALWAYS 18 /* later ones are written where they are not 0 */

bool tg_meta_is_own(const tg_model_config *config) {
    return !config->family || strcmp(config->family, TG_META_OWN) == 0;
}

static size_t fields_of(const tg_model_config *config) {
    return tg_meta_is_own(config) ? N_CONFIG_FIELDS_OWN : N_CONFIG_FIELDS;
}

/* All of them, also those that follow from others: another program need not know the rules. */
void tg_meta_put_config(tg_json_writer *w, const tg_model_config *config) {
    tg_json_key(w, "config");
    tg_json_begin_object(w);
    for (size_t i = 0; i < fields_of(config); i++) {
        const char *from = (const char *)config + config_fields[i].place;
        int32_t whole;
        float real;
        memcpy(&whole, from, sizeof whole);
        if (i >= N_CONFIG_FIELDS_ALWAYS && whole == 0) continue;
        tg_json_key(w, config_fields[i].key);
        if (config_fields[i].is_float) {
            memcpy(&real, from, sizeof real);
            tg_json_put_double(w, (double)real);
        } else {
            tg_json_put_int(w, whole);
        }
    }
    if (config->layer_kind[0]) {
        tg_json_key(w, "layerKind");
        tg_json_put_string_n(w, config->layer_kind, (size_t)config->layers);
    }
    tg_json_end_object(w);
}

const char *tg_meta_config_difference(const tg_model_config *a, const tg_model_config *b,
                                      char value_a[TG_NUMBER_BYTES],
                                      char value_b[TG_NUMBER_BYTES]) {
    for (size_t i = 0; i < N_CONFIG_FIELDS; i++) {
        const char *x = (const char *)a + config_fields[i].place;
        const char *y = (const char *)b + config_fields[i].place;
        if (memcmp(x, y, 4) == 0) continue;
        for (int side = 0; side < 2; side++) {
            int32_t whole;
            float real;
            memcpy(&whole, side ? y : x, sizeof whole);
            memcpy(&real, side ? y : x, sizeof real);
            if (config_fields[i].is_float)
                tg_format_float(real, side ? value_b : value_a);
            else
                snprintf(side ? value_b : value_a, TG_NUMBER_BYTES, "%d", (int)whole);
        }
        return config_fields[i].key;
    }
    if (memcmp(a->layer_kind, b->layer_kind, sizeof a->layer_kind) == 0) return NULL;
    int layer = 0;
    while (a->layer_kind[layer] == b->layer_kind[layer]) layer++;
    for (int side = 0; side < 2; side++) {
        const char kind = (side ? b : a)->layer_kind[layer];
        snprintf(side ? value_b : value_a, TG_NUMBER_BYTES, "%.4s in layer %d",
                 kind ? (const char[]) { kind, 0 } : "none", layer);
    }
    return "layerKind";
}

static bool get_config_field(const tg_json *json, size_t i, tg_model_config *out) {
    char *to = (char *)out + config_fields[i].place;
    int64_t whole = 0;
    double real = 0;
    if (config_fields[i].is_float) {
        if (tg_json_double(NULL, json, &real) != TG_OK || !(tg_fabs(real) < 1e30)) return false;
        const float narrow = (float)real;
        memcpy(to, &narrow, sizeof narrow);
    } else {
        if (tg_json_int64(NULL, json, &whole) != TG_OK || whole < INT32_MIN || whole > INT32_MAX)
            return false;
        const int32_t narrow = (int32_t)whole;
        memcpy(to, &narrow, sizeof narrow);
    }
    return true;
}

/* A letter for each layer; whether it is a kind that the family has is for the family to say. */
static tg_status get_kinds(tg_ctx *ctx, const char *where, const tg_json *kinds,
                           tg_model_config *out) {
    const bool text = tg_json_kind(kinds) == TG_JSON_STRING;
    if (!text || kinds->length != (size_t)out->layers || kinds->length > sizeof out->layer_kind)
        return tg_fail(ctx, TG_E_FORMAT,
                       "%s: header: config.layerKind: want a letter for each of %d layers, have %s",
                       where, (int)out->layers, TG_JSON_SHOWN(kinds));
    memcpy(out->layer_kind, kinds->u.text, kinds->length);
    return TG_OK;
}

/* Types here; ranges in tg_gpt_config_check, or of another family, which *out names, by whoever
 * knows it. A number that is no int32 must not get that far. A mlp that is missing becomes four
 * times the width, guarded against a width that would wrap. where is the file's name, for messages.
 */
static tg_status get_config(tg_ctx *ctx, const char *where, const tg_json *header,
                            tg_model_config *out) {
    const tg_json *config = tg_json_get(header, "config");
    if (!config || tg_json_kind(config) != TG_JSON_OBJECT) {
        return tg_fail(ctx, TG_E_FORMAT, "%s: header: config: want an object, have %s", where,
                       config ? "another value" : "none");
    }
    for (size_t i = 0; i < fields_of(out); i++) {
        const char *key = config_fields[i].key;
        const tg_json *json = tg_json_get(config, key);
        if (!json && i >= N_CONFIG_FIELDS_NEEDED) {
            continue;
        }
        if (!json || !get_config_field(json, i, out)) {
            return tg_fail(ctx, json ? TG_E_RANGE : TG_E_FORMAT,
                           "%s: header: config.%s: want a 32-bit %snumber, have %s", where, key,
                           config_fields[i].is_float ? "" : "whole ",
                           json ? "another value" : "none");
        }
    }
    const tg_json *kinds = tg_meta_is_own(out) ? NULL : tg_json_get(config, "layerKind");
    if (kinds) TG_TRY(get_kinds(ctx, where, kinds, out));
    if (out->mlp == 0 && !tg_json_get(config, "dMlp") && out->width <= INT32_MAX / 4) {
        out->mlp = 4 * out->width;
    }
    return tg_meta_is_own(out) ? tg_gpt_config_check(ctx, where, out) : TG_OK;
}

tg_status tg_meta_get_config(tg_ctx *ctx, const char *where, const tg_json *header,
                             tg_model_config *out) {
    *out = (tg_model_config) { .vocab = 256 };
    return get_config(ctx, where, header, out);
}

/* The family comes first: the configuration of another one has more members. */
tg_status tg_meta_get_v3(tg_ctx *ctx, const char *where, const tg_json *header,
                         tg_model_config *config, int64_t *step) {
    const tg_json *family = tg_json_get(header, "family"), *json = tg_json_get(header, "step");
    if (!family || tg_json_kind(family) != TG_JSON_STRING) {
        return tg_fail(ctx, TG_E_FORMAT, "%s: header: family: want a string, have %s", where,
                       family ? "another value" : "none");
    }
    if (!json || tg_json_int64(NULL, json, step) != TG_OK || *step < 0) {
        return tg_fail(ctx, TG_E_FORMAT, "%s: header: step: want a whole number >= 0, have %s",
                       where, json ? "another value" : "none");
    }
    *config = (tg_model_config) { .vocab = 256 };
    if (!tg_json_is(family, TG_META_OWN)) config->family = family->u.text;
    return get_config(ctx, where, header, config);
}

/* -------------------------------------------------------------------------------------- history */

/* A number, or NaN for null and for a missing key: JSON has no NaN, so a loss that was one, or that
 * was never measured, is written as null. */
static tg_status get_loss(tg_ctx *ctx, const tg_json *object, const char *key, double *out) {
    const tg_json *json = tg_json_get(object, key);
    *out = TG_NAN;
    return !json || tg_json_kind(json) == TG_JSON_NULL ? TG_OK : tg_json_double(ctx, json, out);
}

/* A point without a step cannot be placed; one without a loss can. */
static tg_status get_step(tg_ctx *ctx, const tg_json *object, int64_t *out) {
    const tg_json *json;
    TG_TRY(tg_json_want(ctx, object, "step", TG_JSON_NUMBER, &json));
    return tg_json_int64(ctx, json, out);
}

/* Keys of a point are the original's: "train" is the loss, "val" the validation loss. */
static tg_status get_point(tg_ctx *ctx, const tg_json *object, tg_history_point *out) {
    TG_TRY(get_step(ctx, object, &out->step));
    TG_TRY(get_loss(ctx, object, "train", &out->loss));
    return get_loss(ctx, object, "val", &out->val_loss);
}

/*
 * strict is the file's context, or NULL for lenient reading: then the same errors come back, but
 * leave no message, and the caller drops them. Memory is reported either way. The list is taken
 * over as a whole or not at all.
 */
static tg_status get_history(tg_file *file, tg_ctx *strict, tg_meta *out) {
    const tg_json *list = tg_json_get(file->header, "lossHistory");
    if (!list || tg_json_kind(list) == TG_JSON_NULL) {
        return TG_OK;
    }
    if (tg_json_kind(list) != TG_JSON_ARRAY) {
        return tg_fail(strict, TG_E_FORMAT,
                       "%s: header: lossHistory: want a list, have another value", file->path);
    }
    tg_history_point *point = tg_arena_array(&file->arena, list->count, sizeof *point);
    if (!point) {
        return tg_fail_memory(file->ctx, "history", list->count * sizeof *point);
    }
    size_t n = 0;
    for (const tg_json *v = tg_json_first(list); v; v = tg_json_next(v)) {
        TG_TRY(get_point(strict, v, &point[n]));
        n++;
    }
    out->history = point;
    out->n_history = n;
    return TG_OK;
}

const char *tg_meta_loss_text(double loss, char out[TG_NUMBER_BYTES]) {
    if (tg_isnan(loss)) {
        snprintf(out, TG_NUMBER_BYTES, "unknown");
    } else {
        tg_format_double(loss, out);
    }
    return out;
}

/* Written to *out only when all of it was read, here and in get_best. Absent and null mean the
 * same: the run has not come that far. */
static tg_status get_final(tg_file *file, tg_ctx *strict, tg_meta *out) {
    const tg_json *json = tg_json_get(file->header, "finalLoss");
    tg_history_point point;
    if (json && tg_json_kind(json) != TG_JSON_NULL) {
        TG_TRY(get_point(strict, json, &point));
        out->final = point;
    }
    return TG_OK;
}

static tg_status get_best(tg_file *file, tg_ctx *strict, tg_meta *out) {
    const tg_json *json = tg_json_get(file->header, "bestVal");
    int64_t step;
    double loss;
    if (json && tg_json_kind(json) != TG_JSON_NULL) {
        TG_TRY(get_step(strict, json, &step));
        TG_TRY(get_loss(strict, json, "loss", &loss));
        out->best_step = step;
        out->best_val_loss = loss;
    }
    return TG_OK;
}

/* Steps count from 0, so -1 is free to mean "unknown"; a loss can be any number but NaN. */
void tg_meta_init(tg_meta *meta) {
    *meta = (tg_meta) {
        .final = { .step = -1, .loss = TG_NAN, .val_loss = TG_NAN },
        .best_step = -1,
        .best_val_loss = TG_NAN,
    };
}

/* One part that makes no sense does not keep the lenient reader from the others. Lenient is for v1
 * and v2, which many programs write; a v3 file is checksummed and ours, so nonsense there is a bug
 * and not to be passed over. Arrays lie in the file's arena and end with it. */
tg_status tg_meta_read(tg_file *file, tg_meta *out) {
    static tg_status (*const parts[])(tg_file *, tg_ctx *, tg_meta *) = { get_history, get_final,
                                                                          get_best };
    const bool is_ours = file->version >= 3;
    tg_meta_init(out);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        const tg_status status = parts[i](file, is_ours ? file->ctx : NULL, out);
        if (status == TG_E_MEMORY || (is_ours && status != TG_OK)) {
            return status;
        }
    }
    const tg_json *train = tg_json_get(file->header, "train");
    if (is_ours && train) {
        return tg_meta_get_train(file->ctx, train, &out->train, &out->train_known);
    }
    const tg_json *config = tg_json_get(file->header, "config");
    if (!is_ours && config) { /* a header without our keys has none */
        read_v2_options(config, out);
    }
    return TG_OK;
}

/* All three keys, always: null is what the original's reader expects where nothing was measured. */
static void put_point(tg_json_writer *w, const tg_history_point *point) {
    tg_json_begin_object(w);
    tg_json_key(w, "step");
    tg_json_put_int(w, point->step);
    tg_json_key(w, "train");
    tg_json_put_double(w, point->loss); /* NaN becomes null */
    tg_json_key(w, "val");
    tg_json_put_double(w, point->val_loss);
    tg_json_end_object(w);
}

/* Counted back from the last point, which is the one that a plot must not lose. With stride =
 * ceil(n / max) the number of points is at most max. */
void tg_meta_put_history(tg_json_writer *w, const tg_meta *meta, size_t max_points) {
    const size_t n = meta->n_history;
    if (n) {
        const size_t stride = max_points ? (n - 1) / max_points + 1 : 1;
        tg_json_key(w, "lossHistory");
        tg_json_begin_array(w);
        for (size_t i = (n - 1) % stride; i < n; i += stride) {
            put_point(w, &meta->history[i]);
        }
        tg_json_end_array(w);
    }
    if (meta->final.step >= 0) {
        tg_json_key(w, "finalLoss");
        put_point(w, &meta->final);
    }
    if (meta->best_step >= 0) {
        tg_json_key(w, "bestVal");
        tg_json_begin_object(w);
        tg_json_key(w, "loss");
        tg_json_put_double(w, meta->best_val_loss);
        tg_json_key(w, "step");
        tg_json_put_int(w, meta->best_step);
        tg_json_end_object(w);
    }
}

/* No date and no machine: the same run gives the same bytes. The order of members is part of that,
 * so members that every file has are put here alone. */
void tg_meta_begin_v3(tg_json_writer *w, const tg_model_config *config, int64_t step,
                      const tg_meta *meta) {
    tg_json_begin_object(w);
    tg_json_key(w, "family");
    tg_json_put_string(w, config->family ? config->family : TG_META_OWN);
    tg_meta_put_config(w, config);
    tg_json_key(w, "tokenizer");
    tg_json_begin_object(w);
    tg_json_key(w, "type");
    tg_json_put_string(w, meta->vocabulary ? "keys" : "bytes");
    tg_json_end_object(w);
    tg_json_key(w, "step");
    tg_json_put_int(w, step);
    if (meta->train_known) {
        tg_meta_put_train(w, &meta->train, meta->train_known);
    }
    tg_meta_put_history(w, meta, 0);
}

void tg_meta_end_v3(tg_json_writer *w) {
    tg_json_key(w, "tool");
    tg_json_put_string(w, "tinygpt " TG_VERSION_TEXT);
    tg_json_end_object(w);
}
