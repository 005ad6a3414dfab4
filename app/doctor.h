/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor.h - findings of tinygpt doctor, and its examinations that need a training run.
 */
#ifndef TG_APP_DOCTOR_H
#define TG_APP_DOCTOR_H

#include "app.h"

typedef enum tg_mark { TG_MARK_OK, TG_MARK_WARN, TG_MARK_FAIL, TG_MARK_NOTE } tg_mark;

typedef struct tg_doctor {
    tg_app *app;
    tg_jout json;      /* open list of findings, under --json */
    char section[512]; /* of the findings that follow; a longer one is cut */
    size_t warnings, failures;
} tg_doctor;

void tg_doctor_section(tg_doctor *d, const char *title);

#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
void tg_doctor_find(tg_doctor *d, tg_mark mark, const char *format, ...);

/* A call that should have worked: its message as a failure. what says what it was for. */
void tg_doctor_failed(tg_doctor *d, tg_context *ctx, tg_status status, const char *what);

/* A tiny model learns; the number of threads changes no bit of it. */
void tg_doctor_training(tg_doctor *d);

/* A run saved into folder is found whole, goes on as if never stopped, and a flipped bit is seen.
 */
void tg_doctor_files(tg_doctor *d, const char *folder);

#endif
