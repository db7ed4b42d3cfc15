/* Where a process goes when it comes: its card by its placement, and its pools by its settings. */
#ifndef SIM_TENANTS_PLACE_H
#define SIM_TENANTS_PLACE_H

#include "sim/tenants/tenants.h"

/* `cards` are as they are now; its context, `context_bytes`, is not yet taken from what is free on
 * them. As process_configure, and REFUSED where no card has room for what it needs. */
enum ar_status tenant_place(const struct tenant_setup *setup, const struct process_card *cards,
                            size_t card_count, uint64_t context_bytes, struct process *process,
                            struct ar_error *error) AR_STATUS_CHECKED;

#endif
