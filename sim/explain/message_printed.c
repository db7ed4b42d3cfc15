/* Counters of PyTorch that a program printed without a failure: memory_allocated() and
 * memory_reserved() under any label, the table of memory_summary(), the keys of memory_stats(),
 * DeepSpeed's line (MA, Max_MA, CA), Megatron's line. Both what is allocated and what is reserved
 * must be there, or the most of both; of several moments or devices the last one with both counts.
 */
#include <ctype.h>

#include "allocators/base/fnv.h"
#include "sim/explain/message_text.h"

#define LABEL_GAP   24 /* the most characters between a label and its number */
#define DEVICE_MOST 12 /* the most characters of a device, as in memory_allocated('cuda:1') */

#define CARD_MOST (UINT64_C(1) << 42) /* no card has more: such a figure has another unit */

/* Longer labels first. */
static const struct label {
    const char *words;
    enum message_figure_name figure;
    bool table; /* the second column is the peak */
} labels[] = {
    {"allocated_bytes.all.current", MESSAGE_FIGURE_ALLOCATED, false},
    {"allocated_bytes.all.peak", MESSAGE_FIGURE_PEAK, false},
    {"reserved_bytes.all.current", MESSAGE_FIGURE_RESERVED, false},
    {"inactive_split_bytes.all.current", MESSAGE_FIGURE_UNRELEASABLE, false},
    {"non-releasablememory|", MESSAGE_FIGURE_UNRELEASABLE, false},
    {"gpureservedmemory|", MESSAGE_FIGURE_RESERVED, true},
    {"allocatedmemory|", MESSAGE_FIGURE_ALLOCATED, true},
    {"memory_allocated", MESSAGE_FIGURE_ALLOCATED, false},
    {"memory_reserved", MESSAGE_FIGURE_RESERVED, false},
    {"memory_cached", MESSAGE_FIGURE_RESERVED, false},
    {"mem_allocated", MESSAGE_FIGURE_ALLOCATED, false},
    {"mem_reserved", MESSAGE_FIGURE_RESERVED, false},
    {"memoryallocated", MESSAGE_FIGURE_ALLOCATED, false},
    {"memoryreserved", MESSAGE_FIGURE_RESERVED, false},
    {"allocatedmemory", MESSAGE_FIGURE_ALLOCATED, false},
    {"occupiedmemory", MESSAGE_FIGURE_ALLOCATED, false},
    {"reservedmemory", MESSAGE_FIGURE_RESERVED, false},
    {"cachedmemory", MESSAGE_FIGURE_RESERVED, false},
    {"active_bytes", MESSAGE_FIGURE_ALLOCATED, false},
    {"activebytes", MESSAGE_FIGURE_ALLOCATED, false},
    {"reserved_bytes", MESSAGE_FIGURE_RESERVED, false},
    {"alloccur", MESSAGE_FIGURE_ALLOCATED, false},
    {"allocpeak", MESSAGE_FIGURE_PEAK, false},
    {"allocated", MESSAGE_FIGURE_ALLOCATED, false},
    {"reserved", MESSAGE_FIGURE_RESERVED, false},
    {"cached", MESSAGE_FIGURE_RESERVED, false},
};

/* The unit in a label, "(mb)" or "[gb]", as a power of two; -1: none. */
static int unit_in(const char *label, size_t length)
{
    static const struct {
        const char *words;
        int shift;
    } units[] = {{"mb", 20}, {"mib", 20}, {"gb", 30}, {"gib", 30}, {"kb", 10}, {"kib", 10}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        const char *at = memmem(label, length, units[i].words, strlen(units[i].words));
        if (at && at > label && strchr("([_", at[-1]))
            return units[i].shift;
    }
    return -1;
}

/* The length of a device after a label: (0), (), ('cuda:1'). A size in brackets is none. */
static size_t device_length(const struct message_text *text, size_t at)
{
    struct message_figure size;
    size_t length = text->chars[at] == '(' ? strcspn(text->chars + at, ")") : 0;
    return length && length < DEVICE_MOST && unit_in(text->chars + at, length) < 0 &&
                   message_text_size(text, at + 1, &size) == MESSAGE_NOWHERE
               ? length + 1
               : 0;
}

/* A counter with a fraction but without a unit is in GiB: no part of a byte is counted, and a pool
 * has steps of 2 MiB, so what is reserved would be even in MiB. */
static size_t read_gib(const struct message_text *text, size_t at, const struct label *label,
                       struct message_figure *figure)
{
    const uint64_t step = UINT64_C(2) << 20;
    struct message_figure mib;
    size_t end = message_text_number(text, at, 30, figure);
    uint64_t rest = figure->bytes % step;
    bool near = rest <= figure->coarse_bytes || step - rest <= figure->coarse_bytes;
    (void)message_text_number(text, at, 20, &mib);
    return figure->bytes <= MESSAGE_ANY_CARD && strstr(label->words, "mem") &&
                   (label->figure != MESSAGE_FIGURE_RESERVED || (near && mib.bytes % step != 0))
               ? end
               : MESSAGE_NOWHERE;
}

/* The number after a label. Code that prints counters is no number: it has braces. */
static size_t read_value(const struct message_text *text, size_t at, const struct label *label,
                         int unit, struct message_figure *figure)
{
    size_t begin = at;
    at += device_length(text, at);
    for (; at < text->count && at - begin < LABEL_GAP; at++) {
        char c = text->chars[at];
        if (strchr("{}/*+;", c))
            return MESSAGE_NOWHERE;
        if (!isdigit((unsigned char)c))
            continue;
        bool joined = at > begin && !message_text_apart(text, at) &&
                      isalnum((unsigned char)text->chars[at - 1]);
        if (joined || (at > begin && message_text_ends(text, "cuda:", at)))
            continue; /* of a device's name: gpu0, cuda:0 */
        int own = unit_in(text->chars + begin, at - begin);
        size_t end = message_text_number(text, at, own >= 0 ? own : unit, figure);
        /* Small numbers without a unit are no bytes. */
        bool bare = end != MESSAGE_NOWHERE && isdigit((unsigned char)text->chars[end - 1]);
        if (bare && own < 0 && unit <= 0 && figure->bytes && figure->bytes < UINT64_C(1) << 16)
            return MESSAGE_NOWHERE;
        return end == MESSAGE_NOWHERE && unit <= 0 ? read_gib(text, at, label, figure) : end;
    }
    return MESSAGE_NOWHERE;
}

static const struct label *label_at(const struct message_text *text, size_t at)
{
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++)
        if (strncmp(text->chars + at, labels[i].words, strlen(labels[i].words)) == 0)
            return &labels[i];
    return NULL;
}

/* "MA N GB Max_MA N GB CA N GB Max_CA N GB" */
static void read_deepspeed(const struct message_text *text, struct message *self)
{
    struct message_figure *figures = self->figures;
    for (size_t at = 0;
         (at = message_text_find(text, "max_ma", at, text->count)) != MESSAGE_NOWHERE; at++) {
        size_t end = message_text_size(text, at + 6, &figures[MESSAGE_FIGURE_PEAK]);
        if (end == MESSAGE_NOWHERE || strncmp(text->chars + end, "ca", 2) != 0 ||
            !message_text_size_before(text, at, &figures[MESSAGE_FIGURE_ALLOCATED]))
            continue;
        (void)message_text_size(text, end + 2, &figures[MESSAGE_FIGURE_RESERVED]);
    }
}

#define RECORDS 16 /* devices and ranks whose counters may be interleaved */

/* The counters of one device or rank. */
struct record {
    uint64_t who; /* 0: not named */
    struct message message;
    struct message_figure reserved_peak;
};

/* Whose counters the label at `at` is of: the device behind it, the rank that its line begins with,
 * or the one that a launcher wrote before the line. 0: not named. */
static uint64_t who_has(const struct message_text *text, size_t at, size_t words)
{
    static const char *const names[] = {"rank", "gpu", "cuda", "device"};
    size_t length = device_length(text, at + words), end;
    uint64_t number;
    if (length)
        return ar_fnv64(AR_FNV64_SEED, text->chars + at + words, length);
    for (size_t i = at; i > 0 && at - i < DEVICE_MOST && text->gaps[i--] != MESSAGE_GAP_LINE;)
        for (size_t j = 0; j < sizeof names / sizeof *names; j++)
            if (length = strlen(names[j]),
                strncmp(text->chars + i, names[j], length) == 0 &&
                    (length += text->chars[i + length] == ':',
                     end = message_text_count(text, i + length, &number)) != MESSAGE_NOWHERE &&
                    end <= at)
                return number + 1;
    return text->ranks[at];
}

/* The record of `who`; a new one, in place of the last one if there are too many. */
static struct record *record_of(struct record records[RECORDS], uint64_t who)
{
    size_t i = 0;
    while (i + 1 < RECORDS && records[i].who && records[i].who != who)
        i++;
    if (records[i].who != who)
        records[i] = (struct record){.who = who};
    return &records[i];
}

/* `unit`: of numbers without one, as a power of two; 0: bytes. */
static void read_label(const struct message_text *text, size_t at, const struct label *label,
                       int unit, struct record *record)
{
    static const char *const peaks[] = {"max", "max_", "peak", "peak_", "maximum"};
    struct message *self = &record->message;
    struct message_figure figure, peak;
    enum message_figure_name name = label->figure;
    bool highest = false;
    if (message_text_ends(text, "not", at) || message_text_ends(text, "un", at))
        return; /* "not reserved", "unallocated" */
    size_t end = at + strlen(label->words);
    size_t before = at;
    static const char *const devices[] = {"gpu", "cuda", "memory"};
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
        before -= message_text_ends(text, devices[i], before) ? strlen(devices[i]) : 0;
    for (size_t i = 0; i < sizeof peaks / sizeof *peaks; i++)
        highest |= message_text_ends(text, peaks[i], at) ||
                   message_text_ends(text, peaks[i], before) ||
                   strncmp(text->chars + end, peaks[i], strlen(peaks[i])) == 0;
    bool reserved_peak = highest && name == MESSAGE_FIGURE_RESERVED;
    if (highest)
        name = MESSAGE_FIGURE_PEAK;
    /* "5 GiB allocated, 6 GiB reserved" */
    bool after = strchr(",;)/.", text->chars[end]) != NULL;
    if (!after || !message_text_size_before(text, at, &figure))
        end = read_value(text, end, label, unit, &figure);
    if (end == MESSAGE_NOWHERE || !figure.known || figure.bytes > CARD_MOST)
        return;
    if (reserved_peak) {
        record->reserved_peak = figure;
        return;
    }
    if (self->figures[name].known) /* of another moment */
        memset(self->figures, 0, sizeof self->figures);
    self->figures[name] = figure;
    if (label->table && name == MESSAGE_FIGURE_ALLOCATED && text->chars[end] == '|' &&
        message_text_size(text, end + 1, &peak) != MESSAGE_NOWHERE)
        self->figures[MESSAGE_FIGURE_PEAK] = peak;
}

/* Without what is allocated and reserved now, the most of both that there ever was. */
static void take_peaks(const struct record *record, struct message *self)
{
    const struct message_figure *figures = record->message.figures;
    if (!record->reserved_peak.known || !figures[MESSAGE_FIGURE_PEAK].known ||
        figures[MESSAGE_FIGURE_ALLOCATED].known || figures[MESSAGE_FIGURE_RESERVED].known ||
        self->figures[MESSAGE_FIGURE_ALLOCATED].known)
        return;
    *self = record->message;
    self->figures[MESSAGE_FIGURE_RESERVED] = record->reserved_peak;
}

bool message_read_printed(const struct message_text *text, struct message *self)
{
    struct record records[RECORDS] = {{0}}, *record = records;
    int unit = message_text_has(text, "memory(mb)|") ? 20 : 0; /* Megatron's line */
    for (size_t at = 0; at < text->count; at++) {
        const struct label *label = strchr("anrgmoic", text->chars[at]) ? label_at(text, at) : NULL;
        if (!label)
            continue;
        uint64_t who = who_has(text, at, strlen(label->words));
        record = who ? record_of(records, who) : record;
        read_label(text, at, label, unit, record);
        at += strlen(label->words) - 1;
        take_peaks(record, self);
        if (record->message.figures[MESSAGE_FIGURE_ALLOCATED].known &&
            record->message.figures[MESSAGE_FIGURE_RESERVED].known)
            *self = record->message;
    }
    read_deepspeed(text, self);
    self->printed = true;
    self->count = self->taken = 1;
    return (self->figures[MESSAGE_FIGURE_ALLOCATED].known ||
            self->figures[MESSAGE_FIGURE_PEAK].known) &&
           self->figures[MESSAGE_FIGURE_RESERVED].known &&
           self->figures[MESSAGE_FIGURE_RESERVED].bytes > 0;
}
