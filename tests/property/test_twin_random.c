/* Random scenarios: the bytes by owner add up to what the device says is used, at the end of each
 * phase and at its peak; ranks add up to cards; nothing exceeds the card; and the same scenario
 * gives the same result. */
#include "allocators/base/rng.h"
#include "sim/twin/twin.h"
#include "tests/support/test.h"

#define PARTS_MOST     6
#define PAIRS_MOST     12
#define PROCESSES_MOST 3

/* `regions`: a part may have its memory in a region. */
static const struct {
    const char *policy;
    bool regions;
} policies[] = {
    {"torch", true},
    {"torch", true},
    {"torch:garbage_collection_threshold=0.5", true},
    {"torch:expandable_segments=true", false},
    {"torch:max_split_size_mb=64", true},
    {"bfc", false},
    {"growth", false},
    {"direct", false},
    {"vmm", false},
    {"cupy", false},
    {"gmlake", false},
    {"async", false},
    {"rmm-pool", false},
    {"buddy", false},
    {"slab", false},
};

struct random_scenario {
    struct ar_rng rng;
    struct twin_scenario scenario;
    struct twin_process_setup processes[PROCESSES_MOST];
    bool regions[PROCESSES_MOST];
    struct twin_part_setup parts[PARTS_MOST];
    struct ar_spec_pair pairs[PARTS_MOST][PAIRS_MOST];
    char names[PROCESSES_MOST + PARTS_MOST][8];
    char values[PARTS_MOST][PAIRS_MOST][16];
    char schedule[3][1024];
    char device[48];
    bool loaded[PARTS_MOST]; /* of buffers */
};

static void add_pair(struct random_scenario *self, size_t part, const char *key, const char *value)
{
    struct ar_spec_link *link = &self->parts[part].options;
    char *copy = self->values[part][link->pair_count];
    snprintf(copy, sizeof self->values[0][0], "%s", value);
    self->pairs[part][link->pair_count++] = (struct ar_spec_pair){key, copy, false};
}

static void add_size(struct random_scenario *self, size_t part, const char *key, uint64_t most_mib)
{
    char text[16];
    snprintf(text, sizeof text, "%lluKiB",
             (unsigned long long)ar_rng_between(&self->rng, 1, most_mib * 1024));
    add_pair(self, part, key, text);
}

/* A small engine, of vLLM or SGLang. */
static void make_engine(struct random_scenario *self, size_t index, size_t process)
{
    bool sleeps = self->regions[process] && ar_rng_below(&self->rng, 2);
    bool vllm = ar_rng_below(&self->rng, 2);
    add_pair(self, index, "rules", vllm ? "vllm" : "sglang");
    add_pair(self, index, "model", "llama-3.2-1b");
    add_size(self, index, "weights", 500);
    add_pair(self, index, "max_model_len", "256");
    add_pair(self, index, "max_num_seqs", "8");
    add_pair(self, index, "max_num_batched_tokens", "256");
    if (vllm)
        add_pair(self, index, "kv_cache_memory", ar_rng_below(&self->rng, 2) ? "300MiB" : "900MiB");
    if (sleeps)
        add_pair(self, index, "enable_sleep_mode", "yes");
}

static void make_part(struct random_scenario *self, size_t index)
{
    static const char *const places[] = {"pool", "outside", "pinned"};
    struct twin_part_setup *part = &self->parts[index];
    size_t process = ar_rng_below(&self->rng, self->scenario.process_count);
    static const char *const kinds[] = {"trainer", "trainer", "buffer", "buffer",
                                        "engine",  "nccl",    "graphs"};
    unsigned kind = (unsigned)ar_rng_below(&self->rng, COUNT(kinds));
    part->name = self->names[PROCESSES_MOST + index];
    part->ops = twin_part_find(kinds[kind]);
    part->process = self->processes[process].name;
    part->options.pairs = self->pairs[index];
    if (kind == 4)
        make_engine(self, index, process);
    if (kind == 6)
        add_pair(self, index, "sizes", "1 2 4 8");
    if (kind >= 4)
        return;
    if (kind >= 2) {
        add_size(self, index, "bytes", 300);
        add_pair(self, index, "where", places[ar_rng_below(&self->rng, 3)]);
        add_pair(self, index, "count", ar_rng_below(&self->rng, 2) ? "1" : "5");
        return;
    }
    add_size(self, index, "weights", 600);
    add_size(self, index, "gradients", 600);
    add_size(self, index, "optimizer", 900);
    add_size(self, index, "activations", 600);
    add_pair(self, index, "layers", ar_rng_below(&self->rng, 2) ? "3" : "17");
    add_pair(self, index, "offload_to", ar_rng_below(&self->rng, 2) ? "pinned" : "pageable");
    if (self->regions[process] && ar_rng_below(&self->rng, 2))
        add_pair(self, index, "region", ar_rng_below(&self->rng, 3) ? "saver" : "preload");
}

static bool last_option_is(const struct random_scenario *self, size_t part, const char *key)
{
    const struct ar_spec_link *link = &self->parts[part].options;
    return strcmp(link->pairs[link->pair_count - 1].key, key) == 0;
}

static void engine_phases(struct random_scenario *self, size_t part, char *phases, size_t room)
{
    const char *name = self->parts[part].name, *process = self->parts[part].process;
    if (last_option_is(self, part, "enable_sleep_mode") && ar_rng_below(&self->rng, 2))
        snprintf(phases, room, "%s.sleep, %s.empty_cache, %s.wake", name, process, name);
    else
        snprintf(phases, room, "%s.generate 4", name);
}

static void toggle(struct random_scenario *self, size_t buffer, char *phases, size_t room)
{
    self->loaded[buffer] = !self->loaded[buffer];
    snprintf(phases, room, "%s.%s", self->parts[buffer].name,
             self->loaded[buffer] ? "load" : "free");
}

/* Buffers are at the end of a cycle as they were at its begin. */
static void close_cycle(struct random_scenario *self, const bool *before, char *text, size_t room)
{
    char phases[160];
    for (size_t i = 0; i < self->scenario.part_count; i++)
        if (self->loaded[i] != before[i]) {
            toggle(self, i, phases, sizeof phases);
            snprintf(text + strlen(text), room - strlen(text), ", %s", phases);
        }
}

/* Adds the text of a few phases that are valid together. */
static void add_phases(struct random_scenario *self, char *text, size_t room)
{
    size_t part = ar_rng_below(&self->rng, self->scenario.part_count);
    const char *name = self->parts[part].name;
    char phases[160];
    const char *kind = self->parts[part].ops->kind;
    bool trainer = strcmp(kind, "trainer") == 0;
    unsigned choice = (unsigned)ar_rng_below(&self->rng, 5);
    if (strcmp(kind, "engine") == 0)
        engine_phases(self, part, phases, sizeof phases);
    else if (strcmp(kind, "nccl") == 0)
        snprintf(phases, sizeof phases, "%s.init, %s.use, %s.finalize", name, name, name);
    else if (strcmp(kind, "graphs") == 0)
        snprintf(phases, sizeof phases, "%s.capture, %s.release", name, name);
    else if (choice == 0)
        snprintf(phases, sizeof phases, "%s.empty_cache", self->parts[part].process);
    else if (!trainer)
        toggle(self, part, phases, sizeof phases);
    else if (choice == 1 && last_option_is(self, part, "region"))
        snprintf(phases, sizeof phases, "%s.sleep, %s.empty_cache, %s.wake", name,
                 self->parts[part].process, name);
    else if (choice < 3)
        snprintf(phases, sizeof phases, "%s.offload, %s.onload", name, name);
    else
        snprintf(phases, sizeof phases, "%s.train 2", name);
    snprintf(text + strlen(text), room - strlen(text), "%s%s", *text ? ", " : "", phases);
}

static void make(struct random_scenario *self, uint64_t seed)
{
    memset(self, 0, sizeof *self);
    ar_rng_seed(&self->rng, seed);
    struct twin_scenario *scenario = &self->scenario;
    for (size_t i = 0; i < PROCESSES_MOST + PARTS_MOST; i++)
        snprintf(self->names[i], sizeof self->names[i], "n%zu", i);
    scenario->cards = (unsigned)ar_rng_between(&self->rng, 1, 3);
    scenario->process_count = ar_rng_between(&self->rng, 1, PROCESSES_MOST);
    scenario->part_count = ar_rng_between(&self->rng, 1, PARTS_MOST);
    scenario->cycles = ar_rng_between(&self->rng, 1, 3);
    scenario->host_bytes = ar_rng_below(&self->rng, 2) ? 0 : 2 * AR_GIB;
    snprintf(self->device, sizeof self->device, "sim:capacity=%lluGiB",
             (unsigned long long)ar_rng_between(&self->rng, 1, 6));
    scenario->device = self->device;
    for (size_t i = 0; i < scenario->process_count; i++) {
        size_t policy = ar_rng_below(&self->rng, COUNT(policies));
        self->regions[i] = policies[policy].regions;
        self->processes[i] = (struct twin_process_setup){
            .name = self->names[i],
            .policy = policies[policy].policy,
            .pinned = ar_rng_below(&self->rng, 2) ? "torch-pinned" : NULL,
            .cards = ar_rng_between(&self->rng, 1, (1u << scenario->cards) - 1),
            .context_bytes = ar_rng_between(&self->rng, 0, 300) * AR_MIB + 12345};
    }
    scenario->processes = self->processes;
    scenario->parts = self->parts;
    for (size_t i = 0; i < scenario->part_count; i++)
        make_part(self, i);
    /* An engine starts once: before the cycles. */
    for (size_t i = 0; i < scenario->part_count; i++)
        if (strcmp(self->parts[i].ops->kind, "engine") == 0) {
            char *text = self->schedule[TWIN_START];
            snprintf(text + strlen(text), sizeof self->schedule[0] - strlen(text), "%s%s.start",
                     *text ? ", " : "", self->parts[i].name);
        }
    for (unsigned stage = 0; stage < 3; stage++) {
        bool before[PARTS_MOST];
        memcpy(before, self->loaded, sizeof before);
        for (uint64_t i = ar_rng_between(&self->rng, 1, 5); i > 0; i--)
            add_phases(self, self->schedule[stage], sizeof self->schedule[stage]);
        if (stage == TWIN_CYCLE)
            close_cycle(self, before, self->schedule[stage], sizeof self->schedule[stage]);
    }
    scenario->start = self->schedule[TWIN_START];
    scenario->cycle = self->schedule[TWIN_CYCLE];
    scenario->end = self->schedule[TWIN_END];
}

static uint64_t sum_of(const struct twin_result *result, const struct twin_amounts *amounts)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < amounts->count; i++)
        sum += result->amounts[amounts->first + i].bytes;
    return sum;
}

static void check(const struct twin_result *result)
{
    for (size_t phase = 0; phase < result->phase_count; phase++)
        for (unsigned card = 0; card < result->card_count; card++) {
            const struct twin_card_state *state = twin_card_at(result, phase, card);
            uint64_t ranks = 0, pinned = 0;
            for (size_t i = 0; i < state->amounts.count; i++)
                pinned += result->amounts[state->amounts.first + i].pinned_bytes;
            for (size_t i = 0; i < result->rank_count; i++) {
                const struct twin_rank_state *rank = twin_rank_at(result, phase, i);
                if (result->ranks[i].card == card) {
                    ranks += rank->physical_bytes + rank->outside_bytes;
                    pinned -= rank->pinned_live_bytes;
                }
                assert_true(rank->asleep_bytes <= rank->reserved_bytes);
                assert_true(rank->peak_allocated_bytes >= rank->allocated_bytes);
            }
            assert_int_equal(sum_of(result, &state->amounts), state->used_bytes);
            assert_int_equal(sum_of(result, &state->peak_amounts), state->peak_bytes);
            assert_int_equal(ranks, state->used_bytes);
            assert_int_equal(pinned, 0);
            assert_true(state->peak_bytes >= state->used_bytes);
            assert_true(state->peak_bytes <= result->total_bytes);
        }
}

static void assert_same(const struct twin_result *a, const struct twin_result *b)
{
    assert_int_equal(a->outcome, b->outcome);
    assert_int_equal(a->phase_count, b->phase_count);
    for (size_t phase = 0; phase < a->phase_count; phase++) {
        for (unsigned card = 0; card < a->card_count; card++)
            assert_memory_equal(twin_card_at(a, phase, card), twin_card_at(b, phase, card),
                                sizeof(struct twin_card_state));
        for (size_t rank = 0; rank < a->rank_count; rank++)
            assert_memory_equal(twin_rank_at(a, phase, rank), twin_rank_at(b, phase, rank),
                                sizeof(struct twin_rank_state));
    }
}

#define SEEDS 500

TEST(random_scenarios_add_up)
{
    static struct random_scenario random;
    unsigned passed = 0, failed = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct twin_result result, again;
        make(&random, seed);
        enum ar_status status = twin_run(&random.scenario, &result, &test_error);
        if (status != AR_OK)
            fail_msg("seed %llu: %s", (unsigned long long)seed, test_error.text);
        check(&result);
        passed += result.outcome == TWIN_PASSED;
        failed += result.outcome == TWIN_OUT_OF_MEMORY;
        if (seed % 10 == 0) {
            assert_int_equal(twin_run(&random.scenario, &again, &test_error), AR_OK);
            assert_same(&result, &again);
            twin_result_close(&again);
        }
        twin_result_close(&result);
    }
    assert_true(passed > SEEDS / 4); /* both outcomes occur often */
    assert_true(failed > SEEDS / 10);
}
