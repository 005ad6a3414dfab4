/* SPDX-License-Identifier: Apache-2.0 */
/*
 * folder.h - the files that make up a model: those of a folder, or of a zip file.
 *
 *     zip   | member | member | .. | directory | end |
 *
 *     member     "PK" 3 4    26 name, extra lengths u16    30 name, extra, data
 *     directory  "PK" 1 2    8 flags u16   10 method u16 (0 as it is, 8 deflate)   16 CRC-32
 *                            20 packed u32   24 bytes u32   28 name, extra, comment lengths u16
 *                            42 offset u32   46 name, ..
 *     end        "PK" 5 6    10 members u16   12 directory bytes u32   16 its offset u32
 *                            20 comment length u16
 *
 * Zip64 and encryption are refused by name. A member that is packed is unpacked into memory, as is
 * one that is no tensors, and its CRC is compared; tensors that are stored are read where they lie,
 * and compared by whoever reads all of them (tg_folder_check).
 */
#ifndef TG_IO_FOLDER_H
#define TG_IO_FOLDER_H

#include "io/reader.h"

typedef struct tg_folder_member {
    const char *name; /* without the folder that all of them are in */
    uint64_t offset, packed_bytes, bytes;
    uint32_t crc;
    uint16_t method;
} tg_folder_member;

typedef struct tg_folder {
    tg_ctx *ctx;
    const char *path;
    tg_arena arena;
    tg_reader zip; /* closed: it is a folder */
    tg_folder_member *members;
    size_t n_members;
    uint32_t crc_table[8][256];  /* of a zip file */
    struct tg_folder_open *open; /* what is to be closed */
} tg_folder;

/* Is it the beginning of a zip file? */
bool tg_zip_probe(const uint8_t *first, size_t n_bytes);

/* path is borrowed until close. On failure *out is closed. */
tg_status tg_folder_open(tg_ctx *ctx, const char *path, tg_folder *out);
/* A zip file in memory, borrowed until close. */
tg_status tg_folder_open_memory(tg_ctx *ctx, const char *name, const void *bytes, size_t n_bytes,
                                tg_folder *out);
void tg_folder_close(tg_folder *f);

bool tg_folder_has(const tg_folder *f, const char *name);
/* A file of the folder. Its reader lives as long as the folder, and must not be closed. */
tg_status tg_folder_file(tg_folder *f, const char *name, tg_reader *out);

/* Of a zip file, in slices (TG_PENDING: call again): do all members have the CRC that the directory
 * says? TG_E_CHECKSUM names the first that has not. A folder has nothing to compare with: TG_OK.
 * Zero-initialised it has not begun; a deadline of 0 is none. */
typedef struct tg_folder_checking {
    size_t member;
    uint64_t done; /* bytes of it */
    uint32_t crc;  /* of these */
    bool tensors;  /* those that are stored alone: all else is compared as it is opened */
} tg_folder_checking;
tg_status tg_folder_check(const tg_folder *f, tg_folder_checking *c, double deadline_ms);

#endif
