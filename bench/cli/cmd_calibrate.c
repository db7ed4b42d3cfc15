/* `calibrate`: measures what a card's driver calls cost, and writes it as a profile for the
 * simulated device. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "bench/calibrate/calibrate.h"
#include "bench/calibrate/check.h"
#include "bench/calibrate/machine.h"
#include "bench/cli/cli.h"
#include "bench/report/context.h"
#include "bench/report/output_file.h"
#include "bench/suite/progress.h"

enum option_key { KEY_NAME = CLI_KEYS, KEY_COLD };

static const struct cli_option options[] = {
    {CLI_HEADING, NULL, NULL, "Options:"},
    {'o', "output", "FILE", "the profile to write; - is standard output"},
    {'d', "device", "DEVICE", "the device to measure; default: cuda"},
    {KEY_NAME, "name", "NAME", "the profile's name; default: the file's, without its ending"},
    {KEY_COLD, "cold", NULL, "each call finds the host's caches cold, as between much other work"},
    {0},
};

static const struct cli_page page = {
    .arguments = "-o FILE [-d DEVICE]",
    .text =
        "Measures what this card's driver calls cost, idle and busy, and what waits, in under two\n"
        "minutes, and writes a profile that `-d sim:profile=FILE` reads. Nothing else should use\n"
        "the card meanwhile. Of a simulated device it gives back the profile.",
    .options = options,
};

struct calibrate_arguments {
    const char *path, *device, *name;
    bool cold;
};

static enum status take(void *argument, int key, const char *value, struct error *error)
{
    struct calibrate_arguments *self = argument;
    const char **place = key == 'o' ? &self->path : key == 'd' ? &self->device : &self->name;
    if (key == KEY_COLD) {
        self->cold = true;
        return STATUS_OK;
    }
    if (key == CLI_ARGUMENT)
        return error_set(error, STATUS_INVALID,
                         "calibrate: \"%s\" belongs to no option; the file is given with -o",
                         value);
    if (*place)
        return error_set(error, STATUS_INVALID,
                         "\"%s\" and \"%s\": calibrate measures one device once; give one of them",
                         *place, value);
    *place = value;
    return STATUS_OK;
}

/* The name that was given, or the file's without folder and ending. */
static enum status name_profile(const struct calibrate_arguments *self, char *name,
                                size_t name_bytes, struct error *error)
{
    const char *last = strrchr(self->path, '/');
    const char *from = self->name ? self->name : last ? last + 1 : self->path;
    size_t length = strlen(from);
    const char *ending = strrchr(from, '.');
    if (!self->name && strcmp(from, "-") == 0)
        from = "card", length = 4;
    else if (!self->name && ending && ending != from)
        length = (size_t)(ending - from);
    if (length == 0 || length >= name_bytes)
        return error_set(error, STATUS_INVALID,
                         "calibrate: a profile's name has 1 to 63 letters; give it with --name");
    for (size_t i = 0; i < length; i++)
        if (!isgraph((unsigned char)from[i]))
            return error_set(error, STATUS_INVALID,
                             "calibrate: \"%.*s\" is no name for a profile: letters, digits and "
                             "signs only; give one with --name",
                             (int)length, from);
    memcpy(name, from, length);
    name[length] = '\0';
    return STATUS_OK;
}

static void on_step(void *argument, const char *label)
{
    progress_step(argument, label);
}

static enum status measure(struct device *device, bool cold, struct environment *environment,
                           struct sim_profile *out, struct error *error)
{
    struct progress progress;
    const struct calibrate_options how = {.cold = cold, .step = on_step, .argument = &progress};
    char name[sizeof out->name];
    memcpy(name, out->name, sizeof name);
    progress_begin(&progress, calibrate_steps());
    enum status status = calibrate(device, &how, out, error);
    progress_end(&progress);
    memcpy(out->name, name, sizeof name);
    environment_card_after(environment);
    if (!status)
        machine_describe(device, environment, cold, out);
    return status;
}

/* Measures, and writes the file. */
static enum status make(const struct calibrate_arguments *self, struct device *device,
                        struct environment *environment, struct sim_profile *profile,
                        struct error *error)
{
    struct output_file file = {0};
    enum status status = output_open(&file, self->path, error);
    if (!status)
        status = measure(device, self->cold, environment, profile, error);
    if (status) {
        output_abandon(&file);
        return status;
    }
    sim_profile_write(profile, file.stream);
    return output_commit(&file, error);
}

/* Says how well the new profile tells what the card does. */
static enum status verify(const char *path, struct device *device,
                          const struct environment *environment, struct error *error)
{
    char text[4096];
    struct check check;
    struct device *model;
    snprintf(text, sizeof text, "%s%s", strpbrk(path, "/.") ? "" : "./", path);
    printf("wrote %s: use it with -d sim:profile=%s\n", path, text);
    context_card_print(stdout, environment);
    putchar('\n');
    struct spec spec;
    snprintf(text, sizeof text, "sim:profile='%s%s'", strpbrk(path, "/.") ? "" : "./", path);
    enum status status = spec_parse(text, &spec, error);
    if (status)
        return status;
    status = device_open(&spec, &model, error);
    spec_close(&spec);
    if (status)
        return status;
    status = check_devices(device, model, &check, error);
    device_close(model);
    return status ? status : check_print(&check, stdout, error);
}

/* Why there is none, up to what `run` would do about it, and what there is to do here. */
static enum status no_card(struct error *error)
{
    char why[sizeof error->text];
    memcpy(why, error->text, sizeof why);
    return error_set(error, STATUS_MISSING,
                     "calibrate: it measures a real card, and there is none that can be used: "
                     "%.*s; run it on the machine with the card and copy the profile here "
                     "(-d sim:profile=FILE), or take one of those of `allocrig list devices`",
                     (int)(strcspn(why, ";") < 240 ? strcspn(why, ";") : 240), why);
}

enum status cmd_calibrate(int argc, char **argv, struct error *error)
{
    struct calibrate_arguments self = {0};
    struct sim_profile profile = {0};
    struct environment environment;
    struct device *device;
    bool help = false;
    enum status status = cli_parse(&page, argc, argv, take, &self, &help, error);
    if (status || help)
        return status;
    if (!self.path)
        return error_set(error, STATUS_INVALID,
                         "calibrate: no file is named to write the profile to; write calibrate -o "
                         "FILE");
    status = name_profile(&self, profile.name, sizeof profile.name, error);
    if (status)
        return status;
    const char *text = self.device ? self.device : "cuda";
    environment_capture(&environment, argc, argv, 0);
    environment_card_before(&environment, text);
    status = device_open_text(text, &device, error);
    if (status)
        return status == STATUS_MISSING ? no_card(error) : status;
    status = make(&self, device, &environment, &profile, error);
    if (!status && strcmp(self.path, "-") != 0)
        status = verify(self.path, device, &environment, error);
    device_close(device);
    return status;
}
