/* Memory that policies need for a workload:
 * cc peaks.c $(pkg-config --cflags --libs allocrig) && ./a.out embedding torch vmm */
#include <allocrig.h>
#include <inttypes.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    struct ar_library *library = NULL;
    struct ar_experiment *experiment = NULL;
    struct ar_results *results = NULL;
    struct ar_error error = {{0}};
    enum ar_status status = ar_library_open(&library, &error);
    AR_THEN(status, ar_experiment_open(library, &experiment, &error));
    for (int i = 1; i < argc && !status; i++)
        status = ar_experiment_set(experiment, i == 1 ? "workload" : "policy", argv[i], &error);
    AR_THEN(status, ar_experiment_run(experiment, &results, &error));
    for (size_t i = 0; !status && i < ar_results_count(results); i++) {
        struct ar_row row;
        struct ar_value peak;
        status = ar_results_row(results, i, &row, sizeof row, &error);
        AR_THEN(status, ar_results_metric(results, i, "peak_physical_bytes", &peak, &error));
        if (!status)
            printf("%s %" PRIu64 " %s\n", row.policy, peak.integer,
                   row.passed ? "passed" : row.cause);
    }
    if (status)
        fprintf(stderr, "%s\n", error.text);
    ar_results_close(results);
    ar_experiment_close(experiment);
    ar_library_close(library);
    return ar_status_exit(status);
}
