#include "bench/calibrate/dirt.h"

#include <stdlib.h>
#include <string.h>

#include "allocators/base/size.h"

#define DIRT_BYTES (4 * AR_MIB)
#define LINE_BYTES 64

struct dirt {
    unsigned char bytes[DIRT_BYTES];
};

bool dirt_open(struct dirt **out, const struct ar_device *device)
{
    *out = NULL;
    if (strcmp(device->props.kind, "sim") == 0)
        return true;
    *out = calloc(1, sizeof **out);
    return *out != NULL;
}

void dirt_close(struct dirt *self)
{
    free(self);
}

void dirt_spread(struct dirt *self)
{
    for (size_t at = 0; self && at < DIRT_BYTES; at += LINE_BYTES)
        self->bytes[at]++;
}
