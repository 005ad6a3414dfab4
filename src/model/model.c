/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model.c - the lists of families and presets, and what is common to all of them.
 */
#include "model/model.h"

#define TG_FAMILY(symbol) extern const tg_family tg_family_##symbol;
#include "model/models.def"
#undef TG_FAMILY

const tg_family *const tg_families[] = {
#define TG_FAMILY(symbol) &tg_family_##symbol,
#include "model/models.def"
#undef TG_FAMILY
};
const size_t tg_n_families = sizeof tg_families / sizeof tg_families[0];

const tg_family *tg_family_find(const char *name) {
    for (size_t i = 0; i < tg_n_families; i++)
        if (strcmp(tg_families[i]->name, name) == 0) return tg_families[i];
    return NULL;
}

static const tg_preset presets[] = {
#define TG_PRESET(id, L, C, H, T, B, S, text) { #id, { L, C, H, T, 256, 4 * (C) }, B, S, text },
#include "model/presets.def"
#undef TG_PRESET
};

size_t tg_preset_count(void) { return sizeof presets / sizeof presets[0]; }

const tg_preset *tg_preset_at(size_t i) { return i < tg_preset_count() ? &presets[i] : NULL; }

const tg_preset *tg_preset_find(const char *name) {
    for (size_t i = 0; name && i < tg_preset_count(); i++)
        if (strcmp(presets[i].name, name) == 0) return &presets[i];
    return NULL;
}

int32_t tg_default_heads(int32_t width) {
    for (size_t i = 0; i < tg_preset_count(); i++)
        if (presets[i].config.width == width) return presets[i].config.heads;
    if (width % 32 == 0) return width / 32;
    return width % 3 == 0 ? 3 : 1;
}

tg_value *tg_param_view(tg_graph *g, const tg_layout *layout, tg_value *flat, const char *name) {
    for (size_t i = 0; i < layout->n_params; i++) {
        const tg_param *p = &layout->params[i];
        if (strcmp(p->name, name) == 0) return tg_view(g, flat, p->offset_elems, p->type, name);
    }
    tg_graph_fail(g, NULL, TG_E_INTERNAL, "there is no parameter %s", name);
    return &g->poison;
}
