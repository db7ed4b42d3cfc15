/* A policy that works until its n-th request and then misbehaves: what a command must survive.
 *
 * harm=N with hook=NAME: the hook crashes, aborts, hangs, or leaves the process.
 * lie=NAME: an answer that breaks the contract of policy.h. Each lie is one field or one status.
 *
 * Built as a shared object by scripts beside this file and by tests/soak. */
#include <errno.h>
#include <fenv.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/cli/on_skeleton.h"

extern const struct ar_policy_ops misbehaving_policy;

enum harm {
    HARM_NONE,
    HARM_CRASH,
    HARM_HANG,
    HARM_LEAVE,
    HARM_CUT,
    HARM_ABORT,
    HARM_SPIN,
    HARM_MUTE,
    HARM_EXIT,
    HARM_QUICK,
    HARM_LATE,
    HARM_RECURSE, /* until the stack ends */
    HARM_TWICE,   /* releases a segment twice; the first is its own and new */
    HARM_FOREIGN, /* releases an address that it never had */
    HARM_RELEASE, /* releases the segment of the block before */
    HARM_TAKE,    /* obtains a segment and forgets it */
    HARM_ERRNO,
    HARM_SIGNALS,  /* blocks all signals */
    HARM_ROUNDING, /* rounds upwards, in floating point */
    HARM_SPEECH,   /* prints, then closes standard output and error */
    HARM_FOLDER,   /* goes to another folder */
    HARM_LOCALE,   /* a decimal comma */
    HARM_THREAD,   /* starts a thread that never ends */
    HARM_COUNT
};

#define HOOKS "alloc|free|stats|walk|validate|room|use|retire|progress|trim|problem|create|destroy"
enum hook {
    HOOK_ALLOC,
    HOOK_FREE,
    HOOK_STATS,
    HOOK_WALK,
    HOOK_VALIDATE,
    HOOK_ROOM,
    HOOK_USE,
    HOOK_RETIRE,
    HOOK_PROGRESS,
    HOOK_TRIM,
    HOOK_PROBLEM,
    HOOK_CREATE,
    HOOK_DESTROY,
};

#define LIES                                                                                       \
    "none|overlap|small|outside|nothing|wrap|misaligned|live|granted|reserved|huge|walk|"          \
    "endless|servable|corrupt|status|free-status|null|name|block-count|pending|"                   \
    "failures|limit"
enum lie {
    LIE_NONE,
    LIE_OVERLAP,     /* the address of the block before */
    LIE_SMALL,       /* fewer bytes than requested */
    LIE_OUTSIDE,     /* an address in no segment */
    LIE_NOTHING,     /* OK, and nothing filled in */
    LIE_WRAP,        /* a block that passes 2^64 */
    LIE_MISALIGNED,  /* an odd address, also if an alignment is requested */
    LIE_LIVE,        /* totals: half of the live bytes */
    LIE_GRANTED,     /* totals: no granted byte */
    LIE_RESERVED,    /* totals: less than is granted */
    LIE_HUGE,        /* totals: 2^63 reserved bytes */
    LIE_WALK,        /* ranges in a wrong order, of wrong bytes */
    LIE_ENDLESS,     /* a walk that shows one range for ever */
    LIE_SERVABLE,    /* every request can be served */
    LIE_CORRUPT,     /* validate: CORRUPT without a sentence */
    LIE_STATUS,      /* alloc: a status that there is not */
    LIE_FREE_STATUS, /* free: the same */
    LIE_NULL,        /* create: OK without an instance */
    LIE_NAME,        /* an instance whose ops have no name */
    LIE_BLOCK_COUNT, /* totals: no live block */
    LIE_PENDING,     /* totals: more pending bytes than reserved ones */
    LIE_FAILURES,    /* counters: one failure more */
    LIE_LIMIT,       /* reserves more than its option allows */
};

struct misbehaving_values {
    struct skeleton_values inner;
    uint64_t harm, after;
    int hook, lie;
};

static const struct ar_option misbehaving_options[] = {
    AR_POLICY_COMMON_OPTIONS,
    {"least", AR_OPTION_BYTES, offsetof(struct skeleton_values, least_bytes), "512", 1, 1073741824,
     NULL, "bytes of the smallest class"},
    {"harm", AR_OPTION_COUNT, offsetof(struct misbehaving_values, harm), "0", 0, HARM_COUNT - 1,
     NULL,
     "1: crash, 2: hang, 3: leave the process, 4: the same, with success, 5: abort, 6: spin, "
     "7: HOST_MEMORY without a sentence, 8: exit, 9: quick_exit, 10: leave when the process ends, "
     "11 to 22: see enum harm"},
    {"after", AR_OPTION_COUNT, offsetof(struct misbehaving_values, after), "3", 0, 1000000, NULL,
     "requests that go well"},
    {"hook", AR_OPTION_CHOICE, offsetof(struct misbehaving_values, hook), "alloc", 0, 0, HOOKS,
     "the hook that does harm"},
    {"lie", AR_OPTION_CHOICE, offsetof(struct misbehaving_values, lie), "none", 0, 0, LIES,
     "what it says that is not so"},
    {0},
};

struct misbehaving {
    struct ar_policy base;
    struct ar_policy *inner;
    struct ar_host *host;
    struct ar_backing *backing;
    enum harm harm;
    enum hook hook;
    enum lie lie;
    uint64_t left;         /* requests that still go well */
    uint64_t last_address; /* of the block before */
};

static void leave(void)
{
    _exit(7);
}

static int recurse(volatile int *depth)
{
    volatile int here[256] = {*depth + 1};
    return *depth < 0 ? 0 : recurse(here) + here[0];
}

static void *never_ends(void *argument)
{
    (void)argument;
    while (pause())
        ;
    return NULL;
}

/* What changes the process, and not only the policy. */
static void change_process(enum harm harm)
{
    sigset_t all;
    pthread_t thread;
    volatile int depth = 0;
    if (harm == HARM_RECURSE)
        recurse(&depth);
    if (harm == HARM_ERRNO)
        errno = EIO;
    if (harm == HARM_SIGNALS && sigfillset(&all) == 0)
        pthread_sigmask(SIG_BLOCK, &all, NULL);
    if (harm == HARM_ROUNDING)
        fesetround(FE_UPWARD);
    if (harm == HARM_SPEECH) {
        puts("the policy speaks");
        close(STDOUT_FILENO);
        close(STDERR_FILENO);
    }
    if (harm == HARM_FOLDER && chdir("/"))
        abort();
    if (harm == HARM_LOCALE && !setlocale(LC_ALL, getenv("MISBEHAVING_LOCALE")))
        abort();
    static atomic_flag started = ATOMIC_FLAG_INIT;
    if (harm == HARM_THREAD && !atomic_flag_test_and_set(&started))
        pthread_create(&thread, NULL, never_ends, NULL);
}

/* What a policy must not ask of its backing. */
static void misuse(struct ar_backing *backing, enum harm harm, uint64_t last_address)
{
    uint64_t address = harm == HARM_FOREIGN ? 12345 : last_address;
    enum ar_status status = AR_OK;
    if (harm == HARM_TWICE || harm == HARM_TAKE)
        status = ar_backing_segment_alloc(backing, 4096, &address);
    if (harm == HARM_TWICE && !status)
        status = ar_backing_segment_free(backing, address);
    if (harm >= HARM_TWICE && harm <= HARM_RELEASE)
        status = ar_backing_segment_free(backing, address);
    (void)status; /* and does not look */
}

static void do_harm(enum harm harm)
{
    struct sigaction now;
    if (harm == HARM_CRASH) {
        if (sigaction(SIGSEGV, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO))
            signal(SIGSEGV, SIG_DFL); /* a sanitizer would report it */
        *(volatile int *)(uintptr_t)16 = 0;
    }
    if (harm == HARM_ABORT)
        abort();
    const char *mark = harm == HARM_HANG ? getenv("MISBEHAVING_MARK") : NULL;
    if (mark)
        fclose(fopen(mark, "w")); /* tells a test that the process hangs now */
    while (harm == HARM_HANG)
        pause();
    for (volatile int spin = 0; harm == HARM_SPIN; spin++)
        ;
    if (harm == HARM_EXIT)
        exit(0);
    if (harm == HARM_QUICK)
        quick_exit(0);
    if (harm == HARM_LATE)
        atexit(leave);
    else if (harm > HARM_LATE)
        change_process(harm);
    else if (harm != HARM_NONE)
        _exit(harm == HARM_LEAVE ? 7 : 0);
}

/* The instance, after the harm that this hook is to do. */
static struct misbehaving *enter(const struct ar_policy *base, enum hook hook)
{
    struct misbehaving *self = (struct misbehaving *)(uintptr_t)base;
    if (self->hook == hook && self->left == 0)
        do_harm(self->harm);
    if (self->hook == hook && self->left == 0)
        misuse(self->backing, self->harm, self->last_address);
    return self;
}

static bool lies(const struct misbehaving *self, enum lie lie)
{
    return self->lie == lie && self->left == 0;
}

static void settle(struct misbehaving *self)
{
    struct ar_policy_totals *totals = &self->base.totals;
    *totals = self->inner->totals;
    if (lies(self, LIE_LIVE))
        totals->live_bytes /= 2;
    if (lies(self, LIE_GRANTED))
        totals->granted_bytes = 0;
    if (lies(self, LIE_RESERVED))
        totals->reserved_bytes /= 2;
    if (lies(self, LIE_HUGE))
        totals->reserved_bytes = UINT64_C(1) << 63;
    if (lies(self, LIE_BLOCK_COUNT))
        totals->live_blocks = 0;
    if (lies(self, LIE_PENDING))
        totals->pending_bytes = totals->reserved_bytes + 4096;
}

static enum ar_status misbehaving_create(const struct ar_policy_context *context,
                                         const void *values, struct ar_policy **out,
                                         struct ar_error *error)
{
    const struct misbehaving_values *given = values;
    if (given->hook == HOOK_CREATE) {
        do_harm((enum harm)given->harm);
        misuse(context->backing, (enum harm)given->harm, 4096);
    }
    if (given->harm == HARM_MUTE)
        return AR_HOST_MEMORY;
    if (given->lie == LIE_NULL)
        return AR_OK;
    struct misbehaving *self = ar_policy_new(context, &misbehaving_policy, sizeof *self, error);
    if (!self)
        return AR_HOST_MEMORY;
    struct skeleton_values inner_values = given->inner;
    if (given->lie == LIE_LIMIT)
        inner_values.common.limit_bytes = 0;
    enum ar_status status = skeleton_create(context, &inner_values, &self->inner, error);
    if (status) {
        ar_host_free(context->host, self, sizeof *self);
        return status;
    }
    static struct ar_policy_ops nameless;
    nameless = misbehaving_policy;
    nameless.name = NULL;
    if (given->lie == LIE_NAME)
        self->base.ops = &nameless;
    self->host = context->host;
    self->backing = context->backing;
    self->harm = (enum harm)given->harm;
    self->hook = (enum hook)given->hook;
    self->lie = (enum lie)given->lie;
    self->left = given->after;
    *out = &self->base;
    return AR_OK;
}

static void misbehaving_destroy(struct ar_policy *base)
{
    struct misbehaving *self = enter(base, HOOK_DESTROY);
    struct ar_host *host = self->host;
    skeleton_destroy(self->inner);
    ar_host_free(host, self, sizeof *self);
}

static void lie_about(struct misbehaving *self, struct ar_policy_block *out)
{
    if (lies(self, LIE_OVERLAP))
        out->address = self->last_address;
    if (lies(self, LIE_SMALL))
        out->granted_bytes = out->requested_bytes / 2;
    if (lies(self, LIE_OUTSIDE))
        out->address = 4096;
    if (lies(self, LIE_WRAP))
        out->address = UINT64_MAX - 100;
    if (lies(self, LIE_MISALIGNED))
        out->address += 1;
    self->last_address = out->address;
}

static enum ar_status misbehaving_alloc(struct ar_policy *base,
                                        const struct ar_policy_request *request,
                                        struct ar_policy_block *out)
{
    struct misbehaving *self = enter(base, HOOK_ALLOC);
    if (lies(self, LIE_STATUS))
        return (enum ar_status)77;
    if (lies(self, LIE_NOTHING))
        return AR_OK;
    enum ar_status status = skeleton_alloc(self->inner, request, out);
    if (!status)
        lie_about(self, out);
    self->left -= self->left > 0;
    settle(self);
    return status;
}

static enum ar_status misbehaving_free(struct ar_policy *base, const struct ar_policy_block *block,
                                       uint32_t stream)
{
    struct misbehaving *self = enter(base, HOOK_FREE);
    if (lies(self, LIE_FREE_STATUS))
        return (enum ar_status)77;
    enum ar_status status = skeleton_free(self->inner, block, stream);
    settle(self);
    return status;
}

static void misbehaving_stats(const struct ar_policy *base, struct ar_policy_stats *out)
{
    const struct misbehaving *self = enter(base, HOOK_STATS);
    skeleton_stats(self->inner, out);
    out->count.failures += lies(self, LIE_FAILURES) ? 1 : 0;
    out->totals = base->totals;
}

static void misbehaving_walk(const struct ar_policy *base, ar_policy_visit *visit, void *argument)
{
    const struct misbehaving *self = enter(base, HOOK_WALK);
    const struct ar_policy_range odd[] = {
        {.address = UINT64_MAX - 10, .bytes = 100, .state = AR_POLICY_RANGE_USED},
        {.address = 5, .bytes = UINT64_C(1) << 62, .state = AR_POLICY_RANGE_FREE},
        {.address = 4, .bytes = 0, .state = (enum ar_policy_range_state)9},
    };
    for (size_t i = 0; lies(self, LIE_WALK) && i < sizeof odd / sizeof *odd; i++)
        if (!visit(argument, &odd[i]))
            return;
    while (lies(self, LIE_ENDLESS) && visit(argument, &odd[1]))
        ;
    skeleton_walk(self->inner, visit, argument);
}

static enum ar_status misbehaving_validate(const struct ar_policy *base, struct ar_error *error)
{
    const struct misbehaving *self = enter(base, HOOK_VALIDATE);
    return lies(self, LIE_CORRUPT) ? AR_CORRUPT : skeleton_validate(self->inner, error);
}

static void misbehaving_room(const struct ar_policy *base, struct ar_policy_room *out)
{
    const struct misbehaving *self = enter(base, HOOK_ROOM);
    skeleton_room(self->inner, out);
    for (int effort = 0; lies(self, LIE_SERVABLE) && effort < AR_POLICY_EFFORT_COUNT; effort++)
        out->servable_bytes[effort] = UINT64_MAX;
}

static enum ar_status misbehaving_use(struct ar_policy *base, const struct ar_policy_block *block,
                                      uint32_t stream)
{
    (void)block, (void)stream;
    enter(base, HOOK_USE);
    return AR_OK;
}

static void misbehaving_retire(struct ar_policy *base, const struct ar_policy_block *block)
{
    (void)block;
    enter(base, HOOK_RETIRE);
}

static void misbehaving_progress(struct ar_policy *base)
{
    enter(base, HOOK_PROGRESS);
}

static enum ar_status misbehaving_trim(struct ar_policy *base, uint64_t keep_bytes)
{
    struct misbehaving *self = enter(base, HOOK_TRIM);
    enum ar_status status = skeleton_trim(self->inner, keep_bytes);
    settle(self);
    return status;
}

static const char *misbehaving_problem(const struct ar_policy *base)
{
    return skeleton_problem(enter(base, HOOK_PROBLEM)->inner);
}

const struct ar_policy_ops misbehaving_policy = {
    .abi = AR_POLICY_ABI,
    .ops_bytes = sizeof(struct ar_policy_ops),
    .name = "misbehaving",
    .summary = "does harm to its process, or lies",
    .reference = "none",
    .options = misbehaving_options,
    .values_bytes = sizeof(struct misbehaving_values),
    .create = misbehaving_create,
    .destroy = misbehaving_destroy,
    .alloc = misbehaving_alloc,
    .free = misbehaving_free,
    .stats = misbehaving_stats,
    .walk = misbehaving_walk,
    .validate = misbehaving_validate,
    .room = misbehaving_room,
    .use = misbehaving_use,
    .retire = misbehaving_retire,
    .progress = misbehaving_progress,
    .trim = misbehaving_trim,
    .problem = misbehaving_problem,
};

/* MISBEHAVING_ENTRY: harm where the object is asked for its policy. */
const struct ar_policy_ops *allocrig_policy(void)
{
    const char *harm = getenv("MISBEHAVING_ENTRY");
    if (harm)
        do_harm((enum harm)atoi(harm));
    return &misbehaving_policy;
}
