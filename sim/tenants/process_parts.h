/* What the frameworks' halves of process.h share. */
#ifndef SIM_TENANTS_PROCESS_PARTS_H
#define SIM_TENANTS_PROCESS_PARTS_H

#include "sim/tenants/process.h"

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

#endif
