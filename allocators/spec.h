/* Specs: `NAME:key=value,...`, with decorators before it: `checked+fault(n=3)+growth:limit=2GiB`.
 * A value that holds commas, colons, plus signs or brackets stands in single or double quotes.
 * The same grammar names policies, workloads (`random:seed=3`) and devices (`sim:profile=h100`). */
#ifndef ALLOCATORS_SPEC_H
#define ALLOCATORS_SPEC_H

#include <stddef.h>

#include "allocators/base/status.h"

struct spec_pair {
    const char *key;
    const char *value; /* "" where the key stands alone; quotes are taken off */
};

/* One name with its pairs. The last link is the thing itself, those before decorate it. */
struct spec_link {
    const char *name; /* may be a path such as ./mine.so */
    const struct spec_pair *pairs;
    size_t pair_count;
};

struct spec {
    const char *text; /* as it was given */
    struct spec_link *links;
    size_t link_count; /* at least 1 */
    void *storage;     /* private: everything above points into it */
};

/* Takes the text apart. On success the caller owns `out` and gives it to spec_close.
 * INVALID names the place in the text. */
enum status spec_parse(const char *text, struct spec *out, struct error *error) STATUS_CHECKED;
void spec_close(struct spec *spec);

#endif
