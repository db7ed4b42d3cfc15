/* checked: a test oracle around a policy. It keeps its own record of the live blocks (an array
 * sorted by address that shares no code with any policy) and compares every result with it:
 * 1. A block that alloc returns has at least the requested bytes, has the right alignment, and
 *    overlaps no live block.
 * 2. A block that is freed is live and has the same fields as when it was returned. Otherwise it is
 *    foreign or freed twice, and the policy is not called.
 * 3. A request that fails changes neither live nor granted bytes nor the number of blocks, and is
 *    counted in `failures`; the totals are always those of the record.
 * 4. Statuses are those of the contract, and a walk and `room` are possible: otherwise the next
 *    call returns the fault, because these hooks cannot.
 * 5. Every `every` calls, and after each call while at most `small` blocks are live: the walk is in
 *    the order of addresses, adds up to the totals and has each live block as a used range; and
 *    validate succeeds.
 * 6. A request that makes the policy reserve more leaves it within its option `limit`: only of a
 *    policy from a shared object, whose guard knows the option.
 * 7. The policy leaves what all figures depend on as it is (registry_process_state).
 * A fault is returned as CORRUPT, with a sentence in ar_policy_problem. Overlaps are found by
 * address; the device, which knows the mappings, checks that no two addresses share a physical
 * page. The time of a call is proportional to the live blocks: this is for tests. */

#include "allocators/base/array.h"
#include "allocators/decorators/forward.h"
#include "allocators/registry.h"

struct checked_values {
    uint64_t every, small;
};

struct shadow {
    struct ar_policy_block block;
    bool retired; /* free requested, not completed */
};

struct checked {
    struct forward forward;
    struct shadow *shadows; /* sorted by address */
    size_t count, room;
    uint64_t live_bytes, granted_bytes;                           /* of all shadows */
    uint64_t retired_bytes, retired_granted_bytes, retired_count; /* of retired ones */
    uint64_t every, small, calls, failures;
    uint64_t limit_bytes; /* of the policy; UINT64_MAX: none, or not known */
    unsigned process;     /* registry_process_state() before the first call */
    bool broken;          /* after the first CORRUPT */
    struct ar_error error;
};

static const struct ar_option checked_options[] = {
    {"every", AR_OPTION_COUNT, offsetof(struct checked_values, every), "1", 1, 1e15, NULL,
     "calls between two full checks (walk and validate)"},
    {"small", AR_OPTION_COUNT, offsetof(struct checked_values, small), "0", 0, 0, NULL,
     "number of live blocks up to which there is a full check after every call"},
    {0},
};

static enum ar_status corrupt(struct checked *self, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static enum ar_status corrupt(struct checked *self, const char *format, ...)
{
    char text[400];
    AR_PRINT(text, sizeof text, format);
    self->broken = true;
    return ar_error_set(&self->error, AR_CORRUPT, "call %" PRIu64 ": %s", self->calls, text);
}

/* The first shadow at `address` or above. */
static size_t place(const struct checked *self, uint64_t address)
{
    return ar_array_from(self->shadows, self->count, sizeof *self->shadows,
                         offsetof(struct shadow, block.address), address);
}

/* At most `retired` below `most`: imitated allocators differ in whether a retired block counts. */
static bool between(uint64_t value, uint64_t most, uint64_t retired)
{
    return value <= most && value >= most - retired;
}

/* Rule 4. */
static enum ar_status known_status(struct checked *self, enum ar_status status, const char *hook)
{
    if ((unsigned)status <= AR_NEGATIVE)
        return status;
    return corrupt(self, "%s returned the status %u, which is none", hook, (unsigned)status);
}

/* Rule 5: the walk compared with the record. */
struct compare {
    const struct checked *self;
    uint64_t used_bytes, free_bytes, pending_bytes, overhead_bytes;
    uint64_t end;
    size_t seen; /* used ranges so far */
    size_t at;   /* in the record: blocks seen or retired so far */
    char problem[200];
};

static bool compare_range(void *argument, const struct ar_policy_range *range)
{
    struct compare *compare = argument;
    const struct checked *self = compare->self;
    if (range->bytes == 0 || range->address < compare->end ||
        range->bytes > UINT64_MAX - range->address) {
        snprintf(compare->problem, sizeof compare->problem,
                 "the walk shows a range at %" PRIu64
                 " that is empty, wraps or starts before %" PRIu64,
                 range->address, compare->end);
        return false;
    }
    compare->end = range->address + range->bytes;
    if (range->state == AR_POLICY_RANGE_FREE)
        compare->free_bytes += range->bytes;
    if (range->state == AR_POLICY_RANGE_PENDING)
        compare->pending_bytes += range->bytes;
    if (range->state == AR_POLICY_RANGE_OVERHEAD)
        compare->overhead_bytes += range->bytes;
    if (range->state != AR_POLICY_RANGE_USED)
        return true;
    compare->used_bytes += range->bytes;
    compare->seen++;
    while (compare->at < self->count && self->shadows[compare->at].retired &&
           self->shadows[compare->at].block.address < range->address)
        compare->at++; /* a pending range */
    size_t at = compare->at++;
    const struct ar_policy_block *block = at < self->count ? &self->shadows[at].block : NULL;
    if (block && block->address < range->address)
        snprintf(compare->problem, sizeof compare->problem,
                 "the walk has no used range at %" PRIu64 ", where a block is live",
                 block->address);
    else if (!block || block->address + block->granted_bytes > compare->end)
        snprintf(compare->problem, sizeof compare->problem,
                 "the walk shows a used range at %" PRIu64 ", which is not a live block",
                 range->address);
    return !compare->problem[0];
}

/* The sentence of a policy about itself, without its name, which the caller adds. */
static const char *without_policy(const struct ar_policy *inner, const char *text)
{
    char with[100];
    snprintf(with, sizeof with, "policy %s: ", inner->ops->name);
    return strncmp(text, with, strlen(with)) == 0 ? text + strlen(with) : text;
}

static enum ar_status check_walk(struct checked *self)
{
    const struct ar_policy *inner = self->forward.inner;
    const struct ar_policy_totals *totals = &inner->totals;
    struct compare compare = {.self = self};
    /* Such policies have no full record of their memory to walk over. */
    if (!(inner->ops->capabilities & (AR_POLICY_OVERLAPS | AR_POLICY_OPAQUE))) {
        ar_policy_walk(inner, compare_range, &compare);
        if (compare.problem[0])
            return corrupt(self, "%s", compare.problem);
        if (!between(compare.seen, self->count, self->retired_count) ||
            !between(compare.used_bytes, self->granted_bytes, self->retired_granted_bytes))
            return corrupt(self,
                           "the walk shows %zu used ranges of %" PRIu64
                           " bytes, the live blocks are %zu of %" PRIu64,
                           compare.seen, compare.used_bytes, self->count, self->granted_bytes);
        if (compare.free_bytes != ar_policy_free_bytes(totals) ||
            compare.pending_bytes != totals->pending_bytes ||
            compare.overhead_bytes != totals->overhead_bytes)
            return corrupt(self,
                           "the walk shows %" PRIu64 " free, %" PRIu64 " pending and %" PRIu64
                           " header bytes, the totals %" PRIu64 ", %" PRIu64 " and %" PRIu64,
                           compare.free_bytes, compare.pending_bytes, compare.overhead_bytes,
                           ar_policy_free_bytes(totals), totals->pending_bytes,
                           totals->overhead_bytes);
    }
    struct ar_error error = {""};
    enum ar_status status = ar_policy_validate(inner, &error);
    status = known_status(self, status, "validate");
    if (status && !self->broken)
        (void)corrupt(self, "validate: %.300s",
                      error.text[0] ? without_policy(inner, error.text)
                                    : ar_status_meaning(status));
    return status ? AR_CORRUPT : AR_OK;
}

/* Rule 3 and, when due, rule 5. */
static enum ar_status check_totals(struct checked *self)
{
    const struct ar_policy_totals *totals = &self->forward.inner->totals;
    struct ar_error changed;
    if (registry_process_check(self->process, "it", &changed))
        return corrupt(self, "%s", changed.text);
    if (!between(totals->live_bytes, self->live_bytes, self->retired_bytes))
        return corrupt(self, "live bytes are %" PRIu64 ", the blocks have %" PRIu64,
                       totals->live_bytes, self->live_bytes);
    if (!between(totals->granted_bytes, self->granted_bytes, self->retired_granted_bytes))
        return corrupt(self, "granted bytes are %" PRIu64 ", the blocks have %" PRIu64,
                       totals->granted_bytes, self->granted_bytes);
    if (!between(totals->live_blocks, self->count, self->retired_count))
        return corrupt(self, "%" PRIu64 " blocks are counted, %zu are live", totals->live_blocks,
                       self->count);
    uint64_t rest = totals->reserved_bytes - totals->granted_bytes;
    if (totals->granted_bytes > totals->reserved_bytes || totals->pending_bytes > rest ||
        totals->overhead_bytes > rest - totals->pending_bytes)
        return corrupt(self,
                       "more bytes are granted, pending and headers than the %" PRIu64 " reserved",
                       totals->reserved_bytes);
    bool due = self->calls % self->every == 0 || self->count <= self->small;
    return due ? check_walk(self) : AR_OK;
}

static enum ar_status check_new(struct checked *self, const struct ar_policy_request *request,
                                const struct ar_policy_block *block, size_t at)
{
    uint64_t address = block->address;
    if (block->granted_bytes < request->bytes)
        return corrupt(self, "%" PRIu64 " bytes were requested and %" PRIu64 " granted at %" PRIu64,
                       request->bytes, block->granted_bytes, address);
    if (request->alignment > 1 && address % request->alignment != 0 &&
        (self->forward.ops.capabilities & AR_POLICY_HONOURS_ALIGNMENT))
        return corrupt(self, "the block at %" PRIu64 " is not aligned to %" PRIu64, address,
                       request->alignment);
    if (block->granted_bytes > UINT64_MAX - address)
        return corrupt(self, "the block of %" PRIu64 " bytes at %" PRIu64 " passes 2^64",
                       block->granted_bytes, address);
    const struct ar_policy_block *low = at > 0 ? &self->shadows[at - 1].block : NULL;
    const struct ar_policy_block *high = at < self->count ? &self->shadows[at].block : NULL;
    if (low && low->address + low->granted_bytes <= address)
        low = NULL;
    if (high && address + block->granted_bytes <= high->address)
        high = NULL;
    const struct ar_policy_block *other = low ? low : high;
    if (other)
        return corrupt(self,
                       "the block of %" PRIu64 " bytes at %" PRIu64
                       " overlaps the live one of %" PRIu64 " at %" PRIu64,
                       block->granted_bytes, address, other->granted_bytes, other->address);
    return AR_OK;
}

/* Makes room for `more` shadows. */
static bool make_room(struct checked *self, size_t more)
{
    if (self->count + more <= self->room)
        return true;
    size_t room = self->room * 2 + more + 63;
    struct shadow *shadows =
        ar_host_grow(self->forward.host, self->shadows, self->room, room, sizeof *shadows);
    if (!shadows)
        return false;
    self->shadows = shadows;
    self->room = room;
    return true;
}

/* Checks rule 1 and enters the block in the record. */
static enum ar_status record(struct checked *self, const struct ar_policy_request *request,
                             const struct ar_policy_block *block)
{
    size_t at = place(self, block->address);
    AR_TRY(check_new(self, request, block, at));
    AR_ARRAY_INSERT(self->shadows, self->count, at, (struct shadow){.block = *block});
    self->live_bytes += block->requested_bytes;
    self->granted_bytes += block->granted_bytes;
    return AR_OK;
}

/* `failures` of rule 3, and rule 6. */
static enum ar_status check_counts(struct checked *self, uint64_t reserved_before)
{
    const struct ar_policy *inner = self->forward.inner;
    uint64_t reserved = inner->totals.reserved_bytes;
    struct ar_policy_stats stats = {.largest_free_block_bytes = 0};
    inner->ops->stats(inner, &stats);
    if (stats.count.failures != self->failures)
        return corrupt(self,
                       "the counter `failures` is %" PRIu64
                       ", alloc has returned NO_MEMORY %" PRIu64 " times",
                       stats.count.failures, self->failures);
    if (reserved > reserved_before && reserved > self->limit_bytes)
        return corrupt(self, "%" PRIu64 " bytes are reserved, above limit=%" PRIu64, reserved,
                       self->limit_bytes);
    return AR_OK;
}

static enum ar_status checked_alloc(struct ar_policy *base, const struct ar_policy_request *request,
                                    struct ar_policy_block *out)
{
    struct checked *self = (struct checked *)base;
    if (self->broken)
        return AR_CORRUPT;
    self->calls++;
    AR_TRY_HOST(make_room(self, 1));
    uint64_t reserved = base->totals.reserved_bytes;
    enum ar_status status = known_status(self, forward_alloc(base, request, out), "alloc");
    if (status != AR_OK && status != AR_NO_MEMORY)
        return status;
    self->failures += status == AR_NO_MEMORY ? 1 : 0;
    enum ar_status checks = status ? AR_OK : record(self, request, out);
    if (!checks)
        checks = check_counts(self, reserved);
    if (!checks)
        checks = check_totals(self);
    return checks ? checks : status;
}

static enum ar_status checked_adopt(struct ar_policy *base, const struct ar_policy_range *ranges,
                                    size_t count, struct ar_policy_block *blocks)
{
    struct checked *self = (struct checked *)base;
    if (self->broken)
        return AR_CORRUPT;
    AR_TRY_HOST(make_room(self, count));
    AR_TRY(known_status(self, forward_adopt(base, ranges, count, blocks), "adopt"));
    for (size_t i = 0; i < count; i++) {
        if (ranges[i].state != AR_POLICY_RANGE_USED)
            continue;
        const struct ar_policy_request request = {.bytes = ranges[i].requested_bytes};
        AR_TRY(record(self, &request, blocks++));
    }
    return check_totals(self);
}

/* The live block with the fields of `block`. NULL: rule 2 is broken. */
static struct shadow *known(struct checked *self, const struct ar_policy_block *block,
                            const char *what)
{
    size_t at = place(self, block->address);
    const struct ar_policy_block *own = at < self->count ? &self->shadows[at].block : NULL;
    if (!own || own->address != block->address) {
        (void)corrupt(self,
                      "%s of the block of %" PRIu64 " bytes at %" PRIu64
                      ", which is not live: freed twice, or never handed out",
                      what, block->requested_bytes, block->address);
        return NULL;
    }
    if (own->granted_bytes != block->granted_bytes ||
        own->requested_bytes != block->requested_bytes || own->cookie != block->cookie) {
        (void)corrupt(self,
                      "%s of the block at %" PRIu64
                      " with other fields than alloc returned: a stale or changed copy",
                      what, block->address);
        return NULL;
    }
    return &self->shadows[at];
}

static enum ar_status checked_free(struct ar_policy *base, const struct ar_policy_block *block,
                                   uint32_t stream)
{
    struct checked *self = (struct checked *)base;
    if (self->broken)
        return AR_CORRUPT;
    self->calls++;
    struct shadow *shadow = known(self, block, "free");
    if (!shadow)
        return AR_CORRUPT;
    if (shadow->retired) {
        self->retired_bytes -= block->requested_bytes;
        self->retired_granted_bytes -= block->granted_bytes;
        self->retired_count--;
    }
    self->live_bytes -= block->requested_bytes;
    self->granted_bytes -= block->granted_bytes;
    self->count--;
    memmove(shadow, shadow + 1, (size_t)(self->shadows + self->count - shadow) * sizeof *shadow);
    AR_TRY(known_status(self, forward_free(base, block, stream), "free"));
    return check_totals(self);
}

static enum ar_status checked_use(struct ar_policy *base, const struct ar_policy_block *block,
                                  uint32_t stream)
{
    struct checked *self = (struct checked *)base;
    if (self->broken || !known(self, block, "use"))
        return AR_CORRUPT;
    AR_TRY(known_status(self, forward_use(base, block, stream), "use"));
    return check_totals(self);
}

/* This hook cannot return a fault. The next call does. */
static void checked_retire(struct ar_policy *base, const struct ar_policy_block *block)
{
    struct checked *self = (struct checked *)base;
    struct shadow *shadow = self->broken ? NULL : known(self, block, "free request");
    if (!shadow)
        return;
    if (shadow->retired) {
        (void)corrupt(self, "the free of the block at %" PRIu64 " was requested twice",
                      block->address);
        return;
    }
    shadow->retired = true;
    self->retired_bytes += block->requested_bytes;
    self->retired_granted_bytes += block->granted_bytes;
    self->retired_count++;
    forward_retire(base, block);
    (void)check_totals(self);
}

static void checked_progress(struct ar_policy *base)
{
    struct checked *self = (struct checked *)base;
    forward_progress(base);
    if (!self->broken)
        (void)check_totals(self);
}

static enum ar_status checked_trim(struct ar_policy *base, uint64_t keep_bytes)
{
    struct checked *self = (struct checked *)base;
    if (self->broken)
        return AR_CORRUPT;
    AR_TRY(known_status(self, forward_trim(base, keep_bytes), "trim"));
    return check_totals(self);
}

/* The instance of a hook that gets a const one: a fault is all that is changed. */
static struct checked *faulty(const struct ar_policy *base)
{
    return (struct checked *)(uintptr_t)base;
}

/* Rule 4: a walk of the caller, which ends at a range that cannot be. */
struct passed_on {
    struct checked *self;
    ar_policy_visit *visit;
    void *argument;
    uint64_t end;
};

static bool pass_on(void *argument, const struct ar_policy_range *range)
{
    struct passed_on *on = argument;
    if (range->bytes == 0 || range->address < on->end ||
        range->bytes > UINT64_MAX - range->address) {
        if (!on->self->broken)
            (void)corrupt(on->self,
                          "the walk shows a range at %" PRIu64
                          " that is empty, wraps or starts before %" PRIu64,
                          range->address, on->end);
        return false;
    }
    on->end = range->address + range->bytes;
    return on->visit(on->argument, range);
}

static void checked_walk(const struct ar_policy *base, ar_policy_visit *visit, void *argument)
{
    const struct ar_policy *inner = ((const struct forward *)base)->inner;
    struct passed_on on = {faulty(base), visit, argument, 0};
    if (inner->ops->capabilities & AR_POLICY_OVERLAPS)
        ar_policy_walk(inner, visit, argument);
    else
        ar_policy_walk(inner, pass_on, &on);
}

static void checked_room(const struct ar_policy *base, struct ar_policy_room *out)
{
    const struct ar_policy *inner = ((const struct forward *)base)->inner;
    struct checked *self = faulty(base);
    inner->ops->room(inner, out);
    uint64_t free_bytes = ar_policy_free_bytes(&inner->totals);
    uint64_t bytes = out->servable_bytes[AR_POLICY_EFFORT_NONE];
    if (bytes > free_bytes && !self->broken && !(inner->ops->capabilities & AR_POLICY_OVERLAPS))
        (void)corrupt(
            self, "%" PRIu64 " bytes can be served without driver work, and %" PRIu64 " are free",
            bytes, free_bytes);
}

static enum ar_status checked_validate(const struct ar_policy *base, struct ar_error *error)
{
    const struct checked *self = (const struct checked *)base;
    if (self->broken)
        return ar_error_set(error, AR_CORRUPT, "%s", self->error.text);
    return ar_policy_validate(self->forward.inner, error);
}

static const char *checked_problem(const struct ar_policy *base)
{
    const struct checked *self = (const struct checked *)base;
    return self->broken ? self->error.text : ar_policy_problem(self->forward.inner);
}

static void checked_destroy(struct ar_policy *base)
{
    struct checked *self = (struct checked *)base;
    ar_host_free(self->forward.host, self->shadows, self->room * sizeof *self->shadows);
    forward_destroy(base);
}

static struct checked *make(struct ar_host *host, const struct checked_values *values,
                            struct ar_policy *inner, struct ar_error *error)
{
    struct checked *self = forward_create(host, sizeof *self, "checked", inner, error);
    if (!self)
        return NULL;
    struct ar_policy_ops *ops = &self->forward.ops;
    self->every = values->every;
    self->small = values->small;
    self->limit_bytes = UINT64_MAX;
    self->process = registry_process_state();
    ops->destroy = checked_destroy;
    ops->alloc = checked_alloc;
    ops->free = checked_free;
    ops->validate = checked_validate;
    ops->walk = checked_walk;
    ops->room = ops->room ? checked_room : NULL;
    ops->problem = checked_problem;
    ops->use = ops->use ? checked_use : NULL;
    ops->adopt = ops->adopt ? checked_adopt : NULL;
    ops->retire = ops->retire ? checked_retire : NULL;
    ops->progress = ops->progress ? checked_progress : NULL;
    ops->trim = ops->trim ? checked_trim : NULL;
    return self;
}

static enum ar_status checked_wrap(const struct ar_policy_context *context, const void *values,
                                   struct ar_policy *inner, struct ar_policy **out,
                                   struct ar_error *error)
{
    struct checked *self = make(context->host, values, inner, error);
    AR_TRY_HOST(self);
    *out = &self->forward.base;
    return AR_OK;
}

/* ---- the guard ------------------------------------------------------------------------------- */

/* The oracle around a policy of a shared object, under the policy's own name, with metadata that is
 * not counted as the policy's. It is wrapped with the values of the policy. */
extern const struct decorator_ops guard_decorator;

static void guard_destroy(struct ar_policy *base)
{
    struct ar_host *host = ((struct checked *)base)->forward.host;
    checked_destroy(base);
    free(host);
}

static enum ar_status guard_wrap(const struct ar_policy_context *context, const void *inner_values,
                                 struct ar_policy *inner, struct ar_policy **out,
                                 struct ar_error *error)
{
    (void)context;
    static const struct checked_values values = {.every = 256, .small = 16};
    struct ar_host *host = calloc(1, sizeof *host);
    struct checked *self = host ? make(host, &values, inner, error) : NULL;
    if (!self) {
        free(host);
        return ar_no_memory(error, "policy %s", inner->ops->name);
    }
    snprintf(self->forward.name, sizeof self->forward.name, "%s", inner->ops->name);
    self->forward.ops.destroy = guard_destroy;
    if (!inner->ops->change) /* which may set another limit */
        self->limit_bytes = ar_policy_limit(inner_values);
    *out = &self->forward.base;
    return AR_OK;
}

static const char *guard_fault(const struct ar_policy *base)
{
    const struct checked *self = (const struct checked *)base;
    return base->ops->destroy == guard_destroy && self->broken ? self->error.text : NULL;
}

const struct decorator_ops guard_decorator = {
    .name = "guard",
    .summary = "checked, around a policy of a shared object",
    .wrap = guard_wrap,
    .fault = guard_fault,
};

const struct decorator_ops checked_decorator = {
    .name = "checked",
    .summary = "a test oracle: overlaps, foreign frees, sizes, alignment, totals",
    .options = checked_options,
    .values_bytes = sizeof(struct checked_values),
    .wrap = checked_wrap,
};
