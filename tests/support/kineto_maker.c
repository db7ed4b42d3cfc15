/* Kineto traces of any size, made from a seed.
 *
 * What: host operations with what the profiler writes of them, each with a kernel, its launch and
 * the arrow between them; memory events among them; a step now and then. Kernels bear names of 30
 * to 2000 bytes, as templates do. How: live blocks stand in an array; a memory event makes one or
 * frees one drawn from it. */
#include "tests/support/kineto_maker.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "allocators/base/rng.h"

#define LIVE_LIMIT    512
#define STEP_EVERY    1000
#define FIRST_NS      INT64_C(4955438200000000)
#define FIRST_ADDRESS UINT64_C(140698512556032)
#define LONGEST_NAME  2000
#define EVENT_TEXT    512

struct making {
    FILE *file;
    const struct kineto_making *wanted;
    struct kineto_made *made;
    struct ar_rng rng;
    int64_t now_ns;
    uint64_t written, operations, next_address;
    struct {
        uint64_t address, bytes;
    } live[LIVE_LIMIT];
    size_t live_count;
    char held[EVENT_TEXT]; /* a memory event that waits to change places with the next */
    char name[LONGEST_NAME + 1];
};

__attribute__((format(printf, 2, 3))) static void put(struct making *making, const char *format,
                                                      ...)
{
    va_list list;
    va_start(list, format);
    int count = vfprintf(making->file, format, list);
    va_end(list);
    if (count < 0) {
        perror("kineto_maker");
        abort();
    }
    making->written += (uint64_t)count;
}

/* Microseconds with three decimals. */
static const char *time_text(int64_t ns, char text[32])
{
    (void)snprintf(text, 32, "%" PRId64 ".%03d", ns / 1000, (int)(ns % 1000));
    return text;
}

static void put_operation(struct making *making)
{
    static const char *const names[] = {"aten::addmm",
                                        "aten::empty",
                                        "aten::copy_",
                                        "aten::to",
                                        "autograd::engine::evaluate_function: AddmmBackward0",
                                        "Optimizer.step#Adam.step"};
    char text[32];
    uint64_t duration = ar_rng_between(&making->rng, 900, 90000);
    put(making,
        "  {\n    \"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"%s\", \"pid\": 4473, \"tid\": "
        "4501,\n    \"ts\": %s, \"dur\": %" PRIu64 ".%03d,\n    \"args\": {\n      \"External "
        "id\": %" PRIu64 ",\"Record function id\": 0, \"Ev Idx\": %" PRIu64 "\n    }\n  },\n",
        names[ar_rng_below(&making->rng, sizeof names / sizeof names[0])],
        time_text(making->now_ns, text), duration / 1000, (int)(duration % 1000),
        making->operations + 1, making->operations);
    making->now_ns += (int64_t)(duration / 8);
}

static void put_kernel(struct making *making)
{
    char started[32], launched[32];
    uint64_t correlation = making->operations + 24;
    size_t length = (size_t)ar_rng_log_uniform(&making->rng, 30, LONGEST_NAME);
    char kept = making->name[length];
    making->name[length] = 0;
    put(making,
        "  {\n    \"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"%s\", \"pid\": 0, \"tid\": 7,\n"
        "    \"ts\": %s, \"dur\": %d.%03d,\n    \"args\": {\n      \"External id\": %" PRIu64
        ",      \"queued\": 0, \"device\": 0, \"context\": 1,      \"stream\": 7, "
        "\"correlation\": %" PRIu64 ",      \"registers per thread\": 44,      \"shared memory\": "
        "0,      \"blocks per SM\": 0.969697,      \"warps per SM\": 7.757576,      \"grid\": "
        "[128, 1, 1],      \"block\": [256, 1, 1]\n    }\n  },\n",
        making->name, time_text(making->now_ns + 20000, started),
        (int)ar_rng_between(&making->rng, 1, 90), (int)ar_rng_below(&making->rng, 1000),
        making->operations, correlation);
    making->name[length] = kept;
    put(making,
        "  {\n    \"ph\": \"f\", \"id\": %" PRIu64 ", \"pid\": 0, \"tid\": 7, \"ts\": %s,\n    "
        "\"cat\": \"ac2g\", \"name\": \"ac2g\", \"bp\": \"e\"\n  },\n  {\n    \"ph\": \"X\", "
        "\"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", \"pid\": 4473, \"tid\": 4501,\n"
        "    \"ts\": %s, \"dur\": 4.120,\n    \"args\": {\n      \"External id\": %" PRIu64
        ",      \"cbid\": 211, \"correlation\": %" PRIu64 "\n    }\n  },\n",
        correlation, started, time_text(making->now_ns, launched), making->operations, correlation);
    making->made->kernels++;
}

static void put_memory(struct making *making)
{
    struct kineto_made *made = making->made;
    char text[EVENT_TEXT], address[48] = "", time[32];
    bool frees =
        making->live_count == LIVE_LIMIT || (making->live_count && ar_rng_below(&making->rng, 2));
    size_t at = frees ? (size_t)ar_rng_below(&making->rng, making->live_count) : making->live_count;
    if (!frees) {
        making->live[at].bytes = ar_rng_between(&making->rng, 1, 4096) * 512;
        making->live[at].address = making->next_address;
        making->next_address += making->live[at].bytes;
        making->live_count++;
    }
    uint64_t bytes = making->live[at].bytes;
    made->allocs += !frees;
    made->frees += frees;
    made->live_bytes += frees ? 0 - bytes : bytes;
    made->peak_bytes = made->live_bytes > made->peak_bytes ? made->live_bytes : made->peak_bytes;
    if (!making->wanted->without_addresses)
        (void)snprintf(address, sizeof address, "\"Addr\": %" PRIu64 ", ",
                       making->live[at].address);
    (void)snprintf(text, sizeof text,
                   "  {\n    \"ph\": \"i\", \"cat\": \"cpu_instant_event\", \"s\": \"t\", "
                   "\"name\": \"[memory]\",\n    \"pid\": 4473, \"tid\": 4501,\n    \"ts\": %s,\n"
                   "    \"args\": {\n      \"Total Reserved\": 0, \"Total Allocated\": %" PRIu64
                   ", \"Bytes\": %s%" PRIu64 ", \"Device Id\": 0, \"Device Type\": 1, %s\"Ev "
                   "Idx\": %" PRIu64 "\n    }\n  },\n",
                   time_text(making->now_ns, time), made->live_bytes, frees ? "-" : "", bytes,
                   address, making->operations);
    making->now_ns += 1000;
    if (frees)
        making->live[at] = making->live[--making->live_count];
    if (making->wanted->shuffled && !making->held[0]) {
        memcpy(making->held, text, sizeof text);
        return;
    }
    put(making, "%s%s", text, making->held);
    making->held[0] = 0;
}

static void put_step(struct making *making)
{
    char text[32];
    put(making,
        "  {\n    \"ph\": \"X\", \"cat\": \"user_annotation\", \"name\": \"ProfilerStep#%" PRIu64
        "\", \"pid\": 4473, \"tid\": 4501,\n    \"ts\": %s, \"dur\": 12.000,\n    \"args\": {\n"
        "      \"Ev Idx\": %" PRIu64 "\n    }\n  },\n",
        making->made->steps++, time_text(making->now_ns, text), making->operations);
    making->now_ns += 13000;
}

void kineto_make(FILE *file, const struct kineto_making *wanted, struct kineto_made *made)
{
    static const char stem[] = "void at::native::vectorized_elementwise_kernel<4, float, "
                               "std::array<char*, 3ul> >::{lambda()#1}::operator()() const, ";
    struct making making = {.file = file,
                            .wanted = wanted,
                            .made = made,
                            .now_ns = FIRST_NS,
                            .next_address = FIRST_ADDRESS};
    *made = (struct kineto_made){0};
    ar_rng_seed(&making.rng, wanted->seed);
    for (size_t i = 0; i < LONGEST_NAME; i++)
        making.name[i] = stem[i % (sizeof stem - 1)];
    put(&making, "\n  {\n    \"schemaVersion\": 1,\n    \"deviceProperties\": [\n    {\n      "
                 "\"id\": 0, \"name\": \"NVIDIA H100 80GB HBM3\", \"totalGlobalMem\": "
                 "85017493504\n    }\n    ],\n  \"displayTimeUnit\": \"ms\",\n  "
                 "\"baseTimeNanoseconds\": 1790857026000000000,\n  \"traceEvents\": [\n");
    uint64_t every = wanted->memory_every ? wanted->memory_every : 16;
    for (; making.written < wanted->bytes || !making.operations; making.operations++) {
        put_operation(&making);
        put_kernel(&making);
        if (making.operations % every == 0)
            put_memory(&making);
        if (making.operations % STEP_EVERY == STEP_EVERY - 1)
            put_step(&making);
    }
    put(&making,
        "%s  {\n    \"name\": \"Record Window End\", \"ph\": \"i\", \"s\": \"g\",\n    \"pid\": "
        "\"\", \"tid\": \"\", \"ts\": %" PRId64 ".000\n  }\n  ],\n  \"traceName\": \"made\"\n}\n",
        making.held, making.now_ns / 1000);
}
