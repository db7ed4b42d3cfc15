/* Names of blocks that have no room, and the rows of an answer. What `fits` reads:
 * tests/steps/fits_notes. */
#include "sim/advise/fits.h"
#include "tests/support/test.h"
#include "tests/support/tiny_trace.h"

TEST(long_names_are_cut)
{
    char events[3000], tag[700];
    struct holders peak;
    for (size_t i = 0; i + 1 < sizeof tag; i++)
        tag[i] = i % 3 == 2 ? '.' : '7';
    tag[sizeof tag - 1] = '\0';
    snprintf(events, sizeof events, "a,0,100,0,tag=%s,at=%s a,1,100,0,tag=%s,at=%s", tag, tag, tag,
             tag);
    CLOSED(close_trace) struct trace_source *source = tiny_trace(events);
    assert_ok(holders_find(source, UINT64_MAX, &peak, &test_error));
    assert_int_equal(peak.count, 1);
    assert_int_equal(peak.at[0].blocks, 2);
    assert_true(strlen(peak.at[0].tag) < sizeof peak.at[0].tag);
    assert_true(strlen(peak.at[0].at) < sizeof peak.at[0].at);
}

static struct advise_row row_of(const char *spec, unsigned keys, size_t rank, uint64_t safe_bytes)
{
    struct advise_row row = {.rank = rank, .safe_bytes = safe_bytes};
    snprintf(row.candidate.spec, sizeof row.candidate.spec, "%s", spec);
    row.candidate.keys = keys;
    return row;
}

/* The program's own settings, then at most three that need less: those that fit first, the first of
 * all too, and no other policy. */
TEST(rows_of_an_answer)
{
    struct advise_row at[] = {row_of("torch:a=1", 1, 1, 400), row_of("torch:b=1", 1, 1, 100),
                              row_of("torch", 0, 2, 500),     row_of("torch:c=1", 1, 1, 250),
                              row_of("torch:d=1", 1, 1, 450), row_of("vmm:e=1", 1, 1, 50)};
    const struct advise_row *rows[FITS_ROWS_MOST];
    at[2].candidate.given = true;
    struct advise_result advice = {
        .rows = at, .count = COUNT(at), .own_count = COUNT(at) - 1, .capacity_bytes = 300};
    assert_int_equal(fits_rows(&advice, rows), 4);
    assert_true(rows[0] == &at[2] && rows[1] == &at[1] && rows[2] == &at[3] && rows[3] == &at[0]);
    advice.own_count = 3;
    assert_int_equal(fits_rows(&advice, rows), 3);
}
