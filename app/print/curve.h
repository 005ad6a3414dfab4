/* SPDX-License-Identifier: Apache-2.0 */
/*
 * curve.h - a loss curve: in the terminal, drawn with braille dots, and as an SVG picture.
 *
 *    loss  train ⠤  validation o
 *    5.00 ┤⡇
 *         ┤⠱⡀
 *    2.50 ┤ ⠈⠢⣀o⣀⣀o⡀
 *         └┬────┬────┬
 *          0   500  1000
 */
#ifndef TG_APP_CURVE_H
#define TG_APP_CURVE_H

#include "print/term.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef struct tg_curve_point {
    double x, y;
} tg_curve_point;

/* Points are in ascending x. Those that are no finite numbers are left out. */
typedef struct tg_curve {
    const char *title; /* of the picture; any text */
    const tg_curve_point *train, *val;
    size_t n_train, n_val;
} tg_curve;

/*
 * Draws into width columns (at least 36) and rows rows of plot (at least 4), plus three lines of
 * legend and axis; dots in one column are averaged. Prints nothing and returns false when there are
 * fewer than two points of training or the memory for the plot is missing.
 */
bool tg_curve_draw(const tg_term *term, const tg_curve *curve, int width, int rows);

/* Writes the picture: training faint and, smoothed, strong; validation as dots; it follows the
 * viewer's dark or light theme. False if there is too little to draw; the caller checks ferror. */
bool tg_curve_svg(FILE *file, const tg_curve *curve);

/* Distance of axis ticks, 1, 2 or 5 times a power of ten, so that at most n fit into span > 0. */
double tg_curve_tick(double span, int n);

#endif
