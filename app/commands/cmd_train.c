/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_train.c - tinygpt train: everything before the first step.
 *
 * Three ways to begin: a new model (--preset or sizes), --from MODEL (new run on given weights) and
 * --resume FILE (the very run that was saved). In each, whatever can be found out beforehand is:
 * wrong options, a text that cannot be trained on, a place that cannot be written to, more memory
 * or disk than there is. Then train_run.c takes over.
 */
#include "app.h"
#include "print/format.h"
#include "signals.h"
#include "train/train_chats.h"
#include "train/train_data.h"
#include "train/train_log.h"
#include "train/train_plan.h"
#include "train/train_rates.h"
#include "train/train_run.h"
#include "train/train_sweep.h"
#include "train/train_tokens.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* PATH_BYTES is what Linux takes at most; 16 of them stay free for what is hung on a name. */
enum { PATH_BYTES = 4096, WHY_BYTES = 512 };

/* Sizes and intervals of 0 or -1 mean "not given": 0 where it would make no sense as a value, -1
 * where it does ("never"). What is not given comes from the preset, or is derived from the run's
 * length. All else starts with the library's defaults (tg_cmd_train), which the help prints. */
typedef struct values {
    tg_args_list data, val_data, pairs;
    const char *preset, *from, *resume, *out, *log, *svg, *sample_prompt;
    const char *family, *tokenizer, *tokens, *template_name, *date, *sweep, *rates, *mix;
    tg_mix_part *parts; /* [data.n] of --mix, whose ends are known when the text is; or NULL */
    int64_t row_tokens, layers, width, heads, kv_heads, head_size, mlp, ctx, window;
    double rope_base;
    int64_t steps, batch, accum, warmup, eval_every, eval_windows, patience;
    int64_t sample_every, sample_tokens, save_every;
    double lr, min_lr, decay, clip, weight_decay, val, beta1, beta2, eps, dropout, momentum, ema;
    double dpo_beta;
    int schedule, optimizer;
    uint64_t seed;
    bool quiet, hold_lr, skip_bad_steps, no_save, stop_on_save_error, force;
} values;

static const tg_option text_options[] = {
    TG_PATHS(
        "--data", values, data, "FILE",
        "text to train on, taken as bytes; a folder: all texts in it; -: standard input; given "
        "again: more text, joined in this order; FILE.jsonl: conversations, an object with "
        "messages a line, whose answers alone are learnt"),
    TG_PATHS("--pairs", values, pairs, "FILE.jsonl",
             "in place of --data: an object with prompt, chosen and rejected a line, texts or "
             "lists of messages; the model learns to prefer the one answer (DPO)"),
    TG_REAL("--dpo-beta", values, dpo_beta, 1e-6, 1000, "X",
            "how close --pairs keeps to what the model was: larger is closer"),
    TG_TEXT("--mix", values, mix, "W,W,..",
            "rows are drawn from each --data by these weights, not evenly from all text: 3,1; the "
            "end of each one validates that is as long as a row; to be given again with --resume"),
    TG_REAL("--val", values, val, 0, 0.9, "FRACTION", "held back for validation, from the end"),
    TG_PATHS("--val-data", values, val_data, "FILE", "validate on this text instead"),
    TG_TEXT("--template", values, template_name, "FILE|NAME",
            "what conversations are written as (default: the model's own)"),
    TG_TEXT("--date", values, date, "YYYY-MM-DD",
            "the date that a template writes which says one (default: its own, or today's; the "
            "run keeps it)"),
};

static const tg_option model_options[] = {
    TG_TEXT("--preset", values, preset, "NAME", "a size from the list below (default small)"),
    TG_INT("--layers", values, layers, 1, 256, "N", "layers, instead of the preset's",
           .hide_default = true),
    TG_INT("--width", values, width, 1, 16384, "N", "width, instead of the preset's",
           .hide_default = true),
    TG_INT("--heads", values, heads, 1, 16384, "N", "attention heads; divides the width",
           .hide_default = true),
    TG_TEXT("--family", values, family, "NAME",
            "tinygpt (the default), llama, qwen3, ..; another name lists them all"),
    TG_INT("--kv-heads", values, kv_heads, 1, 16384, "N",
           "heads of keys and values, shared by those of queries (default: as many)",
           .hide_default = true),
    TG_INT("--head-size", values, head_size, 2, 1024, "N", "(default: width / heads)",
           .hide_default = true),
    TG_INT("--mlp", values, mlp, 1, 262144, "N", "width inside of the MLP (default: the family's)",
           .hide_default = true),
    TG_INT("--window", values, window, 1, 65536, "N",
           "bytes that layers with a window see, in families that have such (default: all)",
           .hide_default = true),
    TG_REAL("--rope-base", values, rope_base, 1.5, 1e12, "X",
            "base of rotary positions (default: the family's)", .hide_default = true),
    TG_INT("--ctx", values, ctx, 1, 65536, "N", "context: how many bytes back it sees",
           .hide_default = true),
    TG_PATH("--tokenizer", values, tokenizer, "FILE",
            "a new model whose tokens are this vocabulary's: tokenizer.json, a model "
            "folder, GGUF or .tinygpt (default: bytes)"),
    TG_TEXT("--tokens", values, tokens, "KIND[:N]",
            "a new model on bytes (the default), or on a vocabulary that is trained "
            "on the text first: chars, or N pieces, bpe:4096"),
    TG_PATH(
        "--from", values, from, "MODEL",
        "start a new run from these weights (fine-tuning): .tinygpt, or float weights of a model "
        "folder or GGUF file; an encoder learns to find masked tokens"),
    TG_PATH("--resume", values, resume, "FILE",
            "go on with the very run in FILE; takes --data and, for more steps, --steps, "
            "--eval-every, --patience"),
};

/* Ranges are about those of tg_train_options_check, which asks again: here a wrong value gets the
 * name that the user typed, there the name of a field. What concerns two options at once, such as a
 * warm-up longer than the run, is left to the library. */
static const tg_option run_options[] = {
    TG_INT("--steps", values, steps, 1, 1000000000, "N",
           "steps of the whole run (default: the preset's)", .hide_default = true),
    TG_INT("--batch", values, batch, 1, 65536, "N", "rows a step (default: the preset's)",
           .hide_default = true),
    TG_INT("--row-tokens", values, row_tokens, 1, 1 << 24, "N",
           "tokens a row (default: the context; of other tokens than bytes at most 512)",
           .hide_default = true),
    TG_INT("--accum", values, accum, 1, 65536, "N", "micro-steps of --batch rows a step"),
    TG_REAL("--lr", values, lr, 0, 10, "X", "peak learning rate", .above_low = true),
    TG_CHOICE("--schedule", values, schedule, "constant|cosine|wsd", "of the learning rate"),
    TG_INT("--warmup", values, warmup, 0, 1000000000, "N", "steps of linear warm-up"),
    TG_REAL("--min-lr", values, min_lr, 0, 1, "SHARE", "floor of cosine and wsd, share of --lr"),
    TG_REAL("--decay", values, decay, 0, 1, "SHARE",
            "last part of a wsd run, where the rate falls"),
    TG_TEXT("--rates", values, rates, "STEP=RATE,..",
            "learning rates by a table in place of --lr and --schedule, on straight lines between "
            "its steps: 1=0,100=1e-3,1000=1e-4; a resumed run goes on by its own"),
    TG_REAL("--weight-decay", values, weight_decay, 0, 10, "X", "on matrices and embeddings"),
    TG_REAL("--dropout", values, dropout, 0, 0.99, "X",
            "share of activations left out at random in training; 0: none"),
    TG_CHOICE("--optimizer", values, optimizer, "adamw|muon",
              "muon: the matrices of layers by Muon, everything else by AdamW"),
    TG_REAL("--momentum", values, momentum, 0, 0.999999, "X", "of Muon"),
    TG_REAL("--ema", values, ema, 0, 0.9999, "X",
            "the model is an average of the weights that are trained, of which it keeps this share "
            "a step: 0.999; 0: none"),
    TG_REAL("--beta1", values, beta1, 0, 0.999999, "X", "of AdamW: decay of the gradient's mean"),
    TG_REAL("--beta2", values, beta2, 0, 0.99999999, "X", "of AdamW: decay of its square's mean"),
    TG_REAL("--eps", values, eps, 1e-30, 1, "X", "of AdamW: added to the square root"),
    TG_REAL("--clip", values, clip, 0, 1e9, "X", "limit of the gradient's norm; 0: none"),
    TG_SEED("--seed", values, seed, "S", "of weights, batches and samples"),
    TG_INT("--eval-every", values, eval_every, 0, 1000000000, "N",
           "steps between validations; 0: at the end only (default 100; short runs: a tenth)",
           .hide_default = true),
    TG_INT("--eval-windows", values, eval_windows, 0, 1000000000, "N",
           "windows of the context's length a validation; 0: all"),
    TG_INT("--patience", values, patience, 0, 1000000, "N",
           "validations without a better loss before an early stop; 0: never (default 0)",
           .hide_default = true),
    TG_FLAG("--skip-bad-steps", values, skip_bad_steps,
            "go on when a loss or gradient is not finite"),
    TG_TEXT("--sweep", values, sweep, "NAME=..",
            "the run with several values of an option, and a table: lr=1e-4..1e-2:log:6, "
            "dropout=0..0.3:lin:4, batch=8,16,32; nothing is saved"),
    TG_FLAG("--hold-lr", values, hold_lr,
            "with --resume and more --steps: the rate stays where the schedule ends now"),
};

static const tg_option show_options[] = {
    TG_PATH("--out", values, out, "FILE",
            "where the run is saved (default: run.tinygpt, or the next free run-2.tinygpt)",
            .written = true),
    TG_INT("--save-every", values, save_every, 0, 1000000000, "N",
           "steps between saves; 0: at the end only (default: 500 steps or a minute)",
           .hide_default = true),
    TG_FLAG("--no-save", values, no_save, "save nothing"),
    TG_FLAG("--stop-on-save-error", values, stop_on_save_error,
            "end the run when a save fails (default: warn and try again)"),
    TG_PATH("--log", values, log, "FILE",
            "one JSON line a step; CSV if FILE ends in .csv, for TensorBoard if it has tfevents "
            "in its name; a resumed run continues it",
            .written = true),
    TG_PATH("--svg", values, svg, "FILE", "picture of the loss curve (default: beside --out)",
            .written = true),
    TG_INT("--sample-every", values, sample_every, 0, 1000000000, "N",
           "steps between samples; 0: none (default: a fifth of the run)", .hide_default = true),
    TG_TEXT("--sample-prompt", values, sample_prompt, "TEXT", "what the samples continue"),
    TG_INT("--sample-tokens", values, sample_tokens, 1, 100000, "N", "length of a sample"),
    TG_FLAG("--quiet", values, quiet, "print warnings and errors only"),
    TG_FLAG("--force", values, force,
            "start even if memory or disk will not do, and over other runs and files"),
};

/* Behind the options in --help; printed to the same stream, standard output. */
static void print_presets(void) {
    const tg_preset *p;
    printf("\nPresets\n");
    for (size_t i = 0; (p = tg_preset_at(i)) != NULL; i++) {
        printf("  %-13s %12s parameters, %2d layers, width %4d, context %4d, batch %2d\n", p->name,
               TG_COUNT(tg_param_count(&p->config)), (int)p->config.layers, (int)p->config.width,
               (int)p->config.ctx, (int)p->batch);
    }
}

static const tg_command_spec spec = {
    .name = "train",
    .uses = TG_USES_CPU | TG_USES_DEVICE,
    .usage = "--data FILE.. [options]",
    .about =
        "Trains a small GPT on a text, byte by byte. Ctrl-C saves the run and stops; --resume goes on "
        "from there, to the same bits as a run that was never stopped.",
    .more_help = print_presets,
    .examples =
        "  tinygpt train --data book.txt\n"
        "  tinygpt train --data book.txt --preset medium --steps 3000 --schedule cosine\n"
        "  tinygpt train --data book.txt --resume run.tinygpt --steps 6000\n"
        "  tinygpt train --data letters.txt --from run.tinygpt --lr 1e-4\n"
        "  tinygpt train --data books/ --data more.txt --val-data unseen.txt\n"
        "  tinygpt train --pairs pairs.jsonl --from model.gguf --lr 1e-6 --out tuned.tinygpt\n",
};

/* ------------------------------------------------------------------------------ options and sizes
 */

/* What a saved run keeps to itself: it would be another run with these changed. Everything that
 * decides a bit of a later step or of a validation is here; a new option that does so belongs in
 * this list. --steps may change, although it stretches a schedule: going on for longer is what
 * people resume for. */
static const char *const fixed_by_resume[] = {
    "--family",    "--kv-heads",  "--head-size",    "--mlp",
    "--window",    "--rope-base", "--preset",       "--layers",
    "--width",     "--heads",     "--ctx",          "--batch",
    "--accum",     "--lr",        "--schedule",     "--warmup",
    "--min-lr",    "--decay",     "--clip",         "--weight-decay",
    "--seed",      "--val",       "--eval-windows", "--skip-bad-steps",
    "--beta1",     "--beta2",     "--eps",          "--row-tokens",
    "--tokenizer", "--tokens",    "--dropout",      "--optimizer",
    "--momentum",  "--ema",       "--dpo-beta",
};

/* Only the sizes: they are the weights' own. Whatever says how to train is free, the seed as
 * well. */
static const char *const fixed_by_from[] = { "--preset", "--layers", "--width",     "--heads",
                                             "--ctx",    "--family", "--kv-heads",  "--head-size",
                                             "--mlp",    "--window", "--rope-base", "--tokenizer",
                                             "--tokens" };

/* What --rates stands for; a sweep of one of them would do nothing. */
static const char *const of_schedule[] = { "--lr",    "--schedule", "--warmup", "--min-lr",
                                           "--decay", "--hold-lr",  "--sweep" };

/* Options of what another one turns off: they would do nothing, and nobody would notice. Whether
 * a resumed run validates is in its file: make_resumed asks it, once that is open. */
static int check_useless(const tg_args *args, const values *v) {
    const bool validates = v->resume || v->val > 0 || v->val_data.n > 0;
    const struct {
        const char *name;
        bool used;
        const char *want;
    } rules[] = {
        { "--momentum", v->optimizer == TG_MUON, "--optimizer muon" },
        { "--min-lr", v->schedule != TG_CONSTANT, "--schedule cosine or wsd" },
        { "--decay", v->schedule == TG_WSD, "--schedule wsd" },
        { "--patience", validates || v->patience == 0, "a validation: --val above 0" },
        { "--eval-windows", validates, "a validation: --val above 0" },
        { "--eval-every", validates || v->eval_every == 0, "a validation: --val above 0" },
        { "--sample-prompt", v->sample_every != 0, "samples: --sample-every above 0" },
        { "--sample-tokens", v->sample_every != 0, "samples: --sample-every above 0" },
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const char *name = rules[i].name + 2;
        const size_t n = strlen(name);
        const bool swept = v->sweep && strncmp(v->sweep, name, n) == 0 && v->sweep[n] == '=';
        if (rules[i].used) continue;
        if (swept) return tg_args_refuse(args, "--sweep: %s wants %s", name, rules[i].want);
        if (tg_args_given(args, rules[i].name))
            return tg_args_refuse(args, "%s wants %s", rules[i].name, rules[i].want);
    }
    return TG_ARGS_GO_ON;
}

/* Pairs are read as conversations are, and stand in the place of texts from here on. */
static int take_pairs(const tg_args *args, values *v) {
    if (tg_args_given(args, "--dpo-beta") && !v->pairs.n)
        return tg_args_refuse(args, "--dpo-beta wants --pairs FILE.jsonl");
    if (!v->pairs.n) return TG_ARGS_GO_ON;
    if (v->data.n)
        return tg_args_refuse(args, "want --data (a text) or --pairs (answers that are preferred "
                                    "to others), have both");
    if (!v->from && !v->resume)
        return tg_args_refuse(args, "--pairs wants a model to begin with: --from MODEL");
    if (!tg_trainchats_named(&v->pairs))
        return tg_args_refuse(args, "--pairs wants FILE.jsonl, have %s", v->pairs.item[0]);
    v->data = v->pairs;
    return TG_ARGS_GO_ON;
}

/* What the table cannot say: options that need or exclude each other. */
static int check_options(const tg_args *args, const values *v) {
    if (!v->data.n) return tg_args_refuse(args, "--data FILE is missing");
    size_t n_standard = 0;
    for (size_t i = 0; i < v->data.n; i++) n_standard += strcmp(v->data.item[i], "-") == 0;
    for (size_t i = 0; i < v->val_data.n; i++) n_standard += strcmp(v->val_data.item[i], "-") == 0;
    if (n_standard > 1) return tg_args_refuse(args, "want standard input (-) once");
    if (v->sweep && n_standard)
        return tg_args_refuse(args, "--sweep reads its texts for each run: it contradicts standard "
                                    "input (-)");
    if (v->val_data.n && tg_args_given(args, "--val")) {
        return tg_args_refuse(args, "want --val (a fraction of the text) or --val-data (another "
                                    "text), have both");
    }
    if (v->hold_lr && !(v->resume && v->steps)) {
        return tg_args_refuse(args, "--hold-lr wants --resume FILE and more --steps");
    }
    if (v->resume && v->from) {
        return tg_args_refuse(args, "want --resume (the same run goes on) or --from (a new run on "
                                    "given weights), have both");
    }
    if (tg_trainchats_named(&v->data) && !v->resume && !v->from && !v->tokenizer)
        return tg_args_refuse(args,
                              "conversations (%s) want a vocabulary with a chat template: "
                              "--from MODEL, or --tokenizer FILE",
                              v->data.item[0]);
    if (v->mix && tg_trainchats_named(&v->data))
        return tg_args_refuse(args, "--mix wants texts, not conversations or pairs (.jsonl)");
    if (v->date && !tg_trainchats_named(&v->data))
        return tg_args_refuse(args, "--date wants conversations: --data FILE.jsonl, or --pairs");
    if (v->template_name && !tg_trainchats_named(&v->data))
        return tg_args_refuse(args,
                              "--template wants conversations: --data FILE.jsonl, or --pairs");
    if (v->tokenizer && v->tokens)
        return tg_args_refuse(args,
                              "want --tokenizer (a vocabulary that is there) or --tokens (one "
                              "of this text), have both");
    if (v->sweep &&
        (v->resume || v->out || v->log || v->svg || tg_args_given(args, "--save-every")))
        return tg_args_refuse(args, "--sweep makes new runs and saves nothing: it contradicts "
                                    "--resume, --out, --log, --svg and --save-every");
    for (size_t i = 0; v->rates && i < sizeof of_schedule / sizeof *of_schedule; i++) {
        if (!tg_args_given(args, of_schedule[i])) continue;
        return tg_args_refuse(args, "--rates has all rates: it contradicts %s", of_schedule[i]);
    }
    if (v->no_save && (v->out || tg_args_given(args, "--save-every"))) {
        return tg_args_refuse(args, "--no-save contradicts --out and --save-every");
    }
    /* Told by "was given" and not by the value: --lr 3e-4 on a run of 3e-4 is refused, too, since
     * it shows a wrong idea of what --resume does. */
    for (size_t i = 0; v->resume && i < sizeof fixed_by_resume / sizeof *fixed_by_resume; i++) {
        if (!tg_args_given(args, fixed_by_resume[i])) continue;
        return tg_args_refuse(args,
                              "%s cannot be changed by --resume, which goes on with the run "
                              "as it was; --from starts a new run on its weights",
                              fixed_by_resume[i]);
    }
    for (size_t i = 0; v->from && i < sizeof fixed_by_from / sizeof *fixed_by_from; i++) {
        if (!tg_args_given(args, fixed_by_from[i])) continue;
        return tg_args_refuse(args, "%s cannot be given with --from, whose model has its sizes",
                              fixed_by_from[i]);
    }
    return check_useless(args, v);
}

/* The presets' own family reads bytes alone. With a vocabulary its sibling takes its place, whose
 * layers are the same; the plan that is printed names it. NULL: the preset's. */
static const char *family_of(const values *v, const tg_model_config *config) {
    const bool bytes = !v->tokenizer && (!v->tokens || strcmp(v->tokens, "bytes") == 0);
    return v->family ? v->family : config->family || bytes ? NULL : "gpt2";
}

/* Sizes that the presets' own family does not have; the library would say so of some alone, and
 * not by the options' names. */
static const char *const of_families[] = { "--kv-heads", "--head-size", "--mlp", "--window",
                                           "--rope-base" };

/* Of another family than the preset's, sizes that are not given are the family's to choose: 0. */
static int choose_family(const tg_args *args, const values *v, tg_model_config *config) {
    const char *const other = family_of(v, config);
    if (other) {
        config->family = other;
        config->mlp = config->kv_heads = 0;
    }
    const bool own = !config->family || strcmp(config->family, tg_family_at(0)) == 0;
    for (size_t i = 0; own && i < sizeof of_families / sizeof *of_families; i++)
        if (tg_args_given(args, of_families[i]))
            return tg_args_refuse(args,
                                  "%s: want a family that has it (--family llama, qwen3, .. or "
                                  "--preset modern-small), have %s",
                                  of_families[i], tg_family_at(0));
    if (v->mlp) config->mlp = (int32_t)v->mlp;
    if (v->kv_heads) config->kv_heads = (int32_t)v->kv_heads;
    if (v->head_size) config->head_size = (int32_t)v->head_size;
    if (v->window) config->window = (int32_t)v->window;
    if (v->rope_base > 0) config->rope_base[0] = (float)v->rope_base;
    return TG_ARGS_GO_ON;
}

/* The configuration from --preset and the sizes beside it. Another width brings its own fourfold
 * mlp and number of heads, unless --heads says otherwise: a preset's heads need not divide it. */
static int choose_config(const tg_args *args, const values *v, tg_model_config *config,
                         const tg_preset **preset) {
    const char *name = v->preset ? v->preset : "small";
    *preset = tg_preset_find(name);
    if (!*preset) {
        char known[256] = "", shown[64];
        for (size_t i = 0; i < tg_preset_count(); i++) {
            const size_t used = strlen(known);
            snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "",
                     tg_preset_at(i)->name);
        }
        return tg_args_refuse(args, "--preset: want one of %s, have \"%s\"", known,
                              tg_fmt_safe(shown, sizeof shown, name));
    }
    *config = (*preset)->config;
    if (v->layers) config->layers = (int32_t)v->layers;
    if (v->ctx) config->ctx = (int32_t)v->ctx;
    if (v->width) {
        config->width = (int32_t)v->width;
        config->mlp = config->family ? 0 : 4 * config->width;
        config->heads = tg_default_heads(config->width);
    }
    if (v->heads) config->heads = (int32_t)v->heads;
    const int code = choose_family(args, v, config);
    if (code != TG_ARGS_GO_ON) return code;
    if (!v->head_size && config->width % config->heads != 0) {
        return tg_args_refuse(args, "--heads: want a divisor of the width %d, have %d",
                              (int)config->width, (int)config->heads);
    }
    return TG_ARGS_GO_ON;
}

/* Nobody asked: the usual interval, or ten validations in a run that is too short for it; never
 * more often than every ten steps, where they would take longer than the training. */
static int64_t eval_interval(const tg_train_options *o) {
    const int64_t tenth = o->steps / 10 > 10 ? o->steps / 10 : 10;
    return tenth < o->eval_every ? tenth : o->eval_every;
}

/* The preset suggests how long and in which batches; what is given on the command line wins. The
 * best weights are kept only where a file for them will be written. */
/* With --from there is no preset: batch 0 makes the library look for one with the same sizes. */
static tg_train_options train_options(const values *v, const tg_preset *preset) {
    tg_train_options o = tg_train_options_default();
    o.steps = v->steps ? v->steps : preset ? preset->steps : o.steps;
    o.batch = (int32_t)(v->batch ? v->batch : preset ? preset->batch : 0);
    o.accum = (int32_t)v->accum;
    o.row_tokens = (int32_t)v->row_tokens;
    o.lr = v->lr;
    o.min_lr_ratio = v->min_lr;
    o.schedule = (tg_schedule)v->schedule;
    o.warmup = v->warmup;
    o.decay_fraction = v->decay;
    o.weight_decay = v->weight_decay;
    o.beta1 = v->beta1;
    o.beta2 = v->beta2;
    o.eps = v->eps;
    o.clip = v->clip;
    o.dropout = v->dropout;
    o.optimizer = (tg_optimizer)v->optimizer;
    o.momentum = v->momentum;
    o.ema = v->ema;
    o.seed = v->seed;
    o.val_fraction = v->val;
    o.eval_every = v->eval_every >= 0 ? v->eval_every : eval_interval(&o);
    o.eval_windows = (int32_t)v->eval_windows;
    o.patience = v->patience >= 0 ? (int32_t)v->patience : o.patience;
    o.skip_bad_steps = v->skip_bad_steps;
    o.keep_best = !v->no_save && (v->val > 0 || v->val_data.n > 0);
    return o;
}

/* ------------------------------------------------------------------------------------------ files
 */

/* The first name of run.tinygpt, run-2.tinygpt, ... that is not taken: a run is never replaced
 * unless its name is given. */
static void free_name(char *out, size_t cap) {
    snprintf(out, cap, "run.tinygpt");
    for (int i = 2; i < 100000; i++) {
        /* A file that exists and cannot be opened counts as taken, by errno: only ENOENT is a free
         * name. */
        FILE *f = fopen(out, "rb");
        if (!f && errno == ENOENT) return;
        if (f) fclose(f);
        snprintf(out, cap, "run-%d.tinygpt", i);
    }
}

/* Names of what is written; an empty one is not. All come from out: the best weights and the
 * picture lie beside it. The log is open from the end of the preparations on (open_log). */
typedef struct files {
    char out[PATH_BYTES], best[PATH_BYTES], svg[PATH_BYTES];
    tg_outfile log;
    bool log_open;
    tg_lock *lock; /* of out: nobody else trains on it meanwhile */
} files;

/* Found out now, and not after an hour of training; output NULL: whatever is there is ours. */
static int want_writable(tg_app *app, const char *option, const char *path,
                         const tg_output_rule *output) {
    char why[WHY_BYTES];
    int code;
    if (!tg_app_can_write(path, why, sizeof why, &code)) {
        tg_app_error(app, "%s %s cannot be written: %s", option, path, why);
        return code;
    }
    const tg_status s = output ? tg_output_check(app->ctx, path, output) : TG_OK;
    return s == TG_OK ? TG_ARGS_GO_ON : tg_app_failed(app, app->ctx, s, TG_READING);
}

/* The save and the best weights, which replace nothing, unless it is the run that is resumed: of
 * that the file may be damaged, and its .prev the one that counts. */
static int want_saves(tg_app *app, const values *v, files *f) {
    const tg_output_rule model = { .kind = TG_OUTPUT_MODEL };
    const bool same = v->resume && tg_app_same_file(v->resume, f->out);
    char prev[PATH_BYTES + 8];
    snprintf(prev, sizeof prev, "%s.prev", f->out);
    int code = want_writable(app, "--out", f->out, same ? NULL : &model);
    if (code == TG_ARGS_GO_ON) code = want_writable(app, "the best weights", f->best, &model);
    if (code == TG_ARGS_GO_ON && !same) code = tg_trainrun_over(app, f->out, f->best, v->force);
    if (code != TG_ARGS_GO_ON) return code;
    const tg_status s = tg_lock_new(app->ctx, f->out, &f->lock);
    if (s != TG_OK) return tg_app_failed(app, app->ctx, s, TG_READING);
    return same ? want_writable(app, "the save before", prev, &model) : TG_ARGS_GO_ON;
}

/*
 * Settles the names of what is written, and tries all of them:
 *
 *   --out FILE      FILE, FILE.best, FILE.svg
 *   --resume FILE   the same names as with --out FILE, unless that is given, too
 *   neither         run.tinygpt, or the next free name
 *   --no-save       only what --svg and --log name
 *
 * FILE.svg is not tried: it is in the folder that was, and a picture is no loss.
 */
static int choose_files(tg_app *app, const values *v, files *f) {
    int code = TG_ARGS_GO_ON;
    const char *given = v->out ? v->out : v->resume;
    if (!v->no_save) {
        if (given && strlen(given) + 16 > sizeof f->out) {
            tg_app_error(app, "--out: want a name of at most %d bytes", PATH_BYTES - 16);
            return TG_EXIT_USAGE;
        }
        if (given) {
            snprintf(f->out, sizeof f->out, "%s", given);
        } else {
            free_name(f->out, sizeof f->out - 16);
        }
        snprintf(f->best, sizeof f->best, "%.*s.best", PATH_BYTES - 8, f->out);
        snprintf(f->svg, sizeof f->svg, "%.*s.svg", PATH_BYTES - 8, f->out);
        code = want_saves(app, v, f);
    }
    if (v->svg) {
        snprintf(f->svg, sizeof f->svg, "%s", v->svg);
        if (code == TG_ARGS_GO_ON) code = want_writable(app, "--svg", v->svg, &tg_output_picture);
    }
    return code;
}

/* A file that the command reads or writes, for the check that no two are one. */
typedef struct named_file {
    const char *what, *path;
    bool written;
} named_file;

static int refuse_pair(tg_app *app, const char *what, const named_file *b) {
    tg_app_error(app, "%s and %s are the same file, %s: want another name for one of them", what,
                 b->what, b->path);
    return TG_EXIT_USAGE;
}

static int refuse_text(tg_app *app, const char *what, const tg_args_list *texts,
                       const named_file *output) {
    for (size_t i = 0; output->path && output->path[0] && i < texts->n; i++)
        if (tg_app_same_file(texts->item[i], output->path)) return refuse_pair(app, what, output);
    return TG_ARGS_GO_ON;
}

/*
 * Refuses an output that would land on an input or on another output, by whatever name or link.
 * A save replaces what it came from only where it goes on with it: --out over --resume. Of the
 * saves' own files some may be links to each other after a kill, so that FILE.prev is FILE.
 */
static int refuse_collisions(tg_app *app, const values *v, const files *f) {
    char prev[PATH_BYTES + 8], best_prev[PATH_BYTES + 8];
    snprintf(prev, sizeof prev, "%s.prev", f->out);
    snprintf(best_prev, sizeof best_prev, "%s.prev", f->best);
    const named_file list[] = {
        { "--from", v->from, false },
        { "--tokenizer", v->tokenizer, false },
        { "--resume", v->resume, false },
        { "--out", f->out, true },
        { "the save before", f->out[0] ? prev : "", true },
        { "the best weights", f->best, true },
        { "the best weights before", f->best[0] ? best_prev : "", true },
        { "--svg", f->svg, true },
        { "--log", v->log, true },
    };
    enum { N_FILES = sizeof list / sizeof list[0], RESUME = 2, OUT = 3, OF_A_SAVE = 4 };
    const bool same = v->resume && f->out[0] && tg_app_same_file(v->resume, f->out);
    for (int i = OUT; i < N_FILES; i++) {
        int code = refuse_text(app, v->pairs.n ? "--pairs" : "--data", &v->data, &list[i]);
        if (code == TG_ARGS_GO_ON) code = refuse_text(app, "--val-data", &v->val_data, &list[i]);
        if (code != TG_ARGS_GO_ON) return code;
    }
    for (int i = 0; i < N_FILES; i++) {
        for (int j = i + 1; j < N_FILES; j++) {
            const named_file *a = &list[i], *b = &list[j];
            const bool of_a_save = j >= OUT && j < OUT + OF_A_SAVE && i >= (same ? RESUME : OUT);
            if (!b->written || of_a_save || !a->path || !b->path || !a->path[0] || !b->path[0] ||
                !tg_app_same_file(a->path, b->path))
                continue;
            return refuse_pair(app, a->what, b);
        }
    }
    return TG_ARGS_GO_ON;
}

/* ----------------------------------------------------------------------------------------- checks
 */

/* Refuses a run that this machine has no room for: memory for the run, disk for one save. More disk
 * than that (the .prev, the best weights) is a warning, since files that a save replaces may free
 * it. UINT64_MAX bytes free and 0 bytes available stand for "unknown" and refuse nothing. */
static int check_room(tg_app *app, const values *v, const tg_forecast *f, const char *out,
                      uint64_t disk_free) {
    const bool tight_memory =
        f->memory_available_bytes > 0 && f->memory_bytes > f->memory_available_bytes;
    const bool no_disk = *out && f->save_bytes > disk_free;
    if (tight_memory) {
        tg_app_error(app,
                     "want %s of memory for this run, have %s free; choose a smaller preset, "
                     "--batch or --ctx%s",
                     TG_BYTES(f->memory_bytes), TG_BYTES(f->memory_available_bytes),
                     v->force ? "" : " (--force starts it nevertheless)");
    }
    if (no_disk) {
        tg_app_error(app, "want %s on the disk of %s for one save, have %s free%s",
                     TG_BYTES(f->save_bytes), out, TG_BYTES(disk_free),
                     v->force ? "" : " (--force starts the run nevertheless)");
    } else if (*out && f->disk_bytes > disk_free) {
        tg_app_warn(app, "the saves of this run may need %s, and the disk of %s has %s free",
                    TG_BYTES(f->disk_bytes), out, TG_BYTES(disk_free));
    }
    return (tight_memory || no_disk) && !v->force ? TG_EXIT_USAGE : TG_ARGS_GO_ON;
}

/* ------------------------------------------------------------------------------------- the command
 */

/* What a run is made of; freed together. */
typedef struct parts {
    tg_model_config config;
    const tg_preset *preset; /* NULL with --from and --resume */
    tg_text *text;
    tg_traintokens tokens; /* its tokenizer: of --tokenizer or --tokens, or NULL */
    tg_model *model;       /* NULL for a resumed run, whose trainer owns it */
    tg_trainer *trainer;
    files files;
} parts;

/* In the order of what borrows from what: trainer, model, text. Takes parts at any stage. */
static void free_parts(parts *p) {
    if (p->files.log_open) tg_outfile_abort(&p->files.log);
    tg_lock_free(p->files.lock);
    tg_trainer_free(p->trainer);
    tg_model_free(p->model);
    tg_traintokens_free(&p->tokens);
    tg_text_free(p->text);
}

/* What takes seconds before there is a plan to read; it goes when it is done. */
static void tell_work(tg_app *app, const values *v, const char *doing, const char *path) {
    char name[256], line[sizeof name + 64];
    if (v->quiet || app->globals.json) return;
    snprintf(line, sizeof line, "  %s %s ..", doing, tg_fmt_safe(name, sizeof name, path));
    tg_term_live(&app->out, line);
}

/* A vocabulary that is there, or one of the text. */
static int make_tokens(tg_app *app, const values *v, parts *p) {
    if (v->tokens) {
        tell_work(app, v, "making a vocabulary of", v->data.item[0]);
        const int code = tg_traintokens_make(app, v->tokens, p->text, &p->tokens);
        tg_term_clear(&app->out);
        return code;
    }
    if (!v->tokenizer) return TG_ARGS_GO_ON;
    const tg_status status = tg_tokenizer_open(app->ctx, v->tokenizer, &p->tokens.tokenizer);
    return status == TG_OK ? TG_ARGS_GO_ON : tg_app_failed(app, app->ctx, status, TG_READING);
}

/* A new run: forecast first, and only then the memory. With --from the weights are there before the
 * forecast, as its sizes are only known from them; the forecast is still about the whole run. */
static int make_new(tg_app *app, const values *v, parts *p, tg_train_options *o,
                    tg_forecast *forecast, uint64_t disk_free) {
    tg_status status = TG_OK;
    if (v->from) {
        tg_model_info info;
        tell_work(app, v, "reading", v->from);
        status = tg_model_open_floats(app->ctx, v->from, &p->model);
        tg_term_clear(&app->out);
        if (status == TG_OK) status = tg_model_get_info(p->model, &info);
        if (status != TG_OK) return tg_app_failed(app, app->ctx, status, TG_READING);
        p->config = info.config;
    }
    int code = make_tokens(app, v, p);
    if (code != TG_ARGS_GO_ON) return code;
    const tg_tokenizer *tokens = p->tokens.tokenizer;
    if (tokens) p->config.vocab = (int32_t)tg_tokenizer_count(tokens);
    tg_text_set_tokenizer(p->text, p->model ? tg_model_tokenizer(p->model) : tokens);
    *o = train_options(v, p->preset);
    status = tg_forecast_run(app->ctx, &p->config, p->text, o, forecast);
    if (status != TG_OK) return tg_app_failed(app, app->ctx, status, TG_READING);
    code = check_room(app, v, forecast, p->files.out, disk_free);
    if (code != TG_ARGS_GO_ON) return code;
    if (tokens)
        status = tg_model_new_vocabulary(app->ctx, &p->config, tokens, v->seed, &p->model);
    else if (!v->from)
        status = tg_model_new(app->ctx, &p->config, v->seed, &p->model);
    tell_work(app, v, "making a trainer and tokens of", v->data.item[0]);
    if (status == TG_OK) status = tg_trainer_new(app->ctx, p->model, p->text, o, &p->trainer);
    tg_term_clear(&app->out);
    if (status != TG_OK) return tg_app_failed(app, app->ctx, status, TG_READING);
    tg_trainer_options(p->trainer, o);                  /* with the batch that the library chose */
    status = tg_trainer_forecast(p->trainer, forecast); /* which knows how many tokens there are */
    return status == TG_OK ? TG_ARGS_GO_ON : tg_app_failed(app, app->ctx, status, TG_READING);
}

/* More steps stretch the schedule, which may lift a rate that had nearly come to its end: no loss
 * shows sooner that a run goes on. */
static tg_status set_steps(tg_app *app, const values *v, tg_trainer *t) {
    const int64_t done = tg_trainer_steps_done(t);
    const double before = tg_trainer_lr(t, done > 0 ? done : 1);
    const bool by_table = v->rates || tg_trainer_rates(t, NULL, NULL) > 0;
    tg_status status = v->hold_lr ? tg_trainer_hold_lr(t) : TG_OK;
    if (status == TG_OK) status = tg_trainer_set_steps(t, v->steps);
    const double after = tg_trainer_lr(t, done + 1);
    tg_train_options o = tg_train_options_default();
    tg_trainer_options(t, &o);
    if (status == TG_OK && !by_table && done >= o.warmup && after > before * 1.001) {
        tg_app_warn(app,
                    "%" PRId64 " steps stretch the schedule: the learning rate rises from %.3g at "
                    "step %" PRId64 " to %.3g at step %" PRId64 "; --hold-lr keeps it at its end",
                    v->steps, before, done, after, done + 1);
    }
    return status;
}

/* Everything but the text and the number of steps comes from the file. The options that are shown
 * and used from here on are read back from the trainer; those of v are defaults. */
static int make_resumed(tg_app *app, const values *v, parts *p, tg_train_options *o,
                        tg_forecast *forecast, uint64_t disk_free) {
    tg_model_info info;
    tg_status status = tg_trainer_open(app->ctx, v->resume, p->text, 0, &p->trainer);
    if (status == TG_OK)
        status = tg_trainer_set_validation(p->trainer, v->eval_every, (int32_t)v->patience);
    if (status == TG_OK && v->steps) status = set_steps(app, v, p->trainer);
    if (status == TG_OK) status = tg_model_get_info(tg_trainer_model(p->trainer), &info);
    if (status == TG_OK) status = tg_trainer_forecast(p->trainer, forecast);
    if (status != TG_OK) return tg_app_failed(app, app->ctx, status, TG_READING);
    tg_text_set_tokenizer(p->text, tg_model_tokenizer(tg_trainer_model(p->trainer)));
    tg_trainer_options(p->trainer, o);
    p->config = info.config;
    if (o->val_fraction <= 0 && !v->val_data.n && (v->patience > 0 || v->eval_every > 0))
        return tg_args_refuse(&app->args, "%s: %s has no validation (--val 0)",
                              v->patience > 0 ? "--patience" : "--eval-every", v->resume);
    if (v->hold_lr && tg_trainer_rates(p->trainer, NULL, NULL))
        return tg_args_refuse(&app->args, "--hold-lr: %s goes by a table (--rates), which stays",
                              v->resume);
    /* Its memory is taken already; only the disk can still be too small. */
    tg_forecast disk_only = *forecast;
    disk_only.memory_bytes = 0;
    return check_room(app, v, &disk_only, p->files.out, disk_free);
}

/* The outputs are checked again: only now are all inputs known, among them the parts of a model
 * that lies in several files or in a folder, and none may be overwritten. */
static int want_unread(tg_app *app, const values *v, const files *f) {
    const tg_output_rule model = { .kind = TG_OUTPUT_MODEL };
    const bool same = v->resume && tg_app_same_file(v->resume, f->out);
    const int code =
        f->out[0] && !same ? want_writable(app, "--out", f->out, &model) : TG_ARGS_GO_ON;
    if (code != TG_ARGS_GO_ON || !f->best[0]) return code;
    return want_writable(app, "the best weights", f->best, &model);
}

/* Last of the preparations: a new run replaces the file, so nothing may fail behind it. */
static int open_log(tg_app *app, const values *v, parts *p) {
    if (!v->log) return TG_ARGS_GO_ON;
    const int64_t done = tg_trainer_steps_done(p->trainer);
    p->files.log_open = true;
    const tg_status s = tg_trainlog_begin(app->ctx, v->log, done, v->pairs.n > 0, &p->files.log);
    if (s == TG_OK) return TG_ARGS_GO_ON;
    tg_app_error(app, "--log %s cannot be written: %s", v->log, tg_app_why(app->ctx, s));
    return tg_app_code_of(app->ctx, s, TG_READING);
}

/* In the order of the cost: names, then the text's length, then plans and memory, then the text. */
static int prepare(tg_app *app, const values *v, parts *p, tg_train_options *o) {
    tg_forecast forecast;
    const bool show = !v->quiet;
    int code = choose_files(app, v, &p->files);
    if (code == TG_ARGS_GO_ON) code = refuse_collisions(app, v, &p->files);
    if (code != TG_ARGS_GO_ON) return code;
    char prev[PATH_BYTES + 8], lock[PATH_BYTES + 8], picture[PATH_BYTES + 8];
    snprintf(prev, sizeof prev, "%s.prev", p->files.out);
    snprintf(lock, sizeof lock, "%s.lock", p->files.out);
    snprintf(picture, sizeof picture, "%.*s.svg", PATH_BYTES, v->resume ? v->resume : "");
    const char *const written[] = { p->files.out, p->files.best, p->files.svg, v->log,
                                    prev,         lock,          picture };
    const bool chats = tg_trainchats_named(&v->data);
    const char *vocabulary = v->resume ? v->resume : v->from ? v->from : v->tokenizer;
    const double beta = v->pairs.n ? v->dpo_beta : 0;
    code = chats ? tg_trainchats_open(app, vocabulary, v->resume != NULL, v->template_name, v->date,
                                      beta, &v->data, &v->val_data, !show, &p->text)
                 : tg_traindata_open(app, "--data", &v->data, &v->val_data, v->parts, written,
                                     sizeof written / sizeof *written, !show, &p->text);
    if (code != TG_ARGS_GO_ON) return code;
    const uint64_t disk_free = p->files.out[0] ? tg_app_disk_free(p->files.out) : UINT64_MAX;
    code = (v->resume ? make_resumed : make_new)(app, v, p, o, &forecast, disk_free);
    if (code != TG_ARGS_GO_ON) return code;
    if (show && !chats) tg_trainplan_text(app, &v->data, v->val_data.n > 0, v->parts, &forecast);
    if (!chats) code = tg_trainplan_lint(app, p->text, o, !show);
    if (code != TG_ARGS_GO_ON) return code;
    if (show) {
        const char *from = v->resume ? v->resume : v->from;
        const tg_model *model = tg_trainer_model(p->trainer);
        const char *source = from ? tg_app_file_read(model, from, prev, sizeof prev) : NULL;
        tg_trainplan_run(app, source, &p->config, o, &forecast, p->files.out, disk_free);
    }
    code = want_unread(app, v, &p->files);
    return code == TG_ARGS_GO_ON ? open_log(app, v, p) : code;
}

/* From plan to loop: a tg_trainrun borrows all that p owns, but for the log. A log that could not
 * be written makes the exit code 1 even if the training itself went well: somebody reads it. */
static int run(tg_app *app, const values *v, parts *p, const tg_train_options *o) {
    const bool saving = p->files.out[0] != '\0';
    tg_trainrun r = {
        .app = app,
        .trainer = p->trainer,
        .data = &v->data,
        .val_data = &v->val_data,
        .of_pairs = v->pairs.n > 0,
        .mix = v->mix,
        .from = v->resume ? v->resume : v->from,
        .out = saving ? p->files.out : NULL,
        .best =
            saving && o->keep_best && (o->val_fraction > 0 || v->val_data.n) ? p->files.best : NULL,
        .svg = p->files.svg[0] ? p->files.svg : NULL,
        .svg_wanted = v->svg != NULL,
        .log = p->files.log_open ? &p->files.log : NULL,
        .log_path = v->log,
        .steps = o->steps,
        .eval_every = o->eval_every,
        .sample_every = v->sample_every,
        .sample_tokens = v->sample_tokens,
        .sample_prompt = v->sample_prompt,
        .seed = o->seed,
        .save_every = v->save_every,
        .quiet = v->quiet,
        .stop_on_save_error = v->stop_on_save_error,
    };
    if (!tg_model_can(tg_trainer_model(p->trainer), TG_CAN_WRITE)) {
        if (r.sample_every > 0)
            tg_app_warn(app, "--sample-every: there are no samples, as the model writes no text");
        r.sample_every = 0;
    }
    if (r.sample_every < 0) r.sample_every = o->steps / 5 > 0 ? o->steps / 5 : 1;
    int code = tg_trainrun_go(&r);
    if (r.log && tg_outfile_commit(r.log) != TG_OK) {
        tg_app_error(app, "%s could not be written to its end: %s", v->log,
                     tg_context_error(app->ctx));
        r.log_failed = true;
    }
    return r.log_failed && code == TG_EXIT_DONE ? TG_EXIT_FAILED : code;
}

/* A new run for each value; text and vocabulary are read anew, which takes little beside it. */
static int sweep(tg_app *app, values *v, parts *p, tg_sweep *s) {
    const tg_model_config config = p->config;
    const tg_preset *const preset = p->preset;
    const bool quiet = v->quiet || app->globals.json;
    int code = TG_ARGS_GO_ON;
    size_t n_done = 0;
    v->no_save = true;
    v->quiet = true;
    tg_sweep_begin(app, s, quiet);
    for (; code == TG_ARGS_GO_ON && n_done < s->n; n_done += code == TG_ARGS_GO_ON) {
        tg_train_options o;
        tg_sweep_set(s, n_done, v);
        code = prepare(app, v, p, &o);
        if (code == TG_ARGS_GO_ON) code = tg_sweep_go(app, s, n_done, p->trainer, quiet);
        free_parts(p);
        *p = (parts) { .config = config, .preset = preset };
    }
    tg_sweep_end(app, s, n_done, quiet);
    return code == TG_ARGS_GO_ON ? TG_EXIT_DONE : code;
}

int tg_cmd_train(int argc, char **argv) {
    /* The library's defaults are the ones that the help shows. */
    const tg_train_options d = tg_train_options_default();
    values v = { .dpo_beta = 0.1,
                 .accum = d.accum,
                 .lr = d.lr,
                 .min_lr = d.min_lr_ratio,
                 .schedule = (int)d.schedule,
                 .warmup = d.warmup,
                 .decay = d.decay_fraction,
                 .clip = d.clip,
                 .dropout = d.dropout,
                 .optimizer = (int)d.optimizer,
                 .momentum = d.momentum,
                 .ema = d.ema,
                 .weight_decay = d.weight_decay,
                 .beta1 = d.beta1,
                 .beta2 = d.beta2,
                 .eps = d.eps,
                 .seed = d.seed,
                 .val = d.val_fraction,
                 .eval_every = -1,
                 .eval_windows = d.eval_windows,
                 .patience = -1,
                 .sample_every = -1,
                 .sample_tokens = 200,
                 .sample_prompt = "",
                 .save_every = -1 };
    const tg_option_group groups[] = {
        TG_GROUP("Text", text_options, &v),
        TG_GROUP("Model", model_options, &v),
        TG_GROUP("Training", run_options, &v),
        TG_GROUP("Saving and showing", show_options, &v),
    };
    tg_app app;
    int code = tg_app_parse(&app, &spec, groups, 4, argc, argv);
    static parts p; /* names of files, which a small stack has no room for */
    static tg_sweep values_of_sweep;
    tg_train_options o = d;
    if (code == TG_ARGS_GO_ON) code = take_pairs(&app.args, &v);
    if (code == TG_ARGS_GO_ON) code = check_options(&app.args, &v);
    if (code == TG_ARGS_GO_ON && v.mix) code = tg_traindata_mix(&app, v.mix, &v.data, &v.parts);
    tg_rate_table rates;
    if (code == TG_ARGS_GO_ON && v.rates) code = tg_rates_parse(&app.args, v.rates, &rates);
    if (code == TG_ARGS_GO_ON && v.sweep)
        code = tg_sweep_parse(&app.args, v.sweep, run_options,
                              sizeof run_options / sizeof *run_options, &values_of_sweep);
    if (code == TG_ARGS_GO_ON && !v.from && !v.resume) {
        code = choose_config(&app.args, &v, &p.config, &p.preset);
    }
    if (code == TG_ARGS_GO_ON) code = tg_app_open(&app);
    if (code != TG_ARGS_GO_ON) {
        free_parts(&p);
        free(v.parts);
        return code;
    }
    /* From here on Ctrl-C is a wish that is read between slices. Before it, it simply ends the
     * program, which has nothing to save yet. */
    tg_signals_install();
    tg_context_force(app.ctx, v.force);
    if (v.sweep) {
        code = sweep(&app, &v, &p, &values_of_sweep);
    } else {
        code = prepare(&app, &v, &p, &o);
        if (code == TG_ARGS_GO_ON && v.resume)
            code = tg_rates_resume(&app, p.trainer, v.rates ? &rates : NULL, v.quiet);
        if (code == TG_ARGS_GO_ON && v.rates)
            (void)tg_trainer_set_rates(p.trainer, rates.step, rates.rate, rates.n);
        if (code == TG_ARGS_GO_ON) code = run(&app, &v, &p, &o);
    }
    free_parts(&p);
    free(v.parts);
    return tg_app_end(&app, code);
}
