/* The settings of one process in the terms of its framework, and their result: its pools, each with
 * a card, a policy and a limit.
 *
 * A process is described by the lines that its program runs. Their order matters: for example,
 * memory growth set after the first operation is an error. Each line is checked as the framework
 * checks it, and refused with the framework's exception. Sources:
 * tensorflow/python/eager/context.py and common_runtime/gpu/gpu_device.cc (2.x), jaxlib's pjrt
 * client, torch/cuda/memory.py (2.11).
 *
 * Keys of upper case are the process's environment and may stand anywhere. Others:
 *   all         framework = tensorflow | jax | torch    (first)
 *   tensorflow  set_visible_devices = 0 1 | none
 *               set_memory_growth = CARD|all true|false
 *               set_logical_devices = CARD MIB MIB..     (one pool each; - : no limit given)
 *               per_process_gpu_memory_fraction, allow_growth, num_virtual_devices_per_gpu,
 *               gpu_system_memory_size_in_mb, internal_fragmentation_fraction,
 *               use_unified_memory, disallow_retry_on_allocation_failure, virtual_devices =
 *               MIB MIB.. / MIB.. (a list for each GPU), virtual_device_priorities,
 *               virtual_device_ordinals                  (of GPUOptions)
 *               build = release | debug | tegra | pluggable | 1.x    (they reserve different
 *               amounts for the system)
 *               initialize = yes                         (the first operation)
 *   jax         gpu_system_memory_size = BYTES: of the pool, in spite of its name
 *   torch       set_per_process_memory_fraction = CARD|all FRACTION
 * The environment:
 *   all         CUDA_VISIBLE_DEVICES
 *   tensorflow  TF_FORCE_GPU_ALLOW_GROWTH, TF_GPU_ALLOCATOR, TF_DEVICE_MIN_SYS_MEMORY_IN_MB,
 *               TF_ENABLE_GPU_GARBAGE_COLLECTION, TF_GPU_HOST_MEM_LIMIT_IN_MB,
 *               TF_DETERMINISTIC_ALLOCATOR
 *   jax         XLA_PYTHON_CLIENT_PREALLOCATE, XLA_CLIENT_MEM_FRACTION or
 *               XLA_PYTHON_CLIENT_MEM_FRACTION, XLA_PYTHON_CLIENT_ALLOCATOR
 *   torch       PYTORCH_ALLOC_CONF or PYTORCH_CUDA_ALLOC_CONF, PYTORCH_NO_CUDA_MEMORY_CACHING
 * and some that have no effect here; other variables cause a warning.
 * Cards are numbered as the process sees them after CUDA_VISIBLE_DEVICES. */
#pragma once

#include "allocators/base/status.h"

#define PROCESS_CARDS    16
#define PROCESS_POOLS    64
#define PROCESS_WARNINGS 8

struct process_card {
    uint64_t total_bytes;
    uint64_t free_bytes;         /* when the process arrives */
    unsigned compute_capability; /* the major number */
};

struct process_line {
    const char *key, *value;
    unsigned line; /* of the file, for errors */
};

/* The exception that the framework raises. */
enum process_exception {
    PROCESS_NO_EXCEPTION,
    PROCESS_RUNTIME_ERROR,
    PROCESS_VALUE_ERROR,
    PROCESS_INVALID_ARGUMENT,
    PROCESS_UNKNOWN_ERROR,
};

struct process_pool {
    uint32_t card;        /* of the machine, from 0 */
    uint64_t limit_bytes; /* UINT64_MAX: none */
    bool limit_of_free; /* the limit depends on the memory that was free when the process arrived */
    bool grows;
    bool pinned;      /* of pinned host memory; `card` is one more than the last */
    char policy[640]; /* a policy spec */
};

struct process {
    struct process_pool pools[PROCESS_POOLS];
    size_t pool_count;
    bool retries; /* a request that fails is tried again for retry_ms */
    uint64_t retry_ms;
    /* The spec of its framework's pool of pinned host memory; "": none here. */
    char pinned_policy[64];
    enum process_exception exception;     /* if process_configure returned NEGATIVE */
    unsigned line;                        /* of it */
    char warnings[PROCESS_WARNINGS][192]; /* that the framework logs before it continues */
    size_t warning_count;
};

/* Runs the lines on a machine of `card_count` cards. OK: the pools are made. NEGATIVE: the
 * framework refuses; `exception`, `line` and `error` tell why. INVALID: a line is unknown. */
enum ar_status process_configure(const struct process_card *cards, size_t card_count,
                                 const struct process_line *lines, size_t line_count,
                                 struct process *process, struct ar_error *error);

/* Joins all warnings with "; ", truncated to the room. */
void process_warnings(const struct process *process, char *text, size_t room);

/* "ValueError"; "" for none. */
const char *process_exception_name(enum process_exception exception);

/* The state that the frameworks' readers share. Private to this folder. */
struct process_reading {
    const struct process_card *cards; /* of the machine */
    size_t card_count;
    const struct process_line *lines;
    size_t line_count;
    uint32_t visible[PROCESS_CARDS]; /* the machine's numbers of the cards that the process sees */
    size_t visible_count;
    struct process *process;
    struct ar_error *error;
};

/* The value of an environment variable; NULL: not set. */
const char *process_variable(const struct process_reading *self, const char *name);

void process_warn(struct process_reading *self, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Records the refusal of the framework. Returns NEGATIVE. */
enum ar_status process_raise(struct process_reading *self, const struct process_line *line,
                             enum process_exception exception, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

enum ar_status process_bad_line(struct process_reading *self, const struct process_line *line,
                                const char *what);

/* Adds a pool; INVALID if there are too many. */
enum ar_status process_add_pool(struct process_reading *self, uint32_t visible_card,
                                struct process_pool **pool);

/* Reads "all" or the number of a visible card at the start of `*text` and moves `*text` past it.
 * The cards are `*first` to `*last`; false: neither was read. A number that is too large is
 * returned as it is. */
bool process_read_cards(const struct process_reading *self, const char **text, size_t *first,
                        size_t *last);

/* Reads the whole text as a number. */
bool process_read_number(const char *text, double *number);
/* Reads "true" or "false" in the spellings of Python and protobuf. */
bool process_read_bool(const char *text, bool *value);

enum ar_status process_tensorflow(struct process_reading *self);
enum ar_status process_jax(struct process_reading *self);
enum ar_status process_torch(struct process_reading *self);

/* GPUOptions.experimental.virtual_devices, as gpu_device.cc checks it: lists of memory limits, one
 * for each visible GPU in order. */
#define VIRTUAL_MOST 16 /* devices of a GPU */

enum virtual_key { VIRTUAL_LIMITS, VIRTUAL_PRIORITIES, VIRTUAL_ORDINALS, VIRTUAL_KEYS };

struct process_virtual {
    size_t gpu_count[VIRTUAL_KEYS]; /* lists of each kind; limits: 0: the option is not set */
    size_t count[VIRTUAL_KEYS][PROCESS_CARDS];
    uint64_t mib[PROCESS_CARDS][VIRTUAL_MOST];
};

/* Reads the line and sets `*taken` if its key is virtual_devices, virtual_device_priorities or
 * virtual_device_ordinals. " / " separates its lists. */
enum ar_status process_virtual_line(struct process_virtual *self, struct process_reading *reading,
                                    const struct process_line *line, bool *taken);

/* Checks the lists as the framework does when it makes its devices on `gpu_count` usable GPUs. */
enum ar_status process_virtual_check(const struct process_virtual *self,
                                     struct process_reading *reading,
                                     const struct process_line *line, size_t gpu_count);
