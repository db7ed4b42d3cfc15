/* A trainer: its requests come from a recording, a traced program or a generator, or from the sizes
 * of its weights, gradients, states and activations.
 *
 * What it holds can be offloaded to the host and brought back, sleep in a region
 * (torch_memory_saver around the trainer), and be sent to an engine. Weights are sent in buckets,
 * as trainers of reinforcement learning do: a bucket is gathered in a block of its own, which is
 * freed when the engine has it. */

#include "allocators/base/size.h"
#include "sim/twin/parts/player.h"
#include "sim/twin/parts/sizes.h"
#include "sim/twin/rules/llm.h"
#include "sim/sim_device/profile.h"
#include "workloads/workload.h"

enum { OFFLOAD_PAGEABLE, OFFLOAD_PINNED };
enum { REGION_NONE, REGION_SAVER, REGION_PRELOAD };
enum { STREAMS_OWN, STREAMS_ONE };
enum { UPDATE_COPY, UPDATE_IPC };

struct values {
    const char *workload, *evaluate;
    uint64_t repeat_from;
    struct sizes sizes;
    int offload_to, region, streams, update_by;
    bool backup;
    uint64_t update_bucket, shards;
};

struct trainer {
    struct twin_part base;
    struct player player, evaluation;
    uint64_t steps_left; /* of the action that runs */
    uint64_t shards;     /* of the weights */
    bool asleep;
};

#define AR_OPT_OF struct values

static const struct ar_option options[] = {
    AR_OPT_TEXT(
        workload, NULL,
        "a recording, a traced program or a generator ({rank}: number of the rank); else the sizes "
        "below are used"),
    AR_OPT_COUNT(repeat_from, "2", 1, 1e9, "the step of the workload that follows its last one"),
    AR_OPT_CHOICE(streams, "own", "own|one",
                  "the streams of the workload, or all of its requests on one"),
    AR_OPT_TEXT(evaluate, NULL, "the workload of the action evaluate"),
    SIZES_OPTIONS,
    AR_OPT_CHOICE(offload_to, "pageable", "pageable|pinned", "host memory of the action offload"),
    AR_OPT_CHOICE(
        region, "none", "none|saver|preload",
        "all of its memory is in a region of torch_memory_saver (saver: with pools; preload: the "
        "version without)"),
    AR_OPT_BOOL(backup, "true", "the action sleep copies the region to pinned host memory"),
    AR_OPT_BYTES(update_bucket, "0", 0, 0,
                 "bytes of weights that `update` gathers at a time; 0: one tensor"),
    AR_OPT_CHOICE(
        update_by, "copy", "copy|ipc",
        "how another process gets a bucket: in memory of its own, or it maps the trainer's"),
    AR_OPT_COUNT(
        shards, "0", 0, 65536,
        "the weights of this card are one of so many shards, and `update` gathers all; 0: by the "
        "model, or 1"),
    {0},
};

enum {
    ACTION_LOAD,
    ACTION_TRAIN,
    ACTION_PLAY,
    ACTION_EVALUATE,
    ACTION_OFFLOAD,
    ACTION_ONLOAD,
    ACTION_SLEEP,
    ACTION_WAKE,
    ACTION_UPDATE,
    ACTION_FREE,
};

#define WHAT "[weights|gradients|optimizer|state|all]"

static const struct twin_action actions[] = {
    {"load", NULL, "allocates the weights", 0, 0},
    {"train", "[STEPS]", "trains for so many steps; without a number one", 0, 1},
    {"play", "MARK", "plays the workload on to the mark with this label", 1, 1},
    {"evaluate", NULL, "plays the workload `evaluate` once", 0, 0},
    {"offload", WHAT, "moves what it holds between steps to the host", 0, 8},
    {"onload", WHAT, "moves it back", 0, 8},
    {"sleep", NULL, "its region sleeps", 0, 0},
    {"wake", NULL, "its region wakes", 0, 0},
    {"update", "PART", "sends the weights to another part", 1, 1},
    {"free", NULL, "frees everything; the next action begins anew", 0, 0},
    {0},
};

static struct trainer *of(struct twin_part *base)
{
    return (struct trainer *)base;
}

/* The workload of a rank: "{rank}" in its text is replaced. */
static enum ar_status open_workload(const char *text, uint32_t rank, struct trace_source **out,
                                    struct ar_error *error)
{
    char name[1024];
    const char *at = strstr(text, "{rank}");
    if (!at)
        return workload_open_single(text, out, error);
    int length = snprintf(name, sizeof name, "%.*s%u%s", (int)(at - text), text, rank,
                          at + strlen("{rank}"));
    if (length < 0 || (size_t)length >= sizeof name)
        return ar_invalid(error, "the name of the workload is too long");
    return workload_open_single(name, out, error);
}

/* Libraries choose kernels and workspaces by the card. */
static void say_other_card(struct trainer *self, const struct trace_info *info)
{
    const char *name = twin_card_name(&self->base), *of = sim_profile_of_card(info->card);
    struct sim_profile card;
    if (self->base.rank || !of || sim_profile_read(sim_profile_builtin(name), name, &card, NULL))
        return;
    const char *here = sim_profile_of_card(card.card);
    if (here && strcmp(here, of) != 0)
        twin_say(&self->base, "its workload was made on %s; workspaces of libraries differ on %s",
                 info->card, name);
}

static enum ar_status open_player(struct trainer *self, struct player *player, const char *text,
                                  uint64_t repeat, struct ar_error *error)
{
    const struct values *values = self->base.values;
    struct trace_source *source = NULL;
    struct plan plan;
    enum ar_status status = AR_OK;
    if (text) {
        status = open_workload(text, self->base.rank, &source, error);
    } else {
        status = sizes_plan(&values->sizes, self->base.ranks, &plan, &self->shards, error);
        AR_THEN(status, plan_open(&plan, &source, error));
    }
    self->base.depends_on_rank |= text && strstr(text, "{rank}");
    if (status == AR_OK && text)
        say_other_card(self, &source->info);
    return status == AR_OK ? player_open(player, &self->base, source, repeat,
                                         values->streams == STREAMS_ONE, error)
                           : status;
}

static enum ar_status trainer_create(struct twin_part *base, struct ar_error *error)
{
    struct trainer *self = of(base);
    const struct values *values = base->values;
    if (!values->workload && !values->sizes.model && !values->sizes.plan.weights_bytes)
        return ar_invalid(error, "it needs its requests; write workload = FILE, model = "
                                 "llama-3.1-8b, or weights = 16GiB and the other sizes");
    self->shards = 1;
    enum ar_status status =
        open_player(self, &self->player, values->workload, values->repeat_from, error);
    if (values->shards)
        self->shards = values->shards;
    if (status == AR_OK && values->evaluate)
        status = open_player(self, &self->evaluation, values->evaluate, 1, error);
    return status;
}

/* ---- actions --------------------------------------------------------------------------------- */

static enum ar_status read_what(const struct twin_call *call, unsigned *what,
                                struct ar_error *error)
{
    *what = call->argument_count ? 0 : PLAYER_ALL;
    for (size_t i = 0; i < call->argument_count; i++) {
        const char *word = call->arguments[i];
        unsigned purpose = 0;
        while (purpose < PLAYER_PURPOSES && strcmp(player_purpose_names[purpose], word) != 0)
            purpose++;
        if (strcmp(word, "all") == 0)
            *what = PLAYER_ALL;
        else if (purpose < PLAYER_PURPOSES)
            *what |= 1u << purpose;
        else
            return ar_invalid(error, "\"%.60s\" is not one of %s", word, WHAT);
    }
    return AR_OK;
}

static enum ar_status check_home(const struct trainer *self, struct ar_error *error)
{
    if (self->asleep)
        return ar_invalid(error, "its region sleeps; write wake before it");
    if (!player_is_away(&self->player, PLAYER_ALL))
        return AR_OK;
    return ar_invalid(error, "a part of what it trains is offloaded; write onload before it");
}

static enum ar_status begin_region(struct trainer *self, struct ar_error *error)
{
    const struct values *values = self->base.values;
    if (values->region == REGION_NONE)
        return AR_OK;
    const struct twin_region region = {.kind = values->region == REGION_SAVER ? TWIN_REGION_SAVER
                                                                              : TWIN_REGION_PRELOAD,
                                       .tag = self->base.name,
                                       .backup = values->backup};
    return twin_region_begin(&self->base, &region, error);
}

static void end_region(struct trainer *self)
{
    const struct values *values = self->base.values;
    if (values->region != REGION_NONE)
        twin_region_end(&self->base);
}

static enum ar_status train(struct trainer *self, const struct twin_call *call, bool *more,
                            struct ar_error *error)
{
    enum ar_status status = check_home(self, error);
    if (status == AR_OK && !call->turn) {
        self->steps_left = 1;
        status = twin_repeats(call, &self->steps_left, error);
    }
    /* Alone, a turn is a step. */
    if (status != AR_OK || !self->steps_left)
        return status;
    bool in_step;
    status = player_step(&self->player, call->turn_events, &in_step, error);
    self->steps_left -= !in_step;
    *more = self->steps_left > 0;
    return status;
}

static enum ar_status evaluate(struct trainer *self, struct ar_error *error)
{
    const struct values *values = self->base.values;
    struct player *player = &self->evaluation;
    if (!values->evaluate)
        return ar_invalid(error, "the trainer has no workload for it; write evaluate = FILE");
    enum ar_status status;
    bool more;
    do
        status = player_step(player, UINT64_MAX, &more, error);
    while (status == AR_OK && !player->ended && player->steps && player->step < player->steps &&
           !twin_over(&self->base));
    return status == AR_OK ? player_reset(player, error) : status;
}

struct sending {
    struct trainer *trainer;
    struct twin_part *peer;
    uint64_t left_bytes;   /* of all weights */
    uint64_t bucket_bytes; /* collected and not sent */
    enum ar_status status;
    struct ar_error *error;
};

static void send_bucket(struct sending *self)
{
    struct twin_part *part = &self->trainer->base;
    const struct values *values = part->values;
    struct twin_block bucket;
    uint64_t bytes = self->bucket_bytes;
    bool ipc = values->update_by == UPDATE_IPC;
    self->bucket_bytes = 0;
    self->left_bytes -= bytes;
    twin_alloc_for(part, bytes, "update bucket", &bucket);
    if (self->status == AR_OK)
        self->status = twin_send(part, self->peer, bytes, !self->left_bytes, ipc, self->error);
    twin_free(part, &bucket);
}

static void add_weight(void *argument, struct player_block *block)
{
    struct sending *self = argument;
    const struct values *values = self->trainer->base.values;
    uint64_t bytes = block->block.bytes * self->trainer->shards;
    if (self->bucket_bytes && self->bucket_bytes + bytes > values->update_bucket)
        send_bucket(self);
    self->bucket_bytes += bytes;
}

static void sum_weight(void *argument, struct player_block *block)
{
    *(uint64_t *)argument += block->block.bytes;
}

static uint64_t trainer_weights_bytes(struct twin_part *base)
{
    uint64_t bytes = 0;
    player_each(&of(base)->player, 1u << PLAYER_WEIGHT, sum_weight, &bytes);
    return bytes;
}

static enum ar_status update(struct trainer *self, const struct twin_call *call,
                             struct ar_error *error)
{
    struct sending sending = {.trainer = self, .error = error};
    if (player_is_away(&self->player, 1u << PLAYER_WEIGHT))
        return ar_invalid(error, "its weights are offloaded; write onload weights before it");
    sending.peer = twin_peer(&self->base, call->arguments[0], error);
    if (!sending.peer)
        return AR_INVALID;
    sending.left_bytes = trainer_weights_bytes(&self->base) * self->shards;
    if (!sending.left_bytes && !twin_over(&self->base))
        return ar_invalid(error, "it has no weights; write %s.load before it", self->base.name);
    player_each(&self->player, 1u << PLAYER_WEIGHT, add_weight, &sending);
    if (sending.bucket_bytes)
        send_bucket(&sending);
    return sending.status;
}

static enum ar_status sleep_or_wake(struct trainer *self, bool sleep, struct ar_error *error)
{
    const struct values *values = self->base.values;
    if (values->region == REGION_NONE)
        return ar_invalid(
            error, "the trainer's memory is in no region; write region = saver, or use offload");
    if (self->asleep == sleep)
        return ar_invalid(error, "its region %s; torch_memory_saver would end the program",
                          sleep ? "sleeps already" : "does not sleep");
    self->asleep = sleep;
    if (sleep)
        twin_sleep(&self->base, self->base.name, "*");
    else
        twin_wake(&self->base, self->base.name);
    return AR_OK;
}

static enum ar_status move(struct trainer *self, const struct twin_call *call,
                           struct ar_error *error)
{
    const struct values *values = self->base.values;
    bool off = call->action == ACTION_OFFLOAD;
    unsigned what;
    AR_TRY(read_what(call, &what, error));
    if (self->asleep)
        return ar_invalid(error, "its region sleeps; write wake before it");
    size_t moved = off ? player_offload(&self->player, what, values->offload_to == OFFLOAD_PINNED)
                       : player_onload(&self->player, what);
    if (!moved && !twin_over(&self->base))
        twin_say(&self->base, "%s%s%s does nothing: %s", off ? "offload" : "onload",
                 call->argument_count ? " " : "", call->argument_count ? call->arguments[0] : "",
                 off ? "it has none of these on the card" : "none of these are offloaded");
    return AR_OK;
}

/* The actions that make requests of the trainer's own memory. */
static enum ar_status act_in_region(struct trainer *self, const struct twin_call *call, bool *more,
                                    struct ar_error *error)
{
    switch (call->action) {
    case ACTION_LOAD:
        if (self->player.played || self->player.step)
            return ar_invalid(error, "its weights are there already; write %s.free before it",
                              self->base.name);
        return player_load(&self->player, error);
    case ACTION_TRAIN:
        return train(self, call, more, error);
    case ACTION_PLAY:
        return player_to_mark(&self->player, call->arguments[0], call->turn_events, more, error);
    case ACTION_EVALUATE:
        return evaluate(self, error);
    default:
        return move(self, call, error);
    }
}

static enum ar_status trainer_act(struct twin_part *base, const struct twin_call *call, bool *more,
                                  struct ar_error *error)
{
    struct trainer *self = of(base);
    switch (call->action) {
    case ACTION_SLEEP:
    case ACTION_WAKE:
        return sleep_or_wake(self, call->action == ACTION_SLEEP, error);
    case ACTION_UPDATE:
        return update(self, call, error);
    case ACTION_FREE:
        if (!self->player.played && !self->player.step)
            return ar_invalid(error, "it has nothing to free; write %s.load or train before it",
                              base->name);
        return player_reset(&self->player, error);
    default:
        break;
    }
    enum ar_status status = begin_region(self, error);
    if (status == AR_OK) {
        status = act_in_region(self, call, more, error);
        end_region(self);
    }
    return status;
}

static void trainer_destroy(struct twin_part *base)
{
    player_close(&of(base)->player);
    player_close(&of(base)->evaluation);
}

/* ---- what-ifs -------------------------------------------------------------------------------- */

#define SMALL_BUCKET (256 * AR_MIB)

/* Whether blocks of the workload are on several streams. */
static bool has_streams(const char *workload)
{
    struct trace_source *source = NULL;
    struct ar_error error;
    bool several = false;
    if (workload && open_workload(workload, 0, &source, &error) == AR_OK) {
        several =
            source->info.streams > 1 && !(source->info.counted && source->info.one_block_stream);
        trace_close(source);
    }
    return several;
}

static bool trainer_what_if(const void *of, size_t index, struct twin_what_if *out)
{
    const struct values *values = of;
    const struct sizes *sizes = &values->sizes;
    const struct twin_offer list[] = {
        {values->streams == STREAMS_OWN && has_streams(values->workload),
         {.text = "its streams merged into one", .option = "streams", .value = "one"}},
        {values->update_bucket > SMALL_BUCKET,
         {.text = "updates in pieces of 256 MiB", .option = "update_bucket", .value = "256MiB"}},
        {values->update_by == UPDATE_COPY,
         {.text = "another process maps the buckets of an update",
          .option = "update_by",
          .value = "ipc"}},
        {sizes->model && sizes->tokens && sizes->recompute != TRAINING_LAYER,
         {.text = "each layer computed again in the backward pass",
          .option = "recompute",
          .value = "layer"}},
        {sizes->model && sizes->zero < 3,
         {.text = "weights, gradients and states divided among the ranks",
          .option = "zero",
          .value = "3"}},
    };
    return twin_offer_at(list, AR_COUNT(list), index, out);
}

const struct twin_part_ops trainer_part = {
    .kind = "trainer",
    .summary = "a training: from a recording, a traced program, a generator, or its sizes",
    .options = options,
    .values_bytes = sizeof(struct values),
    .part_bytes = sizeof(struct trainer),
    .actions = actions,
    .create = trainer_create,
    .act = trainer_act,
    .weights_bytes = trainer_weights_bytes,
    .destroy = trainer_destroy,
    .releases = "offload sleep free",
    .restores = "onload wake load",
    .what_if = trainer_what_if,
};
