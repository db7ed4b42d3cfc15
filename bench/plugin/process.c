#include "bench/plugin/process.h"

#include <dlfcn.h>
#include <unistd.h>

#include "allocators/registry.h"
#include "bench/cuda/cuda_device.h"
#include "bench/report/data_writer.h"
#include "bench/report/output_file.h"

#define AR_MIB         1048576.0
#define CARDS_MOST     64
#define POLICY_DEFAULT "torch"

/* The only kind of device in the plug-in. */
const struct ar_device_kind *const device_kinds[] = {&cuda_device_kind, NULL};

struct process {
    pthread_mutex_t lock; /* taken to make a card and at a fork */
    pthread_once_t once;
    enum ar_status status; /* of the settings */
    struct ar_error problem;
    struct ar_spec policy;
    char *stats_path, *trace_path; /* NULL: none */
    bool verbose;
    struct recording recording;
    struct card *cards[CARDS_MOST]; /* atomic; set once */
    double fractions[CARDS_MOST];
    bool opened; /* a card was made */
    bool over;   /* atomic: the process ends */
    bool forked; /* a child of the process that made the cards */
};

/* The frameworks call plain functions without a handle, so the state is global. */
static struct process the_process = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .once = PTHREAD_ONCE_INIT,
    .recording = {.lock = PTHREAD_MUTEX_INITIALIZER, .file = -1},
};

/* ---- settings ------------------------------------------------------------------------------- */

static const char *setting(const char *name)
{
    const char *text = getenv(name);
    return text && *text ? text : NULL;
}

/* A path with %p replaced by the process number. NULL: not set, or no host memory. */
static char *path_setting(const char *name)
{
    const char *text = setting(name), *mark = text ? strstr(text, "%p") : NULL;
    char *path = NULL;
    int length =
        !text  ? -1
        : mark ? asprintf(&path, "%.*s%ld%s", (int)(mark - text), text, (long)getpid(), mark + 2)
               : asprintf(&path, "%s", text);
    return length < 0 ? NULL : path;
}

/* A policy in a shared object uses the base functions of this library (allocators/README.md). A
 * framework loads the library without RTLD_GLOBAL; this makes its symbols visible. */
static void show_base(void)
{
    Dl_info info;
    if (dladdr(&the_process, &info) && info.dli_fname)
        (void)dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
}

static void settings_read(struct process *self)
{
    const struct ar_policy_ops *ops;
    const char *verbose = setting("ALLOCRIG_VERBOSE"), *policy = setting("ALLOCRIG_POLICY");
    self->verbose = verbose && strcmp(verbose, "0") != 0;
    self->stats_path = path_setting("ALLOCRIG_STATS");
    self->trace_path = path_setting("ALLOCRIG_TRACE");
    self->status = ar_spec_parse(policy ? policy : POLICY_DEFAULT, &self->policy, &self->problem);
    if (strstr(policy ? policy : POLICY_DEFAULT, ".so"))
        show_base();
    if (self->status == AR_OK)
        self->status = registry_lookup(&self->policy, &ops, &self->problem);
    if (self->status != AR_OK)
        (void)ar_error_prefix(&self->problem, self->status, "allocrig: ALLOCRIG_POLICY=%s",
                              policy ? policy : POLICY_DEFAULT);
}

/* ---- the statistics: a JSON file and lines for people ---------------------------------------- */

struct report {
    const char *policy;     /* the spec */
    const char *stats_path; /* "-": standard error; NULL: no file */
    struct card **cards;
    unsigned count;
};

static void put_latency(FILE *file, const char *name, const struct ar_hist *hist)
{
    fprintf(file,
            ",\n      \"%s\": {\"p50\": %" PRIu64 ", \"p90\": %" PRIu64 ", \"p99\": %" PRIu64
            ", \"p999\": %" PRIu64 ", \"max\": %" PRIu64 "}",
            name, ar_hist_quantile(hist, 0.5), ar_hist_quantile(hist, 0.9),
            ar_hist_quantile(hist, 0.99), ar_hist_quantile(hist, 0.999),
            hist->total ? hist->most : 0);
}

static void put_card(FILE *file, struct card *card)
{
    struct card_figures figures;
    struct ar_policy_stats stats;
    card_figures(card, &figures);
    pthread_mutex_lock(&card->lock);
    ar_policy_stats(card->policy, &stats);
    const struct ar_device *device = card->memory.device;
    fprintf(file, "    {\"gpu\": %u, \"name\": ", card->ordinal);
    json_text(file, device->props.profile);
    fprintf(file, ", \"policy\": ");
    json_text(file, card->policy->ops->name);
#define X(field, text) fprintf(file, ",\n      \"" #field "\": %" PRIu64, figures.field);
    CARD_FIGURES(X)
#undef X
#define X(field, text) fprintf(file, ",\n      \"policy_" #field "\": %" PRIu64, stats.count.field);
    AR_POLICY_COUNTERS(X)
#undef X
    fprintf(file, ",\n      \"calls\": {");
    for (int i = 0; i < AR_DEVICE_CALL_COUNT; i++)
        fprintf(
            file, "%s\"%s\": {\"calls\": %" PRIu64 ", \"ns\": %" PRIu64 ", \"bytes\": %" PRIu64 "}",
            i ? ", " : "", ar_device_call_name((enum ar_device_call)i), device->counters.calls[i],
            device->counters.call_ns[i], device->counters.call_bytes[i]);
    fprintf(file, "}");
    if (card->latency) {
        put_latency(file, "alloc_ns", &card->latency->alloc);
        put_latency(file, "free_ns", &card->latency->free);
    }
    pthread_mutex_unlock(&card->lock);
    fprintf(file, "}");
}

static void put_all(FILE *file, const struct report *report)
{
    fprintf(file, "{\n  \"schema\": \"allocrig.plugin/1\",\n  \"policy\": ");
    json_text(file, report->policy);
    fprintf(file, ",\n  \"process\": %ld,\n  \"cards\": [\n", (long)getpid());
    for (unsigned i = 0; i < report->count; i++) {
        put_card(file, report->cards[i]);
        fprintf(file, "%s\n", i + 1 < report->count ? "," : "");
    }
    fprintf(file, "  ]\n}\n");
}

static void write_file(const struct report *report)
{
    struct output_file file = {0};
    struct ar_error error;
    if (strcmp(report->stats_path, "-") == 0) {
        put_all(stderr, report);
        return;
    }
    enum ar_status status = output_open(&file, report->stats_path, &error);
    if (!status) {
        put_all(file.stream, report);
        status = output_commit(&file, &error);
    }
    if (status)
        fprintf(stderr, "allocrig: ALLOCRIG_STATS: %s\n", error.text);
}

static void say_card(const struct report *report, struct card *card)
{
    struct card_figures figures;
    card_figures(card, &figures);
    fprintf(stderr,
            "allocrig: GPU %u under %s: %" PRIu64 " requests, %" PRIu64 " frees, %" PRIu64
            " not served; peaks: live %.1f MiB, reserved %.1f MiB, physical %.1f MiB; %" PRIu64
            " driver calls in %.3f ms, %.3f ms waited\n",
            card->ordinal, report->policy, figures.requests, figures.frees, figures.failed,
            (double)figures.peak_live_bytes / AR_MIB, (double)figures.peak_reserved_bytes / AR_MIB,
            (double)figures.peak_physical_bytes / AR_MIB, figures.driver_calls,
            (double)figures.driver_ns / 1e6, (double)figures.stall_ns / 1e6);
    if (card->latency)
        fprintf(stderr,
                "allocrig: GPU %u: a request took %" PRIu64 " ns at the median and %" PRIu64
                " ns at the 99th percentile, a free %" PRIu64 " and %" PRIu64 " ns\n",
                card->ordinal, ar_hist_quantile(&card->latency->alloc, 0.5),
                ar_hist_quantile(&card->latency->alloc, 0.99),
                ar_hist_quantile(&card->latency->free, 0.5),
                ar_hist_quantile(&card->latency->free, 0.99));
}

static void report_write(const struct report *report, bool verbose)
{
    if (report->stats_path)
        write_file(report);
    for (unsigned i = 0; verbose && i < report->count; i++)
        say_card(report, report->cards[i]);
}

/* ---- the end, and forks --------------------------------------------------------------------- */

static void finish(void)
{
    struct process *self = &the_process;
    bool writes = self->stats_path || self->verbose;
    if (self->forked || __atomic_exchange_n(&self->over, true, __ATOMIC_ACQ_REL))
        return;
    recording_close(&self->recording);
    if (!writes || !self->opened)
        return;
    struct report report = {.policy = self->policy.text, .stats_path = self->stats_path};
    struct card *cards[CARDS_MOST];
    unsigned from = 0;
    for (struct card *card; (card = process_next_card(&from)) != NULL;)
        cards[report.count++] = card;
    report.cards = cards;
    report_write(&report, self->verbose);
}

static void before_fork(void)
{
    struct process *self = &the_process;
    pthread_mutex_lock(&self->lock);
    for (int i = 0; i < CARDS_MOST; i++)
        if (self->cards[i])
            pthread_mutex_lock(&self->cards[i]->lock);
    pthread_mutex_lock(&self->recording.lock);
}

static void after_fork(void)
{
    struct process *self = &the_process;
    pthread_mutex_unlock(&self->recording.lock);
    for (int i = CARDS_MOST - 1; i >= 0; i--)
        if (self->cards[i])
            pthread_mutex_unlock(&self->cards[i]->lock);
    pthread_mutex_unlock(&self->lock);
}

static void in_child(void)
{
    struct process *self = &the_process;
    self->forked = self->opened;
    if (self->forked)
        self->recording.file = -1; /* the parent's */
    after_fork();
}

static void begin(void)
{
    struct process *self = &the_process;
    settings_read(self);
    (void)pthread_atfork(before_fork, after_fork, in_child);
}

bool process_is_up(void)
{
    return !the_process.forked && !__atomic_load_n(&the_process.over, __ATOMIC_ACQUIRE);
}

/* ---- cards ---------------------------------------------------------------------------------- */

static enum ar_status recording_begin(struct process *self, const struct card *card,
                                      struct ar_error *error)
{
    const struct ar_device_props *props = &card->memory.device->props;
    const struct recording_head head = {
        .policy = self->policy.text,
        .card = props->profile,
        .capacity_bytes = props->total_bytes,
    };
    if (!self->trace_path || self->opened)
        return AR_OK;
    return recording_open(&self->recording, self->trace_path, &head, error);
}

/* The caller has the lock. */
static struct card *card_make(struct process *self, int ordinal, struct ar_error *error)
{
    const struct card_settings settings = {
        .policy = &self->policy,
        .latency = self->stats_path || self->verbose,
        .fraction = self->fractions[ordinal],
        .recording = &self->recording,
    };
    struct card *card = NULL;
    enum ar_status status = card_open(&settings, (unsigned)ordinal, &card, error);
    if (status != AR_OK) {
        (void)ar_error_prefix(error, status, "allocrig: GPU %d", ordinal);
        return NULL;
    }
    struct ar_error trace_error;
    if (recording_begin(self, card, &trace_error) != AR_OK)
        fprintf(stderr, "allocrig: no trace is recorded: %s\n", trace_error.text);
    if (!self->opened) /* registered now to run before the exit functions of the driver */
        (void)atexit(finish);
    self->opened = true;
    __atomic_store_n(&self->cards[ordinal], card, __ATOMIC_RELEASE);
    return card;
}

struct card *process_card(int ordinal, struct ar_error *error)
{
    struct process *self = &the_process;
    struct card *card = ordinal >= 0 && ordinal < CARDS_MOST
                            ? __atomic_load_n(&self->cards[ordinal], __ATOMIC_ACQUIRE)
                            : NULL;
    if (card && process_is_up())
        return card;
    (void)pthread_once(&self->once, begin);
    if (!self->forked && !process_is_up()) { /* at exit: no caller reads a sentence */
        error->text[0] = '\0';
        return NULL;
    }
    if (self->forked) {
        (void)ar_error_set(error, AR_UNSUPPORTED,
                           "allocrig: this process was forked from one that used the GPU, and CUDA "
                           "does not work in it; start it with 'spawn'");
        return NULL;
    }
    if (ordinal < 0 || ordinal >= CARDS_MOST) {
        (void)ar_invalid(error, "allocrig: there is no GPU %d", ordinal);
        return NULL;
    }
    if (self->status != AR_OK) {
        *error = self->problem;
        return NULL;
    }
    pthread_mutex_lock(&self->lock);
    card = self->cards[ordinal];
    if (!card)
        card = card_make(self, ordinal, error);
    pthread_mutex_unlock(&self->lock);
    return card;
}

struct card *process_card_there(int ordinal)
{
    return ordinal >= 0 && ordinal < CARDS_MOST && process_is_up()
               ? __atomic_load_n(&the_process.cards[ordinal], __ATOMIC_ACQUIRE)
               : NULL;
}

struct card *process_next_card(unsigned *from)
{
    while (*from < CARDS_MOST) {
        struct card *card = __atomic_load_n(&the_process.cards[(*from)++], __ATOMIC_ACQUIRE);
        if (card)
            return card;
    }
    return NULL;
}

void process_limit(int ordinal, double fraction)
{
    struct process *self = &the_process;
    if (ordinal < 0 || ordinal >= CARDS_MOST)
        return;
    pthread_mutex_lock(&self->lock);
    self->fractions[ordinal] = fraction;
    struct card *card = self->cards[ordinal];
    pthread_mutex_unlock(&self->lock);
    if (card && process_is_up())
        card_limit(card, fraction);
}

void process_mark(const char *label)
{
    if (recording_wanted(&the_process.recording))
        recording_mark(&the_process.recording, label);
}
