#include "tests/support/memories.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/fake_backing.h"

void memory_open(struct memory *memory, int kind, uint64_t cap_bytes)
{
    static const char *const names[MEMORIES] = {"fake", "bump", "h100"};
    *memory = (struct memory){.name = names[kind]};
    if (kind == 0) {
        struct fake_backing *fake = malloc(sizeof *fake);
        if (!fake)
            abort();
        fake_backing_open(fake, cap_bytes);
        memory->fake = fake;
        memory->backing = &fake->base;
        return;
    }
    char text[100];
    struct ar_error error = {""};
    snprintf(text, sizeof text, "sim:profile=%s,capacity=%" PRIu64, names[kind], cap_bytes);
    if (ar_device_open_text(text, &memory->device, &error)) {
        fprintf(stderr, "%s: %s\n", text, error.text);
        abort();
    }
    memory->backing = memory->device->backing;
}

uint64_t memory_held(const struct memory *memory)
{
    if (!memory->device)
        return ((const struct fake_backing *)memory->fake)->held_bytes;
    return memory->device->counters.physical_bytes;
}

void memory_close(struct memory *memory)
{
    ar_device_close(memory->device);
    free(memory->fake);
}
