/* The settings of one process in its framework's terms, and what comes of them: which pools it
 * has on which cards, with which policy and limit.
 *
 * A process is told as the lines that its program runs, in order, since order decides: growth set
 * after the first operation is an error. Each is checked as the framework checks it, and refused
 * with the framework's exception. Sources: tensorflow/python/eager/context.py and
 * common_runtime/gpu/gpu_device.cc (2.x), jaxlib's pjrt client, torch/cuda/memory.py (2.11).
 *
 * Keys of upper case are the process's environment and may stand anywhere. Others:
 *   all         framework = tensorflow | jax | torch    (first)
 *   tensorflow  set_visible_devices = 0 1 | none
 *               set_memory_growth = CARD|all true|false
 *               set_logical_devices = CARD AR_MIB AR_MIB..     (one pool each; - : no limit given)
 *               per_process_gpu_memory_fraction, allow_growth, num_virtual_devices_per_gpu,
 *               gpu_system_memory_size_in_mb, internal_fragmentation_fraction,
 *               use_unified_memory, disallow_retry_on_allocation_failure, virtual_devices =
 *               AR_MIB AR_MIB.. / AR_MIB.. (a list a GPU), virtual_device_priorities,
 *               virtual_device_ordinals
 *                                                       (of GPUOptions)
 *               build = release | debug | tegra | pluggable | 1.x: which leave the system unlike
 *               amounts
 *               initialize = yes                         (the first operation)
 *   jax         gpu_system_memory_size = BYTES: of the pool, whatever its name says
 *   torch       set_per_process_memory_fraction = CARD|all FRACTION
 * The environment:
 *   all         CUDA_VISIBLE_DEVICES
 *   tensorflow  TF_FORCE_GPU_ALLOW_GROWTH, TF_GPU_ALLOCATOR, TF_DEVICE_MIN_SYS_MEMORY_IN_MB,
 *               TF_ENABLE_GPU_GARBAGE_COLLECTION, TF_GPU_HOST_MEM_LIMIT_IN_MB,
 *               TF_DETERMINISTIC_ALLOCATOR
 *   jax         XLA_PYTHON_CLIENT_PREALLOCATE, XLA_CLIENT_MEM_FRACTION or
 *               XLA_PYTHON_CLIENT_MEM_FRACTION, XLA_PYTHON_CLIENT_ALLOCATOR
 *   torch       PYTORCH_ALLOC_CONF or PYTORCH_CUDA_ALLOC_CONF, PYTORCH_NO_CUDA_MEMORY_CACHING
 * and some that change nothing here; others are warned of.
 * Cards are numbered as the process sees them after CUDA_VISIBLE_DEVICES. */
#ifndef SIM_TENANTS_PROCESS_H
#define SIM_TENANTS_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocators/base/status.h"

#define PROCESS_CARDS    16
#define PROCESS_POOLS    64
#define PROCESS_WARNINGS 8

struct process_card {
    uint64_t total_bytes;
    uint64_t free_bytes;         /* when the process comes to it */
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
    bool limit_of_free;   /* it follows from what was free when the process came */
    bool grows;
    bool pinned;      /* of pinned host memory; `card` is one more than the last */
    char policy[640]; /* a policy spec */
};

struct process {
    struct process_pool pools[PROCESS_POOLS];
    size_t pool_count;
    bool retries; /* a request that fails is tried again for retry_ms */
    uint64_t retry_ms;
    char pinned_policy
        [64]; /* a spec: of its framework's pool of pinned host memory; "": it has none here */
    enum process_exception exception;     /* where process_configure gave NEGATIVE */
    unsigned line;                        /* of it */
    char warnings[PROCESS_WARNINGS][192]; /* what the framework logs and goes on */
    size_t warning_count;
};

/* Runs the lines on a machine of `card_count` cards. OK: the pools are there. NEGATIVE: the
 * framework refuses, `exception` and `line` say how and where and `error` why. INVALID: a line is
 * none that is known. */
enum ar_status process_configure(const struct process_card *cards, size_t card_count,
                                 const struct process_line *lines, size_t line_count,
                                 struct process *process, struct ar_error *error) AR_STATUS_CHECKED;

/* All warnings, with "; " between, cut where the room ends. */
void process_warnings(const struct process *process, char *text, size_t room);

/* "ValueError"; "" for none. */
const char *process_exception_name(enum process_exception exception);

/* What the frameworks' halves of process.h share. */
struct process_reading {
    const struct process_card *cards; /* of the machine */
    size_t card_count;
    const struct process_line *lines;
    size_t line_count;
    uint32_t visible[PROCESS_CARDS]; /* machine's number of each card that the process sees */
    size_t visible_count;
    struct process *process;
    struct ar_error *error;
};

/* Of the environment; NULL: not set. */
const char *process_variable(const struct process_reading *self, const char *name);

void process_warn(struct process_reading *self, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The framework refuses. Returns NEGATIVE. */
enum ar_status process_raise(struct process_reading *self, const struct process_line *line,
                             enum process_exception exception, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

enum ar_status process_bad_line(struct process_reading *self, const struct process_line *line,
                                const char *what);

/* The next pool; INVALID where there are too many. */
enum ar_status process_add_pool(struct process_reading *self, uint32_t visible_card,
                                struct process_pool **pool) AR_STATUS_CHECKED;

/* "all" or a number of a visible card at the start of `*text`, which moves behind it. `*first` to
 * `*last` are the cards meant; false: it is neither. A number beyond the cards is given as is. */
bool process_read_cards(const struct process_reading *self, const char **text, size_t *first,
                        size_t *last);

/* A number, the whole of the text. */
bool process_read_number(const char *text, double *number);
/* "true" or "false", in any of Python's and protobuf's spellings. */
bool process_read_bool(const char *text, bool *value);

enum ar_status process_tensorflow(struct process_reading *self) AR_STATUS_CHECKED;
enum ar_status process_jax(struct process_reading *self) AR_STATUS_CHECKED;
enum ar_status process_torch(struct process_reading *self) AR_STATUS_CHECKED;

/* GPUOptions.experimental.virtual_devices, as gpu_device.cc checks it: lists of memory limits, one
 * for each GPU in the order in which they are seen. */
#define VIRTUAL_MOST 16 /* devices of a GPU */

enum virtual_key { VIRTUAL_LIMITS, VIRTUAL_PRIORITIES, VIRTUAL_ORDINALS, VIRTUAL_KEYS };

struct process_virtual {
    size_t gpu_count[VIRTUAL_KEYS]; /* lists of each kind; limits: 0 where the option is not set */
    size_t count[VIRTUAL_KEYS][PROCESS_CARDS];
    uint64_t mib[PROCESS_CARDS][VIRTUAL_MOST];
};

/* Takes the line if it is one of virtual_devices, virtual_device_priorities and
 * virtual_device_ordinals; `*taken` says so. Its lists have " / " between. */
enum ar_status process_virtual_line(struct process_virtual *self, struct process_reading *reading,
                                    const struct process_line *line, bool *taken) AR_STATUS_CHECKED;

/* What the framework says to them when it makes its devices, with `gpu_count` GPUs that it may
 * use. */
enum ar_status process_virtual_check(const struct process_virtual *self,
                                     struct process_reading *reading,
                                     const struct process_line *line,
                                     size_t gpu_count) AR_STATUS_CHECKED;

#endif
