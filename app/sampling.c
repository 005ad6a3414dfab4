/* SPDX-License-Identifier: Apache-2.0 */
/* sampling.c - from the options of a command line to those of the library, and to files. */
#include "sampling.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

tg_sampling tg_sampling_default(void) {
    const tg_sample_options d = tg_sample_options_default();
    return (tg_sampling) { .top_k = d.top_k,
                           .repeat_last = d.repeat_last,
                           .temp = d.temperature,
                           .top_p = d.top_p,
                           .min_p = d.min_p,
                           .typical_p = d.typical_p,
                           .repeat_penalty = d.repeat_penalty,
                           .frequency_penalty = d.frequency_penalty,
                           .presence_penalty = d.presence_penalty };
}

void tg_sampling_of_model(tg_app *app, const tg_model *model, tg_sampling *s) {
    tg_sample_options o = tg_sampling_options(s, 0);
    char said[256];
    if (tg_model_sampling(model, &o, said, sizeof said) != TG_OK || !*said) return;
    const struct {
        const char *name;
        double *to, from;
    } reals[] = { { "--temp", &s->temp, o.temperature },
                  { "--top-p", &s->top_p, o.top_p },
                  { "--min-p", &s->min_p, o.min_p },
                  { "--typical-p", &s->typical_p, o.typical_p },
                  { "--repeat-penalty", &s->repeat_penalty, o.repeat_penalty } };
    for (size_t i = 0; i < sizeof reals / sizeof reals[0]; i++)
        if (!tg_args_given(&app->args, reals[i].name)) *reals[i].to = reals[i].from;
    if (!tg_args_given(&app->args, "--top-k")) s->top_k = o.top_k;
    if (!tg_args_given(&app->args, "--repeat-last")) s->repeat_last = o.repeat_last;
    fprintf(stderr, "drawing as the file says, where no option does: %s\n", said);
}

tg_sample_options tg_sampling_options(const tg_sampling *s, uint64_t seed) {
    tg_sample_options o = tg_sample_options_default();
    o.temperature = s->temp;
    o.top_k = (int32_t)s->top_k;
    o.top_p = s->top_p;
    o.min_p = s->min_p;
    o.typical_p = s->typical_p;
    o.repeat_penalty = s->repeat_penalty;
    o.frequency_penalty = s->frequency_penalty;
    o.presence_penalty = s->presence_penalty;
    o.repeat_last = (int32_t)s->repeat_last;
    o.seed = seed;
    return o;
}

const char *tg_sampling_end(tg_end end) {
    static const char *const words[] = { [TG_END_TOKEN] = "token",
                                         [TG_END_STOP] = "stop",
                                         [TG_END_CANCELLED] = "cancelled",
                                         [TG_END_LIMIT] = "limit",
                                         [TG_END_FULL] = "full" };
    return words[end];
}

/* ---------------------------------------------------------------------------- speculative decoding
 */

int tg_draft_open(tg_app *app, tg_draft_options *o, tg_session *session, tg_draft *draft) {
    if (!o->file) return TG_ARGS_GO_ON;
    if (o->n == 0) o->n = 4;
    tg_model_info info;
    tg_status s = tg_model_open(app->ctx, o->file, &draft->model);
    if (s == TG_OK) s = tg_model_get_info(draft->model, &info);
    if (s == TG_OK) {
        const size_t own = (size_t)info.config.ctx, want = tg_session_capacity(session);
        s = tg_session_new(app->ctx, draft->model, (int32_t)(want < own ? want : own),
                           &draft->session);
    }
    return s == TG_OK ? TG_ARGS_GO_ON : tg_app_failed(app, app->ctx, s, TG_READING);
}

void tg_draft_free(tg_draft *draft) {
    tg_session_free(draft->session);
    tg_model_free(draft->model);
}

void tg_draft_set(const tg_draft_options *o, const tg_draft *draft, tg_generation *what) {
    what->draft = (size_t)o->n;
    what->draft_session = draft->session;
}

/* Whole numbers first. Bounds are those of the options; where low is `open`, it is not one. */
static const struct {
    const char *option;
    size_t at;
    double low, high;
    bool whole, open;
} fields[] = {
    { "--top-k", offsetof(tg_sampling, top_k), 0, 1e6, true, false },
    { "--repeat-last", offsetof(tg_sampling, repeat_last), 0, 1024, true, false },
    { "--temp", offsetof(tg_sampling, temp), 0, 100, false, false },
    { "--top-p", offsetof(tg_sampling, top_p), 0, 1, false, true },
    { "--min-p", offsetof(tg_sampling, min_p), 0, 1, false, false },
    { "--typical-p", offsetof(tg_sampling, typical_p), 0, 1, false, false },
    { "--repeat-penalty", offsetof(tg_sampling, repeat_penalty), 0, 100, false, true },
    { "--frequency-penalty", offsetof(tg_sampling, frequency_penalty), -100, 100, false, false },
    { "--presence-penalty", offsetof(tg_sampling, presence_penalty), -100, 100, false, false },
};
enum { FIELDS = sizeof fields / sizeof fields[0] };

static double number_at(const tg_sampling *s, size_t i) {
    const char *at = (const char *)s + fields[i].at;
    int64_t whole;
    double real;
    memcpy(&whole, at, sizeof whole);
    memcpy(&real, at, sizeof real);
    return fields[i].whole ? (double)whole : real;
}

static void set_number(tg_sampling *s, size_t i, double x) {
    const int64_t whole = (int64_t)x;
    memcpy((char *)s + fields[i].at, fields[i].whole ? (const void *)&whole : &x, sizeof x);
}

bool tg_sampling_write(const tg_sampling *s, tg_app_buffer *out) {
    for (size_t i = 0; i < FIELDS; i++) {
        char text[40];
        const int n = snprintf(text, sizeof text, "%s%.17g", i ? " " : "", number_at(s, i));
        if (tg_app_buffer_add(out, text, (size_t)n) != 0) return false;
    }
    return tg_app_buffer_add(out, "\n", 1) == 0;
}

bool tg_sampling_read(tg_sampling *s, const char *line) {
    tg_sampling all = *s;
    for (size_t i = 0; i < FIELDS; i++) {
        char *end;
        const double x = strtod(line, &end);
        const bool above = fields[i].open ? x > fields[i].low : x >= fields[i].low;
        if (end == line || !above || !(x <= fields[i].high)) return false;
        set_number(&all, i, x);
        line = end;
    }
    if (*line != '\n') return false;
    *s = all;
    return true;
}

void tg_sampling_keep(tg_sampling *s, const tg_sampling *asked, const tg_args *args) {
    for (size_t i = 0; i < FIELDS; i++) {
        if (tg_args_given(args, fields[i].option)) set_number(s, i, number_at(asked, i));
    }
}

/* ------------------------------------------------------------------------------- logit processing
 */

/* "ID:X,ID:X". */
static int set_bias(tg_app *app, const char *list, tg_session *session) {
    enum { MOST = 1000 };
    tg_logit_bias *bias = malloc(MOST * sizeof *bias);
    const char *at = list;
    size_t n = 0;
    bool right = true;
    if (!bias) {
        tg_app_error(app, "not enough memory for --bias");
        return TG_EXIT_FAILED;
    }
    for (; right && at && *at && n < MOST; n++) {
        char *end;
        const long id = strtol(at, &end, 10);
        right = end != at && *end == ':' && id >= 0 && id <= INT32_MAX;
        if (!right) break;
        at = end + 1;
        bias[n] = (tg_logit_bias) { (int32_t)id, strtod(at, &end) };
        right = end != at && (*end == ',' || *end == '\0');
        at = *end == ',' ? end + 1 : end;
    }
    int code = TG_ARGS_GO_ON;
    if (!right || (at && *at)) {
        code = tg_args_refuse(&app->args, "--bias: want ID:X,ID:X,.., at most 1000");
    } else if (n > 0) {
        const tg_status status = tg_session_set_bias(session, bias, n);
        if (status != TG_OK) code = tg_app_failed(app, app->ctx, status, TG_READING);
    }
    free(bias);
    return code;
}

int tg_logit_options_set(tg_app *app, const tg_logit_options *s, tg_session *session) {
    tg_status status = tg_session_set_banned(session, s->ban.item, s->ban.n);
    if (status == TG_OK) status = tg_session_set_stops(session, s->stop.item, s->stop.n);
    if (status != TG_OK) return tg_app_failed(app, app->ctx, status, TG_READING);
    return s->bias ? set_bias(app, s->bias, session) : TG_ARGS_GO_ON;
}
