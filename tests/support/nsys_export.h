/* Makes exports in the form of Nsight Systems, for tests: SQL in, a database file out. */
#ifndef TESTS_SUPPORT_NSYS_EXPORT_H
#define TESTS_SUPPORT_NSYS_EXPORT_H

/* The tables of an export of 2024, without events: enumerations, the version, one card. */
extern const char nsys_export_2024[];

/* Makes the database `path` of the statements, from scratch. A failure stops the test. */
void nsys_export_make(const char *path, const char *const *statements);

#endif
