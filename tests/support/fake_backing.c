#include "tests/support/fake_backing.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static struct fake_backing *fake(struct ar_backing *base)
{
    return (struct fake_backing *)base;
}

static enum ar_status fake_alloc(struct ar_backing *base, uint64_t bytes, uint64_t *address)
{
    struct fake_backing *self = fake(base);
    if (self->calls < 64)
        self->attempts[self->calls] = bytes;
    if (++self->calls == self->fail_at || bytes > self->cap_bytes - self->held_bytes ||
        self->made == FAKE_SEGMENTS)
        return AR_REFUSED;
    self->segments[self->made].address = self->next;
    self->segments[self->made].bytes = bytes;
    self->made++;
    *address = self->next;
    self->next += bytes;
    self->held_bytes += bytes;
    return AR_OK;
}

static enum ar_status fake_free(struct ar_backing *base, uint64_t address)
{
    struct fake_backing *self = fake(base);
    for (uint64_t i = 0; i < self->made; i++) {
        if (self->segments[i].address == address && self->segments[i].bytes) {
            self->held_bytes -= self->segments[i].bytes;
            self->segments[i].bytes = 0;
            return AR_OK;
        }
    }
    snprintf(self->problem, sizeof self->problem, "no segment starts at %" PRIu64, address);
    return AR_INVALID;
}

static struct ar_backing_ticket fake_fence(struct ar_backing *base, uint32_t stream)
{
    return (struct ar_backing_ticket){.stream = stream};
}

static bool fake_done(struct ar_backing *base, struct ar_backing_ticket ticket)
{
    return true;
}

static void fake_wait(struct ar_backing *base, struct ar_backing_ticket ticket)
{
}

static void fake_memory(struct ar_backing *base, uint64_t *free_bytes, uint64_t *total_bytes)
{
    const struct fake_backing *self = fake(base);
    *free_bytes = self->cap_bytes - self->held_bytes;
    *total_bytes = self->total_bytes ? self->total_bytes : self->cap_bytes;
}

static const char *fake_problem(struct ar_backing *base)
{
    return fake(base)->problem;
}

static enum ar_status fake_reserve(struct ar_backing *base, uint64_t bytes, uint64_t *address)
{
    struct fake_backing *self = fake(base);
    *address = self->next;
    self->next += bytes;
    return AR_OK;
}

static enum ar_status fake_release(struct ar_backing *base, uint64_t address)
{
    return AR_OK;
}

static enum ar_status fake_create(struct ar_backing *base, uint64_t bytes,
                                  ar_backing_handle *handle)
{
    struct fake_backing *self = fake(base);
    if (++self->calls == self->fail_at || bytes > self->cap_bytes - self->held_bytes ||
        self->handle_count == FAKE_SEGMENTS)
        return AR_REFUSED;
    self->held_bytes += bytes;
    self->handles[self->handle_count] = bytes;
    *handle = self->handle_count++;
    return AR_OK;
}

static enum ar_status fake_destroy(struct ar_backing *base, ar_backing_handle handle)
{
    struct fake_backing *self = fake(base);
    if (handle >= self->handle_count) {
        snprintf(self->problem, sizeof self->problem, "no memory has the handle %" PRIu64, handle);
        return AR_INVALID;
    }
    self->held_bytes -= self->handles[handle];
    self->handles[handle] = 0;
    return AR_OK;
}

static enum ar_status fake_map(struct ar_backing *base, uint64_t address, ar_backing_handle handle)
{
    fake(base)->maps++;
    return AR_OK;
}

static enum ar_status fake_access(struct ar_backing *base, uint64_t address, uint64_t bytes)
{
    return AR_OK;
}

static enum ar_status fake_unmap(struct ar_backing *base, uint64_t address, uint64_t bytes)
{
    fake(base)->unmaps++;
    return AR_OK;
}

/* Virtual memory is there if there are pages. */
void fake_backing_open(struct fake_backing *self, uint64_t cap_bytes)
{
    static const struct ar_backing_ops ops = {
        .segment_alloc = fake_alloc,
        .segment_free = fake_free,
        .reserve = fake_reserve,
        .release = fake_release,
        .create = fake_create,
        .destroy = fake_destroy,
        .map = fake_map,
        .access = fake_access,
        .unmap = fake_unmap,
        .fence = fake_fence,
        .done = fake_done,
        .wait = fake_wait,
        .memory = fake_memory,
        .problem = fake_problem,
    };
    memset(self, 0, offsetof(struct fake_backing, segments));
    self->base = (struct ar_backing){.ops = &ops, .granule_bytes = 1, .adjacent = true};
    self->cap_bytes = cap_bytes;
}

void fake_backing_virtual(struct fake_backing *self, uint64_t page_bytes, uint64_t total_bytes)
{
    self->base.page_bytes = page_bytes;
    self->total_bytes = total_bytes;
}
