/* One event of a trace, in memory and in the binary file: 32 bytes, little-endian. FORMAT.md
 * describes the files. A block has an id, dense and never reused, and a slot, which is reused once
 * the block is complete: code that follows blocks needs an array with one item per block live at
 * once, whatever the length of the trace. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* A new kind needs: its line and letter here, and its line in FORMAT.md; its fields in text.c; its
 * checks in check.c; its name in bench/report/trace_page.c; a case in sim/replay/events.c
 * (`no_block_event`, or `on_event` if it is about a block), and in sim/experiment/baseline.c if it
 * takes time on the device. A kind with a block or stream belongs into the range of
 * trace_kind_has_block or trace_kind_has_stream. A hook in sim/device.h is needed only for new work
 * of the device, and a shortcut in sim/replay/engine.c only if the kind is frequent. */
enum trace_kind {
    TRACE_ALLOC = 1,          /* a,ID,BYTES[,STREAM] */
    TRACE_PROBE = 2,          /* p,ID,BYTES[,STREAM]: may fail */
    TRACE_FREE_REQUESTED = 3, /* r,ID[,STREAM] */
    TRACE_FREE_COMPLETED = 4, /* f,ID; with TRACE_WHOLE: free requested and completed at once */
    TRACE_USE = 5,            /* u,ID,STREAM */
    TRACE_KERNEL = 6,         /* k,STREAM,NANOSECONDS: in value */
    TRACE_RECORD = 7,         /* e,EVENT,STREAM: the event's number in value */
    TRACE_WAIT = 8,           /* w,STREAM,EVENT */
    TRACE_SYNC = 9,           /* s[,STREAM]: stream TRACE_NO_STREAM for the whole device */
    TRACE_TRIM = 10,          /* c */
    TRACE_OUTSIDE = 11,       /* o,BYTES: in value */
    TRACE_MARK = 12, /* m,LABEL: the label's text index in value; TRACE_STEP if it is "step" */
    TRACE_TIME = 13, /* t,NANOSECONDS: in value */
    TRACE_NOTE = 14, /* !,...: a decision of the recorded allocator; text index in value */
};
#define TRACE_KIND_LAST TRACE_NOTE
/* The letters of the text form, in the order of the kinds, which count from 1. */
#define TRACE_LETTERS "aprfukewscomt!"
_Static_assert(sizeof TRACE_LETTERS == TRACE_KIND_LAST + 1, "each kind has a letter");

/* Flags. */
#define TRACE_WHOLE 0x01u /* TRACE_FREE_COMPLETED without a free request before it */
#define TRACE_STEP  0x02u /* TRACE_MARK "step": a step ends */
#define TRACE_CHANGE                                                                               \
    0x04u /* TRACE_NOTE "settings,.." or "limit,..": the program changes its allocator */
#define TRACE_DRIVER 0x08u /* TRACE_NOTE "driver,..": the driver takes memory for itself */

#define TRACE_NO_STREAM   UINT32_MAX
#define TRACE_BYTES_LIMIT (UINT64_C(1) << 60) /* requests of this size or more are invalid */

struct trace_event {
    uint8_t kind;
    uint8_t flags;
    uint16_t zero;
    uint32_t stream;     /* dense ordinals from 0; on a free request, its stream */
    uint32_t slot;       /* of the block, for the kinds that have one; else 0 */
    uint32_t attributes; /* index of the keys after the fields; 0: none */
    uint64_t value;      /* bytes, nanoseconds, a number or a text index: see the kind */
    uint64_t id;         /* of the block, for the kinds that have one; else 0 */
};

/* Whether the program requests a block. */
static inline bool trace_requests(const struct trace_event *event)
{
    return event->kind == TRACE_ALLOC || event->kind == TRACE_PROBE;
}

/* Whether the program frees a block: not the completion of a free that was requested before. */
static inline bool trace_frees(const struct trace_event *event)
{
    return event->kind == TRACE_FREE_REQUESTED || (event->flags & TRACE_WHOLE) != 0;
}

/* Whether it is the mark that ends a step. */
static inline bool trace_ends_step(const struct trace_event *event)
{
    return (event->flags & TRACE_STEP) != 0;
}

enum trace_space { TRACE_SPACE_DEVICE, TRACE_SPACE_PINNED };
enum trace_end { TRACE_END_UNSAID, TRACE_END_LOWER, TRACE_END_UPPER };

/* The keys after the fields; absent ones have their defaults. */
struct trace_attributes {
    const char *tag; /* NULL: none */
    uint64_t align;  /* 0: none */
    uint32_t pool;   /* 0: the common pool */
    uint32_t device;
    uint32_t thread;
    uint32_t tenant;
    uint8_t space;  /* enum trace_space */
    uint8_t end;    /* enum trace_end */
    uint16_t given; /* TRACE_GIVEN_x of the keys that were written, so that a copy keeps `pool=0` */
    uint8_t mempool;  /* TRACE_MEMPOOL_x: the pool is a torch.cuda.MemPool; 0: not said */
    const char *rest; /* keys unknown to this version, unchanged: "x=1,y=2"; or NULL */
};

/* Bits of `given`, in the order in which FORMAT.md lists the keys. */
#define TRACE_GIVEN_TAG     0x01u
#define TRACE_GIVEN_POOL    0x02u
#define TRACE_GIVEN_ALIGN   0x04u
#define TRACE_GIVEN_DEVICE  0x08u
#define TRACE_GIVEN_THREAD  0x10u
#define TRACE_GIVEN_TENANT  0x20u
#define TRACE_GIVEN_SPACE   0x40u
#define TRACE_GIVEN_END     0x80u
#define TRACE_GIVEN_MEMPOOL 0x100u
#define TRACE_GIVEN_LAST    TRACE_GIVEN_MEMPOOL

/* Bits of `mempool`, those of ar_policy_request.mempool. */
#define TRACE_MEMPOOL_PLAIN      0x1u
#define TRACE_MEMPOOL_USE_ON_OOM 0x2u
#define TRACE_MEMPOOL_NO_SPLIT   0x4u
#define TRACE_MEMPOOL_ALLOCATOR  0x8u

/* Whether it is a note on a change of the program's allocator. */
static inline bool trace_is_change(const struct trace_event *event)
{
    return (event->flags & TRACE_CHANGE) != 0;
}

/* Whether it is a note that a replay must not miss. */
static inline bool trace_is_replayed(const struct trace_event *event)
{
    return (event->flags & (TRACE_CHANGE | TRACE_DRIVER)) != 0;
}

/* The result of a request, for programs whose later requests depend on it. */
struct trace_served {
    bool served;
    uint64_t address;
    uint64_t granted_bytes;
};

static inline bool trace_kind_has_block(unsigned kind)
{
    return kind >= TRACE_ALLOC && kind <= TRACE_USE;
}

/* Whether its own stream is a field of it: the completion of a free has that of the block. */
static inline bool trace_kind_has_stream(unsigned kind)
{
    return kind <= TRACE_SYNC && kind != TRACE_FREE_COMPLETED;
}
