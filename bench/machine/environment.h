/* Where and how a result was made: the description of this machine in a result. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The state of a card by the management library of NVIDIA (NVML). The library is loaded at run
 * time, from a table of names that has only functions that read. Values that the library or the
 * card does not know are "" or -1. */

#define NVML_PROCESSES_MOST 16

/* What changes during runs. -1: unknown. */
struct nvml_state {
    int64_t sm_clock_mhz, memory_clock_mhz;
    int64_t throttle_reasons;                  /* bits, see nvml_throttle_text */
    int64_t power_limited_ns, heat_limited_ns; /* time with reduced clocks, a counter */
    int64_t temperature_c, power_mw;
    int64_t used_bytes; /* by all processes and the driver */
    int64_t process_count;
    struct {
        uint32_t process;
        int64_t bytes;
    } processes[NVML_PROCESSES_MOST]; /* the first ones */
};

struct nvml_card {
    bool present; /* false: nothing else is set */
    char name[96], uuid[96];
    char driver[80], cuda[16]; /* versions; CUDA's is the driver's highest */
    char bus[32];              /* "00000000:01:00.0" */
    int64_t sm_clock_max_mhz, memory_clock_max_mhz;
    int64_t sm_clock_set_mhz, memory_clock_set_mhz; /* application clocks */
    int64_t power_limit_mw;
    int ecc, mig, persistence; /* 1, 0 or -1 */
    int virtualised; /* 0: none; 1: passed through to a virtual machine; 2 or more: shared */
    int numa_node;
    struct nvml_state before, after;
};

struct nvml;

/* Finds a function of the library by name. NULL: the library has none. */
typedef void *nvml_find(void *argument, const char *name);

/* The library of this machine; the caller closes it. NULL: there is none, or it does not start. */
struct nvml *nvml_open(void);
void nvml_close(struct nvml *self);

/* Reads all of a card except `after`. `ordinal` counts the cards that CUDA shows to the process;
 * `visible` is the value of CUDA_VISIBLE_DEVICES, or NULL. (Without it the two counts may differ on
 * a machine with several kinds of cards, because CUDA puts the fastest first.) */
void nvml_read_card(struct nvml *self, unsigned ordinal, const char *visible,
                    struct nvml_card *card);
/* Reads what changes. The list leaves out the process `own`. */
void nvml_read_state(struct nvml *self, unsigned ordinal, const char *visible, uint32_t own,
                     struct nvml_state *state);

/* The reasons for reduced clocks in words: "software power cap, hardware slowdown". Leaves out idle
 * clocks and application clocks, which are no problem. Returns `text`. */
const char *nvml_throttle_text(int64_t reasons, char *text, unsigned text_bytes);

/* What this program was built from, and how: part of the `context` of every result. The Makefile
 * writes the values to an object of their own when one of them changes, so that a commit costs one
 * compilation and a link, not a rebuild. */

struct build_info {
    const char *version;  /* "0.1.0", from the Makefile */
    const char *commit;   /* full hash; "unknown" outside of a git checkout */
    bool dirty;           /* tracked files differed from the commit */
    const char *variant;  /* "release", "san": the folder under .build */
    const char *compiler; /* first line of the compiler's --version */
    const char *flags;    /* all compiler flags, warnings included */
};

/* A constant. */
const struct build_info *build_info(void);

struct environment {
    const struct build_info *build;
    char time[32]; /* UTC, ISO 8601 */
    char host[65];
    char kernel[160];
    char cpu[128];
    char governor[32];     /* "": none */
    char hypervisor[64];   /* "": the processor reports none */
    char machine[128];     /* vendor and product; "": unknown */
    char numa_nodes[32];   /* "0-1"; "": unknown */
    struct nvml_card card; /* the first card that is used */
    unsigned card_ordinal;
    unsigned cpus;
    uint64_t seed;
    int argc; /* the command and its arguments, borrowed */
    char *const *argv;
};

/* Never fails: what cannot be determined stays empty. */
void environment_capture(struct environment *self, int argc, char *const *argv, uint64_t seed);

/* Reads the state of the card of that device spec, before and after the runs. Nothing for `sim`. */
void environment_card_before(struct environment *self, const char *device);
void environment_card_after(struct environment *self);

/* True for a variable ("NAME=VALUE") that sets how frameworks and the driver allocate memory. */
bool environment_is_allocator_variable(const char *variable);

/* The first line of a file, without the line end; "" if it cannot be read. */
void environment_line(const char *path, char *text, size_t text_bytes);

/* The number of workers: `wanted`, or with 0 one for each processor. */
unsigned environment_jobs(uint64_t wanted);
