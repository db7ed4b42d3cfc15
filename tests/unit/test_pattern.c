/* The pattern that the card writes into blocks, and the wrong bytes that it reveals. */
#include "allocators/base/rng.h"
#include "bench/cuda/kernels_shared.h"
#include "tests/support/test.h"

/* The first two numbers of splitmix64 seeded with 0, as its authors publish them. */
TEST(the_key_is_splitmix64)
{
    assert_true(pattern_key(0) == 0xe220a8397b1dcdafu);
    assert_true(pattern_key(0x9e3779b97f4a7c15u) == 0x6e789e6aa1b965f4u);
}

TEST(bytes_are_those_of_the_words)
{
    uint64_t key = pattern_key(42);
    for (uint64_t offset = 0; offset < 100; offset++) {
        uint8_t expected = (uint8_t)(pattern_word(key, offset / 8) >> offset % 8 * 8);
        assert_int_equal(pattern_byte(42, offset), expected);
        for (uint64_t i = 0; i < 8; i++)
            assert_int_equal((uint8_t)(pattern_bytes(key, offset) >> 8 * i),
                             pattern_byte(42, offset + i));
    }
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Many small blocks and some of one large block: a displaced word is another word. */
TEST(no_two_words_are_equal)
{
    enum { BLOCKS = 2000, WORDS = 200 };
    FREED uint64_t *words = malloc(BLOCKS * WORDS * sizeof *words);
    assert_non_null(words);
    for (uint64_t block = 0; block < BLOCKS; block++)
        for (uint64_t i = 0; i < WORDS; i++)
            words[block * WORDS + i] = pattern_word(pattern_key(block), i * i * i);
    qsort(words, BLOCKS * WORDS, sizeof *words, by_value);
    for (size_t i = 1; i < BLOCKS * WORDS; i++)
        assert_true(words[i] != words[i - 1]);
}

/* Bytes at the same place of another block, or displaced, are equal as often as chance has it. */
TEST(bytes_agree_by_chance_only)
{
    enum { TRIALS = 1 << 18 };
    struct ar_rng rng = ar_rng_of(1);
    unsigned stale = 0, displaced = 0;
    for (int i = 0; i < TRIALS; i++) {
        uint64_t block = ar_rng_below(&rng, 1000), offset = ar_rng_below(&rng, (uint64_t)1 << 36);
        uint64_t other = ar_rng_between(&rng, 1, 4096);
        stale += pattern_byte(block, offset) == pattern_byte(block + other, offset);
        displaced += pattern_byte(block, offset) == pattern_byte(block, offset + other);
    }
    /* 1024 expected, 32 the standard deviation. */
    assert_in_range(stale, 1024 - 160, 1024 + 160);
    assert_in_range(displaced, 1024 - 160, 1024 + 160);
}
