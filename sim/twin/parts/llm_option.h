/* The option `model` of parts: "llama-3.1-8b", "llama-3.1-8b:layers=2", "custom:layers=..". */
#ifndef SIM_TWIN_PARTS_LLM_OPTION_H
#define SIM_TWIN_PARTS_LLM_OPTION_H

#include "sim/twin/rules/llm.h"

/* INVALID: a sentence. */
enum ar_status llm_option_read(const char *text, struct llm *out,
                               struct ar_error *error) AR_STATUS_CHECKED;

#endif
