/* The settings of a process as its framework reads them: a table of lines and their results. Each
 * pool is "CARD POLICY-SPEC". */
#include "allocators/base/size.h"
#include "allocators/policies/bfc/bfc.h"
#include "allocators/spec.h"
#include "sim/tenants/process.h"
#include "tests/support/test.h"

/* Two cards: 40 GiB, of which 39 are free, and 8 GiB of an older kind, 7.5 free. */
static const struct process_card cards[] = {
    {40 * AR_GIB, 39 * AR_GIB, 8},
    {8 * AR_GIB, 7 * AR_GIB + 512 * AR_MIB, 6},
};

/* Defaults: 39 GiB - 1536 MiB = 40265318400; 7.5 GiB - 500 MiB = 7528775680. */
#define GREEDY_0 "0 greedy:framework=tf,limit=40265318400"
#define GREEDY_1 "1 greedy:framework=tf,limit=7528775680"
#define GROWTH_0 "0 growth:framework=tf,limit=40265318400"
#define GROWTH_1 "1 growth:framework=tf,limit=7528775680"
#define TF       "framework=tensorflow;"

static const struct {
    const char *lines;    /* KEY=VALUE; ... */
    const char *expected; /* pools, or EXCEPTION@LINE, or INVALID@LINE */
    const char *warning;  /* a part of one, or NULL: there is none */
} table[] = {
    /* the default, growth and visibility */
    {TF, GREEDY_0 ";" GREEDY_1, NULL},
    {TF "set_memory_growth=all true", GROWTH_0 ";" GROWTH_1, NULL},
    {TF "set_memory_growth=all false", GREEDY_0 ";" GREEDY_1, NULL},
    {TF "set_memory_growth=0 true", "ValueError@0", NULL},
    {TF "set_memory_growth=0 true;initialize=yes", "ValueError@3", NULL},
    {TF "set_memory_growth=0 true;set_memory_growth=1 false", "ValueError@0", NULL},
    {TF "set_memory_growth=0 false", "ValueError@0", NULL}, /* unset is not false */
    {TF "set_memory_growth=0 true;set_visible_devices=0", GROWTH_0, NULL},
    {TF "set_visible_devices=1", GREEDY_1, NULL},
    {TF "set_visible_devices=none", "", NULL},
    {TF "set_visible_devices=2", "ValueError@2", NULL},
    {TF "set_memory_growth=2 true", "ValueError@2", NULL},
    {TF "CUDA_VISIBLE_DEVICES=1", GREEDY_1, NULL},
    {TF "CUDA_VISIBLE_DEVICES=1,0;set_visible_devices=0", GREEDY_1, NULL},
    {TF "CUDA_VISIBLE_DEVICES=1,7,0", GREEDY_1, NULL},
    {TF "CUDA_VISIBLE_DEVICES=1;set_memory_growth=1 true", "ValueError@3", NULL},
    {TF "CUDA_VISIBLE_DEVICES=-1", "INVALID@0", NULL},
    {TF "CUDA_VISIBLE_DEVICES=0,0", "INVALID@0", NULL},
    /* after the first operation */
    {TF "initialize=yes;set_memory_growth=all true", "RuntimeError@3", NULL},
    {TF "set_memory_growth=all true;initialize=yes;set_memory_growth=all true",
     GROWTH_0 ";" GROWTH_1, NULL},
    {TF "set_memory_growth=all true;initialize=yes;set_memory_growth=0 false", "RuntimeError@4",
     NULL},
    {TF "initialize=yes;set_logical_devices=0 1024", "RuntimeError@3", NULL},
    {TF "set_logical_devices=0 1024;initialize=yes;set_logical_devices=0 1024",
     "0 greedy:framework=tf,limit=1073741824;" GREEDY_1, NULL},
    {TF "initialize=yes;set_visible_devices=0", "RuntimeError@3", NULL},
    {TF "initialize=yes;set_visible_devices=all", GREEDY_0 ";" GREEDY_1, NULL},
    {TF "initialize=yes;initialize=yes", GREEDY_0 ";" GREEDY_1, NULL},
    {TF "initialize=yes;allow_growth=true", "INVALID@3", NULL},
    /* logical devices */
    {TF "set_visible_devices=0;set_logical_devices=0 1024 2048",
     "0 greedy:framework=tf,limit=1073741824;0 greedy:framework=tf,limit=2147483648", NULL},
    {TF "set_logical_devices=all 1024",
     "0 greedy:framework=tf,limit=1073741824;1 greedy:framework=tf,limit=1073741824", NULL},
    {TF "set_logical_devices=1 65536", GREEDY_0 ";1 greedy:framework=tf,limit=68719476736",
     NULL}, /* not compared with the card */
    {TF "set_logical_devices=0 1024;set_memory_growth=0 true", "ValueError@3", NULL},
    {TF "set_logical_devices=0 1024;set_memory_growth=1 true",
     "0 greedy:framework=tf,limit=1073741824;" GREEDY_1, "growth is ignored"},
    {TF "set_memory_growth=all true;set_logical_devices=0 1024",
     "0 greedy:framework=tf,limit=1073741824;" GREEDY_1, "growth is ignored"},
    {TF "set_memory_growth=0 true;set_logical_devices=1 1024",
     GREEDY_0 ";1 greedy:framework=tf,limit=1073741824", NULL},
    {TF "set_logical_devices=0 -", "ValueError@2", NULL},
    {TF "set_logical_devices=0 0", "INVALID@2", NULL},
    {TF "set_logical_devices=0", "INVALID@2", NULL},
    {TF "set_logical_devices=5 64", "ValueError@2", NULL},
    {TF "set_logical_devices=0 1024;per_process_gpu_memory_fraction=0.5", "InvalidArgumentError@0",
     NULL},
    {TF "set_logical_devices=0 1024;num_virtual_devices_per_gpu=2", "InvalidArgumentError@0", NULL},
    {TF "set_visible_devices=0;num_virtual_devices_per_gpu=2",
     "0 greedy:framework=tf,limit=20132659200;0 greedy:framework=tf,limit=20132659200", NULL},
    /* limits: half of 40 GiB; of the total, also where that is more than is free */
    {TF "set_visible_devices=0;per_process_gpu_memory_fraction=0.5",
     "0 greedy:framework=tf,limit=21474836480", NULL},
    {TF "set_visible_devices=0;per_process_gpu_memory_fraction=1",
     "0 greedy:framework=tf,limit=42949672960", NULL},
    {TF "set_visible_devices=0;per_process_gpu_memory_fraction=0.5;set_memory_growth=all true",
     "0 growth:framework=tf,limit=21474836480", NULL},
    {TF "set_visible_devices=0;per_process_gpu_memory_fraction=1.5",
     "0 greedy:framework=tf,limit=64424509440", NULL},
    {TF "per_process_gpu_memory_fraction=-1", "INVALID@2", NULL},
    {TF "set_visible_devices=0;gpu_system_memory_size_in_mb=1024",
     "0 greedy:framework=tf,limit=40802189312", NULL},
    {TF "set_visible_devices=0;TF_DEVICE_MIN_SYS_MEMORY_IN_MB=2048",
     "0 greedy:framework=tf,limit=39728447488", NULL},
    {TF "set_visible_devices=0;gpu_system_memory_size_in_mb=1;TF_DEVICE_MIN_SYS_MEMORY_IN_MB=2048",
     "0 greedy:framework=tf,limit=39728447488", NULL},
    {TF "set_visible_devices=0;per_process_gpu_memory_fraction=0.1;"
        "TF_DEVICE_MIN_SYS_MEMORY_IN_MB=2048",
     "0 greedy:framework=tf,limit=39728447488", NULL},
    {TF "set_visible_devices=0;TF_DEVICE_MIN_SYS_MEMORY_IN_MB=50000", GREEDY_0, "are ignored"},
    {TF "set_visible_devices=0;TF_DEVICE_MIN_SYS_MEMORY_IN_MB=much", GREEDY_0, "is not a number"},
    /* the environment */
    {TF "set_visible_devices=0;TF_FORCE_GPU_ALLOW_GROWTH=true", GROWTH_0, NULL},
    {TF "set_memory_growth=all true;set_visible_devices=0;TF_FORCE_GPU_ALLOW_GROWTH=false",
     GREEDY_0, NULL},
    {TF "set_visible_devices=0;TF_FORCE_GPU_ALLOW_GROWTH=1", GREEDY_0, "neither"},
    {TF "set_logical_devices=0 1024;set_visible_devices=0;TF_FORCE_GPU_ALLOW_GROWTH=true",
     "0 growth:framework=tf,limit=1073741824", NULL},
    {TF "set_memory_growth=0 true;TF_FORCE_GPU_ALLOW_GROWTH=true", "ValueError@0", NULL},
    {TF "set_visible_devices=0;allow_growth=true", GROWTH_0, NULL},
    {TF "set_visible_devices=0;TF_GPU_ALLOCATOR=cuda_malloc_async",
     "0 async:release_threshold=40265318400,retry=true", NULL},
    {TF "set_visible_devices=0;TF_GPU_ALLOCATOR=cuda_malloc", "0 direct", NULL},
    {TF "set_visible_devices=0;TF_GPU_ALLOCATOR=best", GREEDY_0, "not known"},
    {TF "set_visible_devices=0;TF_ENABLE_GPU_GARBAGE_COLLECTION=false",
     GREEDY_0 ",garbage_collection=false", NULL},
    {TF "set_visible_devices=0;TF_GPU_ALLOCATOR=memory_guard", GREEDY_0, "memory_guard"},
    {TF "set_visible_devices=0;internal_fragmentation_fraction=0.25",
     GREEDY_0 ",fragmentation_fraction=0.25", NULL},
    {TF "internal_fragmentation_fraction=2", "INVALID@2", NULL},
    {TF "set_visible_devices=0;use_unified_memory=true", GREEDY_0, "unified"},
    /* of the host's memory and of reports: no matter to the card's pools */
    {TF "set_visible_devices=0;TF_GPU_HOST_MEM_LIMIT_IN_MB=64;TF_BFC_MEMORY_DUMP=/tmp/d", GREEDY_0,
     NULL},
    {TF "set_visible_devices=0;TF_GPU_HOST_MEM_LIMIT_IN_MB=all", GREEDY_0, "is not a number"},
    {TF "set_visible_devices=0;TF_FORCE_GPU_ALOW_GROWTH=true", GREEDY_0,
     "did you mean TF_FORCE_GPU_ALLOW_GROWTH?"},
    {TF "set_visibel_devices=0", "INVALID@2", NULL},
    {TF "set_memory_growth=cpu true", "ValueError@2", NULL},
    {TF "set_visible_devices=0;TF_GPU_ALLOCATOR=cuda_malloc_async;TF_DETERMINISTIC_ALLOCATOR=true",
     "0 async:release_threshold=40265318400,retry=true,opportunistic=false,internal=false", NULL},
    {TF "set_visible_devices=0;TF_CUDA_MALLOC_ASYNC_SUPPORTED_PREALLOC=-1", GREEDY_0,
     "not modelled"},
    {TF "set_visible_devices=0;disallow_retry_on_allocation_failure=true", GREEDY_0, NULL},
    {TF "disallow_retry_on_allocation_failure=never", "INVALID@2", NULL},
    /* virtual devices of GPUOptions: a list a GPU, in the order in which they are seen */
    {TF "virtual_devices=1024 2048 / 512",
     "0 greedy:framework=tf,limit=1073741824;0 greedy:framework=tf,limit=2147483648;"
     "1 greedy:framework=tf,limit=536870912",
     NULL},
    {TF "virtual_devices=1024", "0 greedy:framework=tf,limit=1073741824", NULL}, /* 1 is not used */
    {TF "virtual_devices=/ 512", GREEDY_0 ";1 greedy:framework=tf,limit=536870912", NULL},
    {TF "set_visible_devices=1;virtual_devices=512", "1 greedy:framework=tf,limit=536870912", NULL},
    {TF "set_visible_devices=1;virtual_devices=512/64", "UnknownError@0", NULL},
    {TF "virtual_devices=1/2/3;initialize=yes", "UnknownError@3", NULL},
    {TF "virtual_devices=1024;allow_growth=true", "0 growth:framework=tf,limit=1073741824", NULL},
    {TF "virtual_devices=1024;TF_FORCE_GPU_ALLOW_GROWTH=true",
     "0 growth:framework=tf,limit=1073741824", NULL},
    {TF "virtual_devices=1024;per_process_gpu_memory_fraction=0.5", "InvalidArgumentError@0", NULL},
    {TF "virtual_devices=1024;num_virtual_devices_per_gpu=2", "InvalidArgumentError@0", NULL},
    {TF "virtual_devices=1024;set_visible_devices=0;set_logical_devices=0 64",
     "0 greedy:framework=tf,limit=67108864", NULL},
    {TF "virtual_devices=1024 64;virtual_device_priorities=0 -1;virtual_device_ordinals=1 0",
     "0 greedy:framework=tf,limit=1073741824;0 greedy:framework=tf,limit=67108864", NULL},
    {TF "virtual_devices=1024 64;virtual_device_priorities=0", "InvalidArgumentError@0", NULL},
    {TF "virtual_devices=1024/64;virtual_device_priorities=0", "InvalidArgumentError@0", NULL},
    {TF "virtual_devices=1024/64;virtual_device_ordinals=/0", "InvalidArgumentError@0", NULL},
    {TF "virtual_devices=1024;virtual_device_ordinals=0/0", "InvalidArgumentError@0", NULL},
    {TF "virtual_device_priorities=0", "InvalidArgumentError@0", NULL},
    {TF "virtual_devices=0", "INVALID@2", NULL},
    {TF "virtual_devices=1GiB", "INVALID@2", NULL},
    /* builds: 39 GiB less twice 1536 MiB, 1 GiB, 6 % and 5 % of it; 7.5 less twice 500 MiB, 1 GiB,
     * 6 %, 5 % */
    {TF "build=release", GREEDY_0 ";" GREEDY_1, NULL},
    {TF "build=debug",
     "0 greedy:framework=tf,limit=38654705664;1 greedy:framework=tf,limit=7004487680", NULL},
    {TF "build=tegra",
     "0 greedy:framework=tf,limit=40802189312;1 greedy:framework=tf,limit=6979321856", NULL},
    {TF "build=pluggable",
     "0 greedy:framework=tf,limit=39363375268;1 greedy:framework=tf,limit=7569879860", NULL},
    {TF "build=1.x",
     "0 greedy:framework=tf,limit=39782134580;1 greedy:framework=tf,limit=7650410496", NULL},
    {TF "build=nightly", "INVALID@2", NULL},
    /* JAX: 0.75 of 40 and of 8 GiB */
    {"framework=jax",
     "0 greedy:framework=jax,limit=32212254720;1 greedy:framework=jax,limit=6442450944", NULL},
    {"framework=jax;CUDA_VISIBLE_DEVICES=1;XLA_PYTHON_CLIENT_PREALLOCATE=false",
     "1 growth:framework=jax,limit=6442450944", NULL},
    {"framework=jax;CUDA_VISIBLE_DEVICES=1;XLA_PYTHON_CLIENT_PREALLOCATE=no",
     "1 greedy:framework=jax,limit=6442450944", NULL},
    {"framework=jax;CUDA_VISIBLE_DEVICES=1;XLA_PYTHON_CLIENT_MEM_FRACTION=.5",
     "1 greedy:framework=jax,limit=4294967296", NULL},
    {"framework=jax;XLA_CLIENT_MEM_FRACTION=.5;XLA_PYTHON_CLIENT_MEM_FRACTION=.5", "ValueError@0",
     NULL},
    {"framework=jax;CUDA_VISIBLE_DEVICES=1;XLA_PYTHON_CLIENT_ALLOCATOR=platform", "1 direct", NULL},
    {"framework=jax;CUDA_VISIBLE_DEVICES=1;XLA_PYTHON_CLIENT_ALLOCATOR=bfc",
     "1 greedy:framework=jax,limit=6442450944", NULL},
    {"framework=jax;CUDA_VISIBLE_DEVICES=1;XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async",
     "1 async:release_threshold=6442450944,retry=true", NULL},
    {"framework=jax;CUDA_VISIBLE_DEVICES=1;XLA_PYTHON_CLIENT_ALLOCATOR=vmm",
     "1 direct:limit=6442450944", "one driver allocation"},
    {"framework=jax;XLA_PYTHON_CLIENT_ALLOCATOR=address", "INVALID@0", NULL},
    {"framework=jax;XLA_PYTHON_CLIENT_ALLOCATOR=bcf", "ValueError@0", NULL},
    {"framework=jax;CUDA_VISIBLE_DEVICES=1;XLA_PYTHON_CLIENT_PREALLOCATE=False",
     "1 growth:framework=jax,limit=6442450944", NULL},
    {"framework=jax;CUDA_VISIBLE_DEVICES=1;XLA_PYTHON_CLIENT_PREALLOCATE=0",
     "1 growth:framework=jax,limit=6442450944", NULL},
    {"framework=jax;CUDA_VISIBLE_DEVICES=1;XLA_PYTHON_CLIENT_PREALLOCATE=FALSE",
     "1 greedy:framework=jax,limit=6442450944", NULL},
    {"framework=jax;CUDA_VISIBLE_DEVICES=1;XLA_CLIENT_MEM_FRACTION=.25-.5",
     "1 growth:framework=jax,limit=4294967296,first_region=2147483648", NULL},
    {"framework=jax;CUDA_VISIBLE_DEVICES=1;XLA_CLIENT_MEM_FRACTION=.5-.5",
     "1 greedy:framework=jax,limit=4294967296", NULL},
    {"framework=jax;XLA_CLIENT_MEM_FRACTION=.5-.25", "ValueError@0", NULL},
    {"framework=jax;XLA_PYTHON_CLIENT_MEM_FRACTION=.25-.5", "ValueError@0", NULL},
    {"framework=jax;XLA_CLIENT_MEM_FRACTION=0", "ValueError@0", NULL},
    {"framework=jax;XLA_CLIENT_MEM_FRACTION=half", "ValueError@0", NULL},
    {"framework=jax;CUDA_VISIBLE_DEVICES=1;XLA_PYTHON_CLIENT_COLLECTIVE_MEM_SIZE_MB=64",
     "1 greedy:framework=jax,limit=6442450944", "collectives"},
    {"framework=jax;CUDA_VISIBLE_DEVICES=1;TF_FORCE_UNIFIED_MEMORY=1;XLA_CLIENT_MEM_FRACTION=2",
     "1 greedy:framework=jax,limit=17179869184", "unified"},
    {"framework=jax;set_memory_growth=all true", "INVALID@2", NULL},
    {"framework=jax;CUDA_VISIBLE_DEVICES=1;gpu_system_memory_size=1000000000",
     "1 greedy:framework=jax,limit=1000000000", NULL},
    {"framework=jax;gpu_system_memory_size=half", "INVALID@2", NULL},
    /* PyTorch */
    {"framework=torch;CUDA_VISIBLE_DEVICES=0", "0 torch", NULL},
    {"framework=torch;CUDA_VISIBLE_DEVICES=0;set_per_process_memory_fraction=0 0.5",
     "0 torch:limit=21474836480", NULL},
    {"framework=torch;CUDA_VISIBLE_DEVICES=0;set_per_process_memory_fraction=0 1.5", "ValueError@3",
     NULL},
    {"framework=torch;CUDA_VISIBLE_DEVICES=0;set_per_process_memory_fraction=1 0.5",
     "RuntimeError@3", NULL},
    {"framework=torch;CUDA_VISIBLE_DEVICES=0;PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
     "0 torch:conf='expandable_segments:True'", NULL},
    {"framework=torch;CUDA_VISIBLE_DEVICES=0;set_per_process_memory_fraction=all 0.25;"
     "PYTORCH_ALLOC_CONF=max_split_size_mb:64",
     "0 torch:limit=10737418240,conf='max_split_size_mb:64'", NULL},
    {"framework=torch;set_per_process_memory_fraction=all -0.1", "ValueError@2", NULL},
    {"framework=torch;set_per_process_memory_fraction=all half", "INVALID@2", NULL},
    {"framework=torch;CUDA_VISIBLE_DEVICES=0;set_per_process_memory_fraction=0 1", "0 torch", NULL},
    {"framework=torch;PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:5", "RuntimeError@0", NULL},
    {"framework=torch;PYTORCH_CUDA_ALLOC_CONF=no_such_key:5", "RuntimeError@0", NULL},
    {"framework=torch;CUDA_VISIBLE_DEVICES=0;PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:5;"
     "PYTORCH_ALLOC_CONF=max_split_size_mb:32",
     "0 torch:conf='max_split_size_mb:32'", NULL},
    {"framework=torch;CUDA_VISIBLE_DEVICES=0;PYTORCH_ALLOC_CONF=backend:cudaMallocAsync",
     "0 async:release_threshold=max", NULL},
    {"framework=torch;CUDA_VISIBLE_DEVICES=0;PYTORCH_ALLOC_CONF=backend:cudaMallocAsync;"
     "set_per_process_memory_fraction=0 0.5",
     "0 async:release_threshold=max,limit=21474836480", NULL},
    {"framework=torch;CUDA_VISIBLE_DEVICES=0;PYTORCH_NO_CUDA_MEMORY_CACHING=0", "0 direct", NULL},
    {"framework=torch;set_memory_growth=all true", "INVALID@2", NULL},
    /* none of them */
    {"framework=mxnet", "INVALID@1", NULL},
    {"set_memory_growth=all true", "INVALID@0", NULL},
};

static void run(const struct process_card *machine, size_t count, const char *text,
                struct process *process, char *outcome, size_t room)
{
    char copy[1024], *rest = NULL;
    struct process_line lines[16];
    size_t line_count = 0;
    struct ar_error error = {""};
    snprintf(copy, sizeof copy, "%s", text);
    for (char *line = strtok_r(copy, ";", &rest); line; line = strtok_r(NULL, ";", &rest)) {
        char *equal = strchr(line, '=');
        *equal = 0;
        lines[line_count] = (struct process_line){line, equal + 1, (unsigned)line_count + 1};
        line_count++;
    }
    enum ar_status status = process_configure(machine, count, lines, line_count, process, &error);
    outcome[0] = 0;
    if (status == AR_NEGATIVE)
        snprintf(outcome, room, "%s@%u", process_exception_name(process->exception), process->line);
    else if (status)
        snprintf(outcome, room, "INVALID@%u", process->line);
    assert_true(!status == !error.text[0]);
    for (size_t i = 0; i < process->pool_count && !status; i++) {
        size_t length = strlen(outcome);
        snprintf(outcome + length, room - length, "%s%u %s", i ? ";" : "", process->pools[i].card,
                 process->pools[i].policy);
    }
}

TEST(settings_come_out_as_in_the_framework)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct process process;
        char outcome[1024];
        run(cards, 2, table[i].lines, &process, outcome, sizeof outcome);
        if (strcmp(outcome, table[i].expected) != 0)
            fail_msg("%s\n  gives    %s\n  expected %s", table[i].lines, outcome,
                     table[i].expected);
        if ((process.warning_count == 1) != (table[i].warning != NULL) ||
            (table[i].warning && !strstr(process.warnings[0], table[i].warning)))
            fail_msg("%s: %zu warnings, the first \"%s\"", table[i].lines, process.warning_count,
                     process.warnings[0]);
    }
}

/* A policy accepts the spec of every pool. */
TEST(specs_are_policies)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct process process;
        char outcome[1024];
        run(cards, 2, table[i].lines, &process, outcome, sizeof outcome);
        for (size_t k = 0; k < process.pool_count; k++) {
            struct ar_error error = {""};
            struct ar_spec spec;
            if (ar_spec_parse(process.pools[k].policy, &spec, &error) != AR_OK)
                fail_msg("%s: %s", process.pools[k].policy, error.text);
            ar_spec_close(&spec);
        }
    }
}

/* The wait of a failed request, and the pool of pinned host memory: best fit waits ten seconds, the
 * driver's pool has its own wait, and cuda_malloc has none. */
TEST(waits_and_pinned_pools)
{
    static const struct {
        const char *lines;
        bool retries;
        const char *pinned;
    } wanted[] = {
        {TF, true, "growth:framework=tf,limit=137438953472"},
        {TF "TF_GPU_HOST_MEM_LIMIT_IN_MB=1024", true, "growth:framework=tf,limit=1073741824"},
        {TF "TF_GPU_HOST_MEM_LIMIT_IN_MB=0", true, "growth:framework=tf,limit=137438953472"},
        {TF "TF_GPU_ALLOCATOR=cuda_malloc_async", false, "growth:framework=tf,limit=137438953472"},
        {TF "TF_GPU_ALLOCATOR=cuda_malloc", false, "growth:framework=tf,limit=137438953472"},
        {TF "disallow_retry_on_allocation_failure=true", false,
         "growth:framework=tf,limit=137438953472"},
        {TF "TF_GPU_ALLOCATOR=best", true, "growth:framework=tf,limit=137438953472"},
        {"framework=jax", false, "growth:framework=jax,limit=68719476736"},
        {"framework=torch", false, ""},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        struct process process;
        char outcome[1024];
        run(cards, 2, wanted[i].lines, &process, outcome, sizeof outcome);
        assert_int_equal(process.retries, wanted[i].retries);
        assert_true(!process.retries || process.retry_ms == 10000);
        assert_string_equal(process.pinned_policy, wanted[i].pinned);
    }
}

/* tensorflow#8170: 190.3125 MiB are less than the least that the system is left, so that all of it
 * is tried. pytorch#58466: half of 10989 MB. tensorflow#22239: all of 22.38 GiB where 22.21 are
 * free. */
TEST(figures_of_reports)
{
    struct process process;
    char outcome[1024];
    const struct process_card full = {8504 * AR_MIB, 199557120, 6};
    run(&full, 1, TF, &process, outcome, sizeof outcome);
    assert_int_equal(process.pools[0].limit_bytes, 199557120);
    const struct process_card torch = {10989 * AR_MIB, 10989 * AR_MIB, 7};
    run(&torch, 1, "framework=torch;set_per_process_memory_fraction=0 0.5", &process, outcome,
        sizeof outcome);
    assert_int_equal(process.pools[0].limit_bytes, 10989 * AR_MIB / 2);
    const struct process_card whole = {22917 * AR_MIB, 22743 * AR_MIB, 6};
    run(&whole, 1, TF "per_process_gpu_memory_fraction=1", &process, outcome, sizeof outcome);
    assert_true(process.pools[0].limit_bytes == whole.total_bytes &&
                process.pools[0].limit_bytes > whole.free_bytes);
}

/* The system's part by compute capability, on both sides of 2 GiB. */
TEST(what_the_system_is_left)
{
    static const unsigned mib[] = {500, 1050, 1536, 1800, 1800};
    for (unsigned capability = 6; capability <= 10; capability++) {
        assert_int_equal(bfc_system_bytes(2 * AR_GIB, capability), mib[capability - 6] * AR_MIB);
        assert_int_equal(bfc_system_bytes(2 * AR_GIB - 1, capability), 225 * AR_MIB);
    }
    assert_int_equal(bfc_system_bytes(3 * AR_GIB, 3), 500 * AR_MIB);
    /* other builds, of a little: 255 of 1024 MiB; no less than 300 of 3072; all of 200 */
    static const struct {
        uint64_t free_mib;
        const char *build;
        uint64_t limit_mib;
    } builds[] = {
        {1024, TF "build=pluggable", 769}, {3072, TF "build=pluggable", 2772},
        {3072, TF "build=1.x", 2772},      {200, TF "build=pluggable", 200},
        {1024, TF "build=debug", 574},     {1024, TF "build=tegra", 1024},
    };
    for (size_t i = 0; i < sizeof builds / sizeof *builds; i++) {
        struct process process;
        char outcome[1024];
        const struct process_card card = {8 * AR_GIB, builds[i].free_mib * AR_MIB, 7};
        run(&card, 1, builds[i].build, &process, outcome, sizeof outcome);
        assert_int_equal(process.pools[0].limit_bytes, builds[i].limit_mib * AR_MIB);
    }
}
