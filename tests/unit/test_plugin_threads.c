/* Many threads in the plug-in at once, each on a stream of its own, freeing what others asked for
 * and using it on their streams: no two blocks that are held overlap, every byte of each is there,
 * and nothing is lost. */

#if HAVE_CUDA

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "allocators/base/rng.h"
#include "sim/replay/timing.h"
#include "tests/support/cuda_stand_in/stand_in.h"
#include "tests/support/plugin_rig.h"
#include "tests/support/test.h"

#define THREADS 4
#define HELD    64 /* of all threads */
#define TURNS   1500
#define CHECK   PLUGIN_CHECK

struct held {
    uint64_t address, bytes; /* bytes 0: none */
    struct stand_in_stream *stream;
};

struct crowd {
    const struct plugin_rig *rig;
    pthread_mutex_t lock; /* for `held` */
    struct held held[HELD];
    struct stand_in_stream streams[THREADS];
};

struct worker {
    struct crowd *crowd;
    pthread_t thread;
    unsigned number;
    uint64_t asked, uses;
};

/* Puts the block in a place and returns what was there. Its bytes must be unused. */
static struct held exchange(struct crowd *crowd, uint64_t place, struct held block)
{
    pthread_mutex_lock(&crowd->lock);
    struct held before = crowd->held[place];
    crowd->held[place] = (struct held){0};
    for (int i = 0; block.bytes && i < HELD; i++) {
        const struct held *other = &crowd->held[i];
        CHECK(!other->bytes || other->address + other->bytes <= block.address ||
              block.address + block.bytes <= other->address);
    }
    /* What was there is still taken, too: it is freed by the caller. */
    CHECK(!before.bytes || !block.bytes || before.address + before.bytes <= block.address ||
          block.address + block.bytes <= before.address);
    crowd->held[place] = block;
    pthread_mutex_unlock(&crowd->lock);
    return before;
}

static void free_requested(const struct worker *self, struct held block)
{
    self->crowd->rig->free((void *)(uintptr_t)block.address, (ssize_t)block.bytes, 0, block.stream);
}

static void *work(void *argument)
{
    struct worker *self = argument;
    struct crowd *crowd = self->crowd;
    struct stand_in_stream *stream = &crowd->streams[self->number];
    struct ar_rng rng = ar_rng_of(self->number + 1);
    for (int turn = 0; turn < TURNS; turn++) {
        uint64_t bytes =
            1 + (ar_rng_below(&rng, 4) ? ar_rng_below(&rng, 100000) : ar_rng_below(&rng, 30 << 20));
        void *block = crowd->rig->malloc((ssize_t)bytes, 0, stream);
        CHECK(block);
        self->asked++;
        struct held before = exchange(crowd, ar_rng_below(&rng, HELD),
                                      (struct held){(uint64_t)(uintptr_t)block, bytes, stream});
        if (!before.bytes)
            continue;
        if (before.stream != stream && ar_rng_below(&rng, 3) == 0) {
            crowd->rig->record_stream((void *)(uintptr_t)before.address, stream);
            self->uses++;
        }
        free_requested(self, before);
        if (ar_rng_below(&rng, 200) == 0)
            crowd->rig->empty_cache();
    }
    return NULL;
}

/* The driver faults where a kernel works on what is not there: fill reaches every byte. */
static void check_there(const struct plugin_rig *rig, const struct held *block)
{
    const struct stand_in *driver = rig->driver;
    uint64_t at = block->address;
    for (const struct stand_in_range *lists[] = {driver->allocations, driver->mappings},
                                     **list = lists;
         list < lists + 2; list++)
        for (const struct stand_in_range *range = *list; range; range = range->next)
            if (range->start <= at && at < range->start + range->bytes)
                at = range->start + range->bytes;
    CHECK(at >= block->address + block->bytes);
}

static void body(const struct plugin_rig *rig)
{
    static struct crowd crowd = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct worker workers[THREADS];
    uint64_t asked = 0, uses = 0, live_bytes = 0;
    crowd.rig = rig;
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.crowd = &crowd, .number = i};
        CHECK(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        CHECK(pthread_join(workers[i].thread, NULL) == 0);
        asked += workers[i].asked;
        uses += workers[i].uses;
    }
    for (int i = 0; i < HELD; i++)
        if (crowd.held[i].bytes) {
            check_there(rig, &crowd.held[i]);
            live_bytes += crowd.held[i].bytes;
        }
    CHECK(rig->figure(0, "requests") == asked && asked == THREADS * TURNS);
    CHECK(rig->figure(0, "uses") == uses && uses > 0);
    CHECK(rig->figure(0, "live_bytes") == live_bytes);
    CHECK(rig->figure(0, "failed") == 0 && rig->figure(0, "unknown") == 0);
    for (int i = 0; i < HELD; i++)
        if (crowd.held[i].bytes)
            free_requested(&workers[0], crowd.held[i]);
    CHECK(rig->figure(0, "live_bytes") == 0);
}

/* A fork while other threads are inside: the parent goes on, the child is not stuck. */
static void body_fork(const struct plugin_rig *rig)
{
    static struct crowd crowd = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct worker worker = {.crowd = &crowd};
    crowd.rig = rig;
    void *block = rig->malloc(1000, 0, NULL);
    CHECK(pthread_create(&worker.thread, NULL, work, &worker) == 0);
    for (int i = 0; i < 5; i++) {
        int status = 0;
        fflush(stdout);
        pid_t process = fork();
        if (process == 0) {
            rig->free(block, 0, 0, NULL);
            _exit(rig->figure(0, "requests") == UINT64_MAX ? 0 : 1);
        }
        CHECK(waitpid(process, &status, 0) == process && status == 0);
    }
    CHECK(pthread_join(worker.thread, NULL) == 0);
    rig->free(block, 0, 0, NULL);
    CHECK(rig->figure(0, "unknown") == 0);
}

TEST(threads_share_a_card)
{
    static const char *const policies[] = {"torch", "growth", "vmm", "slab", "checked+best-fit"};
    for (size_t i = 0; i < COUNT(policies); i++) {
        char policy[64], trace[512];
        const char *folder = getenv("TEST_TMP");
        snprintf(policy, sizeof policy, "ALLOCRIG_POLICY=%s", policies[i]);
        snprintf(trace, sizeof trace, "ALLOCRIG_TRACE=%s/threads.trace", folder ? folder : "/tmp");
        const char *settings[] = {policy, i == 0 ? trace : NULL, NULL};
        if (plugin_rig_run(settings, NULL, body) != 0)
            fail_msg("under %s", policies[i]);
    }
}

TEST(a_fork_disturbs_no_thread)
{
    const char *settings[] = {NULL};
    assert_int_equal(plugin_rig_run(settings, NULL, body_fork), 0);
}

#else

#include "tests/support/test.h"

TEST(there_is_no_cuda_h)
{
    skip();
}

#endif
