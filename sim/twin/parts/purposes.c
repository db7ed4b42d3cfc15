#include "sim/twin/parts/player.h"

#include <ctype.h>

#include "allocators/base/array.h"

/* Parts of tags, in lower case. The first that is found counts. "autograd" is PyTorch's category
 * of saved tensors (torch.profiler memory timeline). */
static const struct {
    const char *part;
    enum player_purpose purpose;
} words[] = {
    {"autograd", PLAYER_ACTIVATION},  {"activation", PLAYER_ACTIVATION},
    {"temporary", PLAYER_ACTIVATION}, {"scratch", PLAYER_ACTIVATION},
    {"grad", PLAYER_GRADIENT},        {"optim", PLAYER_OPTIMIZER},
    {"exp_avg", PLAYER_OPTIMIZER},    {"moment", PLAYER_OPTIMIZER},
    {"param", PLAYER_WEIGHT},         {"weight", PLAYER_WEIGHT},
    {"cublas", PLAYER_STATE}, /* its workspaces, in traces without a card */
};

bool purposes_of_tag(const char *tag, uint8_t *purpose)
{
    char lower[64];
    size_t length = 0;
    if (!tag)
        return false;
    for (; tag[length] && length + 1 < sizeof lower; length++)
        lower[length] = (char)tolower((unsigned char)tag[length]);
    lower[length] = '\0';
    for (size_t i = 0; i < AR_COUNT(words); i++)
        if (strstr(lower, words[i].part)) {
            *purpose = (uint8_t)words[i].purpose;
            return true;
        }
    return false;
}

/* A block by its id. */
struct life {
    uint64_t event, end_event, bytes; /* end_event: of the free */
    uint32_t born, died;              /* steps that had ended; died UINT32_MAX: never */
    uint8_t tagged;                   /* the purpose that its tag names; PLAYER_PURPOSES: none */
};

struct reading {
    struct player *player;
    struct life *lives; /* by id */
    size_t life_count;
    uint64_t *ids; /* by slot */
    size_t slot_count;
    uint64_t *bytes; /* by slot, of live blocks */
    size_t bytes_count;
    uint64_t events, live_bytes;
    uint64_t peak_bytes, peak_event; /* of the first step */
    uint32_t steps;
};

static bool on_request(struct reading *self, const struct trace_event *event)
{
    if (!AR_ARRAY_REACH(self->lives, self->life_count, event->id) ||
        !AR_ARRAY_REACH(self->ids, self->slot_count, event->slot) ||
        !AR_ARRAY_REACH(self->bytes, self->bytes_count, event->slot))
        return false;
    self->lives[event->id] = (struct life){.event = self->events,
                                           .end_event = UINT64_MAX,
                                           .bytes = event->value,
                                           .born = self->steps,
                                           .died = UINT32_MAX,
                                           .tagged = PLAYER_PURPOSES};
    if (event->attributes)
        (void)purposes_of_tag(trace_attributes_of(self->player->source, event->attributes)->tag,
                              &self->lives[event->id].tagged);
    self->ids[event->slot] = event->id;
    self->bytes[event->slot] = event->value;
    self->live_bytes += event->value;
    if (!event->id)
        self->player->block_stream = event->stream;
    if (!self->steps && self->live_bytes > self->peak_bytes) {
        self->peak_bytes = self->live_bytes;
        self->peak_event = self->events;
    }
    return true;
}

static enum ar_status read_all(struct reading *self, struct ar_error *error)
{
    struct trace_cursor cursor = {.source = self->player->source};
    const struct trace_event *event;
    enum ar_status status = AR_OK;
    /* All of the last span, which the player does not get. */
    while ((self->events < PURPOSES_EVENTS || cursor.at != cursor.end) &&
           (event = trace_read(&cursor, &status, error)) != NULL) {
        if (trace_requests(event)) {
            AR_TRY_MEMORY(on_request(self, event), error, "a workload");
        } else if (trace_frees(event) && event->slot < self->slot_count) {
            self->lives[self->ids[event->slot]].died = self->steps;
            self->lives[self->ids[event->slot]].end_event = self->events;
            self->live_bytes -= self->bytes[event->slot];
        } else if (trace_ends_step(event)) {
            self->steps++;
        }
        self->events++;
    }
    if (self->events < PURPOSES_EVENTS)
        self->player->steps = self->steps;
    return status;
}

/* A block that one end of a step finds live: a gradient, if it goes on like that. */
static bool is_gradient(const struct reading *self, const struct life *life)
{
    if (life->tagged != PLAYER_PURPOSES)
        return life->tagged == PLAYER_GRADIENT;
    if (life->born >= self->steps) /* after the last end */
        return false;
    if (life->died >= self->steps)
        return life->born + 1 == self->steps && self->steps > 1;
    return life->died == life->born + 1;
}

/* The event that divides weights from states of the optimizer. */
static uint64_t boundary(const struct reading *self)
{
    for (size_t i = 0; i < self->life_count; i++) {
        const struct life *life = &self->lives[i];
        bool ends = life->died < self->steps || life->tagged == PLAYER_GRADIENT;
        if (!life->born && ends && is_gradient(self, life))
            return life->event;
    }
    return self->peak_event;
}

/* The begin of the first forward pass: before it are blocks that stay, after it are activations
 * that are live when the gradients begin. The event with the fewest exceptions divides them: a
 * batch that is loaded early, workspaces. */
static uint64_t forward_event(const struct reading *self, uint64_t boundary_event)
{
    uint64_t best = 0;
    int64_t exceptions = 0, fewest = 0; /* beyond those of an event before all blocks */
    for (size_t i = 0; i < self->life_count && self->lives[i].event < boundary_event; i++) {
        const struct life *life = &self->lives[i];
        bool stays = life->died >= self->steps;
        if (!stays && (life->died || life->end_event < boundary_event))
            continue;
        exceptions += stays ? -1 : 1;
        if (exceptions < fewest) {
            fewest = exceptions;
            best = life->event + 1;
        }
    }
    return best;
}

static enum player_purpose purpose_of(const struct reading *self, const struct life *life,
                                      uint64_t forward, uint64_t boundary_event)
{
    if (life->tagged != PLAYER_PURPOSES)
        return (enum player_purpose)life->tagged;
    if (!self->steps)
        return life->died == UINT32_MAX ? PLAYER_WEIGHT : PLAYER_ACTIVATION;
    if (life->born == life->died || life->born >= self->steps)
        return PLAYER_ACTIVATION;
    if (life->born == 0 && life->died >= self->steps)
        return life->event < forward          ? PLAYER_WEIGHT
               : life->event < boundary_event ? PLAYER_STATE
                                              : PLAYER_OPTIMIZER;
    return is_gradient(self, life) ? PLAYER_GRADIENT : PLAYER_STATE;
}

/* States of an optimizer have the size of a weight, in the same type or another one (master weights
 * and moments in float32, states of 8 bits), or are counters. What else stays from the first step
 * on is a workspace or a cache of a library. `sizes`: of all weights, in order. */
static bool is_optimizer_size(const uint64_t *sizes, size_t count, uint64_t bytes)
{
    static const struct {
        uint64_t up, down;
    } scales[] = {{1, 1}, {2, 1}, {4, 1}, {1, 2}};
    if (bytes <= 8)
        return true;
    for (size_t i = 0; i < AR_COUNT(scales); i++) {
        uint64_t scaled = bytes / scales[i].down * scales[i].up;
        size_t at = ar_array_from(sizes, count, sizeof *sizes, 0, scaled);
        if (at < count && sizes[at] == scaled)
            return true;
    }
    return false;
}

static size_t weight_sizes(const struct reading *self, const uint8_t *purposes, uint64_t *sizes)
{
    size_t count = 0;
    for (size_t i = 0; i < self->life_count; i++)
        if (purposes[i] == PLAYER_WEIGHT)
            sizes[count++] = self->lives[i].bytes;
    ar_array_sort(sizes, count);
    return count;
}

/* Finds the event after the last weight of the first step. */
static void find_load_end(const struct reading *self)
{
    struct player *player = self->player;
    for (size_t i = 0; i < self->life_count && self->steps; i++) {
        const struct life *life = &self->lives[i];
        if (player->purposes[i] == PLAYER_WEIGHT && !life->born && life->event >= player->load_end)
            player->load_end = life->event + 1;
    }
}

static enum ar_status judge(struct reading *self, struct ar_error *error)
{
    struct player *player = self->player;
    uint64_t at = boundary(self), forward = forward_event(self, at);
    uint64_t *sizes = malloc((self->life_count + 1) * sizeof *sizes);
    player->purposes = malloc(self->life_count + 1);
    if (!player->purposes || !sizes) {
        free(sizes);
        return ar_no_memory(error, "a workload");
    }
    player->purpose_count = self->life_count;
    for (size_t i = 0; i < self->life_count; i++)
        player->purposes[i] = (uint8_t)purpose_of(self, &self->lives[i], forward, at);
    size_t count = weight_sizes(self, player->purposes, sizes);
    for (size_t i = 0; i < self->life_count; i++)
        if (player->purposes[i] == PLAYER_OPTIMIZER && self->lives[i].tagged == PLAYER_PURPOSES &&
            !is_optimizer_size(sizes, count, self->lives[i].bytes))
            player->purposes[i] = PLAYER_STATE;
    free(sizes);
    find_load_end(self);
    return AR_OK;
}

enum ar_status purposes_find(struct player *player, struct ar_error *error)
{
    if (player->source->info.adaptive) {
        player->repeat = 1;
        return AR_OK;
    }
    struct reading self = {.player = player};
    enum ar_status status = read_all(&self, error);
    AR_THEN(status, judge(&self, error));
    if (self.steps < player->repeat)
        player->repeat = self.steps ? self.steps : 1;
    free(self.lives);
    free(self.ids);
    free(self.bytes);
    return status;
}
