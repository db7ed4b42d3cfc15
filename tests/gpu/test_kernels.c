/* Fill and verify, touch, timed kernels, on the card: against the pattern as the host computes it,
 * with every kind of damage that they are there to find. */
#include <inttypes.h>

#include "bench/cuda/kernels_shared.h"
#include "tests/gpu/card.h"

enum { GUARD = 64, GUARD_BYTE = 0xa5 };

static void fill(struct card *card, uint64_t offset, uint64_t bytes, uint64_t block,
                 CUstream stream)
{
    card_done(card, kernels_fill(card->kernels, card->arena + offset, bytes, block, stream),
              "fill");
}

static void verify(struct card *card, uint64_t offset, uint64_t bytes, uint64_t block,
                   CUstream stream)
{
    card_done(card, kernels_verify(card->kernels, card->arena + offset, bytes, block, stream),
              "verify");
}

/* What was found since the last time. */
static struct ar_device_wrong found(struct card *card)
{
    struct ar_device_wrong wrong = {0};
    card_done(card, kernels_wrong(card->kernels, &wrong), "wrong");
    card_done(card, kernels_forget_wrong(card->kernels), "forget_wrong");
    return wrong;
}

static void fill_writes_the_pattern_and_nothing_else(struct card *card)
{
    static const uint64_t sizes[] = {0,  1,  2,   7,   8,    9,    15,   16,     17,
                                     31, 33, 255, 256, 4095, 4097, 8192, 1000003};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        for (uint64_t shift = 0; shift < 18; shift++) {
            uint64_t bytes = sizes[s], all = GUARD + shift + bytes + GUARD;
            uint64_t start = GUARD + shift, block = 1000 * s + shift;
            card_clear(card, 0, GUARD_BYTE, all);
            fill(card, start, bytes, block, card->stream);
            card_get(card, 0, card->host, all);
            for (uint64_t i = 0; i < all; i++) {
                bool inside = i >= start && i - start < bytes;
                uint8_t expected = inside ? pattern_byte(block, i - start) : GUARD_BYTE;
                check_that(&card->check, card->host[i] == expected,
                           "%" PRIu64 " bytes at %" PRIu64 ": byte %" PRId64 " is %02x, not %02x",
                           bytes, shift, (int64_t)(i - start), card->host[i], expected);
            }
        }
    }
}

/* How fast the arena is filled and verified; larger than the card's cache. */
static void print_speed(struct card *card)
{
    enum { TIMES = 20 };
    const struct cuda_api *api = &card->api;
    CUevent event[3];
    float milliseconds[2] = {0};
    for (int i = 0; i < 3; i++)
        card_did(card, api->event_create(&event[i], CU_EVENT_DEFAULT), "cuEventCreate");
    card_did(card, api->event_record(event[0], card->stream), "cuEventRecord");
    for (int i = 0; i < TIMES; i++)
        fill(card, 0, ARENA_BYTES, 70, card->stream);
    card_did(card, api->event_record(event[1], card->stream), "cuEventRecord");
    for (int i = 0; i < TIMES; i++)
        verify(card, 0, ARENA_BYTES, 70, card->stream);
    card_did(card, api->event_record(event[2], card->stream), "cuEventRecord");
    card_sync(card);
    for (int i = 0; i < 2; i++)
        card_did(card, api->event_elapsed_time(&milliseconds[i], event[i], event[i + 1]),
                 "cuEventElapsedTime");
    for (int i = 0; i < 3; i++)
        api->event_destroy(event[i]);
    double gigabytes = (double)ARENA_BYTES * TIMES / 1e9;
    printf("# fill %.0f GB/s, verify %.0f GB/s\n", gigabytes / milliseconds[0] * 1e3,
           gigabytes / milliseconds[1] * 1e3);
}

static void verify_passes_what_fill_wrote(struct card *card)
{
    static const uint64_t sizes[] = {0, 1, 15, 16, 17, 100, 4097, 1000003, (uint64_t)48 << 20};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        for (uint64_t shift = 0; shift < 17; shift++) {
            fill(card, shift, sizes[s], 77 + shift, card->stream);
            verify(card, shift, sizes[s], 77 + shift, card->stream);
        }
    struct ar_device_wrong wrong = found(card);
    check_that(&card->check, wrong.count == 0, "%" PRIu64 " bytes wrong", wrong.count);
    if (!card_is_host(card))
        print_speed(card);
}

static void one_flipped_bit_is_found_at_every_alignment(struct card *card)
{
    const uint64_t bytes = 83, block = 5;
    for (uint64_t shift = 0; shift < 16; shift++)
        for (uint64_t flip = 0; flip < bytes; flip++) {
            fill(card, shift, bytes, block, card->stream);
            uint8_t good = pattern_byte(block, flip), bad = (uint8_t)(good ^ (1u << flip % 8));
            card_put(card, shift + flip, &bad, 1);
            verify(card, shift, bytes, block, card->stream);
            struct ar_device_wrong wrong = found(card);
            check_that(&card->check,
                       wrong.count == 1 && wrong.offset == flip && wrong.block == block &&
                           wrong.address == card->arena + shift + flip && wrong.found == bad &&
                           wrong.expected == good,
                       "byte %" PRIu64 " at alignment %" PRIu64 ": %" PRIu64
                       " wrong, offset %" PRIu64 ", block %" PRIu64 ", %02x for %02x",
                       flip, shift, wrong.count, wrong.offset, wrong.block, wrong.found,
                       wrong.expected);
        }
}

static void a_displaced_block_is_found(struct card *card)
{
    static const uint64_t distances[] = {1, 4, 8, 16, 32, 512, 4096};
    const uint64_t bytes = 100000;
    for (size_t d = 0; d < sizeof distances / sizeof distances[0]; d++) {
        fill(card, distances[d], bytes + distances[d], 9, card->stream);
        verify(card, 0, bytes, 9, card->stream); /* its first bytes are stale as well */
        verify(card, 2 * distances[d], bytes, 9, card->stream);
        struct ar_device_wrong wrong = found(card);
        check_that(&card->check, wrong.count > 2 * bytes * 98 / 100,
                   "displaced by %" PRIu64 ": only %" PRIu64 " bytes wrong", distances[d],
                   wrong.count);
    }
}

static void a_stale_half_is_found(struct card *card)
{
    const uint64_t bytes = (uint64_t)32 << 20, half = bytes / 2 + 3;
    fill(card, 0, bytes, 11, card->stream);
    fill(card, 0, half, 12, card->stream);
    verify(card, 0, bytes, 12, card->stream);
    struct ar_device_wrong wrong = found(card);
    uint64_t first = half;
    while (pattern_byte(11, first) == pattern_byte(12, first))
        first++;
    check_that(&card->check, wrong.offset == first && wrong.block == 12,
               "first wrong at %" PRIu64 " of block %" PRIu64 ", not at %" PRIu64, wrong.offset,
               wrong.block, first);
    check_that(&card->check, wrong.count > (bytes - half) * 99 / 100 && wrong.count < bytes - half,
               "%" PRIu64 " bytes wrong of %" PRIu64 " stale", wrong.count, bytes - half);
}

static void the_first_is_of_the_earliest_verification(struct card *card)
{
    const uint64_t bytes = (uint64_t)8 << 20;
    static const uint64_t places[] = {8000000, 5000001, 4999999, 77};
    for (uint64_t block = 20; block < 24; block++) {
        uint64_t offset = (block - 20) * bytes, at = places[block - 20];
        fill(card, offset, bytes, block, card->stream);
        uint8_t bad = (uint8_t)~pattern_byte(block, at);
        if (block != 20) /* the first is in order */
            card_put(card, offset + at, &bad, 1);
        if (block == 21) /* two in one block */
            card_put(card, offset + 6000000, &bad, 1);
    }
    for (uint64_t block = 20; block < 24; block++)
        verify(card, (block - 20) * bytes, bytes, block, card->stream);
    struct ar_device_wrong wrong = found(card);
    check_that(&card->check,
               wrong.count >= 3 && wrong.count <= 4 && wrong.block == 21 &&
                   wrong.offset == places[1],
               "%" PRIu64 " wrong, first at %" PRIu64 " of block %" PRIu64, wrong.count,
               wrong.offset, wrong.block);
}

static void touch_leaves_every_byte(struct card *card)
{
    static const uint64_t sizes[] = {1, 2, 3, 4, 5, 4095, 4096, 4097, 1000003, (uint64_t)32 << 20};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        for (uint64_t shift = 0; shift < 5; shift++) {
            fill(card, shift, sizes[s], 30, card->stream);
            card_done(card,
                      kernels_touch(card->kernels, card->arena + shift, sizes[s], card->stream),
                      "touch");
            verify(card, shift, sizes[s], 30, card->stream);
        }
    struct ar_device_wrong wrong = found(card);
    check_that(&card->check, wrong.count == 0, "%" PRIu64 " bytes changed", wrong.count);
}

/* ---- time ------------------------------------------------------------------------------------ */

/* Nanoseconds that `count` kernels of `ns` take behind each other. The stream is held meanwhile, so
 * that the host is ahead. */
static double measure_spins(struct card *card, unsigned count, uint64_t ns, uint64_t hold_ns)
{
    const struct cuda_api *api = &card->api;
    CUevent event[2];
    double owed_ns = 0, hold_owed_ns = 0;
    float milliseconds = 0;
    for (int i = 0; i < 2; i++)
        card_did(card, api->event_create(&event[i], CU_EVENT_DEFAULT), "cuEventCreate");
    card_done(card, kernels_spin(card->kernels, &hold_owed_ns, hold_ns, card->stream), "spin");
    card_did(card, api->event_record(event[0], card->stream), "cuEventRecord");
    for (unsigned i = 0; i < count; i++)
        card_done(card, kernels_spin(card->kernels, &owed_ns, ns, card->stream), "spin");
    card_did(card, api->event_record(event[1], card->stream), "cuEventRecord");
    card_sync(card);
    card_did(card, api->event_elapsed_time(&milliseconds, event[0], event[1]),
             "cuEventElapsedTime");
    for (int i = 0; i < 2; i++)
        api->event_destroy(event[i]);
    return (double)milliseconds * 1e6;
}

static void timed_kernels_take_their_time(struct card *card)
{
    static const struct {
        unsigned count;
        uint64_t ns;
        double tolerance;
    } rows[] = {
        {900, 300, 0.05},    {900, 1000, 0.05},   {900, 3000, 0.05},
        {400, 5000, 0.02},   {400, 7777, 0.02},   {200, 20000, 0.02},
        {100, 100000, 0.02}, {20, 1000000, 0.02}, {5, 10000000, 0.02},
    };
    struct kernels_facts facts;
    kernels_facts(card->kernels, &facts);
    printf(
        "# timer step %.0f ns, used from %.0f ns, %.4f cycles a ns, overhead %.0f ns, least %.0f "
        "ns\n",
        facts.timer_step_ns, facts.timer_from_ns, facts.cycles_per_ns, facts.spin_overhead_ns,
        facts.spin_least_ns);
    measure_spins(card, 1, 30000000, 1000);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        double expected = (double)rows[i].ns * rows[i].count;
        double ns = measure_spins(card, rows[i].count, rows[i].ns, 6000000);
        printf("# %u kernels of %" PRIu64 " ns: %.1f ns each (%+.2f %%)\n", rows[i].count,
               rows[i].ns, ns / rows[i].count, 100 * (ns / expected - 1));
        check_that(&card->check,
                   ns > expected * (1 - rows[i].tolerance) &&
                       ns < expected * (1 + rows[i].tolerance),
                   "%u kernels of %" PRIu64 " ns took %.0f ns, not %.0f", rows[i].count, rows[i].ns,
                   ns, expected);
    }
}

/* One stream still reads a block (after a delay) while another already writes the next block into
 * the same place: that is found. In order, it is not. */
static void race(struct card *card, bool ordered)
{
    const uint64_t bytes = (uint64_t)16 << 20;
    const struct cuda_api *api = &card->api;
    CUevent event;
    double owed_ns = 0;
    card_did(card, api->event_create(&event, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
    fill(card, 0, bytes, 40, card->stream);
    card_sync(card);
    card_done(card, kernels_spin(card->kernels, &owed_ns, 20000000, card->stream), "spin");
    verify(card, 0, bytes, 40, card->stream);
    card_did(card, api->event_record(event, card->stream), "cuEventRecord");
    if (ordered)
        card_did(card, api->stream_wait_event(card->other, event, 0), "cuStreamWaitEvent");
    fill(card, 0, bytes, 41, card->other);
    verify(card, 0, bytes, 41, card->other);
    card_sync(card);
    api->event_destroy(event);
}

static void reuse_while_another_stream_reads_is_found(struct card *card)
{
    race(card, true);
    struct ar_device_wrong wrong = found(card);
    check_that(&card->check, wrong.count == 0, "in order, and yet %" PRIu64 " bytes wrong",
               wrong.count);
    race(card, false);
    wrong = found(card);
    check_that(&card->check, wrong.count > 0 && wrong.block == 40 && wrong.offset == 0,
               "out of order: %" PRIu64 " bytes wrong, first at %" PRIu64 " of block %" PRIu64,
               wrong.count, wrong.offset, wrong.block);
}

int main(void)
{
#define CASE(name, needs_card, times)                                                              \
    {                                                                                              \
#name, name, needs_card, times                                                             \
    }
    static const struct card_case cases[] = {
        CASE(fill_writes_the_pattern_and_nothing_else, false, false),
        CASE(verify_passes_what_fill_wrote, false, false),
        CASE(one_flipped_bit_is_found_at_every_alignment, false, false),
        CASE(a_displaced_block_is_found, false, false),
        CASE(a_stale_half_is_found, false, false),
        CASE(the_first_is_of_the_earliest_verification, false, false),
        CASE(touch_leaves_every_byte, false, false),
        CASE(timed_kernels_take_their_time, true, true),
        CASE(reuse_while_another_stream_reads_is_found, true, false),
    };
    return card_main(cases, sizeof cases / sizeof cases[0]);
}
