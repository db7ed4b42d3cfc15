#include "sim/twin/rules/graphs.h"

#include "allocators/base/size.h"

/* What the driver keeps for one of the kernel nodes of a graph, for a graph at least, and what it
 * has to spare. */
#define NODE_BYTES     UINT64_C(2650)
#define GRAPH_BYTES    UINT64_C(104858)
#define SPARE_BYTES    UINT64_C(2516582)
#define NODE_BYTES_124 (20 * AR_KIB)
/* Drivers before 12.4. */
#define OLD_FACTOR 3.35

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static void add(struct graphs_sizes *out, uint32_t size)
{
    if (out->count < GRAPHS_SIZES && (!out->count || out->at[out->count - 1] < size))
        out->at[out->count++] = size;
}

/* from, from + step .. up to `last`, and no size above `most`. */
static void add_range(struct graphs_sizes *out, uint32_t from, uint32_t last, uint32_t step,
                      uint32_t most)
{
    for (uint32_t size = from; size <= least(last, most); size += step)
        add(out, size);
}

void graphs_vllm_sizes(uint32_t release, uint32_t max_num_seqs, uint32_t max_batched_tokens,
                       uint32_t largest, struct graphs_sizes *out)
{
    uint32_t most = largest ? largest : least(512, 2 * max_num_seqs);
    out->count = 0;
    if (release && release < 800) {
        /* _get_graph_batch_size: max_num_seqs, up to the next size of the list. */
        uint32_t up = max_num_seqs <= 2   ? max_num_seqs
                      : max_num_seqs <= 4 ? 4
                                          : (max_num_seqs + 7) / 8 * 8;
        most = largest ? largest : least(256, up);
    } else if (release && release < 900) {
        most = largest ? largest : 512;
    }
    if (max_batched_tokens)
        most = least(most, max_batched_tokens);
    add_range(out, 1, 2, 1, most);
    add_range(out, 4, 4, 1, most);
    if (release && release <= 1100) {
        add_range(out, 8, most, 8, most);
    } else {
        add_range(out, 8, 255, 8, most);
        add_range(out, 256, most, 16, most);
    }
}

void graphs_sglang_sizes(uint32_t release, uint32_t max_bs, struct graphs_sizes *out)
{
    out->count = 0;
    add_range(out, 1, 2, 1, max_bs);
    add_range(out, 4, 4, 1, max_bs);
    if (release && release < 500) {
        add_range(out, 8, max_bs, 8, max_bs);
    } else {
        add_range(out, 8, 12, 4, max_bs);
        add_range(out, 16, 256, 8, max_bs);
        add_range(out, 272, 496, 16, max_bs);
        add_range(out, 512, max_bs, 32, max_bs);
    }
    if (max_bs)
        add(out, max_bs);
}

static enum ar_status bad(const char *key, const char *text, struct ar_error *error)
{
    return ar_invalid(error,
                      "%s = %.60s: write ascending batch sizes and ranges with a step, such as 1 2 "
                      "4 8-256/8; at most %d",
                      key, text, GRAPHS_SIZES);
}

enum ar_status graphs_sizes_parse(const char *key, const char *text, struct graphs_sizes *out,
                                  struct ar_error *error)
{
    out->count = 0;
    for (const char *at = text + strspn(text, " ,"); *at; at += strspn(at, " ,")) {
        char *end;
        unsigned long from = strtoul(at, &end, 10), to = from, step = 1;
        if (end == at || *at == '-' || *at == '+')
            return bad(key, text, error);
        if (*end == '-') {
            at = end + 1;
            to = strtoul(at, &end, 10);
            if (end == at || *at == '-' || *at == '+')
                return bad(key, text, error);
        }
        if (*end == '/') {
            at = end + 1;
            step = strtoul(at, &end, 10);
            if (end == at || *at == '-' || *at == '+')
                return bad(key, text, error);
        }
        bool ascends = from && from <= to && to <= 1u << 20 && step && step <= 1u << 20 &&
                       (!out->count || out->at[out->count - 1] < from);
        if (!ascends || (*end && !strchr(" ,", *end)) ||
            (to - from) / step >= GRAPHS_SIZES - out->count)
            return bad(key, text, error);
        add_range(out, (uint32_t)from, (uint32_t)to, (uint32_t)step, (uint32_t)to);
        at = end;
    }
    return out->count ? AR_OK : bad(key, text, error);
}

/* Kernels of one decoder layer: two norms, four products, rotation, activation; the write of keys
 * and values and two kernels of attention; two all-reduces if there are several ranks. Some more
 * for the embedding and the last norm.
 * Experts (vLLM 0.20, fused_moe.py, fused_marlin_moe.py): the router's product and its choice, two
 * kernels that sort tokens by expert, and the sum over a token's experts; the products and the
 * activation are as many as of a dense layer. Shared experts: these three and a sum.
 * Latent attention (mla.py, mla_attention.py): a further product and two norms before it, and in it
 * two products with the halves of kv_b_proj and the joining of the queries' halves. */
enum { LAYER = 8, ATTENTION = 3, REDUCE = 2, REST = 4 };
enum { EXPERTS = 5, SHARED = 4, LATENT_LAYER = 3, LATENT_ATTENTION = 3 };

/* Of all layers, without attention. */
static uint32_t layer_kernels(const struct graphs_decoder *self)
{
    uint32_t each = LAYER - self->learned;
    each += self->ranks > 1 ? REDUCE : 0;
    each += self->latent ? LATENT_LAYER : 0;
    return self->layers * each + self->expert_layers * EXPERTS + self->shared_layers * SHARED +
           REST + (self->ranks > 1);
}

struct graphs_shape graphs_full(const struct graphs_decoder *self)
{
    uint32_t attention = ATTENTION + (self->latent ? LATENT_ATTENTION : 0);
    return (struct graphs_shape){1, layer_kernels(self) + self->layers * attention};
}

struct graphs_shape graphs_piecewise(const struct graphs_decoder *self)
{
    return (struct graphs_shape){self->layers + 1, layer_kernels(self)};
}

uint64_t graphs_driver_bytes(uint32_t cuda, uint64_t graphs, uint64_t kernels)
{
    uint64_t bytes = kernels * (cuda && cuda < 1300 ? NODE_BYTES_124 : NODE_BYTES);
    if (bytes < graphs * GRAPH_BYTES)
        bytes = graphs * GRAPH_BYTES;
    if (cuda && cuda < 1204)
        bytes = (uint64_t)((double)bytes * OLD_FACTOR);
    return bytes > SPARE_BYTES ? ar_size_round_up(bytes - SPARE_BYTES, 2 * AR_MIB) : 0;
}
