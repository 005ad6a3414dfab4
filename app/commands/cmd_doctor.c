/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_doctor.c - tinygpt doctor: is this machine, this build and this text fit for training?
 *
 * Findings have a mark: ok, warn (works, but slower or worse than it could), FAIL (results are not
 * to be trusted, or training is not possible). Any FAIL makes the exit code 1.
 */
#include "doctor.h"

#include "print/format.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* folder is "." unless given. */
typedef struct values {
    tg_args_list data;
    const char *tokenizer, *folder;
    bool quick, verbose, list_isas, list_levers;
} values;

static const tg_option options[] = {
    TG_PATHS("--data", values, data, "FILE", "look at this text as well; may be given again"),
    TG_PATH("--tokenizer", values, tokenizer, "FILE",
            "with --data: as tokens of this vocabulary, of a model or a tokenizer.json"),
    TG_PATH("--dir", values, folder, "FOLDER", "where saving is tried"),
    TG_FLAG("--quick", values, quick, "leave out the gradients and the memory's speed"),
    TG_FLAG("--verbose", values, verbose, "name every op that was checked"),
    TG_FLAG("--list-isas", values, list_isas, "print the names that --isa takes here, and end"),
    TG_FLAG("--list-levers", values, list_levers,
            "print the names of the levers that can be switched, and end"),
};

static const tg_command_spec spec = {
    .name = "doctor",
    .uses = TG_USES_CPU | TG_USES_DEVICE,
    .usage = "[--data FILE..] [options]",
    .about =
        "Checks the machine, every kernel against its reference, every gradient against finite "
        "differences, a small training run, saving and resuming, and a text. Exit code 0: "
        "nothing failed, 1: something did.",
};

/* --------------------------------------------------------------------------------------- findings
 */

/* Sections are headlines for people and a field of each finding for programs. title must be
 * static. */
/* A title may have the name of a file. */
void tg_doctor_section(tg_doctor *d, const char *title) {
    char safe[2 * sizeof d->section];
    snprintf(d->section, sizeof d->section, "%s", title);
    if (d->app->globals.json) return;
    printf("\n%s%s%s\n", tg_term_style(&d->app->out, TG_BOLD),
           tg_fmt_safe(safe, sizeof safe, title), tg_term_style(&d->app->out, TG_PLAIN));
}

/* The one way out for every finding, so that counting and both forms of output cannot differ. Texts
 * quote names of files and CPUs, so a terminal gets them made safe; JSON escapes them itself.
 * Flushed, because the next check may take seconds, or crash: then the last line says where. */
void tg_doctor_find(tg_doctor *d, tg_mark mark, const char *format, ...) {
    static const char *const names[] = { "ok", "warn", "FAIL", "-" };
    static const char *const json_names[] = { "ok", "warn", "fail", "note" };
    static const tg_style styles[] = { TG_GREEN, TG_YELLOW, TG_RED, TG_DIM };
    char text[2048], safe[2048];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    d->warnings += mark == TG_MARK_WARN;
    d->failures += mark == TG_MARK_FAIL;
    if (d->app->globals.json) {
        tg_jout_open(&d->json, NULL, '{');
        tg_jout_text(&d->json, "section", d->section);
        tg_jout_text(&d->json, "mark", json_names[mark]);
        tg_jout_text(&d->json, "text", text);
        tg_jout_close(&d->json);
        return;
    }
    printf("  %s%-4s%s  %s\n", tg_term_style(&d->app->out, styles[mark]), names[mark],
           tg_term_style(&d->app->out, TG_PLAIN), tg_fmt_safe(safe, sizeof safe, text));
    fflush(stdout);
}

/* A check that could not be made is a failure and not a note: nothing is known about what it would
 * have found. ctx is the one that failed, which need not be the doctor's own. */
void tg_doctor_failed(tg_doctor *d, tg_context *ctx, tg_status status, const char *what) {
    const char *text = ctx ? tg_context_error(ctx) : "";
    tg_doctor_find(d, TG_MARK_FAIL, "%s did not work: %s", what,
                   *text ? text : tg_status_text(status));
}

/* ---------------------------------------------------------------------------------------- machine
 */

/* Threads beyond the quota are a warning: they wait for each other at every barrier. */
static void check_machine(tg_doctor *d) {
    tg_context *ctx = d->app->ctx;
    tg_machine_info m;
    tg_doctor_section(d, "machine");
    const tg_status status = tg_machine(ctx, &m);
    if (status != TG_OK) {
        tg_doctor_failed(d, ctx, status, "asking the system");
        return;
    }
    tg_doctor_find(d, TG_MARK_OK, "%s, %u core%s", m.cpu_name[0] ? m.cpu_name : "unknown CPU",
                   m.cpus, m.cpus == 1 ? "" : "s");
    if (m.affinity_cpus < m.cpus) {
        tg_doctor_find(d, TG_MARK_NOTE, "this process may use %u of them", m.affinity_cpus);
    }
    if (m.cgroup_cpus > 0) {
        tg_doctor_find(d, TG_MARK_NOTE, "its group has a quota of %.2f cores", m.cgroup_cpus);
    }
    const unsigned threads = tg_context_threads(ctx);
    /* One thread more than a quota of, say, 1.5 cores is fine: quotas are over a period. */
    const bool many =
        threads > m.affinity_cpus || (m.cgroup_cpus > 0 && threads > m.cgroup_cpus + 1);
    tg_doctor_find(d, many ? TG_MARK_WARN : TG_MARK_OK, "%u thread%s%s", threads,
                   threads == 1 ? "" : "s",
                   many ? ": more than the cores it gets, which is slower" : "");
    /* About what the larger presets take. Less is enough for the small ones, so it is a warning. */
    const bool tight = m.memory_available_bytes < UINT64_C(500000000);
    tg_doctor_find(d, tight ? TG_MARK_WARN : TG_MARK_OK, "%s of memory, %s free",
                   TG_BYTES(m.memory_bytes), TG_BYTES(m.memory_available_bytes));
}

/* The best usable row is the last one; what lies beyond it is said with its reason, since "not in
 * this build" and "not on this machine" have different remedies. */
static void check_isa(tg_doctor *d) {
    const char *used = tg_context_isa(d->app->ctx), *best = used;
    tg_doctor_section(d, "instruction set");
    for (size_t i = 0; i < tg_isa_count(); i++) {
        const tg_isa_info *isa = tg_isa_at(i);
        if (isa->built && isa->usable) best = isa->name;
    }
    const bool is_best = strcmp(used, best) == 0;
    tg_doctor_find(d, is_best ? TG_MARK_OK : TG_MARK_WARN,
                   is_best ? "%s is in use"
                           : "%s is in use; without --isa it would be %s, which is faster",
                   used, best);
    for (size_t i = 0; i < tg_isa_count(); i++) {
        const tg_isa_info *isa = tg_isa_at(i);
        if (!isa->built) {
            tg_doctor_find(d, TG_MARK_NOTE, "no %s: it is not in this build", isa->name);
        } else if (!isa->usable) {
            tg_doctor_find(d, TG_MARK_NOTE, "no %s: this CPU or system lacks one of %s", isa->name,
                           isa->needs);
        }
    }
}

/* Whatever was switched by --levers is said with what it costs; the rest is one line. */
static void check_levers(tg_doctor *d) {
    char on[512] = "";
    size_t changed = 0;
    tg_doctor_section(d, "levers");
    for (size_t i = 0; i < tg_lever_count(); i++) {
        const tg_lever_info *lever = tg_lever_at(i);
        const bool is_on = tg_context_lever(d->app->ctx, lever->name);
        const size_t length = strlen(on);
        if (is_on)
            snprintf(on + length, sizeof on - length, "%s%s", length ? ", " : "", lever->name);
        if (is_on == lever->default_on) continue;
        changed++;
        tg_doctor_find(d, TG_MARK_WARN, "%s is switched %s: %s", lever->name, is_on ? "on" : "off",
                       lever->doc);
    }
    tg_doctor_find(d, changed ? TG_MARK_NOTE : TG_MARK_OK, "on: %s", *on ? on : "none");
}

/* ------------------------------------------------------------------------- kernels and gradients
 */

/* Several times the number of ops there are. */
enum { OPS_MAX = 128, NAME_BYTES = 48 };

/* What the cases of one op came to. The worst case is the one nearest to its tolerance. */
typedef struct op_sum {
    char name[NAME_BYTES];
    size_t cases, failed;
    double worst; /* error / tolerance */
} op_sum;

/* One run of all checks: counts of everything, and a line for each op. On the heap, as it is
 * large. */
typedef struct tally {
    tg_doctor *doctor;
    op_sum op[OPS_MAX];
    size_t n, cases, failed;
} tally;

/* Names are copied, since a report is borrowed for its call. Ops beyond OPS_MAX still count, they
 * only get no line of their own. */
static op_sum *sum_of(tally *t, const char *name) {
    for (size_t i = 0; i < t->n; i++) {
        if (strcmp(t->op[i].name, name) == 0) return &t->op[i];
    }
    if (t->n == OPS_MAX) return NULL;
    op_sum *sum = &t->op[t->n++];
    snprintf(sum->name, sizeof sum->name, "%s", name);
    return sum;
}

/* Called for every case, passed or not. A failed one is told at once and in full; those that passed
 * only count. A tolerance of 0 (copies, ids) has no share to be near to. */
static void on_check(void *user, const tg_check *check) {
    tally *t = user;
    op_sum *sum = sum_of(t, check->op);
    t->cases++;
    t->failed += !check->passed;
    if (!check->passed) {
        tg_doctor_find(t->doctor, TG_MARK_FAIL, "%s, %s: error %.3g, want at most %.3g", check->op,
                       check->what, check->error, check->tolerance);
    }
    if (!sum) return;
    const double share = check->tolerance > 0 ? check->error / check->tolerance : 0;
    sum->cases++;
    sum->failed += !check->passed;
    if (share > sum->worst) sum->worst = share;
}

/* Kernels and gradients report alike, so one function serves both. */
typedef tg_status check_fn(tg_context *ctx, const char *filter, tg_check_fn report, void *user,
                           size_t *n_failed);

/* n_failed is the library's own count, kept apart from the reports. */
static void check_ops(tg_doctor *d, const values *v, const char *title, check_fn *run,
                      const char *against) {
    tg_context *ctx = d->app->ctx;
    size_t n_failed = 0;
    tally *t = calloc(1, sizeof *t);
    tg_doctor_section(d, title);
    if (!t) {
        tg_doctor_find(d, TG_MARK_FAIL, "not enough memory");
        return;
    }
    t->doctor = d;
    const double before = tg_app_now_ms();
    const tg_status status = run(ctx, NULL, on_check, t, &n_failed);
    const double seconds = (tg_app_now_ms() - before) / 1000;
    if (status != TG_OK) tg_doctor_failed(d, ctx, status, title);
    const op_sum *worst = NULL;
    for (size_t i = 0; i < t->n; i++) {
        const op_sum *sum = &t->op[i];
        if (!worst || sum->worst > worst->worst) worst = sum;
        if (!v->verbose && sum->failed == 0) continue;
        tg_doctor_find(d, sum->failed ? TG_MARK_FAIL : TG_MARK_OK,
                       "%-18s %4zu cases, %zu failed, worst error %.2g of its tolerance", sum->name,
                       sum->cases, sum->failed, sum->worst);
    }
    /* The count of the library and that of the reports must agree, or a failure went unseen. */
    if (status == TG_OK && t->failed == 0 && n_failed == 0 && worst) {
        tg_doctor_find(d, TG_MARK_OK,
                       "%zu cases of %zu ops agree with %s, in %s; nearest to its tolerance: %s, "
                       "%.0f%%",
                       t->cases, t->n, against, TG_TIME(seconds), worst->name, 100 * worst->worst);
    } else {
        tg_doctor_find(d, TG_MARK_FAIL, "%zu of %zu cases of %zu ops failed", n_failed, t->cases,
                       t->n);
    }
    free(t);
}

/* ------------------------------------------------------------------------------- speed and text */

/* Numbers and no verdict: what is fast enough depends on the machine. The memory's speed takes
 * longest, since 256 MiB have to be touched first. */
static void check_speed(tg_doctor *d, const values *v) {
    tg_context *ctx = d->app->ctx;
    double gflops = 0, read = 0;
    tg_doctor_section(d, "speed");
    tg_status status = tg_measure_peak(ctx, &gflops);
    if (status == TG_OK) {
        tg_doctor_find(d, TG_MARK_OK, "%.0f GFLOP/s at most, of %u thread%s in f32", gflops,
                       tg_context_threads(ctx), tg_context_threads(ctx) == 1 ? "" : "s");
        if (!v->quick) status = tg_measure_read(ctx, (size_t)256 << 20, &read);
    }
    if (status != TG_OK) {
        tg_doctor_failed(d, ctx, status, "measuring");
    } else if (read > 0) {
        tg_doctor_find(d, TG_MARK_OK, "%.1f GB/s read from memory (256 MiB, huge pages)",
                       read * 1e-9);
    }
}

/* Adapter, driver, features and limits. A device that could not be opened has ended the command
 * before, with what is missing and what to install. */
static void check_gpu(tg_doctor *d) {
    tg_context *ctx = d->app->ctx;
    tg_gpu_facts g;
    if (tg_context_gpu(ctx, &g) != TG_OK) return;
    tg_doctor_section(d, "GPU");
    tg_doctor_find(d, g.software ? TG_MARK_WARN : TG_MARK_OK, "%s%s", g.adapter,
                   g.software ? ": software, which computes on the CPU" : "");
    tg_doctor_find(d, TG_MARK_NOTE, "%s%s%s, by %s", g.api, g.driver[0] ? ", driver " : "",
                   g.driver, g.library);
    tg_doctor_find(d, TG_MARK_NOTE, "%s f16, %s subgroups, %s timestamps", g.f16 ? "has" : "no",
                   g.subgroups ? "has" : "no", g.timestamps ? "has" : "no");
    tg_doctor_find(d, TG_MARK_NOTE, "%s subgroup matrices: %s", g.has_matrices ? "has" : "no",
                   g.matrices);
    tg_doctor_find(d, TG_MARK_NOTE,
                   "buffers of %s, bindings of %s, %u threads and %u bytes a "
                   "workgroup",
                   TG_BYTES(g.max_buffer_bytes), TG_BYTES(g.max_binding_bytes), g.max_group_threads,
                   g.max_group_bytes);
}

/* A software adapter is refused by the library: its times would be taken for a GPU's. */
static void check_gpu_speed(tg_doctor *d) {
    tg_context *ctx = d->app->ctx;
    double bytes_per_s, gflops;
    tg_gpu_facts g;
    if (tg_context_gpu(ctx, &g) != TG_OK) return;
    const tg_status status = tg_measure_gpu(ctx, &bytes_per_s, &gflops);
    if (status == TG_E_UNSUPPORTED) {
        tg_doctor_find(d, TG_MARK_NOTE, "%s", tg_context_error(ctx));
    } else if (status != TG_OK) {
        tg_doctor_failed(d, ctx, status, "timing the GPU");
    } else {
        tg_doctor_find(d, TG_MARK_OK, "GPU: %.0f GFLOP/s in a large product, f32", gflops);
        tg_doctor_find(d, TG_MARK_OK, "GPU: %.0f GB/s in additions of large arrays",
                       bytes_per_s * 1e-9);
    }
}

/* The levels of a lint are marks already. */
static void on_lint(void *user, const tg_lint *finding) {
    static const tg_mark marks[] = { TG_MARK_FAIL, TG_MARK_WARN, TG_MARK_NOTE };
    const int level = finding->level < 0 ? 0 : finding->level > 2 ? 2 : finding->level;
    tg_doctor_find(user, marks[level], "%s", finding->text);
}

/* A finding of the lint that is an error has spoken for itself; only a failure without one, such as
 * a file that is not there, gets a line here. */
static void check_text(tg_doctor *d, const char *path, const char *vocabulary,
                       const char *section) {
    tg_context *ctx = d->app->ctx;
    tg_text *text = NULL;
    tg_tokenizer *tokenizer = NULL;
    const size_t failures = d->failures;
    tg_doctor_section(d, section);
    tg_status status = tg_text_open(ctx, path, &text);
    if (status == TG_OK && vocabulary) status = tg_tokenizer_open(ctx, vocabulary, &tokenizer);
    if (status == TG_OK) status = tg_text_set_tokenizer(text, tokenizer);
    if (status == TG_OK) status = tg_text_lint(text, 0, 0, on_lint, d);
    if (status != TG_OK && d->failures == failures) {
        tg_doctor_failed(d, ctx, status, "reading the text");
    } else if (status == TG_OK && d->failures == failures) {
        tg_doctor_find(d, TG_MARK_OK, "%s: %s", path, TG_BYTES(tg_text_bytes(text)));
    }
    tg_text_free(text);
    tg_tokenizer_free(tokenizer);
}

/* One is the text; of several each section has its path. */
static void check_texts(tg_doctor *d, const tg_args_list *data, const char *vocabulary) {
    for (size_t i = 0; i < data->n; i++) {
        char section[512] = "text";
        if (data->n > 1) snprintf(section, sizeof section, "text %s", data->item[i]);
        check_text(d, data->item[i], vocabulary, section);
    }
}

/* ------------------------------------------------------------------------------------ the command
 */

/* From what is cheap and explains the rest to what takes seconds. */
/* tg_doctor_training and tg_doctor_files train for real, see doctor_run.c. */
static void examine(tg_doctor *d, const values *v) {
    check_machine(d);
    check_isa(d);
    check_levers(d);
    check_gpu(d);
    check_speed(d, v);
    check_gpu_speed(d);
    check_ops(d, v, "kernels", tg_check_kernels, "their references");
    if (!v->quick) check_ops(d, v, "gradients", tg_check_gradients, "finite differences");
    tg_doctor_training(d);
    tg_doctor_files(d, v->folder);
    check_texts(d, &v->data, v->tokenizer);
}

/* For scripts: a name a line, and no examination. Only ISAs that can be used here are listed, since
 * a loop over them should not fail. */
static int print_names(const values *v) {
    for (size_t i = 0; v->list_isas && i < tg_isa_count(); i++) {
        const tg_isa_info *isa = tg_isa_at(i);
        if (isa->built && isa->usable) puts(isa->name);
    }
    for (size_t i = 0; v->list_levers && i < tg_lever_count(); i++)
        if (strncmp(tg_lever_at(i)->state, "withdrawn", strlen("withdrawn")) != 0)
            puts(tg_lever_at(i)->name);
    return TG_EXIT_DONE;
}

int tg_cmd_doctor(int argc, char **argv) {
    values v = { .folder = "." };
    const tg_option_group group = TG_GROUP("Options", options, &v);
    tg_app app;
    int code = tg_app_parse(&app, &spec, &group, 1, argc, argv);
    if (code != TG_ARGS_GO_ON) return code;
    if (v.tokenizer && !v.data.n) return tg_args_refuse(&app.args, "--tokenizer wants --data FILE");
    /* Before the context: a list of what --isa takes must not fail because of --isa. */
    if (v.list_isas || v.list_levers) return print_names(&v);
    code = tg_app_open(&app);
    if (code != TG_ARGS_GO_ON) return code;
    tg_doctor d = { .app = &app, .json = tg_jout_to(stdout) };
    if (app.globals.json) {
        tg_jout_open(&d.json, NULL, '{');
        tg_jout_text(&d.json, "banner", tg_context_banner(app.ctx));
        tg_jout_open(&d.json, "checks", '[');
    } else {
        printf("%s\n", tg_context_banner(app.ctx));
    }
    examine(&d, &v);
    if (app.globals.json) {
        tg_jout_close(&d.json);
        tg_jout_uint(&d.json, "warnings", d.warnings);
        tg_jout_uint(&d.json, "failures", d.failures);
        tg_jout_bool(&d.json, "ok", d.failures == 0);
        tg_jout_close(&d.json);
        tg_jout_line(&d.json);
    } else if (d.failures > 0) {
        printf("\n%zu finding%s failed, %zu warning%s\n", d.failures, d.failures == 1 ? "" : "s",
               d.warnings, d.warnings == 1 ? "" : "s");
    } else if (d.warnings > 0) {
        printf("\nall works; %zu warning%s\n", d.warnings, d.warnings == 1 ? "" : "s");
    } else {
        printf("\nall is well\n");
    }
    return tg_app_end(&app, d.failures ? TG_EXIT_FAILED : TG_EXIT_DONE);
}
