#include "tests/support/writing.h"

#include "tests/support/test.h"

void writing_add(struct writing *writing, const char *format, ...)
{
    size_t used = strlen(writing->text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(writing->text + used, sizeof writing->text - used, format, arguments);
    va_end(arguments);
}

FILE *capture_begin(struct capture *self)
{
    self->stream = open_memstream(&self->text, &self->length);
    assert_non_null(self->stream);
    return self->stream;
}

char *capture_end(struct capture *self)
{
    assert_int_equal(fclose(self->stream), 0);
    return self->text;
}

void capture_is(struct capture *self, const char *wanted)
{
    assert_string_equal(capture_end(self), wanted);
    free(self->text);
}
