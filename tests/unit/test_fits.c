/* What `fits` reads from the notes of the tracer, how the blocks at the peak are grouped, and which
 * rows and cards it shows. */
#include "sim/advise/fits.h"
#include "sim/sim_device/profile.h"
#include "tests/support/test.h"
#include "tests/support/tiny_trace.h"
#include "workloads/trace/trace.h"

static void notes_of(const char *events, struct fits_notes *out)
{
    CLOSED(close_trace) struct trace_source *source = tiny_trace(events);
    assert_ok(fits_notes_read(source, out, &test_error));
}

TEST(notes_are_read)
{
    CLOSED(fits_notes_close) struct fits_notes notes;
    notes_of("a,0,512 !,traced,versions,torch !,traced,drawn,nonzero,3 "
             "!,traced,outside_table,aten.a,4,400 !,traced,outside_table,aten.b,2,600 "
             "!,traced,unsure,conv,7,1000,1200 !,traced,rule,cublas,1,5000 f,0",
             &notes);
    assert_true(notes.traced);
    assert_string_equal(notes.versions, "torch");
    assert_string_equal(notes.refusal, "");
    assert_int_equal(notes.count, 5);
    assert_string_equal(notes.at[0].name, "nonzero");
    assert_int_equal(notes.at[0].count, 3);
    assert_string_equal(notes.at[1].name, "aten.b"); /* the largest of its kind */
    assert_int_equal(notes.at[1].more_bytes, 300);
    assert_int_equal(notes.at[2].more_bytes, 100);
    assert_int_equal(notes.at[3].kind, FITS_UNSURE);
    assert_int_equal(notes.at[3].more_bytes, 200);
    assert_int_equal(notes.at[4].bytes, 5000);
    assert_int_equal(notes.at[4].more_bytes, 0); /* a rule has no bounds */
    assert_int_equal(notes.more_bytes, 300);
}

/* Missing fields are 0; what is no note of the tracer is passed over. */
TEST(odd_notes_are_harmless)
{
    struct fits_notes notes;
    notes_of("!,traced !,traced, !,tracedversions,x !,traced,drawn !,traced,drawn, "
             "!,traced,outside_table,a !,traced,outside_table,b,0,8 !,traced,unsure,c,1,9,3 "
             "!,traced,unsure,d,-1,x !,traced,news,e,1 a,0,512 f,0",
             &notes);
    assert_true(notes.traced);
    assert_int_equal(notes.count, 5);
    assert_int_equal(notes.more_bytes, 0);
    fits_notes_close(&notes);
    notes_of("!,traced,outside_envelope,first !,traced,outside_envelope,second a,0,512", &notes);
    assert_string_equal(notes.refusal, "first");
    fits_notes_close(&notes);
    notes_of("a,0,512 !,alloc,4096 f,0", &notes);
    assert_false(notes.traced);
    fits_notes_close(&notes);
}

TEST(another_release_was_measured)
{
    struct fits_notes notes;
    notes_of("a,0,512 !,traced,versions,torch-2.15.0 !,traced,measured,torch-2.11", &notes);
    assert_string_equal(notes.measured, "torch-2.11");
    fits_notes_close(&notes);
    notes_of("a,0,512 !,traced,versions,torch-2.11.0", &notes);
    assert_string_equal(notes.measured, "");
    fits_notes_close(&notes);
}

/* A recorder in the header stays; else the versions name it. */
TEST(versions_name_the_recorder)
{
    struct fits_notes notes;
    for (int named = 0; named < 2; named++) {
        CLOSED(close_trace)
        struct trace_source *source = tiny_trace("a,0,512 !,traced,versions,torch-2.11.0");
        if (named)
            strcpy(source->info.recorder, "torch 2.8.0");
        assert_ok(fits_notes_read(source, &notes, &test_error));
        assert_string_equal(source->info.recorder, named ? "torch 2.8.0" : "torch-2.11.0");
        fits_notes_close(&notes);
    }
}

TEST(layers_are_one_group)
{
    struct holders peak;
    CLOSED(close_trace)
    struct trace_source *source =
        tiny_trace("a,0,100,0,tag=h.0.mlp:mm,at=m.py:7 a,1,200,0,tag=h.11.mlp:mm,at=m.py:7 "
                   "a,2,50,0,tag=h.2.mlp:mm,at=m.py:8 a,3,40,0,tag=3:mm,at=m.py:7 "
                   "a,4,30,0,tag=4:mm,x=1,at=m.py:7 a,5,20,0,tag=fc1:mm,at=m.py:7 "
                   "a,6,10,0,tag=h.1.mlp:mm a,7,5,0,tag=h.2.mlp:mm");
    assert_ok(holders_find(source, UINT64_MAX, &peak, &test_error));
    assert_int_equal(peak.count, HOLDERS_MOST);
    assert_string_equal(peak.at[0].tag, "h.*.mlp:mm");
    assert_string_equal(peak.at[0].at, "m.py:7");
    assert_int_equal(peak.at[0].bytes, 300);
    assert_int_equal(peak.at[0].blocks, 2);
    assert_string_equal(peak.at[1].tag, "*:mm");
    assert_int_equal(peak.at[1].bytes, 70);
    assert_string_equal(peak.at[2].at, "m.py:8");
    assert_string_equal(peak.at[3].tag, "fc1:mm");
    assert_string_equal(peak.at[4].tag, "h.1.mlp:mm"); /* without a line the tag is as it is */
}

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

TEST(the_smallest_card_that_serves)
{
    struct sim_profile card;
    assert_false(fits_smallest_card(0, &card));
    assert_true(fits_smallest_card(1, &card));
    assert_string_equal(card.name, "l4");
    assert_true(fits_smallest_card(card.usable_bytes, &card));
    assert_string_equal(card.name, "l4");
    assert_true(fits_smallest_card(card.usable_bytes + 1, &card));
    assert_string_equal(card.name, "a10");
    assert_true(fits_smallest_card(70 * AR_GIB, &card));
    assert_string_equal(card.compute, "8.0"); /* an A100 has less than an H100 */
    assert_true(fits_smallest_card(150 * AR_GIB, &card));
    assert_string_equal(card.name, "b200"); /* mi300x is no NVIDIA card */
    assert_true(fits_smallest_card(200 * AR_GIB, &card));
    assert_string_equal(card.name, "b300");
    assert_false(fits_smallest_card(300 * AR_GIB, &card));
}
