/* The rules that combine several calibrations into one profile:
 *
 * 1. They have the same card name, pages, granule, first address and waits, and the same capacity
 *    within 1 % (the drivers' own share varies).
 * 2. Each constant is the median of the calibrations that state it; of two middle ones the mean,
 *    rounded to the nearest, halves upward. A constant of 0 counts as not stated.
 * 3. A row of `cost`, `busy_cost` or `work` is a constant by its kind and size.
 * 4. Rows of `rest_cost` are matched by their index within the kind, because the measured rests
 *    differ a little each time; both columns are medians. A calibration that lacks a row cannot be
 *    matched: those with the most rows are used.
 *
 * 5. If all calibrations state the reading time of their host's clock, they are first scaled to one
 *    clock: driver calls of all kinds and sizes are slower in proportion. Kernel ops depend on the
 *    card only and are not scaled.
 *
 * Rows stay in rising order: by rule 3 each size occurs once, and by rule 4 every calibration has a
 * longer rest at the next index, so the medians rise too. Likewise usable bytes stay below the
 * total.
 *
 * The mean is not used, because one slow machine could move it arbitrarily. */
#include "bench/calibrate/calibrate.h"
#include "bench/report/sentence.h"

#include "allocators/base/array.h"
#include "workloads/io/fields.h"

struct merge {
    const struct calibration *from;
    size_t count;
    uint64_t *values; /* room for two of each calibration */
    struct ar_error *error;
};

/* Of at least one value. Sorts the values. */
static uint64_t median(uint64_t *values, size_t count)
{
    ar_array_sort(values, count);
    uint64_t low = values[(count - 1) / 2], high = values[count / 2];
    return low + (high - low + 1) / 2;
}

/* ---- constants that are one number ---------------------------------------------------------- */

static uint64_t number_at(const struct sim_profile *profile, size_t offset)
{
    uint64_t value;
    memcpy(&value, (const char *)profile + offset, sizeof value);
    return value;
}

static void merge_number(struct merge *self, size_t offset, struct sim_profile *out)
{
    size_t stated = 0;
    for (size_t i = 0; i < self->count; i++) {
        uint64_t value = number_at(&self->from[i].profile, offset);
        if (value)
            self->values[stated++] = value;
    }
    uint64_t value = stated ? median(self->values, stated) : 0;
    memcpy((char *)out + offset, &value, sizeof value);
}

static void merge_numbers(struct merge *self, struct sim_profile *out)
{
    static const size_t offsets[] = {
        offsetof(struct sim_profile, total_bytes),
        offsetof(struct sim_profile, usable_bytes),
        offsetof(struct sim_profile, context_bytes),
        offsetof(struct sim_profile, cleaning_bytes_per_us),
        offsetof(struct sim_profile, kernel_least_ns),
    };
    for (size_t i = 0; i < AR_COUNT(offsets); i++)
        merge_number(self, offsets[i], out);
    for (size_t kind = 0; kind < SIM_COST_COUNT; kind++) {
        size_t further = kind * sizeof(uint64_t);
        merge_number(self, offsetof(struct sim_profile, cleaning_wait_bytes) + further, out);
        merge_number(self, offsetof(struct sim_profile, busy_percent) + further, out);
        merge_number(self, offsetof(struct sim_profile, rest_again_percent) + further, out);
    }
}

/* ---- tables --------------------------------------------------------------------------------- */

/* The costs of the least size above `after` that any calibration has in the curve at that offset,
 * into `values`. Returns how many have it; 0: there is none. */
static size_t next_size(struct merge *self, size_t offset, uint64_t after, uint64_t *bytes)
{
    size_t found = 0;
    for (size_t i = 0; i < self->count; i++) {
        const struct sim_curve *curve =
            (const struct sim_curve *)((const char *)&self->from[i].profile + offset);
        uint32_t at = 0;
        while (at < curve->count && curve->bytes[at] <= after)
            at++;
        if (at == curve->count || (found && curve->bytes[at] > *bytes))
            continue;
        if (!found || curve->bytes[at] < *bytes)
            found = 0;
        *bytes = curve->bytes[at];
        self->values[found++] = curve->ns[at];
    }
    return found;
}

static enum ar_status merge_curve(struct merge *self, size_t offset, struct sim_profile *out)
{
    struct sim_curve *curve = (struct sim_curve *)((char *)out + offset);
    uint64_t bytes = 0;
    size_t found;
    while ((found = next_size(self, offset, bytes, &bytes)) > 0) {
        const char *wrong = sim_curve_add(curve, bytes, median(self->values, found));
        if (wrong)
            return ar_invalid(self->error,
                              "the calibrations have too many different sizes together: %s; take "
                              "some that were measured at the same sizes",
                              wrong);
    }
    return AR_OK;
}

/* So many curves from an offset on. */
static enum ar_status merge_curves(struct merge *self, size_t offset, int count,
                                   struct sim_profile *out)
{
    for (int i = 0; i < count; i++)
        AR_TRY(merge_curve(self, offset + (size_t)i * sizeof(struct sim_curve), out));
    return AR_OK;
}

static void merge_rests(struct merge *self, int kind, struct median *out)
{
    uint32_t most = 0;
    for (size_t i = 0; i < self->count; i++) {
        uint32_t rows = self->from[i].profile.rest_costs[kind].count;
        out->rests_stated[kind] += rows > 0;
        AR_RAISE(most, rows);
    }
    for (uint32_t at = 0; at < most; at++) {
        uint64_t *rests_ns = self->values, *added_ns = self->values + self->count;
        size_t found = 0;
        for (size_t i = 0; i < self->count; i++) {
            const struct sim_curve *curve = &self->from[i].profile.rest_costs[kind];
            if (curve->count < most)
                continue;
            rests_ns[found] = curve->bytes[at];
            added_ns[found++] = curve->ns[at];
        }
        out->rests_taken[kind] = found;
        uint64_t rest_ns = median(rests_ns, found);
        /* Cannot fail: the rests rise and are no more than in one calibration. */
        (void)sim_curve_add(&out->profile.rest_costs[kind], rest_ns, median(added_ns, found));
    }
}

/* ---- values that must agree ------------------------------------------------------------------ */

static enum ar_status cards_differ(const struct calibration *a, const struct calibration *b,
                                   struct ar_error *error)
{
    static const char none[] = "no card that it names";
    return ar_invalid(error,
                      "%s is of %s and %s of %s; a median is of calibrations of one kind of card",
                      a->path, a->profile.card[0] ? a->profile.card : none, b->path,
                      b->profile.card[0] ? b->profile.card : none);
}

static enum ar_status check_number(const struct calibration *a, const struct calibration *b,
                                   const char *key, size_t offset, struct ar_error *error)
{
    uint64_t left = number_at(&a->profile, offset), right = number_at(&b->profile, offset);
    if (left == right)
        return AR_OK;
    return ar_invalid(error,
                      "%s is %" PRIu64 " in %s and %" PRIu64 " in %s; a median is of calibrations "
                      "that agree in it",
                      key, left, a->path, right, b->path);
}

static bool capacity_differs(uint64_t a, uint64_t b)
{
    uint64_t least = a < b ? a : b, most = a < b ? b : a;
    return most - least > most / 100;
}

static enum ar_status check_pair(const struct calibration *a, const struct calibration *b,
                                 struct ar_error *error)
{
    if (strcmp(a->profile.card, b->profile.card) != 0)
        return cards_differ(a, b, error);
    AR_TRY(check_number(a, b, "page_bytes", offsetof(struct sim_profile, page_bytes), error));
    AR_TRY(check_number(a, b, "granule_bytes", offsetof(struct sim_profile, granule_bytes), error));
    AR_TRY(check_number(a, b, "first_address", offsetof(struct sim_profile, first_address), error));
    if (capacity_differs(a->profile.total_bytes, b->profile.total_bytes))
        return check_number(a, b, "total_bytes", offsetof(struct sim_profile, total_bytes), error);
    if (a->profile.waits != b->profile.waits)
        return ar_invalid(error,
                          "%s and %s do not say that the same calls wait (their lines \"waits:\"); "
                          "a median is of calibrations that agree in it",
                          a->path, b->path);
    return AR_OK;
}

/* ---- the header ----------------------------------------------------------------------------- */

/* Appends to a list of texts of at most 256 bytes. Dots mark one that does not fit. */
static void row_add(char *row, bool first, const char *text)
{
    static const char more[] = ", ...";
    const size_t room = SIM_PROFILE_ROOM(source);
    size_t used = strlen(row);
    if (first)
        text_add(row, room, "%s", text);
    else if (used + 2 + strlen(text) + sizeof more <= room)
        text_add(row, room, ", %s", text);
    else if (used + sizeof more <= room && strcmp(row + used - strlen(more), more) != 0)
        memcpy(row + used, more, sizeof more);
}

/* Every different text that the calibrations have at the offset. */
static void row_different(const struct merge *self, size_t offset, char *row)
{
    row[0] = '\0';
    for (size_t i = 0; i < self->count; i++) {
        const char *text = (const char *)&self->from[i].profile + offset;
        bool seen = !*text;
        for (size_t k = 0; !seen && k < i; k++)
            seen = strcmp((const char *)&self->from[k].profile + offset, text) == 0;
        if (!seen)
            row_add(row, !*row, text);
    }
}

/* Whether the text begins like the pattern, in which 9 matches a digit and T a T or a space. */
static bool looks_like(const char *text, const char *pattern)
{
    for (; *pattern; pattern++, text++) {
        bool fits = *pattern == '9'   ? *text >= '0' && *text <= '9'
                    : *pattern == 'T' ? *text == 'T' || *text == ' '
                                      : *text == *pattern;
        if (!fits)
            return false;
    }
    return true;
}

/* The first date of a source, with the minute if given. */
static void date_of(const char *source, char date[20])
{
    snprintf(date, 20, "no date");
    for (; *source; source++) {
        if (!looks_like(source, "9999-99-99"))
            continue;
        bool minute = looks_like(source, "9999-99-99T99:99");
        snprintf(date, 20, "%.10s%s%.5s", source, minute ? " " : "", minute ? source + 11 : "");
        return;
    }
}

/* The file's name without folders, in characters that a line can contain. */
static void file_of(const char *path, char *name, size_t room)
{
    snprintf(name, room, "%s", field_file_name(path));
    for (char *at = name; *at; at++)
        if ((unsigned char)*at < ' ' || *at == 127)
            *at = '?';
}

static void describe(const struct merge *self, const char *name, const char *version,
                     struct sim_profile *out)
{
    snprintf(out->name, sizeof out->name, "%s", name);
    memcpy(out->card, self->from[0].profile.card, sizeof out->card);
    memcpy(out->also, self->from[0].profile.also, sizeof out->also);
    memcpy(out->compute, self->from[0].profile.compute, sizeof out->compute);
    memcpy(out->link, self->from[0].profile.link, sizeof out->link);
    out->processors = self->from[0].profile.processors;
    out->threads = self->from[0].profile.threads;
    row_different(self, offsetof(struct sim_profile, driver), out->driver);
    row_different(self, offsetof(struct sim_profile, hypervisor), out->hypervisor);
    snprintf(out->source, sizeof out->source,
             "allocrig %.32s calibrate: median of %zu calibrations: ", version, self->count);
    for (size_t i = 0; i < self->count; i++) {
        char file[128], date[20], text[160];
        file_of(self->from[i].path, file, sizeof file);
        date_of(self->from[i].profile.source, date);
        snprintf(text, sizeof text, "%s (%s)", file, date);
        row_add(out->source, i == 0, text);
    }
}

/* ---- the whole ------------------------------------------------------------------------------ */

enum ar_status median_load(const char *const *paths, size_t count, struct calibration **out,
                           struct ar_error *error)
{
    *out = calloc(count ? count : 1, sizeof **out);
    AR_TRY_MEMORY(*out, error, "%zu profiles", count);
    for (size_t i = 0; i < count; i++) {
        (*out)[i].path = paths[i];
        AR_TRY(sim_profile_load(paths[i], &(*out)[i].profile, error));
        const char *costs_of = (*out)[i].profile.costs_of;
        if (costs_of[0])
            return ar_invalid(
                error, "%s has the costs of %s, which is no measurement of its card; leave it out",
                paths[i], costs_of);
    }
    return AR_OK;
}

enum ar_status median_one_host(struct calibration *calibrations, size_t count, uint64_t clock_ps,
                               struct ar_error *error)
{
    AR_FREED uint64_t *clocks = calloc(count ? count : 1, sizeof *clocks);
    const char *without = NULL;
    AR_TRY_MEMORY(clocks, error, "a median of %zu", count);
    for (size_t i = 0; i < count; i++) {
        clocks[i] = calibrations[i].profile.host_clock_ps;
        without = clocks[i] ? without : calibrations[i].path;
    }
    if (without && clock_ps)
        return ar_invalid(error,
                          "%s has no line host_clock_ps, so it cannot be brought to another "
                          "host; leave it out, or the option --host-clock",
                          without);
    if (!without && !clock_ps)
        clock_ps = median(clocks, count);
    for (size_t i = 0; i < count && !without; i++)
        AR_TRY(
            sim_profile_at_host(&calibrations[i].profile, clock_ps, calibrations[i].path, error));
    return AR_OK;
}

/* The common value; empty if they differ. */
static uint64_t clock_of_all(const struct merge *self)
{
    uint64_t clock_ps = self->from[0].profile.host_clock_ps;
    for (size_t i = 1; i < self->count; i++)
        if (self->from[i].profile.host_clock_ps != clock_ps)
            return 0;
    return clock_ps;
}

enum ar_status median_of(const struct calibration *calibrations, size_t count, const char *name,
                         const char *version, struct median *out, struct ar_error *error)
{
    memset(out, 0, sizeof *out);
    if (count < 2)
        return ar_invalid(error, "a median is of two or more calibrations, and %s named",
                          count ? "one is" : "none is");
    struct merge self = {.from = calibrations, .count = count, .error = error};
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < i; k++) /* every pair: one between two others may be near to both */
            AR_TRY(check_pair(&calibrations[k], &calibrations[i], error));
    self.values = calloc(count, 2 * sizeof *self.values);
    AR_TRY_MEMORY(self.values, error, "a median of %zu", count);
    const struct sim_profile *first = &calibrations[0].profile;
    out->profile.page_bytes = first->page_bytes;
    out->profile.granule_bytes = first->granule_bytes;
    out->profile.first_address = first->first_address;
    out->profile.waits = first->waits;
    out->profile.host_clock_ps = clock_of_all(&self);
    describe(&self, name, version, &out->profile);
    merge_numbers(&self, &out->profile);
    for (int kind = 0; kind < SIM_COST_COUNT; kind++)
        merge_rests(&self, kind, out);
    struct sim_profile *profile = &out->profile;
    enum ar_status status =
        merge_curves(&self, offsetof(struct sim_profile, costs), SIM_COST_COUNT, profile);
    AR_THEN(status,
            merge_curves(&self, offsetof(struct sim_profile, busy_costs), SIM_COST_COUNT, profile));
    AR_THEN(status, merge_curves(&self, offsetof(struct sim_profile, kernel_ops),
                                 SIM_KERNEL_OP_COUNT, profile));
    free(self.values);
    return status;
}

/* Comments: the source of each calibration, and those whose rests could not be matched. */
static void write_origins(const struct median *self, const struct calibration *calibrations,
                          size_t count, FILE *stream)
{
    static const char *const names[] = {
#define X(name, stand_in, text) #name,
        SIM_COSTS(X)
#undef X
    };
    fprintf(stream, "# The median of %zu calibrations (bench/calibrate/README.md):\n", count);
    for (size_t i = 0; i < count; i++) {
        char file[128];
        file_of(calibrations[i].path, file, sizeof file);
        const char *source = calibrations[i].profile.source;
        fprintf(stream, "#   %s: %s\n", file, *source ? source : "says no source");
    }
    if (!self->profile.host_clock_ps)
        fputs("# Not brought to one host: not all of them state theirs (host_clock_ps)\n", stream);
    for (int kind = 0; kind < SIM_COST_COUNT; kind++)
        if (self->rests_taken[kind] < self->rests_stated[kind])
            fprintf(stream,
                    "# rest_cost of %s is of %zu of the %zu that state it: the others have fewer "
                    "rows\n",
                    names[kind], self->rests_taken[kind], self->rests_stated[kind]);
}

enum ar_status median_write(const struct median *self, const struct calibration *calibrations,
                            size_t count, FILE *stream, struct ar_error *error)
{
    char *text = NULL;
    size_t length = 0;
    AR_TRY(sim_profile_check(&self->profile, "the median", error));
    FILE *memory = open_memstream(&text, &length);
    if (memory)
        sim_profile_write(&self->profile, memory);
    if (!text_end(memory, &text))
        return ar_error_set(error, AR_HOST_MEMORY, "no memory to write the profile");
    const char *rest = strchr(text, '\n') + 1; /* the first line names the format */
    fwrite(text, 1, (size_t)(rest - text), stream);
    write_origins(self, calibrations, count, stream);
    fputs(rest, stream);
    free(text);
    return AR_OK;
}
