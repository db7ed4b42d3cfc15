/* Compressed bytes, as streams, over zlib and libzstd. Several gzip members or zstd frames, one
 * behind the other, are one stream. */
#include "workloads/io/codec.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#ifndef HAVE_ZLIB
#define HAVE_ZLIB 1
#endif
#ifndef HAVE_ZSTD
#define HAVE_ZSTD 1
#endif
#if HAVE_ZLIB
#include <zlib.h>
#endif
#if HAVE_ZSTD
#include <zstd.h>
#endif

enum { LEVEL = 6 };

enum packing packing_of(const void *bytes, size_t count)
{
    if (count >= 2 && !memcmp(bytes, "\x1f\x8b", 2))
        return PACKING_GZIP;
    if (count >= 4 && !memcmp(bytes, "\x28\xb5\x2f\xfd", 4))
        return PACKING_ZSTD;
    return PACKING_NONE;
}

struct unpacker {
    enum packing packing;
#if HAVE_ZLIB
    z_stream gzip;
#endif
#if HAVE_ZSTD
    ZSTD_DStream *zstd;
#endif
};

/* Each unused where all libraries are there, or none. */
__attribute__((unused)) static enum ar_status missing(const char *library, const char *form,
                                                      struct ar_error *error)
{
    return ar_error_set(error, AR_MISSING,
                        "this build has no %s, which %s needs: install its development package "
                        "(`make deps`) and build again",
                        library, form);
}

__attribute__((unused)) static enum ar_status broken(const char *form, const char *why,
                                                     struct ar_error *error)
{
    return ar_error_set(error, AR_FORMAT,
                        "its %s compression is broken (%s): copy the file or make it again", form,
                        why);
}

/* gzip */

#if HAVE_ZLIB
static enum ar_status open_gzip(struct unpacker *self, struct ar_error *error)
{
    if (inflateInit2(&self->gzip, 15 + 16) != Z_OK)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory to read gzip");
    return AR_OK;
}

static enum ar_status step_gzip(struct unpacker *self, const void *in, size_t in_bytes,
                                size_t *used, void *out, size_t room, size_t *got, bool *inside,
                                struct ar_error *error)
{
    self->gzip.next_in = (z_const Bytef *)in;
    self->gzip.avail_in = (unsigned)(in_bytes < INT_MAX ? in_bytes : INT_MAX);
    self->gzip.next_out = out;
    self->gzip.avail_out = (unsigned)(room < INT_MAX ? room : INT_MAX);
    int result = inflate(&self->gzip, Z_NO_FLUSH);
    *used = (size_t)((const char *)self->gzip.next_in - (const char *)in);
    *got = (size_t)((char *)self->gzip.next_out - (char *)out);
    *inside = result != Z_STREAM_END;
    if (result == Z_STREAM_END)
        (void)inflateReset(&self->gzip);
    else if (result != Z_OK && result != Z_BUF_ERROR)
        return broken("gzip", self->gzip.msg ? self->gzip.msg : "not what gzip writes", error);
    return AR_OK;
}
#else
static enum ar_status open_gzip(struct unpacker *self, struct ar_error *error)
{
    (void)self;
    return missing("zlib", "a gzip file", error);
}
#endif

/* zstd */

#if HAVE_ZSTD
static enum ar_status open_zstd(struct unpacker *self, struct ar_error *error)
{
    self->zstd = ZSTD_createDStream();
    if (!self->zstd)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory to read zstd");
    return AR_OK;
}

static enum ar_status step_zstd(struct unpacker *self, const void *in, size_t in_bytes,
                                size_t *used, void *out, size_t room, size_t *got, bool *inside,
                                struct ar_error *error)
{
    ZSTD_inBuffer from = {in, in_bytes, 0};
    ZSTD_outBuffer to = {out, room, 0};
    size_t result = ZSTD_decompressStream(self->zstd, &to, &from);
    *used = from.pos;
    *got = to.pos;
    *inside = result != 0;
    if (ZSTD_isError(result))
        return broken("zstd", ZSTD_getErrorName(result), error);
    return AR_OK;
}
#else
static enum ar_status open_zstd(struct unpacker *self, struct ar_error *error)
{
    (void)self;
    return missing("zstd", "a zstd file", error);
}
#endif

enum ar_status unpacker_open(enum packing packing, struct unpacker **out, struct ar_error *error)
{
    struct unpacker *self = calloc(1, sizeof *self);
    if (!self)
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory to read a compressed file");
    enum ar_status status =
        packing == PACKING_GZIP ? open_gzip(self, error) : open_zstd(self, error);
    if (status) {
        free(self);
        return status;
    }
    self->packing = packing;
    *out = self;
    return AR_OK;
}

enum ar_status unpacker_step(struct unpacker *unpacker, const void *in, size_t in_bytes,
                             size_t *used, void *out, size_t room, size_t *got, bool *inside,
                             struct ar_error *error)
{
#if HAVE_ZLIB
    if (unpacker->packing == PACKING_GZIP)
        return step_gzip(unpacker, in, in_bytes, used, out, room, got, inside, error);
#endif
#if HAVE_ZSTD
    if (unpacker->packing == PACKING_ZSTD)
        return step_zstd(unpacker, in, in_bytes, used, out, room, got, inside, error);
#endif
    (void)in, (void)in_bytes, (void)used, (void)out, (void)room, (void)got, (void)inside;
    return ar_error_set(error, AR_UNSUPPORTED, "packing %d is not offered", (int)unpacker->packing);
}

void unpacker_reset(struct unpacker *unpacker)
{
    if (!unpacker)
        return;
#if HAVE_ZLIB
    if (unpacker->packing == PACKING_GZIP)
        (void)inflateReset(&unpacker->gzip);
#endif
#if HAVE_ZSTD
    if (unpacker->packing == PACKING_ZSTD)
        (void)ZSTD_DCtx_reset(unpacker->zstd, ZSTD_reset_session_only);
#endif
}

void unpacker_close(struct unpacker *unpacker)
{
    if (!unpacker)
        return;
#if HAVE_ZLIB
    if (unpacker->packing == PACKING_GZIP)
        (void)inflateEnd(&unpacker->gzip);
#endif
#if HAVE_ZSTD
    if (unpacker->packing == PACKING_ZSTD)
        ZSTD_freeDStream(unpacker->zstd);
#endif
    free(unpacker);
}

/* Packing. */

#if HAVE_ZSTD
struct packer {
    ZSTD_CStream *zstd;
};

enum ar_status packer_open(struct packer **out, struct ar_error *error)
{
    struct packer *self = calloc(1, sizeof *self);
    if (self)
        self->zstd = ZSTD_createCStream();
    if (!self || !self->zstd ||
        ZSTD_isError(ZSTD_CCtx_setParameter(self->zstd, ZSTD_c_compressionLevel, LEVEL)) ||
        ZSTD_isError(ZSTD_CCtx_setParameter(self->zstd, ZSTD_c_checksumFlag, 1))) {
        packer_close(self);
        return ar_error_set(error, AR_HOST_MEMORY, "no host memory to write zstd");
    }
    *out = self;
    return AR_OK;
}

enum ar_status packer_step(struct packer *packer, const void *in, size_t in_bytes, size_t *used,
                           void *out, size_t room, size_t *got, bool end, size_t *left,
                           struct ar_error *error)
{
    ZSTD_inBuffer from = {in, in_bytes, 0};
    ZSTD_outBuffer to = {out, room, 0};
    *left = ZSTD_compressStream2(packer->zstd, &to, &from, end ? ZSTD_e_end : ZSTD_e_continue);
    *used = from.pos;
    *got = to.pos;
    if (ZSTD_isError(*left))
        return ar_error_set(error, AR_IO, "cannot be compressed: %s", ZSTD_getErrorName(*left));
    return AR_OK;
}

void packer_close(struct packer *packer)
{
    if (!packer)
        return;
    ZSTD_freeCStream(packer->zstd);
    free(packer);
}
#else
enum ar_status packer_open(struct packer **out, struct ar_error *error)
{
    (void)out;
    return missing("zstd", "writing a zstd file", error);
}

enum ar_status packer_step(struct packer *packer, const void *in, size_t in_bytes, size_t *used,
                           void *out, size_t room, size_t *got, bool end, size_t *left,
                           struct ar_error *error)
{
    (void)packer, (void)in, (void)in_bytes, (void)used, (void)out, (void)room, (void)got;
    (void)end, (void)left;
    return missing("zstd", "writing a zstd file", error);
}

void packer_close(struct packer *packer)
{
    (void)packer;
}
#endif
