#include "bench/suite/environment.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

static void read_line(const char *path, char *text, size_t text_bytes)
{
    FILE *file = fopen(path, "re");
    text[0] = '\0';
    if (!file)
        return;
    if (!fgets(text, (int)text_bytes, file))
        text[0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    fclose(file);
}

static void read_cpu(char *text, size_t text_bytes)
{
    char line[512];
    FILE *file = fopen("/proc/cpuinfo", "re");
    snprintf(text, text_bytes, "unknown");
    while (file && fgets(line, sizeof line, file)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !colon)
            continue;
        for (colon++; isspace((unsigned char)*colon); colon++)
            ;
        colon[strcspn(colon, "\n")] = '\0';
        snprintf(text, text_bytes, "%.*s", (int)text_bytes - 1, colon);
        break;
    }
    if (file)
        fclose(file);
}

void environment_capture(struct environment *self, int argc, char *const *argv, uint64_t seed)
{
    struct utsname name;
    struct timespec now;
    struct tm utc;
    *self = (struct environment){
        .build = build_info(),
        .seed = seed,
        .argc = argc,
        .argv = argv,
    };
    if (clock_gettime(CLOCK_REALTIME, &now) == 0 && gmtime_r(&now.tv_sec, &utc))
        strftime(self->time, sizeof self->time, "%Y-%m-%dT%H:%M:%SZ", &utc);
    if (uname(&name) == 0) {
        snprintf(self->host, sizeof self->host, "%.64s", name.nodename);
        snprintf(self->kernel, sizeof self->kernel, "%.64s %.64s %.16s", name.sysname, name.release,
                 name.machine);
    }
    read_cpu(self->cpu, sizeof self->cpu);
    read_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", self->governor,
              sizeof self->governor);
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    self->cpus = cpus > 0 ? (unsigned)cpus : 0;
}
