/*
 * file_table.c - the tensors of a file: found by name, and held against what a configuration needs.
 *
 * A table comes out of a file in any order. What leaves here is in the order of the manifest, all
 * weights, then all first moments, then all second ones, and is complete: nobody above has to ask
 * whether a tensor is there or has its shape.
 */
#include "io/file.h"

/* ---------------------------------------------------------------------------------------- order */

/*
 * Names are sorted through an array of numbers, since the table keeps the order of the file.
 * Heapsort: no recursion, no extra memory, and no choice of names makes it slow, as it would a
 * hash table or quicksort. The names come from a file, so somebody may have chosen them.
 *
 * Here the children of place i are 2i+1 and 2i+2, and every parent is at or above its children,
 * except perhaps `root`, which sinks to where it belongs.
 */
static void sift_down(const tg_file_tensor *table, uint32_t *order, size_t root, size_t n) {
    for (;;) {
        size_t child = 2 * root + 1;
        if (child >= n) {
            return;
        }
        if (child + 1 < n && strcmp(table[order[child]].name, table[order[child + 1]].name) < 0) {
            child++;
        }
        if (strcmp(table[order[root]].name, table[order[child]].name) >= 0) {
            return;
        }
        const uint32_t swap = order[root];
        order[root] = order[child];
        order[child] = swap;
        root = child;
    }
}

/* Builds the heap from its last parent upwards; then the largest goes behind the rest, n times. */
static void sort_by_name(const tg_file_tensor *table, uint32_t *order, size_t n) {
    for (size_t i = 0; i < n; i++) {
        order[i] = (uint32_t)i;
    }
    for (size_t i = n / 2; i-- > 0;) {
        sift_down(table, order, i, n);
    }
    for (size_t left = n; left > 1; left--) {
        const uint32_t largest = order[0];
        order[0] = order[left - 1];
        order[left - 1] = largest;
        sift_down(table, order, 0, left - 1);
    }
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

/*
 * All that is wrong with a table, for one message: the first ones by name, the rest by number.
 * One error that lists ten missing tensors says "another architecture"; the first of ten errors
 * would say "a broken file".
 */
typedef struct complaints {
    char text[640];
    size_t length, n, n_left_out;
} complaints;

/* Takes what fits whole; a line that was cut could name a tensor that does not exist. */
TG_PRINTF(2, 3) static void complain(complaints *c, const char *format, ...) {
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
                                   complaints *c) {
    char name[160]; /* manifest names have at most 40 bytes */
    snprintf(name, sizeof name, "%s%s", prefix, want->name);
    const tg_file_tensor *have = find_in(table, order, n, name);
    if (!have) {
        complain(c, "%s is missing", name);
        return NULL;
    }
    if (!same_shape(want, have)) {
        char wanted[TG_SHAPE_BYTES], found[TG_SHAPE_BYTES];
        complain(c, "%s: want %s, have %s", name,
                 tg_file_shape_text((uint32_t)want->n_dims, want->dim, wanted),
                 tg_file_shape_text(have->n_dims, have->dim, found));
    }
    if (*prefix && have->dtype != TG_FILE_F32) {
        complain(c, "%s: want f32, have %s", name, tg_file_dtype_name(have->dtype));
    }
    return have;
}

static bool is_moment(const char *name) {
    return strncmp(name, TG_ADAM_M, strlen(TG_ADAM_M)) == 0 ||
           strncmp(name, TG_ADAM_V, strlen(TG_ADAM_V)) == 0;
}

/* Names in the table that stand next to each other once sorted, and are equal. */
static void find_doubles(const tg_file_tensor *table, const uint32_t *order, size_t n,
                         complaints *c) {
    for (size_t i = 1; i < n; i++) {
        if (strcmp(table[order[i - 1]].name, table[order[i]].name) == 0) {
            complain(c, "%s is there twice", table[order[i]].name);
        }
    }
}

/* Names in the table that the manifest does not know: those that were not taken over. */
static void find_strangers(const tg_file_tensor *table, size_t n, const tg_file_tensor *taken,
                           const uint32_t *taken_order, size_t n_taken, complaints *c) {
    for (size_t i = 0; i < n; i++) {
        if (!find_in(taken, taken_order, n_taken, table[i].name)) {
            complain(c, "%s is not wanted", table[i].name);
        }
    }
}

static tg_status report(const tg_file *file, const complaints *c) {
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

/*
 * One moment is enough to say that the file means to hold them: then all of them are wanted, since
 * a run that resumes with half of its moments is a worse answer than an error.
 */
tg_status tg_file_set_tensors(tg_file *file, const tg_file_tensor *table, size_t n) {
    static const char *const prefixes[] = { "", TG_ADAM_M, TG_ADAM_V };
    const size_t n_weights = file->manifest.n;
    bool has_moments = false;
    for (size_t i = 0; i < n && !has_moments; i++) {
        has_moments = is_moment(table[i].name);
    }
    const size_t n_wanted = has_moments ? 3 * n_weights : n_weights;
    uint32_t *order = tg_arena_array(&file->arena, n, sizeof *order);
    uint32_t *by_name = tg_arena_array(&file->arena, n_wanted, sizeof *by_name);
    tg_file_tensor *tensor = tg_arena_array(&file->arena, n_wanted, sizeof *tensor);
    if (!order || !by_name || !tensor) {
        return tg_fail_memory(file->ctx, "table of tensors", n_wanted * sizeof *tensor);
    }

    complaints c = { .n = 0 };
    sort_by_name(table, order, n);
    find_doubles(table, order, n, &c);
    size_t n_found =
        0; /* what is missing leaves no hole: the list is only kept if it is complete */
    for (size_t i = 0; i < n_wanted; i++) {
        const tg_file_tensor *have = match(table, order, n, prefixes[i / n_weights],
                                           &file->manifest.entry[i % n_weights], &c);
        if (have) {
            tensor[n_found++] = *have;
        }
    }
    sort_by_name(tensor, by_name, n_found);
    find_strangers(table, n, tensor, by_name, n_found, &c);
    TG_TRY(report(file, &c));

    file->tensor = tensor;
    file->by_name = by_name;
    file->n_tensors = n_wanted;
    file->has_moments = has_moments;
    file->dtype = tensor[0].dtype;
    return TG_OK;
}
