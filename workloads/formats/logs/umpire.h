/* Umpire's replay log in a SQLite database, for the reader of such files. */
#ifndef WORKLOADS_FORMATS_LOGS_UMPIRE_H
#define WORKLOADS_FORMATS_LOGS_UMPIRE_H

#include "workloads/formats/formats.h"
#include "workloads/io/sqlite_file.h"

extern const struct format_reader format_umpire;

/* Reads the table EVENTS, which must exist, and says in `reading` what format it is. */
enum ar_status umpire_read_database(struct format_reading *reading, struct sqlite_file *file,
                                    struct ar_error *error) AR_STATUS_CHECKED;

#endif
