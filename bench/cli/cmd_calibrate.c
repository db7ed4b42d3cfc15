/* `calibrate`: measures the cost of driver calls on a card and writes a profile for the simulated
 * device, or combines several profiles into their median. */
#include <ctype.h>

#include "bench/calibrate/calibrate.h"
#include "bench/cli/cli.h"
#include "bench/machine/environment.h"
#include "bench/report/output_file.h"
#include "bench/report/result_writers.h"
#include "bench/suite/progress.h"
#include "workloads/io/fields.h"

struct arguments {
    const char *path, *device, *name;
    bool cold, median;
    double host_clock_ns;      /* 0: not given. Profiles have it in picoseconds */
    struct cli_words profiles; /* with --median */
};

static const struct cli_option options[] = {
    {CLI_HEADING("Options:")},
    {'o', "output", "FILE", "the profile to write; - is standard output", CLI_FILE(path)},
    {'d', "device", "DEVICE", "the device to measure; default: cuda", CLI_TEXT(device)},
    {0, "name", "NAME", "name of the profile; default: the file name without ending",
     CLI_TEXT(name)},
    {0, "cold", NULL, "clear the caches of the host before each call", CLI_FLAG(cold)},
    {0, "median", NULL, "measure nothing; write the median of the PROFILEs", CLI_FLAG(median)},
    {0, "host-clock", "NS",
     "with --median: for a host that reads its clock in NS; default: the median of the PROFILEs",
     CLI_NUMBER(host_clock_ns, 1e-3, 1e6)},
    {0},
};

static const struct cli_page page = {
    .arguments = "-o FILE [-d DEVICE]\n--median PROFILE PROFILE.. -o FILE",
    .text =
        "Measures the cost of the driver calls of this card, idle and busy, and which calls\n"
        "wait, and writes a profile for `-d sim:profile=FILE`. It takes less than two minutes;\n"
        "no other program should use the card meanwhile. Given a simulated device, it writes the\n"
        "profile of that device. With --median it needs no card: it combines profiles that were\n"
        "measured on several machines with one kind of card, so that the result does not depend\n"
        "on one host.",
    .options = options,
    .argument = {.value = "profile", CLI_WORDS(profiles, CLI_WORDS_MOST)},
};

static enum ar_status check_arguments(const struct arguments *self, struct ar_error *error)
{
    if (!self->median && self->profiles.count)
        return ar_invalid(error,
                          "calibrate: \"%s\" belongs to no option; the output goes after -o, and "
                          "profiles need --median",
                          self->profiles.at[0]);
    if (self->median && (self->device || self->cold))
        return ar_invalid(
            error,
            "calibrate: --median measures nothing, so --%s has no effect; leave one of them out",
            self->device ? "device" : "cold");
    if (self->host_clock_ns > 0 && !self->median)
        return ar_invalid(
            error,
            "calibrate: --host-clock needs --median; a measurement uses the clock of its host");
    if (self->median && self->profiles.count < 2)
        return ar_invalid(error, "calibrate: a median needs two or more profiles; write calibrate "
                                 "--median PROFILE PROFILE.. -o FILE");
    if (!self->path)
        return ar_invalid(error, "calibrate: no output file is given; write calibrate%s -o FILE",
                          self->median ? " --median PROFILE PROFILE.." : "");
    return AR_OK;
}

/* The given name, or the name of the file without folder and ending. */
static enum ar_status name_profile(const struct arguments *self, char *name, size_t name_bytes,
                                   struct ar_error *error)
{
    const char *from = self->name ? self->name : field_file_name(self->path);
    size_t length = strlen(from);
    const char *ending = strrchr(from, '.');
    if (!self->name && strcmp(from, "-") == 0)
        from = "card", length = 4;
    else if (!self->name && ending && ending != from)
        length = (size_t)(ending - from);
    if (length == 0 || length >= name_bytes)
        return ar_invalid(
            error, "calibrate: the name of a profile has 1 to 63 characters; give it with --name");
    for (size_t i = 0; i < length; i++)
        if (!isgraph((unsigned char)from[i]))
            return ar_invalid(error,
                              "calibrate: \"%.*s\" is not a valid name for a profile: use letters, "
                              "digits and punctuation only; give one with --name",
                              (int)length, from);
    memcpy(name, from, length);
    name[length] = '\0';
    return AR_OK;
}

static void on_step(void *argument, const char *label)
{
    progress_step(argument, label);
}

static enum ar_status measure(struct ar_device *device, bool cold, struct environment *environment,
                              struct sim_profile *out, struct ar_error *error)
{
    struct progress progress;
    const struct calibrate_options how = {.cold = cold, .step = on_step, .argument = &progress};
    char name[sizeof out->name];
    memcpy(name, out->name, sizeof name);
    progress_begin(&progress, calibrate_steps());
    enum ar_status status = calibrate(device, &how, out, error);
    progress_end(&progress);
    memcpy(out->name, name, sizeof name);
    environment_card_after(environment);
    if (!status)
        machine_describe(device, environment, cold, out);
    return status ? status : sim_profile_check(out, "what was measured", error);
}

static enum ar_status make(const struct arguments *self, struct ar_device *device,
                           struct environment *environment, struct sim_profile *profile,
                           struct ar_error *error)
{
    AR_CLOSED(output_abandon) struct output_file file = {0};
    AR_TRY(output_open(&file, self->path, error));
    AR_TRY(measure(device, self->cold, environment, profile, error));
    sim_profile_write(profile, file.stream);
    return output_commit(&file, error);
}

/* The prefix that makes a file name a path for the simulated device, not a built-in profile. */
static const char *place_of(const char *path)
{
    return strpbrk(path, "/.") ? "" : "./";
}

/* Prints how well the new profile predicts the card. */
static enum ar_status verify(const char *path, struct ar_device *device,
                             const struct environment *environment, struct ar_error *error)
{
    char text[4096];
    struct check check;
    AR_CLOSED(ar_device_close_at) struct ar_device *model = NULL;
    printf("wrote %s\nuse it with -d sim:profile=%s%s\n", path, place_of(path), path);
    context_card_print(stdout, environment);
    putchar('\n');
    snprintf(text, sizeof text, "sim:profile='%s%s'", place_of(path), path);
    AR_TRY(ar_device_open_text(text, &model, error));
    AR_TRY(check_devices(device, model, &check, error));
    return check_print(&check, stdout, error);
}

/* Adds the advice for `calibrate` to the reason why there is no card. */
static enum ar_status no_card(struct ar_error *error)
{
    char why[sizeof error->text];
    memcpy(why, error->text, sizeof why);
    return ar_error_set(error, AR_MISSING,
                        "calibrate: it measures a real card, and there is no usable one: %.*s; run "
                        "it on the machine with the card and copy the profile here (-d "
                        "sim:profile=FILE), or use one of `allocrig list devices`",
                        (int)(strcspn(why, ";") < 240 ? strcspn(why, ";") : 240), why);
}

/* Measures a device, then compares the profile with it. */
static enum ar_status measure_device(const struct arguments *self, const char *name, int argc,
                                     char **argv, struct ar_error *error)
{
    struct sim_profile profile = {0};
    struct environment environment;
    AR_CLOSED(ar_device_close_at) struct ar_device *device = NULL;
    const char *text = self->device ? self->device : "cuda";
    memcpy(profile.name, name, sizeof profile.name);
    environment_capture(&environment, argc, argv, 0);
    environment_card_before(&environment, text);
    enum ar_status status = ar_device_open_text(text, &device, error);
    AR_TRY(status == AR_MISSING ? no_card(error) : status);
    AR_TRY(make(self, device, &environment, &profile, error));
    return strcmp(self->path, "-") != 0 ? verify(self->path, device, &environment, error) : AR_OK;
}

static enum ar_status write_median(const struct arguments *self, const char *name,
                                   const struct calibration *calibrations, struct ar_error *error)
{
    struct median median;
    size_t count = self->profiles.count;
    AR_CLOSED(output_abandon) struct output_file file = {0};
    enum ar_status status =
        median_of(calibrations, count, name, build_info()->version, &median, error);
    AR_TRY(ar_error_prefix(error, status, "calibrate"));
    AR_TRY(output_open(&file, self->path, error));
    AR_TRY(median_write(&median, calibrations, count, file.stream, error));
    AR_TRY(output_commit(&file, error));
    for (size_t i = 0; i < count; i++)
        if (!calibrations[i].profile.host_clock_ps)
            fprintf(stderr,
                    "note: %s does not have the clock of its host (host_clock_ps), so the figures\n"
                    "  were not converted to one host: they mix fast and slow hosts\n",
                    calibrations[i].path);
    if (strcmp(self->path, "-") != 0)
        printf("wrote %s, the median of %zu calibrations\nuse it with -d sim:profile=%s%s\n",
               self->path, count, place_of(self->path), self->path);
    return AR_OK;
}

static enum ar_status make_median(const struct arguments *self, const char *name,
                                  struct ar_error *error)
{
    AR_FREED struct calibration *calibrations = NULL;
    AR_TRY(median_load(self->profiles.at, self->profiles.count, &calibrations, error));
    AR_TRY(ar_error_prefix(error,
                           median_one_host(calibrations, self->profiles.count,
                                           (uint64_t)(1000 * self->host_clock_ns + 0.5), error),
                           "calibrate"));
    return write_median(self, name, calibrations, error);
}

enum ar_status cmd_calibrate(int argc, char **argv, struct ar_error *error)
{
    struct arguments self = {0};
    char name[SIM_PROFILE_ROOM(name)] = "";
    AR_TRY(cli_parse(&page, argc, argv, &self, error));
    AR_TRY(check_arguments(&self, error));
    AR_TRY(name_profile(&self, name, sizeof name, error));
    return self.median ? make_median(&self, name, error)
                       : measure_device(&self, name, argc, argv, error);
}
