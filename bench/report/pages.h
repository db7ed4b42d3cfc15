/* What `explain` prints: a failure taken apart, or an out-of-memory message, as a page for a reader
 * or as JSON of the schema allocrig.explain/1. In the JSON bytes are bytes, and what is not known
 * or has no limit is null. */
#pragma once

#include "bench/report/data_writer.h"
#include "bench/statistics/statistics.h"
#include "sim/advise/advise.h"
#include "sim/advise/fits.h"
#include "sim/drift/drift.h"
#include "sim/experiment/recorded_card.h"
#include "sim/explain/explain.h"
#include "sim/explain/message.h"
#include "sim/tenants/tenants.h"
#include "workloads/trace/inspect.h"
#include "workloads/trace/source.h"

struct explain_page {
    const char *workload, *policy;
    enum replay_frees frees;
    const struct explain_result *result;
    const struct recorded_card *card;
    bool as_driver;     /* segments lie where the driver of a card puts them */
    bool caught;        /* the request failed in the recording, and the program went on */
    bool lacks_history; /* a snapshot of the blocks at one moment */
};

/* HOST_MEMORY. */
enum ar_status explain_page_print(FILE *stream, const struct explain_page *page,
                                  struct ar_error *error);

/* `runs`, one for each way to free that was examined: begin, any number of runs, end. */
void explain_json_begin(struct json_writer *json, FILE *stream);
void explain_json_run(struct json_writer *json, const struct explain_page *page);
void explain_json_end(struct json_writer *json);

/* What a message says and why the request failed. `more`: the text continues past what was read. */
void message_page_print(FILE *stream, const struct message *message, bool more);

/* What the cause means for this message. */
const char *message_page_meaning(const struct message *message);
void explain_json_message(FILE *stream, const struct message *message);

/* Writes into `line` what to try, by cause, framework and platform: sentences. Returns `line`. */
const char *message_page_advice(const struct message *message, char *line, size_t line_bytes);

/* The limit that a program set for itself, as PyTorch's messages print it. */

/* Advice as pages for a reader, and as JSON. */

/* One trace. */
struct advise_page {
    const char *name, *path;
    const char *recorder, *format;
    enum replay_frees frees;
    const struct advise_result *result;
    struct trace_source *source;
    bool traced;         /* by the tracer, without a card */
    char *const *wanted; /* specs of rows that the table shows in any case */
    size_t wanted_count;
};

enum ar_status advise_page_print(FILE *stream, const struct advise_page *page,
                                 struct ar_error *error);

/* That a trace was made for another card than the one in question, if it was: libraries choose
 * kernels and workspaces by the card. */
void advise_page_other_card(FILE *stream, const struct trace_info *info,
                            const struct advise_result *result);

/* What ? in a table means, if an own setting has it. */
void advise_page_unsure(FILE *stream, const struct advise_result *result);

/* How sure the answer is: what the recording shows, and what is assumed. */
void advise_page_sure(FILE *stream, const struct advise_page *page);

/* yes, no or ?: the text in a table. */
const char *advise_page_fit(enum advise_fit fit);

/* What a user sets for a row: an environment variable, or "the default settings of PyTorch". */
const char *advise_page_setting(const struct advise_row *row);
/* The defaults of PyTorch, for which nothing is set. */
bool advise_page_is_default(const struct advise_row *row);
/* The same for a sentence: a setting longer than a line has its name of the table. */
const char *advise_page_brief(const struct advise_row *row);

/* The live peak with probes, in parentheses after a space; "" without probes at it. */
const char *advise_page_probed(const struct holders *peak, char text[64]);
/* Its spec with blanks at which a line can be broken; PyTorch's settings without its name. */
void advise_page_name(const struct advise_row *row, char *out, size_t room);

/* Several traces of one program: its ranks. Each setting needs what the worst of them needs. */
enum ar_status advise_page_ranks(FILE *stream, const struct advise_page *pages, size_t count,
                                 struct ar_error *error);

/* Two traces of one program with these batch sizes: the largest batch at the capacity in question,
 * by a curve through both (sim/advise/advise.h). INVALID if nothing grows. */
enum ar_status advise_page_batches(FILE *stream, const struct advise_page *pages,
                                   const uint64_t batches[2], struct ar_error *error);

/* One object of the schema allocrig.advise/1; `batches`: of the two traces, or NULL. */
enum ar_status advise_json_write(FILE *stream, const struct advise_page *pages, size_t count,
                                 const uint64_t *batches, struct ar_error *error);

/* Its key `batches`: what advise_page_batches prints. */
struct json_writer;
enum ar_status advise_json_batches(struct json_writer *json, const struct advise_page *pages,
                                   const uint64_t batches[2], struct ar_error *error);

/* `advise --what-if`: a prediction and the recording of the same setting, as a row of a Markdown
 * table. */
struct whatif_line {
    const char *program, *from, *to; /* the settings' names */
    const struct whatif *whatif;
    bool has_retries;
    uint64_t recorded_retries;
};

void whatif_page_head(FILE *stream);
void whatif_page_line(FILE *stream, const struct whatif_line *line);

/* The answer of `drift` as a page for a reader, as JSON, and its series as CSV. */

/* Two allowances, unless the recording repeats itself:
 * 1. What makes a recording grow may be rare steps, which it has once or twice, and of which the
 *    next are of other sizes. New extremes of independent steps come with probability 1 / t in step
 *    t, so the upper end of a level allows for as much growth with each tenfold of the steps as
 *    there was in the last tenfold of the recording.
 * 2. A growth that was not seen in n runs has a probability of 1 / (n + 2) in a further one
 *    (Laplace). With fewer runs than DRIFT_SURE_RUNS that is above 1 - TREND_LEVEL: the upper end
 *    of the drift allows for one more growth in the last half, where the slope is steepest,
 *    1.5 times the growth over the half. Its size is the mean of growths over the last nine tenths
 *    of the recorded steps, or over the drawn ones.
 * And if reserved memory falls in no run, it is taken never to fall. */
#define DRIFT_SURE_RUNS 9

/* Reserved bytes after a number of steps, in MiB, of the runs that got there. */
struct drift_level {
    uint64_t step;
    size_t runs;
    struct trend_interval reserved, live;
};

/* What the runs of one policy say together. */
struct drift_answer {
    const char *policy;
    const struct drift_run *runs; /* a run for each seed */
    size_t run_count;
    struct drift_level levels[DRIFT_DECADES + 1]; /* after 1, 10, 100, ... and all steps */
    size_t level_count;
    struct trend_interval per_million; /* MiB in 10^6 steps, over the last half */
    struct trend_interval per_day;     /* if the duration of a step is known */
    double p;                          /* of the test for a trend */
    size_t half_samples;               /* that the test had of each run */
    bool has_trend;
    size_t failed_runs;
    struct trend_interval failed;    /* probability */
    uint64_t retries;                /* of all runs */
    double live_per_million, live_p; /* the same of live bytes, which the program determines */
};

struct drift_page {
    const struct trace_info *info; /* of the recording */
    const struct learned_model *model;
    uint64_t steps, capacity_bytes;
    struct drift_answer *answers;
    size_t answer_count;
};

/* Fills the rest of `out`, whose policy and runs are set, for runs of `steps` steps. */
enum ar_status drift_answer_find(const struct learned_model *model, uint64_t steps,
                                 struct drift_answer *out, struct ar_error *error);

enum ar_status drift_page_print(FILE *stream, const struct drift_page *page,
                                struct ar_error *error);
void drift_json_write(struct json_writer *json, const struct drift_page *page);
void drift_series_write(FILE *stream, const struct drift_page *page);

/* The answer of `fits` as one page for a reader, and as JSON. */

/* The reserved bytes under the first row's setting, of all seeds. */
struct fits_spread {
    uint64_t seeds, least_bytes, most_bytes;
};
void fits_spread_add(struct fits_spread *self, uint64_t reserved_bytes);

/* The search for the largest value of a parameter, under the program's own setting and under
 * expandable segments. */
#define FITS_SETTINGS 2
struct fits_vary {
    char name[64]; /* "": there was no search */
    uint64_t low, high, runs;
    uint64_t value;                /* of the page */
    bool is_argument;              /* the command has {NAME} */
    bool has_no_effect;            /* low and high take the same memory */
    size_t settings;               /* that were searched */
    uint64_t fits[FITS_SETTINGS];  /* the largest that fits; 0: none */
    uint64_t fails[FITS_SETTINGS]; /* the least that does not; high + 1: none */
};

struct fits_page {
    const struct trace_info *info;
    const struct advise_result *advice;
    struct trace_source *source;
    enum replay_frees frees;
    enum replay_host host;
    const struct fits_notes *notes;
    struct fits_spread spread;
    const struct fits_vary *vary;
};

/* MODULE:OPERATOR, or "-"; if it is long, the end of the module and, in a line of its own, the
 * beginning of the operator. */
struct table;
void page_tag_cell(struct table *table, const char *tag);

/* Whether a row fits at the capacity in question. */
bool fits_page_fits(const struct fits_page *page);

enum ar_status fits_page_print(FILE *stream, const struct fits_page *page, struct ar_error *error);

/* What is known of the largest value, in place of a page; nothing if no trace was made. */
void fits_page_ended(FILE *stream, const struct fits_vary *vary);

/* One of the answers in a document of the schema allocrig.fits/1. */
struct json_writer;
void fits_json_write(struct json_writer *json, const struct fits_page *page);

/* The outcomes of several processes on one machine, as tables and as CSV. */

struct tenants_page {
    const char *title;
    const struct tenant_setup *setups;
    size_t count;
    size_t replicates;
    const struct tenant_result *results; /* replicates x count, one replicate after the other */
    bool real;                           /* on a card */
    bool wide;                           /* with columns that do not fit 80 letters */
    const struct tenant_result *alone;   /* each process run alone; NULL: not known */
};

/* One replicate: a row for each process. Several: the number of times of each outcome, and
 * ranges. */
enum ar_status tenants_page_print(FILE *stream, const struct tenants_page *page,
                                  struct ar_error *error);

/* The names of the columns, and the rows of one replicate: one for each process. */
void tenants_csv_head(FILE *stream);
void tenants_csv_replicate(FILE *stream, const struct tenants_page *page, size_t replicate);

/* The outcomes of all in one replicate: "A passed; B failed at step 3: tenant". */
void tenants_outcome_text(const struct tenants_page *page, size_t replicate, char *text,
                          size_t room);

/* Traces for a reader: what a trace holds, and what the import of another program's file found. */

/* 80 columns wide. Errors show in the stream. */
void trace_page_print(FILE *stream, const struct trace_info *info, const struct inspect *inspect);

/* Nothing for a source without an import report. `path`: the name of the file. Reads the source
 * once and leaves it at its first event. Errors of printing show in the stream. */
enum ar_status import_page_print(FILE *stream, const char *path, struct trace_source *source,
                                 struct ar_error *error);

/* Which card a page is about, as sentences. */

/* Prints where the capacity is from (nothing if it was asked for). `profile` names the device. */
void card_sentence_print(FILE *stream, const struct recorded_card *card, const char *profile);

/* Prints whose driver costs are charged; nothing if `costs_of` is "": the card's own. */
void card_costs_print(FILE *stream, const char *costs_of);

/* The word for JSON: asked, limit, driver, total, name, unknown. */
const char *card_source_name(enum recorded_card_source source);
