#include "sim/sim_device/profile.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocators/base/rng.h"
#include "allocators/base/size.h"
#include "sim/profiles/builtin.h"

#define PROFILE_FIRST_LINE "# allocrig-profile 1"
#define PROFILE_LINE_MOST  512
#define PROFILE_BYTES_MOST (UINT64_C(1) << 60)

static const char *const cost_names[] = {
#define X(name, text) #name,
    SIM_COSTS(X)
#undef X
};

/* Lines that hold one number. */
static const struct {
    const char *key;
    size_t offset;
} profile_fields[] = {
    {"total_bytes", offsetof(struct sim_profile, total_bytes)},
    {"usable_bytes", offsetof(struct sim_profile, usable_bytes)},
    {"page_bytes", offsetof(struct sim_profile, page_bytes)},
    {"granule_bytes", offsetof(struct sim_profile, granule_bytes)},
    {"first_address", offsetof(struct sim_profile, first_address)},
    {"cleaning_bytes_per_us", offsetof(struct sim_profile, cleaning_bytes_per_us)},
};

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

static int cost_index(const char *name)
{
    for (int i = 0; i < SIM_COST_COUNT; i++)
        if (strcmp(cost_names[i], name) == 0)
            return i;
    return -1;
}

/* Reads the next word of a line as a number below 2^60. */
static bool read_number(char **rest, uint64_t *out)
{
    const char *word = strsep(rest, " ");
    return word && count_parse(word, out, NULL) == STATUS_OK && *out < PROFILE_BYTES_MOST;
}

/* `cost: KIND BYTES NANOSECONDS`. Returns what is wrong, or NULL. */
static const char *read_cost(struct sim_profile *out, int kind, char *rest)
{
    uint64_t bytes, ns;
    if (!read_number(&rest, &bytes) || !read_number(&rest, &ns) || rest)
        return "a cost is KIND BYTES NANOSECONDS";
    struct sim_curve *curve = &out->costs[kind];
    if (bytes == 0)
        return "a cost needs a size above 0";
    if (curve->count && bytes <= curve->bytes[curve->count - 1])
        return "the sizes of a kind must rise";
    if (curve->count == SIM_COST_POINTS)
        return "a kind has at most 32 sizes";
    curve->bytes[curve->count] = bytes;
    curve->ns[curve->count] = ns;
    curve->log_bytes[curve->count] = rng_log2((double)bytes);
    curve->log_ns[curve->count] = rng_log2(ns ? (double)ns : 0.5);
    curve->count++;
    return NULL;
}

/* One `key: value` line. Returns what is wrong, or NULL. */
static const char *read_pair(struct sim_profile *out, const char *key, char *rest)
{
    if (strcmp(key, "card") == 0 || strcmp(key, "source") == 0)
        return NULL; /* for readers */
    if (strcmp(key, "name") == 0) {
        if (strlen(rest) >= sizeof out->name || !*rest)
            return "a name has 1 to 63 letters";
        memcpy(out->name, rest, strlen(rest) + 1);
        return NULL;
    }
    for (size_t i = 0; i < sizeof profile_fields / sizeof profile_fields[0]; i++) {
        if (strcmp(profile_fields[i].key, key) == 0) {
            uint64_t value;
            if (!read_number(&rest, &value) || rest)
                return "it needs one whole number";
            memcpy((char *)out + profile_fields[i].offset, &value, sizeof value);
            return NULL;
        }
    }
    uint64_t *per_kind = strcmp(key, "busy_percent") == 0          ? out->busy_percent
                         : strcmp(key, "cleaning_wait_bytes") == 0 ? out->cleaning_wait_bytes
                                                                   : NULL;
    if (!per_kind && strcmp(key, "cost") != 0)
        return "the key is unknown";
    const char *name = strsep(&rest, " ");
    int kind = cost_index(name);
    if (kind < 0)
        return "the kind of call is unknown";
    if (!per_kind)
        return read_cost(out, kind, rest);
    if (!read_number(&rest, &per_kind[kind]) || rest)
        return "it needs a kind of call and one whole number";
    return NULL;
}

/* Reads one line, which it takes apart. Returns what is wrong, or NULL. */
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

/* What the whole of it must fulfil. */
static enum status profile_check(const struct sim_profile *out, const char *where,
                                 struct error *error)
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
    else if (out->usable_bytes > out->total_bytes)
        wrong = "usable_bytes is more than total_bytes";
    else if (out->total_bytes && !out->usable_bytes)
        wrong = "it has no usable_bytes";
    else if (out->cleaning_bytes_per_us > UINT64_C(1) << 50)
        wrong = "cleaning_bytes_per_us is beyond 2^50";
    else if (out->first_address % (page_bytes ? page_bytes : granule_bytes))
        wrong = "first_address is not at the start of a page";
    if (!wrong)
        return STATUS_OK;
    return error_set(error, STATUS_FORMAT, "%s is not a usable profile: %s", where, wrong);
}

static enum status line_wrong(const char *where, size_t number, const char *wrong,
                              struct error *error)
{
    return error_set(error, STATUS_FORMAT, "%s, line %zu: %s", where, number, wrong);
}

enum status sim_profile_read(const char *const *lines, const char *where, struct sim_profile *out,
                             struct error *error)
{
    memset(out, 0, sizeof *out);
    for (size_t i = 0; lines[i]; i++) {
        char line[PROFILE_LINE_MOST];
        snprintf(line, sizeof line, "%s", lines[i]);
        const char *wrong = i == 0 && strcmp(line, PROFILE_FIRST_LINE) != 0
                                ? "a profile starts with \"" PROFILE_FIRST_LINE "\""
                                : read_line(out, line);
        if (wrong)
            return line_wrong(where, i + 1, wrong, error);
    }
    return profile_check(out, where, error);
}

enum status sim_profile_load(const char *path, struct sim_profile *out, struct error *error)
{
    FILE *file = fopen(path, "r");
    if (!file)
        return error_set(error, STATUS_IO, "the profile %s cannot be read: %s", path,
                         strerror(errno));
    memset(out, 0, sizeof *out);
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
        return error_set(error, STATUS_IO, "the profile %s cannot be read: %s", path,
                         strerror(cause));
    if (number == 0)
        return error_set(error, STATUS_FORMAT, "the profile %s is empty", path);
    return wrong ? line_wrong(path, number, wrong, error) : profile_check(out, path, error);
}

/* The line through the points `at` and `at` + 1, at `bytes`. */
static uint64_t curve_line(const struct sim_curve *curve, uint32_t at, uint64_t bytes)
{
    double share = (rng_log2((double)bytes) - curve->log_bytes[at]) /
                   (curve->log_bytes[at + 1] - curve->log_bytes[at]);
    double log_ns = curve->log_ns[at] + share * (curve->log_ns[at + 1] - curve->log_ns[at]);
    return (uint64_t)(rng_exp2(log_ns < 62.0 ? log_ns : 62.0) + 0.5);
}

static uint64_t curve_ns(struct sim_curve *curve, uint64_t bytes)
{
    if (curve->count == 0)
        return 0;
    if (bytes <= curve->bytes[0] || curve->count == 1)
        return curve->ns[0];
    if (curve->last_bytes == bytes)
        return curve->last_ns;
    uint32_t at = 0;
    while (at + 2 < curve->count && curve->bytes[at + 1] <= bytes)
        at++;
    curve->last_bytes = bytes;
    if (bytes == curve->bytes[at])
        curve->last_ns = curve->ns[at];
    else if (bytes == curve->bytes[at + 1])
        curve->last_ns = curve->ns[at + 1];
    else
        curve->last_ns = curve_line(curve, at, bytes);
    return curve->last_ns;
}

uint64_t sim_profile_cost(struct sim_profile *self, enum sim_cost cost, uint64_t bytes, bool busy)
{
    uint64_t ns = curve_ns(&self->costs[cost], bytes);
    uint64_t percent = self->busy_percent[cost];
    if (!busy || percent <= 100)
        return ns;
    uint64_t page_bytes = self->page_bytes ? self->page_bytes : 1;
    uint64_t base_ns = bytes > page_bytes ? curve_ns(&self->costs[cost], page_bytes) : ns;
    return ns + (percent - 100) * (base_ns < ns ? base_ns : ns) / 100;
}

uint64_t sim_profile_least(const struct sim_profile *self, enum sim_cost cost)
{
    const struct sim_curve *curve = &self->costs[cost];
    uint64_t least_ns = curve->count ? curve->ns[0] : 0;
    for (uint32_t i = 1; i < curve->count; i++)
        if (curve->ns[i] < least_ns)
            least_ns = curve->ns[i];
    return least_ns;
}
