/* Opens the workload that a user names: a file, or a generator's spec. */
#pragma once

#include "workloads/trace/source.h"

/* `text` is a path if a file of that name exists, or if it contains a slash or a known file ending;
 * else a generator's spec. INVALID suggests the nearest name, or the file of a recording in
 * workloads/data/. The caller closes it.
 *
 * "PATH:device=N" is one GPU of a file of several; " gpuN" is added to the name of its trace. */
enum ar_status workload_open(const char *text, struct trace_source **out, struct ar_error *error);

/* The same with trace_open_recording. */
enum ar_status workload_open_recording(const char *text, struct trace_source **out,
                                       struct ar_error *error);

/* Puts `text` before an error of what the workload holds, unless the error names it, or the trace
 * (`source`, or NULL). Returns the status. */
enum ar_status workload_named(const char *text, const struct trace_source *source,
                              enum ar_status status, struct ar_error *error);

/* The same for a caller that can serve one GPU only: INVALID if the workload has several. */
enum ar_status workload_open_single(const char *text, struct trace_source **out,
                                    struct ar_error *error);

/* A workload by GPU. Each GPU has an allocator of its own, so a file with requests of several GPUs
 * is as many workloads. */
struct workload_choice {
    const uint32_t *gpu; /* this GPU only; NULL: all, one after the other */
    bool recording;      /* see trace_open_recording */
};

/* A workload, or one GPU of it. */
struct workload_part {
    const char *text;            /* opens it again; valid until the function returns */
    struct trace_source *source; /* closed after the call; to keep it, set NULL here */
    bool several;                /* the workload has more than one part */
};

typedef enum ar_status workload_take(void *argument, struct workload_part *part,
                                     struct ar_error *error);

/* Passes the workload to `take`, or its GPUs one after the other by their numbers; ends at the
 * first error, which names the workload. INVALID also if a GPU cannot be selected by its number. */
enum ar_status workload_each(const char *text, const struct workload_choice *choice,
                             workload_take *take, void *argument, struct ar_error *error);

/* The number in "PATH:device=N"; NULL: `text` names all of a workload. */
const char *workload_gpu_of(const char *text);

/* Whether `text` is nothing but digits: the number of a GPU. */
bool workload_is_gpu(const char *text);
/* INVALID if it is too large. */
enum ar_status workload_gpu_parse(const char *text, uint32_t *gpu, struct ar_error *error);
