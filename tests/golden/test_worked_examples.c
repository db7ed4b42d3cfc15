/* Worked examples of many allocators as small scripts over a bump address. Words of a script:
 *
 *   +BYTES[@OFFSET][sSTREAM]   a request, with its address if given. `+BYTES!` must fail
 *   -N                         frees the N-th request, from 0
 *   =BYTES                     reserved bytes now
 *   ~BYTES                     granted bytes now
 *   ^BYTES                     largest free block now
 *   c                          releases the cache
 *
 * BYTES may end in K, M or G. Add rows here for a policy with known examples. */
#include "allocators/base/size.h"
#include "allocators/registry.h"
#include "tests/support/fake_backing.h"
#include "tests/support/test.h"

#define REQUESTS 64

struct example {
    const char *name, *spec;
    uint64_t cap_bytes; /* of the device */
    const char *script;
};

static const struct example examples[] = {
    /* PyTorch's growing segments: pages of 20 MiB for large, 2 MiB for small requests. */
    {"torch blocks above max_split serve no smaller request",
     "torch:expandable_segments=true,max_split_size_mb=200", 4 * AR_GIB,
     "+300M@0 +2M@300M =320M -0 +100M@316669952 =420M +100M@421527552 =520M +100M@526385152 "
     "=620M"},
    {"torch a segment grows by pages", "torch:expandable_segments=true", 80 * AR_GIB,
     "+1536K@0 =20M +30M@1536K =40M ^8912896 +512@96636764160 =42M"},
    {"torch a free block that is too small leaves the tail to grow",
     "torch:expandable_segments=true", 80 * AR_GIB,
     "+50M@0 +50M@50M +50M@100M =160M -1 +70M@150M =220M c =180M +45M@50M =220M"},
    {"torch a free end is used before pages are added", "torch:expandable_segments=true",
     80 * AR_GIB, "+10M +10M +10M +10M =40M -3 +12M@30M =60M"},
    {"torch grows without bound under max_split", /* PyTorch issue 123548 */
     "torch:expandable_segments=true,max_split_size_mb=200", 16 * AR_GIB,
     "+250M +2M -0 =260M +260M +2M -1 -2 =520M +270M +2M -3 -4 =800M +280M +2M -5 -6 =1080M"},
    {"torch without max_split it does not", "torch:expandable_segments=true", 16 * AR_GIB,
     "+250M +2M -0 =260M +260M +2M -1 -2 =520M +270M +2M -3 -4 =520M +280M +2M -5 -6 =560M"},
    /* CuPy, in units of 512 bytes where small. */
    {"cupy splits exactly", "cupy", UINT64_MAX, "+2K@0 -0 +1K@0 +1K@1K =2K"},
    {"cupy keeps what is freed", "cupy", UINT64_MAX, "+1K +2K =3K -0 -1 +512 =3K ~512"},
    {"cupy does not share between streams", "cupy", UINT64_MAX, "+1K@0 -0 +1K@1Ks1 =2K"},
    {"cupy gives idle chunks back under a limit", "cupy:limit=3K", UINT64_MAX, "+2560 -0 +3K =3K"},
    {"cupy never merges device allocations", "cupy", UINT64_MAX,
     "+1@0 +1000@512 =1536 -0 -1 +1536 =3K"},
    {"cupy one byte more is a new chunk", "cupy", UINT64_MAX, "+100M -0 +104857601 =209715712"},
    {"cupy a small piece pins a chunk", "cupy", 100 * AR_MIB, "+60M -0 +512 +60M! =60M ~512"},
    {"cupy merges both neighbours", "cupy", UINT64_MAX,
     "+2K@0 -0 +1K@0 +512@1K +512@1536 -1 -3 ^1K ~512 -2 ^2K =2K"},
    /* ONNX Runtime's arena: bfc_arena_test.cc, TestExtendStrategy, TestShrink and
     * AllocatedVsRequested; then a region of twice the size, and the same sizes again after a
     * trim. */
    {"ort regions double", "ort", UINT64_MAX, "+1M =1M +1M =3M +1M =3M +1M =7M"},
    {"ort regions of the request", "ort:arena_extend_strategy=kSameAsRequested", UINT64_MAX,
     "+1K@0 +10M@1K -0 =10486784 c =10M"},
    {"ort a block is a multiple of 256", "ort", UINT64_MAX, "+4@0 ~256 =1M"},
    {"ort a trim keeps the first region", "ort", UINT64_MAX,
     "+1M@0 +1M@1M +4M@3M =7M -0 -1 -2 c =1M +1M@0 +1M@7M =3M"},
    {"ort doubling has a limit", "ort:max_power_of_two_extend_bytes=2M", UINT64_MAX,
     "+1M +2M =3M +2M =5M +2M =7M +5M =15M +2M =23M +6M =23M +2M =25M"},
    /* The buddy system. */
    {"buddy halves and joins", "buddy:min=256,chunk=1M,limit=1M", UINT64_MAX,
     "+100@0 +257@512 +1000@1K +70000@128K +4096@4K +256@256 ~137216 -0 +200@0 -1 -2 +600000! "
     "+256K@256K"},
    {"buddy order flip", "buddy:chunk=1M", UINT64_MAX, "+16M +16M +16M +16M -0 -1 -2 -3 +32M =96M"},
    /* TLSF: addresses are those of payloads, after the header of 8 bytes. */
    {"tlsf good fit passes an exact free block", "tlsf:pool=1M,limit=1M", UINT64_MAX,
     "+1@8 +24@40 +25@72 +100@112 +256@224 +1000@488 +4096@1496 +65536@5600 -3 -5 +104@112 "
     "+1000@71144"},
    {"tlsf a block of 1000 serves 988", "tlsf:pool=4K,limit=1016", UINT64_MAX, "+988@8"},
    {"tlsf a block of 1000 does not serve 996", "tlsf:pool=4K,limit=1016", UINT64_MAX, "+996!"},
    /* OffsetAllocator: offsetAllocatorTests.cpp, "numbers" and "allocate". The largest free block
     * is the bottom of its bin. */
    {"offset bins of a small float", "offset:size=17,unit=1", UINT64_MAX,
     "+1@0 -0 =17 ^16 +17! +16@0"},
    {"offset bin 38", "offset:size=118,unit=1", UINT64_MAX, "+1@0 -0 ^112 +113! +112@0 ~112"},
    {"offset bin 64", "offset:size=1024,unit=1", UINT64_MAX, "+1@0 -0 ^1024 +1024@0"},
    {"offset bin 112", "offset:size=65536,unit=1", UINT64_MAX, "+1@0 -0 ^65536"},
    {"offset bin 136", "offset:size=529445,unit=1", UINT64_MAX, "+1@0 -0 ^524288"},
    {"offset bin 143", "offset:size=1048575,unit=1", UINT64_MAX, "+1@0 -0 ^983040"},
    {"offset simple", "offset:size=256M,unit=1", UINT64_MAX,
     "+1@0 +123@1 +1234@124 -0 -1 -2 +256M@0"},
    {"offset merge trivial", "offset:size=256M,unit=1", UINT64_MAX,
     "+1337@0 -0 +1337@0 -1 +256M@0"},
    {"offset reuse trivial", "offset:size=256M,unit=1", UINT64_MAX,
     "+1024@0 +3456@1024 -0 +1024@0 -2 -1 +256M@0"},
    {"offset reuse complex", "offset:size=256M,unit=1", UINT64_MAX,
     "+1024@0 +3456@1024 -0 +2345@4480 +456@0 +512@456 ~6769 -2 -3 -1 -4 +256M@0"},
    {"offset one node is always spare", "offset:size=1M,unit=1,max_allocs=4", UINT64_MAX,
     "+1@0 +1@1 +1! -0 +1!"},
    {"offset Mooncake grants the bin", "offset:size=1M,unit=1,round_up=true", UINT64_MAX,
     "+100@0 ~104 +17@104 ~122"},
    {"offset units of more than a byte in a large region", "offset:size=8G", UINT64_MAX,
     "+1@0 ~4 +5@4 ~12 =8G"},
    /* VMA's virtual block: Tests.cpp, TestVirtualBlocks; then the searches that its strategies
     * differ in, the lists from the class above on, and the linear algorithm, by the rules of its
     * source. */
    {"vma-virtual fills the block", "vma-virtual:size=16M", UINT64_MAX,
     "+8M@0 +4M@8M +8M! -1 +8M@8M ~16M -0 -3 ^16M"},
    {"vma-virtual takes a larger free block first", "vma-virtual:size=1M,alignment=1", UINT64_MAX,
     "+1000@0 +10@1000 +1100@1010 +10@2110 -0 -2 +1000@1010"},
    {"vma-virtual min_memory takes one of the same class",
     "vma-virtual:size=1M,strategy=min_memory,alignment=1", UINT64_MAX,
     "+1000@0 +10@1000 +1100@1010 +10@2110 -0 -2 +1000@0"},
    {"vma-virtual does not take a free block of the same class while there is space at the end",
     "vma-virtual:size=1M,alignment=1", UINT64_MAX, "+1000@0 +10@1000 -0 +1000@1010"},
    {"vma-virtual min_offset takes the lowest",
     "vma-virtual:size=1M,strategy=min_offset,alignment=1", UINT64_MAX,
     "+2000@0 +10@2000 +1000@2010 +10@3010 -2 -0 +1000@0"},
    {"vma-virtual pads to the alignment", "vma-virtual:size=4096,alignment=256", UINT64_MAX,
     "+100@0 +100@256 +3584@512 ~3784 ^0 -1 ^256"},
    {"vma-virtual linear goes round", "vma-virtual:size=1K,algorithm=linear,alignment=1",
     UINT64_MAX, "+400@0 +400@400 -0 ^400 +300@0 +101! +100@300 -1 +600@400 -2 -4 ^400"},
    {"vma-virtual linear does not use what is free between live blocks",
     "vma-virtual:size=1K,algorithm=linear,alignment=1", UINT64_MAX,
     "+300@0 +300@300 +300@600 -1 +200! ^124 -2 +700@300"},
    /* ggml's pools, by the rules of its source. A buffer of 1050 bytes has 1280. */
    {"ggml obtains 5 % more", "ggml", UINT64_MAX, "+1000@0 ~1280 =1280 +100M@1280 =110101760"},
    {"ggml never splits a buffer", "ggml", UINT64_MAX, "+1M -0 +1@0 ~1101056 +1@1101056 =1101312"},
    {"ggml the smallest buffer, then the lowest slot", "ggml", UINT64_MAX,
     "+2560@0 +1000@2816 +1000@4096 -2 -1 -0 +1000@4096 +1000@2816 +1000@0"},
    {"ggml does not share between streams", "ggml", UINT64_MAX, "+1000@0s1 -0 +1000@1280s2 =2560"},
    {"ggml leaves a buffer that is larger by 64 GiB", "ggml", UINT64_MAX,
     "+70G@0 -0 +1M@78920024064 =78921125120 +10G@0"},
    {"ggml releases what its stream has cached", "ggml", 2816,
     "+1000@0s1 +1000@1280s2 -0 -1 +2000!s1 =1280 +1000@1280s2"},
    {"ggml did not before", "ggml:retry=false", 2816, "+1000@0 -0 +2000! =1280 +1@0"},
    {"ggml a stack in pages", "ggml:pool=vmm", 80 * AR_GIB,
     "+1@0 ~128 =2M +2M@128 =4M -1 +1000@128 ~1152 ^4193152 -2 -0 =4M"},
    /* Slabs: the first slab of a class has two blocks, or 16 KiB. */
    {"slab eight classes to a doubling", "slab", UINT64_MAX,
     "+4096 ~4K +4097 ~8704 +256K ~270848 +262145 ~533248"},
    {"slab lowest block first, large ones apart", "slab", UINT64_MAX,
     "+64K@0 +64K@64K +2M@2M +64K@128K =4M -1 +64K@64K -0 +64K@0 +64K@192K"},
    {"slab empty segments serve both kinds", "slab", UINT64_MAX, "+2M@0 -0 +1K@0 =2M"},
    /* RMM's pool. */
    {"rmm-pool grows by what it has", "rmm-pool", UINT64_MAX,
     "+1000@0 =1K +300@1K =2K +5000@2K =7K"},
    {"rmm-pool grows by half of what is missing", "rmm-pool:initial_pool_size=1M,limit=4M",
     UINT64_MAX, "+1M@0 +512K@1M =2621440 +1M@1572864 +1@2621440 =3407872"},
    {"rmm-pool does not merge device allocations",
     "rmm-pool:initial_pool_size=1M,limit=4M,reclaim=false", UINT64_MAX,
     "+1M@0 +1M@1M =2621440 -0 -1 +1572865!"},
    {"rmm-pool initial size can be too small to grow from",
     "rmm-pool:initial_pool_size=256,limit=1K,reclaim=false", UINT64_MAX, "+1K!"},
    {"rmm-pool without it the same request fits", "rmm-pool:limit=1K", UINT64_MAX, "+1K@0"},
    {"rmm-pool the maximum less the initial",
     "rmm-pool:initial_pool_size=1M,limit=4M,reclaim=false", UINT64_MAX, "+4M!"},
    /* The same three as RMM 26.10 serves them (recorded: golden/data/rmm, pool_initial). */
    {"rmm-pool gives free device allocations back to grow",
     "rmm-pool:initial_pool_size=1M,limit=4M", UINT64_MAX,
     "+1M@0 +1M@1M =2621440 -0 -1 +1572865@2621440 =3145984"},
    {"rmm-pool gives the initial size back", "rmm-pool:initial_pool_size=256,limit=1K", UINT64_MAX,
     "+1K@256 =1K"},
    {"rmm-pool gives back no more than the request needs", "rmm-pool:limit=100M", UINT64_MAX,
     "+40M =50M +40M =90M -0 -1 +60M =100M"},
    {"rmm-pool gives nothing back that a block is in", "rmm-pool:initial_pool_size=1M,limit=4M",
     UINT64_MAX, "+256@0 +4M! =1M -0 +4M@1M =4M"},
    {"rmm-pool gives nothing back for what is above the maximum",
     "rmm-pool:initial_pool_size=1M,limit=4M", UINT64_MAX, "+5M! =1M"},
    {"rmm-pool all of the maximum", "rmm-pool:limit=4M", UINT64_MAX, "+4M@0"},
    {"rmm-pool halves what the device refuses", "rmm-pool", 100 * AR_MIB, "+40M +40M +10M =100M"},
    {"rmm-pool best fit", "rmm-pool:initial_pool_size=64K", UINT64_MAX,
     "+1000@0 +1000@1K +4096@2K +256@6K +8192@6400 -0 -2 +512@0 +1K@2K"},
    /* RMM's arena. */
    {"rmm-arena heads of superblocks", "rmm-arena:arena_size=16M", UINT64_MAX,
     "+256@0 =16M +2M@1M +1M@3M +1048577@4M ~4194816"},
    {"rmm-arena takes half of what is free", "rmm-arena", 32 * AR_MIB, "+256@0 =16M ^15M"},
    {"rmm-arena takes a superblock whole", "rmm-arena:arena_size=2M", UINT64_MAX,
     "+1048577@0 ^1048320 +256@1048832s1 +256@1049088s1 ^1047808 -0"},
    /* The stream has the superblock, so a large request finds no memory in the global arena. All
       superblocks return to it, and the block is placed after the live one. */
    {"rmm-arena defragments once", "rmm-arena:arena_size=3M", UINT64_MAX,
     "+256@0 +256@256 +2M@1M -2 -0 +1M@1Ms1 +2M! -3 +2M@1M +1M! +255K@512 -1 -5 -7 +3M@0"},
    {"rmm-arena takes all superblocks of a stream back, the first first", "rmm-arena:arena_size=4M",
     UINT64_MAX, "+900K@0s1 +900K@1Ms1 +900K@2Ms1 -0 +800K@3Ms2 -3 -1 -2 +4M@0s2 =4M"},
    {"rmm-arena takes all superblocks of a stream back, the last first", "rmm-arena:arena_size=4M",
     UINT64_MAX, "+900K@0s1 +900K@1Ms1 +900K@2Ms1 -2 -1 -0 +4M@0s2"},
    {"rmm-arena takes all superblocks of a stream back, the middle first",
     "rmm-arena:arena_size=4M", UINT64_MAX, "+900K@0s1 +900K@1Ms1 +900K@2Ms1 -1 -0 -2 +4M@0s2"},
    {"rmm-arena frees what another stream had", "rmm-arena:arena_size=4M", UINT64_MAX,
     "+256@0s1 +512K@1Ms2 -0 -1 +1M@0s1 +1M@1Ms2 ^2M +4M! =4M"},
};

struct run {
    struct ar_policy *policy;
    struct ar_policy_block blocks[REQUESTS];
    unsigned count;
};

static uint64_t read_bytes(const char **at)
{
    char text[32];
    size_t used = strspn(*at, "0123456789");
    uint64_t bytes;
    if ((*at)[used] == 'K' || (*at)[used] == 'M' || (*at)[used] == 'G')
        used++;
    assert_in_range(used, 1, sizeof text - 1);
    memcpy(text, *at, used);
    text[used] = '\0';
    *at += used;
    assert_int_equal(ar_size_parse(text, &bytes, NULL), AR_OK);
    return bytes;
}

static void do_request(struct run *run, const char **at)
{
    struct ar_policy_request request = {.bytes = read_bytes(at)};
    bool placed = false;
    uint64_t offset = 0;
    bool fails = **at == '!';
    *at += fails;
    if (**at == '@') {
        ++*at;
        placed = true;
        offset = read_bytes(at);
    }
    if (**at == 's') {
        ++*at;
        request.stream = (uint32_t)read_bytes(at);
    }
    assert_in_range(run->count, 0, REQUESTS - 1);
    struct ar_policy_block *block = &run->blocks[run->count++];
    assert_int_equal(ar_policy_alloc(run->policy, &request, block), fails ? AR_NO_MEMORY : AR_OK);
    if (placed)
        assert_int_equal(block->address, offset);
}

static void do_word(struct run *run, const char **at)
{
    struct ar_policy_stats stats;
    char word = *(*at)++;
    if (word == '+') {
        do_request(run, at);
    } else if (word == '-') {
        uint64_t n = read_bytes(at);
        assert_in_range(n, 0, run->count - 1);
        assert_int_equal(ar_policy_free(run->policy, &run->blocks[n], 0), AR_OK);
    } else if (word == 'c') {
        assert_int_equal(ar_policy_trim(run->policy, 0), AR_OK);
    } else {
        uint64_t want = read_bytes(at);
        ar_policy_stats(run->policy, &stats);
        assert_int_equal(word == '='   ? stats.totals.reserved_bytes
                         : word == '~' ? stats.totals.granted_bytes
                                       : stats.largest_free_block_bytes,
                         want);
        assert_non_null(strchr("=~^", word));
    }
    assert_ok(ar_policy_validate(run->policy, &test_error));
}

static void check_example(void **state)
{
    const struct example *example = *state;
    struct fake_backing *backing = malloc(sizeof *backing);
    struct ar_host host = {0};
    struct ar_spec spec;
    struct run run = {.count = 0};
    assert_non_null(backing);
    fake_backing_open(backing, example->cap_bytes);
    if (strstr(example->spec, "expandable") || strstr(example->spec, "pool=vmm"))
        fake_backing_virtual(backing, 2 * AR_MIB, example->cap_bytes);
    struct ar_policy_context context = {.backing = &backing->base, .host = &host};
    assert_ok(ar_spec_parse(example->spec, &spec, &test_error));
    assert_ok(registry_create(&spec, &context, &run.policy, &test_error));
    for (const char *at = example->script; *at;) {
        do_word(&run, &at);
        at += strspn(at, " ");
    }
    ar_policy_destroy(run.policy);
    ar_spec_close(&spec);
    assert_int_equal(host.now_bytes, 0);
    assert_int_equal(backing->held_bytes, 0);
    free(backing);
}

int main(void)
{
    enum { COUNT = sizeof examples / sizeof *examples };
    struct CMUnitTest tests[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        tests[i] = (struct CMUnitTest){.name = examples[i].name,
                                       .test_func = check_example,
                                       .initial_state = (void *)(uintptr_t)&examples[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
