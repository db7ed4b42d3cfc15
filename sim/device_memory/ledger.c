#include "sim/device_memory/ledger.h"

#include "allocators/base/size.h"

uint64_t sim_ledger_units(const struct sim_ledger *self, uint64_t bytes)
{
    if (bytes > UINT64_C(1) << 62)
        return UINT64_MAX;
    return ar_size_round_up(bytes, self->unit_bytes);
}

uint64_t sim_ledger_free(const struct sim_ledger *self)
{
    return self->capacity_bytes - self->physical_bytes - self->outside_bytes - self->others_bytes;
}

void sim_ledger_charge(struct sim_ledger *self, uint64_t unit_bytes)
{
    self->physical_bytes += unit_bytes;
    if (self->physical_bytes > self->peak_physical_bytes)
        self->peak_physical_bytes = self->physical_bytes;
}

/* Removes from the backlog what was cleaned until now. */
static void ledger_clean(struct sim_ledger *self, uint64_t now_ns)
{
    if (self->backlog_bytes) {
        uint64_t passed_ns = now_ns - self->cleaned_at_ns;
        uint64_t rate = self->cleaning_bytes_per_us;
        uint64_t cleaned_bytes = self->backlog_bytes;
        if (passed_ns / 1000 <= self->backlog_bytes / rate)
            cleaned_bytes = passed_ns / 1000 * rate + passed_ns % 1000 * rate / 1000;
        self->backlog_bytes -=
            cleaned_bytes < self->backlog_bytes ? cleaned_bytes : self->backlog_bytes;
    }
    self->cleaned_at_ns = now_ns;
}

void sim_ledger_release(struct sim_ledger *self, uint64_t unit_bytes, uint64_t now_ns)
{
    self->physical_bytes -= unit_bytes;
    if (!self->cleaning_bytes_per_us)
        return;
    ledger_clean(self, now_ns);
    self->backlog_bytes += unit_bytes;
}

uint64_t sim_ledger_cleaning_ns(struct sim_ledger *self, uint64_t unit_bytes,
                                uint64_t all_from_bytes, uint64_t now_ns)
{
    if (!self->backlog_bytes)
        return 0;
    ledger_clean(self, now_ns);
    uint64_t free_bytes = sim_ledger_free(self);
    uint64_t clean_bytes = free_bytes > self->backlog_bytes ? free_bytes - self->backlog_bytes : 0;
    uint64_t missing_bytes = unit_bytes > clean_bytes ? unit_bytes - clean_bytes : 0;
    if (missing_bytes > self->backlog_bytes || (all_from_bytes && unit_bytes >= all_from_bytes))
        missing_bytes = self->backlog_bytes;
    uint64_t rate = self->cleaning_bytes_per_us;
    return missing_bytes / rate * 1000 + (missing_bytes % rate * 1000 + rate - 1) / rate;
}

bool sim_ledger_outside(struct sim_ledger *self, uint64_t bytes)
{
    uint64_t charged_bytes = sim_ledger_units(self, bytes);
    if (charged_bytes == UINT64_MAX || charged_bytes > sim_ledger_free(self) + self->outside_bytes)
        return false;
    self->outside_bytes = charged_bytes;
    return true;
}

bool sim_ledger_others(struct sim_ledger *self, uint64_t bytes)
{
    uint64_t charged_bytes = sim_ledger_units(self, bytes);
    if (charged_bytes == UINT64_MAX || charged_bytes > sim_ledger_free(self) + self->others_bytes)
        return false;
    self->others_bytes = charged_bytes;
    return true;
}
