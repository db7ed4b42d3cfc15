/* mosaic: what happens when a request of expandable segments would fail.
 *
 * Until then every decision is that of PyTorch's expandable segments, call by call. At the failure
 * all free blocks are merged and all whole free pages are released. What is lost are the free parts
 * of pages that a live block keeps: large pages have 20 MiB, and a block of 1 MiB keeps all of it.
 *
 * 1. From now on memory is tight: no more is mapped than a request needs, in grains of 2 MiB (the
 *    least that a device maps).
 * 2. A page that is partly used is divided. Its used grains are copied to new handles of their
 *    size, mapped where the old one was. Addresses stay, so no pointer of the program changes. The
 *    free grains become address space, and their memory is the device's again.
 *
 * The device must be idle for the copy, so the request waits for all its work, and no other thread
 * of the program may start work meanwhile. A request of a private pool, which may belong to a
 * captured graph, is not helped: a capture cannot wait.
 *
 * Pages that lose most are divided first, until the request fits. If the device has no free memory
 * of the size of what is copied, the copy goes through host memory. In between the memory is the
 * device's. If another process takes it then, the content is lost, and the run stops. */

#include "allocators/policies/torch/torch.h"

#define GRAIN      TORCH_SMALL_SEGMENT_BYTES
#define HOST_TRIES 4u /* a device that has the memory may refuse it once */

const struct ar_option mosaic_options[] = {
    AR_POLICY_COMMON_OPTIONS,
    /* Names: used and free, bytes of the page; start, its place in the range. */
    {"divide", AR_OPTION_TEXT, offsetof(struct mosaic_values, divide), "", 0, 0, NULL,
     "rule: which page is divided first, the least; empty: the one that has most free grains"},
    /* Names: bytes of the request; missing, to be mapped; rest, of free blocks there that are less
     * than a grain; start, the place in the range. */
    {"place", AR_OPTION_TEXT, offsetof(struct mosaic_values, place), "", 0, 0, NULL,
     "rule: where memory is mapped when it is tight, the least; empty: where least is missing"},
    {0},
};

static const char *const divide_names[] = {"used", "free", "start", NULL};
static const char *const place_names[] = {"bytes", "missing", "rest", "start", NULL};

enum ar_status mosaic_create(const struct ar_policy_context *context, const void *given,
                             struct ar_policy **out, struct ar_error *error)
{
    extern const struct ar_policy_ops mosaic_policy;
    const struct mosaic_values *values = given;
    const struct torch_values as_torch = {
        .common = values->common,
        .expandable_segments = true,
        .max_non_split_rounding_mb = 20,
        .large_segment_size_mb = 20,
    };
    struct ar_rule divide = {0}, place = {0};
    if (*values->divide)
        AR_TRY(ar_rule_parse(values->divide, divide_names, "policy mosaic: rule divide", &divide,
                             error));
    if (*values->place)
        AR_TRY(
            ar_rule_parse(values->place, place_names, "policy mosaic: rule place", &place, error));
    bool divides = context->backing->ops->copy != NULL;
    AR_TRY(torch_open(context, &mosaic_policy, &as_torch, divides, out, error));
    if (divides) {
        struct mosaic *self = (struct mosaic *)*out;
        self->divide = divide;
        self->place = place;
    }
    return AR_OK;
}

const char *mosaic_problem(const struct ar_policy *base)
{
    const struct torch *self = (const struct torch *)base;
    return !self->divides || !mosaic_of(self)->lost
               ? ""
               : "another user of the device took the memory of a page while it was "
                 "divided, and the page's content is lost; run again with more memory";
}

/* Of `bytes` of grains from *first on in a free block, those of handles that do not reach beyond
 * the block. */
uint64_t mosaic_whole_pages(const struct torch *self, const struct torch_segment *segment,
                            uint64_t bytes, uint64_t *first)
{
    const ar_backing_handle *pages = segment->pages;
    uint64_t last = *first + bytes / GRAIN;
    if (*first && pages[*first - 1] == pages[*first])
        *first = torch_handle_end(self, pages, (uint32_t)*first, (uint32_t)last);
    if (last < segment->page_count && pages[last] == pages[last - 1])
        for (ar_backing_handle handle = pages[last]; last && pages[last - 1] == handle;)
            last--;
    return last > *first ? (last - *first) * GRAIN : 0;
}

/* The grains [*from, *to) of a range that lie in a block. */
static void grains_in(const struct torch *self, uint32_t block, uint32_t *from, uint32_t *to)
{
    const struct ar_span *span = &self->spans.at[block];
    uint64_t start = span->address - self->segments[self->blocks[block].segment].address;
    *from = (uint32_t)((start + GRAIN - 1) / GRAIN);
    *to = (uint32_t)((start + span->bytes) / GRAIN);
}

/* The bytes of whole grains in a free block. */
static uint64_t grain_bytes(const struct torch *self, uint32_t block)
{
    uint32_t from, to;
    grains_in(self, block, &from, &to);
    return torch_is_expandable(self, block) && to > from ? (to - from) * GRAIN : 0;
}

/* A block enters its set or leaves it. */
void mosaic_count(struct torch *self, uint32_t block, bool enters)
{
    uint64_t bytes = grain_bytes(self, block);
    if (torch_is_released(&self->pools[self->arenas[self->spans.at[block].owner]->pool]))
        mosaic_of(self)->free_grain_bytes += enters ? bytes : 0 - bytes;
}

/* Before the memory of a private pool can be released. */
void mosaic_end_pool(struct torch *self, uint32_t pool)
{
    for (uint32_t i = 0; i < self->order_count; i++) {
        const struct torch_segment *segment = &self->segments[self->order[i]];
        const struct torch_pool *of = &self->pools[self->arenas[segment->arena]->pool];
        if (of->id != pool || torch_is_released(of))
            continue;
        for (uint32_t b = segment->first; b; b = self->spans.at[b].next)
            if (!self->spans.at[b].used && self->blocks[b].mapped)
                mosaic_of(self)->free_grain_bytes += grain_bytes(self, b);
    }
}

/* ---- pages that can be divided --------------------------------------------------------------- */

/* A page that can be divided. */
struct candidate {
    uint32_t segment, first, count; /* its grains */
    uint32_t free;                  /* bit i: grain first + i lies in a free block */
    uint32_t anchor;                /* a block in use that lies in the page */
    int64_t place;                  /* in the order of division, the least first */
};

struct candidates {
    struct candidate *at;
    uint32_t count, room;
};

static uint32_t gain_of(const struct candidate *c)
{
    return (uint32_t)__builtin_popcount(c->free);
}

static uint32_t used_of(const struct candidate *c)
{
    return c->count - gain_of(c);
}

static int by_place(const void *left, const void *right)
{
    const struct candidate *a = left, *b = right;
    if (a->place != b->place)
        return a->place < b->place ? -1 : 1;
    if (a->segment != b->segment)
        return a->segment < b->segment ? -1 : 1;
    return a->first < b->first ? -1 : a->first > b->first;
}

/* The bits of the grains [from, to) of a page that begins at `first`. */
static uint32_t bits(uint32_t first, uint32_t from, uint32_t to)
{
    return (uint32_t)(((UINT64_C(1) << (to - from)) - 1) << (from - first));
}

/* The result of the rule `divide`; without one, the page with most free grains is first. */
static int64_t place_of(const struct torch *self, const struct candidate *c)
{
    const int64_t values[] = {(int64_t)(used_of(c) * GRAIN), (int64_t)(gain_of(c) * GRAIN),
                              (int64_t)(c->first * GRAIN)};
    const struct ar_rule *rule = &mosaic_of(self)->divide;
    return rule->count ? ar_rule_value(rule, values) : -(int64_t)gain_of(c);
}

/* Adds the free grains of a page, which comes in the order of addresses. */
static bool add_free(struct torch *self, struct candidates *found, struct candidate page)
{
    struct candidate *last = found->count ? &found->at[found->count - 1] : NULL;
    if (last && last->segment == page.segment && last->first == page.first) {
        last->free |= page.free;
        return true;
    }
    if (found->count == found->room &&
        !ar_host_extend(self->host, &found->at, &found->room, found->room ? found->room * 2 : 16,
                        sizeof *found->at))
        return false;
    found->at[found->count++] = page;
    return true;
}

/* A free block has the end of one page, the start of another one, or the middle of one, and its
 * neighbour there is in use. A page that is free as a whole could not be released, because the host
 * had no memory: it stays. */
static bool find_in_block(struct torch *self, struct candidates *found, uint32_t block)
{
    const struct ar_span *span = &self->spans.at[block];
    uint32_t index = self->blocks[block].segment, from, to;
    grains_in(self, block, &from, &to);
    for (uint32_t end; from < to; from = end) {
        const struct torch_segment *segment = &self->segments[index];
        uint32_t first = from;
        while (first && segment->pages[first - 1] == segment->pages[from])
            first--;
        uint32_t page_end = torch_handle_end(self, segment->pages, from, segment->page_count);
        end = page_end < to ? page_end : to;
        if (first == from && end == page_end)
            continue;
        uint32_t anchor = first < from ? span->previous : span->next;
        struct candidate page = {
            .segment = index,
            .first = first,
            .count = page_end - first,
            .free = bits(first, from, end),
            .anchor = anchor,
        };
        if (!add_free(self, found, page))
            return false;
    }
    return true;
}

/* False: no host memory. */
static bool find_candidates(struct torch *self, struct candidates *found)
{
    for (uint32_t i = 0; i < self->order_count; i++) {
        const struct torch_segment *segment = &self->segments[self->order[i]];
        const struct torch_arena *arena = self->arenas[segment->arena];
        if (!segment->expandable || arena->small || !torch_is_released(&self->pools[arena->pool]))
            continue;
        for (uint32_t b = segment->first; b; b = self->spans.at[b].next)
            if (!self->spans.at[b].used && self->blocks[b].mapped && !find_in_block(self, found, b))
                return false;
    }
    for (uint32_t i = 0; i < found->count; i++)
        found->at[i].place = place_of(self, &found->at[i]);
    if (found->count)
        qsort(found->at, found->count, sizeof *found->at, by_place);
    return true;
}

/* The next run [*from, *to) of grains in use, counted in the page, at or after *to. */
static bool next_used(const struct candidate *c, uint32_t *from, uint32_t *to)
{
    *from = *to;
    while (*from < c->count && c->free >> *from & 1)
        ++*from;
    for (*to = *from; *to < c->count && !(c->free >> *to & 1);)
        ++*to;
    return *to > *from;
}

/* ---- the place of a request while memory is tight -------------------------------------------- */

/* The free and unmapped blocks around an unmapped one, from `first` on. */
struct run {
    uint32_t first;
    uint64_t bytes;         /* of all, or at least `wanted` */
    uint64_t missing_bytes; /* to be mapped for `wanted` bytes */
    uint64_t rest_bytes;    /* of free blocks, beside their whole grains */
};

static struct run run_at(const struct torch *self, uint32_t unmapped, uint64_t wanted_bytes)
{
    const struct ar_span *at = self->spans.at;
    uint32_t before = at[unmapped].previous;
    struct run run = {.first = before && !at[before].used ? before : unmapped};
    for (uint32_t b = run.first; b && !at[b].used && run.bytes < wanted_bytes; b = at[b].next) {
        uint64_t left_bytes = wanted_bytes - run.bytes;
        if (!self->blocks[b].mapped)
            run.missing_bytes +=
                ar_size_round_up(at[b].bytes < left_bytes ? at[b].bytes : left_bytes, GRAIN);
        else
            run.rest_bytes += at[b].bytes - grain_bytes(self, b);
        run.bytes += at[b].bytes;
    }
    return run;
}

/* The result of the rule `place`; without one, the bytes to be mapped. */
static int64_t score_of(const struct torch *self, const struct run *run, uint64_t bytes)
{
    uint64_t range = self->segments[self->blocks[run->first].segment].address;
    const int64_t values[] = {(int64_t)bytes, (int64_t)run->missing_bytes, (int64_t)run->rest_bytes,
                              (int64_t)(self->spans.at[run->first].address - range)};
    const struct ar_rule *rule = &mosaic_of(self)->place;
    return rule->count ? ar_rule_value(rule, values) : (int64_t)run->missing_bytes;
}

/* The place of the least score, the lowest one among equals. False: none has room. */
static bool find_place(const struct torch *self, const struct torch_arena *arena, uint64_t bytes,
                       struct run *best)
{
    int64_t least = 0;
    bool found = false;
    for (uint32_t i = 0; i < arena->unmapped_count; i++) {
        struct run run = run_at(self, arena->unmapped[i], bytes);
        int64_t score = score_of(self, &run, bytes);
        if (run.bytes < bytes || (found && score >= least))
            continue;
        *best = run;
        least = score;
        found = true;
    }
    return found;
}

uint32_t torch_tight_place(const struct torch *self, const struct torch_arena *arena,
                           uint64_t bytes)
{
    struct run run;
    return find_place(self, arena, bytes, &run) ? run.first : 0;
}

/* The bytes that can be mapped now. */
static uint64_t free_bytes(const struct torch *self)
{
    uint64_t free_bytes, total_bytes;
    ar_backing_memory(self->backing, &free_bytes, &total_bytes);
    uint64_t reserved = self->base.totals.reserved_bytes;
    uint64_t allowed = self->allowed_bytes > reserved ? self->allowed_bytes - reserved : 0;
    return free_bytes < allowed ? free_bytes : allowed;
}

/* Whether the device has what a request lacks. */
static bool has_enough(const struct torch *self, uint32_t arena, uint64_t bytes)
{
    struct run run = {.missing_bytes = ar_size_round_up(bytes, GRAIN)};
    (void)find_place(self, self->arenas[arena], bytes, &run);
    return free_bytes(self) >= run.missing_bytes;
}

/* ---- the division of a page ------------------------------------------------------------------ */

/* Destroys the handles of the runs before the grain `end`. */
static void drop_fresh(struct torch *self, const struct candidate *c, ar_backing_handle *fresh,
                       uint32_t end)
{
    for (uint32_t from, to = 0; next_used(c, &from, &to) && from < end;)
        torch_destroy_pages(self, fresh, from, to);
}

/* A handle for each run in use; each is tried so many times. On failure there is none. */
static enum ar_status create_fresh(struct torch *self, const struct candidate *c,
                                   ar_backing_handle *fresh, unsigned tries)
{
    for (uint32_t from, to = 0; next_used(c, &from, &to);) {
        enum ar_status status = AR_REFUSED;
        for (unsigned i = 0; i < tries && status == AR_REFUSED; i++)
            status = torch_create_pages(self, &self->segments[c->segment], fresh, from, to);
        if (status == AR_OK)
            continue;
        drop_fresh(self, c, fresh, from);
        return status;
    }
    return AR_OK;
}

/* Maps the handles of the runs at `address`, the start of the page or of the scratch range. */
static enum ar_status map_fresh(struct torch *self, const struct candidate *c,
                                const ar_backing_handle *fresh, uint64_t address)
{
    for (uint32_t from, to = 0; next_used(c, &from, &to);) {
        uint64_t at = address + from * GRAIN, bytes = (to - from) * GRAIN;
        AR_TRY(ar_backing_map(self->backing, at, fresh[from] - 1));
        AR_TRY(ar_backing_access(self->backing, at, bytes));
    }
    return AR_OK;
}

/* The old handle makes room for the new ones. */
static enum ar_status remove_old(struct torch *self, const struct candidate *c, uint64_t start)
{
    AR_TRY(ar_backing_unmap(self->backing, start, c->count * GRAIN));
    torch_destroy_pages(self, &self->segments[c->segment].pages[c->first], 0, c->count);
    return self->fault;
}

static enum ar_status enter_fresh(struct torch *self, const struct candidate *c,
                                  const ar_backing_handle *fresh, uint64_t start)
{
    ar_backing_handle *pages = &self->segments[c->segment].pages[c->first];
    memcpy(pages, fresh, c->count * sizeof *pages);
    return map_fresh(self, c, fresh, start);
}

/* Copies on the device, through a second range. REFUSED: there is no memory for both handles, and
 * nothing has changed. */
static enum ar_status move_direct(struct torch *self, const struct candidate *c, uint64_t start)
{
    ar_backing_handle fresh[TORCH_TIGHT_GRAINS] = {0};
    uint64_t scratch = mosaic_of(self)->scratch_address;
    if (free_bytes(self) < used_of(c) * GRAIN)
        return AR_REFUSED;
    AR_TRY(create_fresh(self, c, fresh, 1));
    enum ar_status status = map_fresh(self, c, fresh, scratch);
    for (uint32_t from, to = 0; status == AR_OK && next_used(c, &from, &to);)
        status = ar_backing_copy(self->backing, scratch + from * GRAIN, start + from * GRAIN,
                                 (to - from) * GRAIN);
    for (uint32_t from, to = 0; status == AR_OK && next_used(c, &from, &to);)
        status = ar_backing_unmap(self->backing, scratch + from * GRAIN, (to - from) * GRAIN);
    AR_THEN(status, remove_old(self, c, start));
    AR_THEN(status, enter_fresh(self, c, fresh, start));
    return status == AR_REFUSED ? AR_INVALID : status; /* the device broke its contract */
}

/* Copies through host memory. If another process takes the memory in between, the data is lost and
 * the run stops. */
static enum ar_status move_by_host(struct torch *self, const struct candidate *c, uint64_t start)
{
    ar_backing_handle fresh[TORCH_TIGHT_GRAINS] = {0};
    char *buffer = ar_host_alloc(self->host, c->count * GRAIN);
    enum ar_status status = buffer ? AR_OK : AR_HOST_MEMORY;
    for (uint32_t from, to = 0; status == AR_OK && next_used(c, &from, &to);)
        status = ar_backing_copy_out(self->backing, buffer + from * GRAIN, start + from * GRAIN,
                                     (to - from) * GRAIN);
    if (status == AR_OK) {
        status = remove_old(self, c, start);
        AR_THEN(status, create_fresh(self, c, fresh, HOST_TRIES));
        AR_THEN(status, enter_fresh(self, c, fresh, start));
        for (uint32_t from, to = 0; status == AR_OK && next_used(c, &from, &to);)
            status = ar_backing_copy_in(self->backing, start + from * GRAIN, buffer + from * GRAIN,
                                        (to - from) * GRAIN);
        mosaic_of(self)->lost = status != AR_OK;
        status = status != AR_OK ? AR_INVALID : AR_OK;
    }
    ar_host_free(self->host, buffer, buffer ? c->count * GRAIN : 0);
    return status;
}

/* The first block of a page. */
static uint32_t first_block(const struct torch *self, const struct candidate *c, uint64_t start)
{
    uint32_t block = c->anchor;
    while (self->spans.at[block].address > start)
        block = self->spans.at[block].previous;
    return block;
}

/* The bytes of a free block that lie in whole grains of the page, from *begin on. */
static uint64_t free_part(const struct torch *self, const struct candidate *c, uint32_t block,
                          uint64_t *begin)
{
    uint32_t from, to;
    if (self->spans.at[block].used || !self->blocks[block].mapped)
        return 0;
    grains_in(self, block, &from, &to);
    from = from > c->first ? from : c->first;
    to = to < c->first + c->count ? to : c->first + c->count;
    *begin = self->segments[c->segment].address + from * GRAIN;
    return to > from ? (to - from) * GRAIN : 0;
}

/* Divides a page. Its free blocks leave their sets while the old handle is the page's. */
static enum ar_status divide_page(struct torch *self, const struct candidate *c)
{
    uint64_t start = self->segments[c->segment].address + c->first * GRAIN, begin, bytes;
    uint64_t end = start + c->count * GRAIN;
    uint32_t arena = self->segments[c->segment].arena, most = gain_of(c);
    AR_TRY_HOST(torch_reserve_blocks(self, 2 * most) && torch_reserve_unmapped(self, arena, most));
    uint32_t first = first_block(self, c, start);
    for (uint32_t b = first; b && self->spans.at[b].address < end; b = self->spans.at[b].next)
        if (free_part(self, c, b, &begin))
            torch_free_remove(self, b);
    enum ar_status status = move_direct(self, c, start);
    if (status == AR_REFUSED)
        status = move_by_host(self, c, start);
    for (uint32_t b = first; b && self->spans.at[b].address < end; b = self->spans.at[b].next)
        if ((bytes = free_part(self, c, b, &begin)) == 0)
            continue;
        else if (status == AR_OK)
            b = torch_make_unmapped(self, b, begin, bytes);
        else
            torch_free_insert(self, b);
    return status;
}

/* A range to map new handles for the copy. */
static enum ar_status open_scratch(struct torch *self)
{
    return mosaic_of(self)->scratch_address
               ? AR_OK
               : ar_backing_reserve(self->backing, TORCH_TIGHT_GRAINS * GRAIN,
                                    &mosaic_of(self)->scratch_address);
}

/* Divides pages until the device has enough for a request. */
static void divide_pages(struct torch *self, uint32_t arena, uint64_t bytes)
{
    struct candidates found = {0};
    enum ar_status status = AR_OK;
    if (has_enough(self, arena, bytes))
        return;
    if (!find_candidates(self, &found))
        status = AR_HOST_MEMORY;
    else if (found.count)
        status = open_scratch(self);
    for (uint32_t i = 0; i < found.count && !status && !has_enough(self, arena, bytes); i++)
        status = divide_page(self, &found.at[i]);
    ar_host_free(self->host, found.at, found.room * sizeof *found.at);
    if (status != AR_OK && status != AR_REFUSED)
        self->fault = status;
}

/* Releases free pages and segments of an arena, from the largest free block on, until the device
 * has enough. False: it has not. */
static bool release_from(struct torch *self, struct torch_arena *from, uint32_t arena,
                         uint64_t bytes)
{
    uint64_t below_bytes = UINT64_MAX, below_address = UINT64_MAX;
    for (;;) {
        uint32_t block =
            ar_span_index_before(&from->index, self->spans.at, below_bytes, below_address);
        if (!block || self->spans.at[block].bytes < GRAIN)
            return false;
        if (self->fault || has_enough(self, arena, bytes))
            return true;
        below_bytes = self->spans.at[block].bytes;
        below_address = self->spans.at[block].address;
        torch_release_block(self, block);
    }
}

/* Releases no more cached memory than a request needs. */
static void release_some(struct torch *self, uint32_t arena, uint64_t bytes)
{
    self->num_sync_all_streams++;
    deferred_wait_all(&self->deferred);
    for (int small = 0; small <= 1; small++)
        for (uint32_t i = 0; i < self->arena_count && self->base.totals.releasable_bytes; i++)
            if (self->arenas[i]->small == (small != 0) &&
                torch_is_released(&self->pools[self->arenas[i]->pool]) &&
                release_from(self, self->arenas[i], arena, bytes))
                return;
}

/* Whether a request lacks memory even if all pages are divided. What its place has beside whole
 * grains lies at its two ends. */
static bool is_hopeless(const struct torch *self, uint64_t bytes)
{
    uint64_t most_bytes = mosaic_of(self)->free_grain_bytes + 2 * GRAIN;
    return bytes > most_bytes && bytes - most_bytes > free_bytes(self);
}

/* A block for a request that found no memory; it is in no set. 0: out of memory. */
uint32_t torch_divide(struct torch *self, uint32_t arena, uint64_t rounded_bytes)
{
    release_some(self, arena, rounded_bytes);
    if (is_hopeless(self, rounded_bytes))
        return 0;
    self->tight = true;
    divide_pages(self, arena, rounded_bytes);
    return self->fault ? 0 : torch_expand(self, arena, rounded_bytes);
}

/* Whether the free and unmapped blocks around an unmapped one surely have at most so many bytes:
 * only it and its neighbours are looked at. */
static bool is_short(const struct torch *self, uint32_t unmapped, uint64_t bytes)
{
    const struct ar_span *at = self->spans.at, *span = &at[unmapped];
    if (span->bytes > bytes)
        return false;
    uint64_t sum = span->bytes + (at[span->previous].used ? 0 : at[span->previous].bytes);
    uint32_t after = at[span->next].used ? 0 : at[span->next].next; /* record 0 counts as used */
    return at[after].used && sum + (at[span->next].used ? 0 : at[span->next].bytes) <= bytes;
}

/* The largest request that is served after all free grains were released. What lies behind a run
 * counts only if the grains bridge it. The address space at the end of the range decides nearly
 * always. */
uint64_t torch_tight_servable(const struct torch *self, const struct torch_arena *arena)
{
    uint64_t most_bytes = 0;
    for (uint32_t i = arena->unmapped_count; i-- > 0;) {
        if (is_short(self, arena->unmapped[i], most_bytes))
            continue;
        struct run run = run_at(self, arena->unmapped[i], UINT64_MAX);
        uint64_t bytes = mosaic_of(self)->free_grain_bytes;
        if (bytes >= run.bytes - run.rest_bytes)
            bytes = run.bytes;
        else if (self->blocks[run.first].mapped)
            bytes += self->spans.at[run.first].bytes - grain_bytes(self, run.first);
        most_bytes = bytes > most_bytes ? bytes : most_bytes;
    }
    return most_bytes > TORCH_SMALL_BYTES ? most_bytes : 0; /* others are for the small pool */
}
