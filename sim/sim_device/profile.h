/* A profile of a card: capacity, granularity, and the time of each driver call.
 *
 * A profile is text (sim/profiles/README.md describes the format), built in or in a file. The cost
 * of a call is known at some sizes. Between two of them it is on a straight line in log(bytes) and
 * log(time); above the last the last line continues, below the first it is constant.
 *
 * These are costs of a call soon after another of its kind. The longer the pause since the last
 * call, the less of the driver is in the host's caches. The profile states what that adds, which
 * does not depend on the size, and which part of it the next call of the kind pays again, because
 * one call does not load all of the driver. */
#pragma once

#include "allocators/base/status.h"

/* Every kind of cost: name, its substitute if a profile has no points of it (itself: none, the call
 * is free), description. `held`: beyond what the driver caches; `shared`: of a small allocation in
 * a page that exists; `more`: each further mapping in the same call. */
#define SIM_COSTS(X)                                                                               \
    X(alloc, alloc, "driver allocation of a size that was just freed")                             \
    X(alloc_held, alloc_held, "driver allocation of new memory")                                   \
    X(alloc_shared, alloc_shared, "small driver allocation in a page that is held already")        \
    X(free, free, "driver free of the segment made last")                                          \
    X(free_held, free_held, "driver free of any other segment")                                    \
    X(free_shared, free_shared, "driver free of a small segment whose page stays")                 \
    X(reserve, reserve, "address range reserved")                                                  \
    X(release, release, "address range released")                                                  \
    X(create, create, "physical memory made")                                                      \
    X(destroy, destroy, "physical memory released")                                                \
    X(map, map, "physical memory mapped that is mapped nowhere else")                              \
    X(map_again, map_again, "physical memory mapped at one more place")                            \
    X(access, access, "one mapping made usable")                                                   \
    X(access_more, access, "each further mapping made usable in the same call")                    \
    X(unmap, unmap, "one mapping unmapped")                                                        \
    X(unmap_more, unmap, "each further mapping unmapped in the same call")                         \
    X(event, event, "event recorded")                                                              \
    X(event_poll, event, "event polled or waited for")                                             \
    X(event_known, event_known, "event behind work that the host knows to be done: none is made")  \
    X(launch, launch, "kernel launched: host time, no call of the allocator")                      \
    X(request, request,                                                                            \
      "request or free, beside the driver's calls: host time of program, policy")                  \
    X(mark, mark, "end of a step marked: host time, no call of the allocator")                     \
    X(record, record, "event recorded by the program: host time, no call of the allocator")        \
    X(wait, wait, "stream made to wait for an event by the program: host time, likewise")          \
    X(pool_alloc, pool_alloc, "stream-ordered allocation from what the pool has")                  \
    X(pool_grow, pool_grow, "memory for the pool, by the bytes that it gets")                      \
    X(pool_first, pool_first, "first stream-ordered allocation of a process, beyond that")         \
    X(pool_pending, pool_pending, "stream-ordered allocation that looks at other streams' frees")  \
    X(pool_free, pool_free, "stream-ordered free")                                                 \
    X(pool_trim, pool_trim, "memory that the pool releases when it is trimmed, by its bytes")      \
    X(product_first, product_first, "first matrix product of a process: its library is loaded")    \
    X(product_new, product_new, "first product of another type or order of lengths")               \
    X(pinned_alloc, pinned_alloc, "pinned host memory made")                                       \
    X(pinned_alloc_shared, pinned_alloc, "less of it, in a page that is held already")             \
    X(pinned_free, pinned_free, "pinned host memory released")                                     \
    X(pinned_free_shared, pinned_free, "less of it, whose page stays")

enum sim_cost {
#define X(name, stand_in, text) SIM_COST_##name,
    SIM_COSTS(X)
#undef X
        SIM_COST_COUNT
};

/* The limits of kernel ops (kernel_limits.h): name, and the size that it depends on. */
#define SIM_KERNEL_OPS(X)                                                                          \
    X(matmul_f32, "operations of a product, 2 m n k")                                              \
    X(matmul_tf32, "operations")                                                                   \
    X(matmul_f16, "operations")                                                                    \
    X(matmul_bf16, "operations")                                                                   \
    X(thin_f32, "bytes of a product's three operands")                                             \
    X(thin_tf32, "bytes of the operands")                                                          \
    X(thin_f16, "bytes of the operands")                                                           \
    X(thin_bf16, "bytes of the operands")                                                          \
    X(elementwise, "bytes read and written")                                                       \
    X(copy, "bytes read and written")                                                              \
    X(set, "bytes written")                                                                        \
    X(reduce, "bytes read")                                                                        \
    X(strip_32, "elements of 32 bits in a strip of columns that are summed together")              \
    X(strip_16, "elements of 16 bits in such a strip")                                             \
    X(gather, "bytes of rows, read and written")                                                   \
    X(gather_rows, "rows")                                                                         \
    X(scatter_add_f32, "bytes of rows that are added")                                             \
    X(scatter_add_f16, "bytes of rows that are added")                                             \
    X(scatter_add_bf16, "bytes of rows that are added")                                            \
    X(scatter_rows, "rows")

enum sim_kernel_op {
#define X(name, size) SIM_KERNEL_OP_##name,
    SIM_KERNEL_OPS(X)
#undef X
        SIM_KERNEL_OP_COUNT
};

#define SIM_COST_POINTS 32

/* All numbers of a profile are below this. */
#define SIM_PROFILE_NUMBERS (UINT64_C(1) << 60)

struct sim_curve {
    uint32_t count;
    uint64_t bytes[SIM_COST_POINTS], ns[SIM_COST_POINTS];
    double log_bytes[SIM_COST_POINTS], log_ns[SIM_COST_POINTS];
};

struct sim_profile {
    char name[64];
    /* Where it was measured, for readers; "": not stated. */
    char card[256], driver[256], hypervisor[256], source[256];
    char also[256];    /* other names that drivers have for the card, separated by "; " */
    char compute[16];  /* the compute capability of an NVIDIA card, "9.0"; "": not stated */
    char link[16];     /* of cards in the usual server: nvlink, pcie, shm; "": not stated */
    char memory[256];  /* the source of the sizes if they were not measured; "": measured */
    char costs_of[64]; /* the built-in profile whose costs these are; "": they are the card's own */
    uint64_t total_bytes;   /* of the card; 0: without limit */
    uint64_t usable_bytes;  /* of this, for one process */
    uint64_t context_bytes; /* of the process before its first allocation; for readers */
    uint64_t page_bytes;    /* of physical memory; 0: charged to the byte, no virtual memory */
    uint64_t granule_bytes; /* driver allocations start at multiples of it */
    uint64_t first_address;
    uint64_t processors, threads; /* multiprocessors, and threads that one holds; 0: not stated */
    /* The time of a clock reading on the measured host, 10^-12 s; 0: not stated. */
    uint64_t host_clock_ps;
    /* The shortest timed kernel: shorter ones join the next one. 0: not stated, a launch. */
    uint64_t kernel_least_ns;
    uint64_t cleaning_bytes_per_us;               /* rate of cleaning freed memory; 0: immediate */
    uint64_t cleaning_wait_bytes[SIM_COST_COUNT]; /* requests from this size on wait for all
                                                     of it; 0: none */
    uint64_t waits;                        /* kinds that wait for all work on the device, a bit
                                              for each enum sim_cost: calls, not their forms
                                              (free includes free_held and free_shared) */
    uint64_t busy_percent[SIM_COST_COUNT]; /* cost on a busy card; 0 means 100 */
    uint64_t rest_again_percent[SIM_COST_COUNT]; /* 0 to 100, of the addition to the last call
                                                    of the kind: added to this one */
    struct sim_curve costs[SIM_COST_COUNT];
    struct sim_curve busy_costs[SIM_COST_COUNT]; /* on a busy card; replaces the percentage */
    struct sim_curve rest_costs[SIM_COST_COUNT]; /* added after a rest; `bytes` is the rest in ns */
    struct sim_curve
        kernel_ops[SIM_KERNEL_OP_COUNT]; /* on the card; `bytes` is the size of the limit */
};

#define SIM_PROFILE_ROOM(field) sizeof(((struct sim_profile *)0)->field)

/* The lines of the built-in profile of that name, or NULL; and the names of the first `most`
 * built-in profiles, and the number of all. */
const char *const *sim_profile_builtin(const char *name);
size_t sim_profile_names(const char **names, size_t most);
#define SIM_PROFILES_MOST 32

/* More pages on a card are refused: policies that map page by page would take forever. 128 TiB in
 * pages of 2 MiB, 256 GiB in pages of 4 KiB. */
#define SIM_PAGES_MOST (UINT64_C(1) << 26)

/* The profile of a device without one in its spec. */
#define SIM_PROFILE_DEFAULT "h100"

/* The name of the built-in profile of a card, by the name that its driver has for it (`card` and
 * `also`; upper and lower case and a first word NVIDIA or AMD do not matter); NULL: none, or the
 * card is not known (""). Of several profiles of one card, the one with the shortest name. */
const char *sim_profile_of_card(const char *card);

/* Reads a profile from its lines (NULL-ended). `where` names it in errors. FORMAT, with the line
 * number. */
enum ar_status sim_profile_read(const char *const *lines, const char *where,
                                struct sim_profile *out, struct ar_error *error);
/* The same from a file. IO or FORMAT. */
enum ar_status sim_profile_load(const char *path, struct sim_profile *out, struct ar_error *error);

/* Scales the costs to a host whose clock takes that long to read: driver calls are code of the host
 * and scale with it. First uses (of the pool, of products) stay, because files and the card decide
 * them; so do kernel ops. The profile must state its own clock; `where` names it in errors.
 * INVALID: a cost would exceed the limit of profiles; the profile must not be used then. */
enum ar_status sim_profile_at_host(struct sim_profile *self, uint64_t clock_ps, const char *where,
                                   struct ar_error *error);

/* What is wrong with the whole: it cannot be used, has lines that no call uses, or a number that a
 * profile cannot have. `where` names it. FORMAT. A profile that passes can be written and read. */
enum ar_status sim_profile_check(const struct sim_profile *self, const char *where,
                                 struct ar_error *error);

/* Writes a text from which the same profile is read. */
void sim_profile_write(const struct sim_profile *self, FILE *file);

/* Adds a point. Returns the error, or NULL. */
const char *sim_curve_add(struct sim_curve *self, uint64_t bytes, uint64_t ns);

/* Nanoseconds of a call of that size. On a busy card the busy curve applies. If there is only a
 * percentage, it is applied to the cost at one page: it was measured there, and is time per call,
 * not per byte. */
uint64_t sim_profile_cost(const struct sim_profile *self, enum sim_cost cost, uint64_t bytes,
                          bool busy);
/* Nanoseconds of an operation of that size, in this limit. 0: no points. */
uint64_t sim_profile_kernel_op(const struct sim_profile *self, enum sim_kernel_op op,
                               uint64_t size);
bool sim_profile_has_kernel_ops(const struct sim_profile *self);
/* The kind whose rests count for this kind, because its calls keep the same part of the driver in
 * the host's caches: alloc for alloc_held, access for access_more. Small allocations and frees are
 * apart. */
enum sim_cost sim_cost_rested(enum sim_cost cost);
/* Nanoseconds that a rest of `rest_ns` since the last call adds, on a straight line in log(rest):
 * nothing up to the first point, constant above the last. UINT64_MAX: there was no call. */
uint64_t sim_profile_rest(const struct sim_profile *self, enum sim_cost cost, uint64_t rest_ns);
/* The whole addition to a call of a kind that has rests: the greater of the addition for its own
 * rest and the part of `carried_ns`, the addition to the last call, that is paid again. The result
 * is the next `carried_ns`. */
static inline uint64_t sim_profile_added(const struct sim_profile *self, enum sim_cost kind,
                                         uint64_t rest_ns, uint64_t carried_ns)
{
    uint64_t ns = sim_profile_rest(self, kind, rest_ns);
    uint64_t percent = self->rest_again_percent[kind];
    if (!percent)
        return ns;
    uint64_t again_ns = carried_ns / 100 * percent + carried_ns % 100 * percent / 100;
    return again_ns > ns ? again_ns : ns;
}

/* Nanoseconds of the cheapest call of the kind: the cost of a refused one. */
uint64_t sim_profile_least(const struct sim_profile *self, enum sim_cost cost);

/* The built-in profiles. Each is a file of this folder, NAME.profile, as `allocrig calibrate`
 * writes it; the Makefile makes this table of them. sim/profiles/README.md describes the format. */

struct sim_builtin_profile {
    const char *name;
    const char *const *lines; /* ends with NULL */
};

/* In the order of names; ends with a NULL name. */
extern const struct sim_builtin_profile sim_builtin_profiles[];
