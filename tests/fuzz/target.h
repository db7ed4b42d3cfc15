/* What every fuzz target has. */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* The target: takes any bytes, and aborts if the program is wrong about them. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* A file in memory of these bytes; its path into `path`. The caller closes the file returned. */
static inline int target_file(const uint8_t *data, size_t bytes, char path[64])
{
    int file = memfd_create("fuzz", MFD_CLOEXEC);
    if (file < 0 || write(file, data, bytes) != (ssize_t)bytes)
        abort();
    snprintf(path, 64, "/proc/self/fd/%d", file);
    return file;
}
