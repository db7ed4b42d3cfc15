/* The grammar of specs: the result of valid texts, and a sentence for each invalid one. */
#include "allocators/spec.h"
#include "tests/support/test.h"

/* Prints a spec in one form: [name key=<value>...]... */
static const char *flat(const char *text, char *out, size_t out_bytes)
{
    struct ar_spec spec;
    if (ar_spec_parse(text, &spec, &test_error))
        fail_msg("%s: %s", text, test_error.text);
    assert_string_equal(spec.text, text);
    size_t used = 0;
    for (size_t i = 0; i < spec.link_count; i++) {
        const struct ar_spec_link *link = &spec.links[i];
        used += (size_t)snprintf(out + used, out_bytes - used, "[%s", link->name);
        for (size_t j = 0; j < link->pair_count; j++)
            used += (size_t)snprintf(out + used, out_bytes - used,
                                     link->pairs[j].alone ? " %s%s" : " %s=<%s>",
                                     link->pairs[j].key, link->pairs[j].value);
        used += (size_t)snprintf(out + used, out_bytes - used, "]");
    }
    ar_spec_close(&spec);
    assert_null(spec.storage);
    return out;
}

TEST(good)
{
    EACH_ROW (row, 2) {
        char out[300];
        assert_string_equal(flat(row.field[0], out, sizeof out), row.field[1]);
    }
}

TEST(bad)
{
    EACH_ROW (row, 2) {
        struct ar_spec spec;
        struct ar_error error = {""};
        assert_int_equal(ar_spec_parse(row.field[0], &spec, &error), AR_INVALID);
        assert_null(spec.storage);
        if (!strstr(error.text, row.field[1]))
            fail_msg("\"%s\" gave: %s", row.field[0], error.text);
    }
}

/* Every text of up to five special signs is parsed or refused, never read past its end (the
 * sanitizer checks that), and never gives more links or pairs than the arrays hold. */
TEST(all_short_texts)
{
    static const char signs[] = "a+:(),='";
    const size_t base = sizeof signs - 1;
    size_t read = 0;
    for (size_t code = 0; code < base * base * base * base * base; code++) {
        char text[6] = "";
        size_t rest = code;
        for (int i = 0; i < 5; i++, rest /= base)
            text[i] = signs[rest % base];
        CLOSED(ar_spec_close) struct ar_spec spec;
        struct ar_error error = {""};
        enum ar_status status = ar_spec_parse(text, &spec, &error);
        assert_true(status == AR_OK || (status == AR_INVALID && error.text[0]));
        read += status == AR_OK;
    }
    assert_true(read > 0 && read < base * base * base * base * base);
}
