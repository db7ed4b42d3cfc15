/* Who has the bytes of a card, and the state at the end of each phase. */

#include "allocators/base/array.h"
#include "sim/twin/run.h"

/* ---- owners ---------------------------------------------------------------------------------- */

static const char *const own_names[] = {
    [TWIN_OWNER_CONTEXT] = "context", [TWIN_OWNER_ROUNDING] = "rounding",
    [TWIN_OWNER_PENDING] = "pending", [TWIN_OWNER_CACHED] = "cached",
    [TWIN_OWNER_PAGES] = "pages",
};

static bool same_key(const struct twin_owner_key *a, const struct twin_owner_key *b)
{
    /* A purpose of a part is one owner, in the pool and outside. */
    return a->process == b->process && a->part == b->part && a->text == b->text &&
           (a->part != SIZE_MAX || a->kind == b->kind);
}

static enum ar_status intern(struct twin_run *run, const char *text, uint32_t *index)
{
    struct ar_error error;
    if (texts_intern(&run->texts, text, strlen(text), index, &error) == AR_OK)
        return AR_OK;
    return twin_no_memory(run);
}

const char *twin_text(struct twin_run *run, const char *text)
{
    uint32_t index;
    return text && intern(run, text, &index) == AR_OK ? run->texts.items[index] : NULL;
}

uint32_t twin_owner_number(struct twin_run *run, const struct twin_owner_key *given,
                           const char *purpose)
{
    struct twin_owner_key key = *given;
    if (intern(run, purpose, &key.text) != AR_OK)
        return 0;
    for (size_t i = 0; i < run->owner_count; i++)
        if (same_key(&run->owner_keys[i], &key))
            return (uint32_t)i;
    const struct twin_scenario *scenario = run->scenario;
    char name[192];
    uint32_t index;
    snprintf(name, sizeof name, "%s/%s",
             key.part == SIZE_MAX ? scenario->processes[key.process].name
                                  : scenario->parts[key.part].name,
             purpose);
    if (intern(run, name, &index) != AR_OK)
        return 0;
    const struct twin_owner owner = {run->texts.items[index], key.process, key.part, key.kind};
    size_t keys = run->owner_count;
    if (!AR_ARRAY_ADD(run->owner_keys, keys, run->owner_key_room, key) ||
        !AR_ARRAY_ADD(run->owners, run->owner_count, run->owner_room, owner)) {
        (void)twin_no_memory(run);
        return 0;
    }
    return (uint32_t)run->owner_count - 1;
}

/* ---- amounts --------------------------------------------------------------------------------- */

struct adding {
    struct twin_process *process;
    struct twin_amount **items;
    size_t *count, *room;
    enum ar_status status;
};

static void add(struct adding *self, const struct twin_amount *given)
{
    const struct twin_amount amount = *given;
    if (!amount.bytes && !amount.asleep_bytes && !amount.pinned_bytes)
        return;
    if (!AR_ARRAY_ADD(*self->items, *self->count, *self->room, amount))
        self->status = twin_no_memory(self->process->run);
}

static void add_own(struct adding *self, enum twin_owner_kind kind, uint64_t bytes,
                    uint64_t asleep_bytes)
{
    if (!bytes && !asleep_bytes)
        return;
    const struct twin_owner_key key = {self->process->number, SIZE_MAX, kind, 0};
    const struct twin_amount amount = {
        .owner = twin_owner_number(self->process->run, &key, own_names[kind]),
        .bytes = bytes,
        .asleep_bytes = asleep_bytes};
    add(self, &amount);
}

/* Takes up to `*bytes` off `*from`. */
static void take(uint64_t *from, uint64_t *bytes)
{
    uint64_t taken = *from < *bytes ? *from : *bytes;
    *from -= taken;
    *bytes -= taken;
}

enum ar_status twin_amounts_add(struct twin_process *self, struct twin_amount **items,
                                size_t *count, size_t *room)
{
    struct adding adding = {self, items, count, room, AR_OK};
    const struct ar_policy_totals *totals = &self->policy->totals;
    const struct ar_device_counters *counters = &self->device->counters;
    uint64_t asleep_granted = 0, asleep_live = 0, live = 0, outside = 0;
    for (size_t i = 0; i < self->account_count; i++) {
        const struct account *account = &self->accounts[i];
        live += account->live_bytes;
        outside += account->outside_bytes;
        asleep_live += account->asleep_live_bytes;
        asleep_granted += account->asleep_granted_bytes;
        const struct twin_amount amount = {
            .owner = account->owner,
            .bytes = account->live_bytes - account->asleep_live_bytes + account->outside_bytes,
            .asleep_bytes = account->asleep_live_bytes,
            .pinned_bytes = account->pinned_bytes};
        add(&adding, &amount);
    }
    uint64_t asleep_bytes = self->regions.asleep_bytes;
    uint64_t rounding = totals->granted_bytes + totals->overhead_bytes - live;
    uint64_t asleep_rounding = asleep_granted - asleep_live;
    uint64_t cached = ar_policy_free_bytes(totals);
    uint64_t asleep_cached = asleep_bytes - asleep_granted;
    uint64_t reserved = totals->reserved_bytes - asleep_bytes;
    uint64_t pending = totals->pending_bytes;
    uint64_t here_rounding = rounding - asleep_rounding, here_cached = cached - asleep_cached;
    uint64_t pages = 0;
    if (counters->physical_bytes >= reserved) {
        pages = counters->physical_bytes - reserved;
    } else {
        /* Reserved without memory of the card: of free ranges first. */
        uint64_t missing = reserved - counters->physical_bytes;
        take(&here_cached, &missing);
        take(&pending, &missing);
        take(&here_rounding, &missing);
        if (missing)
            return twin_run_error(self->run, AR_CORRUPT,
                                  "policy %s has live blocks without memory of the card",
                                  self->policy->ops->name);
    }
    add_own(&adding, TWIN_OWNER_ROUNDING, here_rounding, asleep_rounding);
    add_own(&adding, TWIN_OWNER_PENDING, pending, 0);
    add_own(&adding, TWIN_OWNER_CACHED, here_cached, asleep_cached);
    add_own(&adding, TWIN_OWNER_PAGES, pages + counters->outside_bytes - outside, 0);
    return adding.status;
}

uint64_t twin_others(const struct twin_process *self)
{
    const struct twin_run *run = self->run;
    uint64_t bytes = 0;
    for (size_t i = 0; i < run->process_count; i++)
        if (run->processes[i].card == self->card && &run->processes[i] != self)
            bytes += twin_process_used(&run->processes[i]);
    return bytes;
}

/* ---- the state at the end of a phase --------------------------------------------------------- */

static uint64_t time_of(const struct twin_process *self)
{
    uint64_t now_ns = self->device->ops->now(self->device);
    uint64_t idle_ns = self->device->ops->idle_at(self->device);
    return now_ns > idle_ns ? now_ns : idle_ns;
}

static void rank_state(struct twin_process *self, struct twin_rank_state *out)
{
    *out = (struct twin_rank_state){0};
    if (!self->device)
        return;
    const struct ar_policy_totals *totals = &self->policy->totals;
    const struct ar_device_counters *counters = &self->device->counters;
    struct watch *watch = &self->watch;
    *out = (struct twin_rank_state){
        .live_bytes = totals->live_bytes,
        .allocated_bytes = totals->granted_bytes,
        .reserved_bytes = totals->reserved_bytes,
        .peak_allocated_bytes = watch->phase_allocated_bytes,
        .peak_reserved_bytes = watch->phase_reserved_bytes,
        .physical_bytes = counters->physical_bytes,
        .outside_bytes = counters->outside_bytes,
        .asleep_bytes = self->regions.asleep_bytes,
        .context_bytes = self->context_bytes,
        .pinned_bytes = counters->pinned_bytes,
        .pinned_live_bytes = self->pinned_live_bytes,
        .ns = time_of(self) - self->phase_ns,
        .events = self->feed.replayed - self->phase_events,
    };
    self->phase_ns = time_of(self);
    self->phase_events = self->feed.replayed;
    watch->phase_allocated_bytes = totals->granted_bytes;
    watch->phase_reserved_bytes = totals->reserved_bytes;
}

/* The amounts of all processes of a card. */
static struct twin_amounts amounts_now(struct twin_run *run, const struct twin_card *card,
                                       uint64_t *used_bytes)
{
    struct twin_amounts amounts = {.first = run->amount_count};
    *used_bytes = 0;
    for (size_t i = 0; i < run->process_count; i++) {
        struct twin_process *process = &run->processes[i];
        if (process->card != card->number || !process->policy)
            continue;
        *used_bytes += twin_process_used(process);
        if (twin_amounts_add(process, &run->amounts, &run->amount_count, &run->amount_room) !=
            AR_OK)
            break;
    }
    amounts.count = run->amount_count - amounts.first;
    return amounts;
}

static struct twin_amounts amounts_high(struct twin_run *run, struct twin_card *card)
{
    struct twin_amounts amounts = {.first = run->amount_count};
    for (size_t i = 0; i < card->high_count; i++)
        if (!AR_ARRAY_ADD(run->amounts, run->amount_count, run->amount_room, card->high[i]))
            (void)twin_no_memory(run);
    amounts.count = run->amount_count - amounts.first;
    return amounts;
}

/* The next phase begins with what is used now. */
static void begin_high(struct twin_run *run, struct twin_card *card)
{
    card->high_bytes = 0;
    for (size_t i = 0; i < run->process_count; i++)
        if (run->processes[i].card == card->number && run->processes[i].policy)
            twin_process_look(&run->processes[i]);
}

static void record_cards(struct twin_run *run)
{
    struct twin_card_state states[TWIN_CARDS] = {0};
    for (size_t i = 0; i < run->card_count; i++) {
        struct twin_card *card = &run->cards[i];
        struct twin_card_state *state = &states[i];
        state->amounts = amounts_now(run, card, &state->used_bytes);
        state->free_bytes = run->usable_bytes - state->used_bytes;
        state->peak_bytes = card->high_bytes;
        state->peak_amounts = amounts_high(run, card);
        begin_high(run, card);
    }
    for (unsigned i = 0; i < twin_card_count(run->scenario); i++)
        if (!AR_ARRAY_ADD(run->card_states, run->card_state_count, run->card_state_room,
                          states[run->shown_as[i]]))
            (void)twin_no_memory(run);
}

static void record_ranks(struct twin_run *run)
{
    for (size_t i = 0; i < run->process_count; i++) {
        struct twin_process *process = &run->processes[i];
        rank_state(process, &process->state);
    }
    for (size_t i = 0; i < run->rank_count; i++) {
        const struct twin_process *process = run->rank_process[i];
        if (!AR_ARRAY_ADD(run->rank_states, run->rank_state_count, run->rank_state_room,
                          process->state))
            (void)twin_no_memory(run);
    }
}

void twin_record_phase(struct twin_run *run)
{
    for (size_t i = 0; i < run->process_count; i++)
        if (run->processes[i].policy)
            twin_process_look(&run->processes[i]);
    for (size_t i = 0; i < run->process_count; i++)
        if ((run->last_cycle || run->outcome != TWIN_PASSED) && run->processes[i].policy)
            twin_record_pins(&run->processes[i]);
    record_ranks(run);
    record_cards(run);
}

/* ---- pinning blocks -------------------------------------------------------------------------- */

#define PINS_MOST 16 /* of a process and a phase */

struct place {
    uint64_t address;
    uint32_t slot;
};

struct pinning {
    struct twin_process *process;
    struct place *places;
    size_t place_count;
    struct twin_pin pins[PINS_MOST]; /* in order: the most kept bytes first */
    size_t pin_count;
    struct twin_pin *segment; /* the used ranges of the present segment */
    size_t segment_count, segment_room;
    uint64_t address, bytes, free_bytes; /* of the present segment */
    bool failed;
};

static void keep_pin(struct pinning *self, const struct twin_pin *pin)
{
    size_t at = self->pin_count;
    while (at > 0 && pin->keeps_bytes > self->pins[at - 1].keeps_bytes)
        at--;
    if (at == PINS_MOST)
        return;
    if (self->pin_count == PINS_MOST)
        self->pin_count--;
    AR_ARRAY_INSERT(self->pins, self->pin_count, at, *pin);
}

/* The free bytes of a segment are divided among the blocks in it. */
static void end_segment(struct pinning *self)
{
    for (size_t i = 0; i < self->segment_count && self->free_bytes; i++) {
        struct twin_pin pin = self->segment[i];
        pin.segment_bytes = self->bytes;
        pin.keeps_bytes = self->free_bytes / self->segment_count;
        keep_pin(self, &pin);
    }
    self->segment_count = 0;
    self->bytes = self->free_bytes = 0;
}

static void add_used(struct pinning *self, const struct ar_policy_range *range)
{
    const struct feed *feed = &self->process->feed;
    size_t at = ar_array_from(self->places, self->place_count, sizeof *self->places,
                              offsetof(struct place, address), range->address);
    struct twin_pin pin = {.address = range->address, .bytes = range->bytes};
    if (at < self->place_count && self->places[at].address == range->address) {
        const struct feed_block *block = &feed->blocks[self->places[at].slot];
        pin.bytes = block->bytes;
        pin.owner = self->process->accounts[block->account].owner;
        pin.tag = block->tag;
        pin.born = twin_phase_of(self->process->run, block->born);
    }
    if (!AR_ARRAY_ADD(self->segment, self->segment_count, self->segment_room, pin))
        self->failed = true;
}

static bool visit(void *argument, const struct ar_policy_range *range)
{
    struct pinning *self = argument;
    if (range->segment_address != self->address)
        end_segment(self);
    self->address = range->segment_address;
    if (range->state == AR_POLICY_RANGE_UNMAPPED ||
        regions_asleep(&self->process->regions, range->address))
        return true;
    self->bytes += range->bytes;
    if (range->state == AR_POLICY_RANGE_USED)
        add_used(self, range);
    else
        self->free_bytes += range->bytes;
    return !self->failed;
}

static void collect_places(struct pinning *self)
{
    const struct feed *feed = &self->process->feed;
    for (size_t i = 0; i < feed->slot_count; i++)
        if (feed->blocks[i].state == FEED_LIVE && !feed->blocks[i].pinned)
            self->places[self->place_count++] =
                (struct place){feed->blocks[i].address, (uint32_t)i};
    AR_ARRAY_SORT(self->places, self->place_count, address);
}

static size_t rank_of(const struct twin_process *process)
{
    const struct twin_run *run = process->run;
    size_t rank = 0;
    while (run->rank_process[rank] != process)
        rank++;
    return rank;
}

/* The tags of a workload end with its part, before the result. */
static bool keep_tag(struct twin_run *run, struct twin_pin *pin)
{
    uint32_t index;
    if (!pin->tag)
        return true;
    if (intern(run, pin->tag, &index) != AR_OK)
        return false;
    pin->tag = run->texts.items[index];
    return true;
}

void twin_record_pins(struct twin_process *process)
{
    struct twin_run *run = process->run;
    if (process->policy->ops->capabilities & AR_POLICY_OPAQUE)
        return;
    struct pinning self = {.process = process};
    self.places = malloc((process->feed.slot_count + 1) * sizeof *self.places);
    if (!self.places) {
        (void)twin_no_memory(run);
        return;
    }
    collect_places(&self);
    ar_policy_walk(process->policy, visit, &self);
    end_segment(&self);
    for (size_t i = 0; i < self.pin_count && !self.failed; i++) {
        self.pins[i].phase = run->phase;
        self.pins[i].rank = rank_of(process);
        self.pins[i].tag = twin_text(run, self.pins[i].tag);
        self.failed = !keep_tag(run, &self.pins[i]) ||
                      !AR_ARRAY_ADD(run->pins, run->pin_count, run->pin_room, self.pins[i]);
    }
    if (self.failed)
        (void)twin_no_memory(run);
    free(self.places);
    free(self.segment);
}
