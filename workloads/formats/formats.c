/* Opening a trace of any known format, by its first bytes and not by its name; naming files that
 * are no traces; and writing one in the form of another program. */
#include "workloads/formats/formats.h"

#include "workloads/io/fields.h"
#include "workloads/trace/forms.h"
#include "workloads/trace/filter.h"

#define FORMAT(name) extern const struct format_reader format_##name;
#include "workloads/formats/formats.def"
FORMAT(csv)
#undef FORMAT

static const struct format_reader *const readers[] = {
#define FORMAT(name) &format_##name,
#include "workloads/formats/formats.def"
#undef FORMAT
    NULL,
};

const struct format_reader *format_reader_at(size_t index)
{
    return index < AR_COUNT(readers) ? readers[index] : NULL;
}

/* ---- files that are no traces ---- */

/* A table of forms by their first bytes, and, for files whose content says little, by the ending of
 * the name. Only forms that no reader takes get here, so the table need not tell them apart from
 * those that are read. */
struct known_file {
    const char *begins;  /* after white space; NULL: anything */
    const char *holds;   /* a text in the first bytes; NULL: any */
    const char *ending;  /* of the name; NULL: any */
    const char *what;    /* "this is WHAT" */
    const char *instead; /* what to do; NULL: `list formats` says what is read */
};

#define RECORD_TORCH                                                                               \
    "a memory snapshot has the requests (torch.cuda.memory._record_memory_history, "               \
    "_dump_snapshot)"
#define READ_ASSIGNMENT "give the file *-buffer-assignment.txt of the same dump"
#define EXPORT_NSYS     "export it: nsys export --type sqlite"
#define XSPACE          "a trace of XLA's profiler (XSpace)"
#define PROFILE_DEVICE                                                                             \
    "it has no requests; give a device memory profile "                                            \
    "(jax.profiler.save_device_memory_profile)"
#define OUT_OF_MEMORY "a log with an out-of-memory message"
#define EXPLAIN       "`allocrig explain --message FILE` explains it"
#define GIVE_SOURCE   "give the file that it was made from"
#define AS_UTF8       "save it as UTF-8"
#define UNPACK        "unpack it; gzip and zstd are read as they are"

/* The first that applies. */
static const struct known_file known_files[] = {
    {"HloModule ", NULL, NULL, "a module of XLA (HLO text), without its memory", READ_ASSIGNMENT},
    {"HloLiveRange (max ", NULL, NULL, "the list of live ranges of a module of XLA, without sizes",
     READ_ASSIGNMENT ", which takes them from this file if both are in one folder"},
    {NULL, "B)\n\nUsed values:\n", NULL,
     "the list of values of a module of XLA, without their places", READ_ASSIGNMENT},
    {NULL, "cumulative_size", NULL, "a memory usage report of XLA, with rounded sizes",
     READ_ASSIGNMENT},
    {"\n", "/host:", NULL, XSPACE, PROFILE_DEVICE},
    {"\n", "/device:", NULL, XSPACE, PROFILE_DEVICE},
    {NULL, "PyTorch CUDA memory summary", NULL, "a memory summary of PyTorch, without requests",
     RECORD_TORCH},
    {NULL, "NVIDIA-SMI", NULL, "the output of nvidia-smi, without requests", NULL},
    {NULL, "out of memory", NULL, OUT_OF_MEMORY, EXPLAIN},
    {NULL, "OutOfMemoryError", NULL, OUT_OF_MEMORY, EXPLAIN},
    {NULL, "RESOURCE_EXHAUSTED", NULL, OUT_OF_MEMORY, EXPLAIN},
    {NULL, NULL, ".nsys-rep", "a report of Nsight Systems", EXPORT_NSYS},
    {NULL, NULL, ".qdrep", "a report of Nsight Systems", EXPORT_NSYS},
    {NULL, NULL, ".ncu-rep", "a report of Nsight Compute, which has no requests", NULL},
    {"<!DOCTYPE", NULL, NULL, "an HTML page", GIVE_SOURCE},
    {"<!doctype", NULL, NULL, "an HTML page", GIVE_SOURCE},
    {"<html", NULL, NULL, "an HTML page", GIVE_SOURCE},
    {"<?xml", NULL, NULL, "an XML file", NULL},
    {"%PDF-", NULL, NULL, "a PDF document", NULL},
    {"\x89PNG", NULL, NULL, "a picture (PNG)", NULL},
    {"\177ELF", NULL, NULL, "a program or library (ELF)",
     "`allocrig record -o FILE -- PROGRAM` records one"},
    {"PK\x03\x04", NULL, NULL, "a zip archive", "unpack it, and give the file in it"},
    {"\xff\xfe", NULL, NULL, "a text in UTF-16", AS_UTF8},
    {"\xfe\xff", NULL, NULL, "a text in UTF-16", AS_UTF8},
    {"BZh", NULL, NULL, "a file packed with bzip2", UNPACK},
    {"\3757zXZ", NULL, NULL, "a file packed with xz", UNPACK},
    {"{", "traceEvents", NULL, "a Chrome trace without memory events of PyTorch's profiler",
     "profile with profile_memory=True"},
};

static bool begins_with(const char *head, size_t count, const char *stem)
{
    size_t length = strlen(stem);
    return count >= length && !memcmp(head, stem, length);
}

static bool applies(const struct known_file *file, const char *path, const char *head, size_t count)
{
    /* "\n" is a tag of a protobuf, not white space */
    size_t at = file->begins && *file->begins != '\n' ? head_blanks(head, count, 0) : 0;
    return (!file->begins || begins_with(head + at, count - at, file->begins)) &&
           (!file->holds || head_holds(head, count, file->holds)) &&
           (!file->ending || field_ends_with(path, file->ending));
}

/* An object, or an array of objects, arrays or texts. */
static bool is_json(const char *head, size_t count)
{
    size_t at = head_blanks(head, count, 0);
    size_t next = at < count ? head_blanks(head, count, at + 1) : count;
    return next < count && ((head[at] == '{' && strchr("\"}", head[next])) ||
                            (head[at] == '[' && strchr("{[\"]", head[next])));
}

/* For a file that no reader takes, by its first bytes: FORMAT with a sentence; OK if they may be a
 * trace in text, or are of no known form. */
static enum ar_status refuse_known(const char *path, const char *head, size_t count,
                                   struct ar_error *error)
{
    const char *what = NULL, *instead = NULL;
    for (size_t i = 0; i < AR_COUNT(known_files) && !what; i++)
        if (applies(&known_files[i], path, head, count)) {
            what = known_files[i].what;
            instead = known_files[i].instead;
        }
    if (!what && is_json(head, count))
        what = "JSON of an unknown form";
    if (!what && count && memchr(head, 0, count))
        what = "a binary file of an unknown form";
    if (!what)
        return AR_OK;
    return ar_error_set(error, AR_FORMAT, "%s: no trace: this is %s; %s", path, what,
                        instead ? instead : "`list formats` names the files that are read");
}

/* ---- opening ----------------------------------------------------------------------------- */

/* How to open a file. */
struct opening {
    bool lenient;
    const uint32_t *device; /* this GPU only; NULL: all */
    bool picked;            /* the reader omitted the others */
};

/* A refusal names its file, if it does not yet. */
static enum ar_status name_file(enum ar_status status, const char *name, struct ar_error *error)
{
    bool refused = (status == AR_FORMAT || status == AR_INVALID) && error;
    if (refused && strncmp(error->text, name, strlen(name)) != 0)
        (void)ar_error_prefix(error, status, "%s", name);
    return status;
}

/* Runs a reader and closes the input. */
static enum ar_status read_with(const struct format_reader *reader, struct trace_input *input,
                                struct opening *opening, struct trace_source **out,
                                struct ar_error *error)
{
    struct format_reading reading = {.input = input,
                                     .lenient = opening->lenient,
                                     .device = reader->picks_device ? opening->device : NULL,
                                     .info.complete = true,
                                     .report = calloc(1, sizeof *reading.report)};
    struct trace_source *source = NULL;
    trace_name_from_path(trace_input_path(input), reading.info.name, sizeof reading.info.name);
    (void)snprintf(reading.info.format, sizeof reading.info.format, "%s", reader->name);
    opening->picked = reading.device != NULL;
    if (!reader->own)
        trace_input_guard(input);
    enum ar_status status =
        reading.report ? reader->read(&reading, error) : format_no_memory(error);
    (void)name_file(status, trace_input_path(input), error);
    trace_input_close(input);
    status = trace_memory_finish(reading.memory, status, &source, error);
    if (status) {
        trace_stats_close(&reading.stats);
        free(reading.report);
        return status;
    }
    source->stats = reading.stats;
    if (reader->own) {
        free(reading.report);
    } else {
        source->info.complete &= !reading.report->ends_in_failure;
        source->report = reading.report;
    }
    *out = source;
    return AR_OK;
}

static enum ar_status open_any(const char *path, struct opening *opening, struct trace_source **out,
                               struct ar_error *error)
{
    struct trace_input *input;
    AR_TRY(trace_input_open(path, &input, error));
    char bytes[FORMAT_HEAD_BYTES];
    size_t count = 0;
    enum ar_status status = trace_input_head(input, bytes, sizeof bytes, &count, error);
    if (status) {
        trace_input_close(input);
        return status;
    }
    const char *head = bytes;
    if (begins_with(head, count, "\xef\xbb\xbf")) {
        head += 3;
        count -= 3;
    }
    if (begins_with(head, count, BINARY_MAGIC))
        return trace_binary_open(input, out, error);
    if (begins_with(head, count, FORMAT_CSV_COLUMNS))
        return read_with(&format_csv, input, opening, out, error);
    if (begins_with(head, count, TRACE_TEXT_FIRST_LINE))
        return trace_text_open(input, out, error);
    for (size_t i = 0; readers[i]; i++)
        if (readers[i]->matches(head, count))
            return read_with(readers[i], input, opening, out, error);
    status = refuse_known(path, head, count, error);
    if (!status)
        return trace_text_open(input, out, error);
    trace_input_close(input);
    return status;
}

enum ar_status trace_open(const char *path, struct trace_source **out, struct ar_error *error)
{
    return open_any(path, &(struct opening){0}, out, error);
}

enum ar_status trace_open_recording(const char *path, struct trace_source **out,
                                    struct ar_error *error)
{
    return open_any(path, &(struct opening){.lenient = true}, out, error);
}

/* INVALID if the trace has requests, and none of that GPU. */
static enum ar_status find_device(const char *path, const struct trace_info *info, uint32_t device,
                                  struct ar_error *error)
{
    char list[256] = "";
    bool has = device < 64 ? info->gpus >> device & 1 : info->has_far_gpu;
    if (has || (!info->gpus && !info->has_far_gpu))
        return AR_OK;
    for (unsigned i = 0, used = 0; i < 64; i++)
        if (info->gpus >> i & 1)
            used +=
                (unsigned)snprintf(list + used, sizeof list - used, "%s%u", used ? ", " : "", i);
    return ar_invalid(error, "%s: it has no requests of GPU %u; it has those of GPU %s", path,
                      device, list[0] ? list : "64 or above");
}

enum ar_status trace_open_device(const char *path, uint32_t device, bool lenient,
                                 struct trace_source **out, struct ar_error *error)
{
    struct opening opening = {.device = &device, .lenient = lenient};
    struct trace_source *source = NULL;
    enum ar_status status = open_any(path, &opening, &source, error);
    if (status || opening.picked) {
        *out = source;
        return status;
    }
    status = find_device(path, &source->info, device, error);
    if (status) {
        trace_close(source);
        return status;
    }
    const struct trace_filter_options options = {.device = &device};
    struct import_report *report = source->report;
    source->report = NULL;
    status = trace_filter(source, &options, out, error);
    if (status) {
        free(report);
        return ar_error_prefix(error, status, "%s", path);
    }
    (*out)->report = report;
    return AR_OK;
}

/* ---- writing ----------------------------------------------------------------------------- */

const struct format_writer *format_writer_at(size_t index)
{
    static const struct format_writer *const writers[] = {
        &format_writer_snapshot, &format_writer_rmm, &format_writer_minimalloc,
        &format_writer_oracle};
    return index < AR_COUNT(writers) ? writers[index] : NULL;
}

enum ar_status format_write(const struct format_writer *writer, struct trace_source *source,
                            const char *path, bool compress, struct ar_error *error)
{
    struct trace_output *output;
    const struct trace_info *info = &source->info;
    if (info->counted && !info->gpus && !info->has_far_gpu) /* readers refuse such a file */
        return ar_invalid(error,
                          "%s: it has no requests: only a trace of allocrig can be without any",
                          info->name);
    AR_TRY(trace_output_open(path, compress, &output, error));
    enum ar_status status = name_file(writer->write(source, output, error), info->name, error);
    if (!status)
        return trace_output_commit(output, error);
    trace_output_discard(output);
    return status;
}

/* ---- for readers ------------------------------------------------------------------------- */

enum ar_status format_no_memory(struct ar_error *error)
{
    return ar_error_set(error, AR_HOST_MEMORY, "no host memory to read a file");
}

enum ar_status format_start(struct format_reading *reading, struct ar_error *error)
{
    reading->memory = trace_memory_create(&reading->info);
    return reading->memory ? AR_OK : format_no_memory(error);
}

enum ar_status format_event(struct format_reading *reading, struct trace_event event,
                            const struct trace_attributes *keys, const char *text,
                            struct ar_error *error)
{
    return trace_memory_append(reading->memory, &event, keys, text, error);
}

enum ar_status format_note(struct format_reading *reading, struct ar_error *error,
                           const char *format, ...)
{
    char text[192];
    AR_PRINT(text, sizeof text, format);
    return format_event(reading, (struct trace_event){.kind = TRACE_NOTE}, NULL, text, error);
}

enum ar_status format_note_numbers(struct format_reading *reading, const char *verb,
                                   const uint64_t *numbers, size_t count, struct ar_error *error)
{
    char text[128];
    int used = snprintf(text, sizeof text, "%s", verb);
    for (size_t i = 0; i < count; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, ",%" PRIu64, numbers[i]);
    return format_event(reading, (struct trace_event){.kind = TRACE_NOTE}, NULL, text, error);
}

enum ar_status format_failure(struct format_reading *reading, struct trace_event request,
                              const struct trace_attributes *keys, bool more_follow,
                              const char *note, struct ar_error *error)
{
    const struct trace_event end = {
        .kind = TRACE_FREE_REQUESTED, .id = request.id, .stream = TRACE_NO_STREAM};
    request.kind = more_follow ? TRACE_PROBE : TRACE_ALLOC;
    reading->report->failures++;
    reading->report->ends_in_failure = !more_follow;
    AR_TRY(format_event(reading, request, keys, NULL, error));
    AR_TRY(format_event(reading, (struct trace_event){.kind = TRACE_NOTE}, NULL, note, error));
    return format_event(reading, end, NULL, NULL, error);
}
