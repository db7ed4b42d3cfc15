/* Messages in lines of limited width: where lines may be broken, and where they must not. */
#include "bench/report/sentence.h"
#include "tests/support/test.h"
#include "tests/support/writing.h"

TEST(wrapped)
{
    EACH_ROW (row, 5) {
        struct capture capture;
        sentence_wrap(capture_begin(&capture), row.field[0], (int)cases_number(&row, 1),
                      (int)cases_number(&row, 2), (int)cases_number(&row, 3));
        capture_is(&capture, row.field[4]);
    }
}

TEST(copied)
{
    EACH_ROW (row, 3) {
        struct capture capture;
        sentence_copied(capture_begin(&capture), row.field[0], row.field[1]);
        capture_is(&capture, row.field[2]);
    }
}

TEST(format_keeps_what_is_before)
{
    struct capture capture;
    sentence_format(capture_begin(&capture), 8, "%6d  %078d %s", 5, 7, "end");
    capture_is(&capture,
               "     5\n        "
               "000000000000000000000000000000000000000000000000000000000000000000000000000007\n"
               "        end\n");
}

TEST(said_elsewhere_than_at_a_terminal)
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
}
