/* SPDX-License-Identifier: Apache-2.0 */
/*
 * train_plan.c - see train_plan.h. Each part of the plan is printed into a stream in memory first,
 * so that it can be broken where the window ends.
 */
#define _POSIX_C_SOURCE 200809L /* open_memstream */
#include "train/train_plan.h"

#include "print/format.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Where the plan's second column begins. */
enum { PLAN_INDENT = 12 };

/* Errors and warnings of a lint always go out, remarks only where the plan is shown. An error does
 * not end the lint: all of them are told, and the run is refused afterwards. */
typedef struct lint {
    tg_app *app;
    bool quiet, refused;
} lint;

static void on_lint(void *user, const tg_lint *finding) {
    lint *l = user;
    if (finding->level == 0) {
        l->refused = true;
        tg_app_error(l->app, "--data: %s", finding->text);
    } else if (finding->level == 1) {
        tg_app_warn(l->app, "--data: %s", finding->text);
    } else if (!l->quiet) {
        char safe[512];
        char line[sizeof safe + 16];
        tg_fmt_safe(safe, sizeof safe, finding->text);
        snprintf(line, sizeof line, "  %-9s %s", "", safe);
        tg_term_wrapped(&l->app->out, PLAN_INDENT, line);
    }
}

int tg_trainplan_lint(tg_app *app, tg_text *text, const tg_train_options *o, bool quiet) {
    lint l = { app, quiet, false };
    const tg_status s = tg_text_lint(text, o->row_tokens, o->val_fraction, on_lint, &l);
    if (s != TG_OK) return tg_app_failed(app, app->ctx, s, TG_READING);
    return l.refused ? TG_EXIT_USAGE : TG_ARGS_GO_ON;
}

/* Gives out what was printed into a plan's stream, broken between words where the window is narrow.
 */
static void put_plan(tg_app *app, FILE *plan, char **text) {
    if (fclose(plan) == 0) tg_term_wrapped(&app->out, PLAN_INDENT, *text);
    free(*text);
}

void tg_trainplan_text(tg_app *app, const tg_args_list *data, bool held_apart,
                       const tg_mix_part *mix, const tg_forecast *f) {
    char name[256], *text = NULL;
    size_t n_text;
    FILE *p = open_memstream(&text, &n_text);
    if (!p) return; /* no memory: whatever comes next will say so */
    fprintf(p, "%s\n\n", tg_context_banner(app->ctx));
    fprintf(p, "  %-9s %s", "text", tg_fmt_safe(name, sizeof name, data->item[0]));
    if (data->n > 1) fprintf(p, " and %zu more", data->n - 1);
    fprintf(p, ": %s to train on", TG_BYTES(f->train_bytes));
    if (f->val_bytes) {
        fprintf(p, ", %s %s", TG_BYTES(f->val_bytes),
                held_apart ? "of another text for validation" : "held back for validation");
    }
    if (f->train_tokens != f->train_bytes)
        fprintf(p, ": %s and %s tokens", TG_COUNT(f->train_tokens), TG_COUNT(f->val_tokens));
    fputc('\n', p);
    if (mix) tg_traindata_tell_mix(p, data, mix, f->epochs);
    put_plan(app, p, &text);
}

void tg_trainplan_run(tg_app *app, const char *source, const tg_model_config *c,
                      const tg_train_options *o, const tg_forecast *f, const char *out,
                      uint64_t disk_free) {
    char name[256], *text = NULL;
    size_t n_text;
    FILE *p = open_memstream(&text, &n_text);
    if (!p) return;
    const uint64_t batch = (uint64_t)o->batch;
    const uint64_t tokens = batch * (uint64_t)o->accum * (uint64_t)o->row_tokens;
    const char *family = c->family ? c->family : tg_family_at(0);
    fprintf(p, "  %-9s %s%s%s%s%d layers, width %d, %d heads, context %d: %s parameters\n", "model",
            source ? tg_fmt_safe(name, sizeof name, source) : "", source ? ": " : "",
            strcmp(family, tg_family_at(0)) == 0 ? "" : family,
            strcmp(family, tg_family_at(0)) == 0 ? "" : ", ", (int)c->layers, (int)c->width,
            (int)c->heads, (int)c->ctx, TG_COUNT(f->params));
    fprintf(p, "  %-9s %s steps of %s %s (%" PRIu64 " x %d", "run", TG_COUNT((uint64_t)o->steps),
            TG_COUNT(tokens),
            f->train_bytes && f->train_tokens == f->train_bytes ? "bytes" : "tokens", batch,
            (int)o->row_tokens);
    if (o->accum > 1) fprintf(p, " x %d", (int)o->accum);
    fputc(')', p);
    if (f->epochs > 0) fprintf(p, ": %.3g times through the text", f->epochs);
    if (o->optimizer == TG_MUON) fputs(", by Muon", p);
    if (o->ema > 0) fprintf(p, ", averaged (EMA %g)", o->ema);
    fputc('\n', p);
    fprintf(p, "  %-9s %s needed, %s free\n", "memory", TG_BYTES(f->memory_bytes),
            TG_BYTES(f->memory_available_bytes));
    if (*out) {
        fprintf(p, "  %-9s %s a save, %s in all", "disk", TG_BYTES(f->save_bytes),
                TG_BYTES(f->disk_bytes));
        if (disk_free != UINT64_MAX) fprintf(p, ", %s free", TG_BYTES(disk_free));
        fprintf(p, ": %s\n", tg_fmt_safe(name, sizeof name, out));
    }
    if (f->seconds > 0) {
        fprintf(p, "  %-9s about %s", "time", TG_TIME(f->seconds));
        fprintf(p, " (%s a step; peak %.0f GFLOP/s)\n", TG_TIME(f->ms_per_step / 1000),
                f->peak_gflops);
    } else {
        fprintf(p, "  %-9s known after the first steps\n", "time");
    }
    /* The library's advice is one string of lines; the first one gets the label. */
    for (const char *line = f->advice; *line;) {
        const int n = (int)strcspn(line, "\n");
        fprintf(p, "  %-9s %.*s\n", line == f->advice ? "advice" : "", n, line);
        line += line[n] ? n + 1 : n;
    }
    fputc('\n', p);
    put_plan(app, p, &text);
}
