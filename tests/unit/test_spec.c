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
    static const char *const cases[][2] = {
        {"growth", "[growth]"},
        {"growth:", "[growth]"},
        {"checked+growth", "[checked][growth]"},
        {"fault(n=3)+torch", "[fault n=<3>][torch]"},
        {"checked()+fault(n=3,every=9)+torch:a=1", "[checked][fault n=<3> every=<9>][torch a=<1>]"},
        {"growth(limit=1)", "[growth limit=<1>]"},
        {"growth(limit=1):framework=jax", "[growth limit=<1> framework=<jax>]"},
        {"growth:framework=jax,limit=8501854208", "[growth framework=<jax> limit=<8501854208>]"},
        {"torch:conf='expandable_segments:True,roundup_power2_divisions:[256:1,512:2]'",
         "[torch conf=<expandable_segments:True,roundup_power2_divisions:[256:1,512:2]>]"},
        {"torch:conf=\"a'b\",limit=1", "[torch conf=<a'b> limit=<1>]"},
        {"./mine.so:key=value", "[./mine.so key=<value>]"},
        {"'a+b:(c).so':key=value", "[a+b:(c).so key=<value>]"},
        {"sim:profile=h100,addresses=/a/b.csv", "[sim profile=<h100> addresses=</a/b.csv>]"},
        {"x:k=a:b=c+d(e)", "[x k=<a:b=c+d(e)>]"},
        {"x:k=it's", "[x k=<it's>]"},
        {"data/oracles/T.csv", "[data/oracles/T.csv]"},
        {" checked + growth : limit = 2GiB , lazy ", "[checked][growth limit=<2GiB> lazy]"},
        {"x:k=' a, b '", "[x k=< a, b >]"},
        {"x:k=", "[x k=<>]"},
        {"x:k", "[x k]"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char out[300];
        assert_string_equal(flat(cases[i][0], out, sizeof out), cases[i][1]);
    }
}

TEST(bad)
{
    static const char *const cases[][2] = {
        {"", "a name is missing at character 1"},
        {"   ", "a name is missing"},
        {":k=v", "a name is missing at character 1"},
        {"checked+", "a name is missing at character 9"},
        {"+growth", "a name is missing at character 1"},
        {"growth:,limit=1", "an option's name is missing at character 8"},
        {"growth:limit=1,", "an option's name is missing at character 16"},
        {"growth:=1", "an option's name is missing at character 8"},
        {"growth:conf='a,b", "the quote at character 13 is not closed"},
        {"growth:conf='a'b", "something follows the closing quote at character 16"},
        {"fault(n=3+growth", "the bracket at character 6 is not closed"},
        {"fault(", "the bracket at character 6 is not closed"},
        {"fault(n=3)growth", "a plus sign is expected at character 11"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct ar_spec spec;
        struct ar_error error = {""};
        assert_int_equal(ar_spec_parse(cases[i][0], &spec, &error), AR_INVALID);
        assert_null(spec.storage);
        if (!strstr(error.text, cases[i][1]))
            fail_msg("\"%s\" gave: %s", cases[i][0], error.text);
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
        struct ar_spec spec;
        struct ar_error error = {""};
        enum ar_status status = ar_spec_parse(text, &spec, &error);
        assert_true(status == AR_OK || (status == AR_INVALID && error.text[0]));
        read += status == AR_OK;
        ar_spec_close(&spec);
    }
    assert_true(read > 0 && read < base * base * base * base * base);
}
