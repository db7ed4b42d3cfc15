/* The types of the library are plain integers, pointers and the few structs below, whose layout its
 * documentation defines. The version of a function is part of its name: the table has the newest
 * version with the layout here. */
#include "bench/machine/environment.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocators/base/api.h"

typedef struct nvml_device *device_handle;

struct memory {
    unsigned long long total, free, used;
};

struct process {
    unsigned pid;
    unsigned long long used_bytes;
    unsigned gpu_instance, compute_instance;
};

struct violation {
    unsigned long long reference_us, violation_ns;
};

struct pci {
    char bus_legacy[16];
    unsigned domain, bus, device, id, subsystem;
    char bus_id[32];
};

enum { CLOCK_SM = 1, CLOCK_MEMORY = 2, SENSOR_GPU = 0, LIMITED_BY_POWER = 0, LIMITED_BY_HEAT = 1 };

/* field, name in the library, arguments */
#define FUNCTIONS(X)                                                                               \
    X(init, "nvmlInit_v2", (void))                                                                 \
    X(shutdown, "nvmlShutdown", (void))                                                            \
    X(driver, "nvmlSystemGetDriverVersion", (char *, unsigned))                                    \
    X(cuda, "nvmlSystemGetCudaDriverVersion_v2", (int *))                                          \
    X(by_index, "nvmlDeviceGetHandleByIndex_v2", (unsigned, device_handle *))                      \
    X(by_uuid, "nvmlDeviceGetHandleByUUID", (const char *, device_handle *))                       \
    X(name, "nvmlDeviceGetName", (device_handle, char *, unsigned))                                \
    X(uuid, "nvmlDeviceGetUUID", (device_handle, char *, unsigned))                                \
    X(pci, "nvmlDeviceGetPciInfo_v3", (device_handle, struct pci *))                               \
    X(clock, "nvmlDeviceGetClockInfo", (device_handle, int, unsigned *))                           \
    X(clock_max, "nvmlDeviceGetMaxClockInfo", (device_handle, int, unsigned *))                    \
    X(clock_set, "nvmlDeviceGetApplicationsClock", (device_handle, int, unsigned *))               \
    X(throttle, "nvmlDeviceGetCurrentClocksThrottleReasons",                                       \
      (device_handle, unsigned long long *))                                                       \
    X(violation, "nvmlDeviceGetViolationStatus", (device_handle, int, struct violation *))         \
    X(temperature, "nvmlDeviceGetTemperature", (device_handle, int, unsigned *))                   \
    X(power, "nvmlDeviceGetPowerUsage", (device_handle, unsigned *))                               \
    X(power_limit, "nvmlDeviceGetEnforcedPowerLimit", (device_handle, unsigned *))                 \
    X(memory, "nvmlDeviceGetMemoryInfo", (device_handle, struct memory *))                         \
    X(processes, "nvmlDeviceGetComputeRunningProcesses_v3",                                        \
      (device_handle, unsigned *, struct process *))                                               \
    X(ecc, "nvmlDeviceGetEccMode", (device_handle, unsigned *, unsigned *))                        \
    X(mig, "nvmlDeviceGetMigMode", (device_handle, unsigned *, unsigned *))                        \
    X(persistence, "nvmlDeviceGetPersistenceMode", (device_handle, unsigned *))                    \
    X(virtualised, "nvmlDeviceGetVirtualizationMode", (device_handle, unsigned *))

struct nvml {
    void *library; /* NULL: the functions come from a test */
#define X(field, name, arguments) int(*field) arguments;
    FUNCTIONS(X)
#undef X
};

static const struct {
    const char *name;
    size_t place;
} functions[] = {
#define X(field, name, arguments) {name, offsetof(struct nvml, field)},
    FUNCTIONS(X)
#undef X
};

/* Calls a function if the library has it; true if it succeeded. */
#define ASK(self, field, ...) ((self)->field && (self)->field(__VA_ARGS__) == 0)

/* The same with other functions, for tests. */
static struct nvml *nvml_open_on(nvml_find *find, void *argument)
{
    struct nvml *self = calloc(1, sizeof *self);
    if (!self)
        return NULL;
    for (size_t i = 0; i < AR_COUNT(functions); i++) {
        void *function = find(argument, functions[i].name);
        memcpy((char *)self + functions[i].place, &function, sizeof function);
    }
    if (self->init && self->init() == 0)
        return self;
    free(self);
    return NULL;
}

static void *find_in_library(void *library, const char *name)
{
    return dlsym(library, name);
}

struct nvml *nvml_open(void)
{
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return NULL;
    struct nvml *self = nvml_open_on(find_in_library, library);
    if (self)
        self->library = library;
    else
        dlclose(library);
    return self;
}

void nvml_close(struct nvml *self)
{
    if (!self)
        return;
    if (self->shutdown)
        self->shutdown();
    if (self->library)
        dlclose(self->library);
    free(self);
}

/* Entry number `ordinal` of a list like `0,2` or `GPU-1a2b,GPU-3c4d`. */
static bool find_card(struct nvml *self, unsigned ordinal, const char *visible, device_handle *out)
{
    if (!visible || !*visible)
        return ASK(self, by_index, ordinal, out);
    for (unsigned skip = 0; skip < ordinal; skip++) {
        const char *comma = strchr(visible, ',');
        if (!comma)
            return false;
        visible = comma + 1;
    }
    char entry[96];
    char *end;
    snprintf(entry, sizeof entry, "%.*s", (int)strcspn(visible, ","), visible);
    unsigned long index = strtoul(entry, &end, 10);
    if (end != entry && !*end && index <= UINT32_MAX)
        return ASK(self, by_index, (unsigned)index, out);
    return ASK(self, by_uuid, entry, out);
}

static int64_t clock_of(int (*ask)(device_handle, int, unsigned *), device_handle card, int which)
{
    unsigned mhz;
    return ask && ask(card, which, &mhz) == 0 ? (int64_t)mhz : -1;
}

static int64_t number_of(int (*ask)(device_handle, unsigned *), device_handle card)
{
    unsigned number;
    return ask && ask(card, &number) == 0 ? (int64_t)number : -1;
}

static int mode_of(int (*ask)(device_handle, unsigned *, unsigned *), device_handle card)
{
    unsigned now, later;
    return ask && ask(card, &now, &later) == 0 ? now != 0 : -1;
}

static int64_t limited_ns(struct nvml *self, device_handle card, int why)
{
    struct violation violation = {0};
    return ASK(self, violation, card, why, &violation) ? (int64_t)violation.violation_ns : -1;
}

static void read_processes(struct nvml *self, device_handle card, uint32_t own,
                           struct nvml_state *state)
{
    struct process list[64];
    unsigned count = AR_COUNT(list);
    state->process_count = -1;
    if (!ASK(self, processes, card, &count, list))
        return;
    state->process_count = 0;
    for (unsigned i = 0; i < count; i++) {
        if (list[i].pid == own)
            continue;
        int64_t at = state->process_count++;
        if (at >= NVML_PROCESSES_MOST)
            continue;
        state->processes[at].process = list[i].pid;
        state->processes[at].bytes =
            list[i].used_bytes > INT64_MAX ? -1 : (int64_t)list[i].used_bytes;
    }
}

void nvml_read_state(struct nvml *self, unsigned ordinal, const char *visible, uint32_t own,
                     struct nvml_state *state)
{
    device_handle card;
    unsigned long long reasons;
    struct memory memory = {0};
    memset(state, 0, sizeof *state);
    if (!find_card(self, ordinal, visible, &card))
        card = NULL;
    state->sm_clock_mhz = clock_of(self->clock, card, CLOCK_SM);
    state->memory_clock_mhz = clock_of(self->clock, card, CLOCK_MEMORY);
    state->throttle_reasons = ASK(self, throttle, card, &reasons) ? (int64_t)reasons : -1;
    state->power_limited_ns = limited_ns(self, card, LIMITED_BY_POWER);
    state->heat_limited_ns = limited_ns(self, card, LIMITED_BY_HEAT);
    state->temperature_c = clock_of(self->temperature, card, SENSOR_GPU);
    state->power_mw = number_of(self->power, card);
    state->used_bytes = ASK(self, memory, card, &memory) ? (int64_t)memory.used : -1;
    read_processes(self, card, own, state);
}

/* The NUMA node of the card, by Linux. */
static int numa_node_of(const char *bus_id)
{
    char path[96] = "/sys/bus/pci/devices/";
    size_t length = strlen(path);
    int node = -1;
    /* Linux writes the domain with four digits. */
    if (strlen(bus_id) > 12)
        bus_id += strlen(bus_id) - 12;
    for (; *bus_id && length + 12 < sizeof path; bus_id++)
        path[length++] = (char)(*bus_id >= 'A' && *bus_id <= 'F' ? *bus_id + 32 : *bus_id);
    snprintf(path + length, sizeof path - length, "/numa_node");
    FILE *file = fopen(path, "re");
    if (file && fscanf(file, "%d", &node) != 1)
        node = -1;
    if (file)
        fclose(file);
    return node;
}

void nvml_read_card(struct nvml *self, unsigned ordinal, const char *visible,
                    struct nvml_card *card)
{
    device_handle handle;
    struct pci pci = {.bus_id = ""};
    int version;
    *card = (struct nvml_card){.ecc = -1};
    if (!find_card(self, ordinal, visible, &handle))
        return;
    card->present = true;
    if (!ASK(self, driver, card->driver, sizeof card->driver))
        card->driver[0] = '\0';
    if (ASK(self, cuda, &version))
        snprintf(card->cuda, sizeof card->cuda, "%d.%d", version / 1000, version % 1000 / 10);
    if (!ASK(self, name, handle, card->name, sizeof card->name))
        card->name[0] = '\0';
    if (!ASK(self, uuid, handle, card->uuid, sizeof card->uuid))
        card->uuid[0] = '\0';
    if (ASK(self, pci, handle, &pci))
        snprintf(card->bus, sizeof card->bus, "%.31s", pci.bus_id);
    card->numa_node = numa_node_of(card->bus);
    card->sm_clock_max_mhz = clock_of(self->clock_max, handle, CLOCK_SM);
    card->memory_clock_max_mhz = clock_of(self->clock_max, handle, CLOCK_MEMORY);
    card->sm_clock_set_mhz = clock_of(self->clock_set, handle, CLOCK_SM);
    card->memory_clock_set_mhz = clock_of(self->clock_set, handle, CLOCK_MEMORY);
    card->power_limit_mw = number_of(self->power_limit, handle);
    card->ecc = mode_of(self->ecc, handle);
    card->mig = mode_of(self->mig, handle);
    card->persistence = (int)number_of(self->persistence, handle);
    card->virtualised = (int)number_of(self->virtualised, handle);
    nvml_read_state(self, ordinal, visible, 0, &card->before);
}

const char *nvml_throttle_text(int64_t reasons, char *text, unsigned text_bytes)
{
    static const struct {
        int64_t bit;
        const char *name;
    } names[] = {
        {0x4, "software power cap"},         {0x8, "hardware slowdown"},
        {0x20, "software thermal slowdown"}, {0x40, "hardware thermal slowdown"},
        {0x80, "hardware power brake"},
    };
    text[0] = '\0';
    for (size_t i = 0; reasons > 0 && i < AR_COUNT(names); i++) {
        size_t used = strlen(text);
        if (reasons & names[i].bit)
            snprintf(text + used, text_bytes - used, "%s%s", used ? ", " : "", names[i].name);
    }
    return text;
}
