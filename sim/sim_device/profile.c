#include <errno.h>
#include <strings.h>

#include "allocators/base/rng.h"
#include "allocators/base/size.h"
#include "sim/sim_device/profile.h"

/* ---- costs ---------------------------------------------------------------------------------- */

static const enum sim_cost stand_ins[] = {
#define X(name, stand_in, text) SIM_COST_##stand_in,
    SIM_COSTS(X)
#undef X
};

/* Without the maker, which drivers write or leave out. */
static const char *without_maker(const char *card)
{
    static const char *const makers[] = {"NVIDIA ", "AMD "};
    for (size_t i = 0; i < AR_COUNT(makers); i++)
        if (strncasecmp(card, makers[i], strlen(makers[i])) == 0)
            return card + strlen(makers[i]);
    return card;
}

/* Whether the line "KEY: NAME; NAME.." has the card. */
static bool line_names(const char *line, const char *key, const char *card)
{
    size_t length = strlen(key), wanted = strlen(card);
    if (strncmp(line, key, length) != 0 || strncmp(line + length, ": ", 2) != 0)
        return false;
    for (const char *at = line + length + 2;; at += 2) {
        const char *name = without_maker(at);
        const char *end = strstr(at, "; ");
        at = end ? end : at + strlen(at);
        if ((size_t)(at - name) == wanted && strncasecmp(name, card, wanted) == 0)
            return true;
        if (!end)
            return false;
    }
}

const char *sim_profile_of_card(const char *card)
{
    const char *best = NULL;
    if (!*card)
        return NULL;
    card = without_maker(card);
    for (const struct sim_builtin_profile *at = sim_builtin_profiles; at->name; at++)
        for (size_t i = 0; at->lines[i]; i++)
            if ((line_names(at->lines[i], "card", card) ||
                 line_names(at->lines[i], "also", card)) &&
                (!best || strlen(at->name) < strlen(best)))
                best = at->name;
    return best;
}

const char *const *sim_profile_builtin(const char *name)
{
    for (const struct sim_builtin_profile *at = sim_builtin_profiles; at->name; at++)
        if (strcmp(name, at->name) == 0)
            return at->lines;
    return NULL;
}

size_t sim_profile_names(const char **names, size_t most)
{
    size_t count = 0;
    while (count < most && sim_builtin_profiles[count].name) {
        names[count] = sim_builtin_profiles[count].name;
        count++;
    }
    return count;
}

const char *sim_curve_add(struct sim_curve *self, uint64_t bytes, uint64_t ns)
{
    if (bytes == 0)
        return "a cost needs a size above 0";
    if (self->count && bytes <= self->bytes[self->count - 1])
        return "the sizes of a kind must rise";
    if (self->count == SIM_COST_POINTS)
        return "a kind has at most 32 sizes";
    self->bytes[self->count] = bytes;
    self->ns[self->count] = ns;
    self->log_bytes[self->count] = ar_rng_log2((double)bytes);
    self->log_ns[self->count] = ar_rng_log2(ns ? (double)ns : 0.5);
    self->count++;
    return NULL;
}

/* The line through the points `at` and `at` + 1, evaluated at `bytes`. */
static uint64_t curve_line(const struct sim_curve *curve, uint32_t at, uint64_t bytes)
{
    double share = (ar_rng_log2((double)bytes) - curve->log_bytes[at]) /
                   (curve->log_bytes[at + 1] - curve->log_bytes[at]);
    double log_ns = curve->log_ns[at] + share * (curve->log_ns[at + 1] - curve->log_ns[at]);
    return (uint64_t)(ar_rng_exp2(log_ns < 60.0 ? log_ns : 60.0) + 0.5);
}

static uint64_t curve_ns(const struct sim_curve *curve, uint64_t bytes)
{
    if (curve->count == 0)
        return 0;
    if (bytes <= curve->bytes[0] || curve->count == 1)
        return curve->ns[0];
    uint32_t at = 0;
    while (at + 2 < curve->count && curve->bytes[at + 1] <= bytes)
        at++;
    if (bytes == curve->bytes[at])
        return curve->ns[at];
    if (bytes == curve->bytes[at + 1])
        return curve->ns[at + 1];
    return curve_line(curve, at, bytes);
}

/* The kind itself, or its substitute if the profile has no points of it. */
static enum sim_cost cost_known(const struct sim_profile *self, enum sim_cost cost)
{
    return self->costs[cost].count ? cost : stand_ins[cost];
}

uint64_t sim_profile_cost(const struct sim_profile *self, enum sim_cost cost, uint64_t bytes,
                          bool busy)
{
    cost = cost_known(self, cost);
    if (busy && self->busy_costs[cost].count)
        return curve_ns(&self->busy_costs[cost], bytes);
    uint64_t ns = curve_ns(&self->costs[cost], bytes);
    uint64_t percent = self->busy_percent[cost];
    if (!busy || percent <= 100)
        return ns;
    uint64_t page_bytes = self->page_bytes ? self->page_bytes : 1;
    uint64_t base_ns = bytes > page_bytes ? curve_ns(&self->costs[cost], page_bytes) : ns;
    AR_LOWER(base_ns, ns);
    uint64_t most_ns = SIM_PROFILE_NUMBERS - ns;
    uint64_t more = percent - 100;
    if (base_ns / 100 >= most_ns / more)
        return SIM_PROFILE_NUMBERS;
    return ns + base_ns / 100 * more + base_ns % 100 * more / 100;
}

uint64_t sim_profile_kernel_op(const struct sim_profile *self, enum sim_kernel_op op, uint64_t size)
{
    return curve_ns(&self->kernel_ops[op], size);
}

bool sim_profile_has_kernel_ops(const struct sim_profile *self)
{
    for (int op = 0; op < SIM_KERNEL_OP_COUNT; op++)
        if (self->kernel_ops[op].count)
            return true;
    return false;
}

enum sim_cost sim_cost_rested(enum sim_cost cost)
{
    switch (cost) {
    case SIM_COST_alloc_held:
        return SIM_COST_alloc;
    case SIM_COST_free_held:
        return SIM_COST_free;
    case SIM_COST_map_again:
        return SIM_COST_map;
    case SIM_COST_access_more:
        return SIM_COST_access;
    case SIM_COST_unmap_more:
        return SIM_COST_unmap;
    case SIM_COST_pool_grow:
    case SIM_COST_pool_first:
    case SIM_COST_pool_pending:
        return SIM_COST_pool_alloc;
    default:
        return cost;
    }
}

uint64_t sim_profile_rest(const struct sim_profile *self, enum sim_cost cost, uint64_t rest_ns)
{
    const struct sim_curve *curve = &self->rest_costs[sim_cost_rested(cost)];
    if (curve->count == 0 || rest_ns <= curve->bytes[0])
        return 0;
    uint32_t last = curve->count - 1;
    if (rest_ns >= curve->bytes[last])
        return curve->ns[last];
    uint32_t at = 0;
    while (curve->bytes[at + 1] <= rest_ns)
        at++;
    double share = (ar_rng_log2((double)rest_ns) - curve->log_bytes[at]) /
                   (curve->log_bytes[at + 1] - curve->log_bytes[at]);
    double from_ns = (double)curve->ns[at], to_ns = (double)curve->ns[at + 1];
    return (uint64_t)(from_ns + share * (to_ns - from_ns) + 0.5);
}

/* False: a cost would exceed the limit of profiles. */
static bool curve_scale(struct sim_curve *curve, double factor)
{
    struct sim_curve scaled = {.count = 0};
    for (uint32_t i = 0; i < curve->count; i++) {
        double ns = (double)curve->ns[i] * factor + 0.5;
        if (ns >= (double)SIM_PROFILE_NUMBERS)
            return false;
        (void)sim_curve_add(&scaled, curve->bytes[i], (uint64_t)ns);
    }
    *curve = scaled;
    return true;
}

enum ar_status sim_profile_at_host(struct sim_profile *self, uint64_t clock_ps, const char *where,
                                   struct ar_error *error)
{
    double factor = (double)clock_ps / (double)self->host_clock_ps;
    for (int kind = 0; kind < SIM_COST_COUNT; kind++) {
        if (kind == SIM_COST_pool_first || kind == SIM_COST_product_first ||
            kind == SIM_COST_product_new)
            continue;
        if (!curve_scale(&self->costs[kind], factor) ||
            !curve_scale(&self->busy_costs[kind], factor) ||
            !curve_scale(&self->rest_costs[kind], factor))
            return ar_invalid(error,
                              "%s: its costs are of a host with host_clock_ps %" PRIu64
                              ", and on one with %" PRIu64
                              " some would be above 2^60 ns; see that both are right",
                              where, self->host_clock_ps, clock_ps);
    }
    self->host_clock_ps = clock_ps;
    return AR_OK;
}

uint64_t sim_profile_least(const struct sim_profile *self, enum sim_cost cost)
{
    const struct sim_curve *curve = &self->costs[cost_known(self, cost)];
    uint64_t least_ns = curve->count ? curve->ns[0] : 0;
    for (uint32_t i = 1; i < curve->count; i++)
        AR_LOWER(least_ns, curve->ns[i]);
    return least_ns;
}

/* ---- text ----------------------------------------------------------------------------------- */

/* Reads and writes the text of a profile. sim/profiles/README.md describes the format: lines `key:
 * value`. Unknown keys are refused with their line, so that typing errors are found. */

#define PROFILE_FIRST_LINE "# allocrig-profile 1"
#define PROFILE_LINE_MOST  512

static const char *const cost_names[] = {
#define X(name, stand_in, text) #name,
    SIM_COSTS(X)
#undef X
};

static const char *const kernel_op_names[] = {
#define X(name, size) #name,
    SIM_KERNEL_OPS(X)
#undef X
};

/* Lines with a text of at most this size. */
static const struct {
    const char *key;
    size_t offset, room;
} text_fields[] = {
#define TEXT(field)                                                                                \
    {                                                                                              \
#field, offsetof(struct sim_profile, field), SIM_PROFILE_ROOM(field)                       \
    }
    TEXT(name),   TEXT(card),       TEXT(also),   TEXT(compute), TEXT(link),
    TEXT(driver), TEXT(hypervisor), TEXT(source), TEXT(memory),  TEXT(costs_of),
#undef TEXT
};

/* Lines with one number; some are written only if it is not 0. */
static const struct {
    const char *key;
    size_t offset;
    bool if_stated;
} number_fields[] = {
#define NUMBER(field, if_stated)                                                                   \
    {                                                                                              \
#field, offsetof(struct sim_profile, field), if_stated                                     \
    }
    NUMBER(total_bytes, false),    NUMBER(usable_bytes, false),
    NUMBER(context_bytes, false),  NUMBER(page_bytes, false),
    NUMBER(granule_bytes, false),  NUMBER(cleaning_bytes_per_us, false),
    NUMBER(first_address, false),  NUMBER(host_clock_ps, true),
    NUMBER(kernel_least_ns, true), NUMBER(processors, true),
    NUMBER(threads, true),
#undef NUMBER
};

/* ---- reading -------------------------------------------------------------------------------- */

static int name_index(const char *const *names, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (names[i][0] == name[0] && strcmp(names[i], name) == 0)
            return i;
    return -1;
}

static int cost_index(const char *name)
{
    return name_index(cost_names, SIM_COST_COUNT, name);
}

/* Reads the next word of a line as a number below 2^60. */
static bool read_number(char **rest, uint64_t *out)
{
    const char *word = strsep(rest, " ");
    return word && ar_count_parse(word, out, NULL) == AR_OK && *out < SIM_PROFILE_NUMBERS;
}

/* A line with one text or number. False: the key is none of these. */
static bool read_field(struct sim_profile *out, const char *key, char *rest, const char **wrong)
{
    for (size_t i = 0; i < AR_COUNT(text_fields); i++) {
        if (strcmp(text_fields[i].key, key) != 0)
            continue;
        if (strlen(rest) >= text_fields[i].room || !*rest)
            *wrong = text_fields[i].room == sizeof out->name ? "it has 1 to 63 letters"
                                                             : "it has 1 to 255 letters";
        else /* a later line replaces an earlier one */
            strncpy((char *)out + text_fields[i].offset, rest, text_fields[i].room);
        return true;
    }
    for (size_t i = 0; i < AR_COUNT(number_fields); i++) {
        uint64_t value;
        if (strcmp(number_fields[i].key, key) != 0)
            continue;
        if (!read_number(&rest, &value) || rest)
            *wrong = "it needs one whole number";
        else
            memcpy((char *)out + number_fields[i].offset, &value, sizeof value);
        return true;
    }
    return false;
}

/* `waits: KIND...` or `waits: none`. */
static const char *read_waits(struct sim_profile *out, char *rest)
{
    static const uint64_t can_wait =
        UINT64_C(1) << SIM_COST_alloc | UINT64_C(1) << SIM_COST_free |
        UINT64_C(1) << SIM_COST_reserve | UINT64_C(1) << SIM_COST_release |
        UINT64_C(1) << SIM_COST_create | UINT64_C(1) << SIM_COST_destroy |
        UINT64_C(1) << SIM_COST_map | UINT64_C(1) << SIM_COST_access |
        UINT64_C(1) << SIM_COST_unmap | UINT64_C(1) << SIM_COST_pool_alloc |
        UINT64_C(1) << SIM_COST_pool_free | UINT64_C(1) << SIM_COST_pinned_alloc |
        UINT64_C(1) << SIM_COST_pinned_free;
    out->waits = 0;
    if (strcmp(rest, "none") == 0)
        return NULL;
    for (const char *name = strsep(&rest, " "); name; name = strsep(&rest, " ")) {
        int kind = cost_index(name);
        if (kind < 0 || !(can_wait >> kind & 1))
            return "what waits is none, or some of alloc free reserve release create destroy map "
                   "access unmap pool_alloc pool_free pinned_alloc pinned_free";
        out->waits |= UINT64_C(1) << kind;
    }
    return NULL;
}

/* `key: KIND NUMBER`. */
static const char *read_per_kind(struct sim_profile *out, uint64_t *per_kind, int kind, char *rest)
{
    uint64_t value;
    if (!read_number(&rest, &value) || rest)
        return "it needs a kind of call and one whole number";
    if (per_kind == out->rest_again_percent && value > 100)
        return "what a call pays again of a rest is 0 to 100 percent";
    per_kind[kind] = value;
    return NULL;
}

/* `work: KIND SIZE NS`. The time is at least 1: 0 would mean the length of the event. */
static const char *read_work(struct sim_profile *out, char *rest)
{
    uint64_t size, ns;
    const char *name = strsep(&rest, " ");
    int kind = name_index(kernel_op_names, SIM_KERNEL_OP_COUNT, name);
    if (kind < 0)
        return "the kind of work is unknown";
    if (!read_number(&rest, &size) || !read_number(&rest, &ns) || rest || !ns)
        return "a work is KIND SIZE NANOSECONDS, which are at least 1";
    return sim_curve_add(&out->kernel_ops[kind], size, ns);
}

/* A line without a kind of call. */
static const char *read_one(struct sim_profile *out, const char *key, char *rest)
{
    const char *wrong = NULL;
    if (strcmp(key, "work") == 0)
        return read_work(out, rest);
    if (strcmp(key, "waits") == 0)
        return read_waits(out, rest);
    return read_field(out, key, rest, &wrong) ? wrong : "the key is unknown";
}

/* One `key: value` line. Returns the error, or NULL. */
static const char *read_pair(struct sim_profile *out, const char *key, char *rest)
{
    struct sim_curve *curves = strcmp(key, "cost") == 0        ? out->costs
                               : strcmp(key, "busy_cost") == 0 ? out->busy_costs
                               : strcmp(key, "rest_cost") == 0 ? out->rest_costs
                                                               : NULL;
    uint64_t *per_kind = curves                                    ? NULL
                         : strcmp(key, "busy_percent") == 0        ? out->busy_percent
                         : strcmp(key, "rest_again_percent") == 0  ? out->rest_again_percent
                         : strcmp(key, "cleaning_wait_bytes") == 0 ? out->cleaning_wait_bytes
                                                                   : NULL;
    if (!per_kind && !curves)
        return read_one(out, key, rest);
    const char *name = strsep(&rest, " ");
    int kind = cost_index(name);
    if (kind < 0)
        return "the kind of call is unknown";
    if ((curves == out->rest_costs || per_kind == out->rest_again_percent) &&
        sim_cost_rested((enum sim_cost)kind) != (enum sim_cost)kind)
        return "rests are of alloc, alloc_shared, free, free_shared and of whole calls, not of "
               "their forms";
    if (curves) {
        uint64_t bytes, ns;
        if (!read_number(&rest, &bytes) || !read_number(&rest, &ns) || rest)
            return curves == out->rest_costs ? "a cost of a rest is KIND NANOSECONDS NANOSECONDS"
                                             : "a cost is KIND BYTES NANOSECONDS";
        return sim_curve_add(&curves[kind], bytes, ns);
    }
    return read_per_kind(out, per_kind, kind, rest);
}

/* Reads one line, which it changes. Returns the error, or NULL. */
static const char *read_line(struct sim_profile *out, char *line)
{
    size_t length = strlen(line);
    while (length &&
           (line[length - 1] == '\n' || line[length - 1] == '\r' || line[length - 1] == ' '))
        line[--length] = '\0';
    if (line[0] == '#' || line[0] == '\0')
        return NULL;
    char *colon = strchr(line, ':');
    if (!colon || colon[1] != ' ')
        return "a line is \"key: value\"";
    *colon = '\0';
    return read_pair(out, line, colon + 2);
}

/* The host time of the program itself: the same on a busy card and after a rest. */
static bool is_of_program(enum sim_cost kind)
{
    return kind == SIM_COST_request || kind == SIM_COST_mark || kind == SIM_COST_record ||
           kind == SIM_COST_wait;
}

/* Its calls have no size. */
static bool is_of_one_size(enum sim_cost kind)
{
    return is_of_program(kind) || kind == SIM_COST_event || kind == SIM_COST_event_poll ||
           kind == SIM_COST_event_known || kind == SIM_COST_launch || kind == SIM_COST_pool_first ||
           kind == SIM_COST_product_first || kind == SIM_COST_product_new;
}

/* Lines have numbers below 2^60; costs that were computed may be more. */
static bool is_beyond(const struct sim_curve *curve)
{
    for (uint32_t i = 0; i < curve->count; i++)
        if (curve->bytes[i] >= SIM_PROFILE_NUMBERS || curve->ns[i] >= SIM_PROFILE_NUMBERS)
            return true;
    return false;
}

/* Lines of a kind that no call would use, or that lack others. */
static const char *kind_wrong(const struct sim_profile *self, enum sim_cost kind)
{
    const struct sim_curve *busy = &self->busy_costs[kind];
    uint64_t percent = self->busy_percent[kind];
    if (busy->count && !self->costs[kind].count)
        return "a kind that has busy_cost lines needs cost lines too";
    if (percent && !self->costs[kind].count)
        return "busy_percent needs cost lines of the kind";
    if (percent && percent < 100)
        return "busy_percent is at least 100";
    if (is_of_program(kind) && (percent || busy->count))
        return "this time is the program's own and the same on a busy card: it has no busy_cost "
               "and no busy_percent";
    if ((is_of_program(kind) || kind == SIM_COST_launch || kind == SIM_COST_product_first ||
         kind == SIM_COST_product_new) &&
        self->rest_costs[kind].count)
        return "this time is no driver call of the allocator, so it has no rest_cost";
    if (self->rest_again_percent[kind] && !self->rest_costs[kind].count)
        return "rest_again_percent needs rest_cost lines of the kind";
    if (is_of_one_size(kind) && (self->costs[kind].count > 1 || busy->count > 1))
        return "its calls have no size, so it has one line of each cost";
    if (self->cleaning_wait_bytes[kind] && kind != SIM_COST_alloc && kind != SIM_COST_create &&
        kind != SIM_COST_pool_grow)
        return "only alloc, create and pool_grow wait for cleaning (cleaning_wait_bytes)";
    return NULL;
}

enum ar_status sim_profile_check(const struct sim_profile *out, const char *where,
                                 struct ar_error *error)
{
    const char *wrong = NULL;
    uint64_t page_bytes = out->page_bytes;
    uint64_t granule_bytes = out->granule_bytes;
    if (!out->name[0])
        wrong = "it has no name";
    else if (!granule_bytes || (granule_bytes & (granule_bytes - 1)))
        wrong = "granule_bytes must be a power of two";
    else if (page_bytes && ((page_bytes & (page_bytes - 1)) || page_bytes < granule_bytes ||
                            page_bytes / granule_bytes > 4096))
        wrong = "page_bytes must be a power of two, 1 to 4096 granules";
    else if (page_bytes && out->total_bytes / page_bytes > SIM_PAGES_MOST)
        wrong = "page_bytes makes more than 2^26 pages of total_bytes, which no card has";
    else if (out->usable_bytes > out->total_bytes)
        wrong = "usable_bytes is more than total_bytes";
    else if (out->total_bytes && !out->usable_bytes)
        wrong = "it has no usable_bytes";
    else if (out->cleaning_bytes_per_us > UINT64_C(1) << 50)
        wrong = "cleaning_bytes_per_us is beyond 2^50";
    else if (out->first_address % (page_bytes ? page_bytes : granule_bytes))
        wrong = "first_address is not at the start of a page";
    for (size_t i = 0; !wrong && i < AR_COUNT(number_fields); i++) {
        uint64_t value;
        memcpy(&value, (const char *)out + number_fields[i].offset, sizeof value);
        if (value >= SIM_PROFILE_NUMBERS)
            wrong = "one of its sizes or times is 2^60 or more";
    }
    if (wrong)
        return ar_error_set(error, AR_FORMAT, "%s is not a usable profile: %s", where, wrong);
    for (int kind = 0; kind < SIM_COST_COUNT; kind++) {
        wrong = kind_wrong(out, (enum sim_cost)kind);
        if (!wrong && (is_beyond(&out->costs[kind]) || is_beyond(&out->busy_costs[kind]) ||
                       is_beyond(&out->rest_costs[kind])))
            wrong = "a size or cost is 2^60 or more";
        if (wrong)
            return ar_error_set(error, AR_FORMAT, "%s is not a usable profile: %s: %s", where,
                                cost_names[kind], wrong);
    }
    return AR_OK;
}

static enum ar_status line_wrong(const char *where, size_t number, const char *wrong,
                                 struct ar_error *error)
{
    return ar_error_set(error, AR_FORMAT, "%s, line %zu: %s", where, number, wrong);
}

static bool states_costs(const struct sim_profile *self)
{
    for (int kind = 0; kind < SIM_COST_COUNT; kind++)
        if (self->costs[kind].count || self->busy_costs[kind].count ||
            self->rest_costs[kind].count || self->busy_percent[kind] ||
            self->rest_again_percent[kind] || self->cleaning_wait_bytes[kind])
            return true;
    return sim_profile_has_kernel_ops(self);
}

/* Takes the costs of the profile that `costs_of` names; texts and the numbers that are stated stay
 * those of the card. */
static enum ar_status take_costs(struct sim_profile *out, const char *where, struct ar_error *error)
{
    struct sim_profile own = *out;
    const char *const *lines = sim_profile_builtin(own.costs_of);
    if (!own.costs_of[0])
        return AR_OK;
    if (states_costs(out))
        return ar_error_set(
            error, AR_FORMAT,
            "%s: it has costs of its own, and costs_of names those of %s; leave one of them out",
            where, own.costs_of);
    if (!lines)
        return ar_error_set(error, AR_FORMAT,
                            "%s: costs_of is \"%s\", which is no built-in profile; `allocrig list "
                            "devices sim` has their names",
                            where, own.costs_of);
    for (size_t i = 0; lines[i]; i++)
        if (strncmp(lines[i], "costs_of:", 9) == 0)
            return ar_error_set(error, AR_FORMAT,
                                "%s: costs_of is \"%s\", which has no costs of its own; name the "
                                "profile whose costs it has",
                                where, own.costs_of);
    enum ar_status status = sim_profile_read(lines, own.costs_of, out, error);
    for (size_t i = 0; i < AR_COUNT(text_fields); i++)
        memcpy((char *)out + text_fields[i].offset, (const char *)&own + text_fields[i].offset,
               text_fields[i].room);
    for (size_t i = 0; i < AR_COUNT(number_fields); i++) {
        uint64_t value;
        memcpy(&value, (const char *)&own + number_fields[i].offset, sizeof value);
        if (value)
            memcpy((char *)out + number_fields[i].offset, &value, sizeof value);
    }
    return status;
}

static enum ar_status complete(struct sim_profile *out, const char *where, struct ar_error *error)
{
    AR_TRY(take_costs(out, where, error));
    return sim_profile_check(out, where, error);
}

/* The default: a driver free waits. */
static void profile_begin(struct sim_profile *out)
{
    memset(out, 0, sizeof *out);
    out->waits = UINT64_C(1) << SIM_COST_free;
}

enum ar_status sim_profile_read(const char *const *lines, const char *where,
                                struct sim_profile *out, struct ar_error *error)
{
    profile_begin(out);
    for (size_t i = 0; lines[i]; i++) {
        char line[PROFILE_LINE_MOST];
        snprintf(line, sizeof line, "%s", lines[i]);
        const char *wrong = i == 0 && strcmp(line, PROFILE_FIRST_LINE) != 0
                                ? "a profile starts with \"" PROFILE_FIRST_LINE "\""
                                : read_line(out, line);
        if (wrong)
            return line_wrong(where, i + 1, wrong, error);
    }
    return complete(out, where, error);
}

enum ar_status sim_profile_load(const char *path, struct sim_profile *out, struct ar_error *error)
{
    FILE *file = fopen(path, "r");
    if (!file)
        return ar_error_set(error, AR_IO, "the profile %s cannot be read: %s", path,
                            strerror(errno));
    profile_begin(out);
    char line[PROFILE_LINE_MOST];
    const char *wrong = NULL;
    size_t number = 0;
    while (!wrong && fgets(line, sizeof line, file)) {
        number++;
        if (!strchr(line, '\n') && !feof(file))
            wrong = "the line is too long";
        else if (number == 1 &&
                 strncmp(line, PROFILE_FIRST_LINE "\n", sizeof PROFILE_FIRST_LINE) != 0)
            wrong = "a profile starts with \"" PROFILE_FIRST_LINE "\"";
        else
            wrong = read_line(out, line);
    }
    bool unreadable = ferror(file) != 0;
    int cause = errno;
    fclose(file);
    if (unreadable)
        return ar_error_set(error, AR_IO, "the profile %s cannot be read: %s", path,
                            strerror(cause));
    if (number == 0)
        return ar_error_set(error, AR_FORMAT, "the profile %s is empty", path);
    return wrong ? line_wrong(path, number, wrong, error) : complete(out, path, error);
}

/* ---- writing -------------------------------------------------------------------------------- */

static void write_waits(const struct sim_profile *self, FILE *file)
{
    fputs("waits:", file);
    for (int kind = 0; kind < SIM_COST_COUNT; kind++)
        if (self->waits >> kind & 1)
            fprintf(file, " %s", cost_names[kind]);
    fputs(self->waits ? "\n" : " none\n", file);
}

static void write_per_kind(const char *key, const uint64_t *values, FILE *file)
{
    for (int kind = 0; kind < SIM_COST_COUNT; kind++)
        if (values[kind])
            fprintf(file, "%s: %s %" PRIu64 "\n", key, cost_names[kind], values[kind]);
}

static void write_curve(const char *key, const char *name, const struct sim_curve *curve,
                        FILE *file)
{
    for (uint32_t i = 0; i < curve->count; i++)
        fprintf(file, "%s: %s %" PRIu64 " %" PRIu64 "\n", key, name, curve->bytes[i], curve->ns[i]);
}

void sim_profile_write(const struct sim_profile *self, FILE *file)
{
    fputs(PROFILE_FIRST_LINE "\n", file);
    for (size_t i = 0; i < AR_COUNT(text_fields); i++) {
        const char *text = (const char *)self + text_fields[i].offset;
        if (*text)
            fprintf(file, "%s: %s\n", text_fields[i].key, text);
    }
    for (size_t i = 0; i < AR_COUNT(number_fields); i++) {
        uint64_t value;
        memcpy(&value, (const char *)self + number_fields[i].offset, sizeof value);
        if (value || !number_fields[i].if_stated)
            fprintf(file, "%s: %" PRIu64 "\n", number_fields[i].key, value);
    }
    if (self->costs_of[0]) /* it is read with them */
        return;
    write_per_kind("cleaning_wait_bytes", self->cleaning_wait_bytes, file);
    write_waits(self, file);
    write_per_kind("busy_percent", self->busy_percent, file);
    write_per_kind("rest_again_percent", self->rest_again_percent, file);
    for (int kind = 0; kind < SIM_COST_COUNT; kind++) {
        write_curve("cost", cost_names[kind], &self->costs[kind], file);
        write_curve("busy_cost", cost_names[kind], &self->busy_costs[kind], file);
        write_curve("rest_cost", cost_names[kind], &self->rest_costs[kind], file);
    }
    for (int kind = 0; kind < SIM_KERNEL_OP_COUNT; kind++)
        write_curve("work", kernel_op_names[kind], &self->kernel_ops[kind], file);
}
