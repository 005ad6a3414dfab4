/* SPDX-License-Identifier: Apache-2.0 */
/*
 * surprise.h - what the op and a validation share: -log(sigmoid(margin)), in double.
 */
#ifndef TG_OPS_SURPRISE_H
#define TG_OPS_SURPRISE_H

#include "base/math.h"

/* Of a margin far to either side, too: exp of what is positive is never asked for. */
static inline double tg_preference_loss(double margin) {
    return margin < 0 ? tg_log1p(tg_exp(margin)) - margin : tg_log1p(tg_exp(-margin));
}

#endif
