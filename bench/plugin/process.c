#include "bench/plugin/process.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "allocators/registry.h"
#include "bench/plugin/report.h"

#define CARDS_MOST     64
#define POLICY_DEFAULT "torch"

struct process {
    pthread_mutex_t lock; /* for making cards, and at a fork */
    pthread_once_t once;
    enum ar_status status; /* of the settings */
    struct ar_error problem;
    struct ar_spec policy;
    char *stats_path, *trace_path; /* NULL: not wanted */
    bool verbose;
    struct recording recording;
    struct card *cards[CARDS_MOST]; /* atomic; set once */
    double fractions[CARDS_MOST];
    bool opened; /* there is a card */
    bool over;   /* atomic: the process ends */
    bool forked; /* this is a child of the process that made the cards */
};

/* The frameworks call plain functions with nothing of ours to hand back: what they share is
 * here. */
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

/* A path with the process' number in place of %p. NULL: none, or no host memory. */
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

/* A policy in a shared object uses the base functions that are here (allocators/README.md): they
 * become visible to it. A library that a framework loads is not visible by default. */
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

/* With the lock held. */
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
    if (!self->opened) /* now, so that it runs before what the driver registered so far */
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
    if (!self->forked && !process_is_up()) { /* the process is ending */
        error->text[0] = '\0';
        return NULL;
    }
    if (self->forked) {
        (void)ar_error_set(error, AR_UNSUPPORTED,
                           "allocrig: this process was forked from one that used the GPU, and CUDA "
                           "does not work in it; start it afresh ('spawn')");
        return NULL;
    }
    if (ordinal < 0 || ordinal >= CARDS_MOST) {
        (void)ar_error_set(error, AR_INVALID, "allocrig: there is no GPU %d", ordinal);
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
