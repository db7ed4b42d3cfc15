/* `make instructions` counts these with callgrind: the engine that replays a mapped binary trace,
 * and pairs of alloc and free among many free blocks. Only functions named `measured_*` are
 * counted. run.sh calls this program, divides and compares.
 *
 *   instructions prepare IN OUT operations|all
 *     writes a trace: allocs and frees only, or everything
 *   instructions replay SPEC TRACE none|exact
 *     one pass to grow the memory, then one counted pass
 *   instructions pairs SPEC FREE_BLOCKS
 *     1000 pairs of 1 KiB among that many separated free blocks
 *   instructions streams SPEC STREAMS
 *     1000 pairs of 12 MiB in turns on that many streams, each with 8 MiB free, while no other
 *     memory is left
 *   instructions size SPEC live|free|streams|pools|segments COUNT
 *     1000 pairs of 1 KiB (of 24 MiB among segments) while there are that many blocks, free blocks,
 *     streams, pools or segments, in turns on the streams and pools
 *   instructions policies
 *     the names of the policies, and whether each is bounded
 *   instructions batch FILE
 *     each line of the file is one of these commands, run in a child process: callgrind starts once
 *     and counts each as if it were alone. After what the command prints comes `ended PID STATUS`
 *
 * Each prints `operations N` for the counted part. */
#include <sys/wait.h>
#include <unistd.h>

/* The header comes with valgrind, which is needed only to count. */
#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#else
#define CALLGRIND_START_INSTRUMENTATION (void)0
#endif

#include "allocators/base/rng.h"
#include "allocators/base/size.h"
#include "allocators/registry.h"
#include "bench/micro/rig.h"
#include "sim/replay.h"
#include "workloads/formats/formats.h"
#include "workloads/trace/trace.h"

enum { PAIRS = 1000 };

/* ---- prepare --------------------------------------------------------------------------------- */

struct preparing {
    struct trace_memory *memory;
    struct trace_source *source;
    bool all;
    uint64_t *live; /* by slot: id + 1 of the block that lives there, or 0 */
    struct ar_error *error;
};

static enum ar_status copy_event(struct preparing *job, struct trace_event event)
{
    const struct trace_attributes *attributes = NULL;
    const char *text = NULL;
    if (event.kind == TRACE_ALLOC || event.kind == TRACE_PROBE) {
        job->live[event.slot] = event.id + 1;
    } else if (event.kind == TRACE_FREE_REQUESTED || event.kind == TRACE_FREE_COMPLETED) {
        bool first = job->live[event.slot] == event.id + 1;
        if (first)
            job->live[event.slot] = 0;
        if (!job->all) {
            if (!first) /* the completion of a block that was free requested before */
                return AR_OK;
            event.kind = TRACE_FREE_COMPLETED;
            event.flags = TRACE_WHOLE;
        }
    } else if (!job->all) {
        return AR_OK;
    }
    if (event.attributes)
        attributes = trace_attributes_of(job->source, event.attributes);
    if (event.kind == TRACE_MARK || event.kind == TRACE_NOTE)
        text = trace_text_of(job->source, event.value);
    return trace_memory_append(job->memory, &event, attributes, text, job->error);
}

/* Frees the blocks that the trace leaves live, so that it can be replayed again on the same
 * policy. */
static enum ar_status free_the_rest(struct preparing *job)
{
    for (uint32_t slot = 0; slot < job->source->info.slots; slot++) {
        if (!job->live[slot])
            continue;
        struct trace_event event = {.kind = TRACE_FREE_COMPLETED,
                                    .flags = TRACE_WHOLE,
                                    .slot = slot,
                                    .id = job->live[slot] - 1};
        AR_TRY(trace_memory_append(job->memory, &event, NULL, NULL, job->error));
    }
    return AR_OK;
}

static enum ar_status fill_memory(struct preparing *job)
{
    struct trace_cursor cursor = {.source = job->source};
    const struct trace_event *event;
    enum ar_status status = AR_OK;
    while ((event = trace_read(&cursor, &status, job->error)) != NULL)
        status = copy_event(job, *event);
    return status != AR_OK ? status : free_the_rest(job);
}

static enum ar_status prepare(const char *in, const char *out, bool all, struct ar_error *error)
{
    struct preparing job = {.all = all, .error = error};
    struct trace_source *copy = NULL;
    enum ar_status status = AR_OK;
    AR_TRY(trace_open(in, &job.source, error));
    job.live = calloc((size_t)job.source->info.slots + 1, sizeof *job.live);
    job.memory = trace_memory_create(&job.source->info);
    if (!job.live || !job.memory)
        status = ar_no_memory(error, "%s", in);
    AR_THEN(status, fill_memory(&job));
    AR_THEN(status, trace_memory_open(job.memory, &copy, error));
    AR_THEN(status,
            trace_write(copy, out, &(struct trace_write_options){.format = TRACE_FORMAT_BINARY},
                        error));
    trace_close(copy);
    trace_close(job.source);
    free(job.live);
    return status;
}

/* ---- replay ---------------------------------------------------------------------------------- */

__attribute__((noinline)) static enum ar_status measured_replay(const struct replay_config *config,
                                                                struct replay_result *result,
                                                                struct ar_error *error)
{
    return replay_run(config, result, error);
}

static enum ar_status replay_twice(struct rig *rig, struct trace_source *source,
                                   enum replay_measure measure, struct ar_error *error)
{
    struct replay_config config = {.policy = rig->policy,
                                   .device = rig->device,
                                   .source = source,
                                   .measure = measure,
                                   .policy_host = &rig->host};
    AR_CLOSED(replay_result_close) struct replay_result result = {0};
    AR_TRY(replay_run(&config, &result, error));
    replay_result_close(&result);
    AR_TRY(trace_rewind(source, error));
    CALLGRIND_START_INSTRUMENTATION; /* what comes before takes most of the time */
    AR_TRY(measured_replay(&config, &result, error));
    printf("operations %llu\n",
           (unsigned long long)(source->info.allocs + source->info.probes + source->info.frees));
    return result.passed ? AR_OK
                         : ar_error_set(error, AR_NEGATIVE, "event %llu could not be served",
                                        (unsigned long long)result.first_failed_event);
}

static enum ar_status replay(const char *spec, const char *path, enum replay_measure measure,
                             struct ar_error *error)
{
    AR_CLOSED(rig_close) struct rig rig = {0};
    AR_CLOSED(trace_close_at) struct trace_source *source = NULL;
    AR_TRY(rig_open(&rig, spec, error));
    AR_TRY(trace_open(path, &source, error));
    return replay_twice(&rig, source, measure, error);
}

/* ---- pairs among free blocks ----------------------------------------------------------------- */

__attribute__((noinline)) static enum ar_status measured_pairs(struct ar_policy *policy)
{
    struct ar_policy_request request = {.bytes = AR_KIB};
    struct ar_policy_block block;
    for (int i = 0; i < PAIRS; i++) {
        enum ar_status status = ar_policy_alloc(policy, &request, &block);
        AR_THEN(status, ar_policy_free(policy, &block, 0));
        AR_TRY(status);
    }
    return AR_OK;
}

/* Allocates 2 * free_blocks blocks of 256 B to 4 KiB in a row, then frees every second one. */
static enum ar_status make_free_blocks(struct ar_policy *policy, struct ar_policy_block *blocks,
                                       uint64_t free_blocks)
{
    struct ar_rng rng = ar_rng_of(1);
    for (uint64_t i = 0; i < 2 * free_blocks; i++) {
        struct ar_policy_request request = {.bytes = 256 * ar_rng_between(&rng, 1, 16)};
        AR_TRY(ar_policy_alloc(policy, &request, &blocks[i]));
    }
    for (uint64_t i = 0; i < 2 * free_blocks; i += 2)
        AR_TRY(ar_policy_free(policy, &blocks[i], 0));
    return AR_OK;
}

static enum ar_status pairs(const char *spec, uint64_t free_blocks, struct ar_error *error)
{
    AR_CLOSED(rig_close) struct rig rig = {0};
    AR_TRY(rig_open(&rig, spec, error));
    AR_FREED struct ar_policy_block *blocks = calloc(2 * free_blocks, sizeof *blocks);
    enum ar_status status =
        blocks ? make_free_blocks(rig.policy, blocks, free_blocks) : AR_HOST_MEMORY;
    CALLGRIND_START_INSTRUMENTATION;
    AR_THEN(status, measured_pairs(rig.policy));
    if (status != AR_OK)
        (void)ar_error_set(error, status, "%s with %llu free blocks: %s", spec,
                           (unsigned long long)free_blocks, ar_status_meaning(status));
    printf("operations %d\n", 2 * PAIRS);
    printf("metadata %.1f\n", (double)rig.host.peak_bytes / (double)(2 * free_blocks));
    return status;
}

/* ---- streams --------------------------------------------------------------------------------- */

__attribute__((noinline)) static enum ar_status measured_streams(struct ar_policy *policy,
                                                                 uint32_t streams)
{
    struct ar_policy_request request = {.bytes = 12 * AR_MIB};
    struct ar_policy_block block;
    for (uint32_t i = 0; i < PAIRS; i++) {
        request.stream = i * 7919u % streams;
        enum ar_status status = ar_policy_alloc(policy, &request, &block);
        AR_THEN(status, ar_policy_free(policy, &block, request.stream));
        AR_TRY(status);
    }
    return AR_OK;
}

/* One block takes the limit except 8 MiB for each stream, which are free. */
static enum ar_status fill_streams(struct ar_policy *policy, struct ar_policy_block *blocks,
                                   uint32_t streams)
{
    struct ar_policy_request request = {.bytes = 64 * AR_GIB - streams * 8 * AR_MIB};
    struct ar_policy_block filler;
    enum ar_status status = ar_policy_alloc(policy, &request, &filler);
    request.bytes = 8 * AR_MIB;
    for (uint32_t i = 0; status == AR_OK && i < streams; i++) {
        request.stream = i;
        status = ar_policy_alloc(policy, &request, &blocks[i]);
    }
    for (uint32_t i = 0; status == AR_OK && i < streams; i++)
        status = ar_policy_free(policy, &blocks[i], i);
    return status;
}

static enum ar_status by_turns(const char *spec, uint32_t streams, struct ar_error *error)
{
    AR_CLOSED(rig_close) struct rig rig = {0};
    AR_TRY(rig_open(&rig, spec, error));
    AR_FREED struct ar_policy_block *blocks = calloc((size_t)streams + 1, sizeof *blocks);
    enum ar_status status = blocks ? fill_streams(rig.policy, blocks, streams) : AR_HOST_MEMORY;
    CALLGRIND_START_INSTRUMENTATION;
    AR_THEN(status, measured_streams(rig.policy, streams));
    if (status != AR_OK)
        (void)ar_error_set(error, status, "%s with %u streams: %s", spec, (unsigned)streams,
                           ar_status_meaning(status));
    printf("operations %d\n", 2 * PAIRS);
    return status;
}

/* ---- cost with size -------------------------------------------------------------------------- */

/* A program that has many of one thing. */
struct crowd {
    uint64_t bytes;    /* of each block; `spread`: up to 16 times as many */
    bool spread;       /* blocks of different sizes */
    bool by_stream;    /* each block on a stream of its own */
    bool by_pool;      /* each block in a private pool of its own */
    unsigned frees;    /* every so many blocks are freed before the pairs; 0: none */
    bool is_exchanged; /* a pair frees one of the blocks and allocates it again */
};

static const struct size_kind {
    const char *name;
    struct crowd crowd;
} size_kinds[] = {
    {"live", {.bytes = 256, .spread = true, .is_exchanged = true}},
    {"free", {.bytes = 256, .spread = true, .frees = 2}},
    {"streams", {.bytes = AR_KIB, .by_stream = true, .frees = 1}},
    {"pools", {.bytes = AR_KIB, .by_pool = true, .frees = 1}},
    {"segments", {.bytes = 24 * AR_MIB, .frees = 2}},
};

static struct ar_policy_request crowd_request(const struct crowd *crowd, uint64_t number,
                                              uint64_t count)
{
    return (struct ar_policy_request){.bytes = crowd->bytes *
                                               (crowd->spread ? 1 + number * 7919 % 16 : 1),
                                      .stream = crowd->by_stream ? (uint32_t)(number % count) : 0,
                                      .pool = crowd->by_pool ? 1 + (uint32_t)(number % count) : 0};
}

static enum ar_status crowd_make(struct ar_policy *policy, const struct crowd *crowd,
                                 struct ar_policy_block *blocks, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        struct ar_policy_request request = crowd_request(crowd, i, count);
        AR_TRY(ar_policy_alloc(policy, &request, &blocks[i]));
    }
    for (uint64_t i = 0; crowd->frees && i < count; i += crowd->frees)
        AR_TRY(ar_policy_free(policy, &blocks[i], crowd_request(crowd, i, count).stream));
    return AR_OK;
}

__attribute__((noinline)) static enum ar_status measured_size(struct ar_policy *policy,
                                                              const struct crowd *crowd,
                                                              struct ar_policy_block *blocks,
                                                              uint64_t count)
{
    enum ar_status status = AR_OK;
    for (uint64_t i = 0; status == AR_OK && i < PAIRS; i++) {
        uint64_t number = i * 7919 % count;
        struct ar_policy_request request = crowd_request(crowd, number, count);
        struct ar_policy_block own = {0};
        struct ar_policy_block *block = crowd->is_exchanged ? &blocks[number] : &own;
        if (crowd->is_exchanged)
            status = ar_policy_free(policy, block, request.stream);
        AR_THEN(status, ar_policy_alloc(policy, &request, block));
        if (status == AR_OK && !crowd->is_exchanged)
            status = ar_policy_free(policy, block, request.stream);
    }
    return status;
}

static enum ar_status size(const char *spec, const char *kind, uint64_t count,
                           struct ar_error *error)
{
    AR_CLOSED(rig_close) struct rig rig = {0};
    const struct size_kind *of = size_kinds, *end = of + AR_COUNT(size_kinds);
    while (of < end && strcmp(of->name, kind) != 0)
        of++;
    if (of == end || !count)
        return ar_invalid(error, "no size \"%s\", or a count of 0", kind);
    AR_TRY(rig_open_or(&rig, spec, "sim:profile=h100,capacity=64TiB", error));
    AR_FREED struct ar_policy_block *blocks = calloc(count, sizeof *blocks);
    enum ar_status status =
        blocks ? crowd_make(rig.policy, &of->crowd, blocks, count) : AR_HOST_MEMORY;
    CALLGRIND_START_INSTRUMENTATION;
    AR_THEN(status, measured_size(rig.policy, &of->crowd, blocks, count));
    if (status != AR_OK)
        (void)ar_error_set(error, status, "%s with %llu %s: %s", spec, (unsigned long long)count,
                           kind, ar_status_meaning(status));
    printf("operations %d\n", 2 * PAIRS);
    return status;
}

/* ---- main ------------------------------------------------------------------------------------ */

static void print_policies(void)
{
    char spec[64];
    const struct ar_policy_ops *ops;
    for (size_t i = 0; (ops = registry_policy(i)); i++)
        if (!(ops->capabilities & (AR_POLICY_OFFLINE | AR_POLICY_PINNED)))
            printf("%s %s\n", ops->name, rig_spec(ops, spec, sizeof spec));
}

static int command(int argc, char **argv)
{
    struct ar_error error = {{0}};
    enum ar_status status;
    if (argc == 2 && strcmp(argv[1], "policies") == 0) {
        print_policies();
        return 0;
    }
    if (argc == 5 && strcmp(argv[1], "prepare") == 0) {
        status = prepare(argv[2], argv[3], strcmp(argv[4], "all") == 0, &error);
    } else if (argc == 5 && strcmp(argv[1], "replay") == 0) {
        bool exact = strcmp(argv[4], "exact") == 0;
        status =
            replay(argv[2], argv[3], exact ? REPLAY_METRICS_EXACT : REPLAY_METRICS_NONE, &error);
    } else if (argc == 4 && strcmp(argv[1], "pairs") == 0) {
        status = pairs(argv[2], strtoull(argv[3], NULL, 10), &error);
    } else if (argc == 5 && strcmp(argv[1], "size") == 0) {
        status = size(argv[2], argv[3], strtoull(argv[4], NULL, 10), &error);
    } else if (argc == 4 && strcmp(argv[1], "streams") == 0) {
        status = by_turns(argv[2], (uint32_t)strtoul(argv[3], NULL, 10), &error);
    } else {
        fprintf(stderr, "usage: instructions prepare|replay|pairs|size|streams|policies|batch ...: "
                        "see its source\n");
        return 2;
    }
    if (status != AR_OK)
        fprintf(stderr, "instructions: %s\n", error.text);
    return ar_status_exit(status);
}

/* Runs the command in a line of a batch, whose words are separated by blanks. */
static int line_command(char *program, char *line)
{
    char *words[8] = {program}, *rest = NULL;
    int count = 1;
    for (char *word = strtok_r(line, " \n", &rest); word && count < 7;
         word = strtok_r(NULL, " \n", &rest))
        words[count++] = word;
    return command(count, words);
}

static int batch(char *program, const char *path)
{
    char line[4096];
    FILE *file = fopen(path, "r");
    if (!file) {
        perror(path);
        return 2;
    }
    while (fgets(line, sizeof line, file)) {
        int status = -1;
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            status = line_command(program, line);
            fflush(stdout);
            _exit(status); /* the file belongs to the parent */
        }
        if (child < 0 || waitpid(child, &status, 0) < 0) {
            perror("fork");
            fclose(file);
            return 2;
        }
        printf("ended %ld %d\n", (long)child, status);
    }
    fclose(file);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "batch") == 0)
        return batch(argv[0], argv[2]);
    return command(argc, argv);
}
