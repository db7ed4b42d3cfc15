/* Runs as JUnit XML, which services for continuous integration show: a suite for each workload and
 * device, a case for each run. */
#ifndef BENCH_REPORT_JUNIT_XML_H
#define BENCH_REPORT_JUNIT_XML_H

#include <stddef.h>
#include <stdio.h>

#include "bench/report/run_record.h"

/* A run that did not finish is a failure, one whose process died or took too long an error, one
 * that the device cannot serve is skipped. `name`: of the suite file, or NULL. */
void junit_xml_write(FILE *stream, const char *name, const struct run_record *records,
                     size_t count);

/* Writes a text as it stands in an attribute: what XML cannot hold becomes U+FFFD. */
void xml_text(FILE *stream, const char *text);

#endif
