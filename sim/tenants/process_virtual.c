/* See process_virtual.h. What is checked, in this order:
 *
 * 1. There are no more lists than GPUs that may be used; GPUs beyond the lists are not used.
 * 2. Priorities are given for all virtual devices of all GPUs, or for none; so are ordinals.
 *
 * Source: tensorflow, gpu_device.cc (VerifyVirtualDeviceSettings). */
#include "sim/tenants/process_virtual.h"

#include <stdlib.h>
#include <string.h>

static const char *const keys[VIRTUAL_KEYS] = {
    [VIRTUAL_LIMITS] = "virtual_devices",
    [VIRTUAL_PRIORITIES] = "virtual_device_priorities",
    [VIRTUAL_ORDINALS] = "virtual_device_ordinals",
};

static enum ar_status read_lists(struct process_virtual *self, enum virtual_key key,
                                 struct process_reading *reading, const struct process_line *line)
{
    const char *at = line->value;
    size_t gpu = 0, *count = self->count[key];
    memset(count, 0, sizeof self->count[key]);
    while (*at) {
        char *end = NULL;
        if (*at == '/') {
            if (++gpu == PROCESS_CARDS)
                return process_bad_line(reading, line, "lists of at most 16 GPUs");
            at++;
        } else {
            long long number = strtoll(at, &end, 10);
            bool limit = key == VIRTUAL_LIMITS;
            if (end == at || (*end && *end != ' ' && *end != '/') || (limit && number <= 0) ||
                number >= 1 << 30 || count[gpu] == VIRTUAL_MOST)
                return process_bad_line(
                    reading, line,
                    limit ? "write MiB from 1 on with spaces between, at most 16 for each GPU, and "
                            "/ between GPUs"
                          : "write numbers with spaces between, at most 16 for each GPU, and / "
                            "between GPUs");
            if (limit)
                self->mib[gpu][count[gpu]] = (uint64_t)number;
            count[gpu]++;
            at = end;
        }
        at += strspn(at, " ");
    }
    self->gpu_count[key] = gpu + 1;
    return AR_OK;
}

enum ar_status process_virtual_line(struct process_virtual *self, struct process_reading *reading,
                                    const struct process_line *line, bool *taken)
{
    *taken = false;
    for (size_t key = 0; key < VIRTUAL_KEYS; key++)
        if (!strcmp(line->key, keys[key])) {
            *taken = true;
            return read_lists(self, (enum virtual_key)key, reading, line);
        }
    return AR_OK;
}

enum ar_status process_virtual_check(const struct process_virtual *self,
                                     struct process_reading *reading,
                                     const struct process_line *line, size_t gpu_count)
{
    if (self->gpu_count[VIRTUAL_LIMITS] > gpu_count)
        return process_raise(reading, line, PROCESS_UNKNOWN_ERROR,
                             "Not enough GPUs to create virtual devices: %zu lists, and %zu to use",
                             self->gpu_count[VIRTUAL_LIMITS], gpu_count);
    for (size_t key = VIRTUAL_PRIORITIES; key < VIRTUAL_KEYS; key++)
        for (size_t gpu = 0; gpu < PROCESS_CARDS && self->gpu_count[key]; gpu++)
            if (self->count[key][gpu] != self->count[VIRTUAL_LIMITS][gpu])
                return process_raise(
                    reading, line, PROCESS_INVALID_ARGUMENT,
                    "%s: GPU %zu has %zu, and %zu memory limits; give one for each "
                    "virtual device, or none at all",
                    keys[key], gpu, self->count[key][gpu], self->count[VIRTUAL_LIMITS][gpu]);
    return AR_OK;
}
