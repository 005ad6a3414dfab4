/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_table.c - the tensors of a file: found by name, and held against what a configuration needs.
 *
 * A table comes out of a file in any order. What leaves here is in the order of the manifest, all
 * weights, then all first moments, then all second ones, and is complete: nobody above has to ask
 * whether a tensor is there or has its shape.
 */
#include "io/run/file.h"

#include "base/sort.h"

/* ---------------------------------------------------------------------------------------- order */

/* Names are sorted through an array of numbers, since the table keeps the order of the file. They
 * come from a file, so somebody may have chosen them. */
static bool name_before(const void *user, uint32_t a, uint32_t b) {
    const tg_file_tensor *table = user;
    return strcmp(table[a].name, table[b].name) < 0;
}

static void sort_by_name(const tg_file_tensor *table, uint32_t *order, size_t n) {
    tg_sort_numbers(order, n, name_before, table);
}

/* Binary search. Of several equal names any one is found; they are complained about elsewhere. */
static const tg_file_tensor *find_in(const tg_file_tensor *table, const uint32_t *order, size_t n,
                                     const char *name) {
    size_t low = 0, high = n; /* the place is in [low, high) */
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int compared = strcmp(name, table[order[middle]].name);
        if (compared == 0) {
            return &table[order[middle]];
        }
        if (compared < 0) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return NULL;
}

const tg_file_tensor *tg_file_find(const tg_file *file, const char *name) {
    return find_in(file->tensor, file->by_name, file->n_tensors, name);
}

/* ------------------------------------------------------------------------------------- matching */

/* Takes what fits whole; a line that was cut could name a tensor that does not exist. */
void tg_complain(tg_complaints *c, const char *format, ...) {
    va_list args;
    va_start(args, format);
    char line[192];
    const int length = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    c->n++;
    if (length < 0 || (size_t)length >= sizeof line ||
        c->length + (size_t)length + 3 > sizeof c->text) {
        c->n_left_out++;
        return;
    }
    c->length += (size_t)snprintf(c->text + c->length, sizeof c->text - c->length, "%s%s",
                                  c->length ? "; " : "", line);
}

tg_status tg_complaints_status(const tg_file *file, const tg_complaints *c) {
    if (c->n == 0) {
        return TG_OK;
    }
    char more[32] = "";
    if (c->n_left_out) {
        snprintf(more, sizeof more, "; and %zu more", c->n_left_out);
    }
    return tg_fail(file->ctx, TG_E_FORMAT, "%s: tensors do not fit the configuration: %s%s",
                   file->path, c->text, more);
}

/* Unused dimensions of have are 1 and of want do not exist: only the used ones are compared. */
static bool same_shape(const tg_manifest_entry *want, const tg_file_tensor *have) {
    bool same = have->n_dims == (uint32_t)want->n_dims;
    for (int i = 0; same && i < want->n_dims; i++) {
        same = have->dim[i] == want->dim[i];
    }
    return same;
}

/*
 * What the table must hold under this name: looks, compares, and complains. NULL if it is missing.
 * Moments have to be f32: a run continues from their bits, and every narrower type has lost some.
 */
static const tg_file_tensor *match(const tg_file_tensor *table, const uint32_t *order, size_t n,
                                   const char *prefix, const tg_manifest_entry *want,
                                   tg_complaints *c) {
    char name[160]; /* manifest names have at most 40 bytes */
    snprintf(name, sizeof name, "%s%s", prefix, want->name);
    const tg_file_tensor *have = find_in(table, order, n, name);
    if (!have) {
        tg_complain(c, "%s is missing", name);
        return NULL;
    }
    if (!same_shape(want, have)) {
        char wanted[TG_SHAPE_BYTES], found[TG_SHAPE_BYTES];
        tg_complain(c, "%s: want %s, have %s", name,
                    tg_file_shape_text((uint32_t)want->n_dims, want->dim, wanted),
                    tg_file_shape_text(have->n_dims, have->dim, found));
    }
    if (*prefix && have->dtype != TG_FILE_F32) {
        tg_complain(c, "%s: want f32, have %s", name, tg_file_dtype_name(have->dtype));
    }
    return have;
}

const char *const tg_part_prefix[TG_PARTS] = { "", TG_ADAM_M, TG_ADAM_V, TG_RAW };

/* The number of its prefix; 0: a weight. */
static size_t part_of(const char *name) {
    size_t part = TG_PARTS - 1;
    while (strncmp(name, tg_part_prefix[part], strlen(tg_part_prefix[part])) != 0) part--;
    return part;
}

tg_status tg_file_set_own_table(tg_file *file, const tg_model_config *config,
                                const tg_file_tensor *table, size_t n) {
    tg_manifest *m = &file->manifest;
    tg_manifest_entry *entry = tg_arena_array(&file->arena, n, sizeof *entry);
    if (!entry) return tg_fail_memory(file->ctx, "manifest", n * sizeof *entry);
    *m = (tg_manifest) { .entry = entry };
    for (size_t i = 0; i < n; i++) {
        if (part_of(table[i].name)) continue;
        if (table[i].n_dims < 1 || table[i].n_dims > 2)
            return tg_fail(file->ctx, TG_E_FORMAT, "%s: tensor %s: want 1 or 2 dimensions, have %u",
                           file->path, table[i].name, (unsigned)table[i].n_dims);
        entry[m->n++] = (tg_manifest_entry) { .name = table[i].name,
                                              .n_dims = (int)table[i].n_dims,
                                              .dim = { table[i].dim[0], table[i].dim[1] },
                                              .elems = table[i].elems,
                                              .first_elem = m->elems };
        m->elems += table[i].elems;
    }
    if (m->n == 0)
        return tg_fail(file->ctx, TG_E_FORMAT, "%s: want tensors, have none", file->path);
    file->config = *config;
    return TG_OK;
}

/* Names in the table that stand next to each other once sorted, and are equal. */
static void find_doubles(const tg_file_tensor *table, const uint32_t *order, size_t n,
                         tg_complaints *c) {
    for (size_t i = 1; i < n; i++) {
        if (strcmp(table[order[i - 1]].name, table[order[i]].name) == 0) {
            tg_complain(c, "%s is there twice", table[order[i]].name);
        }
    }
}

/* Names in the table that the manifest does not know: those that were not taken over. */
static void find_strangers(const tg_file_tensor *table, size_t n, const tg_file_tensor *taken,
                           const uint32_t *taken_order, size_t n_taken, tg_complaints *c) {
    for (size_t i = 0; i < n; i++) {
        if (!find_in(taken, taken_order, n_taken, table[i].name)) {
            tg_complain(c, "%s is not wanted", table[i].name);
        }
    }
}

/*
 * One moment is enough to say that the file means to hold them: then all of them are wanted, since
 * a run that resumes with half of its moments is a worse answer than an error. So it is with what
 * is trained beside an average.
 */
tg_status tg_file_set_tensors(tg_file *file, const tg_file_tensor *table, size_t n) {
    const size_t n_weights = file->manifest.n;
    size_t last = 0;
    for (size_t i = 0; i < n; i++) {
        const size_t part = part_of(table[i].name);
        if (part > last) last = part;
    }
    const size_t n_parts = last == TG_PARTS - 1 ? TG_PARTS : last ? 3 : 1;
    const size_t n_wanted = n_parts * n_weights;
    uint32_t *order = tg_arena_array(&file->arena, n, sizeof *order);
    uint32_t *by_name = tg_arena_array(&file->arena, n_wanted, sizeof *by_name);
    tg_file_tensor *tensor = tg_arena_array(&file->arena, n_wanted, sizeof *tensor);
    if (!order || !by_name || !tensor) {
        return tg_fail_memory(file->ctx, "table of tensors", n_wanted * sizeof *tensor);
    }

    tg_complaints c = { .n = 0 };
    sort_by_name(table, order, n);
    find_doubles(table, order, n, &c);
    size_t n_found =
        0; /* what is missing leaves no hole: the list is only kept if it is complete */
    for (size_t i = 0; i < n_wanted; i++) {
        const tg_file_tensor *have = match(table, order, n, tg_part_prefix[i / n_weights],
                                           &file->manifest.entry[i % n_weights], &c);
        if (have) {
            tensor[n_found++] = *have;
        }
    }
    sort_by_name(tensor, by_name, n_found);
    find_strangers(table, n, tensor, by_name, n_found, &c);
    TG_TRY(tg_complaints_status(file, &c));

    file->tensor = tensor;
    file->by_name = by_name;
    file->n_tensors = n_wanted;
    file->has_moments = n_parts > 1;
    file->has_raw = n_parts == TG_PARTS;
    file->dtype = tensor[0].dtype;
    return TG_OK;
}
