/* The operations of steps.h on a policy, a device and a backing, and their figures. */
#include <ctype.h>

#include "allocators/policies/bfc/bfc.h"
#include "tests/support/sim.h"
#include "tests/support/steps_state.h"

static const struct {
    const char *name;
    size_t offset;
} of_totals[] = {{"live", offsetof(struct ar_policy_totals, live_bytes)},
                 {"granted", offsetof(struct ar_policy_totals, granted_bytes)},
                 {"reserved", offsetof(struct ar_policy_totals, reserved_bytes)},
                 {"pending", offsetof(struct ar_policy_totals, pending_bytes)},
                 {"releasable", offsetof(struct ar_policy_totals, releasable_bytes)},
                 {"blocks", offsetof(struct ar_policy_totals, live_blocks)}},
  of_stats[] = {{"largest", offsetof(struct ar_policy_stats, largest_free_block_bytes)},
                {"stranded", offsetof(struct ar_policy_stats, stranded_by_stream_bytes)},
#define X(name, help) {#name, offsetof(struct ar_policy_stats, count.name)},
                AR_POLICY_COUNTERS(X)
#undef X
},
  of_device[] = {{"stall", offsetof(struct ar_device_counters, stall_ns)},
                 {"driver_ns", offsetof(struct ar_device_counters, driver_ns)},
                 {"refused", offsetof(struct ar_device_counters, refused)},
                 {"physical", offsetof(struct ar_device_counters, physical_bytes)},
                 {"peak_physical", offsetof(struct ar_device_counters, peak_physical_bytes)},
                 {"outside_bytes", offsetof(struct ar_device_counters, outside_bytes)},
                 {"ranges", offsetof(struct ar_device_counters, segments_made)},
                 {"readings", offsetof(struct ar_device_counters, clock_readings)},
                 {"races", offsetof(struct ar_device_counters, races)},
                 {"pinned_bytes", offsetof(struct ar_device_counters, pinned_bytes)}},
  of_fake[] = {{"held", offsetof(struct fake_backing, held_bytes)},
               {"device_calls", offsetof(struct fake_backing, calls)}};

#define LOOK_UP(table, base)                                                                       \
    for (size_t i = 0; i < COUNT(table); i++)                                                      \
        if (strcmp(name, (table)[i].name) == 0) {                                                  \
            memcpy(value, (const char *)(base) + (table)[i].offset, sizeof *value);                \
            return true;                                                                           \
        }

static bool figure_of_policy(const struct steps *s, const char *name, uint64_t *value)
{
    static const char *const efforts[] = {"servable.none", "servable.map", "servable.wait",
                                          "servable.trim"};
    static const char *const states[] = {"walk.used", "walk.free", "walk.pending", "walk.unmapped",
                                         "walk.overhead"};
    struct ar_policy_stats stats;
    if (!s->policy)
        return false;
    ar_policy_stats(s->policy, &stats);
    LOOK_UP(of_totals, &s->policy->totals)
    LOOK_UP(of_stats, &stats)
    for (size_t i = 0; i < COUNT(states); i++)
        if (strcmp(name, states[i]) == 0)
            return *value = policy_walk_sum(s->policy).bytes[i], true;
    for (size_t i = 0; i < COUNT(efforts); i++)
        if (strcmp(name, efforts[i]) == 0)
            return *value = ar_policy_servable(s->policy, (enum ar_policy_effort)i), true;
    if (strncmp(name, "figure.", 7) == 0)
        *value = policy_rig_figure(&s->rig, name + 7);
    else if (strcmp(name, "free_bytes") == 0)
        *value = ar_policy_free_bytes(&s->policy->totals);
    else if (strcmp(name, "next_region") == 0)
        *value = ((const struct bfc *)s->policy)->regions.next_bytes;
    else if (strcmp(name, "limit") == 0)
        *value = ((const struct bfc *)s->policy)->regions.limit_bytes;
    else if (strcmp(name, "regions") == 0)
        *value = ((const struct bfc *)s->policy)->regions.count;
    else
        return false;
    return true;
}

/* calls.NAME, ns.NAME; `calls`: all except events. */
static bool figure_of_calls(const struct ar_device *device, const char *name, uint64_t *value)
{
    bool all = strcmp(name, "calls") == 0, ns = strncmp(name, "ns.", 3) == 0;
    *value = 0;
    for (int i = 0; all && i < AR_DEVICE_CALL_COUNT; i++)
        *value += i == AR_DEVICE_CALL_event ? 0 : device->counters.calls[i];
    for (int i = 0; (ns || strncmp(name, "calls.", 6) == 0) && i < AR_DEVICE_CALL_COUNT; i++)
        if (strcmp(strchr(name, '.') + 1, ar_device_call_name((enum ar_device_call)i)) == 0)
            return *value = ns ? device->counters.call_ns[i] : device->counters.calls[i], true;
    return all;
}

static bool figure_of_memory(struct steps *s, const char *name, uint64_t *value)
{
    uint64_t used = 0, reserved = 0, free = 0, total = 0;
    if (!s->backing)
        return false;
    s->backing->ops->memory(s->backing, &free, &total);
    if (s->backing->ops->pool_memory && strncmp(name, "pool_", 5) == 0)
        s->backing->ops->pool_memory(s->backing, &used, &reserved);
    if (strcmp(name, "free_memory") == 0)
        *value = free;
    else if (strcmp(name, "total_memory") == 0)
        *value = total;
    else if (strcmp(name, "pool_used") == 0)
        *value = used;
    else if (strcmp(name, "pool_reserved") == 0)
        *value = reserved;
    else if (s->device && strcmp(name, "now") == 0)
        *value = s->device->ops->now(s->device);
    else if (s->device && strncmp(name, "mark_ns.", 8) == 0 && steps_find(s, name + 8))
        *value = s->device->ops->mark_ns(s->device, (uint64_t)steps_find(s, name + 8)->value);
    else if (s->device && strcmp(name, "idle") == 0)
        *value = s->device->ops->idle_at(s->device);
    else if (s->device && strcmp(name, "capacity") == 0)
        *value = s->device->props.capacity_bytes;
    else if (s->device && strcmp(name, "card") == 0)
        *value = s->device->props.total_bytes;
    else if (s->device && strcmp(name, "least") == 0)
        *value = s->device->props.kernel_least_ns;
    else if (s->device && strcmp(name, "failed") == 0)
        *value = s->device->failed;
    else if (s->device && strcmp(name, "bad_input") == 0)
        *value = s->device->bad_input;
    else if (strcmp(name, "copies") == 0)
        *value = s->copies;
    else if (strcmp(name, "copied_from") == 0)
        *value = s->copied_from;
    else if (strcmp(name, "adjacent") == 0)
        *value = s->backing->adjacent;
    else if (strcmp(name, "page") == 0)
        *value = s->backing->page_bytes;
    else
        return false;
    return true;
}

bool steps_figure(struct steps *s, const char *name, uint64_t *value)
{
    const struct fake_backing *fake = s->device ? NULL : &fake_rig_backing;
    if (name[0] >= 'A' && name[0] <= 'D' && !name[1])
        return *value = (uint64_t)(name[0] - 'A'), true;
    if (strcmp(name, "all") == 0 || strcmp(name, "max") == 0)
        return *value = name[0] == 'a' ? UINT32_MAX : UINT64_MAX, true;
    if (fake && strncmp(name, "attempt.", 8) == 0)
        return *value = fake->attempts[strtoul(name + 8, NULL, 10) % 64], true;
    if (fake) {
        LOOK_UP(of_fake, fake)
    } else {
        LOOK_UP(of_device, &s->device->counters)
        if (figure_of_calls(s->device, name, value))
            return true;
    }
    return steps_plugin_figure(name, value) || figure_of_policy(s, name, value) ||
           figure_of_memory(s, name, value) || steps_learned_figure(name, value) ||
           steps_run_figure(name, value) || (s->card && steps_card_figure(name, value));
}

static void check(struct steps *s)
{
    if (ar_policy_validate(s->policy, &test_error))
        steps_wrong(s, "%s", test_error.text);
    if (!s->device)
        return;
    if (!s->misused && s->device->ops->problem(s->device)[0])
        steps_wrong(s, "%s", s->device->ops->problem(s->device));
    if (s->device->ops->race_text(s->device)[0])
        steps_wrong(s, "%s", s->device->ops->race_text(s->device));
    if (!s->pinned)
        steps_is_equal(s, s->device->counters.physical_bytes, s->policy->totals.reserved_bytes);
}

/* The end of a call of the backing, which may be misuse. */
static void backed(struct steps *s, enum ar_status status)
{
    s->misused |= status == AR_INVALID;
    steps_ended(s, status, status == AR_INVALID ? ar_backing_problem(s->backing) : "");
}

/* ---- the rig --------------------------------------------------------------------------------- */

void steps_close_rig(struct steps *s)
{
    if (s->policy) {
        if (!s->stopped)
            check(s);
        if (s->device) /* a policy is destroyed when the device has no work */
            s->device->ops->sync(s->device, UINT32_MAX);
        steps_is_equal(s, policy_rig_close(&s->rig), 0);
        uint64_t left = s->device
                            ? s->device->counters.physical_bytes + s->device->counters.pinned_bytes
                            : fake_rig_backing.held_bytes;
        if (s->refused != RELAY_UNMAP &&
            (!s->stopped || s->refused != RELAY_MAP)) /* else it does not know what is mapped */
            steps_is_equal(s, left, 0);
        if (s->device && !s->misused && s->device->ops->problem(s->device)[0])
            steps_wrong(s, "%s", s->device->ops->problem(s->device));
    }
    if (s->card)
        steps_card_close(s->device);
    else
        ar_device_close(s->device);
    s->card = false;
    s->device = NULL;
    s->backing = NULL;
    s->policy = NULL;
    s->pinned = s->misused = s->another_takes = s->stopped = false;
    s->copies = s->refusals = s->refused = 0;
    for (size_t i = 0; i < s->thing_count; i++)
        s->things[i].live = false;
}

static void open_fake(struct steps *s)
{
    fake_backing_open(&fake_rig_backing, UINT64_MAX);
    s->backing = &fake_rig_backing.base;
    while (!steps_at_end(s) && strncmp(s->at, "->", 2) != 0) {
        if (steps_take(s, "cap="))
            fake_rig_backing.cap_bytes = steps_value(s);
        else if (steps_take(s, "pages="))
            fake_backing_virtual(&fake_rig_backing, steps_value(s), fake_rig_backing.cap_bytes);
        else if (steps_take(s, "total="))
            fake_rig_backing.total_bytes = steps_value(s);
        else if (steps_take(s, "next="))
            fake_rig_backing.next = steps_value(s);
        else if (steps_take(s, "adjacent="))
            fake_rig_backing.base.adjacent = steps_value(s) != 0;
        else
            steps_wrong(s, "no such word of a fake backing: %s", s->at);
    }
}

static void open_device(struct steps *s)
{
    char spec[LINE];
    steps_word(s, spec, sizeof spec);
    s->card = strncmp(spec, "cuda", 4) == 0;
    s->device = s->card ? steps_card_open(spec) : sim_test_open(spec);
    s->backing = s->pinned ? s->device->pinned : s->device->backing;
}

static void step_device(struct steps *s)
{
    steps_close_rig(s);
    open_device(s);
}

static enum ar_status before_call(struct relay *relay, enum relay_hook hook)
{
    struct steps *s = (struct steps *)((char *)relay - offsetof(struct steps, relay));
    s->copies += hook == RELAY_COPY;
    if (hook == s->refused && s->refusals)
        return s->refusals--, AR_REFUSED;
    return hook == RELAY_CREATE && s->copies && s->another_takes ? AR_REFUSED : AR_OK;
}

static enum ar_status note_copy(struct ar_backing *base, uint64_t to, uint64_t from, uint64_t bytes)
{
    struct steps *s = (struct steps *)((char *)base - offsetof(struct steps, relay.base));
    s->copies++;
    s->copied_from = from;
    return ar_backing_copy(s->backing, to, from, bytes);
}

static void step_open(struct steps *s)
{
    char spec[LINE];
    const char *on = strstr(s->at, " on ");
    steps_close_rig(s);
    if (!on)
        steps_wrong(s, "on what?");
    snprintf(spec, sizeof spec, "%.*s", (int)(on - s->at - 1), s->at + 1);
    s->at = on + 4;
    s->pinned = steps_take(s, "pinned");
    if (steps_take(s, "fake"))
        open_fake(s);
    else
        open_device(s);
    s->relay.before = before_call;
    relay_open(&s->relay, s->backing);
    if (s->relay.ops.copy)
        s->relay.ops.copy = steps_take(s, "without_copies") ? NULL : note_copy;
    if (steps_take(s, "pages="))
        s->relay.base.page_bytes = steps_value(s);
    enum ar_status status = policy_rig_open(&s->rig, spec, &s->relay.base, 0);
    s->policy = s->rig.policy;
    steps_ended(s, status, s->rig.error.text);
    if (status) {
        steps_is_equal(s, policy_rig_close(&s->rig), 0);
        s->policy = NULL;
    }
}

/* ---- operations on the policy ---------------------------------------------------------------- */

static struct ar_policy_request read_request(struct steps *s)
{
    static const struct {
        const char *name;
        uint8_t bits;
    } pools[] = {{"plain", AR_MEMPOOL_PLAIN},
                 {"own", AR_MEMPOOL_PLAIN | AR_MEMPOOL_ALLOCATOR},
                 {"last_resort", AR_MEMPOOL_USE_ON_OOM},
                 {"no_split", AR_MEMPOOL_NO_SPLIT},
                 {"captured", AR_MEMPOOL_CAPTURED}};
    struct ar_policy_request request = {.bytes = steps_value(s)};
    if (!request.bytes)
        steps_wrong(s, "a request has at least 1 byte");
    while (!steps_at_end(s) && strncmp(s->at, "->", 2) != 0) {
        size_t i = 0;
        while (i < COUNT(pools) && !steps_take(s, pools[i].name))
            i++;
        if (i < COUNT(pools))
            request.mempool |= pools[i].bits;
        else if (steps_take(s, "stream="))
            request.stream = steps_id(s, "stream");
        else if (steps_take(s, "align="))
            request.alignment = steps_value(s);
        else if (steps_take(s, "pool="))
            request.pool = steps_id(s, "pool");
        else if (steps_take(s, "may_fail"))
            request.may_fail = true;
        else if (steps_take(s, "upper"))
            request.upper_end = true;
        else
            steps_wrong(s, "no such word of a request: %s", s->at);
    }
    return request;
}

static void step_alloc(struct steps *s)
{
    struct thing *thing = steps_new(s);
    struct ar_policy_request request = read_request(s);
    if (thing->live && strcmp(thing->name, "_") != 0)
        steps_wrong(s, "%s is live", thing->name);
    struct ar_policy_block block;
    enum ar_status status = ar_policy_alloc(s->policy, &request, &block);
    s->event++;
    if (status == AR_OK) {
        thing->block = block;
        thing->value = block.address;
        thing->stream = request.stream;
        thing->live = true;
        if (block.granted_bytes < request.bytes)
            steps_wrong(s, "%" PRIu64 " bytes", block.granted_bytes);
        if (s->device && !s->pinned)
            (void)s->device->ops->handed_out(s->device, block.address, block.granted_bytes,
                                             request.stream, false, s->event);
    }
    if (status == AR_OK || status == AR_NO_MEMORY)
        check(s);
    else
        s->stopped = true;
    bool arrow = steps_take(s, "->");
    if (arrow && !steps_at_end(s) && isupper((unsigned char)s->at[0]) &&
        isupper((unsigned char)s->at[1])) {
        steps_is_status(s, status, steps_status(s), ar_policy_problem(s->policy));
        return;
    }
    if (status)
        steps_wrong(s, "%s \"%s\"", ar_status_name(status), ar_policy_problem(s->policy));
    if (arrow && !steps_take(s, "?"))
        steps_is_equal(s, block.address, steps_value(s));
    if (arrow && !steps_at_end(s))
        steps_is_equal(s, block.granted_bytes, steps_value(s));
}

static void free_one(struct steps *s, struct thing *thing, uint32_t of)
{
    thing->live = false;
    if (s->device && !s->pinned)
        s->device->ops->used(s->device, (uint64_t)thing->value, thing->block.granted_bytes, of,
                             ++s->event);
    enum ar_status status = ar_policy_free(s->policy, &thing->block, of);
    if (!status)
        check(s);
    steps_ended(s, status, ar_policy_problem(s->policy));
}

static void step_free(struct steps *s)
{
    struct thing *things[8];
    size_t count = 0;
    uint32_t of = 0;
    bool has_stream = false;
    while (!steps_at_end(s) && strncmp(s->at, "->", 2) != 0 && count < 8 && !has_stream) {
        has_stream = steps_take(s, "stream=");
        if (has_stream)
            of = steps_id(s, "stream");
        else
            things[count++] = steps_thing(s);
    }
    for (size_t i = 0; i < count; i++)
        free_one(s, things[i], has_stream ? of : things[i]->stream);
}

/* The end of a call of the policy that may change its memory. */
static void called(struct steps *s, enum ar_status status)
{
    check(s);
    steps_ended(s, status, ar_policy_problem(s->policy));
}

static void step_use(struct steps *s)
{
    struct thing *thing = steps_thing(s);
    called(s, ar_policy_use(s->policy, &thing->block, steps_id(s, "stream")));
}

static void step_trim(struct steps *s)
{
    bool keeps = !steps_at_end(s) && strncmp(s->at, "->", 2) != 0;
    called(s, ar_policy_trim(s->policy, keeps ? steps_value(s) : 0));
}

static void step_would_release(struct steps *s)
{
    struct ar_policy_request request = read_request(s);
    steps_answered(s, ar_policy_would_release(s->policy, &request));
}

static void step_would_fit(struct steps *s)
{
    struct ar_policy_request request = read_request(s);
    steps_answered(s, ar_policy_would_fit(s->policy, &request));
}

/* `change settings,CONF`, `change limit,BYTES`: in the middle of the program. */
static void step_change(struct steps *s)
{
    char text[LINE];
    steps_until_arrow(s, text, sizeof text);
    enum ar_status status = ar_policy_change(s->policy, text, &test_error);
    check(s);
    steps_ended(s, status, test_error.text);
}

/* Blocks as BYTES FROM TO: the events of the request and of its free. */
static void step_plan(struct steps *s)
{
    struct ar_policy_lifetime plan[8];
    size_t count = 0;
    for (; !steps_at_end(s) && count < COUNT(plan); count++) {
        plan[count].bytes = steps_value(s);
        plan[count].born = steps_value(s);
        plan[count].dies = steps_value(s);
    }
    assert_int_equal(s->policy->ops->plan(s->policy, plan, count), AR_OK);
}

static void step_setting(struct steps *s)
{
    char text[LINE] = "none";
    if (!s->policy->ops->setting || !s->policy->ops->setting(s->policy, text, sizeof text))
        snprintf(text, sizeof text, "none");
    steps_is_text(s, text, true);
}

/* ---- operations on the device ---------------------------------------------------------------- */

static void step_sync(struct steps *s)
{
    s->device->ops->sync(s->device, steps_at_end(s) ? UINT32_MAX : steps_id(s, "stream"));
}

static void step_handed_out(struct steps *s)
{
    uint64_t address = steps_value(s), bytes = steps_value(s);
    uint32_t to = steps_id(s, "stream");
    uint64_t event = steps_value(s);
    bool order = steps_take(s, "order");
    steps_answered(s, s->device->ops->handed_out(s->device, address, bytes, to, order, event));
}

/* Answers the ordinal; then segment.address and segment.bytes are set. */
static void step_segment_of(struct steps *s)
{
    struct ar_device_segment segment = {.ordinal = UINT64_MAX};
    (void)s->device->ops->segment_of(s->device, steps_value(s), &segment);
    steps_make(s, "segment.address")->value = segment.address;
    steps_make(s, "segment.bytes")->value = segment.bytes;
    steps_answered(s, segment.ordinal);
}

/* ---- operations on the backing --------------------------------------------------------------- */

/* Calls that make something: NAME BYTES [STREAM]. */
#define MAKES(name, call)                                                                          \
    static void step_##name(struct steps *s)                                                       \
    {                                                                                              \
        struct thing *thing = steps_new(s);                                                        \
        uint64_t bytes = steps_value(s), got = 0;                                                  \
        enum ar_status status = call;                                                              \
        if (!status)                                                                               \
            thing->value = got;                                                                    \
        if (!status && steps_take(s, "-> at"))                                                     \
            steps_is_equal(s, got, steps_value(s));                                                \
        backed(s, status);                                                                         \
    }

MAKES(segment, ar_backing_segment_alloc(s->backing, bytes, &got))
MAKES(reserve, ar_backing_reserve(s->backing, bytes, &got))
MAKES(create, ar_backing_create(s->backing, bytes, &got))
MAKES(pool_alloc, s->backing->ops->pool_alloc(s->backing, bytes, steps_id(s, "stream"), &got))

static void step_fence(struct steps *s)
{
    struct thing *thing = steps_new(s);
    thing->ticket = ar_backing_fence(s->backing, steps_id(s, "stream"));
    thing->value = thing->ticket.value;
}

static void step_done(struct steps *s)
{
    const struct thing *thing = steps_thing(s);
    steps_answered(s, ar_backing_done(s->backing, thing->ticket));
}

static void step_order(struct steps *s)
{
    uint32_t waits = steps_id(s, "stream");
    ar_backing_order(s->backing, waits, steps_thing(s)->ticket);
}

static void step_pool_open(struct steps *s)
{
    struct ar_backing_pool settings = {0};
    while (!steps_at_end(s) && strncmp(s->at, "->", 2) != 0) {
        if (steps_take(s, "threshold="))
            settings.release_threshold_bytes = steps_value(s);
        else if (steps_take(s, "most="))
            settings.most_bytes = steps_value(s);
        else if (steps_take(s, "follow"))
            settings.follow_events = true;
        else if (steps_take(s, "opportunistic"))
            settings.opportunistic = true;
        else if (steps_take(s, "internal"))
            settings.internal = true;
        else
            steps_wrong(s, "no such word of a pool: %s", s->at);
    }
    backed(s, s->backing->ops->pool_open(s->backing, &settings));
}

static void read_numbers(struct steps *s, uint64_t *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        numbers[i] = steps_value(s);
}

/* Operations that are a call with numbers: name, how many, the call. */
#define CALLS(X)                                                                                   \
    X(end_pool, 0, ar_policy_end_pool(s->policy, steps_id(s, "pool")), check(s))                   \
    X(delete_pool, 0, called(s, ar_policy_delete_pool(s->policy, steps_id(s, "pool"))))            \
    X(progress, 0, ar_policy_progress(s->policy), check(s))                                        \
    X(reset_peaks, 0, ar_policy_reset_peaks(s->policy))                                            \
    X(problem, 0, steps_is_text(s, ar_policy_problem(s->policy), false))                           \
    X(race, 0, steps_is_text(s, s->device->ops->race_text(s->device), false))                      \
    X(await, 0, ar_backing_wait(s->backing, steps_thing(s)->ticket))                               \
    X(misuse, 0, steps_is_text(s, ar_backing_problem(s->backing), false))                          \
    X(kernel, 2, s->device->ops->kernel(s->device, (uint32_t)a[0], a[1]))                          \
    X(advance, 1, s->device->ops->advance(s->device, a[0]))                                        \
    X(record, 2, s->device->ops->event_record(s->device, a[0], (uint32_t)a[1]))                    \
    X(wait, 2, s->device->ops->stream_wait(s->device, (uint32_t)a[0], a[1]))                       \
    X(used, 4, s->device->ops->used(s->device, a[0], a[1], (uint32_t)a[2], a[3]))                  \
    X(outside, 1, backed(s, s->device->ops->outside(s->device, a[0])))                             \
    X(skip, 1, fake_rig_backing.next += a[0])                                                      \
    X(another_takes, 0, s->another_takes = true)                                                   \
    X(requested, 0, s->device->ops->requested(s->device))                                          \
    X(mark, 0, steps_new(s)->value = s->device->ops->mark(s->device))                              \
    X(profile, 0, steps_is_text(s, s->device->props.profile, true))                                \
    X(driver_fails, 0, steps_card_fail(steps_rest(s)))                                             \
    X(costs_of, 0,                                                                                 \
      steps_is_text(s, *s->device->props.costs_of ? s->device->props.costs_of : "none", true))     \
    X(refuse_reserve, 1, s->refusals = a[0], s->refused = RELAY_RESERVE)                           \
    X(refuse_map, 1, s->refusals = a[0], s->refused = RELAY_MAP)                                   \
    X(refuse_unmap, 1, s->refusals = a[0], s->refused = RELAY_UNMAP)                               \
    X(segment_free, 1, backed(s, ar_backing_segment_free(s->backing, a[0])))                       \
    X(release, 1, backed(s, ar_backing_release(s->backing, a[0])))                                 \
    X(destroy, 1, backed(s, ar_backing_destroy(s->backing, a[0])))                                 \
    X(map, 2, backed(s, ar_backing_map(s->backing, a[0], a[1])))                                   \
    X(access, 2, backed(s, ar_backing_access(s->backing, a[0], a[1])))                             \
    X(unmap, 2, backed(s, ar_backing_unmap(s->backing, a[0], a[1])))                               \
    X(copy, 3, backed(s, ar_backing_copy(s->backing, a[0], a[1], a[2])))                           \
    X(copy_out, 2, backed(s, ar_backing_copy_out(s->backing, &s->host_byte, a[0], a[1])))          \
    X(copy_in, 2, backed(s, ar_backing_copy_in(s->backing, a[0], &s->host_byte, a[1])))            \
    X(pool_free, 2, backed(s, s->backing->ops->pool_free(s->backing, a[0], (uint32_t)a[1])))       \
    X(pool_trim, 1, backed(s, s->backing->ops->pool_trim(s->backing, a[0])))

#define X(name, count, ...)                                                                        \
    static void step_##name(struct steps *s)                                                       \
    {                                                                                              \
        uint64_t a[4];                                                                             \
        read_numbers(s, a, count);                                                                 \
        __VA_ARGS__;                                                                               \
    }
CALLS(X)
#undef X

void steps_need_policy(const struct steps *s)
{
    if (!s->policy)
        steps_wrong(s, "no policy is open; begin with: open SPEC on MEMORY");
}

void steps_need_device(const struct steps *s)
{
    if (!s->device)
        steps_wrong(s, "there is no simulated device; begin with: device sim");
}

/* An operation needs what it is on. */
static void check_needs(const struct steps *s, const char *name)
{
    static const char on_policy[] =
        " alloc free use trim would_release would_fit change plan setting end_pool delete_pool "
        "progress reset_peaks problem ";
    static const char on_device[] = " kernel advance record wait used outside requested mark race "
                                    "profile costs_of sync handed_out segment_of ";
    static const char on_backing[] =
        " segment segment_free reserve release create destroy map access unmap copy copy_out "
        "copy_in fence await order misuse done pool_open pool_alloc pool_free pool_trim ";
    char word[NAME + 2];
    snprintf(word, sizeof word, " %s ", name);
    if (strstr(on_policy, word))
        steps_need_policy(s);
    if (strstr(on_device, word))
        steps_need_device(s);
    if (!s->backing && strstr(on_backing, word))
        steps_wrong(s, "there is no memory; begin with: device sim, or: open SPEC on fake");
    if (strncmp(name, "pool_", 5) == 0 && !s->backing->ops->pool_open)
        steps_wrong(s, "this memory has no pool");
    if (strcmp(name, "plan") == 0 && !s->policy->ops->plan)
        steps_wrong(s, "policy %s has no plan", s->policy->ops->name);
}

bool steps_operation(struct steps *s)
{
    if (steps_plugin_operation(s) || steps_run_operation(s) || steps_learned_operation(s))
        return true;
#define X(name, ...) {#name, step_##name},
#define STEP(name)   X(name, )
    static const struct {
        const char *name;
        void (*run)(struct steps *s);
    } steps[] = {CALLS(X) STEP(alloc) STEP(free) STEP(open) STEP(device) STEP(use) STEP(trim)
                     STEP(setting) STEP(change) STEP(plan) STEP(sync) STEP(handed_out)
                         STEP(segment_of) STEP(segment) STEP(reserve) STEP(create) STEP(fence)
                             STEP(done) STEP(order) STEP(pool_open) STEP(pool_alloc)
                                 STEP(would_release) STEP(would_fit)};
#undef STEP
#undef X
    for (size_t i = 0; i < COUNT(steps); i++) {
        if (!steps_take(s, steps[i].name))
            continue;
        check_needs(s, steps[i].name);
        steps[i].run(s);
        return true;
    }
    return false;
}
