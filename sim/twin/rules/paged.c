/* Scheduling with a paged key-value cache; see paged.h. */

#include "allocators/base/array.h"
#include "sim/twin/rules/paged.h"

/* Blocks that requests can have: V1 keeps one as the null block. */
static uint64_t usable(const struct paged_setup *setup)
{
    return setup->blocks - (setup->style == PAGED_V1 && setup->blocks > 1);
}

enum ar_status paged_open(struct paged *self, const struct paged_setup *setup,
                          struct ar_error *error)
{
    *self = (struct paged){.setup = *setup, .free = usable(setup)};
    if (setup->length < 2 || !setup->max_requests || !setup->step_tokens)
        return ar_invalid(error,
                          "a scheduler needs a length of 2 tokens, one request and one token");
    if (!setup->chunks && setup->style != PAGED_V1 && setup->step_tokens < setup->length)
        return ar_invalid(error,
                          "without chunked prefill a step of %" PRIu64
                          " tokens cannot hold a prompt of %" PRIu64,
                          setup->step_tokens, setup->length);
    /* The real engines check this with all blocks, the null block included. */
    if (ar_divide_up(setup->length, setup->block_tokens) > setup->blocks)
        return ar_invalid(error, "%" PRIu64 " blocks cannot hold a request of %" PRIu64 " tokens",
                          setup->blocks, setup->length);
    self->setup.length = ar_least(setup->length, self->free * setup->block_tokens);
    self->running = calloc(setup->max_requests, sizeof *self->running);
    self->again = calloc(setup->max_requests, sizeof *self->again);
    if (!self->running || !self->again)
        return ar_error_set(error, AR_HOST_MEMORY, "no memory for the scheduler's lists");
    return AR_OK;
}

void paged_close(struct paged *self)
{
    free(self->requests);
    free(self->running);
    free(self->again);
    memset(self, 0, sizeof *self);
}

enum ar_status paged_add(struct paged *self, uint64_t prompt, uint64_t answer,
                         struct ar_error *error)
{
    uint64_t length = self->setup.length;
    prompt = ar_least(prompt ? prompt : 1, length - 1);
    answer = ar_least(answer ? answer : 1, length - prompt);
    struct paged_request request = {.prompt = (uint32_t)prompt, .answer = (uint32_t)answer};
    return AR_APPEND(self->requests, self->count, self->room, request, error, "%zu requests",
                     self->count + 1);
}

/* ---- one step -------------------------------------------------------------------------------- */

static uint64_t blocks_for(const struct paged *self, const struct paged_request *request,
                           uint64_t tokens)
{
    uint64_t all = ar_divide_up(request->computed + tokens, self->setup.block_tokens);
    return all > request->blocks ? all - request->blocks : 0;
}

/* Tokens that are known and not computed: 1 of an answer, or what is left of a prompt. */
static uint64_t pending(const struct paged_request *request)
{
    return request->prompt + request->produced - request->computed;
}

/* A prompt, or one that is computed again, and not the next token of an answer. */
static bool prefilling(const struct paged_request *request)
{
    return pending(request) > 1 || !request->produced;
}

/* Tokens that a step computes of a request, if it may. */
static uint64_t wanted(const struct paged *self, const struct paged_request *request)
{
    return pending(request) + (prefilling(request) ? 0 : self->setup.draft_tokens);
}

/* Tokens for which it needs blocks; no request is longer than `length`. */
static uint64_t slots(const struct paged *self, const struct paged_request *request,
                      uint64_t tokens)
{
    if (prefilling(request))
        return tokens;
    return ar_least(tokens + self->setup.lookahead_tokens, self->setup.length - request->computed);
}

static uint64_t prefix_of(const struct paged *self, const struct paged_request *request)
{
    return ar_least(self->setup.shared_tokens, request->prompt - 1u) / self->setup.block_tokens;
}

/* Blocks of the prefix that the request has computed are known from now on, and not its own. */
static void share(struct paged *self, struct paged_request *request)
{
    uint64_t known =
        ar_least(prefix_of(self, request), request->computed / self->setup.block_tokens);
    if (known <= self->prefix || request->shared != self->prefix)
        return;
    request->shared = (uint32_t)known;
    self->prefix = self->held = known;
}

/* Blocks of the prefix that no running request uses are free. */
static void hold_prefix(struct paged *self)
{
    uint64_t most = 0;
    for (size_t i = 0; self->held && i < self->running_count; i++) {
        uint64_t shared = self->requests[self->running[i]].shared;
        most = shared > most ? shared : most;
    }
    self->free += self->held - most;
    self->held = most;
}

/* A request that begins uses the known blocks of the prefix. Returns the blocks that are no longer
 * free. */
static uint64_t use_prefix(struct paged *self, struct paged_request *request)
{
    uint64_t blocks = ar_least(prefix_of(self, request), self->prefix);
    if (request->computed || !blocks)
        return 0;
    request->computed = (uint32_t)(blocks * self->setup.block_tokens);
    request->blocks = request->shared = (uint32_t)blocks;
    return blocks > self->held ? blocks - self->held : 0;
}

/* Accepted drafts of a step: p + p^2 + .. on average. */
static uint32_t accept(const struct paged *self, struct paged_request *request, uint64_t drafts)
{
    double part = 1;
    for (uint64_t i = 0; i < drafts; i++)
        request->accepted += (float)(part *= self->setup.acceptance);
    uint32_t whole = (uint32_t)request->accepted, left = request->answer - request->produced - 1;
    request->accepted -= (float)whole;
    return whole < left ? whole : left;
}

static void compute(struct paged *self, struct paged_request *request, uint64_t tokens,
                    struct paged_step *step)
{
    uint64_t blocks = blocks_for(self, request, slots(self, request, tokens));
    self->free -= blocks;
    self->prefix = ar_least(self->prefix, self->held + self->free);
    request->blocks += (uint32_t)blocks;
    step->tokens += tokens;
    step->sequences++;
    if (!prefilling(request) && self->setup.draft_tokens) {
        uint32_t accepted = accept(self, request, tokens - 1);
        request->computed += 1 + accepted;
        request->produced += 1 + accepted;
        step->rows += tokens;
        return;
    }
    step->prompts |= prefilling(request);
    request->computed += (uint32_t)tokens;
    share(self, request);
    if (!pending(request)) {
        request->produced++;
        step->rows++;
    }
}

static void free_blocks(struct paged *self, struct paged_request *request)
{
    self->free += request->blocks - request->shared;
    request->blocks = request->shared = 0;
    hold_prefix(self);
}

/* SGLang preempts the shortest answer, the longest prompt among equal ones, and keeps the last
 * answer; then the prompt that is computed in chunks. SIZE_MAX: none is left. */
static size_t shortest_answer(const struct paged *self)
{
    size_t best = SIZE_MAX, prompt = SIZE_MAX, answers = 0;
    for (size_t i = self->running_count; i-- > 0;) {
        const struct paged_request *request = &self->requests[self->running[i]];
        if (prefilling(request)) {
            prompt = i;
            continue;
        }
        answers++;
        const struct paged_request *other =
            best == SIZE_MAX ? NULL : &self->requests[self->running[best]];
        if (!other || request->produced < other->produced ||
            (request->produced == other->produced && request->prompt > other->prompt))
            best = i;
    }
    return answers > 1 ? best : prompt;
}

static void preempt(struct paged *self, size_t index, struct paged_step *step)
{
    uint32_t id = self->running[index];
    struct paged_request *request = &self->requests[id];
    self->recomputed += request->computed;
    request->computed = 0;
    free_blocks(self, request);
    memmove(&self->running[index], &self->running[index + 1],
            (self->running_count - index - 1) * sizeof *self->running);
    self->running_count--;
    self->again[self->again_count++] = id;
    self->preemptions++;
    step->preempted++;
}

/* Frees blocks until each running answer has one for its next token. */
static void retract(struct paged *self, struct paged_step *step)
{
    for (;;) {
        uint64_t needed = 0;
        for (size_t i = 0; i < self->running_count; i++) {
            const struct paged_request *request = &self->requests[self->running[i]];
            needed += prefilling(request) ? 0 : blocks_for(self, request, 1);
        }
        size_t index = needed > self->free ? shortest_answer(self) : SIZE_MAX;
        if (index == SIZE_MAX)
            return;
        preempt(self, index, step);
    }
}

/* Tokens of running requests, in order. vLLM preempts the last ones until each has its blocks.
 * Returns what is left of the budget. */
static uint64_t run(struct paged *self, uint64_t budget, bool prompts, struct paged_step *step)
{
    for (size_t i = 0; i < self->running_count; i++) {
        struct paged_request *request = &self->requests[self->running[i]];
        if (prefilling(request) && !prompts)
            continue;
        uint64_t tokens = ar_least(wanted(self, request), budget);
        if (!tokens)
            break;
        uint64_t space = slots(self, request, tokens);
        while (blocks_for(self, request, space) > self->free && self->running_count > i + 1)
            preempt(self, self->running_count - 1, step);
        if (blocks_for(self, request, space) > self->free) {
            preempt(self, i, step); /* itself, the last one */
            break;
        }
        compute(self, request, tokens, step);
        budget -= tokens;
    }
    return budget;
}

/* What SGLang keeps free for the rest of the running answers. */
static uint64_t expected_blocks(const struct paged *self)
{
    uint64_t tokens = 0;
    for (size_t i = 0; i < self->running_count; i++) {
        const struct paged_request *request = &self->requests[self->running[i]];
        tokens += request->answer - request->produced;
    }
    return ar_divide_up(tokens * self->setup.expected_percent / 100, self->setup.block_tokens);
}

static bool admissible(const struct paged *self, const struct paged_request *request,
                       uint64_t tokens)
{
    uint64_t spare = 0, blocks = blocks_for(self, request, tokens);
    if (self->setup.style == PAGED_V0) {
        /* all of the prompt, in chunks too, and the watermark */
        blocks = blocks_for(self, request, pending(request));
        spare = self->setup.blocks / 100;
    } else if (self->setup.style == PAGED_SGLANG) {
        blocks = blocks_for(self, request, pending(request));
        spare =
            expected_blocks(self) + ar_divide_up((uint64_t)(request->answer - request->produced) *
                                                     self->setup.expected_percent / 100,
                                                 self->setup.block_tokens);
    }
    if (self->running_count == 0) /* nothing would ever become free */
        spare = 0;
    return blocks + spare <= self->free;
}

/* Whether a running request has a part of its prompt left. */
static bool unfinished_prompt(const struct paged *self)
{
    for (size_t i = 0; i < self->running_count; i++)
        if (prefilling(&self->requests[self->running[i]]))
            return true;
    return false;
}

static void admit(struct paged *self, uint64_t budget, struct paged_step *step)
{
    while (budget && self->running_count < self->setup.max_requests &&
           (self->again_count || self->next < self->count)) {
        uint32_t id = self->again_count ? self->again[self->again_count - 1] : (uint32_t)self->next;
        struct paged_request *request = &self->requests[id];
        uint64_t held = use_prefix(self, request), tokens = ar_least(pending(request), budget);
        self->free -= held;
        if ((tokens < pending(request) && !self->setup.chunks) ||
            !admissible(self, request, tokens)) {
            self->free += held;
            request->computed = request->blocks = request->shared = 0;
            break;
        }
        self->hits += request->computed;
        self->held += held;
        if (self->again_count)
            self->again_count--;
        else
            self->next++;
        self->running[self->running_count++] = id;
        compute(self, request, tokens, step);
        budget -= tokens;
    }
}

static void finish(struct paged *self, struct paged_step *step)
{
    step->blocks = usable(&self->setup) - self->free;
    size_t kept = 0;
    for (size_t i = 0; i < self->running_count; i++) {
        struct paged_request *request = &self->requests[self->running[i]];
        if (request->produced < request->answer) {
            self->running[kept++] = self->running[i];
            continue;
        }
        free_blocks(self, request);
        step->finished++;
    }
    self->running_count = kept;
    self->finished += step->finished;
}

bool paged_step(struct paged *self, struct paged_step *out)
{
    *out = (struct paged_step){0};
    if (self->finished == self->count)
        return false;
    uint64_t budget = self->setup.step_tokens;
    bool prompts_first =
        self->setup.style == PAGED_SGLANG || (self->setup.style == PAGED_V0 && !self->setup.chunks);
    if (!prompts_first) {
        budget = run(self, budget, true, out);
        if (!out->preempted)
            admit(self, budget, out);
    } else {
        /* The rest of a prompt, then new ones; only without any the answers go on. */
        for (size_t i = 0; i < self->running_count; i++) {
            struct paged_request *request = &self->requests[self->running[i]];
            uint64_t tokens = ar_least(pending(request), budget);
            if (!prefilling(request) || blocks_for(self, request, tokens) > self->free)
                continue;
            compute(self, request, tokens, out);
            budget -= tokens;
            break; /* one at a time */
        }
        if (!unfinished_prompt(self))
            admit(self, budget, out);
        if (!out->tokens) {
            if (self->setup.style == PAGED_SGLANG)
                retract(self, out);
            run(self, UINT64_MAX, false, out);
        }
    }
    finish(self, out);
    return true;
}
