#include "bench/calibrate/machine.h"

#include <stdio.h>
#include <string.h>

#define LINE_BYTES 512

/* The first line of the file, without its end; "" where there is none. */
static void first_line(const char *path, char *text, size_t text_bytes)
{
    FILE *file = fopen(path, "re");
    text[0] = '\0';
    if (!file)
        return;
    if (!fgets(text, (int)text_bytes, file))
        text[0] = '\0';
    text[strcspn(text, "\r\n")] = '\0';
    fclose(file);
}

/* The driver's version: the first word of its line that looks like 580.159.03. */
static void read_driver(char *text, size_t text_bytes)
{
    char line[LINE_BYTES];
    first_line("/proc/driver/nvidia/version", line, sizeof line);
    for (char *word = strtok(line, " \t"); word; word = strtok(NULL, " \t")) {
        size_t length = strspn(word, "0123456789.");
        if (length >= 5 && word[length] == '\0' && strchr(word, '.')) {
            snprintf(text, text_bytes, "%.63s", word);
            return;
        }
    }
}

/* Whether the processor says that it is a virtual one. */
static bool is_virtual(void)
{
    char line[4096];
    bool found = false;
    FILE *file = fopen("/proc/cpuinfo", "re");
    while (file && !found && fgets(line, sizeof line, file))
        found = strncmp(line, "flags", 5) == 0 && strstr(line, " hypervisor") != NULL;
    if (file)
        fclose(file);
    return found;
}

static void read_hypervisor(char *text, size_t text_bytes)
{
    char vendor[LINE_BYTES], product[LINE_BYTES];
    if (!is_virtual()) {
        snprintf(text, text_bytes, "none");
        return;
    }
    first_line("/sys/class/dmi/id/sys_vendor", vendor, sizeof vendor);
    first_line("/sys/class/dmi/id/product_name", product, sizeof product);
    snprintf(text, text_bytes, "yes%s%.90s%s%.90s", vendor[0] ? ": " : "", vendor,
             product[0] ? ", " : "", product);
}

void machine_describe(const struct device *device, const char *version, bool cold,
                      struct sim_profile *out)
{
    bool real = strcmp(device->props.kind, "sim") != 0;
    if (real) {
        snprintf(out->card, sizeof out->card, "%s", device->props.profile);
        read_driver(out->driver, sizeof out->driver);
        read_hypervisor(out->hypervisor, sizeof out->hypervisor);
    }
    snprintf(out->source, sizeof out->source,
             "allocrig %.32s calibrate%s of device %s%s%.63s; means, bench/calibrate/README.md",
             version, cold ? " --cold" : "", device->props.kind, real ? "" : ", profile ",
             real ? "" : device->props.profile);
}
