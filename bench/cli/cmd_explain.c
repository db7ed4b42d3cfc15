/* `explain`: explains why a program ran out of memory. */
#include <errno.h>
#include <strings.h>
#include <sys/stat.h>

#include "allocators/base/size.h"
#include "bench/cli/cli.h"
#include "bench/report/output_file.h"
#include "bench/report/pages.h"
#include "bench/suite/plan.h"
#include "sim/advise/advise.h"
#include "sim/experiment/session.h"
#include "workloads/workload.h"

struct arguments {
    const char *message, *json;
    uint64_t capacity_bytes; /* 0: that of the device, or the recorded one */
    struct suite suite;
};

static const struct cli_option options[] = {
    {CLI_HEADING("Options:")},
    {'p', "policy", "SPEC",
     "a policy, NAME:key=value,...; default: the one that imitates the recorded allocator",
     CLI_SUITE(cli_suite_policy), .many = true},
    {'d', "device", "DEVICE",
     "a simulated device, such as sim:capacity=24GiB; default: the recorded card, or sim; a number "
     "N: only GPU N of the trace",
     CLI_SUITE(cli_suite_key), .many = true},
    {CLI_CARD_ROW, CLI_SUITE(cli_suite_card)},
    {CLI_CAPACITY_ROW, CLI_CARD(capacity_bytes)},
    {0, "frees", "MODE", "ordered (default), at-once or recorded", CLI_SUITE(cli_suite_key)},
    {0, "host", "MODE", "host time: none (default), recorded or open", CLI_SUITE(cli_suite_key)},
    {0, "seed", "N", "seed of policies that use random numbers", CLI_SUITE(cli_suite_key)},
    {0, "jobs", "N", "workers for the re-runs; default: one for each processor",
     CLI_SUITE(cli_suite_key)},
    {0, "json", "FILE", "write the explanation as JSON; - is standard output", CLI_FILE(json)},
    {0, "message", "TEXT", "a message, a file with one, or - for standard input",
     CLI_TEXT(message)},
    {0},
};

static const struct cli_page page = {
    .arguments = "TRACE [-p SPEC] [--capacity BYTES] [options]\n--message TEXT",
    .text =
        "Explains why the run of a trace under a policy ran out of memory, with the memory map\n"
        "at that moment and the changes that would have helped. With --message, or for a text or\n"
        "file that is one, explains an out-of-memory message of PyTorch, TensorFlow, JAX, CuPy, "
        "RMM or another program\n"
        "(`allocrig list messages`). The cause follows from its figures: impossible,\n"
        "not-the-allocator, fragmentation, tenant, outside, tenant-or-outside,\n"
        "fragmentation-possible, capacity, host-memory, cached or cannot-be-told.",
    .options = options,
    .argument = {CLI_SUITE(cli_suite_workload)},
};

/* ---- messages in files ----------------------------------------------------------------------
 *
 * 1. The file is read through a window of WINDOW_BYTES, so memory is bounded and lines may have any
 *    length.
 * 2. A message may have many lines, and its end is needed. A message that begins in the second half
 *    of the window is read again after the window has moved on by half its size, less BEFORE_BYTES.
 * 3. If no window has a complete message, the error names what the first one lacks.
 * 4. Of a pipe or a device, which may have no end, STREAM_BYTES are read. */

#define WINDOW_BYTES ((size_t)8 << 20)
#define FIRST_BYTES  ((size_t)1 << 16) /* first size of the window; most files are short */
#define STREAM_BYTES ((size_t)64 << 20)
#define BEFORE_BYTES ((size_t)1 << 18) /* most bytes of a message before its first words */

struct window {
    FILE *file;
    const char *path;
    char *text;
    size_t bytes, room;
    size_t passed; /* bytes before the window */
    bool ended;
};

static enum ar_status grow(struct window *self, struct ar_error *error)
{
    size_t room = self->room ? 2 * self->room : FIRST_BYTES;
    char *text = realloc(self->text, room);
    AR_TRY_MEMORY(text, error, "the message");
    self->text = text;
    self->room = room;
    return AR_OK;
}

static enum ar_status fill(struct window *self, struct ar_error *error)
{
    enum ar_status status = AR_OK;
    while (!self->ended && !status && self->bytes < WINDOW_BYTES) {
        if (self->bytes == self->room)
            status = grow(self, error);
        size_t got =
            status ? 0 : fread(self->text + self->bytes, 1, self->room - self->bytes, self->file);
        self->bytes += got;
        self->ended = !status && !got;
    }
    if (!status && ferror(self->file))
        return ar_error_set(error, AR_IO, "%s: cannot be read: %s", self->path, strerror(errno));
    return status;
}

/* Rule 4. */
static bool is_at_limit(const struct window *self)
{
    struct stat info;
    return self->passed + self->bytes >= STREAM_BYTES && fstat(fileno(self->file), &info) == 0 &&
           !S_ISREG(info.st_mode);
}

/* Rule 2: sets `*whole` if the window has a message that begins in its first half, or the file has
 * ended. */
static enum ar_status read_window(const struct window *self, struct message *out, bool *whole,
                                  struct ar_error *error)
{
    struct message half;
    struct ar_error ignored;
    enum ar_status status = message_read(self->text, self->bytes, out, error);
    *whole = !status && !out->bare && !out->printed;
    if (*whole && !self->ended)
        *whole = !message_read(self->text, WINDOW_BYTES / 2, &half, &ignored) && !half.bare &&
                 !half.printed;
    return status;
}

static enum ar_status read_all(struct window *self, struct message *out, struct ar_error *error)
{
    struct ar_error first = {""}; /* of the first incomplete message */
    struct message bare;          /* the first without figures, which counts if no other follows */
    bool incomplete = false, whole = false, bared = false;
    for (;;) {
        AR_TRY(fill(self, error));
        enum ar_status status = read_window(self, out, &whole, error);
        if (whole || (status && status != AR_INVALID))
            return status;
        if (!status && !bared) {
            bare = *out;
            bared = true;
        }
        if (status && !incomplete) {
            incomplete = out->incomplete;
            first = *error;
        }
        if (self->ended)
            break;
        if (is_at_limit(self)) {
            if (!bared && !incomplete)
                return ar_invalid(error,
                                  "the first 64 MiB hold no out-of-memory message; write the part "
                                  "with the message to a file");
            break;
        }
        const size_t passed = WINDOW_BYTES / 2 - BEFORE_BYTES;
        memmove(self->text, self->text + passed, self->bytes - passed);
        self->bytes -= passed;
        self->passed += passed;
    }
    if (bared) {
        *out = bare;
        return AR_OK;
    }
    *error = first;
    return AR_INVALID;
}

/* Reads the first out-of-memory message of a file of any length, such as a log; "-" is standard
 * input. Sets `*more` if the file continues after the part in which messages were counted. */
static enum ar_status message_file_read(const char *path, struct message *out, bool *more,
                                        struct ar_error *error)
{
    struct window window = {.path = path};
    window.file = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    if (!window.file)
        return ar_error_set(error, AR_IO, "%s: cannot be read: %s", path, strerror(errno));
    enum ar_status status = read_all(&window, out, error);
    *more = !window.ended;
    if (status == AR_INVALID && !window.bytes)
        status = ar_invalid(error, "it is empty; a log has the message if it has the errors too: "
                                   "COMMAND >LOG 2>&1");
    if (status == AR_INVALID)
        status =
            ar_error_prefix(error, status, "%s", window.file == stdin ? "standard input" : path);
    if (window.file != stdin)
        fclose(window.file);
    free(window.text);
    return status;
}

/* True if a text is the name of a file or looks like one: a word with a slash or the ending of a
 * log. */
static bool message_file_is_meant(const char *text)
{
    static const char *const endings[] = {".txt", ".log", ".out", ".err", ".json", ".md", ".gz"};
    struct stat stat_of;
    size_t length = strlen(text);
    if (strcmp(text, "-") == 0 || (length < 4096 && stat(text, &stat_of) == 0))
        return true;
    if (length >= 4096 || text[strcspn(text, " \t\r\n")])
        return false;
    for (size_t i = 0; i < AR_COUNT(endings); i++) {
        size_t ending = strlen(endings[i]);
        if (length > ending && strcasecmp(text + length - ending, endings[i]) == 0)
            return true;
    }
    return strchr(text, '/') != NULL;
}

/* ---- the command ---------------------------------------------------------------------------- */

/* The output: standard output, a JSON file, or both. */
struct explain_output {
    struct output_set files;
    FILE *file;              /* NULL without --json */
    struct json_writer json; /* without a stream until the first run */
};

static enum ar_status explain_message(const char *argument, struct explain_output *output,
                                      struct ar_error *error)
{
    struct message message;
    bool more = false;
    bool is_file = message_file_is_meant(argument);
    enum ar_status status = is_file ? message_file_read(argument, &message, &more, error)
                                    : message_read(argument, strlen(argument), &message, error);
    if (status && !is_file && !argument[strcspn(argument, " \t\r\n")])
        return ar_invalid(error,
                          "explain: there is no file \"%.200s\", and the word is no "
                          "out-of-memory message",
                          argument);
    if (status)
        return ar_error_prefix(error, status, "explain");
    if (!output->files.standard)
        message_page_print(stdout, &message, more);
    if (output->file)
        explain_json_message(output->file, &message);
    return AR_OK;
}

/* The device of all runs: with the capacity that is asked for or recorded, and for a trace with
 * segments where `advise` has them. */
static enum ar_status find_device(const struct arguments *self, struct trace_source *source,
                                  const struct ar_spec *device, struct recorded_card *card,
                                  struct session_device *out, struct ar_error *error)
{
    struct ar_device_props props;
    const char *given = ar_spec_value(device, "capacity");
    if (given && self->capacity_bytes)
        return ar_invalid(error, "the capacity is given twice: give capacity= of the device or "
                                 "--capacity");
    AR_TRY(recorded_card_find(source, device, card, error));
    if (given)
        AR_TRY(ar_size_parse(given, &card->capacity_bytes, error));
    if (self->capacity_bytes) {
        *card = (struct recorded_card){.source = RECORDED_CARD_ASKED, .profile = card->profile};
        card->capacity_bytes = self->capacity_bytes;
    }
    AR_TRY(session_device_as(out, device, card->profile, card->capacity_bytes, error));
    if (strcmp(source->info.format, "generator") != 0)
        session_device_as_driver(out);
    if (card->source == RECORDED_CARD_ASKED)
        return AR_OK;
    return ar_error_prefix(error, session_device_props(&out->spec, &props, error),
                           "the recorded capacity");
}

static enum ar_status explain_run_of(const struct arguments *self, const struct plan *plan,
                                     const struct plan_run *run, struct trace_source *source,
                                     const struct ar_spec *device, struct explain_output *output,
                                     struct ar_error *error)
{
    struct trace_source *trace;
    AR_CLOSED(trace_close_at) struct trace_source *owned = NULL, *strict = NULL;
    AR_CLOSED(explain_result_close) struct explain_result result = {0};
    struct recorded_card card;
    AR_CLOSED(session_device_end) struct session_device with = {0};
    struct experiment experiment = {
        .policy = &plan->policies[run->policy].spec,
        .device = &with.spec,
        .source = source,
        .frees = run->frees,
        .host = plan->suite->host,
        .stop_on_failure = true,
        .seed = run->seed,
    };
    AR_TRY(find_device(self, source, device, &card, &with, error));
    AR_TRY(session_trace(&experiment, false, &trace, &owned, error));
    experiment.source = trace;
    AR_TRY(explain_run(&experiment, plan_jobs(plan), &result, error));
    if (result.passed && trace->info.probes)
        AR_TRY(caught_as_requests(trace, &strict, error));
    if (strict) {
        explain_result_close(&result);
        experiment.source = strict;
        AR_TRY(explain_run(&experiment, plan_jobs(plan), &result, error));
    }
    const char *addresses = ar_spec_value(&with.spec, "addresses");
    const struct explain_page shown = {
        .workload = source->info.name,
        .policy = plan->policies[run->policy].text,
        .frees = run->frees,
        .result = &result,
        .card = &card,
        .caught = strict != NULL,
        .lacks_history = import_lacks_history(source->report),
        .as_driver = addresses && strcmp(addresses, "driver") == 0,
    };
    if (!output->files.standard)
        AR_TRY(explain_page_print(stdout, &shown, error));
    if (output->file && !output->json.stream)
        explain_json_begin(&output->json, output->file);
    if (output->file)
        explain_json_run(&output->json, &shown);
    return AR_OK;
}

/* Prints a page for each free mode of the trace. */
static enum ar_status explain_trace(const struct arguments *self, const struct plan *plan,
                                    struct explain_output *output, struct ar_error *error)
{
    for (size_t i = 0; i < plan->run_count; i++) {
        const struct plan_run *run = &plan->runs[i];
        AR_CLOSED(trace_close_at) struct trace_source *source = NULL;
        AR_CLOSED(ar_spec_close) struct ar_spec device = {0};
        if (i && !output->files.standard)
            puts("");
        AR_TRY(workload_open(plan->workloads[run->workload].text, &source, error));
        AR_TRY(ar_spec_parse(run->device_text, &device, error));
        if (strcmp(device.links[0].name, "cuda") == 0)
            return ar_invalid(error,
                              "explain needs a simulated device; write -d sim:capacity=.. or, for "
                              "a card, -d sim:profile=NAME (`list devices`)");
        AR_TRY(workload_named(plan->workloads[run->workload].text, source,
                              explain_run_of(self, plan, run, source, &device, output, error),
                              error));
    }
    if (output->json.stream)
        explain_json_end(&output->json);
    return AR_OK;
}

/* Whether a word is a message, or a file with one. */
static bool is_message(const char *word)
{
    struct message message;
    struct ar_error ignored;
    bool more;
    return !(message_file_is_meant(word) ? message_file_read(word, &message, &more, &ignored)
                                         : message_read(word, strlen(word), &message, &ignored));
}

/* Without -p: the policy that imitates the recorded allocator. Another file may have a message. */
static enum ar_status fill_in(struct arguments *self, struct ar_error *error)
{
    struct trace_source *source;
    const char *word = self->suite.workloads.items[0];
    if (strcmp(word, "-") == 0) { /* standard input is read once, and a trace is a file */
        self->message = word;
        return AR_OK;
    }
    enum ar_status status = workload_open_recording(word, &source, error);
    if (status && is_message(word)) {
        self->message = word;
        return AR_OK;
    }
    return status ? status : cli_recorded_policy(source, &self->suite, error);
}

static enum ar_status plan_and_explain(const struct arguments *self, struct explain_output *output,
                                       struct ar_error *error)
{
    AR_CLOSED(plan_close) struct plan plan = {0};
    if (self->suite.workloads.count != 1 || self->suite.policies.count != 1)
        return ar_invalid(
            error, "explain: name one trace, explain TRACE (-p SPEC: with another policy than "
                   "the recorded one), or a message, explain --message TEXT");
    if (self->suite.devices.count > 1)
        return ar_invalid(error, "explain: give one device");
    AR_TRY(plan_make(&plan, &self->suite, error));
    return ar_error_prefix(error, explain_trace(self, &plan, output, error), "explain");
}

/* Options of a run, which a message does not have. */
static bool has_run_options(const struct arguments *self)
{
    const struct suite *suite = &self->suite;
    static const struct suite none = SUITE_DEFAULTS;
    return self->capacity_bytes || suite->devices.count || suite->gpu_given ||
           suite->frees != none.frees || suite->host != none.host || suite->seed != none.seed ||
           suite->jobs != none.jobs;
}

static void close_output(struct explain_output *output)
{
    output_set_abandon(&output->files);
}

static enum ar_status explain(struct arguments *self, struct ar_error *error)
{
    AR_CLOSED(close_output) struct explain_output output = {0};
    if (self->message && (self->suite.workloads.count || self->suite.policies.count))
        return ar_invalid(error,
                          "explain: --message takes no trace and no policy; leave one of them out");
    if (self->message && has_run_options(self))
        return ar_invalid(error, "explain: --message replays nothing; leave --device, --card, "
                                 "--capacity, --frees, --host, --seed and --jobs out");
    if (!self->message && self->suite.workloads.count == 1 && !self->suite.policies.count)
        AR_TRY(ar_error_prefix(error, fill_in(self, error), "explain"));
    AR_TRY(output_set_add(&output.files, self->json, &output.file, error));
    AR_TRY(self->message ? explain_message(self->message, &output, error)
                         : plan_and_explain(self, &output, error));
    return output_set_commit(&output.files, error);
}

enum ar_status cmd_explain(int argc, char **argv, struct ar_error *error)
{
    struct arguments self = {.suite = SUITE_DEFAULTS};
    enum ar_status status = cli_parse(&page, argc, argv, &self, error);
    AR_THEN(status, explain(&self, error));
    suite_close(&self.suite);
    return status;
}
