/* Compressed bytes, as streams: gzip and zstd are read, zstd is written. The one place that knows
 * zlib and libzstd; a build without them says so when a file needs them. */
#ifndef WORKLOADS_IO_CODEC_H
#define WORKLOADS_IO_CODEC_H

#include <stdbool.h>
#include <stddef.h>

#include "allocators/base/status.h"

enum packing { PACKING_NONE, PACKING_GZIP, PACKING_ZSTD };

/* What the first bytes of a file say. */
enum packing packing_of(const void *bytes, size_t count);

struct unpacker;

/* MISSING where this build lacks the library. The caller closes it. */
enum ar_status unpacker_open(enum packing packing, struct unpacker **out,
                             struct ar_error *error) AR_STATUS_CHECKED;

/* Takes from `in`, of which it used `*used`, and gives `*got` bytes. `*inside`: a member or
 * frame has begun and not ended. FORMAT where the bytes are not what the packing writes. */
enum ar_status unpacker_step(struct unpacker *unpacker, const void *in, size_t in_bytes,
                             size_t *used, void *out, size_t room, size_t *got, bool *inside,
                             struct ar_error *error) AR_STATUS_CHECKED;
void unpacker_reset(struct unpacker *unpacker); /* to the start of a file; NULL is fine */
void unpacker_close(struct unpacker *unpacker); /* NULL is fine */

struct packer;

/* One zstd frame with a checksum. */
enum ar_status packer_open(struct packer **out, struct ar_error *error) AR_STATUS_CHECKED;

/* Takes from `in`, all of it where room is left in `out`; `*left` is 0 where nothing is held
 * back. `end` ends the frame. */
enum ar_status packer_step(struct packer *packer, const void *in, size_t in_bytes, size_t *used,
                           void *out, size_t room, size_t *got, bool end, size_t *left,
                           struct ar_error *error) AR_STATUS_CHECKED;
void packer_close(struct packer *packer); /* NULL is fine */

#endif
