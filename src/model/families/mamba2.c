/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mamba2.c - the sizes of Mamba2 out of files and into them.
 */
#include "model/families/mamba2.h"

#include "ops/build.h"

tg_status tg_mamba2_config(const tg_gguf *g, tg_model_config *c, int32_t most_groups) {
    int32_t inner = 0;
    TG_TRY(tg_config_want_int(g, c, "ssm.conv_kernel", TG_CONV_TAPS_MAX, &c->conv_taps));
    TG_TRY(tg_config_want_int(g, c, "ssm.time_step_rank", 4096, &c->ssm_heads));
    TG_TRY(tg_config_want_int(g, c, "ssm.inner_size", 1 << 20, &inner));
    TG_TRY(tg_config_want_int(g, c, "ssm.state_size", 1024, &c->ssm_state));
    TG_TRY(tg_config_want_int(g, c, "ssm.group_count", 4096, &c->ssm_groups));
    c->ssm_head_size = inner / c->ssm_heads;
    if (inner % c->ssm_heads == 0 && c->ssm_head_size >= 1 && c->ssm_head_size <= 1024 &&
        c->ssm_groups <= most_groups && c->ssm_heads % c->ssm_groups == 0 && c->conv_taps > 1)
        return TG_OK;
    return tg_fail(g->ctx, TG_E_UNSUPPORTED,
                   "%s: ssm: want an inner_size of whole heads of 1..1024, up to %d groups that "
                   "divide them, and 2 taps or more, have %d of %d heads, %d groups and %d taps",
                   g->path, (int)most_groups, (int)inner, (int)c->ssm_heads, (int)c->ssm_groups,
                   (int)c->conv_taps);
}

void tg_mamba2_complete(tg_model_config *c) {
    if (c->ssm_groups == 0) c->ssm_groups = 1;
    tg_config_complete_states(c, 32);
    if (c->ssm_state == 0) c->ssm_state = c->width < 512 ? 32 : 128;
}

/* Steps are at least 0 and have no limit: a list whose second value is no number. transformers
 * writes infinity, for which JSON has no number, as {"__float__": "Infinity"}. */
tg_status tg_mamba2_want_no_limit(tg_hf_values *m) {
    const tg_json *limit = tg_hf_member(m, m->root, "time_step_limit");
    const tg_json *low = limit ? tg_json_first(limit) : NULL;
    double zero = -1;
    if (!limit || (tg_json_kind(limit) == TG_JSON_ARRAY && limit->count == 2 &&
                   tg_json_double(NULL, low, &zero) == TG_OK && zero == 0 &&
                   tg_json_kind(tg_json_next(low)) != TG_JSON_NUMBER))
        return TG_OK;
    return tg_fail(m->g->ctx, TG_E_UNSUPPORTED, "%s: time_step_limit: want none, have others",
                   m->where);
}

/* A head's size may be "auto". */
tg_status tg_mamba2_read(tg_hf_values *m, int64_t inner) {
    int64_t heads = 0, head = 0;
    TG_TRY(tg_mamba2_want_no_limit(m));
    TG_TRY(tg_hf_get_int(m, m->root, "mamba_n_heads", &heads));
    const tg_json *said = tg_hf_member(m, m->root, "mamba_d_head");
    if (said && !tg_json_is(said, "auto")) TG_TRY(tg_hf_get_int(m, m->root, "mamba_d_head", &head));
    if (inner > 1 << 20 || heads > 4096 || head > 1024 || (head > 0 && head * heads != inner))
        return tg_fail(m->g->ctx, TG_E_FORMAT,
                       "%s: mamba_d_head: want heads of %" PRId64 " columns in all, have %" PRId64
                       " of %" PRId64,
                       m->where, inner, heads, head);
    tg_hf_put_int(m, "ssm.inner_size", inner);
    return TG_OK;
}

/* Whoever has no such keys has no config.json of these families, so there is nothing to say. */
void tg_mamba2_write(tg_json_writer *w, const tg_gguf *g, const char *arch) {
    char key[64];
    snprintf(key, sizeof key, "%s.ssm.inner_size", arch);
    const tg_gguf_value *inner = tg_gguf_find(g, key);
    snprintf(key, sizeof key, "%s.ssm.time_step_rank", arch);
    const tg_gguf_value *heads = tg_gguf_find(g, key);
    if (!inner || !heads || heads->whole < 1) return;
    tg_json_key(w, "mamba_d_head");
    tg_json_put_int(w, inner->whole / heads->whole);
}
