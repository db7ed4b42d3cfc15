/* CUDA graphs that an engine captures for a list of batch sizes: requests in a private pool, and
 * what the driver keeps outside of it, by rules/graphs.h.
 *
 * The largest size is captured first (`order`). Each capture requests its activations and frees
 * them (`bytes_per_token`, or `requests` of each layer), and keeps its outputs (`kept_per_token`)
 * until the release. A shared pool serves the next size from the blocks of the one before. After
 * the release the pool ends, and the next empty_cache releases its memory. What the driver holds
 * stays for later graphs. */

#include "allocators/base/size.h"
#include "sim/twin/part.h"
#include "sim/twin/rules/compatible.h"
#include "sim/twin/rules/graphs.h"

enum { BY_LIST, BY_VLLM, BY_SGLANG };
enum { MODE_FULL, MODE_PIECEWISE, MODE_BOTH };
enum { POOL_SHARED, POOL_EACH };
enum { ORDER_DESCENDING, ORDER_ASCENDING };

#define REQUESTS 64
#define STATE    8 /* bytes of the seed, and of the offset, of random numbers in graphs */

struct values {
    const char *sizes, *version, *driver, *requests;
    uint64_t max_num_seqs, max_num_batched_tokens, max_capture_size;
    uint64_t layers, ranks, kernels, bytes_per_token, kept_per_token, workspace, streams;
    int rules, mode, pool, order;
};

struct request {
    uint64_t bytes; /* for each token */
    size_t held;    /* it is freed after so many later requests */
};

struct graphs {
    struct twin_part base;
    struct graphs_sizes sizes;
    struct request requests[REQUESTS]; /* of a layer */
    size_t request_count;
    struct twin_blocks kept;
    uint32_t stream;
    uint32_t *pools; /* the shared one, or one for each size */
    size_t pool_count;
    uint32_t cuda;
    uint64_t graphs, kernels; /* captured */
    uint64_t driver_bytes;    /* at most so far: the driver keeps them */
    uint64_t free_before;
    bool captured;
    struct twin_block state[2]; /* of random numbers, as long as the process */
};

#define AR_OPT_OF struct values

static const struct ar_option options[] = {
    AR_OPT_CHOICE(rules, "list", "list|vllm|sglang",
                  "whose batch sizes: `sizes`, or the defaults of an engine"),
    AR_OPT_TEXT(sizes, NULL, "batch sizes, such as \"1 2 4 8-256/8\" (a range with its step)"),
    AR_OPT_TEXT(version, NULL, "of the engine, such as 0.9; default: the newest"),
    AR_OPT_COUNT(max_num_seqs, "256", 1, 65536, "vllm: its option; sglang: --cuda-graph-max-bs"),
    AR_OPT_COUNT(max_num_batched_tokens, "0", 0, 1e6, "vllm: no size is larger; 0: no bound"),
    AR_OPT_COUNT(max_capture_size, "0", 0, 8192,
                 "vllm: max_cudagraph_capture_size; 0: its default"),
    AR_OPT_COUNT(layers, "32", 1, 1000, "of the decoder"),
    AR_OPT_COUNT(ranks, "1", 1, 4096, "tensor parallelism"),
    AR_OPT_CHOICE(
        mode, "full", "full|piecewise|both",
        "graphs of the whole pass, between attention kernels, or both (full up to max_num_seqs)"),
    AR_OPT_COUNT(kernels, "0", 0, 1e7, "kernels of a captured size; 0: by layers and ranks"),
    AR_OPT_BYTES(bytes_per_token, "0", 0, 0,
                 "activations of a capture for each token, as one request"),
    AR_OPT_TEXT(requests, NULL,
                "instead, for each layer: bytes for each token and how many later ones it "
                "outlives, \"2048:1 6144:8\""),
    AR_OPT_BYTES(kept_per_token, "0", 0, 0, "what stays live of each size for each token"),
    AR_OPT_BYTES(workspace, "0", 0, 0,
                 "of cuBLAS for the stream of the captures; stays live in the pool"),
    AR_OPT_BYTES(
        streams, "0", 0, 0,
        "of the driver for the first streams of the process: 70MiB with PyTorch, if it had none"),
    AR_OPT_CHOICE(pool, "shared", "shared|each", "one private pool for all sizes, or one for each"),
    AR_OPT_CHOICE(order, "descending", "descending|ascending",
                  "engines capture the largest size first"),
    AR_OPT_TEXT(driver, NULL, "CUDA version of the driver, such as 12.2; default: 13.0 or newer"),
    {0},
};

enum { ACTION_CAPTURE, ACTION_REPLAY, ACTION_RELEASE };

static const struct twin_action actions[] = {
    {"capture", NULL, "captures all sizes, the largest first", 0, 0},
    {"replay", "[STEPS]", "launches a graph so many times: no memory", 0, 1},
    {"release", NULL, "destroys the graphs; then empty_cache releases their pool", 0, 0},
    {0},
};

static enum ar_status read_sizes(struct graphs *self, const struct values *values,
                                 struct ar_error *error)
{
    if (values->rules == BY_LIST) {
        if (!values->sizes)
            return ar_invalid(
                error,
                "it needs batch sizes: write sizes = 1 2 4 8-256/8, or rules = vllm or sglang");
        return graphs_sizes_parse("sizes", values->sizes, &self->sizes, error);
    }
    if (values->sizes)
        return ar_invalid(error, "sizes and rules = %s: leave one of them out",
                          values->rules == BY_VLLM ? "vllm" : "sglang");
    /* 0.9 is 9, and 900 for the rule. */
    uint32_t release = values->version ? 100 * compatible_release(values->version) : 0;
    if (values->version && !release)
        return ar_invalid(error, "version = %.40s: write a release, such as 0.9", values->version);
    uint32_t most = (uint32_t)values->max_num_seqs;
    if (values->rules == BY_VLLM)
        graphs_vllm_sizes(release, most, (uint32_t)values->max_num_batched_tokens,
                          (uint32_t)values->max_capture_size, &self->sizes);
    else
        graphs_sglang_sizes(release, most, &self->sizes);
    return AR_OK;
}

static enum ar_status bad_requests(const char *text, struct ar_error *error)
{
    return ar_invalid(error,
                      "requests = %.60s: write bytes for each token of up to %d requests and how "
                      "many later ones each outlives, such as 2048:1 6144:8",
                      text, REQUESTS);
}

/* "6144:8", or "6144": it outlives two. */
static bool read_request(const char *word, struct request *out)
{
    char *end;
    out->bytes = strtoull(word, &end, 10);
    out->held = 2;
    if (end == word || *word == '-' || out->bytes > AR_GIB)
        return false;
    if (*end == ':') {
        const char *held = end + 1;
        out->held = strtoul(held, &end, 10);
        if (end == held || *held == '-')
            return false;
    }
    return !*end && out->held >= 1 && out->held <= REQUESTS;
}

static enum ar_status read_requests(struct graphs *self, const struct values *values,
                                    struct ar_error *error)
{
    const char *text = values->requests;
    if (!text) {
        self->requests[0] = (struct request){values->bytes_per_token, 1};
        self->request_count = values->bytes_per_token ? 1 : 0;
        return AR_OK;
    }
    if (values->bytes_per_token)
        return ar_invalid(error, "requests and bytes_per_token: leave one of them out");
    for (const char *at = text + strspn(text, " ,"); *at; at += strspn(at, " ,")) {
        char word[40];
        size_t length = strcspn(at, " ,");
        if (self->request_count == REQUESTS || length >= sizeof word)
            return bad_requests(text, error);
        memcpy(word, at, length);
        word[length] = '\0';
        if (!read_request(word, &self->requests[self->request_count++]))
            return bad_requests(text, error);
        at += length;
    }
    return AR_OK;
}

static enum ar_status graphs_create(struct twin_part *base, struct ar_error *error)
{
    struct graphs *self = (struct graphs *)base;
    const struct values *values = base->values;
    self->cuda = values->driver ? compatible_release(values->driver) : 0;
    if (values->driver && !self->cuda)
        return ar_invalid(error, "driver = %.40s: write a CUDA version, such as 12.2",
                          values->driver);
    AR_TRY(read_sizes(self, values, error));
    AR_TRY(read_requests(self, values, error));
    self->stream = twin_stream(base);
    self->pools = calloc(self->sizes.count, sizeof *self->pools);
    AR_TRY_MEMORY(self->pools, error, "%zu pools", self->sizes.count);
    return AR_OK;
}

/* The pool for the next size. */
static uint32_t pool_for_next(struct graphs *self, int pools)
{
    if (pools == POOL_EACH || !self->pool_count)
        self->pools[self->pool_count++] = twin_pool(&self->base, 0);
    return self->pools[self->pool_count - 1];
}

/* The first capture of a process makes seed and offset of random numbers, in the common pool
 * (CUDAGeneratorImpl.cpp, seed_extragraph_), and cuBLAS its workspace for the stream, in the
 * pool. */
static void capture_first(struct graphs *self, const struct values *values, uint32_t pool)
{
    struct twin_part *base = &self->base;
    struct twin_request request = {
        .bytes = STATE, .owner = twin_owner(base, "random state"), .stream = self->stream};
    for (size_t i = 0; i < 2; i++)
        if (!self->state[i].held)
            twin_alloc(base, &request, &self->state[i]);
    twin_outside(base, twin_owner(base, "streams"), values->streams);
    request.bytes = values->workspace;
    request.owner = twin_owner(base, "workspace");
    request.pool = pool;
    if (request.bytes)
        twin_blocks_alloc(base, &self->kept, &request);
    self->captured = true;
}

/* The activations of a pass: a layer's requests, for each layer. */
static void pass(struct graphs *self, const struct values *values, uint32_t size,
                 struct twin_request *request)
{
    struct {
        struct twin_block block;
        size_t ends; /* it is freed when this request has been made */
    } live[REQUESTS + 1] = {{{0}, 0}};
    size_t count = self->request_count, total = values->requests ? count * values->layers : count;
    for (size_t i = 0; i < total; i++) {
        size_t place = i % (REQUESTS + 1);
        request->bytes = size * self->requests[i % count].bytes;
        twin_alloc(&self->base, request, &live[place].block);
        live[place].ends = i + self->requests[i % count].held;
        for (size_t k = 0; k <= REQUESTS; k++)
            if (live[k].block.held && live[k].ends == i)
                twin_free_on(&self->base, &live[k].block, self->stream);
    }
    request->bytes = size * values->kept_per_token;
    request->owner = twin_owner(&self->base, "outputs");
    if (request->bytes)
        twin_blocks_alloc(&self->base, &self->kept, request);
    for (size_t k = 0; k <= REQUESTS; k++)
        twin_free_on(&self->base, &live[k].block, self->stream);
}

/* torch.cuda.graph releases the cache before it captures. */
static void capture_size(struct graphs *self, const struct values *values, uint32_t size)
{
    struct twin_part *base = &self->base;
    struct twin_request request = {.owner = twin_owner(base, "activations"),
                                   .stream = self->stream,
                                   .pool = pool_for_next(self, values->pool)};
    twin_trim(base);
    if (!self->captured)
        capture_first(self, values, request.pool);
    pass(self, values, size, &request);
}

/* The graphs and kernels of a size. */
static void count_size(struct graphs *self, const struct values *values, uint32_t size)
{
    const struct graphs_decoder decoder = {.layers = (uint32_t)values->layers,
                                           .ranks = (uint32_t)values->ranks};
    bool full =
        values->mode == MODE_FULL || (values->mode == MODE_BOTH && size <= values->max_num_seqs);
    struct graphs_shape whole = graphs_full(&decoder), pieces = graphs_piecewise(&decoder);
    if (full) {
        self->graphs += whole.graphs;
        self->kernels += values->kernels ? values->kernels : whole.kernels;
    }
    if (values->mode != MODE_FULL) {
        self->graphs += pieces.graphs;
        self->kernels += values->kernels ? values->kernels : pieces.kernels;
    }
}

/* One size for each turn. */
static enum ar_status capture(struct graphs *self, const struct values *values, uint64_t turn,
                              bool *more, struct ar_error *error)
{
    struct twin_part *base = &self->base;
    uint64_t free_bytes, total_bytes;
    if (turn == 0) {
        if (self->captured)
            return twin_refuse(base, error, "the graphs are captured already; release them first");
        twin_card(base, &self->free_before, &total_bytes);
    }
    uint32_t size =
        self->sizes.at[values->order == ORDER_ASCENDING ? turn : self->sizes.count - 1 - turn];
    capture_size(self, values, size);
    count_size(self, values, size);
    uint64_t driver = graphs_driver_bytes(self->cuda, self->graphs, self->kernels);
    AR_RAISE(self->driver_bytes, driver);
    twin_outside(base, twin_owner(base, "driver"), self->driver_bytes);
    *more = turn + 1 < self->sizes.count && !twin_over(base);
    if (!*more) {
        twin_card(base, &free_bytes, &total_bytes);
        double took = (double)self->free_before - (double)free_bytes;
        twin_figure(base, "graphs", took);
        twin_say(base, "%zu sizes captured: %llu graphs, %llu kernels, %.2f GiB", self->sizes.count,
                 (unsigned long long)self->graphs, (unsigned long long)self->kernels,
                 took / (double)AR_GIB);
    }
    return AR_OK;
}

static void release_graphs(struct graphs *self)
{
    twin_blocks_free(&self->base, &self->kept);
    for (size_t i = 0; i < self->pool_count; i++)
        twin_pool_end(&self->base, self->pools[i]);
    self->pool_count = 0;
    self->graphs = self->kernels = 0;
    self->captured = false;
    twin_figure(&self->base, "graphs", 0);
}

static enum ar_status graphs_act(struct twin_part *base, const struct twin_call *call, bool *more,
                                 struct ar_error *error)
{
    struct graphs *self = (struct graphs *)base;
    const struct values *values = base->values;
    uint64_t steps = 1;
    if (call->action == ACTION_CAPTURE)
        return capture(self, values, call->turn, more, error);
    if (!self->captured)
        return ar_invalid(error, "%s has no graphs; call capture first", self->base.name);
    if (call->action == ACTION_RELEASE) {
        release_graphs(self);
        return AR_OK;
    }
    AR_TRY(twin_repeats(call, &steps, error));
    twin_step(base);
    *more = call->turn + 1 < steps;
    return AR_OK;
}

static void graphs_destroy(struct twin_part *base)
{
    struct graphs *self = (struct graphs *)base;
    twin_blocks_close(&self->kept);
    free(self->pools);
}

static bool graphs_what_if(const void *given, size_t index, struct twin_what_if *out)
{
    const struct values *values = given;
    const struct twin_offer list[] = {
        {values->pool == POOL_EACH,
         {.text = "graphs of all sizes share a pool", .option = "pool", .value = "shared"}},
        {values->rules != BY_LIST && values->max_num_seqs > 64,
         {.text = "graphs for batch sizes up to 64 only", .option = "max_num_seqs", .value = "64"}},
    };
    return twin_offer_at(list, AR_COUNT(list), index, out);
}

const struct twin_part_ops graphs_part = {
    .kind = "graphs",
    .summary = "CUDA graphs captured for a list of batch sizes",
    .options = options,
    .values_bytes = sizeof(struct values),
    .part_bytes = sizeof(struct graphs),
    .actions = actions,
    .create = graphs_create,
    .act = graphs_act,
    .destroy = graphs_destroy,
    .releases = "release",
    .restores = "capture",
    .what_if = graphs_what_if,
};
