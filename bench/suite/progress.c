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

void progress_step(struct progress *self, const char *label)
{
    self->done++;
    if (!self->shown)
        return;
    uint64_t now = latency_clock_ns();
    if (now - self->drawn_ns < REDRAW_NS)
        return;
    self->drawn_ns = now;
    double spent_s = (double)(now - self->began_ns) / 1e9;
    double left_s = spent_s * (double)(self->total - self->done) / (double)self->done;
    fprintf(stderr, "\r\033[K%zu of %zu, %.0f:%02.0f left: %.50s", self->done, self->total,
            (double)(long)(left_s / 60), (double)((long)left_s % 60), label);
    fflush(stderr);
}

void progress_end(struct progress *self)
{
    if (self->shown)
        fprintf(stderr, "\r\033[K");
}
