/* SHA-256: the hash that names a trace and shows that a file is complete.
 *
 * It is fast on long inputs: the message schedule is a ring of sixteen words, and whole blocks are
 * taken from the caller's bytes without a copy. On x86 processors with the SHA instructions these
 * compute the blocks, five times as fast: the eight words of the state lie in two registers in the
 * order that the instructions need (a b e f, c d g h); four rounds use four words of the message
 * and compute the next four from the sixteen before.
 * Sources: FIPS 180-4, sections 4.1.2, 4.2.2, 5.3.3 and 6.2; Intel's Software Developer's Manual,
 * volume 2, SHA256RNDS2, SHA256MSG1 and SHA256MSG2. */
#include "workloads/io/sha256.h"

#include <string.h>

static const uint32_t round_constants[64] __attribute__((aligned(16))) = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

#if defined(__x86_64__) && defined(__GNUC__)

#include <cpuid.h>
#include <immintrin.h>

#define WITH_SHA __attribute__((target("sha,sse4.1,ssse3")))

/* Whether this processor has the instructions. */
static bool sha256_x86_usable(void)
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
            m0, _mm_load_si128((const __m128i *)(const void *)&round_constants[4 * (round)]));     \
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

WITH_SHA static void sha256_x86_blocks(uint32_t state[8], const uint8_t *blocks, size_t count)
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

static bool sha256_x86_usable(void)
{
    return false;
}

static void sha256_x86_blocks(uint32_t state[8], const uint8_t *blocks, size_t count)
{
    (void)state, (void)blocks, (void)count;
}

#endif

static inline uint32_t turn(uint32_t word, unsigned by)
{
    return word >> by | word << (32 - by);
}

static inline uint32_t word_at(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static void take_block(uint32_t state[8], const uint8_t *block)
{
    uint32_t w[16];
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    for (unsigned i = 0; i < 64; i++) {
        if (i < 16) {
            w[i] = word_at(block + 4 * i);
        } else {
            uint32_t early = w[(i + 1) & 15], late = w[(i + 14) & 15];
            uint32_t s0 = turn(early, 7) ^ turn(early, 18) ^ early >> 3;
            uint32_t s1 = turn(late, 17) ^ turn(late, 19) ^ late >> 10;
            w[i & 15] += s0 + w[(i + 9) & 15] + s1;
        }
        uint32_t t1 = h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) +
                      round_constants[i] + w[i & 15];
        uint32_t t2 = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
        h = g, g = f, f = e, e = d + t1;
        d = c, c = b, b = a, a = t1 + t2;
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d;
    state[4] += e, state[5] += f, state[6] += g, state[7] += h;
}

static void take_blocks(struct sha256 *hash, const uint8_t *blocks, size_t count)
{
    if (hash->fast)
        sha256_x86_blocks(hash->state, blocks, count);
    else
        for (; count; count--, blocks += 64)
            take_block(hash->state, blocks);
}

void sha256_start(struct sha256 *hash)
{
    static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(hash->state, start, sizeof start);
    hash->bytes = 0;
    hash->fast = sha256_x86_usable();
}

void sha256_add(struct sha256 *hash, const void *data, size_t bytes)
{
    const uint8_t *from = data;
    size_t held = hash->bytes % 64;
    hash->bytes += bytes;
    if (held) {
        size_t take = bytes < 64 - held ? bytes : 64 - held;
        memcpy(hash->block + held, from, take);
        from += take, bytes -= take;
        if (held + take < 64)
            return;
        take_blocks(hash, hash->block, 1);
    }
    take_blocks(hash, from, bytes / 64);
    from += bytes / 64 * 64;
    bytes %= 64;
    if (bytes)
        memcpy(hash->block, from, bytes);
}

void sha256_end(struct sha256 *hash, uint8_t digest[32])
{
    uint8_t tail[72] = {0x80};
    uint64_t bits = hash->bytes * 8;
    size_t held = hash->bytes % 64;
    size_t fill = (held < 56 ? 56 : 120) - held;
    for (unsigned i = 0; i < 8; i++)
        tail[fill + i] = (uint8_t)(bits >> (56 - 8 * i));
    sha256_add(hash, tail, fill + 8);
    for (unsigned i = 0; i < 32; i++)
        digest[i] = (uint8_t)(hash->state[i / 4] >> (24 - 8 * (i % 4)));
}
