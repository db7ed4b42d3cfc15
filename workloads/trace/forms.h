/* The parts that the reader and the writer of a trace file share: the fixed header of the binary
 * form, which FORMAT.md has byte by byte, and the lines of the text form. */
#pragma once

#include "allocators/base/fnv.h"
#include "workloads/trace/tables.h"

#define BINARY_MAGIC                                                                               \
    "\x89"                                                                                         \
    "ARTR\r\n\x1a"
#define BINARY_VERSION    1u
#define BINARY_BYTE_ORDER 0x01020304u
#define BINARY_ALIGN      64u /* records begin at a multiple of it */

enum binary_flag {
    BINARY_USES = 1u << 0,
    BINARY_SPLIT_FREES = 1u << 1,
    BINARY_TIMES = 1u << 2,
    BINARY_FREE_REQUESTED_FINAL = 1u << 3,
};

/* The flags of a trace; `free_requested_final`: no completion follows a free request. */
static inline unsigned binary_flags(const struct trace_info *info, bool free_requested_final)
{
    return (info->has_uses ? BINARY_USES : 0u) | (info->has_split_frees ? BINARY_SPLIT_FREES : 0u) |
           (info->has_times ? BINARY_TIMES : 0u) |
           (free_requested_final ? BINARY_FREE_REQUESTED_FINAL : 0u);
}

struct binary_header {
    char magic[8];
    uint32_t version, byte_order;
    uint32_t header_bytes, record_bytes;
    uint32_t flags;
    uint32_t slots, streams;
    uint32_t key_count;
    uint64_t text_count;
    uint64_t head_bytes, key_bytes, text_bytes; /* of the three tables, in this order */
    uint64_t records_at;
    uint64_t events, allocs, probes, frees, steps, kernels, zero_allocs;
    uint64_t peak_live_bytes, allocated_bytes;
    uint8_t sha256[32];
    uint8_t zero[64];
    uint64_t checksum; /* FNV-1a, 64 bits, of all bytes before it and of the head table */
};

_Static_assert(sizeof(struct binary_header) == 256, "the header is 256 bytes, without gaps");

/* ---- lines (text.c) ---- */

/* The parts of a line that are not in the event; NULL or empty if there are none. */
struct trace_line_parts {
    const char *keys; /* canonical */
    const char *text; /* of a label or note */
    /* Of the block of a free request, whose own stream is written only if it is another one. */
    uint32_t block_stream;
};

/* Writes the canonical line with its newline; returns its length, whatever the room, as
 * snprintf. */
size_t trace_line_print(const struct trace_event *event, const struct trace_line_parts *parts,
                        char *out, size_t room);
