#include "bench/machine/environment.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "allocators/base/api.h"

void environment_line(const char *path, char *text, size_t text_bytes)
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

/* In a virtual machine CPUID reports a hypervisor and its name. */
static void read_hypervisor(char *text, size_t text_bytes)
{
    text[0] = '\0';
#if defined(__x86_64__)
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & 1u << 31))
        return;
    __cpuid(0x40000000, a, b, c, d);
    char name[13] = "";
    memcpy(name, &b, 4);
    memcpy(name + 4, &c, 4);
    memcpy(name + 8, &d, 4);
    for (char *at = name; *at; at++)
        if (!isprint((unsigned char)*at))
            *at = '\0';
    snprintf(text, text_bytes, "%s", name[0] ? name : "unknown");
#else
    (void)text_bytes;
#endif
}

static void read_machine(char *text, size_t text_bytes)
{
    char vendor[60];
    char product[60];
    environment_line("/sys/class/dmi/id/sys_vendor", vendor, sizeof vendor);
    environment_line("/sys/class/dmi/id/product_name", product, sizeof product);
    snprintf(text, text_bytes, "%s%s%s", vendor, vendor[0] && product[0] ? " " : "", product);
}

/* By name and not by prefix: results are published, and Terraform's passwords are in TF_VAR_*. */
bool environment_is_allocator_variable(const char *variable)
{
    static const char *const names[] = {
        "CUDA_DEVICE_MAX_CONNECTIONS",
        "CUDA_DEVICE_ORDER",
        "CUDA_LAUNCH_BLOCKING",
        "CUDA_MODULE_LOADING",
        "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
        "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT",
        "CUDA_VISIBLE_DEVICES",
        "PYTORCH_ALLOC_CONF",
        "PYTORCH_CUDA_ALLOC_CONF",
        "PYTORCH_HIP_ALLOC_CONF",
        "PYTORCH_NO_CUDA_MEMORY_CACHING",
        "TF_CUDA_MALLOC_ASYNC_SUPPORTED_PREALLOC",
        "TF_DETERMINISTIC_ALLOCATOR",
        "TF_DEVICE_MIN_SYS_MEMORY_IN_MB",
        "TF_ENABLE_GPU_GARBAGE_COLLECTION",
        "TF_FORCE_GPU_ALLOW_GROWTH",
        "TF_FORCE_UNIFIED_MEMORY",
        "TF_GPU_ALLOCATOR",
        "TF_GPU_HOST_MEM_LIMIT_IN_MB",
        "XLA_CLIENT_MEM_FRACTION",
        "XLA_FLAGS",
        "XLA_PYTHON_CLIENT_ALLOCATOR",
        "XLA_PYTHON_CLIENT_COLLECTIVE_MEM_SIZE_MB",
        "XLA_PYTHON_CLIENT_MEM_FRACTION",
        "XLA_PYTHON_CLIENT_PREALLOCATE",
    };
    const char *equals = strchr(variable, '=');
    for (size_t i = 0; equals && i < AR_COUNT(names); i++)
        if (strlen(names[i]) == (size_t)(equals - variable) &&
            strncmp(variable, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

void environment_card_before(struct environment *self, const char *device)
{
    if (strncmp(device, "cuda", 4) != 0)
        return;
    const char *ordinal = strstr(device, "ordinal=");
    struct nvml *nvml = nvml_open();
    self->card_ordinal = ordinal ? (unsigned)strtoul(ordinal + 8, NULL, 10) : 0;
    if (nvml)
        nvml_read_card(nvml, self->card_ordinal, getenv("CUDA_VISIBLE_DEVICES"), &self->card);
    nvml_close(nvml);
}

void environment_card_after(struct environment *self)
{
    struct nvml *nvml = self->card.present ? nvml_open() : NULL;
    if (!nvml)
        return;
    nvml_read_state(nvml, self->card_ordinal, getenv("CUDA_VISIBLE_DEVICES"), (uint32_t)getpid(),
                    &self->card.after);
    nvml_close(nvml);
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
    environment_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", self->governor,
                     sizeof self->governor);
    environment_line("/sys/devices/system/node/online", self->numa_nodes, sizeof self->numa_nodes);
    read_hypervisor(self->hypervisor, sizeof self->hypervisor);
    read_machine(self->machine, sizeof self->machine);
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    self->cpus = cpus > 0 ? (unsigned)cpus : 0;
}

unsigned environment_jobs(uint64_t wanted)
{
    if (wanted)
        return (unsigned)wanted;
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    return processors > 0 ? (unsigned)processors : 1;
}
