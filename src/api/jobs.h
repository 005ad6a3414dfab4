/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jobs.h - all jobs of the public header, made. Arguments are checked by api/; see tinygpt.h for
 * what each of them does, and job.h for how.
 */
#ifndef TG_API_JOBS_H
#define TG_API_JOBS_H

#include "backend/cpu/check.h"
#include "engine/embed.h"
#include "engine/session.h"
#include "inspect/probe.h"
#include "io/run/tools.h"
#include "training/train.h"

/* jobs_model.c */
tg_status tg_job_model_new(tg_context *ctx, const tg_model_config *config, uint64_t seed,
                           tg_model **out, tg_job **job);
/* t: NULL, or whose vocabulary the model gets; of bytes it has none. */
tg_status tg_job_model_new_vocabulary(tg_context *ctx, const tg_model_config *config,
                                      const tg_tokenizer *t, uint64_t seed, tg_model **out,
                                      tg_job **job);
/* floats: of a third-party file, too. */
tg_status tg_job_model_open(tg_context *ctx, const char *path, bool floats, tg_model **out,
                            tg_job **job);
tg_status tg_job_model_save(tg_model *model, const char *path, tg_file_kind kind, tg_job **job);
tg_status tg_job_text_lint(tg_text *text, int32_t ctx_tokens, double val_fraction,
                           tg_lint_fn report, void *user, tg_job **job);
tg_status tg_job_tokenizer_train(tg_text *text, const char *kind, size_t n_tokens, tg_text_fn write,
                                 void *user, tg_job **job);
tg_status tg_job_text_sha256(tg_text *text, uint8_t digest[TG_SHA256_BYTES], tg_job **job);
tg_status tg_job_stories(tg_context *ctx, uint64_t seed, uint64_t n_bytes, tg_text_fn write,
                         void *user, tg_job **job);
tg_status tg_job_file_check(tg_context *ctx, const char *path, tg_job **job);
tg_status tg_job_file_convert(tg_context *ctx, const char *path_in, const char *path_out,
                              tg_file_kind kind, tg_job **job);
tg_status tg_job_model_eval(tg_context *ctx, tg_model *model, tg_text *text, double val_fraction,
                            int32_t windows, double *loss, tg_job **job);
/* text or t may be NULL. */
tg_status tg_job_forecast(tg_context *ctx, const tg_model_config *config, tg_text *text,
                          const tg_train_options *o, const tg_trainer *t, tg_forecast *out,
                          tg_job **job);
tg_status tg_job_check_kernels(tg_context *ctx, const tg_check_options *o, size_t *n_failed,
                               tg_job **job);
tg_status tg_job_rest(tg_context *ctx, tg_job **job);
tg_status tg_job_measure_peak(tg_context *ctx, double *gflops, tg_job **job);

/* gpu_speed.c: what tg_measure_gpu answers. software: also of a GPU that is none. */
tg_status tg_job_measure_gpu(tg_context *ctx, bool software, double *bytes_per_s, double *gflops,
                             tg_job **job);

/* jobs_run.c */
tg_status tg_job_trainer_new(tg_context *ctx, tg_model *model, tg_text *text,
                             const tg_train_options *o, tg_trainer **out, tg_job **job);
tg_status tg_job_trainer_open(tg_context *ctx, const char *path, tg_text *text, int64_t steps,
                              tg_trainer **out, tg_job **job);
tg_status tg_job_trainer_step(tg_trainer *t, tg_step_report *out, tg_job **job);
tg_status tg_job_trainer_eval(tg_trainer *t, double *loss, tg_job **job);
tg_status tg_job_trainer_save(tg_trainer *t, const char *path, bool best, tg_job **job);
tg_status tg_job_session_eval(tg_session *s, const int32_t *tokens, size_t n, tg_job **job);
tg_status tg_job_session_slide(tg_session *s, tg_job **job);
/* jobs.c: the head of a generation, of what the caller wants; the rest is zero. */
tg_status tg_job_generating(tg_session *session, const tg_generation *generation,
                            tg_generating *out);
/* Of g the head is set, as for tg_generating_begin. */
tg_status tg_job_session_generate(const tg_generating *g, tg_generate_stats *stats, tg_job **job);
tg_status tg_job_embedder_run(tg_embedder *e, const tg_embed_text *texts, size_t n, float *out,
                              tg_job **job);
tg_status tg_job_probe_run(tg_probe *p, const int32_t *tokens, const tg_edit *edits, size_t n_edits,
                           const tg_probe *donor, tg_job **job);

/* E_ARG while a job is pending on the object. */
tg_status tg_trainer_want_idle(const tg_trainer *t);
tg_status tg_session_want_idle(const tg_session *s);
tg_status tg_embedder_want_idle(const tg_embedder *e);
tg_status tg_probe_want_idle(const tg_probe *p);

#endif
