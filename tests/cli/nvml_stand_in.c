/* A stand-in for the management library of NVIDIA cards, built by test_card.sh: two cards, the
 * first of which was throttled and shared. Only what bench/machine/nvml.c asks for, and not all of
 * that. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct process {
    unsigned pid;
    unsigned long long used_bytes;
    unsigned gpu_instance, compute_instance;
};

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlSystemGetDriverVersion(char *text, unsigned bytes);
int nvmlSystemGetCudaDriverVersion_v2(int *version);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **card);
int nvmlDeviceGetHandleByUUID(const char *uuid, void **card);
int nvmlDeviceGetName(void *card, char *text, unsigned bytes);
int nvmlDeviceGetUUID(void *card, char *text, unsigned bytes);
int nvmlDeviceGetClockInfo(void *card, int which, unsigned *mhz);
int nvmlDeviceGetMaxClockInfo(void *card, int which, unsigned *mhz);
int nvmlDeviceGetCurrentClocksThrottleReasons(void *card, unsigned long long *reasons);
int nvmlDeviceGetTemperature(void *card, int sensor, unsigned *degrees);
int nvmlDeviceGetComputeRunningProcesses_v3(void *card, unsigned *count, struct process *list);
int nvmlDeviceGetEccMode(void *card, unsigned *now, unsigned *later);
int nvmlDeviceGetMemoryInfo(void *card, unsigned long long *total_free_used);

static int the_cards[2];

static int is_card(const void *card)
{
    return card == &the_cards[0] || card == &the_cards[1];
}

int nvmlInit_v2(void)
{
    return 0;
}

int nvmlShutdown(void)
{
    return 0;
}

int nvmlSystemGetDriverVersion(char *text, unsigned bytes)
{
    snprintf(text, bytes, "580.1");
    return 0;
}

int nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    *version = 13000;
    return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **card)
{
    *card = &the_cards[index & 1];
    return index < 2 ? 0 : 2;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, void **card)
{
    *card = &the_cards[0];
    return strcmp(uuid, "GPU-1") == 0 ? 0 : 2;
}

int nvmlDeviceGetName(void *card, char *text, unsigned bytes)
{
    snprintf(text, bytes, "Stand-in");
    return is_card(card) ? 0 : 2;
}

int nvmlDeviceGetUUID(void *card, char *text, unsigned bytes)
{
    snprintf(text, bytes, "GPU-1");
    return is_card(card) ? 0 : 2;
}

int nvmlDeviceGetClockInfo(void *card, int which, unsigned *mhz)
{
    *mhz = which == 1 ? 1410 : 2619;
    return is_card(card) ? 0 : 2;
}

int nvmlDeviceGetMaxClockInfo(void *card, int which, unsigned *mhz)
{
    *mhz = which == 1 ? 1980 : 2619;
    return is_card(card) ? 0 : 2;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void *card, unsigned long long *reasons)
{
    *reasons = 0x1 | 0x4 | 0x40;
    return is_card(card) ? 0 : 2;
}

int nvmlDeviceGetTemperature(void *card, int sensor, unsigned *degrees)
{
    *degrees = 61 + (unsigned)sensor;
    return is_card(card) ? 0 : 2;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *card, unsigned *count, struct process *list)
{
    *count = 2;
    list[0] = (struct process){.pid = 4242, .used_bytes = 1ull << 30};
    list[1] = (struct process){.pid = 4243, .used_bytes = ~0ull}; /* not known */
    return is_card(card) ? 0 : 2;
}

int nvmlDeviceGetEccMode(void *card, unsigned *now, unsigned *later)
{
    *now = *later = 1;
    return is_card(card) ? 0 : 2;
}

/* What others hold is the stand-in driver's setting, or all that is held by its shared file. */
int nvmlDeviceGetMemoryInfo(void *card, unsigned long long *total_free_used)
{
    const char *others = getenv("STAND_IN_OTHERS");
    total_free_used[0] = 85017493504;
    total_free_used[2] = others ? strtoull(others, NULL, 10) : 0;
    const char *path = getenv("STAND_IN_SHARED");
    FILE *file = path ? fopen(path, "rb") : NULL;
    unsigned long long held[2] = {0, 0};
    if (file && fread(held, sizeof *held, 2, file) > 0)
        total_free_used[2] += held[card == &the_cards[1]];
    if (file)
        fclose(file);
    total_free_used[1] = total_free_used[0] - total_free_used[2];
    return is_card(card) ? 0 : 2;
}
