/* Names of blocks that have no room. What `fits` reads: tests/steps/fits_notes. */
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
