/* `calibrate`: measures what a card's driver calls cost, and writes it as a profile for the
 * simulated device. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "bench/calibrate/calibrate.h"
#include "bench/calibrate/machine.h"
#include "bench/cli/cli.h"
#include "bench/report/output_file.h"
#include "bench/suite/build_info.h"
#include "bench/suite/progress.h"

enum option_key { KEY_NAME = CLI_KEYS };

static const struct cli_option options[] = {
    {CLI_HEADING, NULL, NULL, "Options:"},
    {'o', "output", "FILE", "the profile to write; - is standard output"},
    {'d', "device", "DEVICE", "the device to measure; default: cuda"},
    {KEY_NAME, "name", "NAME", "the profile's name; default: the file's, without its ending"},
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
};

static enum status take(void *argument, int key, const char *value, struct error *error)
{
    struct calibrate_arguments *self = argument;
    const char **place = key == 'o' ? &self->path : key == 'd' ? &self->device : &self->name;
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

static enum status measure(const char *device_text, struct sim_profile *out, struct error *error)
{
    struct device *device;
    struct progress progress;
    enum status status = device_open_text(device_text, &device, error);
    if (status)
        return status;
    char name[sizeof out->name];
    memcpy(name, out->name, sizeof name);
    progress_begin(&progress, calibrate_steps());
    status = calibrate(device, on_step, &progress, out, error);
    progress_end(&progress);
    memcpy(out->name, name, sizeof name);
    if (!status)
        machine_describe(device, build_info()->version, out);
    device_close(device);
    return status;
}

enum status cmd_calibrate(int argc, char **argv, struct error *error)
{
    struct calibrate_arguments self = {0};
    struct sim_profile profile = {0};
    struct output_file file = {0};
    bool help = false;
    enum status status = cli_parse(&page, argc, argv, take, &self, &help, error);
    if (status || help)
        return status;
    if (!self.path)
        return error_set(error, STATUS_INVALID,
                         "calibrate: no file is named to write the profile to; write calibrate -o "
                         "FILE");
    status = name_profile(&self, profile.name, sizeof profile.name, error);
    if (!status)
        status = output_open(&file, self.path, error);
    if (!status)
        status = measure(self.device ? self.device : "cuda", &profile, error);
    if (status) {
        output_abandon(&file);
        return status;
    }
    sim_profile_write(&profile, file.stream);
    status = output_commit(&file, error);
    if (!status && strcmp(self.path, "-") != 0)
        printf("wrote %s: use it with -d sim:profile=%s%s\n", self.path,
               strpbrk(self.path, "/.") ? "" : "./", self.path);
    return status;
}
