#include "workloads/formats/writers.h"

const struct format_writer *format_writer_at(size_t index)
{
    static const struct format_writer *const writers[] = {
        &format_writer_snapshot, &format_writer_rmm, &format_writer_minimalloc,
        &format_writer_oracle};
    return index < sizeof writers / sizeof *writers ? writers[index] : NULL;
}
