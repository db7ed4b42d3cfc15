/* plugin_program LIBRARY: a program that takes its memory from the plug-in: a seeded mix of
 * requests, uses on two more streams and frees, with a step every hundred. Built by
 * test_plugin.sh. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/plugin/plugin.h"
#include "tests/support/cuda_stand_in/stand_in.h"

enum { HELD = 300, TURNS = 3000 };

struct block {
    void *address;
    struct stand_in_stream *stream;
};

static void find(void *library, const char *name, void *pointer)
{
    void *address = dlsym(library, name);
    if (!address) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    memcpy(pointer, &address, sizeof address);
}

static uint32_t draw(uint32_t bound)
{
    static uint64_t state = 42;
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((state >> 33) % bound);
}

int main(int count, char **arguments)
{
    static struct block held[HELD];
    static struct stand_in_stream side[2];
    __typeof__(allocrig_malloc) *get;
    __typeof__(allocrig_free) *free_requested;
    __typeof__(allocrig_record_stream) *use;
    __typeof__(allocrig_mark) *mark;
    void *library = count > 1 ? dlopen(arguments[1], RTLD_NOW) : NULL;
    if (!library) {
        fprintf(stderr, "%s\n", count > 1 ? dlerror() : "a library is missing");
        return 1;
    }
    find(library, "allocrig_malloc", &get);
    find(library, "allocrig_free", &free_requested);
    find(library, "allocrig_record_stream", &use);
    find(library, "allocrig_mark", &mark);
    for (int turn = 0; turn < TURNS; turn++) {
        struct block *place = &held[draw(HELD)];
        uint32_t kind = draw(4);
        if (place->address) {
            if (draw(8) == 0)
                use(place->address, &side[draw(2)]);
            free_requested(place->address, 0, 0, place->stream);
        }
        place->stream = kind == 3 ? &side[draw(2)] : NULL;
        size_t bytes = 1 + (kind == 0 ? draw(900) : kind == 1 ? draw(40 << 20) : draw(700000));
        place->address = get((ssize_t)bytes, 0, place->stream);
        if (!place->address)
            return 1;
        if (turn % 100 == 99)
            mark("step");
    }
    return 0;
}
