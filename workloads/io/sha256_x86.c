/* SHA-256 by the SHA instructions of x86.
 *
 * What: the block function alone. How: the eight words of the state lie in two registers in the
 * order that the instructions want (a b e f, c d g h); four rounds use four words of the message,
 * and the next four words are made from the sixteen before them.
 * Source: the instructions' description in Intel's Software Developer's Manual, volume 2,
 * SHA256RNDS2, SHA256MSG1 and SHA256MSG2. */
#include "workloads/io/sha256_x86.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include <cpuid.h>
#include <immintrin.h>

#define WITH_SHA __attribute__((target("sha,sse4.1,ssse3")))

static const uint32_t constants[64] __attribute__((aligned(16))) = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

bool sha256_x86_usable(void)
{
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_SSE4_1) || !(c & bit_SSSE3))
        return false;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && b & 1u << 29;
}

/* Four rounds with the words m0; m0 becomes the words sixteen later, unless they are the last. */
#define FOUR_ROUNDS(round, m0, m1, m2, m3)                                                         \
    do {                                                                                           \
        __m128i sum = _mm_add_epi32(                                                               \
            m0, _mm_load_si128((const __m128i *)(const void *)&constants[4 * (round)]));           \
        cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);                                             \
        abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));                    \
        if ((round) < 12)                                                                          \
            m0 = _mm_sha256msg2_epu32(                                                             \
                _mm_add_epi32(_mm_sha256msg1_epu32(m0, m1), _mm_alignr_epi8(m3, m2, 4)), m3);      \
    } while (0)

WITH_SHA static __m128i words_at(const uint8_t *bytes)
{
    const __m128i turned = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    return _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(const void *)bytes), turned);
}

WITH_SHA void sha256_x86_blocks(uint32_t state[8], const uint8_t *blocks, size_t count)
{
    __m128i low = _mm_loadu_si128((const __m128i *)(const void *)&state[0]);
    __m128i high = _mm_loadu_si128((const __m128i *)(const void *)&state[4]);
    low = _mm_shuffle_epi32(low, 0xb1);
    high = _mm_shuffle_epi32(high, 0x1b);
    __m128i abef = _mm_alignr_epi8(low, high, 8);
    __m128i cdgh = _mm_blend_epi16(high, low, 0xf0);
    for (; count; count--, blocks += 64) {
        const __m128i abef_before = abef, cdgh_before = cdgh;
        __m128i m0 = words_at(blocks), m1 = words_at(blocks + 16);
        __m128i m2 = words_at(blocks + 32), m3 = words_at(blocks + 48);
        for (unsigned round = 0; round < 16; round += 4) {
            FOUR_ROUNDS(round, m0, m1, m2, m3);
            FOUR_ROUNDS(round + 1, m1, m2, m3, m0);
            FOUR_ROUNDS(round + 2, m2, m3, m0, m1);
            FOUR_ROUNDS(round + 3, m3, m0, m1, m2);
        }
        abef = _mm_add_epi32(abef, abef_before);
        cdgh = _mm_add_epi32(cdgh, cdgh_before);
    }
    low = _mm_shuffle_epi32(abef, 0x1b);
    high = _mm_shuffle_epi32(cdgh, 0xb1);
    abef = _mm_blend_epi16(low, high, 0xf0);
    cdgh = _mm_alignr_epi8(high, low, 8);
    _mm_storeu_si128((__m128i *)(void *)&state[0], abef);
    _mm_storeu_si128((__m128i *)(void *)&state[4], cdgh);
}

#else

bool sha256_x86_usable(void)
{
    return false;
}

void sha256_x86_blocks(uint32_t state[8], const uint8_t *blocks, size_t count)
{
    (void)state, (void)blocks, (void)count;
}

#endif
