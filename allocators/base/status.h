/* What became of a call, for the whole project: one list of statuses, and one
 * sentence for people beside it. Libraries return these; only main prints. */
#ifndef ALLOCATORS_BASE_STATUS_H
#define ALLOCATORS_BASE_STATUS_H

/* name, number (stable: it may be stored), what it means.
 * NO_MEMORY and REFUSED are outcomes that a run counts; the rest stop it. */
#define STATUS_LIST(X)                                                                             \
    X(OK, 0, "done")                                                                               \
    X(NO_MEMORY, 1, "the policy cannot serve the request")                                         \
    X(REFUSED, 2, "the device refused memory")                                                     \
    X(UNSUPPORTED, 3, "not offered here")                                                          \
    X(INVALID, 4, "bad usage or input")                                                            \
    X(CORRUPT, 5, "an internal fault was found")                                                   \
    X(HOST_MEMORY, 6, "the host has no memory left")                                               \
    X(IO, 7, "a file cannot be read or written")                                                   \
    X(FORMAT, 8, "a file does not hold what it should")                                            \
    X(MISSING, 9, "no such device or component")                                                   \
    X(NEGATIVE, 10, "the answer is no")

enum status {
#define X(name, number, text) STATUS_##name = number,
    STATUS_LIST(X)
#undef X
};

/* The sentence that goes with a status other than OK: what, where, what to do. */
struct error {
    char text[1024];
};

/* Writes the sentence into `error` (may be NULL) and returns `status`, so that a
 * failing function can end with `return error_set(...)`. Later calls overwrite. Control
 * bytes and what is no UTF-8 stand there as \xNN, wherever they come from. */
enum status error_set(struct error *error, enum status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "prefix: " before the sentence that is already there. Returns `status`. */
enum status error_prefix(struct error *error, enum status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

const char *status_name(enum status status);    /* "NO_MEMORY" */
const char *status_meaning(enum status status); /* "the policy cannot ..." */

/* The exit status of the program for it: 0 done, 1 the answer is no, 2 bad usage
 * or input, 3 missing device or component, 4 internal fault. */
int status_exit(enum status status);

#define STATUS_CHECKED __attribute__((warn_unused_result))

#endif
