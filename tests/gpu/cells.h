/* Cells of policy x workload on a card, many in one process: what equal.sh and verify.sh run. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "allocators/base/status.h"
#include "sim/device.h"
#include "sim/replay.h"

/* `equal`: the card does what the simulated device does with the card's addresses. `verify`: every
 * byte of every block is checked. */
enum cells_task { CELLS_EQUAL, CELLS_VERIFY };

struct cell {
    const char *policy, *workload; /* specs */
    bool recorded;                 /* the workload is a file */
    bool good;                     /* an earlier run, or this one, found it so */
    char *name;                    /* "torch gradient_tape ordered", owned */
};

struct cells_list {
    struct cell *cells;
    size_t count;
    char **files; /* the recordings, owned */
    size_t file_count;
};

/* What is asked for. NULL and 0: all. */
struct cells_wish {
    enum cells_task task;
    const char *policies_like, *workloads_like;     /* extended regular expressions */
    const char *const *policies, *const *workloads; /* named ones, in place of all there are */
    size_t policy_count, workload_count;
    const char *capacity; /* as in a spec: "8GiB" */
    const char *resume;   /* the file of lines, or NULL */
    uint64_t limit_s;     /* of one cell */
    unsigned jobs;        /* processes */
};

/* The cells, those of one workload together. INVALID for a bad expression or none left. */
enum ar_status cells_list_make(const struct cells_wish *wish, struct cells_list *out,
                               struct ar_error *error);
void cells_list_close(struct cells_list *list);

/* What a process says of a cell, as bytes from one copy of this program to another. */
struct cell_answer {
    uint64_t cell;
    uint32_t good;
    uint32_t skipped; /* the device cannot run it */
    uint32_t spent;   /* the driver has failed in that process: it can do no more */
    char text[500];   /* "130 placements, 196 driver calls", or what is wrong */
};

/* One process's context and what it keeps from cell to cell. */
struct cells_runner;

/* Opens the card. MISSING with a sentence where there is none. The caller closes it. */
enum ar_status cells_runner_open(const struct cells_wish *wish, struct cells_runner **out,
                                 struct ar_error *error);
const char *cells_runner_card(const struct cells_runner *runner);
void cells_runner_close(struct cells_runner *runner);

/* Removes the files of a process that has ended, however it did. */
void cells_runner_clean(pid_t process);

/* Runs one cell. Never fails: what goes wrong is the answer. */
void cells_runner_run(struct cells_runner *runner, const struct cell *cell,
                      struct cell_answer *answer);

/* One replay with all that is compared. */
struct cell_tape {
    struct replay_row *rows;
    size_t row_count, row_room;
    struct cell_call *calls;
    size_t call_count, call_room;
    struct replay_result result;
};

struct cell_call {
    uint64_t event, bytes;
    enum ar_device_call call;
    bool refused;
};

/* Plays the trace, which is rewound, with a fresh policy on a fresh device. Where `tape` has room
 * to keep rows and calls (`keep`) it gets them. */
enum ar_status cell_play(const char *policy, const char *device, struct trace_source *trace,
                         enum replay_frees frees, bool verify, bool keep, struct cell_tape *tape,
                         struct ar_error *error);
void cell_tape_close(struct cell_tape *tape);

/* Writes into `text` what differs, "" where nothing does. */
void cell_compare(const struct cell_tape *card, const struct cell_tape *sim, char *text,
                  size_t text_bytes);

/* Runs all cells that are not good yet, prints a line for each as it ends, also into the file of
 * the wish. The exit status of the program. */
int cells_crew_run(const struct cells_wish *wish, struct cells_list *list);
