/* The small files of the program: the first byte says which reader takes the rest. Each is read, or
 * refused with a sentence. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "allocators/base/size.h"
#include "bench/regress/result_set.h"
#include "bench/regress/verdict.h"
#include "bench/report/model.h"
#include "bench/report/run_output.h"
#include "bench/suite/progress.h"
#include "bench/suite/tenants_suite.h"
#include "sim/bounds/bounds.h"
#include "sim/sim_device/state.h"
#include "tests/fuzz/target.h"
#include "workloads/formats/torch/sidecar.h"

static enum ar_status read_plan(const char *path, struct ar_error *error)
{
    struct plan_file plan;
    enum ar_status status = plan_file_read(&plan, path, error);
    plan_file_close(&plan);
    return status;
}

static enum ar_status read_addresses(const char *path, struct ar_error *error)
{
    struct sim_addresses addresses;
    enum ar_status status = sim_addresses_open(&addresses, path, AR_GIB, 2 * AR_MIB, 512, 1, error);
    if (!status)
        sim_addresses_close(&addresses);
    return status;
}

static enum ar_status read_waivers(const char *path, struct ar_error *error)
{
    const struct waiver_case worse = {.metric = "slowdown",
                                      .policy = "torch:a=1",
                                      .workload = "x.csv",
                                      .workload_name = "x",
                                      .change = 0.1};
    struct waivers waivers;
    enum ar_status status = waivers_read(&waivers, path, error);
    waivers_expire(&waivers, "2026-06-15");
    (void)waivers_find(&waivers, &worse);
    waivers_close(&waivers);
    return status;
}

static enum ar_status read_tenants(const char *path, struct ar_error *error)
{
    struct tenants_suite suite;
    enum ar_status status = tenants_suite_read(path, &suite, error);
    tenants_suite_close(&suite);
    return status;
}

static enum ar_status read_model(const char *path, struct ar_error *error)
{
    struct model_result result;
    return model_result_read(path, &result, error);
}

static enum ar_status read_calls(const char *path, struct ar_error *error)
{
    struct call_list calls;
    enum ar_status status = calls_csv_read(path, &calls, error);
    call_list_close(&calls);
    return status;
}

static enum ar_status read_results(const char *path, struct ar_error *error)
{
    struct result_set set;
    enum ar_status status = result_set_read(&set, path, error);
    for (size_t i = 0; !status && i < set.row_count; i++) {
        (void)result_row_least_far(&set.rows[i]);
        for (int metric = 0; metric < METRIC_COUNT; metric++)
            (void)result_row_differs(&set.rows[i], (enum metric)metric);
        (void)result_row_ends_apart(&set.rows[i]);
    }
    result_set_close(&set);
    return status;
}

static bool take(void *argument, uint64_t run, const void *payload, size_t bytes)
{
    uint64_t *sum = argument;
    *sum += run;
    for (size_t i = 0; i < bytes; i++)
        *sum += ((const unsigned char *)payload)[i];
    return true;
}

static enum ar_status read_journal(const char *path, struct ar_error *error)
{
    uint64_t sum = 0;
    struct journal journal;
    enum ar_status status = journal_open(&journal, path, 1, take, &sum, error);
    if (!status)
        journal_close(&journal, false);
    return status;
}

static enum ar_status read_sidecar(const char *path, struct ar_error *error)
{
    static struct trace_info info;
    struct sidecar sidecar = {0};
    struct trace_stats stats = {0};
    info = (struct trace_info){0};
    enum ar_status status = sidecar_read(path, &info, &sidecar, error);
    sidecar_close(&sidecar);
    if (!status)
        status = sidecar_stats_read(path, &stats, error);
    trace_stats_close(&stats);
    return status;
}

static enum ar_status (*const readers[])(const char *path, struct ar_error *error) = {
    read_plan,  read_addresses, read_waivers, read_tenants, read_model,
    read_calls, read_results,   read_journal, read_sidecar,
};

#define COUNT (sizeof readers / sizeof *readers)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char path[64], beside[64];
    struct ar_error error = {""};
    if (bytes < 1 || data[0] < '0' || data[0] - '0' >= (int)COUNT)
        return 0;
    snprintf(path, sizeof path, "/tmp/allocrig-fuzz-%ld.csv", (long)getpid());
    snprintf(beside, sizeof beside, "/tmp/allocrig-fuzz-%ld.json", (long)getpid());
    bool is_beside = readers[data[0] - '0'] == read_sidecar;
    FILE *file = fopen(is_beside ? beside : path, "wb");
    if (!file || fwrite(data + 1, 1, bytes - 1, file) != bytes - 1 || fclose(file))
        abort();
    if (readers[data[0] - '0'](path, &error) && !error.text[0])
        abort();
    (void)unlink(is_beside ? beside : path);
    return 0;
}
