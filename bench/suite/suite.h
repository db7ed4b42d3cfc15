/* What to run: policies, workloads, devices, and how. From a suite file (INI;
 * workloads/suites/default.ini explains every key) or from the command line. */
#pragma once

#include "allocators/base/status.h"
#include "allocators/spec.h"
#include "sim/replay.h"

#define SUITE_RATIOS_MOST 32
#define SUITE_SEED_MOST                                                                            \
    (UINT64_C(1) << 62) /* with all replicates still a signed integer of 64 bits */

struct text_list {
    char **items;
    size_t count, room;
};

/* One key of a [grid] section (below). */
struct suite_axis {
    char *target; /* NULL: everything that has the option */
    char *key;
    struct text_list values;
    unsigned line;
};

struct suite {
    const struct ar_catalog
        *catalog;    /* of the names in all specs below; NULL: built-in ones only */
    bool in_process; /* no run has a process of its own, whatever the device */
    char *name;      /* NULL: from the command line */
    char *output;    /* folder for results and the data of the figures; NULL: none */
    struct text_list policies, workloads;
    char *pinned;          /* spec of the policy of pinned memory; "none"; NULL: torch-pinned */
    char *against;         /* the policy with which others are compared in pairs; NULL: the first */
    char device_note[320]; /* why it runs on this device; "": the user named it */
    bool all_policies;     /* leave out those that a device cannot serve */
    struct text_list devices; /* empty: `sim` */
    bool gpu_given;           /* of each workload, only GPU `gpu` */
    uint32_t gpu;
    struct text_list capacities; /* each replaces the capacity of each device; may be empty */
    enum replay_frees frees;
    enum replay_host host;
    enum replay_measure measure;
    uint64_t reps; /* 0: as the device needs, see plan_reps */
    uint64_t replicates, seed;
    uint64_t timeout_s; /* of a run in a process of its own */
    bool isolate;       /* also runs on `sim` have a process of their own */
    bool verify;        /* fill and check the memory itself; `sim` has none */
    bool once;          /* a file holds one run: one repetition unless the user says otherwise */
    uint64_t jobs;      /* 0: one for each processor */
    bool time;          /* a pass that reads the host's clock, after the others, on one worker */
    bool stop_on_failure, require_pass;
    bool wide; /* tables with all their columns */
    /* Capacity / peak live for the curve "slowdown by capacity"; none: no curve. */
    double ratios[SUITE_RATIOS_MOST];
    size_t ratio_count;
    struct suite_axis *axes; /* for `sweep` */
    size_t axis_count, axis_room;
};

/* A suite with all defaults and empty lists. */
#define SUITE_DEFAULTS                                                                             \
    {                                                                                              \
        .frees = REPLAY_ORDERED, .host = REPLAY_HOST_NONE, .measure = REPLAY_METRICS_EXACT,        \
        .timeout_s = 600, .replicates = 1, .seed = 1                                               \
    }

void suite_close(struct suite *self);

/* Adds a copy of the text. HOST_MEMORY. */
enum ar_status text_list_add(struct text_list *self, const char *text, struct ar_error *error);
void text_list_close(struct text_list *self);

/* FORMAT: the section of the line has the key already; nothing tells which one is meant. `keys` are
 * those so far. A former name of a key becomes the present one. */
struct ini_line;
enum ar_status suite_note_key(struct text_list *keys, const struct ini_line *line, const char **key,
                              struct ar_error *error);

/* Adds a policy by its spec; "all" adds every policy. */
enum ar_status suite_add_policy(struct suite *self, const char *text, struct ar_error *error);

/* Adds a device by its spec. A number is no device: it selects a GPU of the workloads. INVALID. */
enum ar_status suite_add_device(struct suite *self, const char *text, struct ar_error *error);

/* Puts the policy that `against` names, if any, before the others. Call it when all policies are
 * there. INVALID if it is none of them, or there are no replicates to pair. */
enum ar_status suite_put_first(struct suite *self, struct ar_error *error);

/* Sets one key of the [suite] section: "frees", "ordered". Command-line options of the same names
 * use it too. INVALID says which values are right. */
enum ar_status suite_set(struct suite *self, const char *key, const char *value,
                         struct ar_error *error);

/* Reads a suite file into an initialised suite. Errors name file and line. */
enum ar_status suite_read(struct suite *self, const char *path, struct ar_error *error);

/* The texts of specs: one key changed, lists within values expanded, and the [grid] section of a
 * suite.
 *
 * A list within a spec: `torch:max_split_size_mb=32|64|128,limit=4GiB|8GiB` stands for six specs. A
 * bar within quotes is part of a value.
 *
 * A [grid] section has a list of values for each key, and stands for every combination of them:
 *
 *     [grid] max_split_size_mb = 32 64 128       each spec that has such an option growth:limit =
 *     4GiB 8GiB            only those of that name workloads:seed = 1 2 3              only those
 *     of that section: policies, workloads, devices
 *
 * 1. Values are separated by blanks or commas; a value that contains either is quoted.
 * 2. Keys are applied in their order. Each spec that a key reaches becomes one spec for each value;
 *    a spec without such an option does not change.
 * 3. A spec that has the key already, in its own line or from an earlier key, keeps its value.
 * 4. A key that reaches no spec is refused, and so is a key without a name before it that would
 *    reach specs of two sections, such as a seed of workloads and of devices. */

/* The spec `text` with `key=value` in its last link, in place of an existing value or at the end:
 * "sim:profile=h100" and capacity=1GiB give "sim:profile=h100,capacity=1GiB". The caller frees
 * `*out`. */
enum ar_status spec_text_with(const char *text, const char *key, const char *value, char **out,
                              struct ar_error *error);

/* Adds `[TARGET:]KEY = VALUES` of line `number` to the suite's grid. INVALID for an empty list or a
 * quote that does not end. */
enum ar_status axes_add(struct suite *suite, const char *key, const char *values, unsigned number,
                        struct ar_error *error);
void axes_close(struct suite *suite);
