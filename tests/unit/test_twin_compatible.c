/* Settings that work together, by release: the table, and its page for users. */
#include "sim/twin/rules/compatible.h"
#include "tests/support/test.h"

/* As the page for users names them. */
static const char *const settings[COMPATIBLE_SETTING_COUNT] = {
    [COMPATIBLE_EXPANDABLE] = "expandable_segments",
    [COMPATIBLE_MEMPOOL] = "torch.cuda.MemPool",
    [COMPATIBLE_MEMPOOL_OWN] = "MemPool with an allocator",
    [COMPATIBLE_USE_ON_OOM] = "MemPool(use_on_oom)",
    [COMPATIBLE_NO_SPLIT] = "MemPool(no_split)",
    [COMPATIBLE_GRAPHS] = "CUDA graphs",
    [COMPATIBLE_EMPTY_CACHE] = "empty_cache",
    [COMPATIBLE_COLLECTION] = "garbage_collection_threshold",
    [COMPATIBLE_SLEEP] = "vLLM's sleep mode",
    [COMPATIBLE_SAVER_PRELOAD] = "torch_memory_saver (preload)",
    [COMPATIBLE_SAVER_TORCH] = "torch_memory_saver (torch)",
    [COMPATIBLE_CUMEM_NCCL] = "NCCL with cuMem",
};
static const char *const programs[] = {"PyTorch", "vLLM", "torch_memory_saver", "NCCL"};

static void check_pair(enum compatible_setting a, enum compatible_setting b,
                       enum compatible_program program, const char *release,
                       enum compatible_verdict verdict)
{
    struct compatible_releases releases = {{0}};
    releases.of[program] = release ? compatible_release(release) : 0;
    const struct compatible_statement *one = compatible_find(a, b, &releases);
    assert_non_null(one);
    assert_ptr_equal(one, compatible_find(b, a, &releases));
    if (one->verdict != verdict)
        fail_msg("%s and %s in %s: %d", settings[a], settings[b], release ? release : "the newest",
                 (int)one->verdict);
}

TEST(settings_by_release)
{
    enum compatible_setting expandable = COMPATIBLE_EXPANDABLE;
    static const enum compatible_verdict own[] = {COMPATIBLE_NO_EFFECT, COMPATIBLE_NO_EFFECT,
                                                  COMPATIBLE_REFUSED,   COMPATIBLE_REFUSED,
                                                  COMPATIBLE_REFUSED,   COMPATIBLE_WORKS};
    static const char *const releases[] = {"2.5", "2.6.0", "2.7.1", "2.8", "2.9", "2.10.0+cu130"};
    for (size_t i = 0; i < 6; i++)
        check_pair(expandable, COMPATIBLE_MEMPOOL_OWN, COMPATIBLE_TORCH, releases[i], own[i]);
    check_pair(expandable, COMPATIBLE_MEMPOOL_OWN, COMPATIBLE_TORCH, NULL, COMPATIBLE_WORKS);
    check_pair(expandable, COMPATIBLE_SLEEP, COMPATIBLE_VLLM, "0.7.3", COMPATIBLE_NO_EFFECT);
    check_pair(expandable, COMPATIBLE_SLEEP, COMPATIBLE_VLLM, "0.9", COMPATIBLE_REFUSED);
    check_pair(expandable, COMPATIBLE_SLEEP, COMPATIBLE_VLLM, NULL, COMPATIBLE_WORKS);
    check_pair(COMPATIBLE_EMPTY_CACHE, COMPATIBLE_MEMPOOL, COMPATIBLE_TORCH, "2.11",
               COMPATIBLE_NO_EFFECT);
    check_pair(COMPATIBLE_EMPTY_CACHE, COMPATIBLE_MEMPOOL, COMPATIBLE_TORCH, "2.13",
               COMPATIBLE_WORKS);
    struct compatible_releases none = {{0}};
    assert_null(compatible_find(COMPATIBLE_NO_SPLIT, COMPATIBLE_USE_ON_OOM, &none));
    assert_int_equal(compatible_release("torch"), 0);
    assert_int_equal(compatible_release("2"), 0);
    assert_int_equal(compatible_release("2.x"), 0);
    assert_int_equal(compatible_release("0.21"), 21);
}

/* Of two settings and one program, no two statements hold for the same release. */
TEST(statements_do_not_overlap)
{
    const struct compatible_statement *a, *b;
    for (size_t i = 0; (a = compatible_at(i)) != NULL; i++) {
        assert_true(a->what[0] && a->source[0] && settings[a->a] && settings[a->b]);
        for (size_t k = i + 1; (b = compatible_at(k)) != NULL; k++) {
            bool same = a->program == b->program &&
                        ((a->a == b->a && a->b == b->b) || (a->a == b->b && a->b == b->a));
            uint32_t a_last = a->last ? a->last : UINT32_MAX;
            uint32_t b_last = b->last ? b->last : UINT32_MAX;
            if (same && a->first <= b_last && b->first <= a_last)
                fail_msg("%s and %s: two statements", settings[a->a], settings[a->b]);
        }
    }
}

/* "2.7", "2.5 to 2.6", "from 2.10", "up to 0.7" or "all". */
static void print_releases(const struct compatible_statement *s, char *text, size_t room)
{
    unsigned first = s->first, last = s->last;
    if (!first && !last)
        snprintf(text, room, "all");
    else if (!last)
        snprintf(text, room, "from %u.%u", first / 100, first % 100);
    else if (!first)
        snprintf(text, room, "up to %u.%u", last / 100, last % 100);
    else if (first == last)
        snprintf(text, room, "%u.%u", first / 100, first % 100);
    else
        snprintf(text, room, "%u.%u to %u.%u", first / 100, first % 100, last / 100, last % 100);
}

/* The page for users has the rows of the table, in its order, and no others. */
TEST(page_of_statements)
{
    static const char *const verdicts[] = {"works", "no effect", "refused"};
    static char page[32768];
    char row[1024], releases[40];
    FILE *file = fopen("sim/twin/COMPATIBLE.md", "r");
    assert_non_null(file);
    page[fread(page, 1, sizeof page - 1, file)] = '\0';
    fclose(file);
    const struct compatible_statement *s;
    const char *at = strstr(page, "| --- |");
    assert_non_null(at);
    at = strchr(at, '\n') + 1;
    for (size_t i = 0; (s = compatible_at(i)) != NULL; i++) {
        print_releases(s, releases, sizeof releases);
        int length = snprintf(row, sizeof row, "| %s, %s | %s %s | %s | %s | %s |\n",
                              settings[s->a], settings[s->b], programs[s->program], releases,
                              verdicts[s->verdict], s->what, s->source);
        assert_in_range(length, 1, sizeof row - 1);
        if (strncmp(at, row, (size_t)length) != 0)
            fail_msg("sim/twin/COMPATIBLE.md lacks, or has elsewhere: %s", row);
        at += length;
    }
    assert_int_equal(*at, '\n');
}
