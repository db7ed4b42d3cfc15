/* The table of readers of other programs' files. */
#include "workloads/formats/formats.h"

#define FORMAT(name) extern const struct format_reader format_##name;
#include "workloads/formats/formats.def"
#undef FORMAT

static const struct format_reader *const readers[] = {
#define FORMAT(name) &format_##name,
#include "workloads/formats/formats.def"
#undef FORMAT
    NULL,
};

const struct format_reader *format_reader_at(size_t index)
{
    return index < sizeof readers / sizeof *readers ? readers[index] : NULL;
}

const struct format_reader *format_reader_for(const char *head, size_t count)
{
    for (size_t i = 0; readers[i]; i++)
        if (readers[i]->matches(head, count))
            return readers[i];
    return NULL;
}
