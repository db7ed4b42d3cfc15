/* Models by name, and the option `model`. */

#include "allocators/options.h"
#include "sim/twin/rules/llm.h"

static const struct llm presets[] = {
#include "sim/twin/rules/llm_models.def"
};

#define PRESETS (sizeof presets / sizeof presets[0])

const struct llm *llm_find(const char *name)
{
    for (size_t i = 0; i < PRESETS; i++)
        if (strcmp(presets[i].name, name) == 0)
            return &presets[i];
    return NULL;
}

#define LLM(field) offsetof(struct llm, field)
#define COUNT(NAME, FIELD, HELP)                                                                   \
    {                                                                                              \
        NAME, AR_OPTION_COUNT, LLM(FIELD), NULL, 0, 1e9, NULL, HELP                                \
    }

static const struct ar_option model_options[] = {
    COUNT("layers", layers, "layers"),
    COUNT("hidden", hidden, "values of a token between layers"),
    COUNT("heads", heads, "heads of queries"),
    COUNT("kv_heads", kv_heads, "heads of keys and values"),
    COUNT("head", head, "values of a head"),
    COUNT("ffn", ffn, "width of the feed-forward network"),
    COUNT("vocabulary", vocabulary, "tokens"),
    COUNT("positions", positions, "longest request"),
    COUNT("experts", experts, "experts of a layer"),
    COUNT("experts_used", experts_used, "experts of a token"),
    COUNT("expert_ffn", expert_ffn, "width of an expert"),
    COUNT("shared_ffn", shared_ffn, "width of the shared experts together"),
    COUNT("dense_layers", dense_layers, "first layers that have no experts"),
    COUNT("q_rank", q_rank, "rank of queries, with latent attention"),
    COUNT("kv_rank", kv_rank, "rank of keys and values: latent attention"),
    COUNT("nope", nope, "values of a head without position"),
    COUNT("rope", rope, "values of a head with position"),
    COUNT("v_head", v_head, "values of a head's value"),
    COUNT("window", window, "tokens of a sliding window"),
    COUNT("window_layers", window_layers, "layers that have the window"),
    COUNT("linear_layers", linear_layers, "layers with linear attention; each nth has none"),
    COUNT("linear_keys", linear_keys, "heads of keys in them"),
    COUNT("linear_values", linear_values, "heads of values"),
    COUNT("linear_head", linear_head, "values of such a head"),
    COUNT("encoder_layers", encoder_layers, "of an encoder of images"),
    COUNT("encoder_hidden", encoder_hidden, "values of a patch in it"),
    COUNT("encoder_ffn", encoder_ffn, "width of its feed-forward network"),
    COUNT("image_tokens", image_tokens, "tokens of the largest image"),
    COUNT("merge", merge, "patches of such a token"),
    COUNT("deepstack", deepstack, "further outputs of the encoder for a token"),
    {"tied", AR_OPTION_BOOL, LLM(tied), NULL, 0, 0, NULL, "the output uses the embedding"},
    {"qkv_bias", AR_OPTION_BOOL, LLM(qkv_bias), NULL, 0, 0, NULL, "products of attention have one"},
    {"qk_norm", AR_OPTION_BOOL, LLM(qk_norm), NULL, 0, 0, NULL, "queries and keys have a norm"},
    {"expert_bias", AR_OPTION_BOOL, LLM(expert_bias), NULL, 0, 0, NULL,
     "experts have one; the rotary table is float32"},
    {"learned", AR_OPTION_BOOL, LLM(learned), NULL, 0, 0, NULL, "positions are, with no rotation"},
    {0},
};

static enum ar_status unknown_model(const char *name, struct ar_error *error)
{
    char names[1280] = "";
    for (size_t i = 0; i < PRESETS; i++) {
        size_t length = strlen(names);
        snprintf(names + length, sizeof names - length, "%s%s", i ? ", " : "", presets[i].name);
    }
    return ar_invalid(
        error,
        "option model: \"%s\" is no preset; write custom:layers=32,hidden=4096,.. or one of %s",
        name, names);
}

enum ar_status llm_read(const char *text, struct llm *out, struct ar_error *error)
{
    struct ar_spec spec;
    enum ar_status status = ar_spec_parse(text, &spec, error);
    if (status)
        return ar_error_prefix(error, status, "option model");
    const struct ar_spec_link *link = &spec.links[spec.link_count - 1];
    const struct llm *preset = llm_find(link->name);
    bool custom = strcmp(link->name, "custom") == 0;
    *out = (struct llm){0};
    if (preset)
        *out = *preset;
    else if (!custom)
        status = unknown_model(link->name, error);
    out->name = custom ? "custom" : preset ? preset->name : "";
    AR_THEN(status, ar_options_read(model_options, link, "option model", out, error));
    ar_spec_close(&spec);
    if (status == AR_OK && custom) {
        out->kv_heads = out->kv_heads ? out->kv_heads : out->heads;
        out->head = out->head || !out->heads ? out->head : out->hidden / out->heads;
        out->positions = out->positions ? out->positions : 4096;
    }
    return status;
}
