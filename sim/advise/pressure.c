/* How:
 *
 * 1. What was held at most is the least that the limit can have been. Where memory went back and more
 *    was made right after, the limit was less than what was held before and the new segment together,
 *    if pressure it was.
 * 2. The recording is held against the policy at the first, and at one byte less than the least of
 *    the others that are no less, and so on upward; the one that leaves the fewest releases to the
 *    program is taken, if that is fewer than without a limit.
 * 3. The lowest one that does the same is looked for below it, by halving. */
#include "sim/advise/pressure.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocators/base/size.h"

#define LIMITS_MOST 5 /* that are tried */

/* PyTorch's segments for a request, which is what it holds against a limit. */
#define SMALL_REQUEST AR_MIB
#define SMALL_SEGMENT (2 * AR_MIB)
#define LARGE_REQUEST (10 * AR_MIB)
#define LARGE_SEGMENT (20 * AR_MIB)

static uint64_t segment_of(uint64_t bytes)
{
    return bytes <= SMALL_REQUEST  ? SMALL_SEGMENT
           : bytes < LARGE_REQUEST ? LARGE_SEGMENT
                                   : ar_size_round_up(bytes, SMALL_SEGMENT);
}

struct looking {
    const struct fidelity_result *held;
    uint64_t event, reserved_bytes;
    uint64_t before_bytes; /* what was held when the last release began */
    size_t release;        /* the next one */
    bool open;             /* one came, the next request not yet */
    uint64_t limits[LIMITS_MOST];
    size_t limit_count;
};

/* "VERB,ADDRESS,BYTES,.." */
static bool read_bytes(const char *text, const char *verb, uint64_t *bytes)
{
    size_t length = strlen(verb);
    if (strncmp(text, verb, length) != 0 || text[length] != ',')
        return false;
    const char *comma = strchr(text + length + 1, ',');
    *bytes = comma ? strtoull(comma + 1, NULL, 10) : 0;
    return comma != NULL;
}

static void follow_note(struct looking *self, const char *text)
{
    uint64_t bytes;
    if (read_bytes(text, "segment_alloc", &bytes) || read_bytes(text, "segment_map", &bytes) ||
        read_bytes(text, "segment", &bytes) || read_bytes(text, "pages", &bytes))
        self->reserved_bytes += bytes;
    else if (read_bytes(text, "segment_free", &bytes) || read_bytes(text, "segment_unmap", &bytes))
        self->reserved_bytes -= bytes < self->reserved_bytes ? bytes : self->reserved_bytes;
}

/* Keeps the least ones, in order. */
static void keep(struct looking *self, uint64_t limit)
{
    size_t at = 0;
    while (at < self->limit_count && self->limits[at] < limit)
        at++;
    if (at == LIMITS_MOST || (at < self->limit_count && self->limits[at] == limit))
        return;
    if (self->limit_count < LIMITS_MOST)
        self->limit_count++;
    for (size_t i = self->limit_count - 1; i > at; i--)
        self->limits[i] = self->limits[i - 1];
    self->limits[at] = limit;
}

static void look(struct looking *self, struct trace_source *source, const struct trace_event *event)
{
    const struct fidelity_result *held = self->held;
    if (self->release < held->release_count && held->releases[self->release] <= self->event) {
        self->before_bytes = self->reserved_bytes;
        self->open = true;
        self->release++;
    }
    if (event->kind == TRACE_NOTE)
        follow_note(self, trace_text_of(source, event->value));
    if (event->kind == TRACE_ALLOC && self->open) {
        uint64_t limit = self->before_bytes + segment_of(event->value) - 1;
        if (limit > held->recorded_peak_reserved_bytes)
            keep(self, limit);
        self->open = false;
    }
    self->event++;
}

static enum ar_status find_limits(struct trace_source *source, struct looking *self,
                                  struct ar_error *error)
{
    const struct trace_event *events;
    size_t pulled = 1;
    enum ar_status status = trace_rewind(source, error);
    while (!status && pulled) {
        status = trace_next(source, &events, &pulled, error);
        for (size_t i = 0; !status && i < pulled; i++)
            look(self, source, &events[i]);
    }
    return status;
}

static enum ar_status hold(struct trace_source *source, const char *text, uint64_t limit,
                           uint64_t seed, struct fidelity_result *out, struct ar_error *error)
{
    char limited[1200];
    struct ar_spec policy;
    snprintf(limited, sizeof limited, "%s%slimit=%" PRIu64, text, strchr(text, ':') ? "," : ":",
             limit);
    enum ar_status status = ar_spec_parse(limited, &policy, error);
    if (status)
        return status;
    const struct fidelity fidelity = {.policy = &policy, .source = source, .seed = seed};
    status = fidelity_run(&fidelity, out, error);
    ar_spec_close(&policy);
    return status;
}

/* Rule 3, from `least`, which does not do the same, up to `most`, which does. */
static enum ar_status find_lowest(struct trace_source *source, const char *text, uint64_t seed,
                                  const struct fidelity_result *held, struct pressure *out,
                                  uint64_t least, struct ar_error *error)
{
    enum ar_status status = AR_OK;
    while (!status && out->least_bytes > least && out->least_bytes - least > SMALL_SEGMENT) {
        struct fidelity_result other = {0};
        uint64_t middle = least + (out->least_bytes - least) / 2;
        status = hold(source, text, middle, seed, &other, error);
        if (status)
            break;
        if (other.agrees && other.release_count <= held->release_count)
            out->least_bytes = middle;
        else
            least = middle;
        fidelity_result_close(&other);
    }
    return status;
}

enum ar_status pressure_find(struct trace_source *source, const char *text, uint64_t seed,
                             struct fidelity_result *held, struct pressure *out,
                             struct ar_error *error)
{
    struct looking looking = {.held = held};
    uint64_t peak = held->recorded_peak_reserved_bytes;
    *out = (struct pressure){0};
    if (!held->agrees || !held->release_count || !peak)
        return AR_OK;
    keep(&looking, peak);
    enum ar_status status = find_limits(source, &looking, error);
    for (size_t i = 0; i < looking.limit_count && held->release_count && !status; i++) {
        struct fidelity_result other = {0};
        status = hold(source, text, looking.limits[i], seed, &other, error);
        if (!status && other.agrees && other.release_count < held->release_count) {
            struct fidelity_result swap = *held;
            *held = other;
            other = swap;
            out->least_bytes = out->most_bytes = looking.limits[i];
        }
        if (!status)
            fidelity_result_close(&other);
    }
    return status || !out->least_bytes ? status
                                       : find_lowest(source, text, seed, held, out, peak, error);
}
