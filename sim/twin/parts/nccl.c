/* Communicators of NCCL: what they take of the card outside of the pool, by rules/nccl.h.
 *
 * A process has one communicator for each of its groups. PyTorch makes it at the first operation of
 * the group (`use`), or at once if init_process_group has a device_id (`init`).
 * destroy_process_group (`finalize`) returns all of it.
 *
 * What the driver loads for NCCL stays with the context, once for a process. Measured with NCCL
 * 2.28.9 and driver 580: the first communicator on an H200 takes 100 MiB beyond its buffers, which
 * stay when it is destroyed. The first all-reduce of two H200 takes 840 MiB, those of further
 * groups 484 as by the rule: 70 MiB of the rest are PyTorch's streams, 186 come once. The first
 * all_to_all takes 58 beyond the rule's 384. Other cards and releases are not measured. */

#include "allocators/base/size.h"
#include "sim/twin/part.h"
#include "sim/twin/rules/compatible.h"
#include "sim/twin/rules/context.h"
#include "sim/twin/rules/nccl.h"

#define GROUPS 64

/* When the driver loads something for NCCL. */
enum { LOAD_START, LOAD_OPERATION, LOAD_SENDS, LOADS };

struct values {
    const char *groups, *version, *link, *rank;
    uint64_t ranks_per_node, channels, buffer_bytes, compute, mem_alloc, registered;
    uint64_t loaded[LOADS];
    bool cumem, lazy, nvls;
};

struct nccl {
    struct twin_part base;
    struct nccl_setup setup;
    struct nccl_communicator groups[GROUPS];
    size_t group_count;
    bool started, suspended;
    unsigned loads, elsewhere; /* bits, 1 << LOAD_x: by this part, by an earlier one */
    uint64_t captured;         /* operations */
};

#define AR_OPT_OF struct values

static const struct ar_option options[] = {
    AR_OPT_TEXT(
        groups, NULL,
        "ranks of each process group, such as \"8 8 2\"; default: one of all ranks of the process"),
    AR_OPT_TEXT(version, "2.28", "of NCCL, from 2.14 on"),
    AR_OPT_TEXT(
        link, "auto",
        "nvlink (through switches) | pcie | shm (no peer access) | auto: as in usual servers"),
    AR_OPT_COUNT(compute, "0", 0, 200, "compute capability times ten; 0: that of the card"),
    AR_OPT_COUNT(ranks_per_node, "8", 1, NCCL_LOCAL_PEERS,
                 "ranks of a group that are in one server"),
    AR_OPT_COUNT(
        channels, "0", 0, 64,
        "of rings and trees, as NCCL logs (\"24 coll channels\"); 0: as on the usual server"),
    AR_OPT_BYTES(buffer_bytes, "4MiB", 4096, 1e12, "NCCL_BUFFSIZE"),
    AR_OPT_BOOL(cumem, "true", "NCCL_CUMEM_ENABLE, from 2.19 on"),
    AR_OPT_BOOL(lazy, "true",
                "NCCL_RUNTIME_CONNECT, from 2.22 on: connections are made by the first operation"),
    AR_OPT_BOOL(nvls, "true", "NCCL_NVLS_ENABLE"),
    AR_OPT_TEXT(rank, "own", "rank in each group that all cards are counted as; own: each its own"),
    AR_OPT_BYTES(mem_alloc, "0", 0, 0, "buffers of the program from ncclMemAlloc"),
    AR_OPT_BYTES(registered, "0", 0, 0,
                 "buffers of the program that are registered; they take no memory by themselves"),
    {"kernels", AR_OPTION_BYTES, offsetof(struct values, loaded[LOAD_START]), "100MiB", 0, 0, NULL,
     "what the driver loads with the first communicator of the process; it stays"},
    {"operation", AR_OPTION_BYTES, offsetof(struct values, loaded[LOAD_OPERATION]), "186MiB", 0, 0,
     NULL, "what it takes at the first operation of two ranks or more; it stays"},
    {"sends", AR_OPTION_BYTES, offsetof(struct values, loaded[LOAD_SENDS]), "58MiB", 0, 0, NULL,
     "what it takes at the first all_to_all or gather; it stays"},
    {0},
};

enum {
    ACTION_INIT,
    ACTION_USE,
    ACTION_CAPTURE,
    ACTION_FINALIZE,
    ACTION_SUSPEND,
    ACTION_RESUME,
};

static const struct twin_action actions[] = {
    {"init", NULL, "makes the communicators", 0, 0},
    {"use", "[all_reduce|all_gather|all_to_all|gather] [BYTES]",
     "an operation of each group, by default an all-reduce of 4MiB", 0, 2},
    {"capture", "OPERATIONS", "so many operations become part of captured graphs", 1, 1},
    {"finalize", NULL, "destroys the communicators; frees buffers of ncclMemAlloc", 0, 0},
    {"suspend", NULL, "ncclCommSuspend, from 2.29 on: buffers go to pinned host memory", 0, 0},
    {"resume", NULL, "ncclCommResume: they come back", 0, 0},
    {0},
};

static enum ar_status read_setup(struct nccl *self, struct ar_error *error)
{
    const struct values *values = self->base.values;
    uint32_t release = compatible_release(values->version);
    if (release < 214 || release >= 300)
        return ar_invalid(error, "version = %.40s: write a release from 2.14 on, such as 2.28",
                          values->version);
    bool automatic = strcmp(values->link, "auto") == 0;
    if (!automatic && strcmp(values->link, "nvlink") != 0 && strcmp(values->link, "pcie") != 0 &&
        strcmp(values->link, "shm") != 0)
        return ar_invalid(error, "link = %.40s: write nvlink, pcie, shm or auto", values->link);
    const struct card card = card_of(twin_card_name(&self->base));
    const char *link = automatic ? card.link : values->link;
    self->setup = (struct nccl_setup){
        .release = release,
        .compute = values->compute ? (uint32_t)values->compute : card.compute,
        .ranks_per_node = (uint32_t)values->ranks_per_node,
        .nvlink = link[0] == 'n',
        .no_p2p = link[0] == 's',
        .no_cumem = !values->cumem,
        .eager = !values->lazy,
        .no_nvls = !values->nvls,
        .channels = (uint32_t)values->channels,
        .buffer_bytes = values->buffer_bytes,
    };
    return AR_OK;
}

static enum ar_status bad_groups(const char *text, struct ar_error *error)
{
    return ar_invalid(error,
                      "groups = %.60s: write the ranks of each group, 1 to 65536, such as 8 8 2; "
                      "at most %d groups",
                      text, GROUPS);
}

/* The number of this process in a group of `ranks`: groups are of ranks that follow each other. */
static enum ar_status rank_in(const struct nccl *self, uint32_t ranks, uint32_t *rank,
                              struct ar_error *error)
{
    const struct values *values = self->base.values;
    uint64_t number;
    *rank = self->base.rank % ranks;
    if (strcmp(values->rank, "own") == 0)
        return AR_OK;
    if (ar_count_parse(values->rank, &number, NULL) != AR_OK || number >= ranks)
        return ar_invalid(error,
                          "rank = %.40s: write own, or a number below the ranks of each group",
                          values->rank);
    *rank = (uint32_t)number;
    return AR_OK;
}

static enum ar_status add_group(struct nccl *self, uint32_t ranks, struct ar_error *error)
{
    uint32_t rank;
    AR_TRY(rank_in(self, ranks, &rank, error));
    self->groups[self->group_count++] = nccl_communicator(&self->setup, ranks, rank);
    return AR_OK;
}

static enum ar_status nccl_create(struct twin_part *base, struct ar_error *error)
{
    struct nccl *self = (struct nccl *)base;
    const struct values *values = base->values;
    const char *text = values->groups;
    enum ar_status status = read_setup(self, error);
    if (status == AR_OK && !text)
        status = add_group(self, base->ranks, error);
    for (const char *at = text ? text + strspn(text, " ,") : ""; *at && !status;
         at += strspn(at, " ,")) {
        char *end;
        unsigned long ranks = *at >= '0' && *at <= '9' ? strtoul(at, &end, 10) : 0;
        if (!ranks || ranks > 65536 || self->group_count == GROUPS || !strchr(" ,", *end))
            return bad_groups(text, error);
        status = add_group(self, (uint32_t)ranks, error);
        at = end;
    }
    if (status == AR_OK && !self->group_count)
        return bad_groups(text, error);
    /* Ranks at the ends of trees have fewer neighbours. */
    base->depends_on_rank = base->ranks > 2 && strcmp(values->rank, "own") == 0;
    return status;
}

/* Tells the engine what all communicators hold now. */
static void report(struct nccl *self)
{
    const struct values *values = self->base.values;
    uint64_t bytes = 0;
    for (size_t i = 0; i < self->group_count; i++)
        bytes += nccl_held(&self->groups[i]);
    uint64_t captured = nccl_captured_bytes(&self->setup, self->captured);
    uint64_t own = self->started && values->mem_alloc
                       ? nccl_mem_alloc_bytes(&self->setup, values->mem_alloc)
                       : 0;
    twin_outside(&self->base, twin_owner(&self->base, "communicators"), bytes);
    twin_outside(&self->base, twin_owner(&self->base, "captured operations"), captured);
    twin_outside(&self->base, twin_owner(&self->base, "buffers"), own);
    uint64_t loaded = 0;
    for (unsigned i = 0; i < LOADS; i++)
        loaded += self->loads & (1U << i) ? values->loaded[i] : 0;
    twin_outside(&self->base, twin_owner(&self->base, "kernels"), loaded);
    twin_figure(&self->base, "nccl", (double)(bytes + captured + own));
}

/* The driver loads something for NCCL, unless a part of the process has had it loaded. Parts later
 * in the list learn it here, earlier ones look for it. */
static void load(struct nccl *self, unsigned what)
{
    unsigned bit = 1U << what;
    bool loaded = (self->loads | self->elsewhere) & bit;
    for (struct twin_part *part = self->base.next; part && !loaded; part = part->next)
        loaded = part->ops == self->base.ops && ((struct nccl *)part)->loads & bit;
    if (loaded)
        return;
    self->loads |= bit;
    for (struct twin_part *part = self->base.next; part; part = part->next)
        if (part->ops == self->base.ops)
            ((struct nccl *)part)->elsewhere |= bit;
}

static void start(struct nccl *self)
{
    load(self, LOAD_START);
    for (size_t i = 0; i < self->group_count && !self->started; i++)
        nccl_start(&self->groups[i]);
    self->started = true;
}

static enum ar_status use(struct nccl *self, const struct twin_call *call, struct ar_error *error)
{
    static const char *const names[] = {"all_reduce", "all_gather", "all_to_all", "gather"};
    unsigned operation = 0;
    uint64_t bytes = 4 * AR_MIB;
    if (call->argument_count > 0) {
        while (operation < NCCL_OPERATIONS && strcmp(call->arguments[0], names[operation]) != 0)
            operation++;
        if (operation == NCCL_OPERATIONS)
            return ar_invalid(error,
                              "use %.40s: write all_reduce, all_gather, all_to_all or gather",
                              call->arguments[0]);
    }
    if (call->argument_count > 1)
        AR_TRY(ar_size_parse(call->arguments[1], &bytes, error));
    start(self);
    bool several = false;
    for (size_t i = 0; i < self->group_count; i++)
        several |= self->groups[i].ranks > 1;
    if (several)
        load(self, LOAD_OPERATION);
    if (several && operation >= NCCL_ALL_TO_ALL)
        load(self, LOAD_SENDS);
    for (size_t i = 0; i < self->group_count; i++)
        nccl_use(&self->groups[i], (enum nccl_operation)operation, bytes);
    return AR_OK;
}

/* Suspends or resumes all communicators. */
static enum ar_status suspend(struct nccl *self, bool suspended, struct ar_error *error)
{
    uint64_t bytes = 0;
    if (self->suspended == suspended)
        return ar_invalid(error, "the communicators %s",
                          suspended ? "are suspended already"
                                    : "are not suspended; write suspend before it");
    if (self->setup.release < 229)
        return ar_invalid(error, "ncclCommSuspend is in NCCL from 2.29.7 on; write version = 2.29");
    self->suspended = suspended;
    for (size_t i = 0; i < self->group_count; i++) {
        if (suspended)
            bytes += nccl_suspend(&self->groups[i]);
        else
            nccl_resume(&self->groups[i]);
    }
    twin_figure(&self->base, "nccl suspended", (double)bytes);
    if (suspended)
        twin_say(&self->base, "%.0f MiB are released, and copied to pinned host memory%s",
                 (double)bytes / (double)AR_MIB,
                 self->setup.no_cumem ? ": without cuMem nothing is" : "");
    return AR_OK;
}

static enum ar_status nccl_act(struct twin_part *base, const struct twin_call *call,
                               bool *more AR_UNUSED, struct ar_error *error)
{
    struct nccl *self = (struct nccl *)base;
    enum ar_status status = AR_OK;
    uint64_t operations = 0;
    if (call->action == ACTION_INIT && self->started)
        return ar_invalid(error, "the communicators are there already; write %s.finalize before it",
                          base->name);
    if (call->action != ACTION_INIT && call->action != ACTION_USE && !self->started)
        return ar_invalid(error, "there are no communicators; write %s.init or %s.use before it",
                          base->name, base->name);
    if (self->suspended && (call->action == ACTION_USE || call->action == ACTION_CAPTURE))
        return ar_invalid(error, "the communicators are suspended; write %s.resume before it",
                          base->name);
    switch (call->action) {
    case ACTION_SUSPEND:
    case ACTION_RESUME:
        status = suspend(self, call->action == ACTION_SUSPEND, error);
        break;
    case ACTION_INIT:
        start(self);
        break;
    case ACTION_USE:
        status = use(self, call, error);
        break;
    case ACTION_CAPTURE:
        status = twin_repeats(call, &operations, error);
        self->captured += operations;
        break;
    default:
        for (size_t i = 0; i < self->group_count; i++)
            nccl_finalize(&self->groups[i]);
        self->started = self->suspended = false;
        self->captured = 0;
        break;
    }
    if (status == AR_OK)
        report(self);
    return status;
}

static bool nccl_what_if(const void *given, size_t index, struct twin_what_if *out)
{
    const struct values *values = given;
    const struct twin_offer list[] = {
        {values->buffer_bytes > AR_MIB,
         {.text = "NCCL buffers of 1 MiB (NCCL_BUFFSIZE)",
          .option = "buffer_bytes",
          .value = "1MiB"}},
        {values->nvls,
         {.text = "no NVLink SHARP (NCCL_NVLS_ENABLE=0)", .option = "nvls", .value = "false"}},
    };
    return twin_offer_at(list, AR_COUNT(list), index, out);
}

const struct twin_part_ops nccl_part = {
    .kind = "nccl",
    .summary = "communicators of NCCL and their buffers",
    .options = options,
    .values_bytes = sizeof(struct values),
    .part_bytes = sizeof(struct nccl),
    .actions = actions,
    .create = nccl_create,
    .act = nccl_act,
    .releases = "finalize suspend",
    .restores = "init use resume",
    .what_if = nccl_what_if,
};
