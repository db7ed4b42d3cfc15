/* CUDA graphs of inference engines: which batch sizes are captured, how many graphs and kernels
 * that is, and what the driver keeps for them on the card. The private pool of the captures is the
 * policy's: the part `graphs` makes its requests.
 *
 * Sizes:
 *   vLLM 0.6, 0.7        1, 2, 4, 8, 16 .. 256 up to max_num_seqs: 35 sizes
 *                        (worker/model_runner.py, _BATCH_SIZES_TO_CAPTURE)
 *   vLLM 0.8 to 0.11.0   1, 2, 4, 8, 16 .. 512: 67 sizes (config.py, _set_cudagraph_sizes); from
 *                        0.9 on up to the lesser of 512 and 2 x max_num_seqs
 *   vLLM after 0.11.0    1, 2, 4, 8 .. 248 by 8, 256 .. by 16: 51 sizes (config/vllm.py)
 *   SGLang before 0.5    1, 2, 4, 8 .. 160 by 8 (server_args.py and cuda_graph_runner.py)
 *   SGLang from 0.5 on   1, 2, 4, 8, 12, 16 .. 256 by 8, 272 .. 496 by 16, 512 .. by 32
 *
 * All capture the largest size first, into one pool, so smaller ones use its blocks again. */
#pragma once

#include "allocators/base/status.h"

#define GRAPHS_SIZES 1027 /* 1, 2, 4 and multiples of 8 up to 8192 */

struct graphs_sizes {
    size_t count;
    uint32_t at[GRAPHS_SIZES]; /* ascending */
};

/* The default sizes of vLLM. `release`: 900 for 0.9, 1101 for 0.11.1 (minor x 100 + patch); 0: the
 * newest. `largest` is max_cudagraph_capture_size, 0: the default. No size is above
 * `max_batched_tokens` (0: no bound). */
void graphs_vllm_sizes(uint32_t release, uint32_t max_num_seqs, uint32_t max_batched_tokens,
                       uint32_t largest, struct graphs_sizes *out);

/* The default sizes of SGLang for --cuda-graph-max-bs. `release` as above: 503 for 0.5.3. */
void graphs_sglang_sizes(uint32_t release, uint32_t max_bs, struct graphs_sizes *out);

/* Sizes from a text: numbers, and ranges with a step: "1 2 4 8-256/8", with blanks or commas.
 * INVALID with a sentence that begins with `key`. */
enum ar_status graphs_sizes_parse(const char *key, const char *text, struct graphs_sizes *out,
                                  struct ar_error *error);

/* A decoder. `ranks`: of tensor parallelism. */
struct graphs_decoder {
    uint32_t layers, ranks;
    uint32_t expert_layers, shared_layers; /* with experts; with shared ones beside them */
    bool latent;                           /* attention */
    bool learned;                          /* positions: no rotation */
};

/* The graphs and kernels of one captured size. */
struct graphs_shape {
    uint32_t graphs;  /* executable graphs */
    uint32_t kernels; /* kernel nodes in all of them */
};

/* One graph of the whole forward pass (vLLM's FULL, SGLang). With several ranks there are two
 * all-reduces for each layer and one for the embedding. */
struct graphs_shape graphs_full(const struct graphs_decoder *decoder);

/* vLLM's PIECEWISE: a graph between each two attention kernels. */
struct graphs_shape graphs_piecewise(const struct graphs_decoder *decoder);

/* What the driver takes of the card for all executable graphs of a process, when they are
 * instantiated; replays take nothing. `cuda`: CUDA version of the driver, 1204 for 12.4; 0: the
 * newest. It stays when the graphs are destroyed, for later ones.
 *
 *   13.0   2650 bytes for each kernel node, at least 102.4 KiB for each graph, in chunks of 2 MiB
 *          of which the context has 2.4 MiB to spare. Measured on an H200 with driver 580: decoders
 *          of 4, 16 and 48 layers, 8 graphs each, 0, 2 and 12 MiB (exact); 200 graphs of one node
 *          20 MiB; 10 graphs of up to 20000 small kernels 92 MiB (the rule: 98). A kernel with
 *          4 KiB of parameters takes 8.8 KB.
 *   12.4   20 KiB for each node, from public logs: vLLM's graphs of Llama-3.2-1B (vllm#11349), 6 to
 *          8 MiB for the pieces of a size of an 8B model (vllm#23184), 8 GiB for a rollout of 360
 *          steps (JBjoernskov/Twin4Build#134).
 *   older  3.35 times that: vllm#5517, the same program, 3.8086 GiB with 12.2 and 12.3, 1.1367 GiB
 *          with 12.4. */
uint64_t graphs_driver_bytes(uint32_t cuda, uint64_t graphs, uint64_t kernels);
