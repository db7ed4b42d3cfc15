/* What is to be run: policies, workloads, devices and how. It comes from a suite file (INI,
 * workloads/suites/default.ini explains every key) or from the command line. */
#ifndef BENCH_SUITE_SUITE_H
#define BENCH_SUITE_SUITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocators/base/status.h"
#include "allocators/spec.h"
#include "sim/replay.h"

#define SUITE_RATIOS_MOST 32
#define SUITE_SEED_MOST   (UINT64_C(1) << 62) /* with all draws still an integer of JSON's readers */

struct text_list {
    char **items;
    size_t count, room;
};

/* One key of a [grid] section; axes.h says what it means. */
struct suite_axis {
    char *target; /* NULL: whatever has the option */
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
    char *against;            /* the policy that pairs of draws are held against; NULL: the first */
    char device_note[320];    /* why it runs on this device; "": it was asked for */
    bool all_policies;        /* those that a device cannot serve are left out */
    struct text_list devices; /* empty: `sim` */
    struct text_list capacities; /* each replaces the capacity of each device; may be empty */
    enum replay_frees frees;
    enum replay_host host;
    enum replay_measure measure;
    uint64_t reps; /* 0: as the device needs, see plan_reps */
    uint64_t draws, seed;
    uint64_t timeout_s; /* of a run in a process of its own */
    bool isolate;       /* every run in a process of its own, not only those on a card */
    bool verify;        /* fill and check the memory itself; not on sim, which has none */
    bool once;          /* what is wanted is of one run: no repetitions unless asked for */
    uint64_t jobs;      /* 0: as many as there are processors */
    bool time;          /* a pass that reads the host's clock, after the others, on one worker */
    bool stop_on_failure, require_pass;
    bool wide; /* tables with all their columns */
    /* Capacity / peak live for the curve "slowdown against capacity"; none: no curve. */
    double ratios[SUITE_RATIOS_MOST];
    size_t ratio_count;
    struct suite_axis *axes; /* for `sweep` */
    size_t axis_count;
};

/* Everything at its default; the lists are empty. */
void suite_init(struct suite *self);
void suite_close(struct suite *self);

/* Adds a copy of the text. HOST_MEMORY. */
enum ar_status text_list_add(struct text_list *self, const char *text,
                             struct ar_error *error) AR_STATUS_CHECKED;
void text_list_close(struct text_list *self);
/* Adds policies by spec; "all" stands for every one there is. */
enum ar_status suite_add_policy(struct suite *self, const char *text,
                                struct ar_error *error) AR_STATUS_CHECKED;

/* Puts the policy that `against` names, if it names one, before the others. To be called once all
 * policies are there. INVALID where it is none of them, or there are no draws to be paired. */
enum ar_status suite_put_first(struct suite *self, struct ar_error *error) AR_STATUS_CHECKED;

/* Sets one key as a suite file's [suite] section has them: "frees", "ordered". Command-line
 * options of the same names go through it too. INVALID says what would be right. */
enum ar_status suite_set(struct suite *self, const char *key, const char *value,
                         struct ar_error *error) AR_STATUS_CHECKED;

/* Reads a suite file into an initialised suite. Errors name file and line. */
enum ar_status suite_read(struct suite *self, const char *path,
                          struct ar_error *error) AR_STATUS_CHECKED;

#endif
