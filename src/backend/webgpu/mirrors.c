/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mirrors.c - see mirrors.h.
 */
#include "backend/webgpu/mirrors.h"

/* Copied at once; a queue keeps what it was given in memory of its own. */
#define PIECE_BYTES ((size_t)32 << 20)

static size_t round_up(size_t bytes) {
    return (bytes + TG_GPU_ALIGN - 1) / TG_GPU_ALIGN * TG_GPU_ALIGN;
}

tg_status tg_bring_up(tg_mirrors *w, uint32_t buffer, size_t offset, const char *host,
                      size_t bytes) {
    for (size_t done = 0; done < bytes; done += PIECE_BYTES) {
        const size_t n = bytes - done < PIECE_BYTES ? bytes - done : PIECE_BYTES;
        TG_TRY(tg_gpu_write(w->gpu, buffer, offset + done, host + done, n));
    }
    return TG_OK;
}

tg_mirror *tg_mirrors_find(tg_mirrors *w, const void *host) {
    for (size_t i = 0; i < w->n; i++)
        if (w->list[i].buffer && w->list[i].host == host) return &w->list[i];
    return NULL;
}

/* A free entry of an array, which grows by one where there is none. */
static tg_status new_mirror(tg_mirrors *w, tg_mirror **out) {
    for (size_t i = 0; i < w->n; i++) {
        *out = &w->list[i];
        if (!(*out)->buffer) return TG_OK;
    }
    const size_t bytes = w->n * sizeof(tg_mirror);
    tg_mirror *m = tg_realloc(&w->ctx->mem, w->list, bytes, bytes + sizeof(tg_mirror));
    if (!m) return tg_fail_memory(w->ctx, "list of mirrors", bytes + sizeof(tg_mirror));
    w->list = m;
    *out = &m[w->n++];
    **out = (tg_mirror) { .buffer = 0 };
    return TG_OK;
}

/* The buffer goes with the last mirror in it. */
void tg_mirrors_free_one(tg_mirrors *w, tg_mirror *m) {
    const uint32_t buffer = m->buffer;
    *m = (tg_mirror) { .buffer = 0 };
    for (size_t i = 0; i < w->n; i++)
        if (w->list[i].buffer == buffer) return;
    tg_gpu_buffer_free(w->gpu, buffer);
}

static bool lacks_mirror(tg_mirrors *w, const tg_plan *plan, const bool *written, size_t i,
                         bool which) {
    const tg_mirror *m = written[i] == which ? tg_mirrors_find(w, plan->states[i].data) : NULL;
    TG_ASSERT(!m || m->bytes >= plan->states[i].bytes);
    return written[i] == which && !m;
}

/* A buffer for the states [begin, end) of those that a run writes, or of the others. */
static tg_status make_mirrors(tg_mirrors *w, const tg_plan *plan, const bool *written, bool which,
                              size_t begin, size_t end, size_t bytes) {
    uint32_t buffer;
    tg_mirror *m;
    TG_TRY(
        new_mirror(w, &m)); /* there is room for the first: from then on the list has the buffer */
    const tg_status made =
        tg_gpu_buffer_new(w->gpu, plan->states[begin].value->name, bytes, false, &buffer);
    w->refused = made == TG_E_MEMORY && bytes <= tg_gpu_get_info(w->gpu)->max_buffer_bytes;
    TG_TRY(made);
    for (size_t i = begin, at = 0; i < end; i++) {
        const tg_bound_state *s = &plan->states[i];
        if (!lacks_mirror(w, plan, written, i, which)) continue;
        TG_TRY(new_mirror(w, &m));
        *m = (tg_mirror) { .host = s->data,
                           .bytes = s->bytes,
                           .buffer = buffer,
                           .at = at,
                           .fresh = true,
                           .empty = true };
        at += round_up(s->bytes);
    }
    return TG_OK;
}

/* Those that a run writes lie apart from those that it reads alone: caches come and go while the
 * weights stay. One buffer may hold all that a binding reaches, so that a kernel can bind many
 * states at once. */
static tg_status reserve(tg_mirrors *w, const tg_plan *plan, const bool *written, bool which) {
    for (size_t begin = 0, end; begin < plan->n_states; begin = end) {
        size_t bytes = 0;
        for (end = begin; end < plan->n_states; end++) {
            if (!lacks_mirror(w, plan, written, end, which)) continue;
            const size_t more = round_up(plan->states[end].bytes);
            if (bytes > 0 && bytes + more > w->most_bytes) break;
            bytes += more;
        }
        if (bytes > 0) TG_TRY(make_mirrors(w, plan, written, which, begin, end, bytes));
    }
    return TG_OK;
}

/* The card had no memory for all: what was made now goes, and what would fit is said. has_weights:
 * what is only read did fit. */
static tg_status say_what_fits(tg_mirrors *w, const tg_plan *plan, const bool *written,
                               bool has_weights) {
    uint64_t bytes[2] = { 0 }, elems = 0, room = 0;
    for (size_t i = 0; i < plan->n_states; i++) {
        const tg_mirror *m = tg_mirrors_find(w, plan->states[i].data);
        bytes[written[i]] += plan->states[i].bytes;
        if (!written[i]) elems += tg_type_elems(&plan->states[i].value->type);
        if (m) room += m->bytes;
    }
    for (size_t i = 0; i < w->n; i++)
        if (w->list[i].buffer && w->list[i].empty) tg_mirrors_free_one(w, &w->list[i]);
    const char *const adapter = tg_gpu_get_info(w->gpu)->adapter;
    tg_ctx_clear(w->ctx); /* of the buffer that was refused */
    if (has_weights || elems == 0)
        return tg_fail(w->ctx, TG_E_MEMORY,
                       "GPU %s: want %" PRIu64 " bytes for what is only read and %" PRIu64
                       " for what a run writes (keys and values, moments), have room for %" PRIu64
                       " in all, and uploaded none: lower the context or the batch",
                       adapter, bytes[0], bytes[1], room);
    return tg_fail(w->ctx, TG_E_MEMORY,
                   "GPU %s: want %" PRIu64 " bytes for weights of %.1f bits each, have room for "
                   "%" PRIu64 " and uploaded none: take a smaller model, or weights of %.1f bits "
                   "(tinygpt convert --dtype)",
                   adapter, bytes[0], 8.0 * (double)bytes[0] / (double)elems, room,
                   8.0 * (double)room / (double)elems);
}

/* Memory for all comes first: what does not fit is said before anything is uploaded. A page learns
 * it later (settle of webgpu.c). */
tg_status tg_mirrors_reserve(tg_mirrors *w, const tg_plan *plan, const bool *written) {
    w->refused = false;
    tg_status s = reserve(w, plan, written, false);
    const bool has_weights = s == TG_OK;
    if (has_weights) s = reserve(w, plan, written, true);
    if (w->refused) return say_what_fits(w, plan, written, has_weights);
    TG_TRY(s);
    for (size_t i = 0; i < w->n; i++) {
        tg_mirror *m = &w->list[i];
        if (!m->buffer || !m->empty) continue;
        TG_TRY(tg_bring_up(w, m->buffer, m->at, m->host, m->bytes));
        m->empty = false;
    }
    return TG_OK;
}

/* The part of a mirror that [p, p + bytes) meets, as offsets in it. */
static bool part_of(const tg_mirror *m, const void *p, size_t bytes, size_t *begin, size_t *end) {
    if (!m->buffer || !tg_bytes_meet(m->host, m->bytes, p, bytes)) return false;
    const uintptr_t host = (uintptr_t)m->host, from = (uintptr_t)p;
    *begin = from > host ? from - host : 0;
    *end = from + bytes < host + m->bytes ? from + bytes - host : m->bytes;
    return true;
}

tg_status tg_bring_down(tg_mirrors *w, tg_descent *d, unsigned version, uint32_t buffer,
                        size_t offset, char *host, size_t bytes) {
    if (d->host != host || d->bytes != bytes || d->version != version)
        *d = (tg_descent) { .host = host, .bytes = bytes, .version = version };
    while (d->done < bytes) {
        const size_t n = bytes - d->done < PIECE_BYTES ? bytes - d->done : PIECE_BYTES;
        tg_gpu_piece piece[2] = { { buffer, offset + d->done, n, host + d->done } };
        if (!d->reading)
            TG_TRY(tg_submit_check_read_begin(w->submits, piece, 1, &d->mark, &d->reading));
        const tg_status s = tg_submit_check_read_end(w->submits, d->reading, piece, 1, &d->mark);
        if (s == TG_PENDING) return s;
        d->reading = 0;
        TG_TRY(s);
        d->done += n;
    }
    *d = (tg_descent) { .host = NULL };
    return TG_OK;
}

tg_status tg_mirrors_fetch(tg_mirrors *w, const void *p, size_t bytes) {
    size_t begin, end;
    for (size_t i = 0; i < w->n; i++) {
        tg_mirror *m = &w->list[i];
        if (!part_of(m, p, bytes, &begin, &end) || m->held == m->version) continue;
        const tg_gpu_piece all = { .bytes = end - begin, .host = m->host + begin };
        const bool something = !tg_gpu_is_zero(&all, 1);
        TG_TRY(tg_bring_down(w, &m->down, m->version, m->buffer, m->at + begin, m->host + begin,
                             end - begin));
        if (end - begin < m->bytes) continue;
        if (something) TG_TRY(tg_gpu_want_something(w->ctx, w->gpu, &all, 1));
        m->held = m->version;
    }
    return TG_OK;
}

tg_status tg_mirrors_touched(tg_mirrors *w, const void *p, size_t bytes) {
    size_t begin, end;
    for (size_t i = 0; i < w->n; i++) {
        tg_mirror *m = &w->list[i];
        if (!part_of(m, p, bytes, &begin, &end)) continue;
        const bool held = m->held == m->version;
        m->version++;
        if (held) m->held = m->version;
        TG_TRY(tg_bring_up(w, m->buffer, m->at + begin, m->host + begin, end - begin));
    }
    return TG_OK;
}
