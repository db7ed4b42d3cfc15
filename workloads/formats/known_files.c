/* A table of forms by their first bytes, and, for files whose content says little, by the ending of
 * the name. Only forms that no reader takes get here, so the table need not tell them apart from
 * those that are read. */
#include "workloads/formats/formats.h"

#include <stdbool.h>
#include <string.h>

#include "workloads/io/fields.h"

#define RECORD_TORCH                                                                               \
    "a memory snapshot has the requests (torch.cuda.memory._record_memory_history, "               \
    "_dump_snapshot)"
#define READ_ASSIGNMENT "give the file *-buffer-assignment.txt of the same dump"
#define EXPORT_NSYS     "export it: nsys export --type sqlite"

struct known_file {
    const char *begins;   /* after white space; NULL: anything */
    const char *holds[2]; /* texts in the first bytes; NULL: none more */
    const char *ending;   /* of the name; NULL: any */
    const char *what;     /* "this is WHAT" */
    const char *instead;  /* what to do; NULL: `list formats` says what is read */
};

/* The first that applies. */
static const struct known_file known_files[] = {
    {"HloModule ", {NULL}, NULL, "a module of XLA (HLO text), without its memory", READ_ASSIGNMENT},
    {"HloLiveRange (max ",
     {NULL},
     NULL,
     "the list of live ranges of a module of XLA, without sizes",
     READ_ASSIGNMENT ", which takes them from this file if both are in one folder"},
    {NULL,
     {"Used values:", "Total bytes used:"},
     NULL,
     "the list of values of a module of XLA, without their places",
     READ_ASSIGNMENT},
    {NULL,
     {"cumulative_size"},
     NULL,
     "a memory usage report of XLA, with rounded sizes",
     READ_ASSIGNMENT},
    {"\n",
     {"/host:"},
     NULL,
     "a trace of XLA's profiler (XSpace)",
     "it has no requests; give a device memory profile "
     "(jax.profiler.save_device_memory_profile)"},
    {"\n",
     {"/device:"},
     NULL,
     "a trace of XLA's profiler (XSpace)",
     "it has no requests; give a device memory profile "
     "(jax.profiler.save_device_memory_profile)"},
    {NULL,
     {"PyTorch CUDA memory summary"},
     NULL,
     "a memory summary of PyTorch, without requests",
     RECORD_TORCH},
    {NULL, {"NVIDIA-SMI"}, NULL, "the output of nvidia-smi, without requests", NULL},
    {NULL,
     {"out of memory"},
     NULL,
     "a log with an out-of-memory message",
     "`allocrig explain --message FILE` explains it"},
    {NULL,
     {"OutOfMemoryError"},
     NULL,
     "a log with an out-of-memory message",
     "`allocrig explain --message FILE` explains it"},
    {NULL,
     {"RESOURCE_EXHAUSTED"},
     NULL,
     "a log with an out-of-memory message",
     "`allocrig explain --message FILE` explains it"},
    {NULL, {NULL}, ".nsys-rep", "a report of Nsight Systems", EXPORT_NSYS},
    {NULL, {NULL}, ".qdrep", "a report of Nsight Systems", EXPORT_NSYS},
    {NULL, {NULL}, ".ncu-rep", "a report of Nsight Compute, which has no requests", NULL},
    {"<!DOCTYPE", {NULL}, NULL, "an HTML page", "give the file that it was made from"},
    {"<!doctype", {NULL}, NULL, "an HTML page", "give the file that it was made from"},
    {"<html", {NULL}, NULL, "an HTML page", "give the file that it was made from"},
    {"<?xml", {NULL}, NULL, "an XML file", NULL},
    {"%PDF-", {NULL}, NULL, "a PDF document", NULL},
    {"\x89PNG", {NULL}, NULL, "a picture (PNG)", NULL},
    {"\x7f"
     "ELF",
     {NULL},
     NULL,
     "a program or library (ELF)",
     "`allocrig record -o FILE -- PROGRAM` records one"},
    {"PK\x03\x04", {NULL}, NULL, "a zip archive", "unpack it, and give the file in it"},
    {"BZh",
     {NULL},
     NULL,
     "a file packed with bzip2",
     "unpack it; gzip and zstd are read as they are"},
    {"\xfd"
     "7zXZ",
     {NULL},
     NULL,
     "a file packed with xz",
     "unpack it; gzip and zstd are read as they are"},
    {"{",
     {"traceEvents"},
     NULL,
     "a Chrome trace without memory events of PyTorch's profiler",
     "profile with profile_memory=True"},
};

static bool begins_with(const char *head, size_t count, const char *stem)
{
    size_t length = strlen(stem);
    if (*stem == '\n') /* a tag of a protobuf, not white space */
        return count >= length && !memcmp(head, stem, length);
    size_t at = head_blanks(head, count, 0);
    return count - at >= length && !memcmp(head + at, stem, length);
}

static bool applies(const struct known_file *file, const char *path, const char *head, size_t count)
{
    if (file->begins && !begins_with(head, count, file->begins))
        return false;
    for (size_t i = 0; i < 2 && file->holds[i]; i++)
        if (!head_holds(head, count, file->holds[i]))
            return false;
    return !file->ending || field_ends_with(path, file->ending);
}

/* An object, or an array of objects, arrays or texts. */
static bool is_json(const char *head, size_t count)
{
    size_t at = head_blanks(head, count, 0);
    size_t next = at < count ? head_blanks(head, count, at + 1) : count;
    return next < count && ((head[at] == '{' && strchr("\"}", head[next])) ||
                            (head[at] == '[' && strchr("{[\"]", head[next])));
}

enum ar_status known_file_refuse(const char *path, const char *head, size_t count,
                                 struct ar_error *error)
{
    const char *what = NULL, *instead = NULL;
    for (size_t i = 0; i < sizeof known_files / sizeof *known_files && !what; i++)
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
