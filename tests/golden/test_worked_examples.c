/* Worked examples of many allocators as small scripts over a bump address. Words of a script:
 *
 *   +BYTES[@OFFSET][sSTREAM]   a request, with its address if given. `+BYTES!` must fail
 *   -N                         frees the N-th request, from 0
 *   =BYTES                     reserved bytes now
 *   ~BYTES                     granted bytes now
 *   ^BYTES                     largest free block now
 *   c                          releases the cache
 *
 * BYTES may end in K, M or G. The examples are rows of tests/unit/cases/worked_examples. */
#include "allocators/registry.h"
#include "tests/support/fake_backing.h"
#include "tests/support/test.h"

#define REQUESTS 64

struct example {
    char *name, *spec;
    uint64_t cap_bytes; /* of the device */
    char *script;
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
    FREED struct fake_backing *backing = malloc(sizeof *backing);
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
}

int main(void)
{
    enum { MOST = 256 };
    static struct example examples[MOST];
    static struct CMUnitTest tests[MOST];
    size_t count = 0;
    for (struct cases row = {0}; cases_next(&row, "worked_examples", "examples", 4); count++) {
        uint64_t cap_bytes = cases_number(&row, 2);
        examples[count % MOST] =
            (struct example){strdup(row.field[0]), strdup(row.field[1]),
                             cap_bytes ? cap_bytes : UINT64_MAX, strdup(row.field[3])};
        tests[count % MOST] = (struct CMUnitTest){.name = examples[count % MOST].name,
                                                  .test_func = check_example,
                                                  .initial_state = &examples[count % MOST]};
    }
    int failed = count <= MOST ? _cmocka_run_group_tests("examples", tests, count, NULL, NULL) : 1;
    for (size_t i = 0; i < count && i < MOST; i++) {
        free(examples[i].name);
        free(examples[i].spec);
        free(examples[i].script);
    }
    return failed;
}
