/* The accounting of a card, and the cause that follows from it.
 *
 *   total = free + this process (pool + outside of the pool) + other processes + the rest
 *   pool  = allocated + unused
 *
 * 1. A figure that is not printed is computed from the others. The remainder is what is neither
 *    free nor in the pool, nor in a process that the message names. It is never the pool's.
 * 2. Every process holds a context (MESSAGE_CONTEXT_LEAST to MESSAGE_CONTEXT_MOST), and the driver
 *    and a desktop hold as much. So only what is beyond MESSAGE_CONTEXT_MOST counts as held by
 *    others, unless the message lists the process that holds it. If the remainder is most of the
 *    card, what is beyond MESSAGE_CONTEXT_LEAST counts.
 * 3. A cause is that some memory would have been enough for the request: that of the whole card,
 *    that which is free, that which is unused in the pool, and so on. Unused memory of the pool
 *    alone is tried first, unless another holder has most of the card. Of the rest, the holder
 *    with the most memory is the cause.
 * 4. If the message does not have the figures of a cause, the cause is neither found nor excluded.
 *    If none is left, the cause cannot be told. */
#include "sim/explain/message_text.h"

/* A pool whose unused share is smaller than this has no fragmentation to speak of: the programs of
 * tests/golden/known_answers.md leave 1 part in 50 unused even under expandable segments, which end
 * fragmentation. */
#define SLACK_SHARE 50

/* Less than a twentieth is usual: a smaller program would have been served as well. */
#define USUAL_SHARE 20

/* A card that would have less free memory is full: the driver has pages of 2 MiB, steps of 32 MiB
 * in its own pool, and page tables. */
#define FULL_BYTES (UINT64_C(64) << 20)

/* TensorFlow and JAX take what is free when they begin as their limit. No program sets one so
 * small. */
#define LIMIT_LEAST (UINT64_C(64) << 20)

static const struct message_figure *figure_of(const struct message *self,
                                              enum message_figure_name name)
{
    return &self->figures[name];
}

static uint64_t bytes_of(const struct message *self, enum message_figure_name name)
{
    return self->figures[name].known ? self->figures[name].bytes : 0;
}

static bool knows(const struct message *self, enum message_figure_name name)
{
    return self->figures[name].known;
}

static uint64_t difference(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* Derives a figure from two others if the message does not print it. */
static void derive(struct message *self, enum message_figure_name name, bool plus,
                   enum message_figure_name first, enum message_figure_name second)
{
    struct message_figure *figure = &self->figures[name];
    const struct message_figure *a = figure_of(self, first), *b = figure_of(self, second);
    if (figure->known || !a->known || !b->known)
        return;
    *figure = (struct message_figure){
        .known = true,
        .derived = true,
        .bytes = plus ? a->bytes + b->bytes : difference(a->bytes, b->bytes),
        .coarse_bytes = a->coarse_bytes + b->coarse_bytes,
    };
}

/* The remainder, and its rounding error. A remainder within the error is 0. */
static void derive_remainder(struct message *self)
{
    /* The driver releases unused memory of its own pool before it refuses a request. */
    if (self->async_pool && !knows(self, MESSAGE_FIGURE_RESERVED)) {
        self->figures[MESSAGE_FIGURE_RESERVED] = *figure_of(self, MESSAGE_FIGURE_ALLOCATED);
        self->figures[MESSAGE_FIGURE_RESERVED].derived = true;
    }
    enum message_figure_name own =
        knows(self, MESSAGE_FIGURE_PROCESS) ? MESSAGE_FIGURE_PROCESS : MESSAGE_FIGURE_RESERVED;
    if (own == MESSAGE_FIGURE_RESERVED && knows(self, own) &&
        bytes_of(self, MESSAGE_FIGURE_ALLOCATED) > bytes_of(self, own))
        own = MESSAGE_FIGURE_ALLOCATED; /* the pool has no less */
    const enum message_figure_name parts[] = {MESSAGE_FIGURE_FREE, own, MESSAGE_FIGURE_OTHERS};
    struct message_figure rest = *figure_of(self, MESSAGE_FIGURE_TOTAL);
    if (!self->card_told || !rest.known || !knows(self, MESSAGE_FIGURE_FREE) || !knows(self, own) ||
        self->one_pool || (self->contradictions & (1u << MESSAGE_FREE_ABOVE_TOTAL)))
        return;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        rest.bytes = difference(rest.bytes, bytes_of(self, parts[i]));
        rest.coarse_bytes += figure_of(self, parts[i])->coarse_bytes;
    }
    rest.derived = true;
    rest.known = rest.bytes > rest.coarse_bytes;
    self->figures[MESSAGE_FIGURE_REMAINDER] = rest;
}

/* The bound of MPS is a limit of this process, not the memory of a card. */
static bool is_mps(const struct message *self)
{
    return strcmp(self->device, "MPS") == 0;
}

static void note(struct message *self, enum message_contradiction contradiction, bool holds)
{
    self->contradictions |= holds ? 1u << contradiction : 0;
}

/* Whether a is more than b by more than the rounding errors. */
static bool exceeds(const struct message_figure *a, const struct message_figure *b)
{
    return a->known && b->known && a->bytes > b->bytes + b->coarse_bytes + a->coarse_bytes;
}

static void find_contradictions(struct message *self)
{
    const struct message_figure *total = figure_of(self, MESSAGE_FIGURE_TOTAL);
    const struct message_figure *reserved = figure_of(self, MESSAGE_FIGURE_RESERVED);
    const struct message_figure *allocated = figure_of(self, MESSAGE_FIGURE_ALLOCATED);
    const struct message_figure *asked = figure_of(self, MESSAGE_FIGURE_ASKED);
    const struct message_figure *largest = figure_of(self, MESSAGE_FIGURE_LARGEST);
    const struct message_figure *process = figure_of(self, MESSAGE_FIGURE_PROCESS);
    bool mps = is_mps(self);
    note(self, MESSAGE_FREE_ABOVE_TOTAL, exceeds(figure_of(self, MESSAGE_FIGURE_FREE), total));
    note(self, MESSAGE_POOL_ABOVE_TOTAL,
         !mps && (exceeds(reserved, total) || exceeds(allocated, total)));
    const struct message_figure *most =
        self->printed && !allocated->known ? figure_of(self, MESSAGE_FIGURE_PEAK) : allocated;
    note(self, MESSAGE_ALLOCATED_ABOVE_RESERVED, exceeds(most, reserved));
    note(self, MESSAGE_LARGEST_FITS,
         largest->known && asked->known && exceeds(largest, asked) && !self->block_limit);
    if (self->contradictions || !total->known)
        return;
    struct message_figure sum = *figure_of(self, MESSAGE_FIGURE_FREE);
    const struct message_figure *own = process->known ? process : reserved;
    const struct message_figure *others =
        figure_of(self, mps ? MESSAGE_FIGURE_OUTSIDE_POOL : MESSAGE_FIGURE_OTHERS);
    sum.bytes += (own->known ? own->bytes : 0) + (others->known ? others->bytes : 0);
    sum.coarse_bytes += own->coarse_bytes + others->coarse_bytes;
    sum.known |= own->known;
    self->limit_passed = mps && exceeds(&sum, total);
    note(self, MESSAGE_SUM_ABOVE_TOTAL, !mps && exceeds(&sum, total));
}

/* ---- the cause ------------------------------------------------------------------------------ */

static void unsure(struct message *self, enum message_reason reason, bool holds)
{
    self->reasons |= holds ? 1u << reason : 0;
}

/* Whether the request fits into so many bytes. Figures are rounded, so a sum may be wrong by a few
 * bytes. */
static bool fits(const struct message *self, uint64_t bytes, uint64_t coarse, bool *close)
{
    const struct message_figure *asked = figure_of(self, MESSAGE_FIGURE_ASKED);
    uint64_t slack = coarse ? 4 : 0;
    uint64_t apart = asked->bytes > bytes ? asked->bytes - bytes : bytes - asked->bytes;
    coarse += asked->coarse_bytes;
    *close |= coarse && apart < coarse;
    return asked->bytes <= bytes + slack;
}

static bool fits_figure(struct message *self, enum message_figure_name name)
{
    const struct message_figure *figure = figure_of(self, name);
    return figure->known && fits(self, figure->bytes, figure->coarse_bytes, &self->close);
}

/* Memory that would be free if a cause were removed. */
struct holder {
    enum message_cause cause;
    uint64_t gain, coarse;
    bool known;
};

static struct holder holder_of(const struct message *self, enum message_cause cause,
                               enum message_figure_name name, uint64_t allowance)
{
    const struct message_figure *figure = figure_of(self, name);
    return (struct holder){cause, difference(bytes_of(self, name), allowance), figure->coarse_bytes,
                           figure->known};
}

/* Whether the pool is unused by no more than every pool is. A largest range shows its layout, and
 * one pool for all of a device has no such share. */
static bool is_slack(const struct message *self)
{
    return !knows(self, MESSAGE_FIGURE_LARGEST) && !self->one_pool &&
           bytes_of(self, MESSAGE_FIGURE_UNALLOCATED) <
               bytes_of(self, MESSAGE_FIGURE_RESERVED) / SLACK_SHARE;
}

enum {
    HOLDER_OTHERS,          /* that the message lists */
    HOLDER_OUTSIDE,         /* this process outside of its pool */
    HOLDER_REST,            /* what no listed process has */
    HOLDER_POOL,            /* its unused memory */
    HOLDER_OTHERS_AND_REST, /* if the rest is not this process's; it repeats two of the above */
    HOLDERS
};

static void list_holders(const struct message *self, struct holder holders[HOLDERS])
{
    bool whole = knows(self, MESSAGE_FIGURE_PROCESS) || self->others_hidden;
    /* Of most of a card, a context is a small part. */
    bool most = bytes_of(self, MESSAGE_FIGURE_REMAINDER) > bytes_of(self, MESSAGE_FIGURE_TOTAL) / 2;
    uint64_t context = most ? MESSAGE_CONTEXT_LEAST : MESSAGE_CONTEXT_MOST;
    holders[HOLDER_OTHERS] = holder_of(self, MESSAGE_TENANT, MESSAGE_FIGURE_OTHERS, 0);
    holders[HOLDER_OUTSIDE] =
        holder_of(self, MESSAGE_OUTSIDE, MESSAGE_FIGURE_OUTSIDE_POOL, context);
    if (self->limit_passed) { /* the pool alone must fit */
        uint64_t reserved = bytes_of(self, MESSAGE_FIGURE_RESERVED);
        uint64_t total = bytes_of(self, MESSAGE_FIGURE_TOTAL);
        uint64_t most_bytes = total > reserved ? total - reserved : 0;
        if (holders[HOLDER_OUTSIDE].gain > most_bytes)
            holders[HOLDER_OUTSIDE].gain = most_bytes;
    }
    holders[HOLDER_REST] =
        holder_of(self, MESSAGE_TENANT_OR_OUTSIDE, MESSAGE_FIGURE_REMAINDER, context);
    holders[HOLDER_POOL] =
        holder_of(self, MESSAGE_FRAGMENTATION_POSSIBLE, MESSAGE_FIGURE_UNALLOCATED, 0);
    holders[HOLDER_POOL].known &= !is_slack(self);
    holders[HOLDER_OTHERS_AND_REST] = (struct holder){0};
    if (!whole)
        return;
    /* The rest is not this process's: it is that of others, with what is listed of them. */
    holders[HOLDER_REST].cause = MESSAGE_TENANT;
    if (holders[HOLDER_OTHERS].known && holders[HOLDER_REST].known && holders[HOLDER_REST].gain) {
        holders[HOLDER_OTHERS_AND_REST] = holders[HOLDER_REST];
        holders[HOLDER_OTHERS_AND_REST].gain += holders[HOLDER_OTHERS].gain;
        holders[HOLDER_OTHERS_AND_REST].coarse += holders[HOLDER_OTHERS].coarse;
    }
}

/* The holder with the most memory of those whose memory would be enough together with what is
 * free, but not `skip` (HOLDERS: none is left out). NULL: none. `enough` counts them. */
static const struct holder *largest_holder(struct message *self, const struct holder *holders,
                                           int skip, unsigned *enough, bool *close)
{
    const struct message_figure *available = figure_of(self, MESSAGE_FIGURE_FREE);
    const struct holder *found = NULL;
    *enough = 0;
    for (int i = 0; i < HOLDERS && available->known; i++) {
        bool near = false;
        if (i == skip || !holders[i].known || !holders[i].gain ||
            !fits(self, available->bytes + holders[i].gain,
                  available->coarse_bytes + holders[i].coarse, &near))
            continue;
        if (!found || holders[i].cause != found->cause)
            ++*enough;
        if (found && holders[i].gain <= found->gain)
            continue;
        found = &holders[i];
        *close = near;
    }
    return found;
}

/* Whether the program would not fit even if it were alone: its live memory and the request are more
 * than the card has beside a context. */
static bool is_too_large_alone(const struct message *self)
{
    return self->card_told && knows(self, MESSAGE_FIGURE_TOTAL) &&
           knows(self, MESSAGE_FIGURE_ALLOCATED) && !self->contradictions &&
           bytes_of(self, MESSAGE_FIGURE_ALLOCATED) + bytes_of(self, MESSAGE_FIGURE_ASKED) +
                   MESSAGE_CONTEXT_LEAST >
               bytes_of(self, MESSAGE_FIGURE_TOTAL);
}

/* Whether the pool has more than nine tenths of what there is. */
static bool has_nearly_all(const struct message *self, enum message_figure_name own)
{
    return knows(self, MESSAGE_FIGURE_TOTAL) && knows(self, own) &&
           bytes_of(self, own) > bytes_of(self, MESSAGE_FIGURE_TOTAL) / 10 * 9;
}

/* Whether all of the card is free but for a context or a desktop. */
static bool is_nothing_held(const struct message *self)
{
    return self->card_told && knows(self, MESSAGE_FIGURE_TOTAL) && !self->contradictions &&
           bytes_of(self, MESSAGE_FIGURE_FREE) > bytes_of(self, MESSAGE_FIGURE_TOTAL) / 2 &&
           bytes_of(self, MESSAGE_FIGURE_FREE) + MESSAGE_CONTEXT_MOST >=
               bytes_of(self, MESSAGE_FIGURE_TOTAL);
}

/* What is left if no memory that the message names would be enough. `together`: all of it. */
static enum message_cause judge_rest(struct message *self, uint64_t together)
{
    bool pool = knows(self, MESSAGE_FIGURE_UNALLOCATED);
    bool available = knows(self, MESSAGE_FIGURE_FREE);
    bool total = knows(self, MESSAGE_FIGURE_TOTAL);
    enum message_figure_name own = knows(self, MESSAGE_FIGURE_ALLOCATED)  ? MESSAGE_FIGURE_ALLOCATED
                                   : knows(self, MESSAGE_FIGURE_RESERVED) ? MESSAGE_FIGURE_RESERVED
                                                                          : MESSAGE_FIGURE_PROCESS;
    if (exceeds(figure_of(self, MESSAGE_FIGURE_PROGRAM), figure_of(self, MESSAGE_FIGURE_TOTAL)))
        return MESSAGE_CAPACITY;
    if ((self->one_pool && (pool || available || total)) || is_too_large_alone(self)) {
        /* The pool of RELION, vLLM and MLC is what others and their share of the card leave. */
        unsure(self, MESSAGE_REASON_MISSING,
               self->one_pool && !total && strcmp(self->device, "TPU") != 0);
        return MESSAGE_CAPACITY;
    }
    if (pool && available) {
        unsure(self, MESSAGE_REASON_MISSING, !total);
        unsure(self, MESSAGE_REASON_SLACK,
               bytes_of(self, MESSAGE_FIGURE_FREE) + bytes_of(self, MESSAGE_FIGURE_UNALLOCATED) >=
                   bytes_of(self, MESSAGE_FIGURE_ASKED));
        unsure(self, MESSAGE_REASON_OTHER_CAUSE, together >= bytes_of(self, MESSAGE_FIGURE_ASKED));
        /* The program alone would fit, beside a smaller context than was allowed for. */
        unsure(self, MESSAGE_REASON_CONTEXT, total && self->card_told);
        return MESSAGE_CAPACITY;
    }
    unsure(self, MESSAGE_REASON_MISSING, true);
    /* Without the unused bytes of the pool: if the program has most of the card, it is likely that
     * it needs more than there is. */
    bool most = (self->card_told || is_mps(self)) && total && knows(self, own) &&
                bytes_of(self, own) > bytes_of(self, MESSAGE_FIGURE_TOTAL) / 2;
    if ((most && (has_nearly_all(self, own) || available || pool)) || is_nothing_held(self))
        return MESSAGE_CAPACITY;
    const struct message_figure *start = figure_of(self, MESSAGE_FIGURE_START);
    if (start->known) { /* others are not in what was free at first */
        bool close = false;
        if (!fits(self, start->bytes, start->coarse_bytes, &close))
            self->reasons = 0; /* it did not fit even then: nothing that is missing matters */
        return MESSAGE_CAPACITY;
    }
    return MESSAGE_UNKNOWN;
}

/* What is free, and what all holders have. */
static uint64_t together_of(const struct message *self, const struct holder *holders)
{
    uint64_t bytes = bytes_of(self, MESSAGE_FIGURE_FREE);
    for (int i = 0; i < HOLDER_OTHERS_AND_REST; i++)
        bytes += holders[i].known ? holders[i].gain : 0;
    return bytes;
}

/* Whether others hold more than half of the card. */
static bool has_most(const struct message *self, const struct holder *holder)
{
    return holder && holder->cause != MESSAGE_FRAGMENTATION_POSSIBLE &&
           knows(self, MESSAGE_FIGURE_TOTAL) &&
           holder->gain > bytes_of(self, MESSAGE_FIGURE_TOTAL) / 2;
}

static enum message_cause judge_pool(struct message *self)
{
    struct holder holders[HOLDERS];
    unsigned enough, others;
    bool close = false, ignored = false;
    uint64_t unused = bytes_of(self, MESSAGE_FIGURE_UNALLOCATED);
    list_holders(self, holders);
    const struct holder *holder = largest_holder(self, holders, HOLDERS, &enough, &close);
    bool most = has_most(self, holder);
    bool other = largest_holder(self, holders, HOLDER_POOL, &others, &ignored) != NULL;
    bool fits_unused = !most && fits_figure(self, MESSAGE_FIGURE_UNALLOCATED);
    if (fits_unused && is_slack(self)) {
        unsure(self, holder ? MESSAGE_REASON_OTHER_CAUSE : MESSAGE_REASON_SLACK, true);
        if (!holder)
            return MESSAGE_CAPACITY;
    } else if (fits_unused) {
        unsure(self, MESSAGE_REASON_OTHER_CAUSE, other);
        unsure(self, MESSAGE_REASON_SLACK,
               !knows(self, MESSAGE_FIGURE_LARGEST) &&
                   unused < bytes_of(self, MESSAGE_FIGURE_RESERVED) / USUAL_SHARE);
        unsure(self, MESSAGE_REASON_ASSUMED,
               (self->whole_limit || self->one_pool) && !knows(self, MESSAGE_FIGURE_LARGEST));
        unsure(self, MESSAGE_REASON_LAYOUT, self->framework == MESSAGE_JULIA);
        unsure(self, MESSAGE_REASON_MISSING, self->card_told && !knows(self, MESSAGE_FIGURE_FREE));
        return MESSAGE_FRAGMENTATION;
    }
    if (!holder)
        return judge_rest(self, together_of(self, holders));
    self->close |= close;
    unsure(self, MESSAGE_REASON_OTHER_CAUSE,
           most ? !is_slack(self) && fits_figure(self, MESSAGE_FIGURE_UNALLOCATED)
                : enough > 1 || (holder->cause == MESSAGE_OUTSIDE &&
                                 has_nearly_all(self, MESSAGE_FIGURE_RESERVED)));
    unsure(self, MESSAGE_REASON_ASSUMED,
           self->process_guessed || self->others_hidden || self->async_pool);
    unsure(self, MESSAGE_REASON_CONTEXT,
           holder->cause == MESSAGE_TENANT_OR_OUTSIDE && holder->gain < MESSAGE_CONTEXT_MOST);
    unsure(self, MESSAGE_REASON_LAYOUT, holder->cause == MESSAGE_FRAGMENTATION_POSSIBLE);
    unsure(self, MESSAGE_REASON_MISSING,
           self->framework == MESSAGE_PYTORCH && !is_mps(self) && !self->async_pool &&
               !knows(self, MESSAGE_FIGURE_UNALLOCATED));
    return holder->cause;
}

/* The requested bytes are free. On a full card that says little, and who has the memory says more.
 */
static enum message_cause judge_free(struct message *self)
{
    struct message full = *self; /* only the cause of judge_pool counts here, not its reasons */
    if (!self->card_told || knows(self, MESSAGE_FIGURE_ALLOWED) ||
        bytes_of(self, MESSAGE_FIGURE_FREE) > bytes_of(self, MESSAGE_FIGURE_ASKED) + FULL_BYTES)
        return MESSAGE_NOT_THE_ALLOCATOR;
    unsure(self, MESSAGE_REASON_TIGHT, true);
    enum message_cause cause = judge_pool(&full);
    bool held = cause == MESSAGE_FRAGMENTATION || cause == MESSAGE_TENANT ||
                cause == MESSAGE_OUTSIDE || cause == MESSAGE_TENANT_OR_OUTSIDE ||
                (cause == MESSAGE_CAPACITY && fits_figure(&full, MESSAGE_FIGURE_UNALLOCATED));
    self->reasons |= held ? full.reasons & (1u << MESSAGE_REASON_SLACK) : 0;
    return held ? cause : MESSAGE_NOT_THE_ALLOCATOR;
}

/* Without a request: others are the cause if they have most of the card. */
static enum message_cause judge_unasked(struct message *self)
{
    struct holder holders[HOLDERS];
    unsigned enough;
    bool close = false;
    list_holders(self, holders);
    const struct holder *holder = largest_holder(self, holders, HOLDERS, &enough, &close);
    if (!has_most(self, holder))
        return MESSAGE_UNKNOWN;
    unsure(self, MESSAGE_REASON_MISSING, true);
    return holder->cause;
}

static enum message_cut cut_of(const struct message *self)
{
    enum message_cut cut = MESSAGE_UNCUT;
    for (size_t i = 0; i < MESSAGE_FIGURE_COUNT; i++)
        cut = self->figures[i].cut > cut ? self->figures[i].cut : cut;
    return cut;
}

/* Whether the text has several failures that differ in what they show. */
static bool has_several_causes(const struct message *self)
{
    unsigned causes = 0;
    for (size_t i = 0; i < MESSAGE_UNKNOWN; i++)
        causes += self->causes[i] > 0;
    return causes > 1;
}

/* Whether the requested bytes are free. MPS most often fails by its bound: what the bound leaves
 * was not enough then, although it may seem so within the rounding. */
static bool fits_free(struct message *self)
{
    bool close = false, mps = is_mps(self);
    const struct message_figure *available = figure_of(self, MESSAGE_FIGURE_FREE);
    if (!available->known || !fits(self, available->bytes, available->coarse_bytes, &close))
        return false;
    self->close |= close && !mps;
    return !(close && mps);
}

static enum message_cause judge(struct message *self)
{
    const struct message_figure *asked = figure_of(self, MESSAGE_FIGURE_ASKED);
    const struct message_figure *start = figure_of(self, MESSAGE_FIGURE_START);
    unsure(self, MESSAGE_REASON_INDIRECT, self->indirect);
    unsure(self, MESSAGE_REASON_TOLD, self->told);
    unsure(self, MESSAGE_REASON_SEVERAL, self->several || has_several_causes(self));
    unsure(self, MESSAGE_REASON_SPARE, self->goes_on);
    if (self->host)
        return MESSAGE_HOST;
    if (self->on_chip)
        return MESSAGE_IMPOSSIBLE;
    if (self->printed) {
        unsure(self, MESSAGE_REASON_LAYOUT,
               !knows(self, MESSAGE_FIGURE_PEAK) && !knows(self, MESSAGE_FIGURE_UNRELEASABLE));
        unsure(self, MESSAGE_REASON_MISSING, !knows(self, MESSAGE_FIGURE_ALLOCATED));
        return MESSAGE_CACHE;
    }
    if (!asked->known && self->block_limit)
        return MESSAGE_NOT_THE_ALLOCATOR;
    if (!asked->known || (!asked->bytes && !knows(self, MESSAGE_FIGURE_FREE)))
        return judge_unasked(self);
    enum message_cut cut = cut_of(self);
    unsure(self, MESSAGE_REASON_CUT, cut && !self->block_limit);
    if (cut == MESSAGE_CUT_AT_LINE && !self->block_limit)
        return MESSAGE_UNKNOWN;
    if (asked->bytes >= MESSAGE_ANY_CARD && !asked->cut)
        return MESSAGE_IMPOSSIBLE;
    if (start->known && start->bytes < MESSAGE_START_LEAST) {
        unsure(self, MESSAGE_REASON_MISSING, true);
        return MESSAGE_TENANT_OR_OUTSIDE;
    }
    if (knows(self, MESSAGE_FIGURE_TOTAL) && !fits_figure(self, MESSAGE_FIGURE_TOTAL) &&
        !(self->contradictions & (1u << MESSAGE_FREE_ABOVE_TOTAL))) {
        unsure(self, MESSAGE_REASON_UNIFIED, self->device[0] == 'H');
        return MESSAGE_IMPOSSIBLE;
    }
    if (self->block_limit)
        return MESSAGE_NOT_THE_ALLOCATOR;
    if (fits_free(self)) {
        unsure(self, MESSAGE_REASON_MISSING, !self->card_told);
        return judge_free(self);
    }
    if (exceeds(figure_of(self, MESSAGE_FIGURE_ALLOCATED), figure_of(self, MESSAGE_FIGURE_TOTAL)))
        return MESSAGE_CAPACITY;
    return judge_pool(self);
}

/* Free blocks of private pools serve only these. PyTorch counts them as allocated, not as unused
 * (CUDACachingAllocator.cpp since 2.4, where it fails a request). So the unused bytes are those of
 * the common pool, which would not serve the request of a private one, and the other way round. */
static bool depends_on_pool(const struct message *self)
{
    uint64_t private_bytes = bytes_of(self, MESSAGE_FIGURE_PRIVATE);
    return private_bytes &&
           (self->cause == MESSAGE_FRAGMENTATION || self->cause == MESSAGE_FRAGMENTATION_POSSIBLE ||
            (self->cause == MESSAGE_CAPACITY &&
             private_bytes + bytes_of(self, MESSAGE_FIGURE_FREE) >=
                 bytes_of(self, MESSAGE_FIGURE_ASKED)));
}

/* A limit that small is what others had left of the card. */
static void derive_start(struct message *self)
{
    struct message_figure *start = &self->figures[MESSAGE_FIGURE_START];
    if ((self->framework == MESSAGE_TENSORFLOW || self->framework == MESSAGE_JAX) &&
        !start->known && !self->device[0] && knows(self, MESSAGE_FIGURE_TOTAL) &&
        bytes_of(self, MESSAGE_FIGURE_TOTAL) < LIMIT_LEAST) {
        *start = self->figures[MESSAGE_FIGURE_TOTAL];
        start->derived = true;
    }
}

/* A card of 0 bytes is one that could not be asked. */
static void forget_failed_query(struct message *self)
{
    struct message_figure *total = &self->figures[MESSAGE_FIGURE_TOTAL];
    struct message_figure *available = &self->figures[MESSAGE_FIGURE_FREE];
    if (!total->known || total->bytes)
        return;
    total->known = false;
    available->known &= available->bytes > 0;
}

void message_judge(struct message *self)
{
    forget_failed_query(self);
    derive_start(self);
    derive(self, MESSAGE_FIGURE_RESERVED, true, MESSAGE_FIGURE_ALLOCATED,
           MESSAGE_FIGURE_UNALLOCATED);
    derive(self, MESSAGE_FIGURE_UNALLOCATED, false, MESSAGE_FIGURE_RESERVED,
           MESSAGE_FIGURE_ALLOCATED);
    derive(self, MESSAGE_FIGURE_OUTSIDE_POOL, false, MESSAGE_FIGURE_PROCESS,
           MESSAGE_FIGURE_RESERVED);
    self->contradictions = 0;
    self->reasons = 0;
    self->close = false;
    find_contradictions(self);
    derive_remainder(self);
    self->cause = judge(self);
    unsure(self, MESSAGE_REASON_POOL, depends_on_pool(self));
    unsure(self, MESSAGE_REASON_CLOSE, self->close);
    unsure(self, MESSAGE_REASON_CONTRADICTION, self->contradictions);
    unsure(self, MESSAGE_REASON_EARLIER, self->earlier);
    unsure(self, MESSAGE_REASON_ASSUMED, self->type_assumed);
    self->confidence = self->cause == MESSAGE_UNKNOWN ? MESSAGE_OPEN
                       : self->reasons                ? MESSAGE_LIKELY
                                                      : MESSAGE_SURE;
}

bool message_missing(const struct message *self, enum message_figure_name name)
{
    switch (name) {
    case MESSAGE_FIGURE_OTHERS: /* what is not free and not this process's is theirs */
        return !self->figures[name].known &&
               !(knows(self, MESSAGE_FIGURE_TOTAL) && knows(self, MESSAGE_FIGURE_FREE) &&
                 knows(self, MESSAGE_FIGURE_PROCESS));
    case MESSAGE_FIGURE_TOTAL:
    case MESSAGE_FIGURE_FREE:
    case MESSAGE_FIGURE_UNALLOCATED:
    case MESSAGE_FIGURE_OUTSIDE_POOL:
        return !self->figures[name].known;
    default:
        return false;
    }
}
