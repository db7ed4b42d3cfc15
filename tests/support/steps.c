#include "tests/support/steps.h"

#include <ctype.h>

#include "allocators/policies/bfc/bfc.h"
#include "tests/support/policy_rig.h"
#include "tests/support/sim.h"
#include "tests/support/test.h"

enum { MOST_LINES = 256, MOST_THINGS = 1200, MOST_WORDS = 16, LINE = 256, NAME = 64 };

/* What a name stands for: a number, or a block or ticket with its address or value. */
struct thing {
    char name[NAME];
    uint64_t value;
    struct ar_policy_block block;
    struct ar_backing_ticket ticket;
    uint32_t stream; /* of the request */
    bool live;
};

struct steps {
    const char *path;
    struct {
        unsigned number;
        char text[LINE];
    } lines[MOST_LINES];
    size_t count, line;  /* and the one that runs: */
    char text[4 * LINE]; /* with values in place of $names */
    const char *at;      /* what is not yet read of it */
    struct thing things[MOST_THINGS];
    size_t thing_count;
    struct {
        char name[NAME], text[LINE];
    } words[MOST_WORDS]; /* of `each` */
    size_t word_count;

    struct ar_device *device; /* NULL: the fake backing */
    struct ar_backing *backing;
    struct policy_rig rig;
    struct ar_policy *policy; /* NULL: a device alone */
    bool pinned, misused;
    uint64_t event;
    char host_byte; /* for copies from and to the host */
};

static void wrong(const struct steps *s, const char *format, ...)
    __attribute__((format(printf, 2, 3), noreturn));

static void wrong(const struct steps *s, const char *format, ...)
{
    char text[512];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    fail_msg("%s, line %u: %s: %s", s->path, s->lines[s->line].number, s->text, text);
    abort();
}

/* ---- the words of a line --------------------------------------------------------------------- */

static bool at_end(struct steps *s)
{
    s->at += strspn(s->at, " ");
    return !*s->at;
}

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.';
}

/* Reads the text if it is next, and no longer name begins with it. */
static bool take(struct steps *s, const char *text)
{
    size_t length = strlen(text);
    (void)at_end(s);
    if (strncmp(s->at, text, length) != 0 || (is_name(text[length - 1]) && is_name(s->at[length])))
        return false;
    s->at += length;
    return true;
}

static void read_name(struct steps *s, char name[NAME])
{
    size_t length = 0;
    for (; !at_end(s) && is_name(s->at[length]) && length < NAME - 1; length++)
        name[length] = s->at[length];
    name[length] = '\0';
    if (!length)
        wrong(s, "a name is missing before \"%s\"", s->at);
    s->at += length;
}

static const char *rest(struct steps *s)
{
    (void)at_end(s);
    const char *text = s->at;
    s->at += strlen(s->at);
    return text;
}

/* ---- values ---------------------------------------------------------------------------------- */

static struct thing *find(struct steps *s, const char *name)
{
    for (size_t i = 0; i < s->thing_count; i++)
        if (strcmp(s->things[i].name, name) == 0)
            return &s->things[i];
    return NULL;
}

static struct thing *make(struct steps *s, const char *name)
{
    struct thing *found = find(s, name);
    if (found)
        return found;
    assert_true(s->thing_count < MOST_THINGS);
    found = &s->things[s->thing_count++];
    memset(found, 0, sizeof *found);
    snprintf(found->name, sizeof found->name, "%s", name);
    return found;
}

static struct thing *read_thing(struct steps *s)
{
    char name[NAME];
    read_name(s, name);
    struct thing *found = find(s, name);
    if (!found)
        wrong(s, "there is no %s", name);
    return found;
}

static struct thing *read_new(struct steps *s)
{
    char name[NAME];
    read_name(s, name);
    return make(s, name);
}

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
    struct ar_policy_stats stats;
    if (!s->policy)
        return false;
    ar_policy_stats(s->policy, &stats);
    LOOK_UP(of_totals, &s->policy->totals)
    LOOK_UP(of_stats, &stats)
    for (size_t i = 0; i < COUNT(efforts); i++)
        if (strcmp(name, efforts[i]) == 0)
            return *value = ar_policy_servable(s->policy, (enum ar_policy_effort)i), true;
    if (strncmp(name, "figure.", 7) == 0)
        *value = policy_rig_figure(&s->rig, name + 7);
    else if (strcmp(name, "free_bytes") == 0)
        *value = ar_policy_free_bytes(&s->policy->totals);
    else if (strcmp(name, "next_region") == 0)
        *value = bfc_next_region_bytes(s->policy);
    else if (strcmp(name, "limit") == 0)
        *value = ((const struct bfc *)s->policy)->regions.limit_bytes;
    else if (strcmp(name, "regions") == 0)
        *value = bfc_region_count(s->policy);
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

static bool figure_of_memory(const struct steps *s, const char *name, uint64_t *value)
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
    else if (s->device && strcmp(name, "idle") == 0)
        *value = s->device->ops->idle_at(s->device);
    else if (s->device && strcmp(name, "capacity") == 0)
        *value = s->device->props.capacity_bytes;
    else if (s->device && strcmp(name, "card") == 0)
        *value = s->device->props.total_bytes;
    else if (s->device && strcmp(name, "bad_input") == 0)
        *value = s->device->bad_input;
    else if (strcmp(name, "adjacent") == 0)
        *value = s->backing->adjacent;
    else if (strcmp(name, "page") == 0)
        *value = s->backing->page_bytes;
    else
        return false;
    return true;
}

static bool figure(const struct steps *s, const char *name, uint64_t *value)
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
    return figure_of_policy(s, name, value) || figure_of_memory(s, name, value);
}

static uint64_t number(struct steps *s)
{
    static const struct {
        const char *text;
        uint64_t factor;
    } units[] = {{"KiB", AR_KIB}, {"MiB", AR_MIB}, {"GiB", AR_GIB},
                 {"us", 1000},    {"ms", 1000000}, {"s", 1000000000}};
    char *end;
    uint64_t value = strtoull(s->at, &end, 10);
    s->at = end;
    for (size_t i = 0; i < COUNT(units); i++)
        if (isalpha((unsigned char)*s->at) && take(s, units[i].text))
            return value * units[i].factor;
    return value;
}

static uint64_t value(struct steps *s);

static uint64_t term(struct steps *s)
{
    char name[NAME];
    uint64_t result = 0;
    if (!at_end(s) && isdigit((unsigned char)*s->at))
        return number(s);
    if (take(s, "(")) {
        result = value(s);
        if (!take(s, ")"))
            wrong(s, "no ) before \"%s\"", s->at);
        return result;
    }
    read_name(s, name);
    struct thing *thing = find(s, name);
    char *dot = strrchr(name, '.');
    if (thing)
        return thing->value;
    if (figure(s, name, &result))
        return result;
    if (dot && strcmp(dot, ".granted") == 0) {
        *dot = '\0';
        thing = find(s, name);
    }
    if (!thing)
        wrong(s, "there is no %s", name);
    return thing->block.granted_bytes;
}

static uint64_t product(struct steps *s)
{
    uint64_t result = term(s);
    for (;;) {
        if (take(s, "*"))
            result *= term(s);
        else if (take(s, "/"))
            result /= term(s);
        else if (take(s, "%"))
            result %= term(s);
        else
            return result;
    }
}

static uint64_t value(struct steps *s)
{
    uint64_t result = product(s);
    for (;;) {
        if (take(s, "+"))
            result += product(s);
        else if (!at_end(s) && s->at[0] == '-' && s->at[1] != '>' && take(s, "-"))
            result -= product(s);
        else
            return result;
    }
}

static uint32_t stream(struct steps *s)
{
    return (uint32_t)value(s);
}

/* ---- results --------------------------------------------------------------------------------- */

static enum ar_status read_status(struct steps *s)
{
    char name[NAME];
    read_name(s, name);
    for (int status = AR_OK; status <= AR_NEGATIVE; status++)
        if (strcmp(ar_status_name((enum ar_status)status), name) == 0)
            return (enum ar_status)status;
    wrong(s, "%s is no status", name);
}

static void is_status(struct steps *s, enum ar_status status, enum ar_status wanted,
                      const char *sentence)
{
    if (status != wanted || !strstr(sentence, rest(s)))
        wrong(s, "%s \"%s\"", ar_status_name(status), sentence);
}

static void ended(struct steps *s, enum ar_status status, const char *sentence)
{
    is_status(s, status, take(s, "->") ? read_status(s) : AR_OK, sentence);
}

static void is_equal(struct steps *s, uint64_t got, uint64_t wanted)
{
    if (got != wanted)
        wrong(s, "%" PRIu64 ", not %" PRIu64, got, wanted);
}

static void answered(struct steps *s, uint64_t got)
{
    if (take(s, "->"))
        is_equal(s, got, value(s));
}

static void check(struct steps *s)
{
    if (ar_policy_validate(s->policy, &test_error))
        wrong(s, "%s", test_error.text);
    if (!s->device)
        return;
    if (!s->misused && s->device->ops->problem(s->device)[0])
        wrong(s, "%s", s->device->ops->problem(s->device));
    if (s->device->ops->race_text(s->device)[0])
        wrong(s, "%s", s->device->ops->race_text(s->device));
    if (!s->pinned)
        is_equal(s, s->device->counters.physical_bytes, s->policy->totals.reserved_bytes);
}

/* The end of a call of the backing, which may be misuse. */
static void backed(struct steps *s, enum ar_status status)
{
    s->misused |= status == AR_INVALID;
    ended(s, status, status == AR_INVALID ? ar_backing_problem(s->backing) : "");
}

/* ---- the rig --------------------------------------------------------------------------------- */

static void close_rig(struct steps *s)
{
    if (s->policy) {
        check(s);
        is_equal(s, policy_rig_close(&s->rig), 0);
        uint64_t left = s->device
                            ? s->device->counters.physical_bytes + s->device->counters.pinned_bytes
                            : fake_rig_backing.held_bytes;
        is_equal(s, left, 0);
        if (s->device && !s->misused && s->device->ops->problem(s->device)[0])
            wrong(s, "%s", s->device->ops->problem(s->device));
    }
    ar_device_close(s->device);
    s->device = NULL;
    s->backing = NULL;
    s->policy = NULL;
    s->pinned = s->misused = false;
    for (size_t i = 0; i < s->thing_count; i++)
        s->things[i].live = false;
}

static void open_fake(struct steps *s)
{
    fake_backing_open(&fake_rig_backing, UINT64_MAX);
    s->backing = &fake_rig_backing.base;
    while (!at_end(s) && strncmp(s->at, "->", 2) != 0) {
        if (take(s, "cap="))
            fake_rig_backing.cap_bytes = value(s);
        else if (take(s, "pages="))
            fake_backing_virtual(&fake_rig_backing, value(s), UINT64_MAX);
        else if (take(s, "total="))
            fake_rig_backing.total_bytes = value(s);
        else if (take(s, "adjacent="))
            fake_rig_backing.base.adjacent = value(s) != 0;
        else
            wrong(s, "no such word of a fake backing: %s", s->at);
    }
}

static void open_device(struct steps *s)
{
    char spec[LINE];
    size_t length = strcspn(s->at += strspn(s->at, " "), " ");
    snprintf(spec, sizeof spec, "%.*s", (int)length, s->at);
    s->at += length;
    s->device = sim_test_open(spec);
    s->backing = s->pinned ? s->device->pinned : s->device->backing;
}

static void step_device(struct steps *s)
{
    close_rig(s);
    open_device(s);
}

static void step_open(struct steps *s)
{
    char spec[LINE];
    const char *on = strstr(s->at, " on ");
    close_rig(s);
    if (!on)
        wrong(s, "on what?");
    snprintf(spec, sizeof spec, "%.*s", (int)(on - s->at - 1), s->at + 1);
    s->at = on + 4;
    s->pinned = take(s, "pinned");
    if (take(s, "fake"))
        open_fake(s);
    else
        open_device(s);
    enum ar_status status = policy_rig_open(&s->rig, spec, s->backing, 0);
    s->policy = s->rig.policy;
    ended(s, status, s->rig.error.text);
    if (status) {
        is_equal(s, policy_rig_close(&s->rig), 0);
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
    struct ar_policy_request request = {.bytes = value(s)};
    while (!at_end(s) && strncmp(s->at, "->", 2) != 0) {
        size_t i = 0;
        while (i < COUNT(pools) && !take(s, pools[i].name))
            i++;
        if (i < COUNT(pools))
            request.mempool |= pools[i].bits;
        else if (take(s, "stream="))
            request.stream = stream(s);
        else if (take(s, "align="))
            request.alignment = value(s);
        else if (take(s, "pool="))
            request.pool = (uint32_t)value(s);
        else if (take(s, "may_fail"))
            request.may_fail = true;
        else if (take(s, "upper"))
            request.upper_end = true;
        else
            wrong(s, "no such word of a request: %s", s->at);
    }
    return request;
}

static void step_alloc(struct steps *s)
{
    struct thing *thing = read_new(s);
    struct ar_policy_request request = read_request(s);
    if (thing->live && strcmp(thing->name, "_") != 0)
        wrong(s, "%s is live", thing->name);
    struct ar_policy_block block;
    enum ar_status status = ar_policy_alloc(s->policy, &request, &block);
    s->event++;
    if (status == AR_OK) {
        thing->block = block;
        thing->value = block.address;
        thing->stream = request.stream;
        thing->live = true;
        if (block.granted_bytes < request.bytes)
            wrong(s, "%" PRIu64 " bytes", block.granted_bytes);
        if (s->device && !s->pinned)
            (void)s->device->ops->handed_out(s->device, block.address, block.granted_bytes,
                                             request.stream, false, s->event);
    }
    if (status == AR_OK || status == AR_NO_MEMORY)
        check(s);
    bool arrow = take(s, "->");
    if (arrow && !at_end(s) && isupper((unsigned char)s->at[0]) &&
        isupper((unsigned char)s->at[1])) {
        is_status(s, status, read_status(s), ar_policy_problem(s->policy));
        return;
    }
    if (status)
        wrong(s, "%s \"%s\"", ar_status_name(status), ar_policy_problem(s->policy));
    if (arrow && !take(s, "?"))
        is_equal(s, block.address, value(s));
    if (arrow && !at_end(s))
        is_equal(s, block.granted_bytes, value(s));
}

static void free_one(struct steps *s, struct thing *thing, uint32_t of)
{
    thing->live = false;
    if (s->device && !s->pinned)
        s->device->ops->used(s->device, thing->value, thing->block.granted_bytes, of, ++s->event);
    enum ar_status status = ar_policy_free(s->policy, &thing->block, of);
    if (!status)
        check(s);
    ended(s, status, ar_policy_problem(s->policy));
}

static void step_free(struct steps *s)
{
    struct thing *things[8];
    size_t count = 0;
    uint32_t of = 0;
    bool has_stream = false;
    while (!at_end(s) && strncmp(s->at, "->", 2) != 0 && count < 8 && !has_stream) {
        has_stream = take(s, "stream=");
        if (has_stream)
            of = stream(s);
        else
            things[count++] = read_thing(s);
    }
    for (size_t i = 0; i < count; i++)
        free_one(s, things[i], has_stream ? of : things[i]->stream);
}

/* The end of a call of the policy that may change its memory. */
static void called(struct steps *s, enum ar_status status)
{
    check(s);
    ended(s, status, ar_policy_problem(s->policy));
}

static void step_use(struct steps *s)
{
    struct thing *thing = read_thing(s);
    called(s, ar_policy_use(s->policy, &thing->block, stream(s)));
}

static void step_trim(struct steps *s)
{
    bool keeps = !at_end(s) && strncmp(s->at, "->", 2) != 0;
    called(s, ar_policy_trim(s->policy, keeps ? value(s) : 0));
}

static void step_would_release(struct steps *s)
{
    struct ar_policy_request request = read_request(s);
    answered(s, ar_policy_would_release(s->policy, &request));
}

static void step_would_fit(struct steps *s)
{
    struct ar_policy_request request = read_request(s);
    answered(s, ar_policy_would_fit(s->policy, &request));
}

static void is_text(struct steps *s, const char *got, bool whole)
{
    const char *wanted = rest(s);
    if (whole || !*wanted ? strcmp(got, wanted) != 0 : !strstr(got, wanted))
        wrong(s, "\"%s\"", got);
}

static void step_setting(struct steps *s)
{
    char text[LINE] = "none";
    if (!s->policy->ops->setting(s->policy, text, sizeof text))
        snprintf(text, sizeof text, "none");
    is_text(s, text, true);
}

/* ---- operations on the device ---------------------------------------------------------------- */

static void step_sync(struct steps *s)
{
    s->device->ops->sync(s->device, at_end(s) ? UINT32_MAX : stream(s));
}

static void step_handed_out(struct steps *s)
{
    uint64_t address = value(s), bytes = value(s);
    uint32_t to = stream(s);
    uint64_t event = value(s);
    bool order = take(s, "order");
    answered(s, s->device->ops->handed_out(s->device, address, bytes, to, order, event));
}

/* Answers the ordinal; then segment.address and segment.bytes are set. */
static void step_segment_of(struct steps *s)
{
    struct ar_device_segment segment = {.ordinal = UINT64_MAX};
    (void)s->device->ops->segment_of(s->device, value(s), &segment);
    make(s, "segment.address")->value = segment.address;
    make(s, "segment.bytes")->value = segment.bytes;
    answered(s, segment.ordinal);
}

/* ---- operations on the backing --------------------------------------------------------------- */

/* Calls that make something: NAME BYTES [STREAM]. */
#define MAKES(name, call)                                                                          \
    static void step_##name(struct steps *s)                                                       \
    {                                                                                              \
        struct thing *thing = read_new(s);                                                         \
        uint64_t bytes = value(s), got = 0;                                                        \
        enum ar_status status = call;                                                              \
        if (!status)                                                                               \
            thing->value = got;                                                                    \
        if (!status && take(s, "-> at"))                                                           \
            is_equal(s, got, value(s));                                                            \
        backed(s, status);                                                                         \
    }

MAKES(segment, ar_backing_segment_alloc(s->backing, bytes, &got))
MAKES(reserve, ar_backing_reserve(s->backing, bytes, &got))
MAKES(create, ar_backing_create(s->backing, bytes, &got))
MAKES(pool_alloc, s->backing->ops->pool_alloc(s->backing, bytes, stream(s), &got))

static const struct ar_backing_ops *own_ops;
static uint64_t refusals; /* of the next reservations */

static enum ar_status reserve_or_refuse(struct ar_backing *backing, uint64_t bytes,
                                        uint64_t *address)
{
    return refusals && refusals-- ? AR_REFUSED : own_ops->reserve(backing, bytes, address);
}

static void refuse(struct steps *s, uint64_t count)
{
    static struct ar_backing_ops ops;
    refusals = count;
    if (s->backing->ops == &ops)
        return;
    own_ops = s->backing->ops;
    ops = *own_ops;
    ops.reserve = reserve_or_refuse;
    s->backing->ops = &ops;
}

static void step_fence(struct steps *s)
{
    struct thing *thing = read_new(s);
    thing->ticket = ar_backing_fence(s->backing, stream(s));
    thing->value = thing->ticket.value;
}

static void step_done(struct steps *s)
{
    const struct thing *thing = read_thing(s);
    answered(s, ar_backing_done(s->backing, thing->ticket));
}

static void step_order(struct steps *s)
{
    uint32_t waits = stream(s);
    ar_backing_order(s->backing, waits, read_thing(s)->ticket);
}

static void step_pool_open(struct steps *s)
{
    struct ar_backing_pool settings = {0};
    while (!at_end(s) && strncmp(s->at, "->", 2) != 0) {
        if (take(s, "threshold="))
            settings.release_threshold_bytes = value(s);
        else if (take(s, "most="))
            settings.most_bytes = value(s);
        else if (take(s, "follow"))
            settings.follow_events = true;
        else if (take(s, "opportunistic"))
            settings.opportunistic = true;
        else if (take(s, "internal"))
            settings.internal = true;
        else
            wrong(s, "no such word of a pool: %s", s->at);
    }
    backed(s, s->backing->ops->pool_open(s->backing, &settings));
}

/* ---- the script ------------------------------------------------------------------------------ */

static void step_set(struct steps *s)
{
    char name[NAME];
    read_name(s, name);
    uint64_t to = value(s);
    make(s, name)->value = to;
}

static bool holds(const char *sign, uint64_t left, uint64_t right)
{
    bool equal = left == right && sign[1] == '=';
    return sign[0] == '<'   ? left < right || equal
           : sign[0] == '>' ? left > right || equal
           : sign[0] == '!' ? left != right
                            : equal;
}

static void compare(struct steps *s)
{
    static const char *const signs[] = {"==", "!=", "<=", ">=", "<", ">"};
    uint64_t left = value(s);
    do {
        size_t i = 0;
        while (i < COUNT(signs) && !take(s, signs[i]))
            i++;
        if (i == COUNT(signs))
            wrong(s, "neither an operation nor a comparison");
        uint64_t right = value(s);
        if (!holds(signs[i], left, right))
            wrong(s, "%" PRIu64 " %s %" PRIu64 " is not so", left, signs[i], right);
        left = right;
    } while (!at_end(s));
}

static void read_numbers(struct steps *s, uint64_t *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        numbers[i] = value(s);
}

/* Operations that are a call with numbers: name, how many, the call. */
#define CALLS(X)                                                                                   \
    X(end_pool, 1, ar_policy_end_pool(s->policy, (uint32_t)a[0]), check(s))                        \
    X(delete_pool, 1, called(s, ar_policy_delete_pool(s->policy, (uint32_t)a[0])))                 \
    X(progress, 0, ar_policy_progress(s->policy), check(s))                                        \
    X(reset_peaks, 0, ar_policy_reset_peaks(s->policy))                                            \
    X(problem, 0, is_text(s, ar_policy_problem(s->policy), false))                                 \
    X(race, 0, is_text(s, s->device->ops->race_text(s->device), false))                            \
    X(await, 0, ar_backing_wait(s->backing, read_thing(s)->ticket))                                \
    X(misuse, 0, is_text(s, ar_backing_problem(s->backing), false))                                \
    X(kernel, 2, s->device->ops->kernel(s->device, (uint32_t)a[0], a[1]))                          \
    X(advance, 1, s->device->ops->advance(s->device, a[0]))                                        \
    X(record, 2, s->device->ops->event_record(s->device, a[0], (uint32_t)a[1]))                    \
    X(wait, 2, s->device->ops->stream_wait(s->device, (uint32_t)a[0], a[1]))                       \
    X(used, 4, s->device->ops->used(s->device, a[0], a[1], (uint32_t)a[2], a[3]))                  \
    X(outside, 1, backed(s, s->device->ops->outside(s->device, a[0])))                             \
    X(refuse_reserve, 1, refuse(s, a[0]))                                                          \
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

static void run_line(struct steps *s)
{
#define X(name, ...) {#name, step_##name},
#define STEP(name)   X(name, )
    static const struct {
        const char *name;
        void (*run)(struct steps *s);
    } steps[] = {CALLS(X) STEP(alloc) STEP(free) STEP(open) STEP(device) STEP(use) STEP(trim)
                     STEP(setting) STEP(sync) STEP(handed_out) STEP(segment_of) STEP(segment)
                         STEP(reserve) STEP(create) STEP(fence) STEP(done) STEP(order)
                             STEP(pool_open) STEP(pool_alloc) STEP(set) STEP(would_release)
                                 STEP(would_fit)};
#undef STEP
#undef X
    for (size_t i = 0; i < COUNT(steps); i++) {
        if (!take(s, steps[i].name))
            continue;
        steps[i].run(s);
        if (!at_end(s))
            wrong(s, "not understood: %s", s->at);
        return;
    }
    compare(s);
}

/* Makes the line the one that runs, with values in place of $names. */
static void load(struct steps *s, size_t line)
{
    char *to = s->text, *end = s->text + sizeof s->text - LINE;
    s->line = line;
    for (const char *from = s->lines[line].text; *from && to < end;) {
        char name[NAME] = "";
        size_t length = strspn(from + 1, "abcdefghijklmnopqrstuvwxyz_"), i = 0;
        if (*from != '$') {
            *to++ = *from++;
            continue;
        }
        snprintf(name, sizeof name, "%.*s", (int)length, from + 1);
        from += 1 + length;
        while (i < s->word_count && strcmp(s->words[i].name, name) != 0)
            i++;
        *to = '\0';
        const struct thing *thing = find(s, name);
        if (i == s->word_count && !thing)
            wrong(s, "there is no %s", name);
        to += i < s->word_count ? sprintf(to, "%s", s->words[i].text)
                                : sprintf(to, "%" PRIu64, thing->value);
    }
    *to = '\0';
    s->at = s->text;
}

/* The line `end` that belongs to the loop at `line`. */
static size_t end_of(const struct steps *s, size_t line)
{
    for (size_t i = line + 1, depth = 1; i < s->count; i++) {
        const char *text = s->lines[i].text;
        depth += strncmp(text, "for ", 4) == 0 || strncmp(text, "each ", 5) == 0;
        depth -= strcmp(text, "end") == 0;
        if (!depth)
            return i;
    }
    wrong(s, "it has no end");
}

static void run(struct steps *s, size_t from, size_t to);

static void run_for(struct steps *s, size_t line, size_t end)
{
    struct thing *thing = read_new(s);
    size_t index = (size_t)(thing - s->things);
    uint64_t from = value(s), below = value(s), step = at_end(s) ? 1 : value(s);
    for (uint64_t i = from; i < below; i += step) {
        s->things[index].value = i;
        run(s, line + 1, end);
    }
}

static void run_each(struct steps *s, size_t line, size_t end)
{
    size_t first = s->word_count, body = line + 1;
    while (!at_end(s)) {
        assert_true(s->word_count < MOST_WORDS);
        read_name(s, s->words[s->word_count++].name);
    }
    size_t last = s->word_count - 1;
    while (strcmp(s->lines[body].text, "do") != 0 && body < end)
        body++;
    for (size_t row = line + 1; row < body; row++) {
        load(s, row);
        for (size_t i = first; i <= last; i++) {
            if (at_end(s))
                wrong(s, "there is no word for %s", s->words[i].name);
            size_t length = i == last ? strlen(s->at) : strcspn(s->at, " ");
            snprintf(s->words[i].text, LINE, "%.*s", (int)length, s->at);
            s->at += length;
        }
        run(s, body + 1, end);
    }
    s->word_count = first;
}

static void run(struct steps *s, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        load(s, i);
        if (take(s, "for")) {
            size_t end = end_of(s, i);
            run_for(s, i, end);
            i = end;
        } else if (take(s, "each")) {
            size_t end = end_of(s, i);
            run_each(s, i, end);
            i = end;
        } else {
            run_line(s);
        }
    }
}

static void read_section(struct steps *s, const char *section)
{
    char line[LINE];
    bool within = false;
    FILE *file = fopen(s->path, "r");
    assert_non_null(file);
    for (unsigned number = 1; fgets(line, sizeof line, file); number++) {
        assert_non_null(strchr(line, '\n'));
        char *comment = strstr(line, " # ");
        if (comment)
            *comment = '\0';
        for (size_t length = strlen(line); length && strchr("\n ", line[length - 1]); length--)
            line[length - 1] = '\0';
        if (strncmp(line, "== ", 3) == 0)
            within = strcmp(line + 3, section) == 0;
        else if (within && line[0] && line[0] != '#') {
            assert_true(s->count < MOST_LINES);
            s->lines[s->count].number = number;
            strcpy(s->lines[s->count++].text, line + strspn(line, " "));
        }
    }
    fclose(file);
    assert_true(s->count > 0);
}

void steps_run(const char *path, const char *section)
{
    static struct steps steps;
    memset(&steps, 0, sizeof steps);
    steps.path = path;
    read_section(&steps, section);
    run(&steps, 0, steps.count);
    close_rig(&steps);
}
