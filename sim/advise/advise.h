/* Which settings would let a recorded program run in less memory, and what they cost.
 *
 * 1. The recording is compared with the policy that imitates its allocator
 *    (sim/fidelity/fidelity.h). Where the program released its cache, that is put into the trace:
 *    it would do so under any setting. Memory that the allocator gave back under pressure is told
 *    from that.
 * 2. The recorder's own framework comes first: what was recorded, the defaults, every setting that
 *    a user can change, and their pairs; other policies apart.
 * 3. Each is replayed with all of the card (peaks), and at the capacity in question (does it fit,
 *    how much slower). Then the lowest capacity above which all that were tried pass is looked for
 *    (trial_safe). A pair is looked at further only where it does with 1 % less than the better
 *    half.
 * 4. Own settings and other policies are each ranked by that capacity, then by slowdown; those that
 *    take more than twice the time come last.
 * 5. A trace that ends in a failure holds only what came before: live bytes of its completed steps
 *    are found for it, and nothing is said of the rest. */
#ifndef SIM_ADVISE_ADVISE_H
#define SIM_ADVISE_ADVISE_H

#include "sim/advise/candidates.h"
#include "sim/advise/peak.h"
#include "sim/advise/recording.h"
#include "sim/advise/trial.h"
#include "sim/fidelity/fidelity.h"

struct advise_config {
    struct trace_source *source;  /* opened with trace_open_recording where it is a file */
    const struct ar_spec *device; /* its capacity does not count */
    uint64_t capacity_bytes;      /* in question; 0: what was recorded, or the device's */
    bool as_limit;                /* it is a limit that the program sets for itself */
    bool card_asked;              /* without a capacity: the device's card, whatever was recorded */
    enum replay_frees frees;
    enum replay_host host;
    uint64_t seed;
    unsigned jobs;
    /* Optional: how far it is, never called twice at once. */
    void (*tried)(void *argument, size_t done, size_t total);
    void *tried_argument;
};

enum advise_fidelity { ADVISE_NOT_RECORDED, ADVISE_AGREES, ADVISE_DIFFERS, ADVISE_NOT_HELD };

struct advise_row {
    struct candidate candidate;
    struct trial alone;   /* with all of the card */
    struct trial at;      /* at the capacity in question */
    uint64_t safe_bytes;  /* 0: not looked for, or none up to four times the live peak */
    double safe_slowdown; /* at that capacity; 0: not known */
    bool listed;          /* false: a pair that is no better than its halves */
};

struct advise_result {
    enum advise_fidelity fidelity;
    struct fidelity_difference difference;
    char fidelity_why[256];   /* NOT_HELD */
    size_t releases;          /* of its cache by the program */
    size_t start_blocks;      /* that were there before a recording that begins in the middle */
    const char *framework;    /* whose settings are tried; NULL: none */
    uint64_t survived;        /* requests that were not served, and the program went on */
    struct pressure pressure; /* it ran as in so much memory, which it does not tell of */
    char given[CANDIDATE_SPEC_ROOM];       /* the recorded setting */
    uint64_t recorded_peak_reserved_bytes; /* 0: not known */
    uint64_t capacity_bytes;
    bool as_limit;
    bool timed;    /* slowdowns are known: the trace holds kernels, or host times pass */
    bool complete; /* false: the program died, as the recording says */
    bool has_failed_request;
    uint64_t failed_event, failed_bytes; /* of that request */
    uint64_t tries, tries_most_bytes;    /* requests that a library tries out; the largest */
    struct holders peak;                 /* what was live at the live peak */
    struct holders step;                 /* the same within the completed steps, if any */
    struct advise_row *rows;             /* the listed ones first, ranked, own before others */
    size_t count, own_count;             /* listed; and of them the recorder's own */
    size_t tried;                        /* rows in all */
};

/* INVALID where the trace is adaptive. */
enum ar_status advise_run(const struct advise_config *config, struct advise_result *result,
                          struct ar_error *error) AR_STATUS_CHECKED;
/* Only what one setting would do: with `policy` (its own limit counts) at that capacity, 0 for all
 * of the card, from a recording made ready as above. */
enum ar_status advise_predict(const struct advise_config *config, const char *policy,
                              uint64_t capacity_bytes, struct trial *out,
                              struct ar_error *error) AR_STATUS_CHECKED;
void advise_result_close(struct advise_result *result);

/* Whether a row fits at the capacity in question. */
enum advise_fit { ADVISE_FITS, ADVISE_FITS_NOT, ADVISE_UNSURE };
enum advise_fit advise_fits(const struct advise_row *row);

/* The row to take: of the recorder's own that fit, the recorded one if it does; else the single
 * setting with the least slowdown at the capacity in question; else the pair. NULL: none fits. */
const struct advise_row *advise_best(const struct advise_result *result);

/* How well one recorded setting is predicted from another: the same program, recorded under
 * both. */
struct whatif {
    /* Requests of both recordings; those that only one of them holds, as sizes go. */
    uint64_t requests_from, requests_to, only_from, only_to;
    struct trial predicted; /* `to`'s setting and limit, over what `from` asks for */
    bool recorded_passed;
    bool has_peak;
    uint64_t recorded_peak_reserved_bytes;
    char spec[1024]; /* of `to` */
};

/* `config` has the recording that is predicted from; its capacity is not used. */
enum ar_status whatif_predict(const struct advise_config *config, struct trace_source *to,
                              struct whatif *out, struct ar_error *error) AR_STATUS_CHECKED;

#endif
