/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_split.c - models that are split over GGUF files: names, counts and numbers that contradict
 * each other.
 *
 *     name \n, then the metadata of up to three files, each 5 bytes: what is there (bits),
 * split.no, split.count (i16), split.tensors.count
 *
 * The files are made here, small and right but for these numbers; a tensor each, of names that
 * meet if a bit says so. What opens has all tensors, each readable. A file may claim a thousand
 * others, whose places take a megabyte before the first of them is missed.
 */
#include "fuzz.h"

#include "io/gguf/gguf.h"

enum { FILES = 3, FILE_BYTES = 512 };

static size_t put_text(uint8_t *at, const char *text) {
    tg_put_u64(at, strlen(text));
    memcpy(at + 8, text, strlen(text));
    return 8 + strlen(text);
}

static size_t put_key(uint8_t *at, const char *key, uint32_t value) {
    const size_t n = put_text(at, key);
    tg_put_u32(at + n, TG_GGUF_U32);
    tg_put_u32(at + n + 4, value);
    return n + 8;
}

static size_t make_file(uint8_t out[FILE_BYTES], const uint8_t say[5], size_t number) {
    char name[] = "tensor0";
    memset(out, 0, FILE_BYTES);
    memcpy(out, "GGUF", 4);
    tg_put_u32(out + 4, 3);
    tg_put_u64(out + 8, 1);
    size_t n = 24, keys = 0;
    if (say[0] & 1) n += put_key(out + n, "split.no", say[1]), keys++;
    if (say[0] & 2) n += put_key(out + n, "split.count", tg_get_u16(say + 2)), keys++;
    if (say[0] & 4) n += put_key(out + n, "split.tensors.count", say[4]), keys++;
    tg_put_u64(out + 16, keys);
    if (!(say[0] & 8)) name[6] = (char)('0' + number);
    n += put_text(out + n, name);
    tg_put_u32(out + n, 1);
    tg_put_u64(out + n + 4, 4);
    n += 4 + 8 + 4 + 8; /* f32, at 0 */
    n += (32 - n % 32) % 32;
    return say[0] & 16 ? n + 8 : n + 16; /* the data is cut off */
}

static void fuzz_one(const uint8_t *data, size_t n) {
    char path[FUZZ_PATH_BYTES], paths[FILES][FUZZ_PATH_BYTES], name[100] = { 0 };
    uint8_t bytes[FILE_BYTES];
    tg_ctx ctx;
    meter m;
    tg_gguf g;
    const uint8_t *end = memchr(data, '\n', n < 80 ? n : 80);
    if (!end) return;
    memcpy(name, data, (size_t)(end - data));
    for (char *c = name; *c; c++)
        if (*c == '/') *c = '_';
    if (!name[0] || name[0] == '.') return;
    n -= (size_t)(end + 1 - data);
    data = end + 1;
    /* The files are those that the first one's name leads to, whatever else it says. */
    const size_t n_name = strlen(name);
    size_t made = 0;
    for (size_t i = 0; i < FILES && n >= 5; i++, data += 5, n -= 5) {
        const size_t tail = 20;
        if (i > 0 && n_name > tail) {
            char other[128];
            snprintf(other, sizeof other, "%.*s-%05d%s", (int)(n_name - tail), name, (int)i + 1,
                     name + n_name - tail + 6);
            fuzz_path(paths[i], other);
        } else if (i == 0) {
            fuzz_path(paths[i], name);
        } else {
            break;
        }
        fuzz_file(paths[i], bytes, make_file(bytes, data, i));
        made++;
    }
    fuzz_path(path, name);
    fuzz_begin(&ctx, &m, made * FILE_BYTES, 40, 1 << 21);
    if (fuzz_ok(&ctx, tg_gguf_open(&ctx, path, &g))) {
        PROMISE(g.n_files >= 1 && g.n_tensors == g.n_files);
        for (size_t i = 0; i < g.n_tensors; i++) {
            uint8_t row[16];
            fuzz_ok(&ctx, tg_gguf_read_rows(&g, &g.tensors[i], 0, 1, row));
        }
        tg_gguf_close(&g);
    }
    PROMISE(m.live_bytes == 0);
    for (size_t i = 0; i < made; i++) remove(paths[i]);
}
