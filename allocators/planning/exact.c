/* The lowest plan.
 *
 * 1. Bounds close in from both sides: below, what is proven, at first the peak of live bytes;
 *    above, the best plan.
 * 2. Most attempts ask for a plan at the lower bound itself, where nothing may be wasted and the
 *    search sees failure early. Every third asks between the bounds: a plan lowers the upper one;
 *    a proof that there is none raises the lower one.
 * 3. Attempts are short at first and lengthen as 1 1 2 1 1 2 4 .. (Luby et al., 1993), with another
 *    order of candidates each, blurred by random numbers of a fixed seed: many short tries with
 *    different luck beat one long one. An attempt that is not cut is a proof. */
#include "allocators/planning/exact.h"

#include "allocators/planning/search.h"

#define STEPS_UNIT 1000

/* 1 1 2 1 1 2 4 1 1 2 1 1 2 4 8 ..; `index` from 1. */
static uint64_t luby(uint64_t index)
{
    for (;;) {
        uint64_t whole = 1;
        while (whole < index)
            whole = 2 * whole + 1;
        if (whole == index)
            return (whole + 1) / 2;
        index -= whole / 2;
    }
}

struct exact {
    struct search search;
    const struct packing_exact_options *options;
    struct packing_exact *out;
    uint64_t *offsets;
    struct keyed *keys, *spare;
    struct ar_rng rng;
    uint64_t least, top; /* in units */
};

static void keep_plan(struct exact *self)
{
    const struct search *search = &self->search;
    self->top = 0;
    for (uint32_t i = 0; i < search->count; i++) {
        uint64_t end = search->offsets[i] + search->blocks[i].size;
        self->offsets[search->given[i]] = search->offsets[i] * search->unit_bytes;
        self->top = end > self->top ? end : self->top;
    }
    self->out->top_bytes = self->top * search->unit_bytes;
}

/* What to ask for next: the lower bound, or something between. */
static uint64_t next_capacity(const struct exact *self)
{
    uint64_t room = self->top - 1 - self->least;
    switch (self->out->attempts % 12) {
    case 5:
        return self->least + room / 2;
    case 8:
        return self->top - 1;
    case 11:
        return self->least + room / 8;
    default:
        return self->least;
    }
}

static enum search_answer attempt(struct exact *self, uint64_t steps_most)
{
    struct search *search = &self->search;
    uint64_t number = self->out->attempts++;
    search->by_weight = number % 2 == 0;
    if (!search_begin(search))
        return SEARCH_NONE;
    search_rank(search, (unsigned)(number / 2 % SEARCH_ORDERS),
                number < 2 * SEARCH_ORDERS ? NULL : &self->rng, self->keys, self->spare);
    enum search_answer answer = search_try(search, steps_most);
    self->out->steps += search->steps;
    return answer;
}

static void close_in(struct exact *self)
{
    const struct packing_exact_options *options = self->options;
    struct search *search = &self->search;
    while (self->least < self->top) {
        uint64_t most = STEPS_UNIT * luby(self->out->attempts / (2 * SEARCH_ORDERS) + 1);
        if (options->steps_most && most > options->steps_most - self->out->steps)
            most = options->steps_most - self->out->steps;
        search->capacity = next_capacity(self);
        enum search_answer answer = attempt(self, most);
        if (answer == SEARCH_FOUND)
            keep_plan(self);
        else if (answer == SEARCH_NONE)
            self->least = search->capacity + 1;
        else if (search->no_memory || (options->stop && options->stop(options->argument)) ||
                 (options->steps_most && self->out->steps >= options->steps_most))
            break;
    }
}

static enum ar_status prepare(struct exact *self, const struct packing *packing)
{
    size_t bytes = ((size_t)packing->count + 1) * sizeof(struct keyed);
    enum ar_status status = search_open(&self->search, packing);
    if (status)
        return status;
    ar_rng_seed(&self->rng, 1);
    self->keys = ar_host_alloc(packing->host, bytes);
    self->spare = ar_host_alloc(packing->host, bytes);
    self->search.stop = self->options->stop;
    self->search.stop_argument = self->options->argument;
    return self->keys && self->spare ? AR_OK : AR_HOST_MEMORY;
}

enum ar_status packing_exact(const struct packing *self,
                             const struct packing_exact_options *options, uint64_t *offsets,
                             struct packing_exact *out)
{
    struct exact exact = {.options = options, .out = out, .offsets = offsets};
    size_t bytes = ((size_t)self->count + 1) * sizeof(struct keyed);
    out->least_bytes = self->peak_bytes;
    out->steps = out->attempts = 0;
    out->end = PACKING_EXACT_MEETS_BOUND;
    if (out->top_bytes <= out->least_bytes)
        return AR_OK;
    enum ar_status status = prepare(&exact, self);
    out->end = PACKING_EXACT_TOO_LARGE;
    if (!status) {
        uint64_t unit_bytes = exact.search.unit_bytes;
        exact.least = (self->peak_bytes + unit_bytes - 1) / unit_bytes;
        exact.top = (out->top_bytes + unit_bytes - 1) / unit_bytes;
        close_in(&exact);
        out->least_bytes = exact.least * unit_bytes;
        out->end = exact.least < exact.top              ? PACKING_EXACT_CUT
                   : out->top_bytes == self->peak_bytes ? PACKING_EXACT_MEETS_BOUND
                                                        : PACKING_EXACT_EXHAUSTED;
        status = exact.search.no_memory ? AR_HOST_MEMORY : AR_OK;
    }
    ar_host_free(self->host, exact.keys, bytes);
    ar_host_free(self->host, exact.spare, bytes);
    search_close(&exact.search);
    return status == AR_INVALID ? AR_OK : status;
}
