/* Messages in lines of limited width: where lines may be broken, and where they must not. */
#include "bench/report/sentence.h"
#include "tests/support/test.h"
#include "tests/support/writing.h"

static struct capture capture;
static FILE *stream;

static int begin(void **state)
{
    stream = capture_begin(&capture);
    return 0;
}

static void is(const char *wanted)
{
    capture_is(&capture, wanted);
}

TEST_WITH(test_breaks_at_spaces, begin, NULL)
{
    sentence_wrap(stream, "one two three four", 0, 2, 9);
    is("one two\n  three\n  four\n");
}

TEST_WITH(test_a_line_that_just_fits, begin, NULL)
{
    sentence_wrap(stream, "one two", 2, 2, 9);
    is("one two\n");
}

TEST_WITH(test_a_long_word_stands_alone, begin, NULL)
{
    sentence_wrap(stream, "a /as/long/a/path/as/any b", 0, 2, 9);
    is("a\n  /as/long/a/path/as/any\n  b\n");
}

/* A name may hold several spaces; a line end is one. */
TEST_WITH(test_spaces_stand, begin, NULL)
{
    sentence_wrap(stream, "my  file:\n gone", 0, 2, 40);
    is("my  file: gone\n");
}

TEST_WITH(test_commands_stay_whole, begin, NULL)
{
    sentence_wrap(stream, "give -p (`rig list all`) now", 0, 2, 20);
    is("give -p\n  (`rig list all`)\n  now\n");
}

TEST_WITH(test_commands_wider_than_a_line_are_broken, begin, NULL)
{
    sentence_wrap(stream, "see `rig list all of them` now", 0, 2, 14);
    is("see `rig list\n  all of them`\n  now\n");
}

TEST_WITH(test_a_backtick_alone_is_a_letter, begin, NULL)
{
    sentence_wrap(stream, "one `two three four", 0, 2, 12);
    is("one `two\n  three four\n");
}

TEST_WITH(test_format_keeps_what_is_before, begin, NULL)
{
    sentence_format(stream, 8, "%6d  %078d %s", 5, 7, "end");
    is("     5\n        "
       "000000000000000000000000000000000000000000000000000000000000000000000000000007\n"
       "        end\n");
}

TEST_WITH(test_copied_behind_its_label, begin, NULL)
{
    sentence_copied(stream, "  1  ", "A=b; C=d");
    is("  1  A=b; C=d\n");
}

TEST_WITH(test_copied_texts_below_each_other, begin, NULL)
{
    char text[128];
    snprintf(text, sizeof text, "A=%060d; C=%060d", 1, 2);
    sentence_copied(stream, "  1  ", text);
    is("  1  A=000000000000000000000000000000000000000000000000000000000001\n"
       "     C=000000000000000000000000000000000000000000000000000000000002\n");
}

TEST_WITH(test_copied_on_a_line_of_its_own, begin, NULL)
{
    char text[128];
    snprintf(text, sizeof text, "A=%080d", 1);
    sentence_copied(stream, "  1  ", text);
    is("  1\n"
       "A=00000000000000000000000000000000000000000000000000000000000000000000000000000001\n");
}

TEST_WITH(test_copied_without_a_label, begin, NULL)
{
    char text[128];
    snprintf(text, sizeof text, "A=%077d", 1);
    sentence_copied(stream, "    ", text);
    is("A=00000000000000000000000000000000000000000000000000000000000000000000000000001\n");
}

TEST_WITH(test_said_elsewhere_than_at_a_terminal, begin, NULL)
{
    char wanted[256];
    FILE *file = tmpfile();
    assert_non_null(file);
    sentence_say(file, "%0100d %0100d", 1, 2);
    rewind(file);
    assert_non_null(fgets(wanted, sizeof wanted, file));
    assert_int_equal(strlen(wanted), 202);
    assert_int_equal(fgetc(file), EOF);
    fclose(file);
    is("");
}
