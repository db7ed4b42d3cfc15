/* The engine of `fidelity`: replays a recording under a policy, with recorded frees, on a device
 * that answers as the recorded device did.
 *
 * Usually one replay is enough. The causes of releases are decided during the replay (recording.c).
 * If a cause is uncertain, causes.c tries the other causes in further replays.
 *
 * A recording that begins in the middle contains the state at its start, and the policy begins with
 * this state (start.c). Of its statistics only present values can agree.
 *
 * Statistics are compared with the recorded ones by name. One of them may be lower in the replay:
 * PyTorch counts every release of the cache in num_sync_all_streams, but a release without memory
 * to release leaves no event. */
#include "sim/fidelity/fidelity.h"

#include "allocators/base/array.h"
#include "allocators/base/size.h"
#include "allocators/decorators/forward.h"
#include "allocators/policies/torch/conf_keys.h"
#include "allocators/registry.h"
#include "sim/experiment/recorded_card.h"
#include "sim/fidelity/recording.h"

struct attempt {
    const struct fidelity *config;
    struct recording *recording;
    uint64_t total_bytes;
    struct fidelity_result *result;
    struct recorded_device device;
    struct recorded_source source;
    struct ar_host host;
    struct ar_policy *policy;
};

/* Rows get the event numbers of the recording. Rows before the first difference agree. */
static enum ar_status on_row(void *argument, const struct replay_row *row, struct ar_error *error)
{
    struct attempt *self = argument;
    struct replay_row numbered = *row;
    if (row->op == 'f' && row->requested_bytes && !row->granted_bytes)
        return AR_OK; /* the end of a failed request: nothing was freed */
    self->result->rows++;
    numbered.event = self->source.next_event ? self->source.next_event - 1 : 0;
    if (!self->result->difference.found)
        self->result->rows_met++;
    AR_RAISE(self->result->peak_reserved_bytes, row->reserved_bytes);
    self->result->end_reserved_bytes = row->reserved_bytes;
    return observer_row(self->config->observer, &numbered, error);
}

/* The recorded statistic of a name; NULL: none. */
static const struct fidelity_stat *stat_of(const struct fidelity *config, const char *name)
{
    for (size_t i = 0; i < config->stat_count; i++)
        if (strcmp(config->stats[i].name, name) == 0)
            return &config->stats[i];
    return NULL;
}

static void compare_figure(struct attempt *self, const char *name, uint64_t value)
{
    const struct fidelity_stat *stat = stat_of(self->config, name);
    struct fidelity_result *result = self->result;
    if (!stat || (result->start != FIDELITY_FROM_NOTHING && !strstr(name, ".current")))
        return;
    struct fidelity_figure *figure = &result->figures[result->figure_count++];
    snprintf(figure->name, sizeof figure->name, "%s", name);
    figure->recorded = stat->value;
    figure->replayed = value;
    figure->agrees = figure->recorded == figure->replayed;
    if (strcmp(name, "num_sync_all_streams") == 0 && figure->recorded > figure->replayed &&
        !result->difference.found) {
        result->unseen_releases = figure->recorded - figure->replayed;
        figure->agrees = true;
    }
    result->figures_met += figure->agrees;
}

static enum ar_status compare_figures(struct attempt *self, struct ar_error *error)
{
    struct fidelity_result *result = self->result;
    char name[sizeof result->figures->name];
    uint64_t value;
    if (!self->config->stat_count)
        return AR_OK;
    result->figures = calloc(self->config->stat_count, sizeof *result->figures);
    AR_TRY_MEMORY(result->figures, error, "statistics");
    for (size_t i = 0; result->figure_count < self->config->stat_count &&
                       ar_policy_report(self->policy, i, name, sizeof name, &value);
         i++)
        compare_figure(self, name, value);
    return AR_OK;
}

static enum ar_status collect_causes(struct attempt *self, struct ar_error *error)
{
    const struct recording *recording = self->recording;
    struct fidelity_result *result = self->result;
    result->releases = calloc(recording->group_count + 1, sizeof *result->releases);
    AR_TRY_MEMORY(result->releases, error, "a result");
    for (size_t i = 0; i < self->source.group; i++) {
        const struct recorded_group *group = &recording->groups[i];
        if (group->cause == CAUSE_RELEASE)
            result->releases[result->release_count++] = group->event;
        result->refusals += group->cause == CAUSE_REFUSED;
    }
    for (size_t i = 0; i < self->source.request; i++)
        result->refusals += recording->requests[i].refused;
    return AR_OK;
}

static void count_recorded(const struct recording *recording, struct fidelity_result *result)
{
    result->recorded_peak_reserved_bytes = recording->peak_bytes;
    result->recorded_end_reserved_bytes = recording->end_bytes;
    for (size_t i = 0; i < recording->action_count; i++) {
        enum recorded_kind kind = recording->actions[i].kind;
        bool made = kind == RECORDED_MADE || kind == RECORDED_MAPPED;
        result->made += made;
        result->freed += !made;
    }
}

static enum ar_status replay(struct attempt *self, struct ar_error *error)
{
    const struct fidelity *config = self->config;
    struct replay_result replayed;
    const struct observer observer = {.row = on_row, .argument = self};
    const struct replay_config replay_config = {
        .policy = self->policy,
        .device = &self->device.base,
        .source = &self->source.base,
        .frees = REPLAY_RECORDED,
        .observer = &observer,
    };
    AR_TRY(observer_begin(config->observer, error));
    AR_TRY(recorded_source_open(&self->source, config->source, self->recording, &self->device,
                                self->policy, self->result, error));
    enum ar_status status = replay_run(&replay_config, &replayed, error);
    replay_result_close(&replayed);
    if (status == AR_INVALID && self->device.misused) {
        recorded_device_differs(&self->device, "asks for what the recorded device cannot do",
                                "goes on");
        status = AR_OK;
    }
    recorded_source_finish(&self->source);
    AR_THEN(status, recorded_final_compare(&self->device, self->policy, error));
    if (self->result->difference.found)
        self->result->difference.line =
            trace_line_of(config->source, self->result->difference.event);
    return status;
}

static enum ar_status attempt_run(void *argument, struct ar_error *error)
{
    struct attempt *self = argument;
    struct fidelity_result *result = self->result;
    fidelity_result_close(result);
    count_recorded(self->recording, result);
    recorded_device_open(&self->device, self->recording, self->total_bytes,
                         self->config->source->info.streams, result);
    const struct ar_policy_context context = {
        .backing = &self->device.backing, .host = &self->host, .seed = self->config->seed};
    struct ar_policy **out = &self->policy;
    enum ar_status status = registry_create(self->config->policy, &context, out, error);
    AR_THEN(status, starting_wrap(&self->host, *out, &self->device, out, error));
    AR_THEN(status, deferring_wrap(&self->host, *out, &self->device, out, error));
    AR_THEN(status, replay(self, error));
    AR_THEN(status, compare_figures(self, error));
    AR_THEN(status, collect_causes(self, error));
    /* A policy without host memory waits where it would have deferred, for example. */
    if (status != AR_HOST_MEMORY && (self->device.out_of_host_memory || self->host.failed))
        status = ar_no_memory(error, "the recorded device");
    unsigned state = registry_process_state();
    /* A policy that asked for what cannot be is told as a difference, and may hold other memory. */
    bool misused = self->device.misused;
    ar_policy_destroy(self->policy);
    AR_THEN(status, ar_error_prefix(error, registry_process_check(state, "destroy", error),
                                    "policy %.200s", self->config->policy->text));
    if (status == AR_OK && self->device.misused && !misused)
        status = ar_error_set(error, AR_CORRUPT,
                              "policy %.200s released in destroy what it does not hold",
                              self->config->policy->text);
    self->policy = NULL;
    recorded_device_close(&self->device);
    return status;
}

/* The recorded capacity; if it is not recorded, that of the recorded card by its name or of the
 * default device, or the recorded peak if it is larger. */
static enum ar_status card_bytes(const struct trace_info *info, const struct recording *recording,
                                 uint64_t *bytes, struct ar_error *error)
{
    char spec[RECORDED_CARD_SPEC_ROOM];
    struct ar_device *device;
    *bytes = info->capacity_bytes;
    if (*bytes)
        return AR_OK;
    recorded_card_spec(info, spec);
    AR_TRY(ar_device_open_text(spec, &device, error));
    *bytes = device->props.total_bytes;
    AR_RAISE(*bytes, recording->peak_bytes);
    ar_device_close(device);
    return AR_OK;
}

/* Finds the causes under one policy. A limit_try. */
static enum ar_status run_policy(const struct fidelity *config, struct fidelity_result *result,
                                 struct limit_evidence *evidence, struct ar_error *error)
{
    struct recording recording;
    struct attempt attempt = {.config = config, .recording = &recording, .result = result};
    const struct causes causes = {
        .recording = &recording, .result = result, .replay = attempt_run, .argument = &attempt};
    fidelity_result_close(result);
    enum ar_status status = recording_read(config->source, &recording, error);
    AR_THEN(status, card_bytes(&config->source->info, &recording, &attempt.total_bytes, error));
    AR_THEN(status, causes_find(&causes, error));
    if (!status)
        recorded_limit_evidence(&recording, result->difference.event, evidence);
    recording_close(&recording);
    return status;
}

enum ar_status fidelity_run(const struct fidelity *config, struct fidelity_result *result,
                            struct ar_error *error)
{
    *result = (struct fidelity_result){0};
    enum ar_status status = recorded_limit_find(config, run_policy, result, error);
    if (status) {
        fidelity_result_close(result);
        return status;
    }
    result->agrees = !result->difference.found && result->figures_met == result->figure_count;
    return AR_OK;
}

void fidelity_result_close(struct fidelity_result *result)
{
    free(result->releases);
    free(result->figures);
    *result = (struct fidelity_result){0};
}

/* The policy that lists the first word of the recorder among its recorders. */
static const struct ar_policy_ops *policy_for(const char *recorder)
{
    size_t length = strcspn(recorder, " ");
    const struct ar_policy_ops *ops;
    for (size_t i = 0; (ops = registry_policy(i)) != NULL; i++)
        for (size_t k = 0; ops->recorders && ops->recorders[k]; k++)
            if (strlen(ops->recorders[k]) == length &&
                strncmp(ops->recorders[k], recorder, length) == 0)
                return ops;
    return NULL;
}

/* The policy that settings of PyTorch choose in place of its own allocator, as process_torch of
 * sim/tenants does; NULL: none. */
static const char *chosen_policy(const struct trace_info *info)
{
    if (strncmp(info->recorder, "torch", 5) != 0)
        return NULL;
    if (strstr(info->conf, "PYTORCH_NO_CUDA_MEMORY_CACHING"))
        return "direct";
    return strstr(info->conf, "backend:cudaMallocAsync") ? "async:release_threshold=max" : NULL;
}

enum ar_status fidelity_default_spec(const struct trace_info *info, char *text, size_t text_bytes,
                                     struct ar_error *error)
{
    if (!info->recorder[0])
        return ar_invalid(error,
                          "%s: it does not say which allocator was recorded; name the policy to "
                          "compare it with, such as -p torch",
                          info->name);
    if (strcmp(info->format, "kineto") == 0)
        return ar_invalid(error,
                          "%s: a profiler's trace tells where blocks were placed but not the "
                          "segments that they lie in, so no policy can be compared with it; take a "
                          "memory snapshot (torch.cuda.memory._dump_snapshot)",
                          info->name);
    const struct ar_policy_ops *ops = policy_for(info->recorder);
    if (!ops)
        return ar_invalid(error, "%s: no policy imitates the recorder \"%s\"; name one with -p",
                          info->name, info->recorder);
    const char *chosen = chosen_policy(info);
    if (chosen) {
        snprintf(text, text_bytes, "%s", chosen);
        return AR_OK;
    }
    char quote = strchr(info->conf, '\'') ? '"' : '\'';
    if (strchr(info->conf, quote))
        return ar_invalid(error,
                          "%s: its settings contain both kinds of quotes; give the policy with -p",
                          info->name);
    char limit[80] = "";
    int at = 0;
    if (info->limit_bytes)
        at = snprintf(limit, sizeof limit, "%climit=%s", info->conf[0] ? ',' : ':',
                      AR_SIZE_EXACT(info->limit_bytes));
    /* Before PyTorch 2.5 private pools do not grow by pages. */
    struct torch_release release = torch_release_read(info->recorder);
    if (release.major && torch_release_compare(release, (struct torch_release){2, 5}) < 0 &&
        strcmp(ops->name, "torch") == 0 && strstr(info->conf, "expandable_segments:True"))
        snprintf(limit + at, sizeof limit - (size_t)at, ",version=%u.%u", release.major,
                 release.minor);
    int used = info->conf[0] ? snprintf(text, text_bytes, "%s:conf=%c%s%c%s", ops->name, quote,
                                        info->conf, quote, limit)
                             : snprintf(text, text_bytes, "%s%s", ops->name, limit);
    return used >= 0 && (size_t)used < text_bytes
               ? AR_OK
               : ar_invalid(error, "%s: its settings are too long", info->name);
}

/* ---- the state at the end -------------------------------------------------------------------
 *
 * The notes of the end (FORMAT.md, "Notes") are compared with the ranges of the policy, both sorted
 * by address.
 *
 * 1. Address space without memory is not compared, because a snapshot has mapped pages only.
 * 2. Blocks must agree in address, size, state and, if both have it, the requested size.
 * 3. The segment of a block must agree in stream and pool, and in its address unless it is a run of
 *    pages of a range.
 * 4. If a trace has requested frees without completions, these frees are final (FORMAT.md), and an
 *    end with pending blocks cannot be compared. */

static enum ar_status misread(const char *text, struct ar_error *error)
{
    return ar_invalid(error,
                      "the line \"!,%.80s\" is neither !,final_segment,ADDRESS,BYTES,STREAM[,POOL] "
                      "nor !,final_block,ADDRESS,BYTES,used|pending|free[,REQUESTED]",
                      text);
}

static enum ar_status take_segment(struct recorded_final *final, const char *text,
                                   struct ar_error *error)
{
    struct recorded_area area = {0};
    const char *at = text + strcspn(text, ",");
    if (!recording_number(&at, &area.address) || !recording_number(&at, &area.bytes) ||
        !recording_owner(at, &area))
        return misread(text, error);
    return AR_APPEND(final->areas, final->area_count, final->area_room, area, error,
                     "what was recorded");
}

static enum ar_status take_block(struct recorded_final *final, const char *text, uint64_t event,
                                 struct ar_error *error)
{
    static const struct {
        const char *name;
        enum ar_policy_range_state state;
    } states[] = {{"used", AR_POLICY_RANGE_USED},
                  {"pending", AR_POLICY_RANGE_PENDING},
                  {"free", AR_POLICY_RANGE_FREE}};
    struct recorded_end_block block = {.event = event};
    const char *at = text + strcspn(text, ",");
    if (!recording_number(&at, &block.address) || !recording_number(&at, &block.bytes) ||
        *at != ',')
        return misread(text, error);
    size_t which = 0, count = AR_COUNT(states), length = strcspn(++at, ",");
    while (which < count &&
           (strlen(states[which].name) != length || strncmp(states[which].name, at, length) != 0))
        which++;
    at += length;
    if (which == count || (*at && !recording_number(&at, &block.requested_bytes)) || *at)
        return misread(text, error);
    block.state = states[which].state;
    final->has_pending |= block.state == AR_POLICY_RANGE_PENDING;
    return AR_APPEND(final->blocks, final->block_count, final->block_room, block, error,
                     "what was recorded");
}

enum ar_status recorded_final_note(struct recorded_final *final, const char *text, uint64_t event,
                                   struct ar_error *error)
{
    if (recording_is_verb(text, "final_segment"))
        return take_segment(final, text, error);
    if (recording_is_verb(text, "final_block"))
        return take_block(final, text, event, error);
    return AR_OK;
}

void recorded_final_finish(struct recorded_final *final)
{
    AR_ARRAY_SORT(final->areas, final->area_count, address);
    AR_ARRAY_SORT(final->blocks, final->block_count, address);
}

void recorded_final_close(struct recorded_final *final)
{
    free(final->areas);
    free(final->blocks);
}

struct ranges {
    struct ar_policy_range *items;
    size_t count, room;
    struct ar_error *error;
    bool failed;
};

static bool collect(void *argument, const struct ar_policy_range *range)
{
    struct ranges *self = argument;
    if (range->state == AR_POLICY_RANGE_UNMAPPED || !range->bytes)
        return true;
    self->failed = !AR_ARRAY_ADD(self->items, self->count, self->room, *range);
    if (self->failed)
        (void)ar_no_memory(self->error, "what was recorded");
    return !self->failed;
}

static const char *state_name(enum ar_policy_range_state state)
{
    return state == AR_POLICY_RANGE_USED      ? "in use"
           : state == AR_POLICY_RANGE_PENDING ? "pending"
           : state == AR_POLICY_RANGE_FREE    ? "free"
                                              : "its own";
}

/* Writes "has 512 bytes at 4096 in use, asked for as 400, at the end". */
static void describe(uint64_t address, uint64_t bytes, enum ar_policy_range_state state,
                     uint64_t requested_bytes, char *text, size_t room)
{
    char asked[48] = "";
    if (requested_bytes)
        snprintf(asked, sizeof asked, ", asked for as %" PRIu64 ",", requested_bytes);
    snprintf(text, room, "has %" PRIu64 " bytes at %" PRIu64 " %s%s at the end", bytes, address,
             state_name(state), asked);
}

static void differ(struct recorded_device *device, const struct ar_policy_range *range,
                   const struct recorded_end_block *block)
{
    char did[160] = "has nothing more at the end", said[160] = "has nothing more at the end";
    uint64_t event = device->event;
    if (range)
        describe(range->address, range->bytes, range->state, range->requested_bytes, did,
                 sizeof did);
    if (block) {
        describe(block->address, block->bytes, block->state, block->requested_bytes, said,
                 sizeof said);
        event = block->event;
    }
    recorded_device_differs_at(device, event, did, said);
}

static bool same_block(const struct ar_policy_range *range, const struct recorded_end_block *block)
{
    return range->address == block->address && range->bytes == block->bytes &&
           range->state == block->state &&
           (!range->requested_bytes || !block->requested_bytes ||
            range->requested_bytes == block->requested_bytes);
}

/* Compares the segment of a block with that of the policy's range. */
static bool same_segment(struct recorded_device *device, const struct ar_policy_range *range,
                         const struct recorded_area *area, bool pages)
{
    char did[160], said[160];
    if (area->stream == range->stream && area->pool == range->pool &&
        (pages || area->address == range->segment_address))
        return true;
    snprintf(did, sizeof did,
             "has the block at %" PRIu64 " in a segment at %" PRIu64 " of stream %" PRIu32
             " and pool %" PRIu32 " at the end",
             range->address, range->segment_address, range->stream, range->pool);
    snprintf(said, sizeof said,
             "has it in one at %" PRIu64 " of stream %" PRIu32 " and pool %" PRIu32, area->address,
             area->stream, area->pool);
    recorded_device_differs(device, did, said);
    return false;
}

static void compare(struct recorded_device *device, const struct ranges *ranges)
{
    const struct recorded_final *final = &device->recording->final;
    struct fidelity_result *result = device->result;
    bool pages = device->recording->has_pages;
    size_t area = 0;
    for (size_t i = 0; i < device->recording->start.area_count; i++)
        pages |= device->recording->start.areas[i].pages;
    for (size_t i = 0; i < ranges->count || i < final->block_count; i++) {
        const struct ar_policy_range *range = i < ranges->count ? &ranges->items[i] : NULL;
        const struct recorded_end_block *block = i < final->block_count ? &final->blocks[i] : NULL;
        if (!range || !block || !same_block(range, block)) {
            differ(device, range, block);
            return;
        }
        while (area < final->area_count &&
               block->address - final->areas[area].address >= final->areas[area].bytes)
            area++;
        if (area < final->area_count && !same_segment(device, range, &final->areas[area], pages))
            return;
        result->end_blocks_met++;
    }
}

enum ar_status recorded_final_compare(struct recorded_device *device,
                                      const struct ar_policy *policy, struct ar_error *error)
{
    const struct recorded_final *final = &device->recording->final;
    struct ranges ranges = {.error = error};
    device->result->end_blocks = final->block_count;
    if (!final->block_count || recorded_diverged(device))
        return AR_OK;
    if (final->has_pending && !device->recording->has_split_frees) {
        device->result->end_blocks = 0;
        return AR_OK;
    }
    ar_policy_walk(policy, collect, &ranges);
    if (!ranges.failed) {
        AR_ARRAY_SORT(ranges.items, ranges.count, address);
        compare(device, &ranges);
    }
    free(ranges.items);
    return ranges.failed ? AR_HOST_MEMORY : AR_OK;
}

/* ---- deferred frees -------------------------------------------------------------------------
 *
 * An allocator that is short of memory waits for all pending frees after its search for a free
 * block, and does not search again. The recording has these completions before the request, like
 * completions that came before the search. So blocks must complete inside of the policy, and the
 * device decides which completions the policy sees by polling (done) and which only by waiting. */

struct deferring {
    struct forward forward;
    struct recorded_device *device;
};

/* A dry run of any request polls the pending blocks first. */
static void poll_pending(struct ar_policy *base)
{
    static const struct ar_policy_request any = {.bytes = 1};
    (void)ar_policy_would_release(forward_enter(base), &any);
    forward_settle(base);
}

static void deferring_retire(struct ar_policy *base, const struct ar_policy_block *block)
{
    struct recorded_device *device = ((struct deferring *)base)->device;
    uint32_t stream;
    if (!recorded_pending_add(device, block, &stream) ||
        forward_use(base, block, stream) != AR_OK) {
        device->out_of_host_memory = true;
        forward_retire(base, block);
        return;
    }
    (void)forward_free(base, block, stream);
}

static enum ar_status deferring_free(struct ar_policy *base, const struct ar_policy_block *block,
                                     uint32_t stream)
{
    struct recorded_device *device = ((struct deferring *)base)->device;
    if (!recorded_pending_end(device, block))
        return forward_free(base, block, stream);
    if (!device->holds)
        poll_pending(base);
    return AR_OK;
}

enum ar_status deferring_wrap(struct ar_host *host, struct ar_policy *inner,
                              struct recorded_device *device, struct ar_policy **out,
                              struct ar_error *error)
{
    const struct ar_policy_ops *ops = inner->ops;
    *out = inner;
    if (!(ops->capabilities & AR_POLICY_STREAM_ORDERED) || !ops->use || !ops->would_release)
        return AR_OK;
    struct deferring *self = forward_create(host, sizeof *self, "deferring", inner, error);
    AR_TRY_HOST(self);
    self->device = device;
    self->forward.ops.retire = deferring_retire;
    self->forward.ops.free = deferring_free;
    *out = &self->forward.base;
    return AR_OK;
}
