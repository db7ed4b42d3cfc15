/* `vmm` with so many streams that it uses the idle index: the decisions are the same as without,
 * few ranges are examined, and it works without the index if the host has no memory. No time is
 * measured: examined ranges are counted. */
#include "allocators/base/rng.h"
#include "allocators/policies/vmm/vmm.h"
#include "tests/support/amount.h"
#include "tests/support/policy_rig.h"
#include "tests/support/sim.h"
#include "tests/support/test.h"

#define PAGE (2 * AR_MIB)

enum { SLOTS = 40 };

struct crowded {
    struct ar_device *device;
    struct policy_rig rig;
    struct ar_rng rng;
    uint32_t streams;
    struct ar_policy_block blocks[SLOTS];
    uint32_t owners[SLOTS];
    bool live[SLOTS];
    uint64_t event, served, refused;
};

/* A card with a few pages for each stream. */
static void open_crowded(struct crowded *self, uint32_t streams, uint64_t seed, uint64_t fail_at)
{
    char text[64];
    *self = (struct crowded){.streams = streams};
    snprintf(text, sizeof text, "sim:capacity=%uMiB", streams * 8 + 64);
    self->device = sim_test_open(text);
    ar_rng_seed(&self->rng, seed);
    (void)policy_rig_open(&self->rig, "vmm", self->device->backing, fail_at);
}

static void free_requested(struct crowded *self, uint32_t slot)
{
    const struct ar_policy_block *block = &self->blocks[slot];
    self->device->ops->used(self->device, block->address, block->granted_bytes, self->owners[slot],
                            ++self->event);
    assert_int_equal(ar_policy_free(self->rig.policy, block, self->owners[slot]), AR_OK);
    self->live[slot] = false;
}

/* A request on a random stream, sometimes with work on it and on another stream; or a free. */
static enum ar_status turn(struct crowded *self)
{
    uint32_t slot = (uint32_t)ar_rng_below(&self->rng, SLOTS);
    uint32_t stream = (uint32_t)ar_rng_below(&self->rng, self->streams);
    uint32_t other = (uint32_t)ar_rng_below(&self->rng, self->streams);
    uint64_t bytes =
        ar_rng_below(&self->rng, 4) ? PAGE + ar_rng_below(&self->rng, 20 * PAGE) : 4 * AR_KIB;
    uint64_t work = ar_rng_below(&self->rng, 8);
    if (self->live[slot]) {
        free_requested(self, slot);
        return AR_OK;
    }
    struct ar_policy_request request = {.bytes = bytes, .stream = stream};
    enum ar_status status = ar_policy_alloc(self->rig.policy, &request, &self->blocks[slot]);
    self->event++;
    self->refused += status != AR_OK;
    if (status != AR_OK)
        return status;
    const struct ar_policy_block *block = &self->blocks[slot];
    self->served++;
    self->live[slot] = true;
    self->owners[slot] = stream;
    (void)self->device->ops->handed_out(self->device, block->address, block->granted_bytes, stream,
                                        false, self->event);
    if (work < 3)
        self->device->ops->kernel(self->device, stream, UINT64_C(1000) << 7 * work);
    if (work == 0 && ar_policy_use(self->rig.policy, block, other) == AR_OK) {
        self->device->ops->kernel(self->device, other, 300000);
        self->device->ops->used(self->device, block->address, block->granted_bytes, other,
                                ++self->event);
    }
    return AR_OK;
}

static void check(const struct crowded *self)
{
    if (ar_policy_validate(self->rig.policy, &test_error))
        fail_msg("event %llu: %s", (unsigned long long)self->event, test_error.text);
    assert_string_equal(self->device->ops->problem(self->device), "");
    assert_string_equal(self->device->ops->race_text(self->device), "");
}

static void close_crowded(struct crowded *self)
{
    for (uint32_t i = 0; i < SLOTS; i++)
        if (self->live[i])
            free_requested(self, i);
    self->device->ops->sync(self->device, UINT32_MAX);
    assert_int_equal(policy_rig_close(&self->rig), 0);
    assert_int_equal(self->device->counters.physical_bytes, 0);
    ar_device_close(self->device);
}

static void the_same(const struct crowded *a, const struct crowded *b)
{
    const struct ar_device_counters *one = &a->device->counters;
    const struct ar_device_counters *other = &b->device->counters;
    assert_int_equal(a->device->ops->now(a->device), b->device->ops->now(b->device));
    assert_int_equal(one->stall_ns, other->stall_ns);
    assert_int_equal(one->physical_bytes, other->physical_bytes);
    for (int call = 0; call < AR_DEVICE_CALL_COUNT; call++)
        assert_int_equal(one->calls[call], other->calls[call]);
    for (int i = 0; i < SLOTS; i++) {
        assert_int_equal(a->live[i], b->live[i]);
        assert_int_equal(a->blocks[i].address, b->blocks[i].address);
    }
}

/* The same turns with and without the index: the same addresses, driver calls, waits and time. */
TEST(a_crowd_decides_as_if_all_were_looked_at)
{
    const uint64_t turns = test_amount(6000, 6000);
    static const uint32_t streams[] = {66, 90, 300}; /* with few streams each has its own fences */
    for (unsigned run = 0; run < COUNT(streams); run++) {
        struct crowded with, without;
        open_crowded(&with, streams[run], run + 1, 0);
        open_crowded(&without, streams[run], run + 1, 0);
        for (uint64_t i = 0; i < turns; i++) {
            vmm_index_close((struct vmm *)without.rig.policy);
            assert_int_equal(turn(&with), turn(&without));
            if (i % 50 == 0)
                check(&with);
            the_same(&with, &without);
        }
        assert_true(((struct vmm *)with.rig.policy)->idle_index && with.served > turns / 4);
        assert_true(with.device->counters.calls[AR_DEVICE_CALL_unmap] > turns / 40);
        close_crowded(&with);
        close_crowded(&without);
    }
}

/* How many ranges a request examines while memory moves. */
static double looks(uint32_t streams)
{
    struct crowded crowded;
    open_crowded(&crowded, streams, 1, 0);
    while (crowded.event < 20u * streams)
        (void)turn(&crowded);
    const struct vmm *vmm = (struct vmm *)crowded.rig.policy;
    assert_true(vmm->range_count > streams); /* both kinds, for most streams */
    uint64_t looked = vmm->idle_index->looked;
    uint64_t served = crowded.served;
    uint64_t moved = crowded.device->counters.calls[AR_DEVICE_CALL_unmap];
    for (int i = 0; i < 2000; i++)
        (void)turn(&crowded);
    looked = vmm->idle_index->looked - looked;
    served = crowded.served - served;
    assert_true(crowded.device->counters.calls[AR_DEVICE_CALL_unmap] - moved > served / 4);
    close_crowded(&crowded);
    return (double)looked / (double)served;
}

TEST(looks_do_not_grow_with_the_streams)
{
    double few = looks(100), many = looks(1600);
    if (many > 12 || many > 3 * few)
        fail_msg("%.1f looks for a request with 100 streams, %.1f with 1600", few, many);
}

/* For any failed host allocation the policy stays valid and frees all of it. */
TEST(without_host_memory_it_goes_on)
{
    for (uint64_t fail_at = 1; fail_at < 400; fail_at += 3) {
        CLOSED(close_crowded) struct crowded crowded;
        open_crowded(&crowded, 90, 5, fail_at);
        for (int i = 0; crowded.rig.policy && i < 700; i++) {
            enum ar_status status = turn(&crowded);
            assert_true(status == AR_OK || status == AR_NO_MEMORY || status == AR_HOST_MEMORY);
        }
        if (crowded.rig.policy)
            check(&crowded);
    }
}
