/* `bound`: lower bounds on the memory of a workload, offline plans (made with knowledge of every
 * lifetime), and a checker for plans. */
#include <time.h>

#include "allocators/base/size.h"
#include "bench/cli/cli.h"
#include "bench/report/data_writer.h"
#include "bench/report/output_file.h"
#include "bench/report/sentence.h"
#include "bench/report/table.h"
#include "sim/bounds/bounds.h"
#include "sim/device.h"
#include "sim/experiment/recorded_card.h"

struct arguments {
    const char *workload, *plan, *check, *json;
    struct cli_device device;
    bool begun; /* a part was printed */
    uint64_t capacity_bytes, granule_bytes;
    enum replay_frees frees;
    bool exact;
    uint64_t seconds, steps; /* 0: not given */
};

#define SECONDS_DEFAULT 60

static enum ar_status take_granule(void *arguments, const struct cli_option *option,
                                   const char *value, struct ar_error *error)
{
    struct arguments *self = arguments;
    enum ar_status status = ar_size_parse(value, &self->granule_bytes, error);
    if (!status && (!ar_size_is_power_of_two(self->granule_bytes) || self->granule_bytes > AR_GIB))
        status = ar_invalid(error, "%s is no power of two up to 1 GiB", value);
    return ar_error_prefix(error, status, "--%s", option->name);
}

static enum ar_status take_frees(void *arguments, const struct cli_option *option,
                                 const char *value, struct ar_error *error)
{
    static const enum replay_frees modes[] = {REPLAY_AT_ONCE, REPLAY_RECORDED};
    struct arguments *self = arguments;
    for (size_t i = 0; i < AR_COUNT(modes); i++)
        if (strcmp(value, replay_frees_name(modes[i])) == 0) {
            self->frees = modes[i];
            return AR_OK;
        }
    return ar_invalid(error, "--%s: \"%.40s\" is neither at-once nor recorded", option->name,
                      value);
}

static const struct cli_option options[] = {
    {CLI_HEADING("Options:")},
    {'w', "workload", "WORKLOAD", "the same as the argument WORKLOAD", CLI_TEXT(workload)},
    {'d', "device", "N", "only GPU N of a trace of several", CLI_GPU(device)},
    {0, "granule", "BYTES", "round sizes and offsets up to multiples; default: 1",
     CLI_CALL(take_granule)},
    {0, "frees", "MODE", "blocks end when freed (at-once, default) or as recorded",
     CLI_CALL(take_frees)},
    {0, "plan", "FILE", "write the lowest plan found: id,lower,upper,size,offset", CLI_FILE(plan)},
    {0, "json", "FILE", "write the results as JSON; - is standard output", CLI_FILE(json)},
    {CLI_HEADING("Searching for the lowest plan:")},
    {0, "exact", NULL, "search until a plan is proven optimal or the time is over",
     CLI_FLAG(exact)},
    {0, "seconds", "N", "time limit; default: 60", CLI_COUNT(seconds, 1, UINT32_MAX)},
    {0, "steps", "N", "step limit, for the same result on every machine",
     CLI_COUNT(steps, 1, UINT32_MAX)},
    {CLI_HEADING("Checking a plan:")},
    {0, "check", "FILE", "check a plan; exit status 1 if it is wrong", CLI_TEXT(check)},
    {0, "capacity", "BYTES", "no block of the plan may end above it", CLI_BYTES(capacity_bytes)},
    {0},
};

static const struct cli_page page = {
    .arguments = "WORKLOAD [--exact [--seconds N]] [--plan FILE] [options]\n--check FILE WORKLOAD "
                 "[--capacity BYTES] [--granule BYTES]",
    .text = "Prints bounds on the memory that a workload needs: the live peak, which no policy\n"
            "beats, and the same in pages. Then it fills one arena without a limit: with best fit\n"
            "and first fit, and with offline plans, which know every lifetime.",
    .options = options,
    .argument = {.value = "workload", CLI_TEXT(workload)},
};

static void add_row(struct table *table, const struct bounds *bounds, const char *name,
                    uint64_t bytes, const char *note)
{
    table_cell(table, "%s", name);
    table_known(table, bytes != PACKING_NOWHERE, "%" PRIu64, bytes);
    table_known(table, !(bytes == PACKING_NOWHERE || bounds->live_peak_bytes == 0), "%.4f",
                (double)bytes / (double)bounds->live_peak_bytes);
    table_cell(table, "%s", note);
}

static const char *exact_note(const struct packing_exact *exact, char *text, size_t text_bytes)
{
    switch (exact->end) {
    case PACKING_EXACT_MEETS_BOUND:
        return "optimum: as low as the live peak allows";
    case PACKING_EXACT_EXHAUSTED:
        return "optimum: every lower plan was ruled out";
    case PACKING_EXACT_TOO_LARGE:
        return "not searched: too many blocks";
    default:
        snprintf(text, text_bytes, "not decided: the optimum is %" PRIu64 " or more",
                 exact->least_bytes);
        return text;
    }
}

static void add_rows(struct table *table, const struct bounds *bounds)
{
    char note[96];
    snprintf(note, sizeof note, "first at event %" PRIu64, bounds->live_peak_event);
    add_row(table, bounds, "live peak", bounds->live_peak_bytes, note);
    snprintf(note, sizeof note, "%" PRIu64 " of 2 MiB", bounds->pages_bytes / BOUND_PAGE_BYTES);
    add_row(table, bounds, "in pages", bounds->pages_bytes, note);
    if (bounds->least_bytes != bounds->live_peak_bytes)
        add_row(table, bounds, "in granules", bounds->least_bytes, "no plan is lower");
    add_row(table, bounds, "best fit", bounds->best_fit_bytes, "as they come");
    add_row(table, bounds, "first fit", bounds->first_fit_bytes, "as they come");
    for (enum packing_order order = 0; order < PACKING_ORDER_COUNT; order++) {
        snprintf(note, sizeof note, "by %s", packing_order_name(order));
        add_row(table, bounds, note, bounds->orders.tops_bytes[order], packing_order_help(order));
    }
    snprintf(note, sizeof note, "by %s", packing_order_name(bounds->orders.order));
    add_row(table, bounds, "best order", bounds->orders.top_bytes, note);
    if (bounds->searched)
        add_row(table, bounds, "exact", bounds->exact.top_bytes,
                exact_note(&bounds->exact, note, sizeof note));
}

static enum ar_status print_table(const struct bound_blocks *blocks, const struct bounds *bounds,
                                  const char *name, struct ar_error *error)
{
    struct table *table = table_of("bound or plan<; top|bytes; top|/ live; how<");
    table_heading(table, "%s: %zu blocks, live peak %s", name, blocks->count,
                  AR_SIZE(bounds->live_peak_bytes));
    add_rows(table, bounds);
    return table_end(table, stdout, TABLE_TEXT, error);
}

static void write_exact(struct json_writer *json, const struct packing_exact *exact)
{
    static const char *const ends[] = {"meets-bound", "exhausted", "cut", "too-large"};
    json_begin_object(json, "exact");
    json_put_bool(json, "optimal", exact->least_bytes == exact->top_bytes);
    json_put_text(json, "end", ends[exact->end]);
    json_put_integer(json, "best_bytes", exact->top_bytes);
    json_put_integer(json, "proven_bytes", exact->least_bytes);
    JSON_PUT(json, exact, steps, attempts);
    json_end_object(json);
}

static void write_json(FILE *stream, const struct bound_blocks *blocks, const struct bounds *bounds,
                       const struct arguments *self)
{
    struct json_writer json = {.stream = stream};
    json_begin_object(&json, NULL);
    json_put_text(&json, "schema", "allocrig.bound/1");
    json_put_text(&json, "workload", self->workload);
    json_put_text(&json, "frees", replay_frees_name(self->frees));
    json_put_integer(&json, "granule_bytes", blocks->granule_bytes);
    json_put_integer(&json, "blocks", blocks->count);
    JSON_PUT(&json, bounds, live_peak_bytes, live_peak_event);
    json_put_integer(&json, "live_peak_pages_bytes", bounds->pages_bytes);
    JSON_PUT(&json, bounds, least_bytes, best_fit_bytes, first_fit_bytes);
    json_begin_object(&json, "orders");
    for (enum packing_order order = 0; order < PACKING_ORDER_COUNT; order++)
        json_put_known(&json, packing_order_name(order),
                       bounds->orders.tops_bytes[order] != PACKING_NOWHERE,
                       bounds->orders.tops_bytes[order]);
    json_end_object(&json);
    json_put_text(&json, "best_order", packing_order_name(bounds->orders.order));
    json_put_integer(&json, "best_order_bytes", bounds->orders.top_bytes);
    if (bounds->searched)
        write_exact(&json, &bounds->exact);
    json_put_integer(&json, "top_bytes", bounds->top_bytes);
    json_end_object(&json);
}

struct clock {
    struct timespec end;
};

static bool is_over(void *argument)
{
    const struct clock *clock = argument;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec > clock->end.tv_sec ||
           (now.tv_sec == clock->end.tv_sec && now.tv_nsec >= clock->end.tv_nsec);
}

static enum ar_status search(const struct arguments *self, const struct bound_blocks *blocks,
                             struct bounds *bounds, struct ar_error *error)
{
    struct clock clock;
    uint64_t seconds = self->seconds ? self->seconds : SECONDS_DEFAULT;
    const struct packing_exact_options limits = {
        .steps_most = self->steps,
        .stop = self->steps && !self->seconds ? NULL : is_over, /* only steps: no clock */
        .argument = &clock,
    };
    clock_gettime(CLOCK_MONOTONIC, &clock.end);
    clock.end.tv_sec += (time_t)seconds;
    return bounds_search(blocks, &limits, bounds, error);
}

static enum ar_status find(const struct arguments *self, const struct bound_blocks *blocks,
                           const char *name, struct ar_error *error)
{
    AR_CLOSED(output_set_abandon) struct output_set files = {0};
    AR_CLOSED(bounds_close) struct bounds bounds = {0};
    FILE *plan, *json;
    AR_TRY(output_set_add(&files, self->plan, &plan, error));
    AR_TRY(output_set_add(&files, self->json, &json, error));
    AR_TRY(bounds_find(blocks, &bounds, error));
    if (self->exact)
        AR_TRY(search(self, blocks, &bounds, error));
    if (!files.standard)
        AR_TRY(print_table(blocks, &bounds, name, error));
    if (plan)
        plan_file_write(plan, blocks, bounds.offsets);
    if (json)
        write_json(json, blocks, &bounds, self);
    return output_set_commit(&files, error);
}

static enum ar_status check(const struct arguments *self, const struct bound_blocks *blocks,
                            const char *name, struct ar_error *error)
{
    AR_CLOSED(plan_file_close) struct plan_file plan = {0};
    struct bound_verdict verdict = {0};
    AR_TRY(plan_file_read(&plan, self->check, error));
    AR_TRY(bound_check(blocks, &plan, self->capacity_bytes, &verdict, error));
    if (!verdict.faults) {
        say(stdout,
            "%s: the plan is right: %zu blocks of %s, top %" PRIu64 " bytes, live peak %" PRIu64,
            self->check, blocks->count, name, verdict.top_bytes, blocks->live_peak_bytes);
        return AR_OK;
    }
    for (uint64_t i = 0; i < verdict.faults && i < BOUND_FAULTS_MOST; i++)
        say(stdout, "%s: %s", self->check, verdict.texts[i]);
    if (verdict.faults > BOUND_FAULTS_MOST)
        say(stdout, "%s: and %" PRIu64 " more", self->check, verdict.faults - BOUND_FAULTS_MOST);
    return ar_error_set(error, AR_NEGATIVE, "%s: the plan is wrong: %" PRIu64 " fault%s",
                        self->check, verdict.faults, verdict.faults == 1 ? "" : "s");
}

/* The limit of a probe: the capacity of the recorded card, if it is known, or of the default
 * device. */
static enum ar_status find_card(const struct trace_info *info, uint64_t *card_bytes,
                                struct ar_error *error)
{
    char spec[RECORDED_CARD_SPEC_ROOM];
    struct ar_device *device;
    *card_bytes = recorded_card_usable(info);
    if (*card_bytes)
        return AR_OK;
    recorded_card_spec(info, spec);
    AR_TRY(ar_device_open_text(spec, &device, error));
    *card_bytes = device->props.capacity_bytes;
    ar_device_close(device);
    return AR_OK;
}

/* A workload_take: the bounds of a workload, or of one GPU of it. */
static enum ar_status answer_part(void *argument, struct workload_part *part,
                                  struct ar_error *error)
{
    struct arguments *self = argument;
    const struct trace_info *info = &part->source->info;
    AR_CLOSED(bound_blocks_close) struct bound_blocks blocks = {.count = 0};
    struct bound_options wanted = {.frees = self->frees, .granule_bytes = self->granule_bytes};
    if (part->several && (self->plan || self->json || self->check))
        return ar_invalid(error, "bound: the workload has several GPUs, and --plan, --check and "
                                 "--json are for one; select it with --device N");
    if (self->begun)
        puts("");
    self->begun = true;
    AR_TRY(find_card(info, &wanted.card_bytes, error));
    AR_TRY(bound_blocks_open(&blocks, part->source, &wanted, error));
    return self->check ? check(self, &blocks, info->name, error)
                       : find(self, &blocks, info->name, error);
}

enum ar_status cmd_bound(int argc, char **argv, struct ar_error *error)
{
    struct arguments self = {.frees = REPLAY_AT_ONCE};
    AR_TRY(cli_parse(&page, argc, argv, &self, error));
    if (!self.workload)
        return ar_invalid(error, "bound: no workload is given; write bound WORKLOAD");
    if (self.check && (self.plan || self.json))
        return ar_invalid(error, "bound: --check writes neither --plan nor --json");
    if (self.capacity_bytes && !self.check)
        return ar_invalid(error, "bound: --capacity needs --check");
    if ((self.seconds || self.steps) && !self.exact)
        return ar_invalid(error, "bound: --seconds and --steps need --exact");
    if (self.exact && self.check)
        return ar_invalid(error, "bound: --check does not search for a plan: leave --exact out");
    const struct workload_choice choice = cli_choice(&self.device, false);
    return workload_each(self.workload, &choice, answer_part, &self, error);
}
