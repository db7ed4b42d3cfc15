/* The rules of sizes of the twin (sim/twin/rules) in steps: `given` fills in what they depend on,
 * and each rule is a figure (steps.h). */
#include "sim/twin/rules/context.h"
#include "sim/twin/rules/graphs.h"
#include "sim/twin/rules/nccl.h"
#include "sim/twin/rules/paged.h"
#include "sim/twin/rules/sglang.h"
#include "sim/twin/rules/vllm.h"
#include "tests/support/steps_state.h"

/* What the rules are asked for. */
static struct given {
    bool there;
    char version[32], card[32];
    struct llm model;
    struct llm_rank rank;
    struct nccl_setup nccl;
    struct vllm_profile profile;
    struct sglang_settings settings;
    struct training_division division;
    struct vllm_graphs modes[3];
    uint64_t tokens, sequence, block_tokens, blocks, state_blocks, length, batch_tokens, requests;
    uint64_t total_bytes, free_bytes, token_bytes, limit, graphs, kernels, width, used;
    uint64_t mode_count, operations, request_bytes, bytes, uses;
    uint32_t ranks, compute, cuda, expert_layers, shared_layers;
    unsigned kv_bytes, value_bytes, recompute;
    bool a100, offline, plain, latent;
    double available, utilization, free_before, free_after_load, graphs_bytes;
} on;

static struct graphs_sizes sizes;
static struct nccl_communicator groups[2]; /* a and b */
static struct paged paged;
static struct paged_step step;

/* ---- what is given --------------------------------------------------------------------------- */

static const struct steps_field fields[] = {
#define F(name, member) STEPS_FIELD(#name, given, member),
#include "tests/support/steps_rules.def"
#undef F
};

/* Words that stand for a number: values of enumerations. */
static const struct {
    const char *name;
    unsigned value;
} words[] = {{"yes", 1},
             {"fp8", LLM_FP8},
             {"fp8_block", LLM_FP8_BLOCK},
             {"int8", LLM_INT8},
             {"int4", LLM_INT4},
             {"nvfp4", LLM_NVFP4},
             {"mxfp4", LLM_MXFP4},
             {"free_drop", VLLM_FREE_DROP},
             {"torch_peak", VLLM_TORCH_PEAK},
             {"parts", VLLM_PARTS},
             {"consumed", VLLM_CONSUMED},
             {"all_reduce", NCCL_ALL_REDUCE},
             {"all_gather", NCCL_ALL_GATHER},
             {"all_to_all", NCCL_ALL_TO_ALL},
             {"gather", NCCL_GATHER},
             {"v1", PAGED_V1},
             {"v0", PAGED_V0},
             {"sglang", PAGED_SGLANG},
             {"step_uses", CONTEXT_KERNELS | CONTEXT_PRODUCTS | CONTEXT_ATTENTION},
             {"streams", CONTEXT_STREAMS},
             {"keep", TRAINING_KEEP},
             {"attention", TRAINING_ATTENTION},
             {"layer", TRAINING_LAYER}};

/* NAME=VALUE; false: the line has none more. */
static bool take_field(struct steps *s)
{
    char text[4 * LINE];
    if (steps_take(s, "version="))
        steps_word(s, on.version, sizeof on.version);
    else if (steps_take(s, "card="))
        steps_word(s, on.card, sizeof on.card);
    else if (steps_take(s, "model=")) {
        steps_word(s, text, sizeof text);
        assert_ok(llm_read(text, &on.model, &test_error));
    } else
        return steps_set_field(s, fields, COUNT(fields), &on);
    return true;
}

static void given(struct steps *s, bool anew)
{
    if (anew) {
        memset(&on, 0, sizeof on);
        on.rank = (struct llm_rank){
            .tensor_parallel = 1, .pipeline_parallel = 1, .value_bytes = 2, .rope_bytes = 2};
        on.division.tensor_parallel = 1;
        on.kv_bytes = on.value_bytes = 2;
        on.block_tokens = 16;
        on.there = true;
    }
    while (take_field(s))
        ;
    on.nccl.compute = on.compute;
}

/* ---- rules ----------------------------------------------------------------------------------- */

static struct vllm_version vllm(void)
{
    struct vllm_version version;
    assert_ok(vllm_version_read(on.version, &version, &test_error));
    return version;
}

static struct sglang_version sglang(void)
{
    struct sglang_version version;
    assert_ok(sglang_version_read(on.version, &version, &test_error));
    return version;
}

static struct vllm_cache cache(struct vllm_version version)
{
    struct vllm_cache out =
        vllm_cache_of(version, &on.model, &on.rank, on.block_tokens, on.kv_bytes);
    if (on.state_blocks)
        out.state_blocks = on.state_blocks;
    return out;
}

static struct vllm_spaces spaces(void)
{
    return vllm_spaces_of(vllm(), &on.model, on.compute, on.length, on.requests, on.block_tokens,
                          on.value_bytes);
}

static struct vllm_experts experts(void)
{
    return vllm_experts_of(vllm(), on.compute, on.plain, on.tokens, on.used, on.width,
                           on.model.hidden, on.value_bytes);
}

static struct vllm_reduces reduces(void)
{
    return vllm_reduces_of(vllm(), on.compute, on.ranks, on.model.hidden, on.tokens,
                           on.value_bytes);
}

static struct sglang_settings settings(void)
{
    struct sglang_settings out = on.settings;
    out.tensor_parallel = on.rank.tensor_parallel;
    out.pipeline_parallel = on.rank.pipeline_parallel;
    sglang_defaults(sglang(), &out);
    return out;
}

static struct graphs_decoder decoder(void)
{
    return (struct graphs_decoder){.layers = (uint32_t)on.model.layers,
                                   .ranks = on.ranks,
                                   .expert_layers = on.expert_layers,
                                   .shared_layers = on.shared_layers,
                                   .latent = on.latent};
}

static struct training_layer layer(void)
{
    return (struct training_layer){.tokens = on.tokens,
                                   .sequence = on.sequence,
                                   .hidden = on.model.hidden,
                                   .heads = on.model.heads,
                                   .tensor_parallel = on.rank.tensor_parallel};
}

#define NOTHING (void)0
#define VLLM    const struct vllm_version version = vllm()
#define CACHE                                                                                      \
    const struct vllm_version version = vllm();                                                    \
    const struct vllm_cache of = cache(version)
#define SPACES  const struct vllm_spaces of = spaces()
#define EXPERTS const struct vllm_experts of = experts()
#define REDUCES const struct vllm_reduces of = reduces()
#define SGLANG  const struct sglang_settings of = settings()
#define DECODER const struct graphs_decoder of = decoder()
#define LAYER   const struct training_layer of = layer()

static bool rule(const char *name, long double *value)
{
#define X(rule, need, figure)                                                                      \
    if (strcmp(name, #rule) == 0) {                                                                \
        need;                                                                                      \
        *value = (long double)(figure);                                                            \
        return true;                                                                               \
    }
#include "tests/support/steps_rules.def"
#undef X
    return false;
}

/* ---- communicators, and the scheduler of a paged cache --------------------------------------- */

static struct nccl_communicator *take_group(struct steps *s)
{
    if (!steps_take(s, "(") && !steps_take(s, "communicator"))
        steps_wrong(s, "of which communicator?");
    return &groups[steps_take(s, "b") || (steps_take(s, "a"), false)];
}

/* `nccl_use(a all_reduce 4MiB)` and so on: the bytes that come or go. */
static bool function(struct steps *s, const char *name, long double *value)
{
    if (strncmp(name, "nccl_", 5) != 0)
        return false;
    struct nccl_communicator *self = take_group(s);
    const char *call = name + 5;
    uint64_t out = 0;
    if (strcmp(call, "start") == 0)
        out = nccl_start(self);
    else if (strcmp(call, "use") == 0) {
        const enum nccl_operation operation = (enum nccl_operation)steps_value(s);
        out = nccl_use(self, operation, steps_value(s));
    } else if (strcmp(call, "send") == 0)
        out = nccl_send(self, (uint32_t)steps_value(s));
    else if (strcmp(call, "suspend") == 0)
        out = nccl_suspend(self);
    else if (strcmp(call, "resume") == 0)
        nccl_resume(self);
    else if (strcmp(call, "held") == 0)
        out = nccl_held(self);
    else if (strcmp(call, "finalize") == 0)
        out = nccl_finalize(self);
    else
        return false;
    if (!steps_take(s, ")"))
        steps_wrong(s, "no ) before \"%s\"", s->at);
    *value = (long double)out;
    return true;
}

/* `communicator NAME RANKS RANK`. */
static void communicator(struct steps *s)
{
    size_t index = steps_take(s, "b") || (steps_take(s, "a"), false);
    uint32_t ranks = (uint32_t)steps_value(s);
    groups[index] = nccl_communicator(&on.nccl, ranks, (uint32_t)steps_value(s));
}

/* `scheduler FIELD=VALUE ..`. */
static void scheduler(struct steps *s)
{
    static const struct steps_field of_setup[] = {
#define F(name) FIELD(paged_setup, name),
        F(style) F(blocks) F(block_tokens) F(max_requests) F(step_tokens) F(length) F(chunks)
            F(expected_percent) F(shared_tokens) F(draft_tokens) F(lookahead_tokens) F(acceptance)
#undef F
    };
    struct paged_setup setup = {0};
    on.there = true;
    while (steps_set_field(s, of_setup, COUNT(of_setup), &setup))
        ;
    paged_close(&paged);
    enum ar_status status = paged_open(&paged, &setup, &test_error);
    steps_ended(s, status, test_error.text);
}

static void add_request(struct steps *s)
{
    uint64_t prompt = steps_value(s);
    assert_ok(paged_add(&paged, prompt, steps_value(s), &test_error));
}

static bool figure_of_state(const char *name, long double *value)
{
    static const struct steps_field of_steps[] = {
#define F(name) STEPS_FIELD("step." #name, paged_step, name),
        F(tokens) F(sequences) F(rows) F(prompts) F(blocks) F(preempted) F(finished)
#undef F
    };
    static const struct steps_field of_paged[] = {
#define F(name) STEPS_FIELD("paged." #name, paged, name),
        F(free) F(prefix) F(hits) F(recomputed) F(finished) F(preemptions)
#undef F
    };
    static const struct steps_field of_groups[] = {
#define F(name) STEPS_FIELD("a." #name, nccl_communicator, name),
        F(bytes) F(channels) F(p2p_per_peer) F(nvls_channels) F(setup.ranks_per_node)
#undef F
    };
    return STEPS_GET(name, of_steps, &step, value) || STEPS_GET(name, of_paged, &paged, value) ||
           STEPS_GET(name, of_groups, &groups[0], value);
}

bool steps_rules_figure(struct steps *s, const char *name, long double *value)
{
    if (!on.there)
        return false;
    if (*s->at == '(')
        return function(s, name, value);
    for (size_t i = 0; i < COUNT(words); i++)
        if (strcmp(name, words[i].name) == 0)
            return *value = words[i].value, true;
    if (strncmp(name, "size.", 5) == 0)
        return *value = sizes.at[strtoul(name + 5, NULL, 10) % GRAPHS_SIZES], true;
    if (strncmp(name, "request.", 8) == 0)
        return *value = paged.requests[strtoul(name + 8, NULL, 10)].blocks, true;
    return figure_of_state(name, value) || rule(name, value);
}

/* ---- operations ------------------------------------------------------------------------------ */

/* `batch_sizes vllm RELEASE SEQS TOKENS LARGEST`, `batch_sizes sglang RELEASE BATCH`,
 * `batch_sizes TEXT`. */
static void batch_sizes(struct steps *s)
{
    char text[LINE];
    if (steps_take(s, "vllm")) {
        uint32_t numbers[4];
        for (size_t i = 0; i < 4; i++)
            numbers[i] = (uint32_t)steps_value(s);
        graphs_vllm_sizes(numbers[0], numbers[1], numbers[2], numbers[3], &sizes);
    } else if (steps_take(s, "sglang")) {
        uint32_t release = (uint32_t)steps_value(s);
        graphs_sglang_sizes(release, (uint32_t)steps_value(s), &sizes);
    } else {
        steps_until_arrow(s, text, sizeof text);
        steps_ended(s, graphs_sizes_parse("sizes", text, &sizes, &test_error), test_error.text);
    }
    on.there = true;
}

/* `graphs_of MODE COUNT FIRST SECOND`: what vLLM measured of a mode. */
static void mode(struct steps *s)
{
    struct vllm_graphs *of = &on.modes[steps_value(s) % COUNT(on.modes)];
    of->count = steps_value(s);
    of->first_bytes = steps_value(s);
    of->second_bytes = steps_value(s);
}

static void check_cache(struct steps *s)
{
    const struct vllm_version version = vllm();
    const struct vllm_cache of = cache(version);
    enum ar_status status =
        vllm_cache_check(version, &of, on.available, on.length, on.batch_tokens, &test_error);
    steps_ended(s, status, test_error.text);
}

static void read_version(struct steps *s, bool of_vllm)
{
    char text[LINE];
    struct vllm_version vllm_out;
    struct sglang_version sglang_out;
    steps_word(s, text, sizeof text);
    steps_ended(s,
                of_vllm ? vllm_version_read(text, &vllm_out, &test_error)
                        : sglang_version_read(text, &sglang_out, &test_error),
                test_error.text);
}

static void one_step(struct steps *s, bool expected)
{
    if (paged_step(&paged, &step) != expected)
        steps_wrong(s, expected ? "all requests are finished" : "a request is not finished");
}

bool steps_rules_operation(struct steps *s)
{
    if (steps_take(s, "given"))
        given(s, true);
    else if (steps_take(s, "and"))
        given(s, false);
    else if (steps_take(s, "communicator"))
        communicator(s);
    else if (steps_take(s, "batch_sizes"))
        batch_sizes(s);
    else if (steps_take(s, "graphs_of"))
        mode(s);
    else if (steps_take(s, "check_cache"))
        check_cache(s);
    else if (steps_take(s, "check_model"))
        steps_ended(s, llm_check(&on.model, &on.rank, &test_error), test_error.text);
    else if (steps_take(s, "vllm_version"))
        read_version(s, true);
    else if (steps_take(s, "sglang_version"))
        read_version(s, false);
    else if (steps_take(s, "scheduler"))
        scheduler(s);
    else if (steps_take(s, "request"))
        add_request(s);
    else if (steps_take(s, "step"))
        one_step(s, true);
    else if (steps_take(s, "no_step"))
        one_step(s, false);
    else if (steps_take(s, "max_requests"))
        paged.setup.max_requests = steps_value(s);
    else
        return false;
    return true;
}

void steps_rules_begin(void)
{
    memset(&on, 0, sizeof on);
    paged_close(&paged);
    paged = (struct paged){0};
}
