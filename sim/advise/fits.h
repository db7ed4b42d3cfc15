/* What `fits` answers about a program that was traced and never ran on the card.
 *
 * 1. `advise` ranks the settings of the allocator. The program's own setting is shown, and up to
 *    three that need less.
 * 2. A card serves a setting if its usable bytes, which are without the context of a process, and
 *    without what the driver takes for the kernels of the program, are at least the safe capacity.
 * 3. The tracer (workloads/record/tracer) notes what it does not know. Sizes may depend on data
 *    that was not computed and was drawn: the caller traces several seeds. A kernel may take memory
 *    of its own: between two bounds that the tracer states, or, if the tracer does not know the
 *    operator, between nothing and the mean size of its outputs. Such memory is freed at the end of
 *    the kernel, so only the kernel that takes most counts. */
#pragma once

#include "sim/advise/advise.h"

struct sim_profile;

enum fits_note_kind {
    FITS_DRAWN,
    FITS_OUTSIDE_TABLE,
    FITS_UNSURE,
    FITS_RULE,
    FITS_RAISED,
    FITS_NOTE_KINDS
};

/* The word in the trace and in JSON. */
const char *fits_note_name(enum fits_note_kind kind);

/* "!,traced,KIND,NAME,COUNT[,BYTES[,BYTES]]" */
struct fits_note {
    enum fits_note_kind kind;
    char name[128];
    uint64_t count;
    uint64_t bytes; /* OUTSIDE_TABLE: of all outputs; UNSURE: least of a kernel; RULE: in all */
    uint64_t most_bytes; /* UNSURE */
    uint64_t more_bytes; /* that one kernel may take beyond what the trace has */
};

struct fits_notes {
    bool traced; /* by the tracer */
    char versions[64];
    char measured[64];    /* the release of which the kernels' own memory was measured; "": this */
    char refusal[256];    /* the tracer cannot trace the program; "": it can */
    struct fits_note *at; /* by kind, then by more_bytes, descending */
    size_t count, room;
    uint64_t more_bytes;    /* the most */
    uint64_t largest_bytes; /* the largest request for memory of a card, ... */
    char largest[128];      /* ... and its line, else its tag: "train.py:3", "empty" or "" */
    struct recorded_driver driver;
};

/* Reads the notes of a trace. If the trace does not name its recorder, but the versions do, sets
 * the recorder, so that the settings of that framework are tried. The caller closes `out`. */
enum ar_status fits_notes_read(struct trace_source *source, struct fits_notes *out,
                               struct ar_error *error);
void fits_notes_close(struct fits_notes *self);

#define FITS_ROWS_MOST 5

/* Whether a row fits. That it cannot be told is the word of `advise`; so is that all above the safe
 * bytes pass. */
enum advise_fit fits_row_fit(const struct advise_result *advice, const struct advise_row *row);

/* The rows of the page: the program's own setting, the defaults if these are others, and the best
 * three that need less, those that fit first. Of several values of a key that make no difference
 * the first. Returns their number. */
size_t fits_rows(const struct advise_result *advice, const struct advise_row *rows[FITS_ROWS_MOST]);

/* What a card has for the allocator: without the context of the process and without what the driver
 * takes for the kernels; at least a page. */
uint64_t fits_usable_bytes(const struct fits_notes *notes, const struct sim_profile *card);

/* The NVIDIA card of the built-in profiles with the least memory that serves a safe capacity.
 * False: none does. */
bool fits_smallest_card(uint64_t safe_bytes, const struct fits_notes *notes,
                        struct sim_profile *out);

/* The setting under which the program ran: the recorded one, else the defaults. Returns `text`. */
const char *fits_own_spec(const struct trace_info *info, char text[CANDIDATE_SPEC_ROOM]);
