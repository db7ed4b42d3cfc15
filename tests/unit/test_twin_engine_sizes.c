/* The requests of the part `engine` one by one: peaks of layers by hand, inputs, caches, graphs. */
#include "tests/support/cases.h"
#include "tests/support/engine_rig.h"

#define H100   "sim:profile=h100"
#define TOKENS 8192

/* ---- a forward pass ---- */

/* 16-bit values for each token that live at the peak; the residual stream and the values that go
 * into the sublayer are 2 x 1024 of them. */
static const struct {
    const char *model;
    double values;
} peaks[] = {
    /* attention: queries, keys and values, scores, output */
    {"heads=8,kv_heads=2,head=256,ffn=256", 2048 + 12 * 256 + 8 * 256 + 1024},
    {"heads=8,kv_heads=2,head=256,ffn=256 tensor_parallel=2", 2048 + 6 * 256 + 4 * 256 + 1024},
    /* a rank has a whole head of keys */
    {"heads=8,kv_heads=2,head=256,ffn=256 tensor_parallel=4", 2048 + 4 * 256 + 2 * 256 + 1024},
    /* gate and up, their product, output */
    {"heads=8,kv_heads=2,head=64,ffn=4096", 2048 + 3 * 4096 + 1024},
    {"heads=8,kv_heads=2,head=64,ffn=4096 tensor_parallel=2", 2048 + 3 * 2048 + 1024},
    /* the sum of ranks is out of place */
    {"heads=8,kv_heads=2,head=16,ffn=64 tensor_parallel=2", 2048 + 2 * 1024},
    /* experts: logits, weights and indices of two; the larger of gate-up and output; the product */
    {"heads=8,kv_heads=2,head=64,experts=8,experts_used=2,expert_ffn=2048",
     2048 + 8 * 2 + 2 * 2 + 2 * 2 + 2 * 2 * 2048 + 2 * 2048 + 1024},
    {"heads=4,kv_heads=1,head=64,experts=8,experts_used=2,expert_ffn=256",
     2048 + 8 * 2 + 2 * 2 + 2 * 2 + 2 * 1024 + 2 * 256 + 1024},
    {"heads=8,kv_heads=2,head=64,experts=8,experts_used=2,expert_ffn=2048 tensor_parallel=2",
     2048 + 8 * 2 + 2 * 2 + 2 * 2 + 2 * 2 * 1024 + 2 * 1024 + 1024},
    {"heads=8,kv_heads=2,head=64,experts=8,experts_used=2,expert_ffn=2048,shared_ffn=512",
     2048 + 8 * 2 + 2 * 2 + 2 * 2 + 2 * 2 * 2048 + 2 * 2048 + 1024 + 1024},
    {"heads=8,kv_heads=2,head=64,experts=8,experts_used=2,expert_ffn=64,shared_ffn=4096",
     2048 + 3 * 4096 + 1024},
    {"heads=8,kv_heads=2,head=64,experts=8,experts_used=2,expert_ffn=64,shared_ffn=4096 "
     "tensor_parallel=2",
     2048 + 3 * 2048 + 1024},
    /* latent attention */
    {"heads=16,kv_heads=16,head=192,ffn=64,kv_rank=512,rope=64,nope=128,v_head=128,q_rank=768 "
     "max_model_len=16",
     2048 + 768 + 16 * 192 + 576 + 16 * 256 + 16 * 128 + 1024},
    /* and the context of chunked prefill, projected for all heads of the rank */
    {"heads=16,kv_heads=16,head=192,ffn=64,kv_rank=512,rope=64,nope=128,v_head=128 "
     "tensor_parallel=2",
     2048 + 65536.0 * 8 * 256 / TOKENS},
    {"heads=16,kv_heads=16,head=192,ffn=64,kv_rank=512,rope=64,nope=128,v_head=128 "
     "tensor_parallel=2 max_model_len=16",
     2048 + 8 * 192 + 576 + 8 * 256 + 8 * 128 + 1024},
};

TEST(peaks_of_layers_are_those_by_hand)
{
    for (size_t i = 0; i < sizeof peaks / sizeof peaks[0]; i++) {
        CLOSED(close_run) struct run self = {0};
        char options[400];
        snprintf(options, sizeof options,
                 "version=0.11 max_num_batched_tokens=%d max_num_seqs=1 enforce_eager=yes "
                 "model=custom:layers=4,hidden=1024,vocabulary=1024,positions=8192,%s",
                 TOKENS, peaks[i].model);
        pass(&self, H100, options, "e.load, e.profile");
        double expected = peaks[i].values * 2 * TOKENS;
        double peak = figure(&self, "peak activation") - (double)(32 * AR_MIB); /* cuBLAS */
        if (peak != expected)
            fail_msg("%s: %.0f bytes, expected %.0f", peaks[i].model, peak, expected);
    }
}

/* ---- what is made once ---- */

static uint64_t granted(uint64_t bytes)
{
    return ar_size_round_up(bytes, 512);
}

TEST(inputs_are_there_from_the_start)
{
    static const char options[] = "model=llama-3.2-1b:positions=1024 max_num_batched_tokens=3000 "
                                  "max_num_seqs=5 block_size=32 version=";
    static const struct {
        const char *version;
        uint64_t bytes;
    } table[] = {
        /* ids of 4 bytes, positions and slots of 8; 32 blocks of a request */
        {"0.9.2", 3000 * 4 + 2 * 3000 * 8 + 5 * 32 * 4},
        {"0.9.2-v0", 0},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        CLOSED(close_run) struct run self = {0};
        char text[200];
        snprintf(text, sizeof text, "%s%s", options, table[i].version);
        pass(&self, H100, text, "e.load");
        assert_int_equal(owner(&self, 0, "e/inputs"), table[i].bytes);
    }
    CLOSED(close_run) struct run self = {0};
    pass(&self, H100, "rules=sglang model=llama-3.2-1b", "e.load");
    assert_int_equal(owner(&self, 0, "e/inputs"), 0);
}

TEST(caches_are_as_given)
{
    CLOSED(close_run) struct run self = {0};
    pass(&self, H100,
         "model=llama-3.2-1b version=0.9.2 kv_bytes_per_token=64KiB kv_cache_memory=1GiB "
         "max_model_len=4096 max_num_seqs=4",
         "e.load, e.profile, e.allocate");
    assert_true(figure(&self, "kv blocks") == 1024);
    assert_int_equal(owner(&self, 2, "e/kv cache"), AR_GIB);
    /* weights as one number: the same for each layer */
    pass(&self, H100, "model=llama-3.2-1b version=0.9.2 weights=3GiB", "e.load");
    assert_true(figure(&self, "model weights") == 3 * GIB);
    assert_int_equal(owner(&self, 0, "e/weights"), 3 * AR_GIB);
}

TEST(keys_and_values_of_a_byte_are_half)
{
    double blocks[2];
    for (unsigned i = 0; i < 2; i++) {
        CLOSED(close_run) struct run self = {0};
        pass(&self, H100,
             i ? "model=llama-3.2-1b version=0.9.2 kv_cache_memory=1GiB max_model_len=4096 "
                 "kv_cache_dtype=fp8"
               : "model=llama-3.2-1b version=0.9.2 kv_cache_memory=1GiB max_model_len=4096",
             "e.load, e.profile, e.allocate");
        blocks[i] = figure(&self, "kv blocks");
        assert_int_equal(owner(&self, 2, "e/kv cache"), AR_GIB);
    }
    /* 16 layers of 8 heads with 64 values, keys and values, 16 tokens */
    assert_true(blocks[0] == (double)(AR_GIB / (16 * 8 * 64 * 2 * 2 * 16)));
    assert_true(blocks[1] == 2 * blocks[0]);
}

/* Drafts: the text needs nothing, EAGLE a layer and a product, a model all of its own. */
TEST(drafts_have_weights_and_a_cache)
{
    static const char common[] =
        "version=0.11 model=llama-3.1-8b kv_cache_memory=4GiB max_model_len=4096 ";
    static const struct {
        const char *options;
        uint64_t weights, token_bytes;
    } table[] = {
        {"speculative=ngram", 0, 131072},
        /* 218112000 parameters of a layer, two norms among them, and fc */
        {"speculative=eagle", 2 * (UINT64_C(218112000) + 2 * 4096 * 4096), 131072 + 4096},
        {"speculative=draft draft_model=llama-3.2-1b", 2 * UINT64_C(1235814400), 131072 + 32768},
    };
    struct run plain = {0};
    pass(&plain, H100, common, "e.load, e.profile, e.allocate");
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        CLOSED(close_run) struct run self = {0};
        char options[200];
        snprintf(options, sizeof options, "%s%s", common, table[i].options);
        pass(&self, H100, options, "e.load, e.profile, e.allocate");
        double more = figure(&self, "model weights") - figure(&plain, "model weights");
        double blocks = floor(4.0 * (double)AR_GIB / 16 / (double)table[i].token_bytes);
        if (fabs(more - (double)table[i].weights) > 40e6 * (table[i].weights > 1000000000) + 1e5 ||
            figure(&self, "kv blocks") != blocks)
            fail_msg("%s: %.0f bytes for %.0f, %.0f blocks for %.0f", table[i].options, more,
                     (double)table[i].weights, figure(&self, "kv blocks"), blocks);
    }
    twin_result_close(&plain.result);
}

/* The first stage has the embedding, the last one the head. */
TEST(stages_have_their_layers)
{
    static const struct twin_process_setup on_both = {.name = "p", .policy = "torch", .cards = 3};
    CLOSED(close_run) struct run self = {.scenario = {.cards = 2, .processes = &on_both}};
    pass(&self, H100,
         "model=custom:layers=3,hidden=1024,heads=8,kv_heads=8,head=128,ffn=2048,vocabulary=32768,"
         "positions=4096 version=0.9.2 pipeline_parallel=2",
         "e.load");
    const uint64_t layer = 2 * (4 * 1024 * 1024 + 3 * 1024 * 2048), head = 2 * 1024 * 32768;
    const uint64_t few = 2 * AR_MIB; /* norms, positions */
    assert_in_range(owner_on(&self, 0, 0, "e/weights"), 2 * layer + head, 2 * layer + head + few);
    assert_in_range(owner_on(&self, 0, 1, "e/weights"), layer + head, layer + head + few);
}

/* ---- graphs ---- */

TEST(graphs_keep_the_largest_output)
{
    CLOSED(close_run) struct run self = {0};
    pass(&self, H100,
         "model=llama-3.2-1b version=0.9.2 cudagraph_sizes=1+2+100 kv_cache_memory=1GiB "
         "max_model_len=4096 max_num_seqs=4",
         "e.start");
    assert_int_equal(owner(&self, 0, "e/graphs"), granted(100 * 2048 * 2));
    assert_int_equal(owner(&self, 0, "e/streams"), 70 * AR_MIB);
    /* streams, the driver, a workspace of cuBLAS (32 MiB), and segments of 20 MiB in two
     * pools: of the output and a pass, and of the warm-ups */
    double outside = (double)(owner(&self, 0, "e/streams") + owner(&self, 0, "e/graphs (driver)"));
    double pool = figure(&self, "graphs") - outside;
    assert_true(pool > (double)(32 * AR_MIB) && pool <= (double)(80 * AR_MIB));
    /* A capture after a profile of 0.11 has the streams already. */
    pass(&self, H100, "model=llama-3.2-1b version=0.11 max_model_len=4096",
         "e.load, e.profile, e.allocate, e.capture");
    assert_int_equal(owner(&self, 0, "e/streams"), 0);
    assert_int_equal(owner(&self, 1, "e/streams"), 70 * AR_MIB);
    assert_int_equal(owner(&self, 3, "e/streams"), 70 * AR_MIB);
    assert_true(figure(&self, "graphs") < (double)(300 * AR_MIB));
}

TEST(vllm_suggests_from_its_release_on)
{
    EACH_ROW (row, 2) {
        CLOSED(close_run) struct run self = {0};
        char options[200];
        snprintf(options, sizeof options, "model=llama-3.2-1b max_model_len=4096 %s", row.field[0]);
        pass(&self, H100, options, "e.start");
        double suggested = figure(&self, "suggested cache");
        double left = figure(&self, "available") - figure(&self, "graphs");
        if (cases_number(&row, 1) ? suggested != left - (double)(150 * AR_MIB) : !isnan(suggested))
            fail_msg("%s: %.0f", row.field[0], suggested);
    }
}

TEST(workspaces_are_those_of_the_card)
{
    const struct {
        const char *device;
        uint64_t kib;
    } table[] = {{"h100", 32768},   {"h200", 32768}, {"b200", 32768},  {"gb10", 32768},
                 {"a100-80", 8320}, {"l40s", 8320},  {"rtx4090", 8320}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        CLOSED(close_run) struct run self = {0};
        char device[64];
        snprintf(device, sizeof device, "sim:profile=%s", table[i].device);
        pass(&self, device, "model=llama-3.2-1b version=0.9.2 max_num_seqs=4", "e.load, e.profile");
        assert_int_equal(owner(&self, 1, "e/workspace"), table[i].kib * AR_KIB);
    }
}

/* ---- copies on the host ---- */

TEST(weights_are_copied_if_the_program_does)
{
    EACH_ROW (row, 3) {
        CLOSED(close_run) struct run self = {0};
        char options[200];
        snprintf(options, sizeof options, "%s model=llama-3.2-1b enable_sleep_mode=yes",
                 row.field[0]);
        pass(&self, H100, options, row.field[1]);
        double pinned = (double)twin_rank_at(&self.result, 1, 0)->pinned_live_bytes;
        if (cases_number(&row, 2) ? pinned < figure(&self, "model weights") : pinned != 0)
            fail_msg("%s, %s: %.0f bytes are pinned", row.field[0], row.field[1], pinned);
    }
}

TEST(engines_serve_when_all_is_awake)
{
    static const char options[] = "model=llama-3.2-1b version=0.9.2 enable_sleep_mode=yes";
    CLOSED(close_run) struct run self = {0};
    pass(&self, H100, options,
         "e.start, e.sleep 1, e.wake kv_cache, e.wake weights, e.generate 4, e.sleep 1, "
         "e.wake weights, e.wake kv_cache, e.generate 4");
    double kept = (double)owner(&self, 0, "e/weights") + (double)owner(&self, 0, "e/kv cache");
    double freed = figure(&self, "sleep freed");
    assert_true(freed > kept && freed < kept + 8 * GIB); /* and cached memory */
    double used = (double)twin_card_at(&self.result, 5, 0)->used_bytes;
    assert_true(fabs(figure(&self, "still in use") - used) < (double)(2 * AR_MIB));
    static const char *const asleep[] = {"e.start, e.sleep 1, e.wake weights, e.generate 4",
                                         "e.start, e.sleep 1, e.wake kv_cache, e.generate 4"};
    for (size_t i = 0; i < 2; i++) {
        assert_int_not_equal(run(&self, H100, options, asleep[i]), AR_OK);
        assert_non_null(strstr(self.error.text, "asleep"));
    }
}
