#include "bench/suite/progress.h"

#include <stdio.h>
#include <unistd.h>

#include "sim/replay/latency.h"

#define REDRAW_NS UINT64_C(100000000)

void progress_begin(struct progress *self, size_t total)
{
    uint64_t now = latency_clock_ns();
    *self = (struct progress){
        .shown = isatty(STDERR_FILENO) == 1, .total = total, .began_ns = now, .drawn_ns = now};
}

void progress_text(const struct progress *self, uint64_t now_ns, const char *label, char *text,
                   size_t room)
{
    double spent_s = (double)(now_ns - self->began_ns) / 1e9;
    long left_s = (long)(spent_s * (double)(self->total - self->done) / (double)self->done);
    snprintf(text, room, "%zu of %zu, %ld:%02ld left: %.50s", self->done, self->total, left_s / 60,
             left_s % 60, label);
}

void progress_step(struct progress *self, const char *label)
{
    self->done++;
    if (!self->shown)
        return;
    uint64_t now = latency_clock_ns();
    if (now - self->drawn_ns < REDRAW_NS)
        return;
    self->drawn_ns = now;
    char text[160];
    progress_text(self, now, label, text, sizeof text);
    fprintf(stderr, "\r\033[K%s", text);
    fflush(stderr);
}

void progress_end(struct progress *self)
{
    if (self->shown)
        fprintf(stderr, "\r\033[K");
}
